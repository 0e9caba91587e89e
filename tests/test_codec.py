"""Bytes become values in one place: every change and every buffer entry survives the way there and back."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import partial

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from octavo.domain import buffer as entries
from octavo.domain.memory import Change, Memory, Turn, transcript
from octavo.domain.policy import Policy
from octavo.errors import BadPolicy, NewerFormat, OctavoError
from octavo.storage import codec
from octavo.testing import strategies

AT = datetime(2026, 1, 5, 9, tzinfo=UTC)


def there_and_back(change: Change, salt: str = "5a1t") -> Change:
    raw = codec.encode_line(codec.encode_change(change, salt))
    assert raw.count(b"\n") == 1
    line = codec.decode_line(raw.rstrip(b"\n"))
    assert line.hash == line.expected_hash()
    return codec.decode_change(line.t, bytes(line.envelope), line.body_bytes())


@given(strategies.changes())
@settings(max_examples=120, deadline=None)
def test_every_change_comes_back_as_it_went(change):
    assert there_and_back(change) == change


@given(strategies.buffer_entries(), st.integers(0, 2**40))
@settings(max_examples=120, deadline=None)
def test_every_buffer_entry_comes_back_as_it_went(entry, seq):
    raw = codec.encode_entry(seq, entry)
    assert raw.count(b"\n") == 1
    assert codec.decode_entry(raw) == (seq, entry)


@given(strategies.changes())
@settings(max_examples=60, deadline=None)
def test_the_hash_survives_the_erasing_of_the_body_and_the_text_does_not(change):
    line = codec.encode_change(replace(change, **({"text": "รหัสลับ"} if hasattr(change, "text") else {})), "s")
    erased = codec.decode_line(codec.encode_line(line.erased()).rstrip(b"\n"))
    assert erased.hash == line.hash == erased.expected_hash()
    assert "รหัสลับ".encode() not in codec.encode_line(erased)
    again = codec.decode_change(erased.t, bytes(erased.envelope), erased.body_bytes())
    assert type(again) is type(change)


def test_an_erased_memory_reads_as_redacted_and_keeps_its_envelope():
    memory = Memory(id="m", kind="fact", text="รหัสลับ", topic="home", at=AT, confidence=0.9)
    line = codec.encode_change(memory, "salt").erased()
    again = codec.decode_change(line.t, bytes(line.envelope), line.body_bytes())
    assert again == replace(memory, text="[redacted]", topic=None)


@given(strategies.changes(), st.text("0123456789abcdef", min_size=1, max_size=16))
@settings(max_examples=50, deadline=None)
def test_the_salt_decides_the_hash_of_a_body(change, salt):
    one, other = codec.encode_change(change, salt), codec.encode_change(change, f"{salt}0")
    assert (one.hash == other.hash) == (one.body is msgspec.UNSET)


def test_an_episode_is_written_once_its_text_follows_from_its_turns():
    turns = (Turn(speaker="user", text="สวัสดี"), Turn(speaker="assistant", text="hello"))
    memory = Memory(id="e", kind="episode", text=transcript(turns), turns=turns, at=AT)
    raw = codec.encode_line(codec.encode_change(memory, "salt"))
    assert raw.count("สวัสดี".encode()) == 1
    assert there_and_back(memory) == memory


@given(strategies.changes())
@settings(max_examples=50, deadline=None)
def test_an_unknown_field_is_a_newer_format_in_envelope_and_body(change):
    line = codec.encode_change(change, "salt")
    envelope = json.dumps(json.loads(bytes(line.envelope)) | {"aura": 1}).encode()
    with pytest.raises(NewerFormat, match="aura"):
        codec.decode_change(line.t, envelope, line.body_bytes())
    if line.body_bytes() is not None:
        body = json.dumps(json.loads(line.body_bytes()) | {"halo": 1}).encode()
        with pytest.raises(NewerFormat, match="halo"):
            codec.decode_change(line.t, bytes(line.envelope), body)
    if line.t == "memory":
        for bytes_ in ((envelope, line.body_bytes()), (bytes(line.envelope), body)):
            with pytest.raises(NewerFormat, match=r"aura|halo"):
                codec.decode_memory(*bytes_)


def read_both_ways(envelope: bytes, body: bytes | None) -> tuple[object, object]:
    """What the strict reading and the state's own make of a memory's bytes: the value, or the error."""
    found: list[object] = []
    for read in (partial(codec.decode_change, "memory"), codec.decode_memory):
        try:
            found.append(read(envelope, body))
        except OctavoError as error:
            found.append((type(error), error.message))
    return found[0], found[1]


@given(strategies.memories())
@settings(max_examples=120, deadline=None)
def test_the_state_reads_every_memory_as_the_ledger_does_erased_or_not(memory):
    line = codec.encode_change(memory, "salt")
    strictly, at_once = read_both_ways(bytes(line.envelope), line.body_bytes())
    assert strictly == at_once == memory
    strictly, at_once = read_both_ways(bytes(line.envelope), None)
    assert strictly == at_once
    assert at_once.text == codec.REDACTED


def test_the_state_reads_a_memory_with_an_empty_body():
    tombstone = Memory(id="m", kind="fact", at=AT, gone=True)
    line = codec.encode_change(tombstone, "salt")
    assert line.body_bytes() == b"{}"
    assert read_both_ways(bytes(line.envelope), b"{}") == (tombstone, tombstone)


@given(strategies.memories(), st.data())
@settings(max_examples=150, deadline=None)
def test_the_state_reads_damaged_bytes_no_further_than_the_ledger_does(memory, data):
    line = codec.encode_change(memory, "salt")
    parts = [bytearray(line.envelope), bytearray(line.body_bytes())]
    part = data.draw(st.sampled_from([part for part in parts if len(part) > 2]))
    if data.draw(st.booleans()):
        del part[data.draw(st.integers(0, len(part) - 1)) :]
    else:
        part[data.draw(st.integers(0, len(part) - 1))] ^= data.draw(st.sampled_from([1, 2, 4, 32, 64, 128]))
    strictly, at_once = read_both_ways(*map(bytes, parts))
    assert strictly == at_once


def test_an_unknown_tag_is_a_newer_format():
    with pytest.raises(NewerFormat, match="hologram"):
        codec.decode_change("hologram", b"{}", None)


def test_a_buffer_entry_with_an_unknown_field_is_a_newer_format():
    body = b'{"memory":"m","at":"2026-01-05T09:00:00Z","aura":1}'
    line = {"seq": 1, "t": "forget", "crc": codec._crc(1, "forget", body)}
    raw = json.dumps(line)[:-1].encode() + b',"body":' + body + b"}"
    with pytest.raises(NewerFormat, match="aura"):
        codec.decode_entry(raw)


@given(strategies.buffer_entries(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_buffer_line_with_a_changed_byte_is_never_read(entry, data):
    raw = bytearray(codec.encode_entry(3, entry))
    position = data.draw(st.integers(0, len(raw) - 2))
    raw[position] ^= data.draw(st.sampled_from([1, 2, 4, 32, 64, 128]))
    with pytest.raises((msgspec.DecodeError, UnicodeDecodeError)):
        codec.decode_entry(bytes(raw))


def test_every_change_and_every_entry_has_a_tag():
    assert {record for record, *_ in codec._CHANGES.values()} == set(Change.__args__)
    assert set(entries.TAGS) == set(entries.Entry.__args__)


@given(st.datetimes(datetime(1900, 1, 1), timezones=st.just(UTC)))
def test_a_moment_survives_as_microseconds(moment):
    assert codec.moment_of(codec.micros(moment)) == moment


def test_an_empty_policy_is_the_default_and_one_number_changes_only_itself():
    assert codec.decode_policy(b"", "policy.toml") == Policy()
    found = codec.decode_policy(b"[kinds.fact]\nmin_confidence = 0.5\n", "policy.toml")
    assert found.kinds.fact == replace(Policy().kinds.fact, min_confidence=0.5)
    assert found.kinds.canon == Policy().kinds.canon
    assert codec.policy_hash(found) != codec.policy_hash(Policy())


def test_a_wrong_key_of_a_policy_is_named_with_those_there_are():
    with pytest.raises(BadPolicy, match=r"unknown key 'sandbox.max'; known here: .*max_episodes"):
        codec.decode_policy(b"[sandbox]\nmax = 3\n", "policy.toml")
