"""Damaged, missing, swapped, newer: each a typed error that names the place, nothing overwritten or empty."""

from __future__ import annotations

import errno
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

import octavo
from octavo.errors import (
    BadPolicy,
    BufferDamaged,
    Damaged,
    IndexDamaged,
    LedgerDamaged,
    LedgerTruncated,
    NewerFormat,
    OctavoError,
    StoreFull,
    Unavailable,
)
from octavo.storage import codec
from octavo.storage.ledger import key_of
from octavo.storage.stores.local import LocalStore
from octavo.testing import FailingDisk, open_on

VERSIONS = 5


@pytest.fixture(scope="module")
def original(tmp_path_factory) -> Path:
    """An account of five versions and a sandbox with three turns."""
    root = tmp_path_factory.mktemp("original")
    with octavo.open(root, actor="human:ann") as account:
        with account.sandbox("เช้า") as sandbox:
            sandbox.turn("user", "I moved to Chiang Mai last week.")
            sandbox.turn("assistant", "ยินดีด้วยค่ะ")
        for place in ("Bangkok", "เชียงใหม่", "Pai"):
            account.remember(f"lives in {place}", kind="register", topic="home")
        account.remember("มะลิชอบชาเขียว")
        left = account.sandbox("บ่าย")
        for text in ("หนึ่ง", "two", "สาม"):
            left.turn("user", text)
        left.close()
    return root


@pytest.fixture
def root(original, tmp_path) -> Path:
    return Path(shutil.copytree(original, tmp_path / "root"))


def version_file(root: Path, version: int) -> Path:
    return root / "default" / key_of(version)


def buffer_file(root: Path) -> Path:
    return next((root / "default" / "buffers").glob("*.jsonl"))


def without_index(root: Path) -> Path:
    shutil.rmtree(root / "default" / "index")
    return root


def truth_of(root: Path) -> dict[str, bytes]:
    """Every byte of the account but what is derived and the empty lock."""
    folder = root / "default"
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and "index" not in path.parts and path.name != "lock"
    }


def problems_of(root: Path) -> tuple[str, ...]:
    with octavo.open(root, actor="human:ann") as account:
        return account.check().problems


def must_be_told(root: Path, kind: type[OctavoError], *places: str) -> None:
    """Opening without the derived state says what is wrong and where; nothing is touched by trying."""
    before = truth_of(root)
    for read_only in (False, True):
        with pytest.raises(kind) as told:
            octavo.open(root, actor="human:ann", read_only=read_only).close()
        for place in places:
            assert place in str(told.value)
    assert truth_of(root) == before


def test_a_version_file_with_any_byte_changed_is_damage_and_is_named(root):
    path = version_file(root, 3)
    good = path.read_bytes()
    with octavo.open(root) as account:
        ledger = account._spine.ledger
        for position in range(len(good)):
            for bit in (0, 5):
                bad = bytearray(good)
                bad[position] ^= 1 << bit
                path.write_bytes(bad)
                with pytest.raises(Damaged) as told:
                    list(ledger.read(3).changes())
                assert f"{key_of(3)}, line " in str(told.value)


@pytest.mark.parametrize("version", [1, 3, VERSIONS])
@pytest.mark.parametrize("kept", [0, 1, 0.3, 0.9, -1])
def test_a_truncated_version_file_is_damage_and_is_named(version, kept, root):
    path = version_file(root, version)
    good = path.read_bytes()
    path.write_bytes(good[: int(len(good) * kept)] if isinstance(kept, float) else good[:kept])
    if version < VERSIONS:
        assert any(key_of(version) in problem for problem in problems_of(root))
    must_be_told(without_index(root), LedgerDamaged, f"{key_of(version)}, line")


@pytest.mark.parametrize("version", [1, 3])
def test_a_missing_version_file_is_damage_and_is_named(version, root):
    version_file(root, version).unlink()
    assert f"{key_of(version)} is missing" in problems_of(root)
    must_be_told(without_index(root), LedgerDamaged, f"{key_of(version)} is missing")


def test_a_missing_last_version_is_a_truncated_ledger_until_a_person_accepts_the_loss(root):
    version_file(root, VERSIONS).unlink()
    must_be_told(root, LedgerTruncated, f"version {VERSIONS}", "--accept")
    with octavo.open(root, actor="human:ann", accept_loss=True) as account:
        assert account.version == VERSIONS - 1
        assert account.check()
    with octavo.open(root) as account:
        assert account.version == VERSIONS - 1


def test_repair_does_not_accept_a_loss_by_itself(root):
    with octavo.open(root, actor="human:ann") as account:
        version_file(root, VERSIONS).unlink()
        before = truth_of(root)
        assert any(f"the ledger ends at {VERSIONS - 1}" in p for p in account.check().problems)
        with pytest.raises(LedgerTruncated):
            account.repair()
        assert truth_of(root) == before
        assert account.repair(accept=True)
        assert account.version == VERSIONS - 1


def test_a_truncated_ledger_is_not_continued_by_a_handle_that_was_open(root):
    with octavo.open(root, actor="human:ann") as account:
        version_file(root, VERSIONS).unlink()
        before = truth_of(root)
        with pytest.raises(Damaged):
            account.remember("built on nothing")
        assert truth_of(root) == before


