"""Redaction: the text is in no file any more, its neighbour is, and the chain still holds."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import pytest

import octavo
from canaries import holding
from octavo.engine import copies
from octavo.errors import BadInput, NotFound
from octavo.storage.stores.disk import Disk
from octavo.storage.stores.local import LocalStore
from octavo.testing import Stopped, StoppingDisk, open_on

CANARY = "zebraquux canary song"
THAI = "นกขมิ้นลับเฉพาะ"


@pytest.mark.parametrize("text", [CANARY, THAI])
def test_a_redacted_text_is_in_no_file_and_its_neighbour_stays(root, account, text):
    memory = account.remember(f"sings the {text}", topic="song", kind="register").memory
    account.remember(f"hums the {text}", topic="song", kind="register")
    account.remember(f"sings the {text}, again", tags=[text])
    neighbour = account.remember("plays the guitar well").memory
    repeat = account.memories(kind="fact")[0]
    assert len(holding(root, text)) >= 3
    first = account.redact(memory.id, reason="asked to")
    account.redact(repeat.id, reason="asked to")
    assert holding(root, text) == []
    assert (first.versions[0], account.check().problems) == (1, ())
    assert [m.id for m in account.memories()] == [neighbour.id]
    assert {r.memory.text for r in account.history(memory.id)} == {"[redacted]"}
    assert account.at(1).get(memory.id).text == "[redacted]"


@pytest.mark.parametrize("text", [CANARY, THAI])
def test_neither_rows_nor_segments_of_the_index_find_it_and_they_find_its_neighbour(root, account, text):
    memory = account.remember(f"sings the {text}").memory
    neighbour = account.remember("plays the guitar well").memory
    with account.sandbox() as sandbox:
        sandbox.turn("user", f"I heard the {text}")
        sandbox.turn("assistant", "plays the guitar well")
    account.catch_up()
    kept = [name for name in holding(root, text) if name.endswith(("terms.bin", "meta.json", ".db", "-wal"))]
    assert kept == ["terms.bin", "meta.json", "state.db", "state.db-wal"]
    (episode,) = account.memories(kind="episode")
    for id_ in (memory.id, episode.id):
        account.redact(id_, reason="asked to")
    assert holding(root, text) == []
    account.reindex()
    assert holding(root, text) == []
    assert {"terms.bin", "meta.json"} <= set(holding(root, "plays the guitar well"))
    assert [hit.memory.id for hit in account.recall("guitar")] == [neighbour.id]


def test_an_episodes_turns_are_erased_and_masked_when_they_return(root, account):
    with account.sandbox() as sandbox:
        sandbox.turn("user", CANARY)
        sandbox.turn("assistant", "I see.")
    (episode,) = account.memories(kind="episode")
    account.redact(episode.id, reason="asked to")
    assert holding(root, CANARY) == []
    with account.sandbox() as sandbox:
        sandbox.turn("user", CANARY.upper())
        sandbox.turn("assistant", "something new")
    (again,) = account.memories(kind="episode")
    assert [t.text for t in again.turns] == ["[redacted]", "something new"]


def test_what_was_erased_cannot_return_by_any_way_in(root, account, opened, tmp_path):
    memory = account.remember(CANARY).memory
    control = account.remember("plays the guitar well").memory
    account.backup(tmp_path / "old")
    account.redact(memory.id, reason="asked to")
    assert account.remember(CANARY).check == "redaction"
    assert account.remember(CANARY.upper() + " !").check == "redaction"
    assert account.remember(CANARY, supersedes=control.id).check == "redaction"
    assert account.revise(control.id, text=CANARY).check == "redaction"
    with account.sandbox() as sandbox:
        sandbox.remember(CANARY)
    account.restore(2)
    account.repair()
    account.close()
    again = opened()
    assert [m.id for m in again.memories(kind="fact")] == [control.id]
    assert holding(root, CANARY) == []


def test_merged_wordings_refusals_and_proposals_lose_the_text_too(root, account, agent):
    memory = agent.remember(f"{CANARY} is loved", confidence=0.8).memory
    agent.remember(f"{CANARY} is LOVED!", confidence=0.95)
    agent.remember(f"{CANARY} is loved", kind="canon")
    with agent.sandbox() as sandbox:
        sandbox.turn("user", "hello")
        sandbox.remember(f"{CANARY} is loved", confidence=0.2)
    assert agent.remember(f"{CANARY} is loved", confidence=0.1).check == "confidence"
    account.redact(memory.id, reason="asked to")
    assert holding(root, CANARY) == []
    assert account.proposals() == []
    assert account.check()


def test_an_open_sandbox_is_swept_too_and_one_held_by_its_owner_is_named(root, account, opened):
    memory = account.remember(CANARY).memory
    idle, held = account.sandbox(), account.sandbox()
    for sandbox in (idle, held):
        sandbox.turn("user", CANARY)
    idle.close()
    done = account.redact(memory.id, reason="asked to")
    assert done.waiting == (held.id,)
    assert any("not swept" in problem for problem in account.check().problems)
    held.consolidate()
    opened()  # opening finishes what waited
    assert holding(root, CANARY) == []
    assert account.check()
    assert account.resume(idle.id).buffer.entries[0].turn.text == "[redacted]"


def test_redacting_says_where_else_the_text_stands_and_what_does_not_exist(account):
    memory = account.remember(CANARY).memory
    other = account.remember(CANARY, scope="orion").memory
    assert account.redact(memory.id, reason="asked to").also_in == (other.id,)
    assert account.get(other.id).text == CANARY
    with pytest.raises(NotFound):
        account.redact("nothere", reason="asked to")
    with pytest.raises(octavo.OctavoError, match="reason"):
        account.redact(other.id, reason="")


@pytest.mark.parametrize("text", [CANARY, THAI])
def test_turns_that_say_just_the_same_go_with_a_redacted_fact_and_their_neighbours_stay(root, account, text):
    with account.sandbox() as sandbox:
        sandbox.turn("user", text)
        sandbox.turn("assistant", "That is a lovely song.")
    fact = account.remember(text).memory
    account.catch_up()
    (episode,) = account.memories(kind="episode")
    done = account.redact(fact.id, reason="asked to")
    assert (done.turns, done.also_in) == ((episode.id,), ())
    assert holding(root, text) == []
    assert [t.text for t in account.get(episode.id).turns] == ["[redacted]", "That is a lovely song."]
    assert [hit.memory.id for hit in account.recall("lovely song")] == [episode.id]
    assert text not in account.brief("song").text
    assert account.check().problems == ()
    account.repair()
    assert "lovely song" in account.get(episode.id).text


@pytest.mark.parametrize("text", [CANARY, THAI])
def test_what_only_contains_it_is_named_and_erased_everywhere_on_request(root, account, text):
    with account.sandbox() as sandbox:
        sandbox.turn("user", f"Yesterday I heard the {text} again")
        sandbox.turn("assistant", "Tell me more.")
    fact = account.remember(text).memory
    other = account.remember(f"people hum the {text} at night").memory
    sibling = account.remember("plays the guitar well").memory
    (episode,) = account.memories(kind="episode")
    named = account.redact(fact.id, reason="asked to")
    assert named.also_in == tuple(sorted((episode.id, other.id)))
    assert account.get(other.id).text.endswith("at night")
    again = account.remember(f"a new {text}").memory
    done = account.redact(other.id, reason="asked to", everywhere=True)
    assert done.also_in == ()
    account.redact(again.id, reason="asked to")
    account.redact(episode.id, reason="asked to")
    assert holding(root, text) == []
    assert account.get(sibling.id).text == "plays the guitar well"


def test_everywhere_leaves_what_stands_beside_the_text(root, account):
    with account.sandbox() as sandbox:
        sandbox.turn("user", f"Yesterday I heard the {CANARY} again")
        sandbox.turn("assistant", "Tell me more.")
    fact = account.remember(CANARY).memory
    account.remember(f"people hum the {CANARY} at night", scope="orion")
    (episode,) = account.memories(kind="episode")
    account.redact(fact.id, reason="asked to", everywhere=True)
    assert holding(root, CANARY) == []
    assert [t.text for t in account.get(episode.id).turns] == ["[redacted]", "Tell me more."]
    assert account.check().problems == ()


def test_a_redaction_in_one_scope_tells_another_nothing(account, opened):
    secret = account.remember(CANARY, scope="orion").memory
    account.remember(THAI, scope="shared")
    account.redact(secret.id, reason="asked to")
    elysia, orion = opened("agent:e", scope="elysia"), opened("agent:o", scope="orion")
    assert orion.remember(CANARY).check == "redaction"
    assert elysia.remember(CANARY).outcome == "admitted"
    (shared,) = account.memories(scope="shared", kind="fact")
    account.redact(shared.id, reason="asked to")
    assert elysia.remember(THAI).check == "redaction"


def test_a_redaction_stopped_at_any_call_is_finished_on_reopening(tmp_path):
    with octavo.open(tmp_path / "data", actor="human:you") as account:
        memory = account.remember(CANARY).memory
        account.revise(memory.id, text=f"{CANARY} revised")
        account.remember("plays the guitar well")
        sandbox = account.sandbox()
        sandbox.turn("user", CANARY)
        sandbox.close()
    counted = StoppingDisk(None)
    _redact(tmp_path / "data", tmp_path / "count", counted, memory.id)
    for stop_at in range(1, len(counted.calls) + 1):
        target = tmp_path / f"run{stop_at}"
        with pytest.raises(Stopped):
            _redact(tmp_path / "data", target, StoppingDisk(stop_at), memory.id)
        with octavo.open(target, actor="human:you") as again:
            if again.get(memory.id) is not None:
                again.redact(memory.id, reason="asked to")
            assert holding(target, CANARY) == [], stop_at
            assert again.check().problems == ()
            assert [m.text for m in again.memories()] == ["plays the guitar well"]
        shutil.rmtree(target)


def test_what_others_said_of_it_is_erased_too_wherever_the_sweep_was_stopped(tmp_path):
    with octavo.open(tmp_path / "data", actor="human:you") as account:
        memory = account.remember(f"{CANARY} is loved").memory
    with octavo.open(tmp_path / "data", actor="agent:bot") as agent:
        agent.remember(f"{CANARY} is loved", kind="canon")  # waits as a proposal
        with agent.sandbox() as sandbox:
            sandbox.turn("user", "hello")
            sandbox.remember(f"{CANARY} is loved", confidence=0.2)  # is refused
    counted = StoppingDisk(None)
    _redact(tmp_path / "data", tmp_path / "count", counted, memory.id)
    for stop_at in range(1, len(counted.calls) + 1):
        target = tmp_path / f"run{stop_at}"
        with pytest.raises(Stopped):
            _redact(tmp_path / "data", target, StoppingDisk(stop_at), memory.id)
        with octavo.open(target, actor="human:you") as again:
            if again.get(memory.id) is not None:
                again.redact(memory.id, reason="asked to")
            assert again.check().problems == ()
        assert holding(target, CANARY) == [], stop_at
        shutil.rmtree(target)


def _redact(source: Path, target: Path, disk: StoppingDisk, id_: str) -> None:
    shutil.copytree(source, target)
    account = open_on(
        LocalStore(target / "default", disk=disk), target / "default" / "index", actor="human:you"
    )
    try:
        account.redact(id_, reason="asked to")
    finally:
        account.close()


def test_a_redaction_killed_for_real_is_finished_on_reopening(tmp_path):
    script = (
        "import octavo, os, sys, threading\n"
        "a = octavo.open(sys.argv[1], actor='human:you')\n"
        "threading.Timer(float(sys.argv[3]), lambda: os.kill(os.getpid(), 9)).start()\n"
        "a.redact(sys.argv[2], reason='asked to')\n"
    )
    for round_ in range(8):
        root = tmp_path / f"round{round_}"
        with octavo.open(root, actor="human:you") as account:
            memory = account.remember(CANARY).memory
            for n in range(5):
                account.revise(memory.id, text=f"{CANARY} {n}")
        subprocess.run([sys.executable, "-c", script, root, memory.id, str(0.004 * round_)], check=False)
        with octavo.open(root, actor="human:you") as again:
            if again.get(memory.id) is None:
                assert holding(root, CANARY) == []
                assert again.check().problems == ()
            else:
                assert again.get(memory.id).text == f"{CANARY} 4"


@pytest.mark.parametrize("call", ["link", "replace"])
def test_a_live_writer_whose_temporary_file_a_sweep_took_writes_it_again(tmp_path, call):
    class Swept(Disk):
        taken = 0

    def taking(disk, source, target):
        if disk.taken < 2:
            disk.taken += 1
            assert LocalStore(tmp_path).clear_leftovers() == 1
        return getattr(Disk, call)(disk, source, target)

    setattr(Swept, call, taking)
    disk = Swept()
    store = LocalStore(tmp_path, disk=disk)
    if call == "link":
        assert store.create("ledger/1", b"one")
    else:
        store.replace("ledger/1", b"one")
    assert (store.read("ledger/1"), disk.taken, store.leftovers()) == (b"one", 2, [])


SAFE = "the safe opens with ส้มโอ 7734"


def copies_made(account, folder) -> list[Path]:
    """An export of each format and a backup, somebody else's file among them."""
    places = [folder / name for name in ("msp", "consciousness", "vault", "synthians", "skills")]
    for place in places:
        account.export(place, format=place.name)
    account.backup(folder / "backup")
    (folder / "msp" / "mine.txt").write_text("my own page: the code is in the drawer\n")
    return [*places, folder / "backup"]


