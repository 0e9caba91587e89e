"""The documents of seed 000 as its code handles them: plain JSON objects that also answer to its names."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from octavo.domain.verdicts import Consolidation
from octavo.errors import BadInput
from octavo.interfaces.documents.msp.stores import CORE, EPISODIC, GKS, PROFILE, SEMANTIC, SENSORY, STATES

_LISTS = {"fact": "facts", "concept": "concepts", "relationship": "relationships"}
# Every spelling that is read, and the schema's that is written.
MASTER_NAMES = {"episodic": EPISODIC, "semantic": SEMANTIC, "sensory": SENSORY, "core": CORE, "gks": GKS}
BUFFER_NAMES = {
    "episodes": "new_episodes",
    "semantic_updates": "semantic_candidates",
    "state_changes": "state_deltas",
    "state_updates": "state_deltas",
    "sensory": "sensory_candidates",
    "core": "core_updates",
    "profile_updates": "user_profile",
    "gks_updates": "gks_data",
}
BUFFER_LISTS = ("new_episodes", "semantic_candidates", "sensory_candidates")
BUFFER_OBJECTS = ("state_deltas", "core_updates", "user_profile", "gks_data")


class Semantic(dict[str, Any]):
    """The semantic store; adding knowledge puts each element into the list of its type."""

    def __add__(self, knowledge: object) -> Semantic:
        if not isinstance(knowledge, list | tuple):
            return NotImplemented
        added = Semantic(copy.deepcopy(dict(self)))
        for item in knowledge:
            kind = item.get("type") if isinstance(item, Mapping) else None
            added.setdefault(_LISTS.get(str(kind), "facts"), []).append(copy.deepcopy(item))
        return added


class MasterState(dict[str, Any]):
    """One version of an account as the seed's document; `base` is the version it was made on."""

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

    @property
    def version(self) -> int:
        """The version this state is, or is to become."""
        return int(self["version"])

    @property
    def episodic(self) -> list[Any]:
        """Every episode."""
        return list(self.get(EPISODIC, ()))

    @property
    def semantic(self) -> Semantic:
        """Facts, concepts, relationships."""
        return Semantic(self.get(SEMANTIC, {}))

    @property
    def sensory(self) -> list[Any]:
        """Sensory records."""
        return list(self.get(SENSORY, ()))

    @property
    def core(self) -> dict[str, Any]:
        """Identity, values, worldview."""
        return dict(self.get(CORE, {}))

    @property
    def profile(self) -> dict[str, Any]:
        """What is known of the user."""
        return dict(self.get(PROFILE, {}))

    @property
    def gks(self) -> Any:
        """The knowledge system."""
        return self.get(GKS, {})

    @property
    def states(self) -> dict[str, Any]:
        """The state files."""
        return dict(self.get(STATES, {}))


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsolidatedData:
    """What the rules let through, and what they did with the rest."""

    episodes: list[dict[str, Any]]
    knowledge: list[Any]
    sensory: list[Any]
    core_updates: dict[str, Any]
    profile_updates: dict[str, Any]
    gks_updates: list[Any]
    state_changes: dict[str, Any]
    refused: tuple[dict[str, Any], ...] = ()
    merged: tuple[dict[str, Any], ...] = ()


def master_named(given: Mapping[str, Any]) -> dict[str, Any]:
    """A master state under the schema's names; nothing of the caller's is shared."""
    return _named(given, MASTER_NAMES, "the master state")


def buffer_named(given: Mapping[str, Any]) -> dict[str, Any]:
    """A session buffer under the schema's names, with `episode` as a list of one; nothing is shared."""
    if not isinstance(given, Mapping):
        raise BadInput(f"a session buffer is {type(given).__name__}, not an object")
    named = dict(given)
    if "episode" in named:
        single = named.pop("episode")
        named["new_episodes"] = [single, *named.pop("new_episodes", named.pop("episodes", []))]
    found = _named(named, BUFFER_NAMES, "the session buffer")
    for key in BUFFER_LISTS:
        if not isinstance(found.get(key, []), list | tuple):
            raise BadInput(f"{key} of a session buffer is {type(found[key]).__name__}, not a list")
    for key in BUFFER_OBJECTS:
        if not isinstance(found.get(key, {}), Mapping | list):
            raise BadInput(f"{key} of a session buffer is {type(found[key]).__name__}, not an object")
    return found


def _named(given: Mapping[str, Any], names: Mapping[str, str], what: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in given.items():
        name = names.get(key, key)
        if name in found:
            raise BadInput(f"{what} holds {name} under two names", hint=f"keep {name}")
        found[name] = copy.deepcopy(value)
    return found
