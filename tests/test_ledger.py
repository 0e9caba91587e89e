"""The ledger: one file a version, chained by hashes; creating the file is the commit."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from octavo.errors import LedgerDamaged, LedgerTruncated
from octavo.storage import codec
from octavo.storage.ledger import GENESIS, Ledger, key_of
from octavo.storage.stores.local import LocalStore
from octavo.testing import CountingStore, LosingStore, MemoryStore, strategies
from octavo.testing.stores import draft

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)


def committed(ledger: Ledger, *texts: str) -> None:
    """One version a text."""
    parent, hash_, at = 0, GENESIS, None
    for text in texts:
        found = ledger.commit(*draft(text, parent=parent), hash_, at)
        parent, hash_, at = found.header.version, found.hash, found.header.at


@given(st.lists(st.lists(strategies.changes(), min_size=1, max_size=3), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_what_is_committed_is_read_back_in_order(versions):
    ledger = Ledger(MemoryStore())
    hash_ = GENESIS
    for parent, changes in enumerate(versions):
        hash_ = ledger.commit(draft(parent=parent)[0], changes, hash_, None).hash
    found = list(ledger.newer(0, GENESIS, upto=len(versions)))
    assert [list(version.changes()) for version in found] == versions
    assert [version.header.version for version in found] == list(range(1, len(versions) + 1))


def test_a_version_is_a_readable_file_of_one_line_a_change(tmp_path):
    ledger = Ledger(LocalStore(tmp_path))
    ledger.commit(*draft("มะลิชอบชาเขียว", "cats purr"), GENESIS, None)
    raw = (tmp_path / "ledger" / "00000000000000000001.jsonl").read_bytes()
    header, first, second = [json.loads(line) for line in raw.splitlines()]
    assert header["t"] == "version"
    assert header["envelope"]["count"] == 2
    assert header["envelope"]["parent_hash"] == GENESIS
    assert "มะลิชอบชาเขียว" in raw.decode()
    assert "มะลิ" not in json.dumps(header, ensure_ascii=False)
    assert first["body"]["text"] == "มะลิชอบชาเขียว"
    assert (first["t"], second["t"]) == ("memory", "memory")


def test_the_hashes_can_be_checked_with_nothing_but_sha256(tmp_path):
    Ledger(LocalStore(tmp_path)).commit(*draft("มะลิชอบชาเขียว"), GENESIS, None)
    raw = (tmp_path / "ledger" / "00000000000000000001.jsonl").read_bytes()
    header, line = raw.splitlines()
    envelope = line[line.index(b'"envelope":') + 11 : line.index(b',"salt":')]
    body = line[line.index(b'"body":') + 7 : -1]
    told = json.loads(line)
    salted = hashlib.sha256(told["salt"].encode() + body).hexdigest()
    assert told["hash"] == hashlib.sha256(b"memory\0" + envelope + b"\0" + salted.encode()).hexdigest()
    root = hashlib.sha256(bytes.fromhex(told["hash"])).hexdigest()
    assert json.loads(header)["envelope"]["root"] == root


def test_the_loser_of_a_race_is_told_and_the_winner_stays():
    ledger = Ledger(MemoryStore())
    winner = ledger.commit(*draft("first"), GENESIS, None)
    assert ledger.commit(*draft("second"), GENESIS, None) is None
    assert ledger.read(1).hash == winner.hash
    assert ledger.must_be_whole() == 1


def test_a_lost_reply_counts_once():
    store = LosingStore(MemoryStore(), lose=3)
    ledger = Ledger(store)
    committed(ledger, "หนึ่ง", "two", "สาม")
    assert ledger.must_be_whole() == 3
    assert [next(v.changes()).text for v in ledger.newer(0, GENESIS, upto=3)] == ["หนึ่ง", "two", "สาม"]


def test_a_version_s_time_never_goes_back():
    ledger = Ledger(MemoryStore())
    first = ledger.commit(*draft("now", at=AT), GENESIS, None)
    earlier = draft("clock set back", parent=1, at=AT - timedelta(hours=3))
    assert ledger.commit(*earlier, first.hash, first.header.at).header.at == AT


def test_a_header_is_read_without_reading_the_version(tmp_path):
    ledger = Ledger(LocalStore(tmp_path))
    committed(ledger, "long " * 50_000)
    path = tmp_path / key_of(1)
    path.write_bytes(path.read_bytes()[:5000])
    assert ledger.header(1)[0].version == 1
    with pytest.raises(LedgerDamaged, match=f"{key_of(1)}, line 2"):
        ledger.read(1)


def test_finding_the_head_and_committing_costs_the_same_on_a_long_ledger():
    store = CountingStore(MemoryStore())
    ledger = Ledger(store)
    asked = {}
    parent, hash_ = 0, GENESIS
    for number in range(1, 301):
        store.asked.clear()
        assert not ledger.goes_beyond(parent)
        found = ledger.commit(*draft(f"{number}", parent=parent), hash_, None)
        parent, hash_ = number, found.hash
        asked[number] = sum(store.asked.values())
    assert asked[300] == asked[10]
    assert store.asked["scan"] == 0


def test_nothing_is_committed_on_top_of_a_gap():
    ledger = Ledger(MemoryStore())
    with pytest.raises(LedgerTruncated, match="on top of a gap"):
        ledger.commit(*draft("on nothing", parent=7), "0" * 64, None)
    assert ledger.must_be_whole() == 0


def test_a_gap_is_damage_for_who_reads_all_of_it():
    store = MemoryStore()
    ledger = Ledger(store)
    committed(ledger, "a", "b", "c")
    store.delete(key_of(2))
    with pytest.raises(LedgerDamaged, match=f"{key_of(2)} is missing, and version 3 exists"):
        ledger.must_be_whole()


def test_a_sweep_erases_bodies_and_the_chain_still_stands():
    ledger = Ledger(MemoryStore())
    committed(ledger, "public", "รหัสลับ", "after")
    ledger.rewrite(2, [line.erased() for line in ledger.read(2).lines])
    found = list(ledger.newer(0, GENESIS, upto=3))
    assert [next(v.changes()).text for v in found] == ["public", "[redacted]", "after"]


def test_a_sweep_may_not_change_what_a_line_said():
    ledger = Ledger(MemoryStore())
    committed(ledger, "ของจริง")
    forged = codec.encode_change(next(ledger.read(1).changes()), "another salt")
    with pytest.raises(LedgerDamaged, match="never change a hash"):
        ledger.rewrite(1, [forged])
    assert next(ledger.read(1).changes()).text == "ของจริง"


def test_settling_a_version_changes_nothing(tmp_path):
    ledger = Ledger(LocalStore(tmp_path))
    committed(ledger, "มะลิ")
    before = (tmp_path / key_of(1)).read_bytes()
    ledger.make_durable(1)
    ledger.make_durable(2)
    assert (tmp_path / key_of(1)).read_bytes() == before
    assert ledger.must_be_whole() == 1
