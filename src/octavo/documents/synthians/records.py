"""MemoryEntry and MemoryAssembly as seed 003 writes them, read from every spelling that its files have."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from copy import copy
from datetime import UTC, datetime
from typing import Any, ClassVar, Self

from octavo.documents.trees import must_be
from octavo.domain.episodes import moment
from octavo.engine.fields import Count
from octavo.engine.surface import fitted
from octavo.errors import BadInput

_NEWEST_MAJOR = 1


class _Recorded:
    """What both have: an identity by id, and JSON in and out; unknown fields are kept."""

    id: str
    extra: dict[str, Any]
    _fields: ClassVar[tuple[str, ...]]
    _spellings: ClassVar[Mapping[str, tuple[str, ...]]]

    def __init_subclass__(cls) -> None:
        cls._fields = tuple(inspect.signature(cls).parameters)

    def to_dict(self) -> dict[str, Any]:
        """Every field of the constructor, and whatever else came with it."""
        return {**self.extra, **{name: copy(getattr(self, name)) for name in self._fields}}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read one from its JSON, by whichever spelling a field has."""
        must_be(f"a {cls.__name__}", data, Mapping)
        taken: dict[str, Any] = {}
        rest = dict(data)
        for name in cls._fields:
            for spelling in (name, *cls._spellings.get(name, ())):
                if spelling in rest:
                    value = rest.pop(spelling)
                    taken.setdefault(name, value)
        made = cls(**taken)
        made.extra = rest
        return made

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and other.id == self.id

    def __hash__(self) -> int:
        return hash((type(self).__name__, self.id))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r})"


class MemoryEntry(_Recorded):
    """A single piece of information with its vector and metadata."""

    _spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "id": ("memory_id",),
        "content": ("text",),
        "quick_recal_score": ("quickrecal_score",),
        "timestamp": ("created_at", "creation_time"),
    }

    @fitted
    def __init__(
        self,
        id: str,  # noqa: A002  # the seed's word
        content: str,
        embedding: Sequence[Any] | None = None,
        timestamp: str | float | datetime | None = None,
        memory_type: str = "general",
        metadata: Mapping[str, Any] | None = None,
        quick_recal_score: float = 0.5,
        tags: Sequence[str] | None = None,
        emotion_metadata: Mapping[str, Any] | None = None,
    ) -> None:
        self.id = id
        self.content = content
        self.embedding = list(embedding) if embedding is not None else []
        self.timestamp = spelt(timestamp)
        self.memory_type = memory_type
        self.metadata = dict(metadata or {})
        self.quick_recal_score = clamped(quick_recal_score)
        self.tags = list(tags or [])
        self.emotion_metadata = dict(emotion_metadata or {})
        self.extra: dict[str, Any] = {}


class MemoryAssembly(_Recorded):
    """Related entries with a composite vector and the assemblies it was merged from."""

    _spellings: ClassVar[Mapping[str, tuple[str, ...]]] = {
        "id": ("assembly_id",),
        "memory_ids": ("memories", "members"),
        "created_at": ("creation_time",),
        "assembly_schema_version": ("schema_version",),
    }

    @fitted
    def __init__(
        self,
        id: str,  # noqa: A002  # the seed's word
        name: str = "",
        composite_embedding: Sequence[Any] | None = None,
        memory_ids: Sequence[Any] = (),
        created_at: str | float | datetime | None = None,
        updated_at: str | float | datetime | None = None,
        tags: Sequence[str] | None = None,
        topics: Sequence[str] | None = None,
        merged_from: Sequence[str] | None = None,
        assembly_schema_version: str | float = "1.0",
        vector_index_updated_at: str | float | datetime | None = None,
        activation_count: Count = 0,
    ) -> None:
        self.id = id
        self.name = name
        self.composite_embedding = list(composite_embedding) if composite_embedding is not None else []
        self.memory_ids = [
            str(one.get("id") or one.get("memory_id")) if isinstance(one, Mapping) else str(one)
            for one in memory_ids
        ]
        self.created_at = spelt(created_at)
        self.updated_at = self.created_at if updated_at is None else spelt(updated_at)
        self.tags = list(tags or [])
        self.topics = list(topics or [])
        self.merged_from = list(merged_from or [])
        self.assembly_schema_version = str(assembly_schema_version)
        indexed = vector_index_updated_at
        self.vector_index_updated_at = None if indexed is None else spelt(indexed)
        self.activation_count = activation_count
        self.extra: dict[str, Any] = {}

    @property
    def is_newer(self) -> bool:
        """Whether it was written under a schema of a higher major number."""
        major = self.assembly_schema_version.partition(".")[0]
        return major.isdecimal() and int(major) > _NEWEST_MAJOR


def spelt(value: str | float | datetime | None) -> str:
    """A time as aware ISO 8601; none is now."""
    return (moment(value) or datetime.now(UTC)).isoformat()


def clamped(value: Any) -> float:
    """A score between 0 and 1."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise BadInput(f"a score of {value!r:.80} is no number")
    return min(1.0, max(0.0, float(value)))


def vector_problem(values: Sequence[Any]) -> str | None:
    """Why a vector cannot be used, None if it can."""
    if not values:
        return "it has no vector"
    if not all(isinstance(v, int | float) and not isinstance(v, bool) and math.isfinite(v) for v in values):
        return "its vector holds NaN, Inf or what is no number"
    if not any(values):
        return "its vector is all zeros"
    return None
