"""Hypothesis strategies for memories, changes and buffer entries, read from the records' own fields.

Hypothesis is a development dependency: import this module only where it is installed.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import buffer as entries
from octavo.domain.memory import Change, Memory, transcript

_SENTENCES = (
    "I moved to Chiang Mai.",
    "ฉันย้ายไปเชียงใหม่แล้ว",
    "line one\nline two",
    "\u200bzero\u200d width",
    "",
)

ids = st.from_regex(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,30}", fullmatch=True)
actors = st.sampled_from(("system", "agent", "agent:orion", "human:มะลิ", "tool:search"))
texts = st.sampled_from(_SENTENCES) | st.text(max_size=60)
labels = st.sampled_from(("home", "profile/name", "ชื่อเล่น")) | st.text(min_size=1, max_size=20)
moments = st.datetimes(datetime(1970, 1, 1), datetime(2200, 1, 1), timezones=st.just(UTC))

# What a field of this name holds; any other text is an id, any other number is between 0 and 1.
_NAMED: Mapping[str, SearchStrategy[Any]] = {
    "scope": st.sampled_from(("shared", "orion", "elysia-2")),
    "speaker": st.sampled_from(("user", "assistant", "มะลิ")),
    "fields": st.just(("text", "topic")),
    "valence": st.floats(-1, 1),
    "feedback": st.floats(-1, 1),
    **dict.fromkeys(("actor", "by", "approved"), actors),
    **dict.fromkeys(("topic", "category", "override"), labels),
    **dict.fromkeys(("text", "detail", "reason", "name", "label", "tags"), texts),
}


def json_values() -> SearchStrategy[Any]:
    """Whatever JSON can say."""
    plain = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | texts | st.floats(-1e9, 1e9)
    return st.recursive(
        plain,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
        max_leaves=6,
    )


def memories() -> SearchStrategy[Memory]:
    """Memories of all eight kinds."""
    return _record(Memory)


def changes() -> SearchStrategy[Change]:
    """Everything that a line of a version can hold."""
    return st.one_of(*map(_record, get_args(Change)))


def buffer_entries() -> SearchStrategy[entries.Entry]:
    """Everything that a line of a session buffer can hold."""
    return st.one_of(*map(_record, get_args(entries.Entry)))


def written_entries() -> SearchStrategy[entries.Entry]:
    """The lines of a buffer that can follow each other in any order."""
    first_and_last = (entries.Opened, entries.Sealed, entries.Reopened, entries.Discarded)
    return st.one_of(*(_record(kind) for kind in get_args(entries.Entry) if kind not in first_and_last))


@cache
def _record(kind: type[Struct]) -> SearchStrategy[Any]:
    fields = {name: _value(name, hint) for name, hint in get_type_hints(kind).items()}
    return st.builds(kind, **fields).map(_told) if kind is Memory else st.builds(kind, **fields)


def _told(memory: Memory) -> Memory:
    """An episode's text follows from its turns, and only an episode has any."""
    if memory.kind != "episode":
        return replace(memory, turns=())
    return replace(memory, text=transcript(memory.turns)) if memory.turns else memory


def _value(name: str, hint: Any) -> SearchStrategy[Any]:
    parts = get_args(hint)
    if get_origin(hint) in (Union, UnionType):
        (inner,) = (part for part in parts if part is not NoneType)
        return st.none() | _value(name, inner)
    if get_origin(hint) is tuple and name != "fields":
        return st.lists(_value(name, parts[0]), max_size=3).map(tuple)
    if get_origin(hint) is Literal:
        return st.sampled_from(parts)
    if name in _NAMED and not (isinstance(hint, type) and issubclass(hint, Struct)):
        return _NAMED[name]
    if get_origin(hint) is Mapping:
        return st.dictionaries(texts, json_values(), max_size=3)
    if issubclass(hint, Struct):
        return _record(hint)
    return {
        str: ids,
        int: st.integers(1, 2**40),
        float: st.floats(0, 1),
        bool: st.booleans(),
        datetime: moments,
    }[hint]
