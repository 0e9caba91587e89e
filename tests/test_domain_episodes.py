"""Episodes in the documents' form come in and go out without loss."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from octavo.domain.episodes import (
    SPELLING,
    as_given,
    at_level,
    from_document,
    moment,
    recorded_salience,
    to_document,
)
from octavo.domain.memory import Memory, Turn, transcript
from octavo.errors import BadInput

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)

words = st.text(max_size=5) | st.sampled_from(
    ["", "สวัสดี EVA", "2025-12-17T09:00:00Z", "เมื่อวาน", "ep_001", "user"]
)
keys = st.text(max_size=4) | st.sampled_from(
    ["text", "raw_text", "speaker", "role", "timestamp", "summary", "salience", SPELLING]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(-1e9, 1e9) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=6,
)
turns = st.dictionaries(keys, values, max_size=5) | st.text(max_size=8) | values
FIELDS = [
    "episode_id",
    "timestamp",
    "created_at",
    "turn_1",
    "turn_2",
    "turn_10",
    "turn_01",
    "turn_x",
    "turns",
    "RI_global",
    "crosslinks",
    "episode_tag",
    "emotion",
    "category",
    "session_id",
    "spelling",
    "absent",
    "state_snapshot",
    "episodes",
]
episodes = st.dictionaries(
    st.sampled_from(FIELDS),
    turns | st.lists(turns, max_size=3) | st.dictionaries(keys, turns, max_size=2),
    max_size=8,
)


def kept(told: dict[str, Any]) -> Memory:
    """The episode as the engine keeps it."""
    own = {**told, "id": told["id"] or "given_by_us", "at": told["at"] or NOW}
    return Memory(kind="episode", text=transcript(told["turns"]), sandbox="sandbox_1", **own)


@given(episodes)
def test_any_document_goes_out_exactly_as_it_came_in(document: dict[str, Any]) -> None:
    memory = as_given(kept(from_document(document, lenient=True)), document)

    assert to_document(memory) == document


@given(episodes)
def test_reading_a_document_changes_nothing_in_it(document: dict[str, Any]) -> None:
    before = repr(document)

    from_document(document, lenient=True)

    assert repr(document) == before


def test_ten_turns_keep_their_order() -> None:
    document = {f"turn_{n}": {"speaker": "user", "text": f"ประโยคที่ {n}"} for n in (10, 2, 1)}

    found = from_document(document)

    assert [turn.text for turn in found["turns"]] == ["ประโยคที่ 1", "ประโยคที่ 2", "ประโยคที่ 10"]


def test_an_id_that_is_none_of_ours_stays_in_the_data() -> None:
    memory = kept(from_document({"episode_id": "อีวา_EP01", "turn_1": "สวัสดี"}))

    assert memory.id == "given_by_us"
    assert to_document(memory)["episode_id"] == "อีวา_EP01"


def test_a_written_episode_gains_time_and_session_and_no_resonance_that_nobody_recorded() -> None:
    memory = kept(from_document({"episode_id": "ep_001", "turn_1": {"speaker": "user", "text": "สวัสดี"}}))

    assert to_document(memory) == {
        "episode_id": "ep_001",
        "session_id": "sandbox_1",
        "timestamp": "2026-01-31T09:30:00Z",
        "RI_global": None,
        "turn_1": {"speaker": "user", "text": "สวัสดี"},
    }


@pytest.mark.parametrize(
    ("written", "known"), [({"RI_global": None}, None), ({"RI_global": 0.5}, 0.5), ({}, None)]
)
def test_a_resonance_is_known_only_where_a_number_was_recorded(
    written: dict[str, Any], known: float | None
) -> None:
    memory = kept(from_document({"turn_1": {"speaker": "user", "text": "สวัสดี"}, **written}))
    assert recorded_salience(memory) == known
    assert to_document(memory)["RI_global"] == known


def test_bare_adds_nothing() -> None:
    document = {"episode_id": "ep_001", "turn_1": {"speaker": "user", "text": "สวัสดี"}}

    assert to_document(kept(from_document(document)), bare=True) == document


def test_what_was_said_here_goes_out_with_tags_links_and_times() -> None:
    turn = Turn(speaker="Alice", text="ฝนตก", at=NOW, salience=0.9)
    memory = replace(
        kept(from_document({"episode_tag": "ฝน", "crosslinks": {"causal": "ep_1"}})), turns=(turn,), data={}
    )

    document = to_document(memory)

    assert document["episode_tag"] == ["ฝน"]
    assert document["crosslinks"] == {"causal": ["ep_1"]}
    assert from_document(document)["turns"][0].at == NOW
    assert from_document(document)["turns"][0].salience == 0.9


@pytest.mark.parametrize("bad", ["เมื่อวาน", True, {"a": 1}, 1e20, float("nan")])
def test_a_time_that_cannot_be_read_is_an_error_unless_lenient(bad: Any) -> None:
    with pytest.raises(BadInput, match="is no time"):
        moment(bad)
    with pytest.raises(BadInput):
        from_document({"timestamp": bad})
    assert from_document({"timestamp": bad}, lenient=True)["at"] is None


def test_a_summary_of_the_turns_serves_at_level_two() -> None:
    document = {"turn_1": {"text": "ยาว", "summary": "สั้น"}, "turn_2": {"text": "long", "summary": "short"}}

    memory = at_level(kept(from_document(document)), "L2")

    assert (memory.turns, memory.text, memory.data["summary"]) == ((), "สั้น\nshort", "สั้น\nshort")
