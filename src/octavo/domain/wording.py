"""How a newer fact is put beside an older one and a question, whatever all three are about."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from octavo import words as word_lists
from octavo.domain.patterns import pattern
from octavo.domain.readings import BEFORE_NAME_THAI, SPEAKER, Reading, stem_of, stems
from octavo.domain.rivals import ENOUGH_GRAMS, same_start

_STRETCH, _SHORTEST, _LONGEST = pattern("[\u0e00-\u0e7f]+"), 3, 6
_WORD = pattern(r"[^\W_]+")
_SIGNS = (", ", "; ", ". ")
_ENGLISH, _THAI = (word_lists.section("corrections")[language] for language in ("en", "th"))
# Who, where, when, how many, yes or no, how, what: what is asked for, in the words of both languages.
_ASKED_FOR = tuple(
    pattern(f"{one}|{other}") for one, other in zip(_ENGLISH["kinds"], _THAI["kinds"], strict=True)
)
_COUNTED_THAI = pattern(_THAI["counted"])


def shape(question: Reading, older: Reading, newer: Reading) -> list[float]:
    """How the newer is put: who speaks, what it keeps and adds, where both part, what it answers."""
    person = newer.stems & stems("person") - older.stems - question.stems
    is_person = newer.is_thai and BEFORE_NAME_THAI.match(newer.text) is not None
    return [
        float(newer.is_thai),
        float(any(sign in newer.text for sign in _SIGNS)),
        min(2.0, len(newer.text) / max(1, len(older.text))),
        float(bool(older.pronouns & newer.pronouns & SPEAKER)),
        float(bool(person) or (is_person and newer.text[:ENOUGH_GRAMS] not in older.text + question.text)),
        len(question.asked & newer.terms) / max(1, len(question.asked)),
        float(bool(newer.words) and stem_of(newer.words[-1]) in older.stems),
        float(bool(newer.keys - older.keys)),
        float(bool(newer.names - frozenset(older.words + question.words))),
        len(newer.words) / 10,
        len(newer.text) / 50,
        *_parting(question, older, newer),
        *_answering(question, older, newer),
    ]


def _parting(question: Reading, older: Reading, newer: Reading) -> list[float]:
    """Where two facts part that begin and end alike, and whether what is asked for stands there.

    "The bins are collected on Tuesdays" and "on Fridays" part at the value, "the manager" and "the dentist"
    at what the question names.
    """
    start = same_start(older.tokens, newer.tokens)
    shorter = min(len(older.tokens), len(newer.tokens))
    end = min(same_start(older.tokens[::-1], newer.tokens[::-1]), shorter - start)
    gone = older.tokens[start : len(older.tokens) - end]
    come = newer.tokens[start : len(newer.tokens) - end]
    asked_gone, asked_come = (_share_asked(question, older, some) for some in (gone, come))
    is_put_for = bool(gone and come)
    return [
        float(is_put_for),
        float(not gone),
        float(not come),
        len(gone) / max(1, len(older.tokens)),
        len(come) / max(1, len(newer.tokens)),
        asked_gone,
        asked_come,
        float(start >= 1),
        float(start >= 2),
        float(end >= 1),
        float(is_put_for and start + end >= 2 and not asked_gone),
        float(start + end >= 2 and asked_gone > 0),
        min(1.0, len(come) / 3),
    ]


def _share_asked(question: Reading, older: Reading, some: Sequence[str]) -> float:
    """How much of what a question asks for stands in a part of a fact; in Thai letters stand for words."""
    if question.is_thai and older.is_thai:
        grams = ("".join(some[place : place + 3]) for place in range(len(some) - 2))
        return min(1.0, sum(gram in question.text for gram in grams) / 3)
    return min(1.0, sum(token in question.asked for token in some) / 2)


def _answering(question: Reading, older: Reading, newer: Reading) -> list[float]:
    """What kind is asked for, and whether the newer has something of it."""
    kinds = _asked_for(question.text)
    who, where, when, many, *_ = kinds
    is_named = bool(newer.names - frozenset(older.words) - frozenset(question.words))
    before, after = _is_counted(older), _is_counted(newer)
    told = (
        who and is_named,
        where and is_named,
        (when or many) and after,
        (when or many) and not after,
        before and not after,
        after and not before,
    )
    return [*map(float, kinds), *map(float, told)]


@lru_cache(maxsize=1024)
def _asked_for(question: str) -> tuple[bool, ...]:
    return tuple(kind.search(question.lower()) is not None for kind in _ASKED_FOR)


def _is_counted(fact: Reading) -> bool:
    """Whether a fact has a number, a day or an hour."""
    if fact.is_thai:
        return _COUNTED_THAI.search(fact.text) is not None
    return bool(fact.keys) or any(token[0].isdigit() or token in stems("number") for token in fact.tokens)


def phrases_of(text: str) -> frozenset[str]:
    """The words of a text and those side by side; of Thai, where words have no borders, short stretches."""
    found: set[str] = set()
    for stretch in _STRETCH.findall(text):
        ends = range(_SHORTEST, 1 + min(_LONGEST, len(stretch)))
        found |= {stretch[at : at + size] for size in ends for at in range(1 + len(stretch) - size)}
    if not found:
        said = _WORD.findall(text.lower().replace("’", "'").replace("'s", " "))
        found = {*said, *map(" ".join, pairwise(said))}
    return frozenset(found)
