"""Session buffers: numbered lines, one owner, sealed before they are read for the last time."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.domain.buffer import Discarded, Forgot, Opened, Reopened, Sealed, Spoke
from octavo.domain.memory import Turn
from octavo.errors import BufferDamaged, LeaseLost, NotFound, SandboxBusy, SandboxClosed
from octavo.storage import buffers
from octavo.storage.buffers import Buffer
from octavo.storage.stores.local import LocalStore
from octavo.testing import MemoryStore, strategies

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)
OPENED = Opened(sandbox="s1", name="เช้า", scope="orion", parent=3, actor="agent", at=AT)


def spoke(text: str) -> Spoke:
    return Spoke(episode="e1", turn=Turn(speaker="user", text=text, at=AT))


def test_what_is_appended_is_read_in_order_by_everybody():
    store = MemoryStore()
    buffer = Buffer.create(store, OPENED)
    for text in ("หนึ่ง", "two"):
        buffer.append(spoke(text))
    found = buffers.read(store, "s1")
    assert found == buffer.read()
    assert (found.opened, found.last_line) == (OPENED, 2)
    assert [e.turn.text for e in found.entries] == ["หนึ่ง", "two"]
    assert buffers.names(store) == ["s1"]


@given(st.lists(strategies.written_entries(), max_size=6))
@settings(max_examples=40, deadline=None)
def test_any_entries_survive_letting_go_and_taking_up_again(entries):
    store = MemoryStore()
    buffer = Buffer.create(store, OPENED)
    for entry in entries:
        buffer.append(entry)
    buffer.close()
    again = Buffer.resume(store, "s1")
    assert list(again.entries()) == [OPENED, *entries]
    assert again.read().last_line == len(entries)


def test_a_sandbox_has_one_owner_and_one_beginning():
    store = MemoryStore()
    buffer = Buffer.create(store, OPENED)
    with pytest.raises(SandboxBusy):
        Buffer.resume(store, "s1")
    with pytest.raises(SandboxBusy):
        Buffer.create(store, OPENED)
    buffer.close()
    Buffer.resume(store, "s1").close()


def test_nothing_slips_in_after_the_seal_until_it_is_reopened():
    store = MemoryStore()
    buffer = Buffer.create(store, OPENED)
    buffer.append(spoke("ก่อน"))
    buffer.append(Sealed(at=AT))
    assert buffer.read().is_sealed
    for entry in (spoke("late"), Forgot(memory="m", at=AT), Sealed(at=AT)):
        with pytest.raises(SandboxClosed):
            buffer.append(entry)
    buffer.append(Reopened(at=AT))
    buffer.append(spoke("หลัง"))
    assert not buffer.read().is_sealed
    assert buffer.read().last_line == 4


def test_a_seal_holds_for_the_next_owner_too():
    store = MemoryStore()
    buffer = Buffer.create(store, OPENED)
    buffer.append(Sealed(at=AT))
    buffer.close()
    heir = Buffer.resume(store, "s1")
    with pytest.raises(SandboxClosed):
        heir.append(spoke("late"))


def test_a_discarded_buffer_takes_nothing_any_more():
    store = MemoryStore()
    buffer = Buffer.create(store, OPENED)
    buffer.append(Sealed(at=AT))
    buffer.append(Discarded(at=AT))
    assert buffer.read().is_discarded
    for entry in (spoke("late"), Reopened(at=AT), Discarded(at=AT)):
        with pytest.raises(SandboxClosed):
            buffer.append(entry)


def test_a_deleted_buffer_is_gone():
    store = MemoryStore()
    Buffer.create(store, OPENED).delete()
    assert buffers.names(store) == []
    with pytest.raises(NotFound):
        buffers.read(store, "s1")
    with pytest.raises(NotFound):
        Buffer.resume(store, "s1")


def test_a_torn_last_line_costs_only_itself(tmp_path):
    store = LocalStore(tmp_path)
    buffer = Buffer.create(store, OPENED)
    buffer.append(spoke("หนึ่ง"))
    buffer.close()
    path = tmp_path / "buffers" / "s1.jsonl"
    whole = path.read_bytes()
    for cut in range(1, len(whole.splitlines()[1])):
        path.write_bytes(whole[:-cut])
        found = buffers.read(store, "s1")
        assert (found.entries, found.torn) == ((), len(whole.splitlines()[1]) + 1 - cut)
        heir = Buffer.resume(store, "s1")
        heir.append(spoke("two"))
        heir.close()
        assert [e.turn.text for e in buffers.read(store, "s1").entries] == ["two"]


def test_who_cannot_read_a_damaged_buffer_does_not_hold_it():
    store = MemoryStore()
    Buffer.create(store, OPENED).close()
    store.replace("buffers/s1.jsonl", b"nonsense\n")
    for _ in range(2):
        with pytest.raises(BufferDamaged, match=r"buffers/s1\.jsonl, line 1"):
            Buffer.resume(store, "s1")


def test_an_owner_goes_on_if_whoever_took_over_let_go_without_a_word():
    time = 0.0
    store = MemoryStore(clock=lambda: time)
    buffer = Buffer.create(store, OPENED)
    buffer.append(spoke("รหัส 1234"))
    time += 2 * buffers.LEASE_SECONDS
    buffers.rewrite(store, "s1", lambda entry: spoke("[redacted]") if isinstance(entry, Spoke) else entry)
    buffer.append(spoke("two"))
    assert [e.turn.text for e in buffer.read().entries] == ["[redacted]", "two"]
    assert buffer.read() == buffers.read(store, "s1")


def test_an_owner_that_was_followed_adds_nothing():
    time = 0.0
    store = MemoryStore(clock=lambda: time)
    buffer = Buffer.create(store, OPENED)
    time += 2 * buffers.LEASE_SECONDS
    heir = Buffer.resume(store, "s1")
    with pytest.raises(LeaseLost):
        buffer.append(spoke("late"))
    heir.append(spoke("mine"))
    heir.close()
    with pytest.raises(LeaseLost):
        buffer.append(spoke("later"))
    assert [e.turn.text for e in buffers.read(store, "s1").entries] == ["mine"]
