"""QuickRecal: seed 003's score of how readily a memory comes back, as factors that anybody can recompute.

It is a diagnosis and no part of the ranking; what recall counts is salience after use.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from octavo.domain.likeness import likeness
from octavo.domain.memory import Memory
from octavo.domain.text import words
from octavo.engine.account import Account
from octavo.errors import BadInput, NotFound

HPC_QR = {
    "r_geometry": 0.35,
    "causal_novelty": 0.35,
    "self_org": 0.20,
    "overlap": -0.10,
    "recency": 0.05,
    "emotion": 0.05,
}
STANDARD = {
    "relevance": 0.25,
    "recency": 0.15,
    "emotion": 0.15,
    "importance": 0.10,
    "personal": 0.10,
    "surprise": 0.10,
    "diversity": 0.05,
    "coherence": 0.05,
    "information": 0.05,
    "overlap": -0.10,
}
MINIMAL = {"relevance": 0.4, "recency": 0.4, "importance": 0.2}
MODES: Mapping[str, Mapping[str, float]] = {"hpc_qr": HPC_QR, "standard": STANDARD, "minimal": MINIMAL}
OPPOSITES = (("increase", "decrease"), ("up", "down"), ("positive", "negative"), ("high", "low"))
_RECENT_DAYS, _DECAY_A_DAY, _LEAST = 3.0, 0.1, 0.02
_ALIKE, _SHARED = 0.75, 0.3


def calculate(account: Account, id_: str, mode: str = "hpc_qr") -> dict[str, Any]:
    """The factors of a memory at this version and what they add up to; a diagnosis, no part of recall."""
    memory, now = account.get(id_), account.explained.spine.now()
    if memory is None:
        raise NotFound(f"there is no memory {id_!r} to look at")
    duplicate = max((like for _, like in _alike(account, memory)), default=0.0)
    days = max(0.0, (now - memory.at).total_seconds() / 86_400)
    found = factors(memory, days=days, duplicate=duplicate, **_nearness(account, memory))
    return {"quickrecal_score": score(found, mode), "factors": found}


def contradictions(account: Account) -> list[dict[str, Any]]:
    """Pairs that contrast: those that say so by a link, and alike ones with opposite words."""
    pairs: dict[frozenset[str], dict[str, Any]] = {}
    for memory in account.memories(kind=("fact", "register", "canon")):
        for other, like in _alike(account, memory):
            if contradict(memory.text, other.text, like):
                pair = {"memory_ids": sorted((memory.id, other.id)), "reason": "opposite words"}
                pairs.setdefault(frozenset((memory.id, other.id)), pair)
        for old in memory.linked("contrasts"):
            if account.get(old) is not None:
                pairs[frozenset((memory.id, old))] = {"memory_ids": [memory.id, old], "reason": "contrasts"}
    return list(pairs.values())


def factors(
    memory: Memory,
    *,
    days: float = 0.0,
    mean: float = 0.0,
    older: float = 0.0,
    composite: float = 0.0,
    duplicate: float = 0.0,
    relevance: float = 0.5,
) -> dict[str, float]:
    """The factors of a memory, each between 0 and 1, from cosines that whoever has vectors hands in.

    `days` is its age, `mean` its cosine with the account's mean vector, `older` the best with an older one,
    `composite` with an assembly; `duplicate` is how like it is to another text. Novelty rises with distance.
    """
    felt = memory.emotion.intensity if memory.emotion and memory.emotion.intensity is not None else 0.0
    told = {
        "r_geometry": 1 - mean,
        "causal_novelty": 1 - older,
        "self_org": composite,
        "overlap": duplicate,
        "recency": math.exp(-days / _RECENT_DAYS),
        "emotion": felt,
        "relevance": relevance,
        "importance": memory.salience,
        "personal": 1.0 if memory.turns else 0.5,
        "surprise": 1 - older,
        "diversity": 1 - duplicate,
        "coherence": composite,
        "information": min(1.0, len(set(words(memory.text))) / 50),
        "days": days,
    }
    return {name: value if name == "days" else min(1.0, max(0.0, value)) for name, value in told.items()}


def score(
    found: Mapping[str, float], mode: str = "hpc_qr", weights: Mapping[str, float] | None = None
) -> float:
    """The score between 0 and 1; `custom` takes weights of the caller's own."""
    chosen = weights if mode == "custom" and weights else MODES.get(mode)
    if chosen is None:
        raise BadInput(f"mode {mode!r} is unknown", hint=f"use {', '.join(MODES)}, or custom with weights")
    if unknown := sorted(set(chosen) - set(found)):
        raise BadInput(f"there is no factor {unknown[0]!r}", hint=f"use {', '.join(sorted(found))}")
    total = sum(weight * found[name] for name, weight in chosen.items())
    if mode == "hpc_qr":
        total *= max(_LEAST, math.exp(-_DECAY_A_DAY * found.get("days", 0.0)))
    return min(1.0, max(0.0, total))


def contradict(one: str, other: str, like: float) -> bool:
    """Whether two statements that are alike and share words say the opposite of each other."""
    first, second = set(words(one)), set(words(other))
    shared = len(first & second) / max(1, min(len(first), len(second)))
    if like < _ALIKE or shared <= _SHARED:
        return False
    return any(
        (_says(first, a) and _says(second, b)) or (_says(first, b) and _says(second, a)) for a, b in OPPOSITES
    )


def _alike(account: Account, memory: Memory) -> list[tuple[Memory, float]]:
    """Other memories of its kind and scope that may say the same as one, and how alike each is."""
    others = account.explained.spine.head().alike(memory.kind, memory.scope, memory.text)
    return [(other, likeness(memory.text, other.text)) for other in others if other.id != memory.id]


def _nearness(account: Account, memory: Memory) -> dict[str, float]:
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


def _says(said: set[str], word: str) -> bool:
    return not said.isdisjoint((word, f"{word}s", f"{word}d", f"{word}ed"))