def test_swapped_version_files_are_damage(root):
    two, three = version_file(root, 2), version_file(root, 3)
    first, second = two.read_bytes(), three.read_bytes()
    two.write_bytes(second)
    three.write_bytes(first)
    problems = problems_of(root)
    assert f"{key_of(2)}, line 1: the file holds version 3" in problems
    assert f"{key_of(3)}, line 1: the file holds version 2" in problems
    must_be_told(without_index(root), LedgerDamaged, f"{key_of(2)}, line 1", "holds version 3")


def test_a_duplicated_version_file_is_damage(root):
    version_file(root, VERSIONS + 1).write_bytes(version_file(root, VERSIONS).read_bytes())
    must_be_told(root, LedgerDamaged, f"{key_of(VERSIONS + 1)}, line 1")
    must_be_told(without_index(root), LedgerDamaged, f"{key_of(VERSIONS + 1)}, line 1")


@pytest.mark.parametrize("order", [(0, 2, 1), (1, 0, 2), (0, 1, 1), (0, 1), (0, 1, 2, 2), (1, 2)])
def test_reordered_repeated_and_removed_lines_are_damage(order, root):
    with octavo.open(root, actor="human:ann") as account:
        account.remember_many([{"text": "cats purr"}, {"text": "สุนัขเห่าตอนกลางคืน"}])
    path = version_file(root, VERSIONS + 1)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[n] for n in order))
    must_be_told(without_index(root), LedgerDamaged, f"{key_of(VERSIONS + 1)}, line")


def test_a_version_of_another_history_is_damage(original, root, tmp_path):
    with octavo.open(tmp_path / "other", actor="human:ann") as other:
        for n in range(VERSIONS):
            other.remember(f"อีกประวัติหนึ่ง {n}", kind="register", topic="home")
    shutil.copy(version_file(tmp_path / "other", 3), version_file(root, 3))
    problems = problems_of(root)
    assert any(p.startswith(f"{key_of(3)}, line 1: it does not stand on version 2") for p in problems)
    must_be_told(without_index(root), LedgerDamaged, f"{key_of(3)}, line 1", "does not stand on version 2")


def test_a_stray_file_in_the_ledger_is_named(root):
    (root / "default" / "ledger" / "copy of 3.jsonl").write_text("x")
    assert "ledger/copy of 3.jsonl is no version of the ledger" in problems_of(root)


def rewritten(root: Path, version: int, *, header: dict | None = None, line: dict | None = None) -> None:
    """Write a version as a newer Octavo might, with all hashes right."""
    path = version_file(root, version)
    first, second = [codec.decode_line(raw) for raw in path.read_bytes().splitlines()]
    if line is not None:
        envelope = json.dumps(json.loads(bytes(second.envelope)) | line.get("envelope", {})).encode()
        tag = line.get("t", second.t)
        second = codec.Line(
            t=tag,
            hash="",
            envelope=codec.msgspec.Raw(envelope),
            salt=second.salt,
            body=second.body,
        )
        second.hash = second.expected_hash()
    fields = json.loads(bytes(first.envelope)) | {"root": codec.root_of(iter([second.hash]))} | (header or {})
    envelope = json.dumps(fields).encode()
    first = codec.Line(t="version", hash="", envelope=codec.msgspec.Raw(envelope))
    first.hash = first.expected_hash()
    path.write_bytes(codec.encode_line(first) + codec.encode_line(second))


@pytest.mark.parametrize(
    ("change", "line", "said"),
    [
        ({"header": {"format": 2}}, 1, "format 2"),
        ({"header": {"quantum": True}}, 1, "quantum"),
        ({"line": {"t": "hologram"}}, 2, "hologram"),
        ({"line": {"envelope": {"aura": "blue"}}}, 2, "aura"),
    ],
)
def test_a_version_of_a_newer_format_is_refused_and_never_half_read(change, line, said, root):
    rewritten(root, VERSIONS, **change)
    must_be_told(without_index(root), NewerFormat, f"{key_of(VERSIONS)}, line {line}", said, "upgrade")


def test_a_field_beside_the_known_ones_of_a_line_is_a_newer_format(root):
    path = version_file(root, VERSIONS)
    path.write_bytes(path.read_bytes().replace(b'{"t":"memory"', b'{"seal":1,"t":"memory"'))
    must_be_told(without_index(root), NewerFormat, f"{key_of(VERSIONS)}, line 2", "seal")


def test_a_damaged_line_of_a_buffer_is_named_and_the_account_goes_on(root):
    path = buffer_file(root)
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2] = lines[2].replace(b"two", b"six")
    path.write_bytes(b"".join(lines))
    before = truth_of(root)
    with octavo.open(root, actor="human:ann") as account:
        place = f"buffers/{path.name}, line 3"
        with pytest.raises(BufferDamaged, match=place):
            account.resume(path.stem)
        assert account.sandboxes() == []
        assert [p for p in account.check().problems if place in p]
        account.repair()
        assert truth_of(root) == before
        assert account.remember("the rest of the account goes on")


@pytest.mark.parametrize("order", [(0, 2, 1, 3), (0, 1, 1, 2, 3), (0, 1, 3), (1, 2, 3)])
def test_reordered_repeated_and_removed_lines_of_a_buffer_are_damage(order, root):
    path = buffer_file(root)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[n] for n in order))
    before = truth_of(root)
    with octavo.open(root) as account, pytest.raises(BufferDamaged, match=r"line \d: it is numbered"):
        account.resume(path.stem)
    assert truth_of(root) == before


