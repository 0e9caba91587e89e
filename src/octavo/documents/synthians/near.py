"""How near memories are to each other: the vectors and cosines that seed 003 tells of."""

from __future__ import annotations

import math

from octavo.domain.likeness import likeness
from octavo.domain.memory import Memory
from octavo.engine.account import Account


def vectors(account: Account, *memories: Memory) -> dict[str, list[float]]:
    """The vectors of memories, an assembly's being its composite, of those that have one."""
    composing = account.explained.indexing.composing
    made = composing.vectors_of(memories) if composing and memories else {}
    return {id_: vector.tolist() for id_, vector in made.items()}


def vector(account: Account, text: str) -> list[float]:
    """The vector of a text, as questions have one; empty without an embedder."""
    own = account.explained.indexing.embedding
    return [] if own is None else [float(value) for value in own.embed([text])[0]]


def alike(account: Account, memory: Memory) -> list[tuple[Memory, float]]:
    """Other memories of its kind and scope that may say the same as one, and how alike each is."""
    others = account.explained.spine.head().alike(memory.kind, memory.scope, memory.text)
    return [(other, likeness(memory.text, other.text)) for other in others if other.id != memory.id]


def nearness(account: Account, memory: Memory) -> dict[str, float]:
    """A memory's cosine with the mean vector, its best with an older one of its scope and a composite."""
    indexing = account.explained.indexing
    if indexing.composing is None or not (own := indexing.composing.vectors_of([memory])):
        return {}
    asked, held = own[memory.id].astype("float32"), indexing.composing.held()
    mean = indexing.embedded().mean(indexing.units_now().manifest.rows)
    groups = [place for place, row in enumerate(held.rows) if row.scope == memory.scope]
    return {
        "mean": float(mean @ asked) / (math.hypot(*mean.tolist()) or 1.0),
        "older": max(indexing.composing.nearest(memory, asked, 1, older=True).values(), default=0.0),
        "composite": max((held.floats[groups] @ asked).tolist(), default=0.0),
    }
