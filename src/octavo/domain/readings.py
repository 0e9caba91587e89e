"""A fact or a question as the scorer of corrections reads it: its terms, its cues, what it is about."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache, lru_cache
from itertools import pairwise

from msgspec import Struct

from octavo import words as word_lists
from octavo.domain.patterns import pattern
from octavo.domain.text import IRREGULAR, STOP_WORDS, fold, split_runs, stem, terms_of_run

_THAI = re.compile("[\u0e00-\u0e7f]")
_TOKEN = re.compile(r"'s\b|[\u0e00-\u0e7f]|[^\W\d_\u0e00-\u0e7f]+|\d[\d:.,]*")
_WORD = re.compile(r"[^\W_]+")
_NAME = re.compile(r"(?<![.!?:] )(?<!^)\b[A-Z][\w-]+")
_CAPITAL = re.compile(r"\b[A-Z][a-z]\w*")
_OWNER = re.compile(r"\b([A-Z]\w+)['’]s ")
_NUMBER = r"\d[\d:.,]*"
_ANEW = re.compile(r"\bnew (\w+)", re.IGNORECASE)
_DETERMINERS = (
    r"\s+(?:off\s+)?(?:going to |of )?(?:(?:the|her|his|its|their|our|my|a|an|your|old|new)\s+)+"
    r"(\w+)(?:\s+(\w+))?"
)
# The index counts these as other words; "she lives" must meet "where does she live".
_SAME = {"life": "live", "leaf": "leav"}
_ENGLISH, _IN_THAI = (word_lists.section("corrections")[language] for language in ("en", "th"))


class Reading(Struct, frozen=True, kw_only=True, eq=False):
    """What one text says, taken apart once."""

    text: str
    is_thai: bool
    terms: frozenset[str]
    asked: frozenset[str]
    tokens: tuple[str, ...]
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
    renewed: frozenset[str]
    subject: str | None
    counted: Mapping[str, str]
    capitals: frozenset[str]


def _cue(name: str) -> re.Pattern[str]:
    """One pattern of a list of cues: whole words of English in lower case, any stretch of Thai.

    Those of one first letter stand together, so that of hundreds only a few are tried at a word.
    """
    by_letter: dict[str, list[str]] = {"": []}
    for entry in _ENGLISH.get(name, ()):
        is_plain = entry[0].isalpha() and entry[1:2] not in ("?", "*", "+")
        by_letter.setdefault(entry[0] if is_plain else "", []).append(entry[is_plain:])
    groups = (f"{letter}(?:{'|'.join(rest)})" for letter, rest in by_letter.items() if rest)
    english = "|".join(groups)
    return pattern(
        "|".join(filter(None, (rf"\b(?:{english})\b" if english else "", *_IN_THAI.get(name, ()))))
    )


_CUES = {
    name: _cue(name)
    for name in (
        "change", "negation", "addition", "plan", "event", "event_time", "event_verb", "visit", "asking",
        "past", "past_only", "first", "past_tense", "before", "present", "several", "several_asked", "begun",
        "day",
    )
}  # fmt: skip
_KEYS = pattern(
    "|".join([_NUMBER, *(row for key in ("day", "month") for row in (*_ENGLISH[key], *_IN_THAI[key]))])
)
_OBJECT_AFTER = pattern(rf"\b(?:{'|'.join(_ENGLISH['object_after'])}){_DETERMINERS}", re.IGNORECASE)
_ENDED = pattern(rf"\b(?:{'|'.join(_ENGLISH['ended'])}) ([^.,;]+)", re.IGNORECASE)
_OPENS = pattern(rf"^(?:{'|'.join(_ENGLISH['opening'])})\b", re.IGNORECASE)
_ASKING_THAI = pattern("|".join(_IN_THAI["asking"]))
PAST_NAME = pattern(_ENGLISH["past_name"])
OF_THAI = pattern(f"{_IN_THAI['of']}([\u0e00-\u0e7f]{{2}})")
OWNING_THAI = pattern(f"([\u0e00-\u0e7f]{{4}}){_IN_THAI['of']}([\u0e00-\u0e7f]{{2}})")
BEFORE_NAME_THAI = pattern(f"(?:{'|'.join(_IN_THAI['person'])})(?:{_IN_THAI['of']})?")
CLASSES_THAI = tuple(map(pattern, _IN_THAI["classes"]))
THEMSELVES_THAI = tuple(_IN_THAI["themselves"])
CALENDAR = frozenset(_ENGLISH["month"]) | {
    f"{day}day" for day in ("mon", "tues", "wednes", "thurs", "fri", "satur", "sun")
}
PARTICIPLES = frozenset(_ENGLISH["participle"])
_ASKING = frozenset(_ENGLISH["asking"])
_PRONOUNS = tuple(frozenset(group.split()) for group in _ENGLISH["pronouns"])
SPEAKER = frozenset((3, 4))  # of the pronouns those of whoever speaks: "we", "I"


def has(text: str, name: str) -> bool:
    """Whether a cue of a list stands in a text."""
    return _CUES[name].search(text.lower()) is not None


def cues_in(text: str, name: str) -> frozenset[str]:
    """Every cue of a list that stands in a text."""
    return frozenset(_CUES[name].findall(text.lower()))


def is_of_then(question: str) -> bool:
    """Whether a question asks in the past tense, which Thai does not have."""
    told = (w for w in _WORD.findall(question.lower()) if w in IRREGULAR or w[3:].endswith("ed"))
    return has(question, "past_tense") or (not has(question, "present") and any(told))


def without(text: str, name: str) -> str:
    """The text with every cue of a list taken out."""
    return re.sub(_CUES[name].pattern, " ", text, flags=re.IGNORECASE)


@cache
def stems(name: str) -> frozenset[str]:
    """The stems of a list of words."""
    return frozenset(map(stem_of, _ENGLISH[name]))


@cache
def classes() -> tuple[frozenset[str], ...]:
    """Words that answer the same question, by their stems."""
    return tuple(frozenset(map(stem_of, group.split())) for group in _ENGLISH["classes"])


@cache
def opposites() -> tuple[tuple[frozenset[str], frozenset[str]], ...]:
    """Words of which each side says the opposite of the other, by their stems."""
    pairs = (group.split("/") for group in _ENGLISH["opposites"])
    return tuple(
        (frozenset(map(stem_of, one.split())), frozenset(map(stem_of, other.split()))) for one, other in pairs
    )


@cache
def opposed() -> frozenset[str]:
    """All words that have an opposite."""
    return frozenset().union(*(side for pair in opposites() for side in pair))


@lru_cache(maxsize=4096)
def read(text: str) -> Reading:
    """Take a text apart; the texts of an account come again and again, so a few thousand are kept."""
    thai = _THAI.search(text) is not None
    plain = text.replace("’", "'")
    bare = plain.replace("'s", " ") if "'s" in plain else plain
    words = tuple(_WORD.findall(bare.lower()))
    tokens = tuple(stem(token) if token.isascii() else token for token in _TOKEN.findall(plain.lower()))
    return Reading(
        text=text,
        is_thai=thai,
        terms=_terms(bare),
        asked=_terms(bare, is_question=True),
        tokens=tokens,
        stems=frozenset(map(stem_of, words)),
        words=words,
        names=frozenset(name.lower() for name in _NAME.findall(text) if not name.isupper()),
        keys=frozenset(key.rstrip(".,:") for key in _KEYS.findall(text.lower())),
        changes=cues_in(text, "change"),
        negations=cues_in(text, "negation"),
        is_additive=has(text, "addition"),
        is_plan=has(text, "plan"),
        is_event=_is_event(text),
        has_event_time=has(text, "event_time") or has(text, "event"),
        pronouns=frozenset(i for i, group in enumerate(_PRONOUNS) if not group.isdisjoint(words)),
        owned=frozenset((a, b) for a, s, b in zip(tokens, tokens[1:], tokens[2:], strict=False) if s == "'s"),
        has_owner=any(stem_of(name.lower()) not in stems("person") for name in _OWNER.findall(text)),
        renewed=frozenset(stem_of(word.lower()) for word in _ANEW.findall(text)),
        subject=None if thai else _subject(bare),
        counted=_counted(tokens),
        capitals=frozenset(stem(word.lower()) for word in _CAPITAL.findall(text)),
    )


def share_a_class(*texts: str) -> bool:
    """Whether texts in Thai all have a word of those that answer the same question."""
    return any(all(words.search(text) for text in texts) for words in CLASSES_THAI)


def stem_of(word: str) -> str:
    """The stem a word is compared by."""
    root = stem(word)
    return _SAME.get(root, root)


def kind_of_key(key: str) -> str:
    """Whether a key is a number, a day or a month: another of the same kind is another thing."""
    return "number" if key[0].isdigit() else "day" if has(key, "day") else "month"


def _terms(text: str, *, is_question: bool = False) -> frozenset[str]:
    """The index terms of a text; of a question without the words that only ask."""
    runs = split_runs(fold(_ASKING_THAI.sub(" ", text) if is_question else text))
    told = (run for run in runs if not (is_question and run in _ASKING))
    return frozenset(_SAME.get(term, term) for run in told for term in terms_of_run(run))


def _is_event(text: str) -> bool:
    """Whether it tells of something that happened once."""
    return has(text, "event") or has(text, "visit") or (has(text, "event_time") and has(text, "event_verb"))


@lru_cache(maxsize=4096)
def objects_in(text: str) -> Sequence[tuple[str, ...]]:
    """What each change in a text is a change of, as far as the words after it tell."""
    return tuple(_objects(text))


def _objects(text: str) -> Iterable[tuple[str, ...]]:
    for match in _OBJECT_AFTER.finditer(text):
        stems = tuple(stem_of(word.lower()) for word in match.groups() if word)
        if "mind" not in stems:
            yield stems
    for clause in _ENDED.findall(text):
        stems = tuple(stem_of(word) for word in _WORD.findall(clause.lower()) if word not in STOP_WORDS)
        if stems:
            yield stems


def _subject(text: str) -> str | None:
    """The first word with content, if the sentence opens with what it is about; None after "he" and "she"."""
    if _OPENS.match(text) or _CUES["change"].match(text.lower()):  # "Migrated the database": who speaks did
        return None
    for word in _WORD.findall(text):
        lowered = word.lower()
        if lowered not in STOP_WORDS:
            return stem_of(lowered)
        if any(lowered in group for group in _PRONOUNS[:2]):
            return None
    return None


def _counted(tokens: Sequence[str]) -> dict[str, str]:
    """Numbers by the word that stands after them, or before."""
    counted = {}
    numbers = [token[0].isdigit() or token in stems("number") for token in tokens]
    for (one, two), (first, second) in zip(pairwise(tokens), pairwise(numbers), strict=True):
        if first != second:
            counted[two if first else f"{one} …"] = one if first else two
    return counted