def test_exports_and_backups_follow_a_redaction(account, tmp_path):
    account.backup(tmp_path / "before")
    with account.sandbox() as sandbox:
        sandbox.turn("user", SAFE)
        sandbox.turn("assistant", "noted, the garden gate is green")
    fact = account.remember(SAFE, kind="register", topic="safe/kitchen", tags=["ส้มโอ"]).memory
    account.remember(f"# Opening\n\n{SAFE}", kind="skill", topic="open-the-safe")
    account.remember("the garden gate is green", kind="register", topic="gate")
    made = copies_made(account, tmp_path)
    assert len([place for place in made if _says(place, "safe opens")]) >= 5
    older = [path.read_bytes() for path in sorted((tmp_path / "before").rglob("*")) if path.is_file()]
    done = account.redact(fact.id, reason="asked to", everywhere=True)
    assert (done.copies, done.unreached) == ((), ())
    assert {Path(place).name for place in done.cleaned} >= {
        *("msp", "vault", "synthians"),
        *("backup", "skills", "consciousness"),
    }
    assert [place for place in made if _says(place, "safe opens") or _says(place, "safe/kitchen")] == []
    assert [place.name for place in made if _says(place, "garden gate")] != []
    assert not (tmp_path / "backup" / "+user01" / "index").exists()
    now = [path.read_bytes() for path in sorted((tmp_path / "before").rglob("*")) if path.is_file()]
    assert now == older
    with octavo.open(tmp_path / "backup", "User01", actor="human:you") as copy:
        assert copy.check()
        assert SAFE not in {m.text for m in copy.memories()}
        assert any(m.text == "the garden gate is green" for m in copy.memories())
        assert not copy.remember(SAFE)
    again = account.remember("the garden gate is locked at noon").memory
    account.export(tmp_path / "msp")
    assert account.redact(again.id, reason="asked to").copies == ()
    assert not _says(tmp_path / "msp", "locked at noon")


