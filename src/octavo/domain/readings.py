"""A fact or a question as the scorer of corrections reads it: its terms, its cues, what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

from msgspec import Struct

from octavo import words as word_lists
from octavo.domain.text import STOP_WORDS, fold, split_runs, stem, terms_of_run

_THAI = re.compile("[\u0e00-\u0e7f]")
_TOKEN = re.compile(r"'s\b|[\u0e00-\u0e7f]|[^\W\d_\u0e00-\u0e7f]+|\d[\d:.,]*")
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][\w-]+")
_CAPITAL = re.compile(r"\b[A-Z][a-z]\w*")
_OWNER = re.compile(r"\b[A-Z]\w+['’]s ")
_NUMBER = r"\d[\d:.,]*"
_ANEW = re.compile(r"\bnew (\w+)", re.IGNORECASE)
_DETERMINERS = (
    r"\s+(?:off\s+)?(?:going to |of )?(?:(?:the|her|his|its|their|our|my|a|an|your|old|new)\s+)+"
    r"(\w+)(?:\s+(\w+))?"
)
# The index counts these as other words; "she lives" must meet "where does she live".
_SAME = {"life": "live", "leaf": "leav"}
_NOBODY: frozenset[str] = frozenset()


class Marks(Struct, frozen=True, kw_only=True, eq=False):
    """One list of cues as patterns: whole words of English, any stretch of Thai; texts come in lower case."""

    english: re.Pattern[str] | None
    thai: re.Pattern[str] | None

    def all_in(self, text: str, *, thai: bool) -> frozenset[str]:
        """Every cue that stands in a text."""
        found = self.english.findall(text.lower()) if self.english else []
        return frozenset(found + self.thai.findall(text) if thai and self.thai else found)

    def any_in(self, text: str, *, thai: bool) -> bool:
        """Whether a cue stands in a text."""
        if self.english and self.english.search(text.lower()):
            return True
        return bool(thai and self.thai and self.thai.search(text))

    def without(self, text: str) -> str:
        """The text with every cue taken out."""
        for marks in (self.english, self.thai):
            text = re.sub(marks.pattern, " ", text, flags=re.IGNORECASE) if marks else text
        return text


class Cues(Struct, frozen=True, kw_only=True, eq=False):
    """The word lists of corrections, ready for use."""

    change: Marks
    negation: Marks
    addition: Marks
    plan: Marks
    event: Marks
    event_time: Marks
    event_verb: Marks
    visit: Marks
    asking: Marks
    past: Marks
    past_only: Marks
    first: Marks
    past_tense: Marks
    keys: Marks
    days: Marks
    past_name: re.Pattern[str]
    object_after: re.Pattern[str]
    ended: re.Pattern[str]
    opening: re.Pattern[str]
    of: re.Pattern[str]
    owning: re.Pattern[str]
    before_name: str
    asking_words: frozenset[str]
    light: frozenset[str]
    participles: frozenset[str]
    persons: frozenset[str]
    numbers: frozenset[str]
    calendar: frozenset[str]
    pronouns: tuple[frozenset[str], ...]
    classes: tuple[frozenset[str], ...]
    thai_classes: tuple[re.Pattern[str], ...]
    opposites: tuple[tuple[frozenset[str], frozenset[str]], ...]
    several: Marks
    several_asked: Marks
    begun: Marks
    themselves: tuple[str, ...]


class Reading(Struct, frozen=True, kw_only=True, eq=False):
    """What one text says, taken apart once."""

    text: str
    is_thai: bool
    terms: frozenset[str]
    asked: frozenset[str]
    tokens: tuple[str, ...]
    content: tuple[str, ...]
    stems: frozenset[str]
    words: tuple[str, ...]
    names: frozenset[str]
    keys: frozenset[str]
    changes: frozenset[str]
    negations: frozenset[str]
    is_additive: bool
    is_plan: bool
    is_event: bool
    has_event_time: bool
    pronouns: frozenset[int]
    owned: frozenset[tuple[str, str]]
    has_owner: bool
    objects: tuple[tuple[str, ...], ...]
    renewed: frozenset[str]
    subject: str | None
    counted: Mapping[str, str]
    capitals: frozenset[str]


@cache
def correction_cues() -> Cues:
    """The cues of the word lists of every language, made when the first text is read."""
    lists = word_lists.section("corrections")
    english, thai = lists["en"], lists["th"]

    def marks(name: str) -> Marks:
        return _marks(english.get(name, ()), thai.get(name, ()))

    named = {name: marks(name) for name in _LISTS}
    calendar = [*english["day"], *english["month"]]
    return Cues(
        **named,
        keys=Marks(english=_any([_NUMBER, *calendar, *thai["day"], *thai["month"]], edges=False), thai=None),
        days=_marks(english["day"], thai["day"]),
        past_name=re.compile(english["past_name"]),
        object_after=re.compile(rf"\b(?:{'|'.join(english['object_after'])}){_DETERMINERS}", re.IGNORECASE),
        ended=re.compile(rf"\b(?:{'|'.join(english['ended'])}) ([^.,;]+)", re.IGNORECASE),
        opening=re.compile(rf"^(?:{'|'.join(english['opening'])})\b", re.IGNORECASE),
        of=re.compile(f"{thai['of']}([\u0e00-\u0e7f]{{2}})"),
        owning=re.compile(f"([\u0e00-\u0e7f]{{4}}){thai['of']}([\u0e00-\u0e7f]{{2}})"),
        before_name=f"(?:{'|'.join(thai['person'])})(?:{thai['of']})?",
        asking_words=frozenset(english["asking"]),
        light=frozenset(map(stem_of, english["light"])),
        participles=frozenset(english["participle"]),
        persons=frozenset(map(stem_of, english["person"])),
        numbers=frozenset(map(stem_of, english["number"])),
        calendar=frozenset(english["month"]) | frozenset(f"{d}day" for d in _WEEK),
        pronouns=tuple(frozenset(group.split()) for group in english["pronouns"]),
        classes=tuple(frozenset(map(stem_of, group.split())) for group in english["classes"]),
        thai_classes=tuple(map(re.compile, thai["classes"])),
        opposites=tuple(_opposite(group) for group in english["opposites"]),
        themselves=tuple(thai["themselves"]),
    )


_LISTS = (
    "change", "negation", "addition", "plan", "event", "event_time", "event_verb", "visit", "asking", "past",
    "past_only", "first", "past_tense", "several", "several_asked", "begun",
)  # fmt: skip
_WEEK = ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """Take a text apart; the texts of an account come again and again, so a few thousand are kept."""
    cues = correction_cues()
    thai = _THAI.search(text) is not None
    plain = text.replace("’", "'")
    bare = plain.replace("'s", " ") if "'s" in plain else plain
    words = tuple(_WORD.findall(bare.lower()))
    content = tuple(stem_of(word) for word in words if word not in STOP_WORDS)
    tokens = tuple(stem(token) if token.isascii() else token for token in _TOKEN.findall(plain.lower()))
    return Reading(
        text=text,
        is_thai=thai,
        terms=_terms(bare),
        asked=_terms(bare, cues),
        tokens=tokens,
        content=content,
        stems=frozenset(map(stem_of, words)),
        words=words,
        names=frozenset(name.lower() for name in _NAME.findall(text) if not name.isupper()),
        keys=frozenset(key.rstrip(".,:") for key in cues.keys.all_in(text, thai=thai)),
        changes=cues.change.all_in(text, thai=thai),
        negations=cues.negation.all_in(text, thai=thai),
        is_additive=cues.addition.any_in(text, thai=thai),
        is_plan=cues.plan.any_in(text, thai=thai),
        is_event=_is_event(text, cues, thai=thai),
        has_event_time=cues.event_time.any_in(text, thai=thai) or cues.event.any_in(text, thai=thai),
        pronouns=frozenset(i for i, group in enumerate(cues.pronouns) if not group.isdisjoint(words)),
        owned=frozenset((a, b) for a, s, b in zip(tokens, tokens[1:], tokens[2:], strict=False) if s == "'s"),
        has_owner=_OWNER.search(text) is not None,
        objects=tuple(_objects(text, cues)),
        renewed=frozenset(stem_of(word.lower()) for word in _ANEW.findall(text)),
        subject=None if thai else _subject(bare, cues),
        counted=_counted(tokens, cues),
        capitals=frozenset(stem(word.lower()) for word in _CAPITAL.findall(text)),
    )


def stem_of(word: str) -> str:
    """The stem a word is compared by."""
    root = stem(word)
    return _SAME.get(root, root)


def kind_of_key(key: str, cues: Cues) -> str:
    """Whether a key is a number, a day or a month: another of the same kind is another thing."""
    return "number" if key[0].isdigit() else "day" if cues.days.any_in(key, thai=True) else "month"


def _opposite(group: str) -> tuple[frozenset[str], frozenset[str]]:
    one, _, other = group.partition("/")
    return frozenset(map(stem_of, one.split())), frozenset(map(stem_of, other.split()))


def _terms(text: str, cues: Cues | None = None) -> frozenset[str]:
    """The index terms of a text; of a question without the words that only ask."""
    asked = text if cues is None or cues.asking.thai is None else cues.asking.thai.sub(" ", text)
    skipped = _NOBODY if cues is None else cues.asking_words
    runs = (run for run in split_runs(fold(asked)) if run not in skipped)
    return frozenset(_SAME.get(term, term) for run in runs for term in terms_of_run(run))


def _is_event(text: str, cues: Cues, *, thai: bool) -> bool:
    """Whether it tells of something that happened once."""
    if cues.event.any_in(text, thai=thai) or cues.visit.any_in(text, thai=False):
        return True
    return cues.event_time.any_in(text, thai=False) and cues.event_verb.any_in(text, thai=False)


def _objects(text: str, cues: Cues) -> Iterable[tuple[str, ...]]:
    """What each change in a text is a change of, as far as the words after it tell."""
    for match in cues.object_after.finditer(text):
        stems = tuple(stem_of(word.lower()) for word in match.groups() if word)
        if "mind" not in stems:
            yield stems
    for clause in cues.ended.findall(text):
        stems = tuple(stem_of(word) for word in _WORD.findall(clause.lower()) if word not in STOP_WORDS)
        if stems:
            yield stems


def _subject(text: str, cues: Cues) -> str | None:
    """The first word with content, if the sentence opens with what it is about; None after "he" and "she"."""
    if cues.opening.match(text):
        return None
    for word in _WORD.findall(text):
        lowered = word.lower()
        if lowered not in STOP_WORDS:
            return stem_of(lowered)
        if any(lowered in group for group in cues.pronouns[:2]):
            return None
    return None


def _counted(tokens: Sequence[str], cues: Cues) -> dict[str, str]:
    """Numbers by the word that stands after them, or before."""
    counted = {}
    numbers = [token[0].isdigit() or token in cues.numbers for token in tokens]
    for (one, two), (first, second) in zip(pairwise(tokens), pairwise(numbers), strict=True):
        if first != second:
            counted[two if first else f"{one} …"] = one if first else two
    return counted


def _marks(english: Sequence[str], thai: Sequence[str]) -> Marks:
    return Marks(
        english=_any(english) if english else None,
        thai=_any(thai, edges=False) if thai else None,
    )


def _any(entries: Sequence[str], *, edges: bool = True) -> re.Pattern[str]:
    joined = "|".join(entries)
    return re.compile(rf"\b(?:{joined})\b" if edges else f"(?:{joined})")
