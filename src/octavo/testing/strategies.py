"""Hypothesis strategies for memories, turns, changes and buffer entries.

Hypothesis is a development dependency: import this module only where it is installed.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from octavo.domain import buffer as entries
from octavo.domain import memory as records
from octavo.domain.memory import KINDS, SOURCES, Change, Memory, Turn, transcript

_SENTENCES = (
    "I moved to Chiang Mai.",
    "ฉันย้ายไปเชียงใหม่แล้ว",
    "line one\nline two",
    "\u200bzero\u200d width",
    "",
)

ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,30}", fullmatch=True)
scopes = st.sampled_from(("shared", "orion", "elysia-2"))
actors = st.sampled_from(("system", "agent", "agent:orion", "human:มะลิ", "tool:search"))
texts = st.sampled_from(_SENTENCES) | st.text(max_size=60)
labels = st.none() | st.sampled_from(("home", "profile/name", "ชื่อเล่น")) | st.text(min_size=1, max_size=20)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))
units = st.floats(0, 1)
numbers = st.integers(1, 2**40)

emotions = st.builds(
    records.Emotion,
    label=st.none() | texts,
    valence=st.none() | st.floats(-1, 1),
    intensity=st.none() | units,
)
links = st.builds(records.Link, name=ids, to=ids)


def json_values() -> SearchStrategy[Any]:
    """Whatever JSON can say."""
    plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts | st.floats(-1e9, 1e9)
    return st.recursive(
        plain,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    )


def data() -> SearchStrategy[dict[str, Any]]:
    """What a memory or a turn carries besides its text."""
    return st.dictionaries(texts, json_values(), max_size=3)


def turns() -> SearchStrategy[Turn]:
    """What one speaker said."""
    return st.builds(
        Turn,
        speaker=st.sampled_from(("user", "assistant", "มะลิ")),
        text=texts,
        at=st.none() | moments,
        salience=st.none() | units,
        emotion=st.none() | emotions,
        data=data(),
    )


def episodes() -> SearchStrategy[Memory]:
    """Memories of kind episode; the text follows from the turns."""
    spoken = st.lists(turns(), min_size=1, max_size=4).map(tuple)
    return spoken.flatmap(
        lambda said: _memory("episode", turns=st.just(said), text=st.just(transcript(said)))
    )


def memories() -> SearchStrategy[Memory]:
    """Memories of all eight kinds."""
    statements = st.sampled_from([kind for kind in KINDS if kind != "episode"])
    return statements.flatmap(lambda kind: _memory(kind, text=texts)) | episodes()


def changes() -> SearchStrategy[Change]:
    """Everything that a line of a version can hold."""
    words = {"by": actors, "at": moments, "reason": texts}
    return st.one_of(
        memories(),
        st.builds(records.Proposal, id=ids, memory=memories(), base_rev=st.integers(0, 9), **words),
        st.builds(records.Decision, proposal=ids, **words),
        st.builds(records.Rejection, key=ids, scope=scopes, lifted=st.booleans(), **words),
        st.builds(records.Use, memory=ids, count=numbers, feedback=st.floats(-1, 1)),
        st.builds(
            records.Refusal,
            id=ids,
            check=ids,
            detail=texts,
            kind=st.sampled_from(KINDS),
            scope=scopes,
            text=st.none() | texts,
            confidence=st.none() | units,
            at=moments,
        ),
        st.builds(records.Merge, id=ids, into=ids, rev=numbers, text=texts, confidence=units),
        st.builds(
            records.Clash, id=ids, memory=ids, parent_rev=st.integers(0, 9), found_rev=numbers, detail=texts
        ),
        st.builds(records.Redaction, memory=ids, key=ids, swept=st.booleans(), **words),
    )


def buffer_entries() -> SearchStrategy[entries.Entry]:
    """Everything that a line of a session buffer can hold."""
    ends = (entries.Sealed, entries.Reopened, entries.Discarded)
    return st.one_of(
        st.builds(
            entries.Opened, sandbox=ids, name=texts, scope=scopes, parent=numbers, actor=actors, at=moments
        ),
        written_entries(),
        *(st.builds(end, at=moments) for end in ends),
    )


def written_entries() -> SearchStrategy[entries.Entry]:
    """The lines of a buffer that can follow each other in any order."""
    return st.one_of(
        st.builds(entries.Spoke, episode=ids, turn=turns()),
        st.builds(
            entries.Wrote,
            memory=memories(),
            alias=st.none() | ids,
            supersedes=st.none() | ids,
            override=labels,
        ),
        st.builds(entries.SetState, id=ids, name=texts, data=data(), at=moments, patch=st.booleans()),
        st.builds(
            entries.Revised, wanted=memories(), fields=st.just(("text", "topic")), at=moments, override=labels
        ),
        st.builds(entries.Forgot, memory=ids, at=moments),
        st.builds(entries.Used, memories=st.lists(ids, max_size=3).map(tuple), feedback=st.floats(-1, 1)),
    )


def _memory(kind: str, **more: SearchStrategy[Any]) -> SearchStrategy[Memory]:
    return st.builds(
        Memory,
        id=ids,
        rev=numbers,
        kind=st.just(kind),
        scope=scopes,
        topic=labels,
        category=labels,
        tags=st.lists(texts, max_size=3).map(tuple),
        source=st.sampled_from(SOURCES),
        actor=actors,
        at=moments,
        salience=units,
        confidence=units,
        emotion=st.none() | emotions,
        links=st.lists(links, max_size=3).map(tuple),
        sandbox=st.none() | ids,
        data=data(),
        approved=st.none() | actors,
        gone=st.booleans(),
        **more,
    )
