"""One value of a document as a memory's text, and back: as it came, or changed where the memory was."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from octavo.domain.episodes import SPELLING, iso, moment
from octavo.domain.memory import Memory

ORIGINAL = "original"  # the field of a memory's data that holds the value as its document had it
_READABLE = 1000  # characters of a derived text; the gate allows 1,200, and the value itself is in the data
_TEXTS = ("content", "text", "fact", "statement", "description", "definition", "summary", "concept", "name")
_ENDS = (("subject", "object"), ("source", "target"), ("from", "to"))
_RELATIONS = ("predicate", "relation", "type", "label", "name")


def text_of(key: str | None, value: Any) -> str:
    """What a value of a document says, in a line; one that has a name there, under its name."""
    if key is not None:
        return readable(f"{key}: {readable(value)}")
    field = text_field(value)
    return readable(value) if field is None else value[field]


def value_of(memory: Memory, key: str | None) -> Any:
    """The value a memory stands for: as its document wrote it, what changed since laid over it."""
    text, original = said(memory), memory.data.get(ORIGINAL)
    others = {name: held for name, held in memory.data.items() if name not in ("name", ORIGINAL)}
    value: Any = original
    if ORIGINAL not in memory.data and key is None:
        return _own_form(memory, text)
    if ORIGINAL not in memory.data or text.strip() != text_of(key, original).strip():
        value = text if key is None else text.removeprefix(f"{key}: ")
        if isinstance(original, Mapping) and key is None:
            value = {**original, text_field(original) or "content": text}
        elif others and key is not None:
            value = {"content": value, **others}
    if key is None and confidence_of(original) not in (None, memory.confidence):
        value = {**value, "confidence": memory.confidence}
    return value


def confidence_of(value: Any) -> float | None:
    """How sure a value says it is, None if it does not."""
    return unit(value.get("confidence")) if isinstance(value, Mapping) else None


def said(memory: Memory) -> str:
    """The text of a memory as somebody wrote it: an episode's without its speaker."""
    return memory.turns[0].text if memory.kind == "episode" and memory.turns else memory.text


def edge(value: Any) -> tuple[str, str, str] | None:
    """An edge of a graph: from where, which relation, to where; None if the value is none."""
    if not isinstance(value, Mapping):
        return None
    for start, end in _ENDS:
        if isinstance(value.get(start), str) and isinstance(value.get(end), str):
            return value[start], text_under(value, *_RELATIONS) or "about", value[end]
    return None


def text_under(value: Any, *names: str) -> str | None:
    """The first text that an object holds under some names."""
    fields = value if isinstance(value, Mapping) else {}
    texts = (fields[name] for name in names if isinstance(fields.get(name), str))
    return next((text for text in texts if text.strip()), None)


def when(value: Any) -> datetime | None:
    """The time a value carries, None if it carries none that can be read."""
    time = value.get("timestamp") or value.get("created_at") if isinstance(value, Mapping) else None
    return moment(time, lenient=True)


def text_field(value: Any) -> str | None:
    """The field of an object that holds its text; an edge is told by its ends unless it has a content."""
    if not isinstance(value, Mapping):
        return None
    texts = {name: value[name] for name in _TEXTS if isinstance(value.get(name), str)}
    field = next((name for name, text in texts.items() if text.strip() and len(text) <= _READABLE), None)
    return None if edge(value) and field != "content" else field


def readable(value: Any) -> str:
    """Any JSON value as a short line that a person can read; the order of keys makes no difference."""
    line = _line(value) or json.dumps(value, ensure_ascii=False)
    return line if len(line) <= _READABLE else f"{line[: _READABLE - 1]}…"


def canonical(value: Any) -> str:
    """A text that is equal for equal JSON values: order of keys and 1 or 1.0 make no difference."""
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True)


def unit(value: Any) -> float | None:
    """A number from 0 to 1, None for anything else."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1 else None


def _own_form(memory: Memory, text: str) -> dict[str, Any]:
    written: dict[str, Any] = {"type": memory.category or memory.kind, "content": text}
    if memory.kind == "episode":
        written["timestamp"] = iso(memory.at)
    else:
        written["confidence"] = memory.confidence
    if memory.topic is not None:
        written["topic"] = memory.topic
    if memory.tags:
        written["tags"] = list(memory.tags)
    return written | {name: value for name, value in memory.data.items() if name != SPELLING}


def _line(value: Any) -> str:
    if isinstance(value, Mapping):
        triple = edge(value)
        if triple is not None:
            return " ".join(triple)
        return "; ".join(
            f"{key}: {_line(item)}" for key, item in sorted(value.items()) if key != "confidence"
        )
    if isinstance(value, list | tuple):
        return ", ".join(_line(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value
