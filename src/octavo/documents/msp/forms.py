"""The documents of seed 000 as its code handles them: plain JSON objects that also answer to its names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

from msgspec import Struct

from octavo.documents.msp.stores import (
    CORE,
    EPISODIC,
    GKS,
    KNOWLEDGE,
    LISTS,
    PROFILE,
    SECTIONS,
    SEMANTIC,
    SENSORY,
)
from octavo.domain.verdicts import Consolidation
from octavo.engine.fields import plain_json
from octavo.errors import BadInput

LIST_OF = {category: part for part, category in KNOWLEDGE.items() if category}
# Every spelling that is read, and the schema's that is written.
_MASTER_NAMES = {"episodic": EPISODIC, "semantic": SEMANTIC, "sensory": SENSORY, "core": CORE, "gks": GKS}
_BUFFER_NAMES = {
    "episodes": "new_episodes",
    "semantic_updates": "semantic_candidates",
    "state_changes": "state_deltas",
    "state_updates": "state_deltas",
    "sensory": "sensory_candidates",
    "core": "core_updates",
    "profile_updates": "user_profile",
    "gks_updates": "gks_data",
}
# What makes an object an episode: something that was said, or noted of the moment.
_TOLD = frozenset(
    {"turns", "summary", "content", "text", "event", "state_snapshot", "emotive_snapshot", "pulse_snapshot"}
    | {"msp_metadata", "situation"}
)
# What each part of a session buffer is.
BUFFER: dict[str, tuple[type, ...]] = {
    "new_episodes": (list, tuple),
    "semantic_candidates": (list, tuple),
    "sensory_candidates": (list, tuple),
    "state_deltas": (Mapping,),
    "core_updates": (Mapping, list),
    "user_profile": (Mapping,),
    "gks_data": (Mapping, list),
}


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
        if not isinstance(value, Mapping):
            raise BadInput(f"an episode is {type(value).__name__}, not an object")
        if not any(key in _TOLD or str(key).startswith("turn_") for key, told in value.items() if told):
            raise BadInput(
                f"an object of {sorted(map(str, value))[:5]} is no episode",
                hint="say something: turn_1, turn_2, turns, summary, or a snapshot",
            )
        return cls(plain_json(value))


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
    if not isinstance(state, Mapping):
        raise BadInput(f"a master state is {type(state).__name__}, not an object")
    return _named(state, _MASTER_NAMES, "the master state")


def buffer_named(buffer: Mapping[str, Any]) -> dict[str, Any]:
    """A session buffer under the schema's names, with `episode` as a list of one; nothing is shared.

    A part that is null is one that is not there.
    """
    if not isinstance(buffer, Mapping):
        raise BadInput(f"a session buffer is {type(buffer).__name__}, not an object")
    parts = dict(buffer)
    if "episode" in parts:
        single = parts.pop("episode")
        parts["new_episodes"] = [single, *(parts.pop("new_episodes", parts.pop("episodes", [])) or ())]
    document = _named(parts, _BUFFER_NAMES, "the session buffer")
    for key, shapes in BUFFER.items():
        if document.get(key) is None:
            document.pop(key, None)
        elif document[key] and not isinstance(document[key], shapes):
            right = "an object" if Mapping in shapes else "a list"
            raise BadInput(f"{key} of a session buffer is {type(document[key]).__name__}, not {right}")
    return document


def _named(document: Mapping[str, Any], names: Mapping[str, str], what: str) -> dict[str, Any]:
    named: dict[str, Any] = {}
    for key, value in document.items():
        name = names.get(key, key)
        if name in named:
            raise BadInput(f"{what} holds {name} under two names", hint=f"keep {name}")
        named[name] = plain_json(value)
    return named
