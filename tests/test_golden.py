"""What earlier releases wrote is read, verified and written again byte for byte."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import octavo
from octavo.domain.buffer import TAGS
from octavo.storage import codec

GOLDEN = Path(__file__).parent / "golden"
LINES = (GOLDEN / "lines.jsonl").read_bytes().splitlines()
ENTRIES = (GOLDEN / "buffer.jsonl").read_bytes().splitlines()
TOLD = json.loads((GOLDEN / "told.json").read_text())


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A copy of the account that an earlier release lived in."""
    return Path(shutil.copytree(GOLDEN / "data", tmp_path / "data"))


def told(memory: octavo.Memory) -> list[object]:
    """A memory as the golden file tells it."""
    named = [memory.id, memory.rev, memory.kind, memory.text, memory.scope, memory.topic, memory.actor]
    return [*named, memory.salience, memory.confidence, memory.at.isoformat()]


@pytest.mark.parametrize("raw", LINES, ids=range(len(LINES)))
def test_a_line_of_an_earlier_release_keeps_its_hash_and_its_bytes(raw):
    line = codec.decode_line(raw)
    assert line.hash == line.expected_hash()
    change = codec.decode_change(line.t, bytes(line.envelope), line.body_bytes())
    if line.salt is None and line.body_hash:
        return  # an erased body cannot be written again
    assert codec.encode_line(codec.encode_change(change, line.salt or "")) == raw + b"\n"


def test_the_golden_lines_hold_every_tag():
    assert {codec.decode_line(raw).t for raw in LINES} == {
        *("memory", "proposal", "decision", "rejection", "use", "refusal", "merge", "clash", "redaction")
    }
    assert {json.loads(raw)["t"] for raw in ENTRIES} == set(TAGS.values())


@pytest.mark.parametrize("raw", ENTRIES, ids=range(len(ENTRIES)))
def test_a_buffer_line_of_an_earlier_release_is_read_and_written_again(raw):
    seq, entry = codec.decode_entry(raw)
    assert codec.encode_entry(seq, entry) == raw + b"\n"


def test_an_account_of_an_earlier_release_opens_verifies_and_tells_the_same(kept):
    with octavo.open(kept, "User01", actor="human:you", embedder=False) as account:
        assert account.check().problems == ()
        assert account.version == TOLD["version"]
        assert [told(memory) for memory in account.memories()] == TOLD["memories"]
        assert [sandbox.name for sandbox in account.sandboxes()] == TOLD["sandboxes"]
        assert [proposal.memory.text for proposal in account.proposals()] == TOLD["proposals"]
        for version, ids in TOLD["at"].items():
            assert sorted(memory.id for memory in account.at(int(version)).memories()) == ids


def test_a_sandbox_of_an_earlier_release_is_taken_up_and_consolidated(kept):
    with octavo.open(kept, "User01", actor="human:you", embedder=False) as account:
        [waiting] = account.sandboxes()
        result = account.resume(waiting.id).consolidate()
        assert len(result.added) == 2
        assert account.policy.kinds.fact.min_confidence == 0.5
