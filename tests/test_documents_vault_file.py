"""vault.jsonl as a live view: lost, torn, behind, foreign, and under many writers at once."""

from __future__ import annotations

import json
import multiprocessing as mp
import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from octavo.documents.vault import MemoryVault, VaultMemory
from octavo.documents.vault.view import VaultView
from octavo.engine.attachments import Attached, Attachments
from octavo.storage.stores.local import LocalStore
from octavo.testing import Stopped, StoppingDisk, open_on

_CONTEXT = mp.get_context("spawn")
_SYLLABLES = ("bdfgklmnprstvz", "aeiou") * 3


def text_of(writer: int, n: int) -> str:
    """Four invented words that are nobody else's duplicate."""
    drawn = random.Random(f"{writer} {n}")
    return " ".join("".join(drawn.choice(letters) for letters in _SYLLABLES) for _ in range(4))


def rows(path: Path) -> list[dict[str, Any]]:
    """The lines of the file; each must be whole."""
    data = path.read_bytes()
    assert data.endswith(b"\n")
    return [json.loads(line) for line in data.splitlines()]


def resolved(path: Path) -> dict[str, str]:
    """What the seed's own reader makes of the file."""
    latest: dict[str, dict[str, Any]] = {}
    for row in rows(path):
        if row["id"] not in latest or row["version"] > latest[row["id"]]["version"]:
            latest[row["id"]] = row
    return {id_: row["text"] for id_, row in latest.items() if row.get("deleted_at") is None}


def live(path: Path) -> dict[str, str]:
    """What the ledger says, without touching the file."""
    with MemoryVault(path) as vault:
        return {m.id: m.text for m in vault.recall()}


