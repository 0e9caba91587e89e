"""The suite that every store passes, and an account opened on any store.

A store proves itself by subclassing `StoreSuite` in a test file and giving `open_store`; pytest does
the rest. No store is trusted with a ledger before it passes.
"""

from __future__ import annotations

import multiprocessing
import secrets
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from octavo.domain.memory import Change, Memory
from octavo.domain.policy import Policy
from octavo.domain.ports import Store
from octavo.engine.account import Account
from octavo.engine.spine import Spine, identify
from octavo.errors import LedgerTruncated, OctavoError, SandboxClosed
from octavo.storage.codec import FORMAT, Header
from octavo.storage.ledger import GENESIS, Ledger, key_of
from octavo.storage.state_db import StateDb
from octavo.storage.stores.entries import every, probe
from octavo.testing.clocks import SettableClock
from octavo.testing.faults import CountingStore, LosingStore
from octavo.testing.leases import WRITERS, LeaseSuite, all_of, must_raise

PAGE = 1100  # more than any store lists at once


class StoreSuite(LeaseSuite):
    """What a ledger needs of a store; subclass it and give `open_store`.

    `rounds` is how often all race for one thing; `between_processes` says that other processes see the same
    entries at the same place; `lease_seconds` is the shortest lease that can be told from none; `leases_end`
    says whether one ends while its owner lives, which a lock of the operating system does not.
    """

    between_processes = False

    def test_a_created_entry_reads_back_and_a_missing_one_is_none(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        assert store.read("ledger/1") is None
        data = "สวัสดี\n".encode() * 1000
        assert store.create("ledger/1", data)
        assert store.read("ledger/1") == data
        assert self.open_store(tmp_path / "a").read("ledger/1") == data

    def test_only_the_first_bytes_are_read_if_that_is_asked(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        store.create("ledger/1", b"0123456789")
        assert store.read("ledger/1", first=4) == b"0123"
        assert store.read("ledger/1", first=400) == b"0123456789"
        assert store.read("ledger/2", first=4) is None

    def test_many_keys_are_read_in_one_call(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        for number in range(1, 30):
            store.create(key_of(number), b"%d" % number)
        keys = [key_of(number) for number in (29, 3, 99, 3, 1)]
        assert list(store.read_many(keys)) == [b"29", b"3", None, b"3", b"1"]
        assert list(store.read_many(keys, first=1)) == [b"2", b"3", None, b"3", b"1"]
        assert list(store.read_many([])) == []

    def test_an_entry_is_not_created_where_another_says_that_it_is_too_late(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        assert store.create("ledger/1", b"1", unless="segments/1")
        store.create("segments/1", b"sealed")
        store.delete("ledger/1")
        assert not store.create("ledger/1", b"again", unless="segments/1")
        assert store.read("ledger/1") is None
        assert store.create("ledger/2", b"2", unless="segments/2")

    def test_an_empty_entry_is_not_a_missing_one(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        assert store.create("ledger/1", b"")
        assert store.read("ledger/1") == b""
        assert list(store.read_many(["ledger/1", "ledger/2"])) == [b"", None]
        assert not store.create("ledger/1", b"more")

    def test_a_second_create_is_refused_and_changes_nothing(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        assert store.create("ledger/1", b"first")
        assert not store.create("ledger/1", b"second")
        assert not self.open_store(tmp_path / "a").create("ledger/1", b"third")
        assert store.read("ledger/1") == b"first"

    def test_sixteen_threads_create_one_key_and_exactly_one_wins(self, tmp_path: Path) -> None:
        places = [self.open_store(tmp_path / "a") for _ in range(WRITERS)]
        won: list[tuple[int, int]] = []
        gate = threading.Barrier(WRITERS)

        def write(number: int) -> None:
            for round_ in range(self.rounds):
                gate.wait(60)
                if places[number].create(f"ledger/{round_}", b"%d" % number):
                    won.append((round_, number))

        all_of(threading.Thread(target=write, args=(n,)) for n in range(WRITERS))
        assert sorted(round_ for round_, _ in won) == list(range(self.rounds))
        for round_, number in won:
            assert places[0].read(f"ledger/{round_}") == b"%d" % number

    def test_sixteen_writers_in_four_processes_create_one_key_and_exactly_one_wins(
        self, tmp_path: Path
    ) -> None:
        if not self.between_processes:
            return
        spawn = multiprocessing.get_context("spawn")
        gate, results = spawn.Barrier(WRITERS), spawn.SimpleQueue()
        args = (self.open_store, tmp_path / "a", gate, results, self.rounds)
        all_of(spawn.Process(target=_race, args=(*args, n)) for n in range(0, WRITERS, 4))
        won = [pair for _ in range(0, WRITERS, 4) for pair in results.get()]
        assert sorted(round_ for round_, _ in won) == list(range(self.rounds))
        store = self.open_store(tmp_path / "a")
        for round_, number in won:
            assert store.read(f"ledger/{round_}") == b"%d" % number

    def test_keys_are_listed_in_order_and_only_those_of_the_folder(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        assert list(store.scan("ledger/")) == []
        for number in (10, 2, 33, 1):
            store.create(key_of(number), b"x")
        store.create("buffers/s.jsonl", b"x\n")
        store.create("account.json", b"{}")
        assert list(store.scan("ledger/")) == [key_of(n) for n in (1, 2, 10, 33)]
        assert list(store.scan("ledger/", after=key_of(2))) == [key_of(10), key_of(33)]
        assert list(store.scan("ledger/", after=key_of(5), limit=1)) == [key_of(10)]
        assert list(store.scan("buffers/")) == ["buffers/s.jsonl"]

    def test_a_folder_of_more_than_a_page_is_listed_whole(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(lambda number: store.create(key_of(number), b"x"), range(1, PAGE + 1)))
        assert list(every(store, "ledger/")) == [key_of(n) for n in range(1, PAGE + 1)]
        assert list(every(store, "ledger/", page=100)) == [key_of(n) for n in range(1, PAGE + 1)]
        store.delete(*(key_of(n) for n in range(1, PAGE + 1, 2)))
        assert list(every(store, "ledger/")) == [key_of(n) for n in range(2, PAGE + 1, 2)]

    def test_a_deleted_key_is_gone_and_can_be_created_again(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        store.create("buffers/s", b"x\n")
        store.delete("buffers/s")
        store.delete("buffers/s")
        assert store.read("buffers/s") is None
        assert list(store.scan("buffers/")) == []
        assert store.create("buffers/s", b"y\n")

    def test_replace_writes_over_what_is_there_or_anew(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        store.replace("hint", b"1")
        store.replace("hint", b"22")
        assert self.open_store(tmp_path / "a").read("hint") == b"22"

    def test_a_store_is_probed_and_keeps_nothing_of_it(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        probe(store)
        assert list(every(store, "probe/")) == []

    def test_the_lock_lets_one_through_and_patience_ends_without_an_error(self, tmp_path: Path) -> None:
        store, other = self.open_store(tmp_path / "a"), self.open_store(tmp_path / "a")
        with store.lock(1.0) as mine:
            assert mine
            with other.lock(0.01) as theirs:
                assert not theirs
        with other.lock(1.0) as after:
            assert after

    def test_a_lost_reply_is_recognised_by_its_commit_id(self, tmp_path: Path) -> None:
        losing: Any = LosingStore(self.open_store(tmp_path / "a"))
        ledger = Ledger(losing)
        mine, changes = draft("มะลิชอบชาเขียว")
        found = ledger.commit(mine, changes, GENESIS, None)
        assert found is not None
        assert (found.header.version, found.header.commit) == (1, mine.commit)
        assert ledger.read(1).hash == found.hash
        assert ledger.commit(*draft("somebody else's"), GENESIS, None) is None
        assert ledger.must_be_whole() == 1

    def test_the_head_is_found_from_any_version_without_listing(self, tmp_path: Path) -> None:
        store: Any = CountingStore(self.open_store(tmp_path / "a"))
        ledger, hashes = Ledger(store), [GENESIS]
        assert not ledger.goes_beyond(0)
        for number in range(40):
            version = ledger.commit(*draft(f"{number}", parent=number), hashes[-1], None)
            assert version is not None
            hashes.append(version.hash)
        store.asked.clear()
        for known in (0, 1, 7, 39, 40):
            newer = [version.header.version for version in ledger.newer(known, hashes[known])]
            assert newer == list(range(known + 1, 41))
        assert not ledger.goes_beyond(40)
        must_raise(LedgerTruncated, lambda: ledger.goes_beyond(41))
        assert store.asked["scan"] == 0
        assert store.asked["read_many"] < 5 * 5

    def test_a_commit_alone_asks_the_store_three_things(self, tmp_path: Path) -> None:
        store: Any = CountingStore(self.open_store(tmp_path / "a"))
        with open_on(store, tmp_path / "index") as account:
            account.remember("เริ่ม", kind="register", topic="first")
            store.asked.clear()
            account.remember("lives in Chiang Mai", kind="register", topic="home")
            assert sum(store.asked.values()) <= 3, store.asked

    def test_an_account_lives_on_the_store(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        with open_on(store, tmp_path / "index") as account:
            with account.sandbox("เช้า") as sandbox:
                sandbox.turn("user", "I moved to Chiang Mai last week.")
                sandbox.turn("assistant", "ยินดีด้วยค่ะ")
            account.remember("lives in Chiang Mai", kind="register", topic="home")
            left = account.sandbox()
            left.turn("user", "แล้วเจอกัน")
            left.close()
            assert account.check()
        with open_on(self.open_store(tmp_path / "a"), tmp_path / "other index") as again:
            assert again.version == 2
            assert sorted(m.kind for m in again.memories()) == ["episode", "register"]
            resumed = again.resume(left.id)
            result = resumed.consolidate()
            assert (result.version, resumed.consolidate()) == (3, result)
            must_raise(SandboxClosed, lambda: resumed.turn("user", "more"))
            assert again.check()


def open_on(
    store: Store,
    index: Path,
    *,
    account: str = "default",
    actor: str = "human:tester",
    scope: str | None = None,
    policy: Policy | None = None,
    clock: Callable[[], datetime] | None = None,
) -> Account:
    """Open an account on any store, its derived files in a folder of their own."""
    tick = clock or SettableClock()
    identity = identify(store, account, tick())
    state = StateDb(index / "state.db", Ledger(store))
    try:
        state.open()
    except OctavoError:
        state.close()
        raise
    spine = Spine(store, state, identity, policy=policy or Policy(), clock=tick, read_only=False)
    return Account(spine, actor=actor, scope=scope)


def draft(*texts: str, parent: int = 0, at: datetime | None = None) -> tuple[Header, list[Change]]:
    """A version of facts with these texts on top of another one, ready for a ledger."""
    at = at or datetime(2026, 1, 5, 9, tzinfo=UTC)
    changes = [Memory(id=f"m_{secrets.token_hex(6)}", kind="fact", text=text, at=at) for text in texts]
    commit = secrets.token_hex(8)
    header = Header(
        format=FORMAT, parent=parent, at=at, cause="test", actor="system", commit=commit, policy="0" * 16
    )
    return header, [*changes]


def _race(
    open_store: Callable[[Path], Store], place: Path, gate: Any, results: Any, rounds: int, first: int
) -> None:
    """Four of the sixteen writers, in a process of their own."""
    won: list[tuple[int, int]] = []

    def write(number: int) -> None:
        store = open_store(place)
        for round_ in range(rounds):
            gate.wait(60)
            if store.create(f"ledger/{round_}", b"%d" % number):
                won.append((round_, number))

    all_of(threading.Thread(target=write, args=(n,)) for n in range(first, first + 4))
    results.put(won)
