"""What recall is asked and what it returns, and the parts of a score that come from the memory itself."""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime

from msgspec import Struct

from octavo.domain.corrections import Replacement
from octavo.domain.filters import Filter
from octavo.domain.memory import Emotion, Memory
from octavo.domain.orders import Order
from octavo.domain.ranking import Recipe
from octavo.domain.units import USERS, is_person
from octavo.errors import BadInput

EQUAL = 1e-6  # so far apart scores are equals
K = 10  # hits, unless somebody says how many or how long they may be
_MOST, _SHORT = 100, 15  # hits within a budget, and the tokens of a short one
STREAMS = (
    *("words", "meaning", "time", "speaker", "salience"),
    *("emotion", "links", "neighbours", "abstractions"),
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
# What the documents call them, and the three layers that a stream of theirs looks at.
_DOCUMENTS = {
    "narrative": "words",
    "sensory": "meaning",
    "temporal": "time",
    "intuition": "links",
    "reflection": "abstractions",
}
_LAYERS = ("sphere", "core", "episode")
STREAM_NAMES = (*STREAMS, "hept", *_DOCUMENTS, *_LAYERS)

# Said to a person, in this order.
_WORDS = {
    "words": "shares words with the question",
    "meaning": "means something similar",
    "speaker": "was said by the person asked about",
    "time": "is from the time asked about",
    "salience": "matters",
    "emotion": "felt the same",
    "mood": "suits the mood",
    "links": "is linked to a hit",
    "abstraction": "is part of a summary that fits",
    "assembly": "belongs to an assembly that fits",
    "layer": "its layer",
    "age": "its age",
    "length": "its length",
    "person": "was said by a person",
    "address": "is about the one spoken to",
    "rerank": "is nearer to the question than most of what came",
    "substance": "tells something",
    "asked": "asks the same again",
    "wish": "is a wish of the user's",
    "current": "newer and older of one thing change places",
}
# The same, where it speaks against a hit. The second look compares hits with each other, and proves no fit.
_AGAINST = {
    "meaning": "means something else",
    "salience": "matters little",
    "emotion": "felt otherwise",
    "mood": "does not suit the mood",
    "substance": "tells little",
    "asked": "only asks the same",
    "rerank": "is further from the question than most of what came",
}


class Hit(Struct, frozen=True, kw_only=True):
    """A recalled memory: which turn matched, its score, the parts of the score, and where it comes from."""

    memory: Memory
    turn: int | None
    score: float
    parts: Mapping[str, float]
    version: int
    is_fresh: bool = True
    notes: tuple[str, ...] = ()
    replaced: Replacement | None = None
    shares_words: bool = True  # whether the text itself does, and not only its neighbours
    assembly: str | None = None  # the id of the assembly that lifted it
    passage: int = 0  # which of the passages of a long text matched best

    def __repr__(self) -> str:
        return f"Hit({self.score:.2f}, {self.memory.id!r}, {self.text[:40]!r})"

    @property
    def reasons(self) -> tuple[tuple[float, str], ...]:
        """The parts that counted, each with its words, strongest first."""
        told = sorted(((v, n) for n, v in self.parts.items() if abs(v) >= 0.005), key=lambda p: -abs(p[0]))
        return tuple((value, self._words_for(name, value)) for value, name in told)

    def _words_for(self, name: str, value: float) -> str:
        speaker = None if self.turn is None else self.memory.turns[self.turn].speaker
        if name == "words" and not self.shares_words:
            return "stands beside words of the question"
        if name == "person" and not self._is_of_a_person(speaker):
            return "was written down" if self.turn is None else f"was said by {speaker}"
        return (_AGAINST if value < 0 and name in _AGAINST else _WORDS).get(name, name)

    def _is_of_a_person(self, speaker: str | None) -> bool:
        """Whether a person said what matched: not the agent who kept it, nor whoever talks with a user."""
        own, speakers = (speaker or "").casefold(), {turn.speaker.casefold() for turn in self.memory.turns}
        if speaker is None or not is_person(own) or f"agent:{own}" == self.memory.actor.casefold():
            return False
        return own in USERS or not USERS & speakers

    @property
    def why(self) -> str:
        """The parts that counted and what else is to be known, in one sentence."""
        told = "; ".join(f"{words} ({value:+.2f})" for value, words in self.reasons)
        return "; ".join((told or "nothing in particular", *self.notes))

    @property
    def text(self) -> str:
        """What matched: the turn, or the whole memory."""
        return self.memory.text if self.turn is None else self.memory.turns[self.turn].text


class LayerTried(Struct, frozen=True, kw_only=True):
    """One step of a layered recall: the layer looked at, its best score, and whether that sufficed."""

    layer: str
    best: float
    sufficed: bool


class Query(Struct, frozen=True, kw_only=True):
    """One recall's request, checked."""

    text: str
    k: int
    unit: str
    filter: Filter
    version: int
    now: datetime
    streams: Mapping[str, float] | None = None
    emotion: str | None = None
    mood: Emotion | None = None
    vector: Sequence[float] | None = None
    rerank: bool = True

    def uses(self, stream: str) -> bool:
        """Whether a stream is asked for: all are, unless some are named."""
        return self.streams is None or stream in self.streams


class Hits(list[Hit]):
    """Hits, best first; `notes` say what was missing, `trail` how a layered recall went.

    `orders` are what the user asked for once and for all, as far as it applies to the question.
    """

    def __init__(
        self,
        hits: Iterable[Hit] = (),
        *,
        notes: Sequence[str] = (),
        trail: Sequence[LayerTried] = (),
        orders: Sequence[Order] = (),
    ) -> None:
        super().__init__(hits)
        self.notes = tuple(notes)
        self.trail = tuple(trail)
        self.orders = tuple(orders)


def streams_of(
    names: str | Sequence[str] | Mapping[str, float] | None,
) -> tuple[Mapping[str, float] | None, tuple[str, ...] | None]:
    """Streams by name, by weight, or the preset `hept`, and the kinds that a document's layer names.

    None means all streams as measured best, or all kinds. The documents' own names are taken too.
    """
    if names is None or names in ("hept", ["hept"]):
        return (None if names is None else HEPT), None
    if isinstance(names, Mapping):
        weights = dict(names)
    else:
        weights = dict.fromkeys([names] if isinstance(names, str) else names, 1.0)
    unknown = sorted(set(weights) - set(STREAM_NAMES) | (set(weights) & {"hept"}))
    if unknown or not weights:
        raise BadInput(f"there is no stream {unknown}", hint=f"use {', '.join(STREAMS)}, or 'hept'")
    kinds = tuple(name for name in _LAYERS if name in weights)
    streams = {_DOCUMENTS.get(name, name): weight for name, weight in weights.items() if name not in kinds}
    return streams or None, kinds or None


def weighed(
    parts: Mapping[str, float],
    memory: Memory,
    *,
    recipe: Recipe,
    used: tuple[int, float] | None = None,
    emotion: str | None = None,
) -> dict[str, float]:
    """The parts that the index computed, with what it does not know: the memory's uses and its emotion."""
    told = {name: value for name, value in parts.items() if value or name not in OWN}
    if used is not None:
        told["salience"] = recipe.salience * (salience_of(memory, used) - 0.5)
    felt = memory.emotion.label if memory.emotion else None
    if emotion is not None and felt is not None and felt.casefold() == emotion.casefold():
        told["emotion"] = recipe.emotion
    return told


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
_PRIORS = ("length", "person", "layer", "age", "assembly")
OWN = ("salience", "age", "layer")  # what a memory brings along, whatever the question is


def per_memory(hits: Iterable[Hit]) -> list[Hit]:
    """One hit a memory: its best turn."""
    best: dict[str, Hit] = {}
    for hit in hits:
        if hit.memory.id not in best or hit.score > best[hit.memory.id].score:
            best[hit.memory.id] = hit
    return list(best.values())


def ordered(hits: Iterable[Hit]) -> list[Hit]:
    """Best first, of equals the oldest; what the way of adding up differs by makes no difference."""
    rows: list[Hit] = []
    place, before = 0, math.inf
    for hit in sorted(hits, key=lambda hit: -hit.score):
        if before - hit.score > EQUAL:
            place = len(rows)
        before = hit.score
        insort(rows, hit, lo=place, key=lambda hit: (hit.memory.id, -1 if hit.turn is None else hit.turn))
    return rows


def most_within(budget: int) -> int:
    """How many hits to look for that a budget of tokens is filled with: the shorter they are, the more."""
    return min(_MOST, max(K, budget // _SHORT))


def within(hits: Sequence[Hit], budget: int, count: Callable[[str], int]) -> list[Hit]:
    """The first hits whose texts fit the budget."""
    kept, spent = [], 0
    for hit in hits:
        spent += count(hit.text)
        if spent > budget:
            break
        kept.append(hit)
    return kept
