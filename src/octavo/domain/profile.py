"""The profile: the facts that tell whom an agent is talking to, current ones only, spread over topics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from octavo.domain.corrections import CERTAIN
from octavo.domain.memory import Memory
from octavo.domain.replacing import both_hold, probability
from octavo.domain.text import STOP_WORDS, words

MOST = 40  # facts that are chosen; how many stand is the budget's
_POOL = 60  # of so many the current ones are told from those they replaced
_DAYS = 60.0
_RECENT, _USED, _AGAIN = 0.3, 0.15, 0.15
_SHARED = 0.4  # of the telling words of the shorter of two facts, before they are compared closely


def profile(facts: Sequence[Memory], uses: Mapping[str, int]) -> list[Memory]:
    """The facts that matter most, oldest first, so that a new one comes behind those that stood already."""
    if not facts:
        return []
    newest = max(fact.at for fact in facts)

    def weight(fact: Memory) -> float:
        days = (newest - fact.at).total_seconds() / 86_400
        return (
            fact.salience
            + _RECENT * math.exp(-days / _DAYS)
            + _USED * math.log1p(max(0, uses.get(fact.id, 0)))
        )

    weighed = sorted(((weight(fact), fact) for fact in facts), key=lambda pair: (-pair[0], pair[1].id))[
        :_POOL
    ]
    replaced = _replaced([fact for _, fact in weighed])
    return sorted(
        _spread([(value, fact) for value, fact in weighed if fact.id not in replaced]),
        key=lambda fact: (fact.at, fact.id),
    )


def _replaced(facts: Sequence[Memory]) -> set[str]:
    """Those that a newer one about the same took the place of, for certain."""
    told = [
        (fact, frozenset(words(fact.text)) - STOP_WORDS) for fact in sorted(facts, key=lambda f: (f.at, f.id))
    ]
    return {
        older.id
        for (older, ours), (newer, theirs) in combinations(told, 2)
        if len(ours & theirs) >= max(1, min(len(ours), len(theirs)) * _SHARED)
        and probability("", older.text, newer.text) > CERTAIN
        and not both_hold("", older.text, newer.text)
    }


def _spread(weighed: Sequence[tuple[float, Memory]]) -> list[Memory]:
    """The best ones, where each further fact about the same weighs less."""
    chosen: list[Memory] = []
    about: Counter[str] = Counter()
    left = list(weighed)
    while left and len(chosen) < MOST:
        best = max(left, key=lambda pair: pair[0] - _AGAIN * about[_about(pair[1])])
        left.remove(best)
        about[_about(best[1])] += 1
        chosen.append(best[1])
    return chosen


def _about(fact: Memory) -> str:
    """What a fact is about: its topic or category, else the first word that tells something."""
    if fact.topic or fact.category:
        return fact.topic or fact.category or ""
    return next((word for word in words(fact.text) if word not in STOP_WORDS), "")
