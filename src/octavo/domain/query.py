"""A question as recall reads it: whom it names, which time, which terms, and how it would be said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from functools import cache, lru_cache

from msgspec import Struct

from octavo import words
from octavo.domain.dates import Interval, find_times
from octavo.domain.orders import is_request
from octavo.domain.patterns import pattern
from octavo.domain.text import STOP_WORDS, UNSPACED, fold, split_runs, terms_of_run

_ASKING = pattern(rf"^\W*(?:{words.cue('search.asking')})\s*", re.IGNORECASE)
_AUXILIARY = pattern(rf"^(?:{words.cue('search.auxiliary')})\s*", re.IGNORECASE)
# Some ask inside the sentence; these words are about the question, not about what is remembered.
_ASKED = pattern(words.cue("search.asked"))
_LISTING = pattern(rf"^\W*(?:{words.cue('search.listing')})|{words.cue('search.listed')}", re.IGNORECASE)
_OF_ASKING = pattern(words.cue("search.of_asking"), re.IGNORECASE)
_ONESELF = pattern(words.cue("search.oneself"))
_RETOLD = 0.7  # what a word in which an answer may be told counts beside the question's own
LONGEST = 2_000  # characters of a question that are read: an embedder's memory grows with them


class Question(Struct, frozen=True, kw_only=True):
    """What recall looks for.

    `terms` are the index terms in the order asked; `previous` names, for a term that overlaps the one
    before it in a script without spaces, that one. `phrasings` are the texts whose mean vector stands for
    the question.
    """

    text: str
    terms: tuple[str, ...]
    previous: Mapping[str, str]
    speaker: str | None
    intervals: tuple[Interval, ...]
    phrasings: tuple[str, ...]
    is_list: bool = False  # whether several things are asked for
    is_request: bool = False
    is_of_asking: bool = False  # whether it wants to know what was asked
    retold: Mapping[str, float] = {}  # terms in which an answer may be told, and what each counts


def read_question(
    text: str,
    *,
    now: date,
    speakers: Iterable[str] = (),
    names: Mapping[str, str] | None = None,
    lived: Interval | None = None,
    asker: str | None = None,
) -> Question:
    """Read a question in the light of the account's own speakers and the time it has lived through.

    Memories are mostly said in the first person, so the one speaker a question names becomes "I" and their
    turns are preferred; names and dates leave the terms because they are matched as what they are. `names`
    are other names that speakers go by; they count only as they are written. Who asks about themselves is
    the `asker`, and tells of a thing in other words: "I moved to Bangkok" is where they live.
    """
    intervals, rest = find_times(text, now, lived)
    meant = {**(names or {}), **{speaker: speaker for speaker in speakers}}
    named: dict[str, None] = {}
    bare, personal = rest, rest
    for name in sorted(meant, key=len, reverse=True):  # a whole name before a part of it
        # "May" and "Will" are words too: as they are written, or they would be in every other question.
        naming = _naming(name, exact=name != meant[name] or name.casefold() in STOP_WORDS)
        if naming.search(bare):
            named[meant[name]] = None
            bare = naming.sub(" ", bare)
            personal = naming.sub(lambda match: "my" if match.group(1) else "I", personal)
    terms, previous = _terms(bare)
    asked = personal.strip() or text
    stated = _AUXILIARY.sub("", _ASKING.sub("", asked)).rstrip(" ?")
    speaker = next(iter(named)) if len(named) == 1 else None
    retold = {} if asker is None or named or is_request(text) else _retold(bare, terms)
    return Question(
        text=text,
        terms=terms,
        previous=previous,
        speaker=asker if retold else speaker,
        intervals=intervals,
        phrasings=(asked, stated) if stated and stated != asked else (asked,),
        is_list=is_listing(text),
        is_request=is_request(text),
        is_of_asking=_OF_ASKING.search(text) is not None,
        retold=retold,
    )


def is_listing(text: str) -> bool:
    """Whether several things are asked for."""
    return _LISTING.search(text) is not None


def _retold(bare: str, asked: Iterable[str]) -> dict[str, float]:
    """The terms in which people tell of what a question about oneself names, words of it apart."""
    folded, terms = fold(bare), frozenset(asked)
    if not _ONESELF.search(folded):
        return {}
    found: dict[str, float] = {}
    for names, told in _tellings():
        if any(name in terms or (not name.isascii() and name in folded) for name in names):
            for some in told:
                found.update({term: _RETOLD / len(some) for term in some if term not in terms})
    return found


@cache
def _tellings() -> list[tuple[frozenset[str], list[tuple[str, ...]]]]:
    """What a question names, Thai as it is written, English by its stems; and the terms of each telling."""
    found = []
    for language, sections in words.languages().items():
        for line in words.lines("search.retold", language):
            asked, _, told = line.partition(":")
            names = _terms(asked)[0] if sections["spaced"] else fold(asked).split()
            found.append((frozenset(names), [_terms(word)[0] for word in told.split()]))
    return found


def _terms(bare: str) -> tuple[tuple[str, ...], dict[str, str]]:
    found: dict[str, None] = {}
    previous: dict[str, str] = {}
    for run in split_runs(_ASKED.sub(" ", fold(bare))):
        before = None
        for term in terms_of_run(run):
            if term not in found and before is not None:
                previous[term] = before
            found[term] = None
            before = term
    return tuple(found), previous


@lru_cache(maxsize=1024)
def _naming(name: str, *, exact: bool = False) -> re.Pattern[str]:
    # Where no spaces divide words, a name has no word boundary around it either.
    edges = ("", "") if re.search(f"[{UNSPACED}]", name) else (r"\b", r"(?!\w)")
    return pattern(f"{edges[0]}{re.escape(name)}(['’]s)?{edges[1]}", 0 if exact else re.IGNORECASE)
