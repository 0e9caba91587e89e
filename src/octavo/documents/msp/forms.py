"""The documents of seed 000 as its code handles them: plain JSON objects that also answer to its names.

What a value says is told in a line of text, and told back: as it came, or changed where its memory was.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Self

from msgspec import Struct

from octavo.documents import trees
from octavo.domain.episodes import SPELLING, iso, moment
from octavo.domain.memory import Kind, Memory
from octavo.domain.verdicts import Consolidation
from octavo.engine.fields import plain_json
from octavo.errors import BadInput

EPISODIC, SEMANTIC, SENSORY = "episodic_memory", "semantic_memory", "sensory_memory"
CORE, PROFILE, GKS, STATES = "core_memory", "user_profile", "gks_data", "states"
# The sections in the document's order: what each is, where a session buffer keeps what is for it, what
# consolidated data call that, and its file.
_ROWS: tuple[tuple[str, tuple[type, ...], str, str, str], ...] = (
    (EPISODIC, (list,), "new_episodes", "episodes", "01_Episodic_memory/Episodic_memory"),
    (SEMANTIC, (Mapping,), "semantic_candidates", "knowledge", "02_Semantic_memory/Semantic_memory"),
    (SENSORY, (list,), "sensory_candidates", "sensory", "03_Sensory_memory/Sensory_memory"),
    (CORE, (Mapping,), "core_updates", "core_updates", "05_Core_Memory/Core_memory"),
    (PROFILE, (Mapping,), PROFILE, "profile_updates", "07_User_block/User_profile"),
    (GKS, (Mapping, list), GKS, "gks_updates", "09_Genesis_Knowledge_System/GKS_data"),
    (STATES, (Mapping,), "state_deltas", "state_changes", "10_state"),
)
SECTIONS = {section: shapes for section, shapes, *_ in _ROWS}
FIELDS = {section: field for section, _, field, *_ in _ROWS}
THROUGH = {section: name for section, _, _, name, _ in _ROWS if section != SEMANTIC}
FILES = {section: f"core/{path}.json" for section, *_, path in _ROWS if section != STATES}
LISTS = {EPISODIC: "episodes", SENSORY: "sensory"}  # sections that are lists, and their field in a file
# What the master state shows where there is nothing.
EMPTY: dict[str, dict[str, Any]] = {
    SEMANTIC: {"facts": [], "concepts": [], "relationships": []},
    CORE: {"identity": {}, "values": [], "worldview": {}},
}
FOLDERS = ("account", "accout")  # the second is how seed 000 spells it; a tree keeps its spelling
CANON = ("identity", "values", "worldview", "notes")
# Which memory stands for a value: the kind and category of each part of each section. A memory of another
# category stands where its kind stands without one.
PLACES: dict[tuple[str, str | None], tuple[Kind, str | None]] = {
    (EPISODIC, None): ("episode", None),
    (SENSORY, None): ("episode", "sensory"),
    (SEMANTIC, "facts"): ("fact", "fact"),
    (SEMANTIC, "concepts"): ("fact", "concept"),
    (SEMANTIC, "relationships"): ("fact", "relationship"),
    (SEMANTIC, "registers"): ("register", None),
    **{(CORE, part): ("canon", None if part == "notes" else part) for part in CANON},
    (PROFILE, None): ("register", "profile"),
    (GKS, None): ("fact", "gks"),
    (STATES, None): ("register", "state"),
}
# The lists of the semantic store, each with the category that its memories have unless they name one.
KNOWLEDGE = {str(part): category for (section, part), (_, category) in PLACES.items() if section == SEMANTIC}
LIST_OF = {category: part for part, category in KNOWLEDGE.items() if category}
# Every spelling that is read, and the schema's that is written.
_MASTER_NAMES = {"episodic": EPISODIC, "semantic": SEMANTIC, "sensory": SENSORY, "core": CORE, "gks": GKS}
_BUFFER_NAMES = {
    **{name: FIELDS[section] for section, name in THROUGH.items()},
    "semantic_updates": "semantic_candidates",
    "state_updates": "state_deltas",
    "core": "core_updates",
}
# What makes an object an episode: something that was said, or noted of the moment.
_TOLD = frozenset(
    {"turns", "summary", "content", "text", "event", "state_snapshot", "emotive_snapshot", "pulse_snapshot"}
    | {"msp_metadata", "situation"}
)
# What each part of a session buffer is; knowledge is one list of all kinds, and the core may be one.
BUFFER: dict[str, tuple[type, ...]] = {field: SECTIONS[section] for section, field in FIELDS.items()}
BUFFER |= {FIELDS[SEMANTIC]: (list,), FIELDS[CORE]: (Mapping, list)}
ORIGINAL = "original"  # the field of a memory's data that holds the value as its document had it
_READABLE = 1000  # characters of a derived text; the gate allows 1,200, and the value itself is in the data
_TEXTS = ("content", "text", "fact", "statement", "description", "definition", "summary", "concept", "name")
_ENDS = (("subject", "object"), ("source", "target"), ("from", "to"))
_RELATIONS = ("predicate", "relation", "type", "label", "name")


class _Document(dict[str, Any]):
    """A plain JSON object that answers to other names of its fields too, as keys and as attributes."""

    _names: ClassVar[Mapping[str, str]] = {}

    def __missing__(self, key: str) -> Any:
        if self._names.get(key, key) == key:
            raise KeyError(key)
        return self[self._names[key]]

    def get(self, key: str, default: Any = None) -> Any:
        """A field under either name."""
        return super().get(self._names.get(key, key), default)

    def __getattr__(self, name: str) -> Any:
        """A field by any of its names; a store that the document leaves out is empty."""
        key = self._names.get(name, name)
        if key in self:
            return self[key]
        if key not in SECTIONS:
            raise AttributeError(name)
        return [] if key in LISTS else Semantic() if key == SEMANTIC else {}


class Semantic(dict[str, Any]):
    """The semantic store; adding knowledge puts each element into the list of its type."""

    def __add__(self, knowledge: object) -> Semantic:
        if not isinstance(knowledge, list | tuple):
            return NotImplemented
        added = Semantic(plain_json(self))
        for item in knowledge:
            kind = item.get("type") if isinstance(item, Mapping) else None
            added.setdefault(LIST_OF.get(str(kind), "facts"), []).append(plain_json(item))
        return added


class MasterState(_Document):
    """One version of an account as the seed's document; `base` is the version it was made on."""

    _names: ClassVar[Mapping[str, str]] = {**_MASTER_NAMES, "profile": PROFILE}
    base: int | None = None
    consolidation: Consolidation | None = None

    @classmethod
    def on(cls, base: int | None, document: Mapping[str, Any]) -> Self:
        """A state that was made on a version."""
        state = cls(document)
        if isinstance(state.get(SEMANTIC), Mapping):
            state[SEMANTIC] = Semantic(state[SEMANTIC])
        state.base = base
        return state


