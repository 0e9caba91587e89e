"""Series of numbered entries: what a process leaves that dies in the middle, and who is followed unseen."""

from __future__ import annotations

from contextlib import suppress

import pytest

from octavo.errors import SandboxBusy
from octavo.testing import MemoryStore, Stopped


class DyingStore(MemoryStore):
    """A store whose process dies before the n-th thing it writes."""

    left: int | None = None

    def _live(self) -> None:
        if self.left is not None:
            self.left -= 1
            if self.left < 0:
                raise Stopped

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        self._live()
        return super().create(key, data, unless=unless)

    def replace(self, key: str, data: bytes) -> None:
        self._live()
        super().replace(key, data)

    def delete(self, *keys: str) -> None:
        for key in keys:
            self._live()
            super().delete(key)


def held_in(store: DyingStore):
    store.create("buffers/s", "ลับ 0\n".encode())
    held = store.hold("buffers/s", 0)
    held.append("ลับ 1\n".encode())
    return held


@pytest.mark.parametrize("stop_at", range(10))
def test_lines_put_in_place_of_others_by_one_who_died_leave_nothing_of_them(stop_at):
    store = DyingStore()
    held = held_in(store)
    store.left = stop_at
    with suppress(Stopped):
        held.replace(b"masked\n")
    store.left = None
    lines = list(store.lines("buffers/s")[0])
    assert lines in ([f"ลับ {n}\n".encode() for n in range(2)], [b"masked\n"])
    store.clear_leftovers()
    assert store.leftovers() == []
    assert list(store.lines("buffers/s")[0]) == lines
    if lines == [b"masked\n"]:
        assert not [key for key, (data, _) in store._entries.items() if "ลับ".encode() in data]


@pytest.mark.parametrize("stop_at", range(8))
def test_a_series_removed_by_one_who_died_leaves_nothing(stop_at):
    store = DyingStore()
    held = held_in(store)
    store.left = stop_at
    with suppress(Stopped):
        held.delete()
    store.left = None
    store.clear_leftovers()
    if store.lines("buffers/s") is None:
        assert store._entries == {}


def test_who_was_slow_to_take_a_series_does_not_take_one_that_is_gone():
    class Slow(MemoryStore):
        """Somebody else comes between looking at a series and taking it."""

        def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
            if b'"slow"' in data and self.read("buffers/s") is not None:
                self.hold("buffers/s", 60, owner="quick").delete()
            return super().create(key, data, unless=unless)

    store = Slow()
    store.create("buffers/s", b"0\n")
    with pytest.raises(SandboxBusy):
        store.hold("buffers/s", 60, owner="slow")
    assert store._entries == {}


def test_a_long_series_that_is_held_again_and_again_is_put_together_and_says_the_same():
    store = MemoryStore()
    store.create("refusals.jsonl", b"0\n")
    for n in range(1, 400):
        held = store.hold("refusals.jsonl", 60)
        held.append(b"%d\n" % n)
        held.close()
        assert len(store.scan("lines/")) <= 3 + 256 + 3
    assert list(store.lines("refusals.jsonl")[0]) == [b"%d\n" % n for n in range(400)]
    assert store.leftovers() == []
