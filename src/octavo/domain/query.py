"""A question as recall reads it: whom it names, which time, which terms, and how it would be said."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from functools import lru_cache

from octavo.domain.dates import Interval, find_times
from octavo.domain.patterns import pattern
from octavo.domain.text import UNSPACED, fold, split_runs, terms_of_run

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
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


def read_question(
    text: str, *, now: date, speakers: Iterable[str] = (), lived: Interval | None = None
) -> Question:
    """Read a question in the light of the account's own speakers and the time it has lived through.

    Memories are mostly said in the first person, so the one speaker a question names becomes "I" and their
    turns are preferred; names and dates leave the terms because they are matched as what they are.
    """
    times = find_times(text, now, lived)
    named = [name for name in speakers if _naming(name).search(times.rest)]
    bare, personal = times.rest, times.rest
    for name in named:
        bare = _naming(name).sub(" ", bare)
        personal = _naming(name).sub(lambda match: "my" if match.group(1) else "I", personal)
    terms, previous = _terms(bare)
    return Question(
        text=text,
        terms=terms,
        previous=previous,
        speaker=named[0] if len(named) == 1 else None,
        intervals=times.intervals,
        phrasings=_phrasings(personal.strip() or text),
    )


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


def _phrasings(personal: str) -> tuple[str, ...]:
    stated = _AUXILIARY.sub("", _ASKING.sub("", personal)).rstrip(" ?")
    return (personal, stated) if stated and stated != personal else (personal,)


@lru_cache(maxsize=1024)
def _naming(name: str) -> re.Pattern[str]:
    # Where no spaces divide words, a name has no word boundary around it either.
    edges = ("", "") if re.search(f"[{UNSPACED}]", name) else (r"\b", r"(?!\w)")
    return pattern(f"{edges[0]}{re.escape(name)}(['’]s)?{edges[1]}", re.IGNORECASE)
