"""A redaction reaches the files that a vault keeps beside its account, whoever redacts, however it ends."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import octavo
from canaries import holding
from octavo.documents.vault import MemoryVault
from octavo.domain.units import Watermark
from octavo.doors import cli
from octavo.engine.attachments import Attached, Attachments
from octavo.errors import BadInput, Damaged, NewerFormat
from octavo.storage.stores.local import LocalStore
from octavo.testing import Stopped, StoppingDisk, open_on

CANARY = "zebraquux canary song"
THAI = "นกขมิ้นลับเฉพาะร้องเพลง"
NEIGHBOUR = '{"id": "bbbbbbbbbbbb",  "text": "plays the guitar", "scope":"shared"}'


def foreign(path: Path, text: str) -> Path:
    """A vault of another program: a history, lines nobody can read, escaped ones and a torn one."""
    escaped = json.dumps(text)
    path.write_text(
        "\n".join(
            [
                NEIGHBOUR,
                json.dumps({"id": "aaaaaaaaaaaa", "text": text, "scope": "shared"}, ensure_ascii=False),
                json.dumps({"id": "aaaaaaaaaaaa", "text": f"{text} again", "scope": "shared", "version": 2}),
                f'{{"id": 5, "text": {escaped}}}',
                f'{{"version": 0, "text": {escaped}}}',
                f"nobody's line: {text}",
                "nobody's other line",
                f'{{"text": {escaped[: 1 + len(escaped) * 2 // 3]}',
            ]
        )
    )
    return path


def folder_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.octavo")


def copy_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.imported")


def piece(text: str) -> str:
    """What the torn line still holds."""
    return text[: len(text) // 2]


def by_the_account(path: Path, id_: str) -> None:
    with octavo.open(folder_of(path), "vault", actor="human:you") as account:
        assert account.redact(id_, reason="asked to").unreached == ()


def by_the_vault(path: Path, id_: str) -> None:
    with MemoryVault(path) as vault:
        vault.account.redact(id_, reason="asked to")


def by_the_command_line(path: Path, id_: str) -> None:
    where = ("--root", str(folder_of(path)), "--account", "vault")
    assert cli.run((*where, "redact", id_, "--reason", "asked to", "--yes")) == 0


@pytest.mark.parametrize("redact", [by_the_account, by_the_vault, by_the_command_line])
@pytest.mark.parametrize("text", [CANARY, THAI])
def test_a_foreign_text_is_in_no_file_and_its_neighbours_stay_byte_for_byte(tmp_path, redact, text):
    path = foreign(tmp_path / "vault.jsonl", text)
    before = path.read_bytes()
    MemoryVault(path).close()
    assert copy_of(path).read_bytes() == before
    assert {"vault.jsonl", "vault.jsonl.imported", "state.db"} <= set(holding(tmp_path, piece(text)))
    redact(path, "aaaaaaaaaaaa")
    assert holding(tmp_path, piece(text)) == []
    lines = copy_of(path).read_text().split("\n")
    assert [n for n, line in enumerate(lines) if not line.startswith('{"redacted":')] == [0, 6]
    assert (lines[0], lines[6]) == (NEIGHBOUR, "nobody's other line")
    assert b"plays the guitar" in path.read_bytes()
    with MemoryVault(path) as vault:
        assert vault.account.check().problems == ()
        assert [m.text for m in vault.recall()] == ["plays the guitar"]
        assert vault.problems == []
    assert holding(tmp_path, piece(text)) == []


@pytest.mark.parametrize("text", [CANARY, THAI])
def test_additions_updates_and_deletions_lose_the_text_without_a_vault_open(tmp_path, text):
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        neighbour = vault.add_memory("plays the guitar", "shared", "x")
        added = vault.add_memory(f"sings {text}", "shared", "x", [text])
        vault.update_memory(added.id, text=f"hums {text}")
        vault.delete_memory(added.id)
        line = path.read_bytes().split(b"\n")[0]
    assert path.read_text().count(text) >= 3
    by_the_account(path, added.id)
    assert holding(tmp_path, text) == []
    assert path.read_bytes() == line + b"\n"
    with MemoryVault(path) as vault:
        assert [m.id for m in vault.recall()] == [neighbour.id]
        assert vault.resolve_latest()[added.id].text == "[redacted]"
    assert [json.loads(row)["text"] for row in path.read_text().splitlines()][1:] == ["[redacted]"] * 3


def test_a_masked_secret_and_renamed_and_nameless_lines_lose_their_originals(tmp_path):
    path = tmp_path / "vault.jsonl"
    rows = [
        {"id": "cccccccccccc", "text": "the wifi password: hunter2hunter2"},
        {"id": "has spaces", "text": "the garden gate password: swordfish99"},
        {"text": "the bank password: opensesame77"},
    ]
    path.write_text(NEIGHBOUR + "\n" + "".join(json.dumps(row) + "\n" for row in rows))
    with MemoryVault(path) as vault:
        ids = [m.id for m in vault.recall() if m.id != "bbbbbbbbbbbb"]
    for secret in ("hunter2hunter2", "swordfish99", "opensesame77"):
        assert holding(tmp_path, secret) == ["vault.jsonl.imported"]
    for id_ in ids:
        by_the_account(path, id_)
    for secret in ("hunter2hunter2", "swordfish99", "opensesame77"):
        assert holding(tmp_path, secret) == []
    assert copy_of(path).read_text().split("\n")[0] == NEIGHBOUR


def test_what_says_the_same_under_its_own_id_stays_until_a_person_decides(tmp_path):
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        gone = vault.add_memory(CANARY, "shared", "x")
        stays = vault.add_memory(CANARY, "orion", "x")
    by_the_account(path, gone.id)
    assert [json.loads(row)["id"] for row in path.read_text().splitlines()] == [stays.id]
    by_the_account(path, stays.id)
    assert holding(tmp_path, CANARY) == []


def test_an_old_file_brought_back_after_a_redaction_is_kept_without_the_text(tmp_path):
    path = foreign(tmp_path / "vault.jsonl", CANARY)
    MemoryVault(path).close()
    with MemoryVault(path) as vault:
        by_the_account(path, "aaaaaaaaaaaa")
        vault.add_memory("written since", "shared", "x")
        with path.open("a") as file:
            old = {"id": "aaaaaaaaaaaa", "text": f"{CANARY} with a note", "version": 2}
            file.write(f"{json.dumps(old)}\nnobody's third line\n{json.dumps({'text': CANARY})}\n")
    with MemoryVault(path) as vault:
        assert "unreadable" in {problem.check for problem in vault.problems}
    assert holding(tmp_path, CANARY) == []
    assert "nobody's third line" in path.with_name("vault.jsonl.imported-2").read_text()


def test_a_vault_that_is_open_elsewhere_never_writes_the_text_again(tmp_path):
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        added = vault.add_memory(CANARY, "shared", "x")
        by_the_account(path, added.id)
        vault.add_memory("plays the guitar", "shared", "x")
        assert vault.compact()["lines_after"] == 1
    assert holding(tmp_path, CANARY) == []


def test_redactions_beside_a_busy_vault_lose_none_of_its_lines_and_leave_none_of_theirs(tmp_path):
    path = tmp_path / "vault.jsonl"
    songs = [f"{CANARY} number {word}" for word in ("alpha", "bravo", "charlie", "delta")]
    with MemoryVault(path, similarity_threshold=1.0, token_overlap_threshold=1.0) as vault:
        doomed = [vault.add_memory(song, "shared", "x").id for song in songs]
        assert path.read_text().count(CANARY) == 4
        with ThreadPoolExecutor(1) as pool:
            items = [{"text": f"t{n}", "tier": "register", "topic_id": f"topic {n}"} for n in range(40)]
            writing = pool.submit(lambda: [vault.bulk_add([item])["stored"][0]["id"] for item in items])
            for id_ in doomed:
                by_the_account(path, id_)
            ids = writing.result()
        assert {m.id for m in vault.recall()} == set(ids)
    assert holding(tmp_path, CANARY) == []
    told = [json.loads(line) for line in path.read_text().splitlines()]
    assert [row["id"] for row in told if row["text"] != "[redacted]"] == ids


def test_lines_that_another_program_appended_since_are_not_lost(tmp_path):
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        added = vault.add_memory(CANARY, "shared", "x")
    with path.open("a") as file:
        file.write('{"id": "abcdefabcdef", "text": "appended by the old program", "scope": "orion"}\n')
    by_the_account(path, added.id)
    with path.open("a") as file:
        file.write('{"id": "fedcbafedcba", "text": "and once more"}\n')
    with MemoryVault(path) as vault:
        assert {m.id for m in vault.recall()} == {"abcdefabcdef", "fedcbafedcba"}


def test_the_temporary_file_of_a_killed_compaction_goes_too(tmp_path):
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        added = vault.add_memory(CANARY, "shared", "x")
    shutil.copy(path, path.with_name("vault.jsonl.compact.tmp"))
    stays = path.with_name("vault.jsonl.of.somebody.tmp")
    stays.write_text("not ours")
    by_the_account(path, added.id)
    assert holding(tmp_path, CANARY) == []
    assert stays.exists()


@pytest.mark.parametrize("text", [CANARY, THAI])
def test_a_line_that_a_killed_writer_tore_goes_too(tmp_path, text):
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        vault.add_memory("plays the guitar", "shared", "x")
        added = vault.add_memory(text, "shared", "x")
    whole = path.read_bytes()
    path.write_bytes(whole[:-8])
    assert "vault.jsonl" in holding(tmp_path, piece(text))
    by_the_account(path, added.id)
    assert holding(tmp_path, piece(text)) == []
    assert path.read_bytes() == whole[: whole.index(b"\n") + 1]


def test_a_file_that_is_gone_holds_nothing_up(tmp_path):
    path = foreign(tmp_path / "vault.jsonl", CANARY)
    MemoryVault(path).close()
    path.unlink()
    copy_of(path).unlink()
    by_the_account(path, "aaaaaaaaaaaa")
    assert holding(tmp_path, CANARY) == []
    MemoryVault(path).close()
    assert "plays the guitar" in path.read_text()


@pytest.mark.parametrize("which", ["vault.jsonl", "vault.jsonl.imported"])
def test_a_file_that_cannot_be_cleaned_is_named_and_the_redaction_waits_for_it(tmp_path, which, capfd):
    path = foreign(tmp_path / "vault.jsonl", CANARY)
    MemoryVault(path).close()
    elsewhere = tmp_path / "elsewhere"
    (tmp_path / which).rename(elsewhere)
    (tmp_path / which).symlink_to(elsewhere)
    where = ("--root", str(folder_of(path)), "--account", "vault")
    assert cli.run((*where, "redact", "aaaaaaaaaaaa", "--reason", "asked to", "--yes")) == 0
    assert f"{which} is no file of its own" in capfd.readouterr().out.replace("\n", "")
    with octavo.open(folder_of(path), "vault", actor="human:you") as account:
        assert account.get("aaaaaaaaaaaa") is None
        problems = " ".join(account.check().problems)
        assert "the redaction of aaaaaaaaaaaa is not swept yet" in problems
        assert which in problems
    (tmp_path / which).unlink()
    elsewhere.rename(tmp_path / which)
    with octavo.open(folder_of(path), "vault", actor="human:you") as account:
        assert account.check().problems == ()
    assert holding(tmp_path, piece(CANARY)) == []


def test_a_redaction_waits_for_who_holds_the_files_and_is_finished_later(tmp_path):
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        added = vault.add_memory(CANARY, "shared", "x")
    folder = folder_of(path) / "vault"
    (folder / "policy.toml").write_text("[commit]\nwait_seconds = 0.01\n")
    with (
        octavo.open(folder_of(path), "vault", read_only=True).attached.locked(),
        octavo.open(folder_of(path), "vault", actor="human:a") as a,
    ):
        (why,) = a.redact(added.id, reason="asked to").unreached
        assert "held by others" in why
        assert f"{path} still holds what was erased" in a.check().problems
        assert a.upkeep().swept == 0
    with octavo.open(folder_of(path), "vault", actor="human:a") as account:
        assert account.check().problems == ()
    assert holding(tmp_path, CANARY) == []


def test_a_redaction_stopped_at_any_call_is_finished_on_reopening(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    with MemoryVault(foreign(source / "vault.jsonl", f"{CANARY} {THAI}")) as vault:
        vault.add_memory("plays the piano too", "orion", "x")
    counted = StoppingDisk(None)
    _redact(source, tmp_path / "count", counted)
    assert "replace" in counted.calls
    for stop_at in range(1, len(counted.calls) + 1):
        target = tmp_path / f"run{stop_at}"
        with pytest.raises(Stopped):
            _redact(source, target, StoppingDisk(stop_at))
        path = target / "vault.jsonl"
        with octavo.open(folder_of(path), "vault", actor="human:you") as again:
            if again.get("aaaaaaaaaaaa") is not None:
                again.redact("aaaaaaaaaaaa", reason="asked to")
            assert again.check().problems == (), stop_at
        assert holding(target, piece(CANARY)) == holding(target, piece(THAI)) == [], stop_at
        assert copy_of(path).read_text().split("\n")[0] == NEIGHBOUR
        shutil.rmtree(target)


def _redact(source: Path, target: Path, disk: StoppingDisk) -> None:
    shutil.copytree(source, target)
    folder = target / "vault.jsonl.octavo" / "vault"
    account = open_on(LocalStore(folder, disk=disk), folder / "index", account="vault", actor="human:you")
    try:
        account.redact("aaaaaaaaaaaa", reason="asked to")
    finally:
        account.close()


@pytest.mark.slow
def test_a_redaction_killed_for_real_is_finished_when_the_vault_is_opened(tmp_path):
    script = (
        "import octavo, os, sys, threading\n"
        "a = octavo.open(sys.argv[1], 'vault', actor='human:you')\n"
        "threading.Timer(float(sys.argv[2]), lambda: os.kill(os.getpid(), 9)).start()\n"
        "a.redact('aaaaaaaaaaaa', reason='asked to')\n"
    )
    codes = set()
    for round_ in range(8):
        folder = tmp_path / f"round{round_}"
        folder.mkdir()
        path = foreign(folder / "vault.jsonl", CANARY)
        MemoryVault(path).close()
        arguments = [sys.executable, "-c", script, str(folder_of(path)), str(0.003 * round_)]
        codes.add(subprocess.run(arguments, check=False).returncode)
        with MemoryVault(path) as vault:
            if vault.get("aaaaaaaaaaaa") is None:
                assert holding(folder, piece(CANARY)) == []
                assert vault.account.check().problems == ()
    assert codes <= {0, -signal.SIGKILL}


def test_copies_are_found_again_when_the_list_was_lost(tmp_path):
    path = foreign(tmp_path / "vault.jsonl", CANARY)
    MemoryVault(path).close()
    (folder_of(path) / "vault" / "attached.json").unlink()
    with MemoryVault(path) as vault:
        vault.account.redact("aaaaaaaaaaaa", reason="asked to")
    assert holding(tmp_path, piece(CANARY)) == []


def test_a_copy_that_was_renamed_with_its_vault_is_cleaned_when_the_vault_is_opened(tmp_path):
    path = foreign(tmp_path / "vault.jsonl", CANARY)
    MemoryVault(path).close()
    moved = tmp_path / "other.jsonl"
    for suffix in ("", ".imported", ".octavo"):
        (tmp_path / f"vault.jsonl{suffix}").rename(tmp_path / f"other.jsonl{suffix}")
    by_the_account(moved, "aaaaaaaaaaaa")
    assert holding(tmp_path, CANARY) == ["other.jsonl", "other.jsonl.imported"]
    with MemoryVault(moved) as vault:
        assert vault.account.check().problems == ()
    texts = [json.loads(line).get("text", "") for line in moved.read_text().splitlines()]
    assert [text for text in texts if CANARY in text] == []
    assert '"aaaaaaaaaaaa"' not in copy_of(moved).read_text()


def test_a_vault_moved_with_its_files_stays_within_reach(tmp_path):
    (tmp_path / "here").mkdir()
    MemoryVault(foreign(tmp_path / "here" / "vault.jsonl", CANARY)).close()
    (tmp_path / "here").rename(tmp_path / "there")
    by_the_account(tmp_path / "there" / "vault.jsonl", "aaaaaaaaaaaa")
    assert holding(tmp_path, piece(CANARY)) == []


@pytest.mark.parametrize("text", [CANARY, THAI])
@pytest.mark.parametrize(
    "page", ["- {text} ^{id}", "{text}", '  "text": "{text}",', '{{"id": "{id}", "text": "x"}}']
)
def test_a_tree_that_holds_the_text_holds_the_redaction_up_until_its_page_is_clean(tmp_path, text, page):
    with octavo.open(tmp_path / "data", "nok", actor="human:nok") as account:
        known = account.remember(text, kind="fact").memory
        tree = tmp_path / "pages"
        (tree / "notes").mkdir(parents=True)
        account.attached.attach(tree, "tree")
        (tree / "notes" / "other.md").write_text("- plays the guitar ^abc\n")
        held = tree / "notes" / "day.md"
        held.write_text(f"# A day\n\n{page.format(text=text, id=known.id)}\n")
        (why,) = account.redact(known.id, reason="asked to").unreached
        assert why == f"{held} still holds what was erased"
        assert why in account.check().problems
        held.write_text("# A day\n")
        assert account.upkeep().swept > 0
        assert account.check().problems == ()
    assert holding(tmp_path, text) == []


def test_what_an_open_document_makes_of_the_ledger_is_erased_before_the_tree_is_looked_into(tmp_path):
    class Page:
        """A page of one fact, rendered anew when a redaction asks for it."""

        name = "pages/day.md"

        def __init__(self, path):
            self.path = path

        def watermark(self):
            return Watermark(version=0, header="")

        def follow(self, progress=None):
            self.path.write_text("followed\n")

        def erase(self, erasure):
            assert erasure.is_in(self.path.read_bytes())
            self.path.write_text("[redacted]\n")
            return []

        def verify(self, *, stamp=False):
            return []

        def clear(self):
            self.path.unlink()

    page = Page(tmp_path / "pages" / "day.md")
    page.path.parent.mkdir()
    with octavo.open(tmp_path / "data", "nok", actor="human:nok") as account:
        known = account.remember(CANARY, kind="fact").memory
        account.attached.attach(page.path.parent, "tree")
        account.attached.join(page)
        page.path.write_text(f"- {CANARY} ^{known.id}\n")
        assert account.redact(known.id, reason="asked to").unreached == ()
        account.upkeep()
    assert page.path.read_text() == "followed\n"


class TestWhatCanBeAttached:
    @pytest.fixture
    def files(self, tmp_path: Path) -> Iterator[Attachments]:
        with octavo.open(tmp_path / "root", "account") as account:
            yield account.attached

    def test_a_file_beside_the_account_or_one_above(self, files, tmp_path):
        for place in (tmp_path / "root" / "x.jsonl", tmp_path / "x.jsonl"):
            assert files.place_of(files.attach(place, "view")) == place
        assert [file.path for file in files.listed()] == ["../x.jsonl", "../../x.jsonl"]

    @pytest.mark.parametrize(
        "path",
        [
            "x",
            "ledger/1",
            "../../../x",
            "../a/x",
            "/etc/passwd",
            "..",
            "../..",
            "../",
            "../../a/../x",
            "../x\0",
        ],
    )
    def test_nothing_else(self, files, path):
        with pytest.raises(BadInput):
            files.read(Attached(path=path, kind="view"))
        with pytest.raises(BadInput):
            files.replace(Attached(path=path, kind="view"), b"")

    def test_a_tree_anywhere(self, files, tmp_path):
        near, far = tmp_path / "mirror", tmp_path / "home" / "somewhere" / "mirror"
        assert files.attach(near, "tree").path == "../../mirror"
        assert files.attach(far, "tree").path == far.as_posix()
        assert [files.place_of(tree) for tree in files.listed()] == [near, far]
        with pytest.raises(BadInput):
            files.attach(far, "view")

    def test_a_list_that_is_damaged_or_newer_is_an_error_not_an_empty_one(self, files, tmp_path):
        listed = tmp_path / "root" / "account" / "attached.json"
        listed.write_text("{")
        with pytest.raises(Damaged):
            files.listed()
        listed.write_text('{"format": 1, "files": [{"path": "../../../x", "kind": "view"}]}')
        with pytest.raises(Damaged, match="beside the account"):
            files.listed()
        listed.write_text('{"format": 1, "files": [], "colour": "blue"}')
        with pytest.raises(NewerFormat):
            files.listed()
        listed.write_text('{"format": 2, "files": []}')
        with pytest.raises(NewerFormat):
            files.listed()