def test_one_line_a_revision_appended_after_each_commit(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        assert not path.exists()
        first = vault.add_memory("ชอบชาเขียว", "shared", "preference")
        assert isinstance(first, VaultMemory)
        assert [row["version"] for row in rows(path)] == [1]
        assert rows(path)[0] == first.to_dict()
        vault.update_memory(first.id, text="ชอบกาแฟดำ")
        vault.delete_memory(first.id)
        assert [(r["version"], r["text"], bool(r["deleted_at"])) for r in rows(path)] == [
            (1, "ชอบชาเขียว", False),
            (2, "ชอบกาแฟดำ", False),
            (3, "ชอบกาแฟดำ", True),
        ]


def test_nothing_refused_reaches_the_file_or_the_ledger(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        vault.add_memory("User prefers dark mode in all apps", "shared", "x")
        before = path.read_bytes()
        for refused in ("User prefers dark mode in all applications", "password: hunter2", "y" * 1300, ""):
            with pytest.raises(ValueError, match=r"Duplicate|PII|long|text"):
                vault.add_memory(refused, "shared", "x")
        assert path.read_bytes() == before
        assert vault.account.version == 1


@pytest.fixture
def filled(tmp_path: Path) -> Path:
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        for n in range(4):
            vault.add_memory(text_of(n, n), "shared", "x")
        vault.update_memory(vault.recall()[0].id, text="changed")
        vault.delete_memory(vault.recall()[1].id)
    return path


def test_a_lost_file_is_derived_again(filled: Path) -> None:
    before = filled.read_bytes()
    filled.unlink()
    MemoryVault(filled).close()
    assert filled.read_bytes() == before


@pytest.mark.parametrize("kept", range(0, 100, 9))
def test_a_file_cut_anywhere_is_completed(filled: Path, kept: int) -> None:
    before = filled.read_bytes()
    filled.write_bytes(before[: len(before) * kept // 100])
    with MemoryVault(filled) as vault:
        assert len(vault.recall()) == 3
    assert filled.read_bytes() == before


@pytest.mark.parametrize("cut", [0, 1, 40, 200])
def test_a_writer_killed_between_commit_and_append_is_caught_up(
    filled: Path, cut: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = Attachments.append

    def torn(self: Attachments, file: Attached, data: bytes) -> None:
        whole(self, file, data[:cut])
        raise KeyboardInterrupt

    with MemoryVault(filled) as vault:
        monkeypatch.setattr(Attachments, "append", torn)
        with pytest.raises(KeyboardInterrupt):
            vault.add_memory("said just before the end", "shared", "x")
        monkeypatch.setattr(Attachments, "append", whole)
    with MemoryVault(filled) as vault:
        assert "said just before the end" in {m.text for m in vault.recall()}
        assert vault.problems == []
    assert len(rows(filled)) == 7
    assert resolved(filled) == live(filled)


def test_a_lost_mark_after_compaction_brings_back_history_and_no_dead_memory(filled: Path) -> None:
    with MemoryVault(filled) as vault:
        vault.compact()
    (filled.with_name("vault.jsonl.octavo") / "view.json").write_text("not a mark")
    with MemoryVault(filled) as vault:
        assert vault.problems == []
    assert resolved(filled) == live(filled)


def test_lines_that_another_program_appended_are_taken_in(filled: Path) -> None:
    known = rows(filled)[0]
    foreign = {**known, "version": 7, "text": "changed by hand", "colour": "blue"}
    new = {"id": "abcdefabcdef", "text": "appended by the old program", "scope": "orion", "category": "x"}
    with filled.open("a") as file:
        file.write(json.dumps(foreign) + "\n" + json.dumps(new) + "\n")
    with MemoryVault(filled) as vault:
        assert vault.get("abcdefabcdef") is not None
        found = vault.get(known["id"])
        assert found is not None
        assert (found.version, found.text, found.extra) == (7, "changed by hand", {"colour": "blue"})
        after = vault.update_memory(known["id"], text="and by us")
        assert isinstance(after, VaultMemory)
        assert (after.version, after.extra) == (8, {"colour": "blue"})
    assert resolved(filled) == live(filled)


def test_an_open_vault_sees_what_another_program_appended_at_the_next_read(filled: Path) -> None:
    line = json.dumps(
        {"id": "abcdefabcdef", "text": "เพิ่มโดยโปรแกรมเก่า", "scope": "orion"}, ensure_ascii=False
    )
    with MemoryVault(filled) as vault, MemoryVault(filled, actor="agent:orion") as agent:
        before = filled.read_bytes()
        with filled.open("a") as file:
            file.write(line[:20])
        assert vault.get("abcdefabcdef") is None
        assert filled.read_bytes() == before + line[:20].encode(), "half a line is left to its writer"
        with filled.open("a") as file:
            file.write(line[20:] + "\n")
        assert agent.get("abcdefabcdef") is None, "only a person imports"
        assert vault.get("abcdefabcdef") is not None
        assert agent.get("abcdefabcdef") is not None
        assert vault.problems == []
        assert filled.read_bytes() == before + line.encode() + b"\n"


def test_a_writer_stopped_at_any_call_leaves_a_file_that_the_next_one_completes(tmp_path: Path) -> None:
    source = tmp_path / "source"
    with MemoryVault(source / "vault.jsonl") as vault:
        vault.add_memory("plays the guitar", "shared", "x")

    def write(folder: Path, disk: StoppingDisk) -> None:
        shutil.copytree(source, folder)
        store = LocalStore(folder / "vault.jsonl.octavo" / "vault", disk=disk)
        account = open_on(store, store.folder / "index", account="vault", actor="human:you")
        try:
            account.remember("ชอบเล่นกีตาร์ตอนเย็น", kind="register", category="x")
            view = VaultView(account, folder / "vault.jsonl", folder / "vault.jsonl.octavo")
            view.follow()
            view.compact()
        finally:
            account.close()

    counted = StoppingDisk(None)
    write(tmp_path / "count", counted)
    assert len(rows(tmp_path / "count" / "vault.jsonl")) == 2
    for stop_at in range(1, len(counted.calls) + 1):
        folder = tmp_path / f"run{stop_at}"
        with pytest.raises(Stopped):
            write(folder, StoppingDisk(stop_at))
        path = folder / "vault.jsonl"
        with MemoryVault(path) as vault:
            assert vault.problems == [], stop_at
            assert resolved(path) == {m.id: m.text for m in vault.recall()}, stop_at


def test_a_file_that_tells_something_else_is_named_by_check_and_mended_by_repair(filled: Path) -> None:
    with MemoryVault(filled) as vault:
        told = filled.read_bytes()
        filled.write_bytes(told.splitlines(keepends=True)[0])
        (problem,) = vault.account.check().problems
        assert problem == f"{filled} does not tell what the vault holds"
        assert vault.account.repair().problems == ()
    assert filled.read_bytes() == told


def test_a_redaction_reaches_the_file(filled: Path) -> None:
    with MemoryVault(filled) as vault:
        found = vault.add_memory("the canary sings in the mine", "shared", "x")
        assert isinstance(found, VaultMemory)
        neighbour = vault.add_memory("the neighbour stays", "shared", "x")
        assert b"canary" in filled.read_bytes()
        vault.account.redact(found.id, reason="asked to")
        vault.update_memory(neighbour.id, text="the neighbour stays put")  # type: ignore[union-attr]
    for path in filled.parent.rglob("*"):
        assert not path.is_file() or b"canary" not in path.read_bytes(), path
    assert b"the neighbour stays put" in filled.read_bytes()
    with MemoryVault(filled) as vault, pytest.raises(ValueError, match="erased"):
        vault.add_memory("the canary sings in the mine", "shared", "x")


def test_two_handles_see_each_others_writes_at_once(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as one, MemoryVault(path) as other:
        found = one.add_memory("lives in Chiang Mai", "shared", "bio")
        assert isinstance(found, VaultMemory)
        assert other.get(found.id) == found
        assert other.delete_memory(found.id) is True
        assert one.recall() == []
        assert len(rows(path)) == 2


def test_threads_share_one_handle(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault, ThreadPoolExecutor(4) as pool:
        jobs = [
            pool.submit(vault.add_memory, text_of(writer, n), "shared", "x")
            for writer in range(4)
            for n in range(5)
        ]
        ids = {job.result().id for job in jobs}  # type: ignore[union-attr]
        assert ids == {m.id for m in vault.recall()} == set(resolved(path))
        assert len(rows(path)) == 20


def _adding(path: str, writer: int, count: int) -> list[Any]:
    with MemoryVault(path, max_active=1000) as vault:
        return [vault.add_memory(text_of(writer, n), "shared", "x").id for n in range(count)]  # type: ignore[union-attr]


def _updating(path: str, writer: int, count: int) -> list[Any]:
    with MemoryVault(path) as vault:
        id_ = vault.recall()[0].id
        return [vault.update_memory(id_, text=text_of(writer, n)).version for n in range(count)]  # type: ignore[union-attr]


def _filling(path: str, writer: int, count: int) -> list[Any]:
    with MemoryVault(path, max_active=10) as vault:
        return _stored(vault, [text_of(writer, n) for n in range(count)], unless="full")


def _repeating(path: str, writer: int, count: int) -> list[Any]:
    with MemoryVault(path) as vault:
        return _stored(vault, [text_of(0, n) for n in range(count)], unless="Duplicate")


def _stored(vault: MemoryVault, texts: list[str], *, unless: str) -> list[str]:
    """The ids of what was stored; anything but the expected refusal is an error."""
    stored = []
    for text in texts:
        try:
            found = vault.add_memory(text, "shared", "x")
        except ValueError as error:
            if unless not in str(error):
                raise
        else:
            stored.append(found.id)  # type: ignore[union-attr]
    return stored


def _upserting(path: str, writer: int, count: int) -> list[Any]:
    with MemoryVault(path) as vault:
        found = [vault.update_by_topic("where", "shared", text_of(writer, n)) for n in range(count)]
        return [(m.id, m.version) for m in found]  # type: ignore[union-attr]


def _compacting(path: str, writer: int, count: int) -> list[Any]:
    if writer > 0:
        return _adding(path, writer, count)
    with MemoryVault(path) as vault:
        return [vault.compact()["lines_after"] for _ in range(count)]


def _child(job: Callable[..., list[Any]], path: str, writer: int, count: int, gate: Any, out: Any) -> None:
    gate.wait(60)
    try:
        out.put((writer, job(path, writer, count)))
    except BaseException as error:
        out.put((writer, [repr(error)]))
        raise


def race(job: Callable[..., list[Any]], path: Path, writers: int, count: int) -> dict[int, list[Any]]:
    """Run a job in several processes that begin together; what each of them returned."""
    gate, out = _CONTEXT.Barrier(writers), _CONTEXT.Queue()
    children = [
        _CONTEXT.Process(target=_child, args=(job, str(path), n, count, gate, out)) for n in range(writers)
    ]
    for child in children:
        child.start()
    found = dict(out.get(timeout=120) for _ in children)
    for child in children:
        child.join(60)
        assert child.exitcode == 0
    return found


@pytest.mark.slow
def test_processes_adding_at_once_lose_nothing_and_tear_no_line(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    ids = [id_ for found in race(_adding, path, 4, 8).values() for id_ in found]
    assert len(set(ids)) == 32
    assert sorted(row["id"] for row in rows(path)) == sorted(ids)
    assert resolved(path) == live(path)


@pytest.mark.slow
def test_two_processes_updating_one_id_get_different_versions(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    with MemoryVault(path) as vault:
        vault.add_memory("lives somewhere", "shared", "bio")
    found = race(_updating, path, 2, 10)
    assert sorted(version for versions in found.values() for version in versions) == list(range(2, 22))
    assert [row["version"] for row in rows(path)] == list(range(1, 22))


@pytest.mark.slow
def test_the_capacity_gate_holds_under_eight_writers(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    found = race(_filling, path, 8, 4)
    assert sum(len(ids) for ids in found.values()) == 10
    assert len(live(path)) == len(rows(path)) == 10


@pytest.mark.slow
def test_the_duplicate_gate_holds_under_eight_writers(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    found = race(_repeating, path, 8, 4)
    assert sum(len(ids) for ids in found.values()) == 4
    assert sorted(live(path).values()) == sorted(text_of(0, n) for n in range(4))


@pytest.mark.slow
def test_a_topic_stays_one_memory_under_eight_writers(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    found = [pair for pairs in race(_upserting, path, 8, 3).values() for pair in pairs]
    assert len({id_ for id_, _ in found}) == 1
    assert sorted(version for _, version in found) == list(range(1, 25))


@pytest.mark.slow
def test_an_append_during_compaction_survives(tmp_path: Path) -> None:
    path = tmp_path / "vault.jsonl"
    found = race(_compacting, path, 3, 10)
    ids = {id_ for writer in (1, 2) for id_ in found[writer]}
    assert ids == set(resolved(path)) == set(live(path))


@pytest.mark.slow
@pytest.mark.parametrize("pause", [0.0, 0.02, 0.05, 0.11])
def test_a_killed_writer_leaves_a_file_that_the_next_one_completes(tmp_path: Path, pause: float) -> None:
    path = tmp_path / "vault.jsonl"
    MemoryVault(path).close()
    gate, out = _CONTEXT.Barrier(2), _CONTEXT.Queue()
    child = _CONTEXT.Process(target=_child, args=(_adding, str(path), 1, 500, gate, out))
    child.start()
    gate.wait(60)
    while not path.exists():
        time.sleep(0.002)
    time.sleep(pause)
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join(60)
    texts = live(path)
    assert texts
    assert resolved(path) == texts
    assert len(rows(path)) == len(texts)