def test_an_empty_buffer_file_is_damage(root):
    path = buffer_file(root)
    path.write_bytes(b"")
    with octavo.open(root) as account:
        with pytest.raises(BufferDamaged, match="line 1: the opening line is missing"):
            account.resume(path.stem)
        assert not account.check()


def test_a_torn_last_line_of_a_buffer_is_dropped_and_reported(root):
    path = buffer_file(root)
    path.write_bytes(path.read_bytes() + b'{"seq":4,"t":"tu')
    with octavo.open(root) as account:
        report = account.check()
        assert report
        assert any("torn last line of 16 bytes" in note for note in report.notes)
        sandbox = account.resume(path.stem)
        assert sandbox.buffer.torn == 16
        assert len(sandbox.buffer.entries) == 3
        sandbox.turn("assistant", "สี่")
        sandbox.consolidate()
        assert account.check()


def test_a_buffer_of_a_newer_format_is_refused_and_named(root):
    path = buffer_file(root)
    body = b'{"glow":1}'
    line = {"seq": 4, "t": "hologram", "crc": codec._crc(4, "hologram", body), "body": json.loads(body)}
    raw = json.dumps(line, separators=(",", ":")).encode()
    path.write_bytes(path.read_bytes() + raw + b"\n")
    with octavo.open(root) as account:
        with pytest.raises(NewerFormat, match=f"buffers/{path.name}, line 5: .*hologram"):
            account.resume(path.stem)
        assert [p for p in account.check().problems if "hologram" in p]


@pytest.mark.parametrize("position", range(0, 400, 7))
def test_a_damaged_account_file_never_opens_as_another_account(position, root):
    path = root / "default" / "account.json"
    good = path.read_bytes()
    if position >= len(good):
        position = -1 - position % len(good)
    path.write_bytes(good[:position] + bytes([good[position] ^ 0x80]) + good[position + 1 :])
    must_be_told(root, Damaged, "account.json")


@pytest.mark.parametrize("content", [b"", b"{}", b"null", b"{", b"\xff\xfe"])
def test_an_account_file_that_is_no_account_is_damage(content, root):
    (root / "default" / "account.json").write_bytes(content)
    must_be_told(root, Damaged, "account.json")


def test_an_account_key_that_is_no_key_is_damage(root):
    path = root / "default" / "account.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"key": "not hexadecimal"}))
    must_be_told(root, Damaged, "account.json")


def test_an_account_file_of_a_newer_format_is_refused(root):
    path = root / "default" / "account.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 2}))
    must_be_told(root, NewerFormat, "format 2")


def test_a_missing_account_file_beside_a_ledger_is_damage_and_no_new_account(root):
    (root / "default" / "account.json").unlink()
    before = truth_of(root)
    with pytest.raises(Damaged, match=r"account\.json"):
        octavo.open(root, actor="human:ann").close()
    assert truth_of(root) == before


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"[gate\n", "not TOML"),
        (b"\xff\xfe", "not TOML"),
        (b"[gate]\nno_such_key = 1\n", "gate.no_such_key"),
        (b"[kinds.fact]\ndecay = 'often'\n", "kinds.fact.decay"),
    ],
)
def test_a_damaged_policy_names_the_file_and_the_key(content, said, root):
    (root / "default" / "policy.toml").write_bytes(content)
    must_be_told(root, BadPolicy, "policy.toml", said)