def test_a_copy_that_somebody_changed_is_named_and_left_alone(account, opened, tmp_path):
    fact = account.remember(SAFE, kind="register", topic="safe").memory
    made = copies_made(account, tmp_path)
    vault = tmp_path / "vault"
    vault.write_text(vault.read_text() + '{"text": "mine"}\n')
    mine = tmp_path / "msp" / "mine.txt"
    mine.write_text(f"I wrote down that {SAFE}.\n")
    with octavo.open(tmp_path / "backup", "User01", actor="human:you") as copy:
        copy.remember("the backup goes its own way")
    shutil.rmtree(tmp_path / "synthians")
    before = vault.read_bytes()
    done = account.redact(fact.id, reason="asked to")
    left = {place.partition(": ")[0]: place for place in done.copies}
    assert set(left) == {str(vault), str(tmp_path / "msp"), str(tmp_path / "backup")}
    assert all("was changed since" in told for told in left.values())
    assert "mine.txt" in left[str(tmp_path / "msp")]
    assert (vault.read_bytes(), SAFE in mine.read_text()) == (before, True)
    assert [path.name for path in (tmp_path / "msp").rglob("*") if _says(path, "safe opens")] == [
        "msp",
        "mine.txt",
    ][1:]
    assert account.check()  # what is its owner's holds nothing up
    bound = opened("human:eve", scope="elysia")
    hers = bound.remember("elysia hides the lantern in the well").memory
    account.backup(tmp_path / "later")
    done = bound.redact(hers.id, reason="asked to")
    assert (done.copies, done.cleaned) == ((), ())
    assert not _says(tmp_path / "later", "lantern")
    assert len(made) == 6


