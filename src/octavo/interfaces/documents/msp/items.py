"""One value of a document as the text and data of a memory, and back without loss."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from octavo.domain.episodes import SPELLING, moment, spelt, unspelt
from octavo.domain.memory import Memory
from octavo.errors import BadInput

READABLE = 1000  # characters of a derived text; the gate allows 1,200, and the value itself is in the data
_TEXTS = ("content", "text", "fact", "statement", "description", "definition", "summary", "concept", "name")
_TRIPLES = (("subject", "predicate", "object"), ("source", "relation", "target"), ("from", "type", "to"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A value in our words; `confidence` is None if it does not say."""

    text: str
    data: dict[str, Any]
    confidence: float | None = None


def from_item(value: Any, part: str | None = None) -> Item:
    """An element of a document's list; `part` names the list where its place does not follow otherwise."""
    more = {} if part is None else {"part": part}
    if isinstance(value, str) and _fits(value):
        return Item(text=value, data=spelt({}, {"form": "text", **more}))
    if not isinstance(value, Mapping):
        return Item(text=readable(value), data=spelt({"value": value}, {"form": "value", **more}))
    field = next((f for f in _TEXTS if isinstance(value.get(f), str) and _fits(value[f])), None)
    field = None if ends(value) and field != "content" else field
    confidence = _unit(value.get("confidence"))
    taken = (field, None if confidence is None else "confidence")
    rest = {key: kept for key, kept in value.items() if key not in taken}
    text = readable(rest) if field is None else value[field]
    spelling = {"text": field, "sure": confidence is not None, **more}
    return Item(text=text, data=spelt(rest, spelling), confidence=confidence)


def to_item(memory: Memory) -> Any:
    """The element a memory stands for: as its document wrote it, or in the seed's form."""
    text = said(memory)
    data, spelling = unspelt(memory.data)
    if not {"form", "text"} & set(spelling):
        return _own_form(memory, text, data)
    if spelling.get("form") == "text":
        return text
    if spelling.get("form") == "value":
        return data["value"] if text == readable(data.get("value")) else text
    field = spelling["text"]
    if field is None and text != readable(data):
        field = "content"
    written = data if field is None else {**data, field: text}
    return {**written, "confidence": memory.confidence} if spelling.get("sure") else written


def from_entry(key: str, value: Any) -> Item:
    """A value under its name."""
    return Item(text=_named(key, value), data={"name": key, "value": value})


def to_entry(memory: Memory) -> tuple[str, Any]:
    """The name and the value that a memory stands for; a text revised here is the value."""
    data = memory.data
    key = data.get("name")
    if not isinstance(key, str):
        key = (memory.topic or memory.id).partition("/")[2] or memory.topic or memory.id
    if "value" in data and memory.text == _named(key, data["value"]):
        return key, data["value"]
    text = memory.text.removeprefix(f"{key}: ")
    others = {name: value for name, value in data.items() if name not in ("name", "value", SPELLING)}
    return key, {"content": text, **others} if others else text


def said(memory: Memory) -> str:
    """The text of a memory as somebody wrote it: an episode's without its speaker."""
    return memory.turns[0].text if memory.kind == "episode" and memory.turns else memory.text


def ends(value: Mapping[str, Any]) -> tuple[Any, Any] | None:
    """The two ends of a relationship, None if the value is none."""
    for subject, predicate, object_ in _TRIPLES:
        if subject in value and predicate in value and object_ in value:
            return value[subject], value[object_]
    return None


def when(value: Any) -> datetime | None:
    """The time a value carries, None if it carries none that can be read."""
    given = value.get("timestamp") or value.get("created_at") if isinstance(value, Mapping) else None
    try:
        return moment(given)
    except BadInput:
        return None


def readable(value: Any) -> str:
    """Any JSON value as a short line that a person can read; the order of keys makes no difference."""
    line = _line(value) or json.dumps(value, ensure_ascii=False)
    return line if len(line) <= READABLE else f"{line[: READABLE - 1]}…"


def canonical(value: Any) -> str:
    """A text that is equal for equal JSON values: order of keys and 1 or 1.0 make no difference."""
    return json.dumps(_plain(value), ensure_ascii=False, sort_keys=True)


def _own_form(memory: Memory, text: str, data: dict[str, Any]) -> dict[str, Any]:
    written: dict[str, Any] = {"type": memory.category or memory.kind, "content": text}
    if memory.kind == "episode":
        written["timestamp"] = memory.at.isoformat().replace("+00:00", "Z")
    else:
        written["confidence"] = memory.confidence
    if memory.topic is not None:
        written["topic"] = memory.topic
    if memory.tags:
        written["tags"] = list(memory.tags)
    return written | data


def _fits(text: str) -> bool:
    return bool(text.strip()) and len(text) <= READABLE


def _named(key: str, value: Any) -> str:
    return readable(f"{key}: {readable(value)}")


def _line(value: Any) -> str:
    if isinstance(value, Mapping):
        triple = next((t for t in _TRIPLES if all(name in value for name in t)), None)
        if triple is not None:
            return " ".join(_line(value[name]) for name in triple)
        return "; ".join(f"{key}: {_line(item)}" for key, item in sorted(value.items()))
    if isinstance(value, list | tuple):
        return ", ".join(_line(item) for item in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _unit(value: Any) -> float | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if is_number and 0 <= value <= 1 else None
