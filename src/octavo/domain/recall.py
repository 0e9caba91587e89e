"""What recall is asked and what it returns, and the parts of a score that come from the memory itself."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from octavo.domain.filters import Filter
from octavo.domain.memory import Memory
from octavo.domain.policy import Policy
from octavo.domain.ranking import Recipe, importance, retention
from octavo.errors import BadInput

STREAMS = (
    "words",
    "meaning",
    "time",
    "speaker",
    "salience",
    "emotion",
    "links",
    "neighbours",
    "abstractions",
)

# The seven streams of HeptStreamRAG in our words, with its weights; docs/recall.md explains the mapping.
HEPT: Mapping[str, float] = {
    "emotion": 0.35,
    "words": 0.20,
    "salience": 0.15,
    "meaning": 0.10,
    "time": 0.10,
    "links": 0.05,
    "abstractions": 0.05,
}

# Said to a person, in this order.
_WORDS = {
    "words": "shares words with the question",
    "meaning": "means something similar",
    "speaker": "was said by the person asked about",
    "time": "is from the time asked about",
    "salience": "matters",
    "emotion": "felt the same",
    "links": "is linked to a hit",
    "abstraction": "is part of a summary that fits",
    "assembly": "belongs to an assembly that fits",
    "layer": "its layer",
    "age": "its age",
    "length": "its length",
    "person": "was said by a person",
    "address": "is about the one spoken to",
    "rerank": "fits word by word",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A recalled memory: which turn matched, its score, the parts of the score, and where it comes from."""

    memory: Memory
    turn: int | None
    score: float
    parts: Mapping[str, float]
    version: int
    is_fresh: bool = True
    notes: tuple[str, ...] = ()

    @property
    def reasons(self) -> tuple[tuple[float, str], ...]:
        """The parts that counted, each with its words, strongest first."""
        told = sorted(((v, n) for n, v in self.parts.items() if abs(v) >= 0.005), key=lambda p: -abs(p[0]))
        return tuple((value, _WORDS.get(name, name)) for value, name in told)

    @property
    def why(self) -> str:
        """The parts that counted and what else is to be known, in one sentence."""
        told = "; ".join(f"{words} ({value:+.2f})" for value, words in self.reasons)
        return "; ".join((told or "nothing in particular", *self.notes))

    @property
    def text(self) -> str:
        """What matched: the turn, or the whole memory."""
        return self.memory.text if self.turn is None else self.memory.turns[self.turn].text


@dataclass(frozen=True, slots=True, kw_only=True)
class Trail:
    """How a layered recall went: the layer looked at, its best score, and whether that sufficed."""

    layer: str
    best: float
    sufficed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One recall's request, checked."""

    query: str
    k: int
    unit: str
    filter: Filter
    version: int
    now: datetime
    streams: Mapping[str, float] | None = None
    emotion: str | None = None
    vector: Sequence[float] | None = None
    diverse: bool = False
    mark: int = 0  # the version up to which the index is asked; what is newer is searched exactly


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The hits and what a person should know about how they were found."""

    hits: tuple[Hit, ...]
    notes: tuple[str, ...] = ()
    trail: tuple[Trail, ...] = ()


def streams_of(wanted: str | Sequence[str] | Mapping[str, float] | None) -> Mapping[str, float] | None:
    """Streams by name, by weight, or the preset `hept`; None means all of them as measured best."""
    if wanted is None or wanted == "hept":
        return None if wanted is None else HEPT
    if isinstance(wanted, Mapping):
        streams = dict(wanted)
    else:
        streams = dict.fromkeys([wanted] if isinstance(wanted, str) else wanted, 1.0)
    unknown = sorted(set(streams) - set(STREAMS))
    if unknown or not streams:
        raise BadInput(f"there is no stream {unknown}", hint=f"use {', '.join(STREAMS)}, or 'hept'")
    return streams


def weighed(
    parts: Mapping[str, float],
    memory: Memory,
    *,
    now: datetime,
    policy: Policy,
    recipe: Recipe,
    used: tuple[int, float] = (0, 0.0),
    emotion: str | None = None,
) -> dict[str, float]:
    """The question's parts and the memory's own: salience with its uses, age, layer, emotion."""
    days = (now - memory.at).total_seconds() / 86_400
    factor = policy.kinds.of(memory.kind).decay
    own = importance(
        salience=salience_of(memory, used),
        retained=retention(factor, days),
        layer=memory.layer,
        recipe=recipe,
    )
    felt = memory.emotion.label if memory.emotion else None
    if emotion is not None and felt is not None and felt.casefold() == emotion.casefold():
        own["emotion"] = recipe.emotion
    found = dict(parts)
    for name, value in own.items():
        if value:
            found[name] = value
    return found


def salience_of(memory: Memory, used: tuple[int, float]) -> float:
    """Salience after use: feedback moves it by at most 0.3, frequent use lifts it by at most 0.2."""
    count, feedback = used
    lift = min(0.2, 0.05 * math.log1p(count))
    return min(1.0, max(0.0, memory.salience + 0.3 * math.tanh(feedback / 3) + lift))


def chosen(parts: Mapping[str, float], streams: Mapping[str, float]) -> dict[str, float]:
    """The parts of the streams asked for, under their weights; priors stay."""
    scale = max(streams.values())
    return {
        name: value * (streams[_STREAM_OF.get(name, name)] / scale)
        for name, value in parts.items()
        if _STREAM_OF.get(name, name) in streams
    } | {name: value for name, value in parts.items() if name in _PRIORS}


_STREAM_OF = {"abstraction": "abstractions", "address": "speaker"}
_COMPARABLE = 0.7
_PRIORS = ("length", "person", "layer", "age", "assembly")


def per_memory(hits: Iterable[Hit]) -> list[Hit]:
    """One hit a memory: its best turn."""
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.memory.id not in best or hit.score > best[hit.memory.id].score:
            best[hit.memory.id] = hit
    return list(best.values())


def ordered(hits: Iterable[Hit]) -> list[Hit]:
    """Best first; of two that contrast and fit about as well, the newer comes first, the older is marked."""
    found = sorted(hits, key=_place)
    if not any(hit.memory.links for hit in found):
        return found
    best = {hit.memory.id: hit for hit in reversed(found)}
    newer = {old: hit for hit in best.values() for old in hit.memory.linked("contrasts")}
    marked = []
    for hit in found:
        rival = newer.get(hit.memory.id)
        if rival is not None and rival.score >= _COMPARABLE * hit.score:
            note = f"a newer memory says otherwise: {rival.memory.id}"
            below = min(hit.score, rival.score - 1e-6)
            hit = replace(hit, score=below, notes=(*hit.notes, note))  # noqa: PLW2901  # the marked one
        marked.append(hit)
    return sorted(marked, key=_place)


def _place(hit: Hit) -> tuple[float, str, int]:
    return (-hit.score, hit.memory.id, -1 if hit.turn is None else hit.turn)


def within(hits: Sequence[Hit], budget: int | None, count: Callable[[str], int]) -> list[Hit]:
    """The first hits whose texts fit the budget."""
    if budget is None:
        return list(hits)
    kept, spent = [], 0
    for hit in hits:
        spent += count(hit.text)
        if spent > budget:
            break
        kept.append(hit)
    return kept
