"""The profile: the facts that tell whom an agent is talking to, current ones only, spread over topics."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import combinations

from octavo.domain.corrections import CERTAIN, tells_a_change
from octavo.domain.memory import Memory
from octavo.domain.readings import Reading, read
from octavo.domain.replacing import both_hold, probability
from octavo.domain.rivals import shared_head
from octavo.domain.text import STOP_WORDS, words

MOST = 40  # facts that are chosen; how many stand is the budget's
_POOL = 60  # so many at once the current ones are told from those they replaced
_DAYS = 60.0
_RECENT, _USED, _AGAIN = 0.3, 0.15, 0.15
_MAIN, _OFTEN = 0.3, 0.2  # what is said of the one whom most facts are about, and how many that takes
_LOOKED_AT = 80
_PIECE = 4  # letters of Thai that stand for a word
_SHARED, _SHARED_THAI = 0.4, 0.2  # of the terms of the shorter of two facts, before they are compared closely
_PRONOUNS = frozenset("i im ive my she shes her he hes his they theyre their we were weve our".split())  # noqa: SIM905


def profile(facts: Sequence[Memory], uses: Mapping[str, int], *, is_talk: bool = False) -> list[Memory]:
    """The facts that matter most, the best first; of talk only what says so itself replaces anything."""
    if not facts:
        return []
    newest = max(fact.at for fact in facts)
    main = _main(facts)

    def weight(fact: Memory) -> float:
        days = (newest - fact.at).total_seconds() / 86_400
        return (
            fact.salience
            + _RECENT * math.exp(-days / _DAYS)
            + _USED * math.log1p(max(0, uses.get(fact.id, 0)))
            + _MAIN * (_opening(fact)[0] in main)
        )

    weighed = sorted(((weight(fact), fact) for fact in facts), key=lambda pair: (-pair[0], pair[1].id))
    current: list[tuple[float, Memory]] = []
    for start in range(0, len(weighed), _POOL):
        current += weighed[start : start + _POOL]
        replaced = _replaced([fact for _, fact in current], is_talk)
        current = [(value, fact) for value, fact in current if fact.id not in replaced]
        if len(current) >= MOST:
            break
    return _spread(current, main)


def _main(facts: Sequence[Memory]) -> frozenset[str]:
    """How the one is called whom most facts are about: a name, "user", or a pronoun."""
    named = Counter(name for fact in facts if (name := _opening(fact)[0]) not in STOP_WORDS)
    enough = max(2, _OFTEN * len(facts))
    return _PRONOUNS | {name for name, often in named.most_common(1) if often >= enough}


def _opening(fact: Memory) -> tuple[str, str]:
    """Whom a fact is about and what it says of them, by its first words."""
    if fact.text.isascii():
        first, *rest = words(fact.text[:_LOOKED_AT].replace("'s ", " ", 1)) or [""]
        return first, next((word for word in rest if word not in STOP_WORDS), first)
    return fact.text[:_PIECE], fact.text[_PIECE : 2 * _PIECE]


def _replaced(facts: Sequence[Memory], is_talk: bool) -> set[str]:
    """Those that a newer one about the same took the place of, for certain."""
    told = [(fact, read(fact.text)) for fact in sorted(facts, key=lambda fact: (fact.at, fact.id))]
    return {
        older.id
        for (older, ours), (newer, theirs) in combinations(told, 2)
        if (not is_talk or (theirs.changes - ours.changes and older.topic == newer.topic))
        and (asked := _asked_of(ours, theirs)) is not None
        and probability(asked, older.text, newer.text) >= CERTAIN
        and not both_hold("", older.text, newer.text)
    }


def _asked_of(ours: Reading, theirs: Reading) -> str | None:
    """What two facts are compared for; None if they are about two things."""
    if tells_a_change(ours, theirs):
        return shared_head(ours.text, theirs.text) if ours.is_thai else ""
    enough = min(len(ours.terms), len(theirs.terms)) * (_SHARED_THAI if ours.is_thai else _SHARED)
    if len(ours.terms & theirs.terms) < max(1, enough):
        return None
    return ours.text if ours.is_thai else ""


def _spread(weighed: Sequence[tuple[float, Memory]], main: frozenset[str]) -> list[Memory]:
    """The best ones, where each further fact about the same weighs less."""
    chosen: list[Memory] = []
    about: Counter[str] = Counter()
    left = [(value, fact, _about(fact, main)) for value, fact in weighed]
    while left and len(chosen) < MOST:
        best = max(left, key=lambda row: row[0] - _AGAIN * about[row[2]])
        left.remove(best)
        about[best[2]] += 1
        chosen.append(best[1])
    return chosen


def _about(fact: Memory, main: frozenset[str]) -> str:
    """What a fact is about: its topic or category, else whom it is about, or what it says of the main one."""
    subject, said = _opening(fact)
    return fact.topic or fact.category or (said if subject in main else subject)