@pytest.mark.parametrize("damage", ["cut", "noise", "empty", "flipped"])
def test_a_damaged_state_heals_when_the_account_is_opened(damage, root):
    with octavo.open(root) as account:
        wanted = account.memories()
    path = root / "default" / "index" / "state.db"
    good = path.read_bytes()
    spoilt = {
        "cut": good[: len(good) // 2],
        "noise": b"not a database at all, " * 500,
        "empty": b"",
        "flipped": good[:20] + bytes(b ^ 0xFF for b in good[20:8192]) + good[8192:],
    }
    path.write_bytes(spoilt[damage])
    with octavo.open(root, read_only=True) as account:
        assert account.memories() == wanted
    assert path.read_bytes() == spoilt[damage]
    with octavo.open(root) as account:
        assert account.memories() == wanted
        assert account.check()


def with_much_in_it(root: Path) -> list[octavo.Memory]:
    with octavo.open(root, actor="human:ann") as account:
        for n in range(50):
            account.remember(f"ข้อเท็จจริงที่ {n} {'ยาว' * 100}", kind="register", topic=f"t{n}")
        return account.memories()


def test_a_state_whose_pages_are_damaged_heals_by_opening_or_by_repair(root):
    wanted = with_much_in_it(root)
    path = root / "default" / "index" / "state.db"
    good = path.read_bytes()
    path.write_bytes(good[:8192] + b"\x5a" * (len(good) - 16384) + good[-8192:])
    with octavo.open(root, actor="human:ann") as account:
        assert account.repair()
        assert account.memories() == wanted
    with octavo.open(root) as account:
        assert account.check()
        assert account.memories() == wanted


@pytest.mark.parametrize("read_only", [False, True])
def test_a_word_changed_in_the_state_is_never_told(root, read_only):
    wanted = with_much_in_it(root)
    path = root / "default" / "index" / "state.db"
    good = path.read_bytes()
    assert "ข้อเท็จจริงที่ 7 ".encode() in good
    path.write_bytes(good.replace("ข้อเท็จจริงที่ 7 ".encode(), "ข้อเท็จจริงที่ 8 ".encode()))
    with octavo.open(root, actor="human:ann", read_only=read_only) as account:
        assert account.memories() == wanted
        assert bool(account.check()) is True


def test_a_check_names_a_state_that_was_changed_and_the_next_question_heals_it(root):
    wanted = with_much_in_it(root)
    path = root / "default" / "index" / "state.db"
    with octavo.open(root, actor="human:ann") as account:
        with path.open("r+b") as file:
            file.seek(path.stat().st_size // 2)
            file.write(b"#")
        account._spine.state._db.release_memory()
        assert any("state.db" in problem for problem in account.check().problems)
        assert account.memories() == wanted
        assert account.check()


def test_two_handles_that_meet_the_same_damage_share_the_state_that_is_made_anew(root):
    wanted = with_much_in_it(root)
    path = root / "default" / "index" / "state.db"
    with octavo.open(root, actor="human:ann") as first, octavo.open(root, actor="human:bob") as second:
        size = path.stat().st_size
        with path.open("r+b") as file:
            for place in range(size // 2, size, 4096):
                file.seek(place)
                file.write(b"#")
        for account in (first, second):
            account._spine.state._db.release_memory()
            assert account.memories() == wanted
        first.remember("written by the first")
        second.remember("written by the second")
        assert [m.text for m in first.memories()[-2:]] == ["written by the first", "written by the second"]
        assert [a._spine.state._file for a in (first, second)] == [path.stat().st_ino] * 2
    with octavo.open(root) as account:
        assert account.check()


def answers(account: octavo.Account) -> list[object]:
    """What the state alone is asked for."""
    ids = [memory.id for memory in account.memories()]
    return [
        account.version,
        account.memories(),
        [account.history(id_) for id_ in ids],
        account.memories(tags=["เครื่องดื่ม"]),
        account.memories(topic="mood"),
        account.memories(newest=True, limit=3),
        account.at(2).memories(),
        account.proposals(),
        account.rejections(),
        account.refusals(),
        account.versions(),
        account.counters(),
        account.sessions(),
        account.stats().memories,
        account.diff(1, account.version),
    ]


def test_no_changed_byte_of_the_state_changes_an_answer(tmp_path):
    with octavo.open(tmp_path / "a", actor="human:ann") as account:
        with account.sandbox() as sandbox:
            sandbox.turn("user", "I moved to Chiang Mai")
            sandbox.turn("assistant", "ยินดีด้วย")
        tea = account.remember("likes green tea", tags=["เครื่องดื่ม"]).or_raise()
        account.remember("calm", kind="register", topic="mood")
        account.remember("busy", kind="register", topic="mood")
        account.remember("drinks it at noon", links=[octavo.Link(name="about", to=tea.id)])
        account.reject("oolong", reason="no")
        account.redact(account.remember("the safe is behind the clock").or_raise().id, reason="private")
        account.forget(account.remember("sells the car").or_raise().id)
    with octavo.open(tmp_path / "a") as account:
        account.remember("values honesty", kind="canon")
        wanted = answers(account)
    path = tmp_path / "a" / "default" / "index" / "state.db"
    good = path.read_bytes()
    places = [*range(0, 100, 3), 20, *range(100, len(good), len(good) // 160)]
    for number, place in enumerate(places):
        path.unlink()
        path.write_bytes(
            good[:place] + bytes([good[place] ^ 1 << number % 8]) + good[place + 1 :],
        )
        with octavo.open(tmp_path / "a", read_only=number % 2 == 0) as account:
            assert answers(account) == wanted, place


def test_a_state_that_lacks_a_revision_is_noticed_and_repaired(root):
    with octavo.open(root, actor="human:ann") as account:
        account._spine.state._db.execute("DELETE FROM revision WHERE rev = 2")
        assert any("does not hold the memories of version 3" in p for p in account.check().problems)
        assert account.repair()


def test_a_backup_of_a_damaged_ledger_is_refused_and_not_made_empty(root, tmp_path):
    with octavo.open(root, actor="human:ann") as account:
        version_file(root, 2).unlink()
        with pytest.raises(LedgerDamaged, match=key_of(2)):
            account.backup(tmp_path / "backup")


def flip(path: Path, old: bytes, new: bytes) -> None:
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


def test_a_backup_copies_nothing_that_it_has_not_proved(root, tmp_path):
    with octavo.open(root, actor="human:ann") as account:
        flip(version_file(root, 2), b"Bangkok", b"Bangkog")
        with pytest.raises(LedgerDamaged, match=key_of(2)):
            account.backup(tmp_path / "backup")


def test_a_commit_is_not_built_on_a_version_that_is_damaged(root):
    flip(version_file(root, VERSIONS), "ชาเขียว".encode(), "ชาแดงๆ".encode())
    with octavo.open(root, actor="human:ann") as account, pytest.raises(LedgerDamaged, match="salvage"):
        account.remember("ชอบกาแฟ")
    assert not version_file(root, VERSIONS + 1).exists()


def test_a_changed_row_never_becomes_the_base_of_a_write(root):
    with octavo.open(root, actor="human:ann") as account:
        (home,) = account.memories(kind="register")
        (tea,) = account.memories(kind="fact")
        db = account._spine.state._db
        body = db.execute("SELECT body FROM revision WHERE id = ? AND rev = 3", (home.id,)).get
        db.execute(
            "UPDATE revision SET body = ? WHERE id = ? AND rev = 3", (body.replace(b"Pai", b"Pay"), home.id)
        )
        with pytest.raises(octavo.OctavoError, match="repair"):
            account.revise(home.id, salience=0.9)
        assert account.revise(tea.id, salience=0.9).outcome == "superseding"
        account.repair()
        assert account.revise(home.id, salience=0.9).memory.text == "lives in Pai"


def test_another_accounts_key_is_noticed_and_the_account_can_still_be_read(root, tmp_path):
    path = root / "default" / "account.json"
    key = codec.decode_json(path.read_bytes())["key"]
    flip(path, key.encode(), (("1" if key[0] == "0" else "0") + key[1:]).encode())
    with pytest.raises(Damaged, match="another key"):
        octavo.open(root, actor="human:ann")
    with octavo.open(root, actor="human:ann", read_only=True) as account:
        assert len(account.memories(kind="fact")) == 1
        assert any("another key" in problem for problem in account.check().problems)


@pytest.mark.parametrize("damage", ["missing", "flipped"])
def test_what_lies_before_the_damage_can_be_read_exported_and_salvaged(damage, root, tmp_path):
    if damage == "missing":
        version_file(root, 4).unlink()
    else:
        flip(version_file(root, 4), b"register", b"registes")
    without_index(root)
    with octavo.open(root, actor="human:ann", read_only=True, accept_loss=True) as account:
        assert account.version == 3
        assert [m.text for m in account.memories(kind="register")] == ["lives in เชียงใหม่"]
        assert account.at(2).memories(kind="register")[0].text == "lives in Bangkok"
        account.export(tmp_path / "tree")
        account.salvage(tmp_path / "saved")
    with octavo.open(tmp_path / "saved", actor="human:ann") as saved:
        assert (saved.version, saved.check().problems) == (3, ())
        assert saved.remember("ชอบกาแฟ").outcome == "admitted"


@pytest.mark.parametrize("damage", ["missing", "cut", "flipped", "a folder"])
@pytest.mark.parametrize("version", [1, 3])
def test_upkeep_and_stats_tell_of_damage_that_no_commit_stands_on(damage, version, root, tmp_path):
    path = version_file(root, version)
    with octavo.open(root, actor="human:ann") as account:
        assert (account.upkeep().problems, account.stats().damage) == ((), ())
        data = path.read_bytes()
        path.unlink()
        match damage:
            case "cut":
                path.write_bytes(data[: len(data) // 2])
            case "flipped":
                path.write_bytes(bytes([data[0] ^ 1]) + data[1:])
            case "a folder":
                path.mkdir()
        [seen] = [problem for problem in account.upkeep().problems if key_of(version) in problem][-1:]
        assert account.stats().damage == (seen,)
        assert any(key_of(version) in problem for problem in account.check().problems)
        assert account.memories(kind="register")[0].text == "lives in Pai"
        account.salvage(tmp_path / "saved")
        path.rmdir() if damage == "a folder" else path.unlink(missing_ok=True)
        path.write_bytes(data)
        assert (account.upkeep().problems, account.stats().damage) == ((), ())
    with octavo.open(tmp_path / "saved", actor="human:ann") as saved:
        assert (saved.version, saved.check().problems) == (version - 1, ())


def test_upkeep_and_stats_tell_of_a_changed_byte_in_the_state(root):
    with octavo.open(root, actor="human:ann") as account:
        (home,) = account.memories(kind="register")
        account._spine.state._db.execute(
            "UPDATE revision SET body = CAST(replace(body, 'Pai', 'Pay') AS BLOB) WHERE id = ? AND rev = 3",
            (home.id,),
        )
        assert account.memories(kind="register")[0].text == "lives in Pay"
        problems = account.upkeep().problems
        assert any("octavo repair" in problem and key_of(4) in problem for problem in problems)
        assert account.stats().damage
        assert account.repair()
        assert (account.upkeep().problems, account.stats().damage) == ((), ())
        assert account.memories(kind="register")[0].text == "lives in Pai"


@pytest.mark.parametrize("cell", ["CAST(body AS TEXT)", "7", "0.5"])
def test_a_cell_of_the_state_that_is_of_another_type_is_a_typed_error(root, cell):
    with octavo.open(root, actor="human:ann") as account:
        (home,) = account.memories(kind="register")
        account._spine.state._db.execute(f"UPDATE revision SET body = {cell} WHERE id = ?", (home.id,))
        with pytest.raises(IndexDamaged, match="octavo repair"):
            account.history(home.id)
        assert account.repair()
        assert account.memories(kind="register") == [home]


def test_a_handle_in_use_notices_damage_by_itself(root):
    with octavo.open(root, actor="human:ann", embedder=False) as account:
        version_file(root, 2).unlink()
        for number in range(4 * VERSIONS):
            account.remember(f"ข้อเท็จจริงใหม่ที่ {number} about topic{number}")
            assert account.wait(30)
            if account.stats().damage:
                break
        assert [key_of(2) in problem for problem in account.stats().damage] == [True]


def test_an_account_file_swapped_under_an_open_handle_is_named_by_check(root, tmp_path):
    with octavo.open(tmp_path / "other", actor="human:ann") as other:
        other.remember("another account")
    with octavo.open(root, actor="human:ann") as account:
        account.reject("hates tea")
        shutil.copy(tmp_path / "other" / "default" / "account.json", root / "default" / "account.json")
        assert any("another key" in problem for problem in account.check().problems)
        assert account.remember("hates tea").check == "rejection"


def test_a_damaged_log_of_refusals_is_named_and_everything_else_goes_on(root):
    path = root / "default" / "refusals.jsonl"
    with octavo.open(root, actor="human:ann") as account:
        account.remember("maybe", confidence=0.1)
        path.write_bytes(b'{"id": 1\n' + path.read_bytes())
        assert [refusal.text for refusal in account.refusals()] == ["maybe"]
        assert any("refusals.jsonl, line 1" in problem for problem in account.check().problems)


def test_nothing_beside_the_ledger_keeps_an_account_from_opening(root):
    folder = root / "default"
    with octavo.open(root, actor="human:ann") as account:
        account.remember("maybe", confidence=0.1)
        (tea,) = account.memories(kind="fact")
        second = account.sandbox("good")
        second.turn("user", "hello")
        second.close()
        (folder / "refusals.jsonl").write_bytes(b"\xff nothing\n")
        (folder / "archive").mkdir(exist_ok=True)
        (folder / "archive" / "broken.jsonl").write_bytes(b"{no json\n")
        first = sorted((folder / "buffers").glob("*.jsonl"))[0]
        first.write_bytes(b"no line at all\n" + first.read_bytes())
        done = account.redact(tea.id, reason="asked to")
        assert len(done.waiting) == 1
    with octavo.open(root, actor="human:ann") as account:
        assert [info.name for info in account.sandboxes()] == ["good"]
        assert account.remember("ชอบกาแฟ").outcome == "admitted"
        problems = "\n".join(account.check().problems)
        for name in ("archive/broken.jsonl", "buffers/"):
            assert name in problems


def test_an_index_file_that_is_a_folder_is_a_typed_error(root):
    path = without_index(root) / "default" / "index" / "state.db"
    path.mkdir(parents=True)
    with pytest.raises(Unavailable, match="move the folder"):
        octavo.open(root, actor="human:ann")


@pytest.mark.parametrize("kind", ["fifo", "device"])
@pytest.mark.parametrize("format_", ["msp", "consciousness", "vault"])
def test_an_import_takes_regular_files_only(root, tmp_path, kind, format_):
    path = Path("/dev/zero")
    if kind == "fifo":
        path = tmp_path / "fifo"
        os.mkfifo(path)
    with octavo.open(root, actor="human:ann") as account, pytest.raises(OctavoError):
        account.import_(path, format=format_)


def test_a_pipe_in_the_place_of_any_file_is_named_or_replaced_and_nobody_waits_for_it(root, tmp_path):
    with octavo.open(root, actor="human:ann", embedder=False) as account:
        account.remember("maybe", confidence=0.1)
        account.mirror()
        account.catch_up()
    files = [path.relative_to(root) for path in sorted(root.rglob("*")) if path.is_file()]
    told: dict[str, list[str]] = {}

    def use(copy: Path, name: str) -> None:
        answers: list[str] = []
        with suppress(OctavoError), octavo.open(copy, actor="human:ann", embedder=False) as account:
            answers += account.check().problems
            assert account.remember("maybe so", confidence=0.1).outcome == "refused"
            for act in (account.memories, account.sandboxes, account.upkeep, account.mirror):
                with suppress(OctavoError):
                    act()
            answers += [hit.memory.text for hit in account.recall("ชาเขียว")]
        told[name] = answers

    for number, name in enumerate(files):
        copy = Path(shutil.copytree(root, tmp_path / str(number)))
        (copy / name).unlink()
        os.mkfifo(copy / name)
        thread = threading.Thread(target=use, args=(copy, str(name)), daemon=True)
        thread.start()
        thread.join(60)
        assert not thread.is_alive(), name
        shutil.rmtree(copy)
    assert len(told) == len(files) > 20
    unfound = [name for name, answers in told.items() if "มะลิชอบชาเขียว" not in answers]
    assert [n for n in unfound if "ledger" not in n] == ["default/account.json", "default/index/state.db"]
    for name in ("refusals.jsonl", "attached.json", "buffers"):
        assert any(name in problem for n, answers in told.items() if name in n for problem in answers)


def test_what_is_committed_is_acknowledged_even_if_the_state_cannot_follow(root, monkeypatch):
    with octavo.open(root, actor="human:ann") as account:
        state = account._spine.state
        whole = type(state).apply
        monkeypatch.setattr(type(state), "apply", lambda *_: (_ for _ in ()).throw(StoreFull("full")))
        assert account.remember("ชอบกาแฟ").outcome == "admitted"
        monkeypatch.setattr(type(state), "apply", whole)
        assert account.remember("ชอบกาแฟ").outcome == "merged"
        assert account.version == VERSIONS + 1


def test_everything_of_an_account_is_its_owners_alone(tmp_path):
    with octavo.open(tmp_path / "new", actor="human:ann") as account:
        account.remember("มะลิชอบชาเขียว")
        account.remember("maybe", confidence=0.1)
        account.sandbox("เช้า").close()
        account.catch_up()
        account.backup(tmp_path / "copy")
        account.export(tmp_path / "tree")
        account.mirror()
        account.wait(30)
        for place in ("new/default", "copy/default", "tree"):
            for path in ((tmp_path / place), *(tmp_path / place).rglob("*")):
                assert path.stat().st_mode & 0o077 == 0, path


def writes(account: octavo.Account, sandbox: str) -> list:
    def resumed(act):
        found = account.resume(sandbox)
        try:
            act(found)
        finally:
            found.close()

    return [
        lambda: account.remember("มะลิย้ายบ้าน", kind="register", topic="home"),
        lambda: account.remember("too unsure", confidence=0.1),
        lambda: account.sandbox("ใหม่").close(),
        lambda: account.restore(2),
        lambda: resumed(lambda found: found.turn("user", "อีกคำ")),
        lambda: resumed(lambda found: found.discard()),
        lambda: resumed(lambda found: found.consolidate()),
    ]


@pytest.mark.parametrize("which", range(7))
@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EIO, errno.EACCES, errno.EROFS])
def test_a_disk_that_fails_at_any_call_is_a_typed_error_and_the_account_is_whole(which, number, original):
    kind = StoreFull if number == errno.ENOSPC else Unavailable
    for at in range(1, 60):
        disk = FailingDisk(number, at=10_000, lasting=number in (errno.ENOSPC, errno.EROFS))
        with memory_folder() as folder:
            shutil.copytree(original, folder / "root")
            store = LocalStore(folder / "root" / "default", disk=disk)
            with open_on(store, folder / "root" / "default" / "index") as account:
                path = buffer_file(folder / "root")
                versions = account.version
                disk.at, disk._seen = at, 0
                with suppress(kind):  # anything else is a failure of this test
                    writes(account, path.stem)[which]()
                disk.mend()
                failed = bool(disk.failed)
            with octavo.open(folder / "root", actor="human:ann") as account:
                report = account.check()
                assert report, report.problems
                assert account.version in (versions, versions + 1)
                for info in account.sandboxes():
                    account.resume(info.id).consolidate()
                texts = [t.text for e in account.memories(kind="episode") for t in e.turns]
                assert len(texts) == len(set(texts))
                assert {"หนึ่ง", "two", "สาม"} <= set(texts) or which == 5
        if not failed:
            return
    raise AssertionError("there was no end to the calls")


class memory_folder:  # noqa: N801  # used like a function
    """A temporary folder, in memory where there is some."""

    def __enter__(self) -> Path:
        import tempfile

        shared = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
        self.held = tempfile.TemporaryDirectory(dir=shared)
        return Path(self.held.name)

    def __exit__(self, *_: object) -> None:
        self.held.cleanup()


def test_an_append_that_failed_and_could_not_be_taken_back_never_damages_the_buffer(root):
    disk = FailingDisk(errno.EIO, at=10_000, only={"write", "truncate"}, lasting=True)
    path = buffer_file(root)
    with open_on(LocalStore(root / "default", disk=disk), root / "default" / "index") as account:
        sandbox = account.resume(path.stem)
        disk.at, disk._seen = 1, 0
        with pytest.raises(Unavailable):
            sandbox.turn("user", "never written")
        disk.mend()
        sandbox.turn("user", "เขียนแล้ว")
        sandbox.close()
        again = account.resume(path.stem)
        assert [e.turn.text for e in again.buffer.entries] == ["หนึ่ง", "two", "สาม", "เขียนแล้ว"]


@pytest.fixture
def tiny_disk(request, tmp_path) -> Iterator[Path]:
    """A file system of 160 kB where one can be mounted, else an empty folder of an ordinary one."""
    place = tmp_path / "tiny"
    place.mkdir()
    mounted = mount("-t", "tmpfs", "-o", f"size={getattr(request, 'param', '160k')}", "tmpfs", str(place))
    yield place
    if mounted:
        subprocess.run(["umount", "-l", str(place)], check=True)


def mount(*how: str) -> bool:
    if os.geteuid() != 0 or shutil.which("mount") is None:
        return False
    return subprocess.run(["mount", *how], check=False, capture_output=True).returncode == 0


def test_a_really_full_disk_refuses_writes_and_loses_nothing(tiny_disk):
    if not os.path.ismount(tiny_disk):
        fill_a_failing_disk(tiny_disk)
        return
    said = []
    with octavo.open(tiny_disk, actor="human:ann") as account:
        sandbox = account.sandbox()
        with pytest.raises(StoreFull, match="No space left"):
            talk_for_ever(sandbox, said)
        with pytest.raises(StoreFull):
            sandbox.consolidate()
        assert account.version == 0
        sandbox.close()
    grow = ["mount", "-o", "remount,size=8m", str(tiny_disk)]
    subprocess.run(grow, check=True)
    with octavo.open(tiny_disk, actor="human:ann") as account:
        assert account.check()
        result = account.resume(sandbox.id).consolidate()
        assert result.version == 1
        spoken = [t.speaker for e in account.memories() for t in e.turns]
        assert sorted(spoken) == sorted(said)
        assert len(said) > 20


def filled(place: Path, leaving: int) -> None:
    """Take the room of a small disk but for some bytes."""
    (place / "filler").unlink(missing_ok=True)
    free = os.statvfs(place)
    with suppress(OSError):
        (place / "filler").write_bytes(b"x" * max(free.f_bavail * free.f_bsize - leaving, 0))


@pytest.mark.parametrize("tiny_disk", ["2m"], indirect=True)
def test_on_a_full_disk_what_is_acknowledged_is_there_and_can_be_read(tiny_disk):
    if not os.path.ismount(tiny_disk):
        return  # the same without a mount is in `test_what_is_committed_is_acknowledged_…`
    acknowledged = set()
    with octavo.open(tiny_disk, actor="human:ann", embedder=False) as account:
        account.remember_many([{"text": f"word{n}q stands beside the river"} for n in range(20)])
        account.catch_up()
        for leaving in (0, 4096, 8192, 16384, 32768):
            filled(tiny_disk, leaving)
            for number in range(6):
                text = f"zebra{leaving}x{number} drinks here"
                with suppress(StoreFull):
                    acknowledged.add(account.remember(text).or_raise().text)
                assert {m.text for m in account.memories() if "zebra" in m.text} == acknowledged
                assert any("word3q" in hit.memory.text for hit in account.recall("word3q"))
                assert account.stats().memories == 20 + len(acknowledged)
            with pytest.raises(StoreFull, match="No space left"):
                account.reindex()
            with octavo.open(tiny_disk, read_only=True, embedder=False) as reader:
                assert {m.text for m in reader.memories() if "zebra" in m.text} == acknowledged
        assert 0 < len(acknowledged) < 30
        (tiny_disk / "filler").unlink()
        account.remember("the disk has room again")
        account.reindex()
        assert account.check().problems == ()
    with octavo.open(tiny_disk, actor="human:ann", embedder=False) as account:
        assert {m.text for m in account.memories() if "zebra" in m.text} == acknowledged
        assert account.check().problems == ()


@pytest.mark.parametrize("tiny_disk", ["2m"], indirect=True)
def test_a_redaction_on_a_full_disk_says_what_it_could_not_reach_and_goes_on_later(tiny_disk):
    if not os.path.ismount(tiny_disk):
        return
    with octavo.open(tiny_disk, actor="human:ann", embedder=False) as account:
        facts = [{"text": f"word{n}q stands beside the river " + "ริมน้ำ" * 30} for n in range(200)]
        first, *_ = account.remember_many(facts)
        filled(tiny_disk, 12288)  # room for the redaction, none for writing the first version anew
        done = account.redact(first.memory.id, reason="asked to")
        assert any("No space left" in why or "disk is full" in why for why in done.unreached), done
        assert account.get(first.memory.id) is None
        assert not any("word0q" in hit.memory.text for hit in account.recall("word0q"))
        (tiny_disk / "filler").unlink()
        account.upkeep()
        assert account.check().problems == ()
        assert b"word0q" not in version_file(tiny_disk, 1).read_bytes()
        assert b"word1q" in version_file(tiny_disk, 1).read_bytes()


def talk_for_ever(sandbox: octavo.Sandbox, said: list[str]) -> None:
    for n in range(10_000):
        sandbox.turn(f"speaker {n}", f"คำที่ {n} " + "ยาวมาก " * 40)
        said.append(f"speaker {n}")


def fill_a_failing_disk(place: Path) -> None:
    """The same without a mount: from some call on, nothing can be written."""
    disk = FailingDisk(errno.ENOSPC, at=10_000, lasting=True)
    with open_on(LocalStore(place / "default", disk=disk), place / "index") as account:
        sandbox = account.sandbox()
        sandbox.turn("user", "หนึ่ง")
        disk.at, disk._seen = 1, 0
        with pytest.raises(StoreFull):
            sandbox.turn("user", "two")
        disk.mend()
        assert len(sandbox.buffer.entries) == 1


def test_a_read_only_folder_can_be_read_and_refuses_writes(root, tmp_path):
    with octavo.open(root) as account:
        wanted = account.memories()
    place = tmp_path / "sealed"
    place.mkdir()
    if not mount("--bind", str(root), str(place)):
        refuse_on_a_read_only_disk(root)
        return
    try:
        subprocess.run(["mount", "-o", "remount,bind,ro", str(place)], check=True)
        with octavo.open(place, read_only=True) as account:
            assert account.memories() == wanted
            assert account.check()
            assert len(account.sandboxes()) == 1
        with pytest.raises(Unavailable, match="read_only=True"):
            octavo.open(place, actor="human:ann").close()
    finally:
        subprocess.run(["umount", "-l", str(place)], check=True)
    shutil.rmtree(root / "default" / "index")
    if mount("--bind", str(root), str(place)):
        try:
            subprocess.run(["mount", "-o", "remount,bind,ro", str(place)], check=True)
            with octavo.open(place, read_only=True) as account:
                assert account.memories() == wanted
        finally:
            subprocess.run(["umount", "-l", str(place)], check=True)


def refuse_on_a_read_only_disk(root: Path) -> None:
    """The same without a mount: every call that writes is refused."""
    disk = FailingDisk(errno.EROFS, at=1, lasting=True)
    before = truth_of(root)
    with open_on(LocalStore(root / "default", disk=disk), root / "default" / "index") as account:
        for write in writes(account, buffer_file(root).stem):
            with pytest.raises(Unavailable):
                write()
    assert truth_of(root) == before