@pytest.mark.parametrize("call", ["replace", "remove", "link", "sync_folder"])
def test_a_redaction_stopped_within_the_copies_is_finished_when_opened(call, root, tmp_path, monkeypatch):
    whole = getattr(Disk, call)
    for stop in range(0, 40, 3):
        home, out = tmp_path / f"a{stop}", tmp_path / f"out{stop}"
        out.mkdir()
        with octavo.open(home, "User01", actor="human:you", embedder=False) as account:
            fact = account.remember(SAFE, kind="register", topic="safe").memory
            made = copies_made(account, out)
            count = 0

            def stopping(disk, *args, stop=stop):
                nonlocal count
                if threading.current_thread() is not threading.main_thread():
                    return whole(disk, *args)  # the worker indexes meanwhile, as often as it gets to it
                count += 1
                if count > stop:
                    raise Stopped
                return whole(disk, *args)

            monkeypatch.setattr(Disk, call, stopping)
            with suppress(Stopped):
                account.redact(fact.id, reason="asked to")
            monkeypatch.setattr(Disk, call, whole)
        with octavo.open(home, "User01", actor="human:you", embedder=False) as account:
            if "[redacted]" in {m.text for _, m in account._spine.state.history(fact.id)}:
                assert [place.name for place in made if _says(place, "safe opens")] == [], stop
            assert account.check()
        if count <= stop:
            break