class Episode(dict[str, Any]):
    """An episode as the seed writes it: `Episode(turn_1={…}, turn_2={…}, RI_global=0.8)`."""

    @classmethod
    def of(cls, value: object) -> Self:
        """The episode that a value is; an object that says nothing is none."""
        trees.must_be("an episode", value, Mapping)
        told: dict[str, Any] = plain_json(value)
        if not any(key in _TOLD or key.startswith("turn_") for key, part in told.items() if part):
            raise BadInput(
                f"an object of {sorted(told)[:5]} is no episode",
                hint="say something: turn_1, turn_2, turns, summary, or a snapshot",
            )
        return cls(told)


class SessionBuffer(_Document):
    """A session buffer under the schema's names, which answers to those of the seed's flow too."""

    _names: ClassVar[Mapping[str, str]] = _BUFFER_NAMES


class LoadedSandbox(Struct, kw_only=True):
    """A sandbox as the seed sees it: the master state it began on, and its session buffer."""

    id: str
    user_id: str
    name: str
    parent_version: int
    master_ref: MasterState
    session_buffer: SessionBuffer


class ConsolidatedData(_Document):
    """What the rules let through, part by part, and what they did with the rest: `refused`, `merged`."""


def create_empty_buffer(
    sandbox_id: str | None = None, created_at: str | None = None, parent_version: int | None = None
) -> SessionBuffer:
    """A session buffer in which nothing is written yet."""
    origin = {"sandbox_id": sandbox_id, "created_at": created_at, "parent_version": parent_version}
    content: dict[str, Any] = {"new_episodes": [], "semantic_candidates": [], "state_deltas": {}}
    return SessionBuffer({**origin, **content, "metadata": dict(origin)})


def master_named(state: Mapping[str, Any]) -> dict[str, Any]:
    """A master state under the schema's names; nothing of the caller's is shared."""
    return _named(state, _MASTER_NAMES, "the master state")


def buffer_named(buffer: Mapping[str, Any]) -> dict[str, Any]:
    """A session buffer under the schema's names, with `episode` as a list of one; nothing is shared.

    A part that is null is one that is not there.
    """
    trees.must_be("a session buffer", buffer, Mapping)
    parts = dict(buffer)
    if "episode" in parts:
        single = parts.pop("episode")
        parts["new_episodes"] = [single, *(parts.pop("new_episodes", parts.pop("episodes", [])) or ())]
    document = _named(parts, _BUFFER_NAMES, "the session buffer")
    for key, shapes in BUFFER.items():
        if document.get(key) is None:
            document.pop(key, None)
        elif document[key]:
            trees.must_be(f"{key} of a session buffer", document[key], *shapes)
    return document


def _named(document: Mapping[str, Any], names: Mapping[str, str], what: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, value in document.items():
        name = names.get(key, key)
        if name in named:
            raise BadInput(f"{what} holds {name} under two names", hint=f"keep {name}")
        named[name] = plain_json(value)
    return named


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
