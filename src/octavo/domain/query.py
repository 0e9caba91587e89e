"""A question as recall reads it: whom it names, which time, which terms, and how it would be said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import date
from functools import lru_cache

from msgspec import Struct

from octavo.domain.dates import Interval, find_times
from octavo.domain.orders import is_request
from octavo.domain.patterns import pattern
from octavo.domain.text import STOP_WORDS, UNSPACED, fold, split_runs, terms_of_run

_ASKING = pattern(
    r"^\W*(how\s+(?:many|much|long|often)|what\s+(?:kind|type|sort)s?\s+of|what|when|where|which|who|whose"
    r"|whom|why|how)\b\s*",
    re.IGNORECASE,
)
_AUXILIARY = pattern(
    r"^(?:did|does|do|is|are|was|were|has|have|had|can|could|would|will|should|might)\b\s*", re.IGNORECASE
)
# Thai asks inside the sentence; these words are about the question, not about what is remembered.
_ASKING_THAI = pattern(
    "อะไรบ้าง|อะไร|อย่างไร|ยังไง|เมื่อไหร่|เมื่อไร|เมื่อใด|ที่ไหน|ที่ใด|ใคร|เท่าไหร่|เท่าไร|เท่าใด|ทำไม"
    "|เพราะเหตุใด|หรือไม่|หรือเปล่า"
)
_LISTING = pattern(
    r"^\W*(?:(?:what|which)\s+(?:are|were|kinds?\s+of|types?\s+of)\b"
    r"|(?:what|which)\s+(?:\w+\s+){0,3}\w+s\s+(?:has|have|did|does|is|are)\b|what\s+(?:has|have)\b|how\s+many\b"
    r"|(?:where|who)\s+(?:has|have)\b|in\s+what\s+ways|name\b|list\b)|(?:อะไร|ใคร|ไหน)บ้าง",
    re.IGNORECASE,
)
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


def read_question(
    text: str,
    *,
    now: date,
    speakers: Iterable[str] = (),
    names: Mapping[str, str] | None = None,
    lived: Interval | None = None,
) -> Question:
    """Read a question in the light of the account's own speakers and the time it has lived through.

    Memories are mostly said in the first person, so the one speaker a question names becomes "I" and their
    turns are preferred; names and dates leave the terms because they are matched as what they are. `names`
    are other names that speakers go by; they count only as they are written.
    """
    times = find_times(text, now, lived)
    meant = {**(names or {}), **{speaker: speaker for speaker in speakers}}
    named: dict[str, None] = {}
    bare, personal = times.rest, times.rest
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
    return Question(
        text=text,
        terms=terms,
        previous=previous,
        speaker=next(iter(named)) if len(named) == 1 else None,
        intervals=times.intervals,
        phrasings=(asked, stated) if stated and stated != asked else (asked,),
        is_list=is_listing(text),
        is_request=is_request(text),
    )


def is_listing(text: str) -> bool:
    """Whether several things are asked for."""
    return _LISTING.search(text) is not None


def _terms(bare: str) -> tuple[tuple[str, ...], dict[str, str]]:
    found: dict[str, None] = {}
    previous: dict[str, str] = {}
    for run in split_runs(_ASKING_THAI.sub(" ", fold(bare))):
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