def test_a_moved_account_still_knows_its_copies(root, tmp_path, account):
    fact = account.remember(SAFE).memory
    account.export(tmp_path / "tree")
    account.close()
    copies.move(root, "User01", tmp_path / "new")
    with octavo.open(tmp_path / "new", "User01", actor="human:you", embedder=False) as moved:
        assert moved.redact(fact.id, reason="asked to").cleaned == (str(tmp_path / "tree"),)
    assert not _says(tmp_path / "tree", "safe opens")


def _says(path, word):
    files = path.rglob("*") if path.is_dir() else [path]
    return any(word in file.read_text(errors="replace") for file in files if file.is_file())


def test_a_damaged_list_of_copies_is_named_and_holds_nothing_up(account, root, tmp_path):
    fact = account.remember("the safe opens with ส้มโอ 7734").memory
    account.export(tmp_path / "tree")
    path = root / "+user01" / "copies.jsonl"
    path.write_bytes(b"no json\n" + path.read_bytes())
    assert any("copies.jsonl, line 1" in problem for problem in account.check().problems)
    assert account.redact(fact.id, reason="asked to").cleaned == (str(tmp_path / "tree"),)
    assert account.remember("goes on").outcome == "admitted"


def test_a_backup_holds_no_list_of_the_first_ones_copies(account, tmp_path):
    account.remember("the garden gate is green")
    account.export(tmp_path / "tree")
    account.backup(tmp_path / "copy")
    assert not (tmp_path / "copy" / "+user01" / "copies.jsonl").exists()


@pytest.mark.parametrize("below", ["..", "", "export", "ledger/../x"])
def test_an_export_among_or_around_the_accounts_files_is_refused(account, tmp_path, below):
    kept = account.remember("ชื่อจริงคือ สมหญิง ใจดี").memory
    with pytest.raises(BadInput, match="holds files of the account"):
        account.export(account._spine.store.folder / below)
    account.export(tmp_path / "beside")
    assert not account.redact(kept.id, reason="asked to").copies
