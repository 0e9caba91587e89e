"""The JSON Schemas of seed 000's documents, generated from types and shipped beside this module.

`python -m octavo.interfaces.schemas` writes them anew; a test keeps the files and the types equal. Fields
that a type does not name are allowed everywhere: foreign documents keep theirs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, UnsetType

FOLDER = Path(__file__).parent / "schemas"
_DRAFT = "https://json-schema.org/draft/2020-12/schema"

Unit = Annotated[float, Meta(ge=0, le=1)]
Count = Annotated[int, Meta(ge=0)]
Object = dict[str, Any]


class Turn(Struct, kw_only=True):
    """What one speaker said."""

    speaker: str | UnsetType = msgspec.UNSET
    text: str | UnsetType = msgspec.UNSET


class BufferedEpisode(Struct, kw_only=True):
    """An episode in a session buffer; its id may be temporary."""

    episode_id: str | int | UnsetType | None = msgspec.UNSET
    turn_1: Turn | str | UnsetType = msgspec.UNSET
    turn_2: Turn | str | UnsetType = msgspec.UNSET
    RI_global: float | UnsetType = msgspec.UNSET
    encoding_level: str | UnsetType = msgspec.UNSET


class Episode(BufferedEpisode, kw_only=True):
    """An episode of the master state; it never changes."""

    session_id: str | UnsetType | None = msgspec.UNSET
    timestamp: str | float | UnsetType = msgspec.UNSET


class Candidate(Struct, kw_only=True):
    """Knowledge that waits for consolidation; only what is surer than 0.7 is merged."""

    content: Any = msgspec.UNSET
    type: str | UnsetType = msgspec.UNSET
    confidence: Unit | UnsetType = msgspec.UNSET


class SemanticMemory(Struct, kw_only=True):
    """The knowledge base."""

    facts: list[Any]
    concepts: list[Any]
    relationships: list[Any]


class CoreMemory(Struct, kw_only=True):
    """Who the agent is."""

    identity: Object | list[Any]
    values: list[Any] | Object
    worldview: Object | list[Any]


class Totals(Struct, kw_only=True):
    """What is counted, never stored."""

    total_episodes: Count
    total_sessions: Count
    last_consolidation: str | None


class MasterState(Struct, kw_only=True):
    """One version of an account."""

    version: Count
    timestamp: str | None
    user_id: str
    episodic_memory: list[Episode]
    semantic_memory: SemanticMemory
    core_memory: CoreMemory
    states: dict[str, Object]
    metadata: Totals
    sensory_memory: list[Any] | UnsetType = msgspec.UNSET
    user_profile: Object | UnsetType = msgspec.UNSET
    gks_data: Object | list[Any] | UnsetType = msgspec.UNSET


class BufferTotals(Struct, kw_only=True):
    """How much was said, and for how long."""

    turn_count: Count
    duration_seconds: Annotated[float, Meta(ge=0)]


class SessionBuffer(Struct, kw_only=True):
    """What a sandbox has written and not consolidated yet."""

    sandbox_id: str
    created_at: str
    parent_version: Count
    new_episodes: list[BufferedEpisode]
    semantic_candidates: list[Candidate | str]
    state_deltas: dict[str, Object]
    metadata: BufferTotals
    sensory_candidates: list[Any] | UnsetType = msgspec.UNSET
    core_updates: Object | list[Any] | UnsetType = msgspec.UNSET
    user_profile: Object | UnsetType = msgspec.UNSET
    gks_data: Object | list[Any] | UnsetType = msgspec.UNSET


class Metadata(Struct, kw_only=True):
    """A sandbox's own file."""

    sandbox_id: str
    created_at: str
    parent_version: Count
    name: str | UnsetType = msgspec.UNSET
    user_id: str | UnsetType = msgspec.UNSET
    status: str | UnsetType = msgspec.UNSET


TYPES: dict[str, type[Struct]] = {
    "master_state": MasterState,
    "session_buffer": SessionBuffer,
    "metadata": Metadata,
}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of a document, made from its type."""
    return {"$schema": _DRAFT, "$id": f"octavo:{name}", **msgspec.json.schema(TYPES[name])}


def text(name: str) -> str:
    """The schema as its file has it."""
    return json.dumps(schema(name), ensure_ascii=False, indent=2) + "\n"


def write(folder: Path = FOLDER) -> None:
    """Write every schema into a folder."""
    folder.mkdir(exist_ok=True)
    for name in TYPES:
        (folder / f"{name}.json").write_text(text(name), encoding="utf-8")


if __name__ == "__main__":
    write()
