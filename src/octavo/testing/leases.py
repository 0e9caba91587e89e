"""The part of the stores' suite about series of lines: one owner at a time, leases that end, and fencing."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

from octavo.domain.ports import Lease, Store
from octavo.errors import LeaseLost, NotFound, OctavoError, SandboxBusy

WRITERS = 16


class LeaseSuite:
    """What a session buffer needs of a store; a part of `StoreSuite`."""

    rounds = 25
    lease_seconds = 0.3
    leases_end = True

    def open_store(self, place: Path) -> Store:
        """A handle on the store at a place; the same place twice gives two handles on the same entries."""
        raise NotImplementedError

    def test_lines_are_appended_in_order_and_read_without_owning_them(self, tmp_path: Path) -> None:
        store, other = self.open_store(tmp_path / "a"), self.open_store(tmp_path / "a")
        assert store.lines("buffers/s") is None
        store.create("buffers/s", b"0\n")
        held = store.hold("buffers/s", 60)
        assert list(held.lines()) == [b"0\n"]
        for number in range(1, 30):
            held.append(b"%d\n" % number)
            assert lines_of(other)[-1] == b"%d\n" % number
        held.close()
        again = other.hold("buffers/s", 60)
        assert list(again.lines()) == [b"%d\n" % number for number in range(30)]
        again.close()

    def test_one_owner_at_a_time_holds_a_series(self, tmp_path: Path) -> None:
        store, other = self.open_store(tmp_path / "a"), self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n")
        held = store.hold("buffers/s", 60)
        must_raise(SandboxBusy, lambda: store.hold("buffers/s", 60))
        must_raise(SandboxBusy, lambda: other.hold("buffers/s", 60))
        held.append(b"1\n")
        held.close()
        held.close()
        taken = other.hold("buffers/s", 60)
        assert list(taken.lines()) == [b"0\n", b"1\n"]
        taken.close()

    def test_sixteen_threads_want_one_series_and_exactly_one_holds_it(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n")
        handles = [self.open_store(tmp_path / "a") for _ in range(WRITERS)]
        gate, seen = threading.Barrier(WRITERS), list[bool]()

        def take(number: int) -> None:
            for _ in range(self.rounds):
                gate.wait(60)
                try:
                    held = handles[number].hold("buffers/s", 60)
                except SandboxBusy:
                    held = None
                gate.wait(60)
                seen.append(held is not None)
                if held is not None:
                    held.close()

        all_of(threading.Thread(target=take, args=(n,)) for n in range(WRITERS))
        assert (seen.count(True), len(seen)) == (self.rounds, self.rounds * WRITERS)

    def test_a_deleted_series_is_gone_for_everybody(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        must_raise(NotFound, lambda: store.hold("buffers/s", 60))
        store.create("buffers/s", b"0\n")
        store.hold("buffers/s", 60).delete()
        assert store.lines("buffers/s") is None
        must_raise(NotFound, lambda: store.hold("buffers/s", 60))
        assert store.create("buffers/s", b"0\n")
        store.hold("buffers/s", 60).close()

    def test_a_torn_last_line_is_counted_dropped_and_never_comes_back(self, tmp_path: Path) -> None:
        store = self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n1\nto")
        assert lines_of(store, torn=2) == [b"0\n", b"1\n"]
        held = store.hold("buffers/s", 60)
        assert (list(held.lines()), held.torn) == ([b"0\n", b"1\n"], 2)
        held.append(b"2\n")
        held.close()
        again = self.open_store(tmp_path / "a").hold("buffers/s", 60)
        assert (list(again.lines()), again.torn) == ([b"0\n", b"1\n", b"2\n"], 0)
        again.close()

    def test_who_asks_again_under_the_same_name_is_the_same_owner(self, tmp_path: Path) -> None:
        if not self.leases_end:
            return  # a lock of the operating system cannot be taken and not be known of
        store, other = self.open_store(tmp_path / "a"), self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n")
        store.hold("buffers/s", 60, owner="me")
        again = store.hold("buffers/s", 60, owner="me")
        must_raise(SandboxBusy, lambda: other.hold("buffers/s", 60, owner="you"))
        again.append(b"1\n")
        again.close()
        other.hold("buffers/s", 60, owner="you").close()

    def test_an_owner_whose_lease_ran_out_can_be_followed_and_writes_no_more(self, tmp_path: Path) -> None:
        store, other = self.open_store(tmp_path / "a"), self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n")
        paused = store.hold("buffers/s", self.lease_seconds)
        paused.append(b"1\n")
        if not self.leases_end:
            must_raise(SandboxBusy, lambda: other.hold("buffers/s", self.lease_seconds))
            paused.append(b"2\n")
            paused.close()
            return
        must_raise(SandboxBusy, lambda: other.hold("buffers/s", self.lease_seconds))
        heir = _patiently(lambda: other.hold("buffers/s", 60), self.lease_seconds * 30)
        assert list(heir.lines()) == [b"0\n", b"1\n"]
        must_raise(LeaseLost, lambda: paused.append(b"late\n"))
        must_raise(LeaseLost, paused.renew)
        must_raise(LeaseLost, lambda: paused.replace(b"gone\n"))
        heir.append(b"2\n")
        must_raise(LeaseLost, lambda: paused.append(b"later\n"))
        paused.delete()
        paused.close()
        heir.append(b"3\n")
        heir.close()
        assert lines_of(other) == [b"0\n", b"1\n", b"2\n", b"3\n"]

    def test_an_owner_that_was_followed_by_one_who_wrote_all_anew_writes_no_more(
        self, tmp_path: Path
    ) -> None:
        if not self.leases_end:
            return
        store, other = self.open_store(tmp_path / "a"), self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n")
        paused = store.hold("buffers/s", self.lease_seconds)
        paused.append(b"secret\n")
        heir = _patiently(lambda: other.hold("buffers/s", 60), self.lease_seconds * 30)
        heir.replace(b"a\nb\n")
        must_raise(LeaseLost, lambda: paused.append(b"late\n"))
        must_raise(LeaseLost, lambda: paused.replace(b"secret\n"))
        paused.close()
        assert lines_of(other) == [b"a\n", b"b\n"]

    def test_a_lease_that_ran_out_is_good_as_long_as_nobody_takes_it(self, tmp_path: Path) -> None:
        store, other = self.open_store(tmp_path / "a"), self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n")
        held = store.hold("buffers/s", 0)
        held.append(b"1\n")
        held.renew()
        held.append(b"2\n")
        held.close()
        heir = other.hold("buffers/s", 60)
        assert list(heir.lines()) == [b"0\n", b"1\n", b"2\n"]
        heir.close()

    def test_sixteen_threads_want_a_lease_that_ran_out_and_exactly_one_gets_it(self, tmp_path: Path) -> None:
        if not self.leases_end:
            return
        store = self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n")
        paused = store.hold("buffers/s", self.lease_seconds)
        handles = [self.open_store(tmp_path / "a") for _ in range(WRITERS)]
        gate, heirs = threading.Barrier(WRITERS), list[int]()

        def take(number: int) -> None:
            deadline = time.monotonic() + 30 * self.lease_seconds
            gate.wait(60)
            while not heirs and time.monotonic() < deadline:
                try:
                    handles[number].hold("buffers/s", 60).append(b"heir %d\n" % number)
                except SandboxBusy:
                    time.sleep(0.02)
                else:
                    heirs.append(number)

        all_of(threading.Thread(target=take, args=(n,)) for n in range(WRITERS))
        assert len(heirs) == 1
        must_raise(LeaseLost, lambda: paused.append(b"late\n"))
        assert lines_of(store) == [b"0\n", b"heir %d\n" % heirs[0]]

    def test_a_node_whose_clock_is_wrong_takes_no_lease_early(self, tmp_path: Path, monkeypatch: Any) -> None:
        store, other = self.open_store(tmp_path / "a"), self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n")
        held = store.hold("buffers/s", 60)
        real = time.time
        for wrong in (7200.0, -7200.0):
            monkeypatch.setattr(time, "time", partial(_shifted, real, wrong))
            must_raise(SandboxBusy, lambda: other.hold("buffers/s", 60))
            held.append(b"1\n")
        monkeypatch.undo()
        held.close()
        other.hold("buffers/s", 60).close()

    def test_other_lines_can_be_put_in_place_of_all_there_are(self, tmp_path: Path) -> None:
        store, other = self.open_store(tmp_path / "a"), self.open_store(tmp_path / "a")
        store.create("buffers/s", b"0\n")
        for round_ in range(2):
            held = store.hold("buffers/s", 60)
            held.append(b"secret\n")
            held.replace(b"a\nb%d\n" % round_)
            held.close()
            must_raise(LeaseLost, partial(held.append, b"late\n"))
            assert lines_of(other) == [b"a\n", b"b%d\n" % round_]
        heir = other.hold("buffers/s", 60)
        heir.append(b"c\n")
        heir.close()
        assert lines_of(store) == [b"a\n", b"b1\n", b"c\n"]


def lines_of(store: Store, *, torn: int = 0) -> list[bytes]:
    """The lines of the series that the suite writes, and see how many bytes of a last one are torn."""
    found = store.lines("buffers/s")
    assert found is not None
    assert found[1] == torn
    return list(found[0])


def all_of(started: Iterable[Any]) -> None:
    """Start all of them and wait for all of them."""
    running = list(started)
    for one in running:
        one.start()
    for one in running:
        one.join()


def _patiently(act: Callable[[], Lease], seconds: float) -> Lease:
    """Ask again until somebody else's lease has run out."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return act()
        except SandboxBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.05)


def _shifted(clock: Callable[[], float], seconds: float) -> float:
    return clock() + seconds


def must_raise(kind: type[OctavoError], act: Callable[[], object]) -> None:
    """See that an act fails as it must."""
    try:
        act()
    except kind:
        return
    raise AssertionError(f"{kind.__name__} was expected")
