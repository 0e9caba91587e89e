"""Which sentences are worth keeping: central, informative, salient, and not said already."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import log

from octavo.domain import cues
from octavo.domain.sentences import Sentence, content, cosine, is_empty, topics
from octavo.domain.text import words

_ROUNDS = 12
_CANDIDATES = 400
_LEAST_WORTH = 0.1
_ANSWERING = frozenset(
    {"assistant", "ai", "agent", "system", "tool", "eva"}
)  # what the person says lasts longer
_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}|\b[A-Z]{2,}\b")
_THAI = re.compile("[\u0e00-\u0e7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A sentence with its score (about 0..2) and the topic of its session that it belongs to."""

    sentence: Sentence
    score: float
    topic: int = 0


def rank(sessions: Sequence[Sequence[Sentence]]) -> list[list[Ranked]]:
    """Score the sentences of each session; rarity of words is counted over all of them."""
    rarity = _rarity([sentence for session in sessions for sentence in session])
    return [_rank_one(session, rarity) for session in sessions]


def choose(
    ranked: Iterable[Ranked],
    budget: int,
    cost: int,
    *,
    novelty: float = 0.6,
    repeat: float = 0.15,
    thrift: float = 0.0,
) -> list[Ranked]:
    """The best sentences that fit into a number of characters, each new beside those before it.

    `cost` is what each sentence takes besides its text; likeness to a chosen one, a topic that already has
    one (`repeat`) and length (`thrift`, per 100 characters) make a sentence worth less.
    """
    able = sorted(ranked, key=lambda item: (-item.score, item.sentence.at, item.sentence.turn))[:_CANDIDATES]
    worth = [item.score - thrift * len(item.sentence.text) / 100 for item in able]
    likeness = [0.0] * len(able)
    covered = [False] * len(able)
    chosen: list[Ranked] = []
    while able:
        values = [round(worth[n] - novelty * likeness[n] - repeat * covered[n], 6) for n in range(len(able))]
        best = max(range(len(able)), key=lambda n: (values[n], -n))
        if values[best] <= _LEAST_WORTH:
            break
        item = able[best]
        for row in (able, worth, likeness, covered):
            del row[best]
        if len(item.sentence.text) + cost <= budget:
            budget -= len(item.sentence.text) + cost
            chosen.append(item)
            for n, other in enumerate(able):
                likeness[n] = max(likeness[n], cosine(item.sentence.bag, other.sentence.bag))
                covered[n] = covered[n] or _place(other) == _place(item)
    return chosen


def _rank_one(session: Sequence[Sentence], rarity: Mapping[str, float]) -> list[Ranked]:
    central = _centrality(session, rarity)
    by_turn: dict[int, list[str]] = {}
    for sentence in session:
        by_turn.setdefault(sentence.turn, []).extend(sentence.bag)
    topic = dict(zip(by_turn, topics(list(by_turn.values())), strict=True))
    return [
        Ranked(
            sentence=sentence,
            score=round(0.5 * share + informs(sentence) + 1.5 * (sentence.salience - 0.5), 6),
            topic=topic[sentence.turn],
        )
        for sentence, share in zip(session, central, strict=True)
    ]


def _centrality(session: Sequence[Sentence], rarity: Mapping[str, float]) -> list[float]:
    """Sentences and words vote for each other until they agree; the best sentence has 1."""
    bags = [sorted(set(sentence.bag)) for sentence in session]
    scores = [1.0] * len(bags)
    for _ in range(_ROUNDS):
        votes: dict[str, float] = {}
        for bag, score in zip(bags, scores, strict=True):
            for word in bag:
                votes[word] = votes.get(word, 0.0) + score
        scores = [sum(votes[word] * rarity[word] for word in bag) / (4 + len(bag)) for bag in bags]
        top = max(scores, default=0.0) or 1.0
        scores = [score / top for score in scores]
    return scores


def _rarity(sentences: Sequence[Sentence]) -> dict[str, float]:
    seen: dict[str, int] = {}
    for sentence in sentences:
        for word in sorted(set(sentence.bag)):
            seen[word] = seen.get(word, 0) + 1
    return {word: log(1 + len(sentences) / count) for word, count in seen.items()}


def informs(sentence: Sentence) -> float:
    """How much a sentence tells by its form: decisions, events, numbers, names; less for praise."""
    text, spoken = sentence.text, words(sentence.text)
    score = {"decision": 0.35, "commitment": 0.3, "preference": 0.2}.get(sentence.kind or "", 0.0)
    score += 0.25 if cues.EVENT.search(text) else 0.0
    score += 0.15 if cues.WHEN.search(text) else 0.0
    score += 0.2 if cues.ARTEFACT.search(text) else 0.0
    score += 0.12 if _NAME.search(text) else 0.0
    score -= 0.3 if cues.DEAD_END.search(text) else 0.0
    score -= 0.35 if spoken and spoken[0] in cues.DANGLING else 0.0
    score -= 0.35 if is_vague(text) else 0.0
    score -= 0.2 if _points_away(text) else 0.0
    score -= 0.25 if not sentence.kind and sum(map(is_telling, set(spoken))) < 2 else 0.0
    score -= 0.15 if sentence.speaker in _ANSWERING else 0.0
    score += _person(text, spoken)
    return score + (0.0 if sentence.kind and len(text) < 25 else _length(len(text)))


def is_vague(text: str) -> bool:
    """Whether a sentence only encourages."""
    return cues.VAGUE.search(text) is not None


def is_telling(word: str) -> bool:
    """Whether a word belongs to some conversations and not to all."""
    return not is_empty(word) and word not in cues.GENERIC


def _points_away(text: str) -> bool:
    """Whether a pronoun comes before anything it could stand for."""
    found = cues.POINTING.search(text)
    return found is not None and len(content(text[: found.start()])) < 3


def _person(text: str, spoken: Sequence[str]) -> float:
    """What is told about oneself lasts; what is said to the other is mostly courtesy."""
    if _THAI.search(text):
        if cues.WISH_TH.search(text):
            return -0.4
        return -0.15 if cues.DANGLING_TH.search(text) else 0.1
    if any(word in cues.FIRST_PERSON for word in spoken):
        return -0.1 if any(word in cues.SECOND_PERSON for word in spoken) else 0.15
    return -0.35 if any(word in cues.SECOND_PERSON for word in spoken) else -0.05


def _length(size: int) -> float:
    if size < 25:
        return -0.25
    return 0.1 if size <= 140 else -0.1 if size <= 220 else -0.4


def _place(item: Ranked) -> tuple[str, int]:
    return item.sentence.session, item.topic
