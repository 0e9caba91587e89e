"""The themes that recur across texts, in words a person would use, with weights that sum to at most 1.

English words meet by their stem and are shown as people wrote them; two words that keep together are
one theme. Thai has no spaces: without a segmenter, what repeats between function words is taken for a word.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from math import log, sqrt

from octavo.domain import cues
from octavo.domain.cores import Concept
from octavo.domain.sentences import is_empty
from octavo.domain.text import fold, stem

Segment = Callable[[str], Sequence[str]]

_LATIN = re.compile(r"[^\W\d_\u0e00-\u0e7f]+(?:['’-][^\W\d_\u0e00-\u0e7f]+)*")
_BREAK = re.compile(r"[.!?,;:()\"“”\n]+")
_THAI_RUN = re.compile("[\u0e01-\u0e4e]+")
_NO_START = frozenset(
    "ะาำๅๆฯ"
    + "\u0e31\u0e34\u0e35\u0e36\u0e37\u0e38\u0e39\u0e3a\u0e47\u0e48\u0e49\u0e4a\u0e4b\u0e4c\u0e4d\u0e4e"
)
_NO_END = frozenset("เแโใไ")
_GENERIC = frozenset(stem(word) for word in cues.GENERIC)
_LONGEST_REPEAT = 20
_LONGEST_WORD = 40
_THAI_CHARACTERS = 8_000  # of each text; what recurs shows within that
_CANDIDATES = 500
_LEAST_BOUNDED = 0.3


@dataclass(slots=True)
class _Found:
    """What is known of one candidate while counting."""

    per_text: dict[int, int] = field(default_factory=dict)
    surfaces: dict[str, float] = field(default_factory=dict)
    nouns: int = 0
    verbs: int = 0
    factor: float = 1.0

    def see(self, text: int, surface: str, sure: float = 1.0) -> None:
        self.per_text[text] = self.per_text.get(text, 0) + 1
        self.surfaces[surface] = self.surfaces.get(surface, 0.0) + sure

    @property
    def count(self) -> int:
        return sum(self.per_text.values())


def themes(
    texts: Sequence[Sequence[str]],
    names: Iterable[str] = (),
    segment: Segment | None = None,
    limit: int = 8,
) -> tuple[Concept, ...]:
    """The themes of several texts (each a list of what was said), heaviest first."""
    without = _called(names)
    found = _latin(texts, without)
    found.update(_segmented(texts, segment, without) if segment else _repeated(texts, without))
    fewest = 2 if len(texts) > 1 else 1
    scored = [
        (round(_weight(item, len(texts)), 6), _surface(item), len(item.per_text))
        for item in found.values()
        if len(item.per_text) >= fewest and item.count >= 2
    ]
    scored.sort(key=lambda row: (-row[0], row[1]))
    kept = _distinct(scored, limit)
    total = sum(weight for weight, _, _ in scored) or 1.0
    return tuple(Concept(theme=name, weight=round(weight / total, 4), sessions=n) for weight, name, n in kept)


def _called(names: Iterable[str]) -> set[str]:
    """Names and the short forms of them: nobody is a theme of their own conversation."""
    parts = {fold(part) for name in names for part in (name, *name.split())}
    return parts | {part[:size] for part in parts for size in range(3, len(part))}


def _weight(item: _Found, texts: int) -> float:
    spread = len(item.per_text) / texts
    mass = sum(log(1 + count) for count in item.per_text.values())
    asked = item.nouns + item.verbs
    noun = (item.nouns + 0.5) / (asked + 1) if asked else 0.5
    return sqrt(spread) * mass * (0.25 + noun) * item.factor


def _surface(item: _Found) -> str:
    return max(item.surfaces.items(), key=lambda pair: (pair[1], -len(pair[0]), pair[0]))[0]


def _distinct(scored: Iterable[tuple[float, str, int]], limit: int) -> list[tuple[float, str, int]]:
    """The heaviest themes of which none is part of another."""
    kept: list[tuple[float, str, int]] = []
    for row in scored:
        parts = set(row[1].split())
        if not any(parts & set(other.split()) or row[1] in other or other in row[1] for _, other, _ in kept):
            kept.append(row)
            if len(kept) == limit:
                break
    return kept


def _latin(texts: Sequence[Sequence[str]], without: set[str]) -> dict[str, _Found]:
    singles: dict[str, _Found] = {}
    pairs: dict[str, _Found] = {}
    for number, text in enumerate(texts):
        for phrase in (piece for line in text for piece in _BREAK.split(line)):
            _count(number, _LATIN.findall(phrase), singles, pairs, without)
    for key, pair in pairs.items():
        one, other = (singles[part] for part in key.split(" "))
        pair.factor = max(one.factor, other.factor)
        if pair.count >= 3 and pair.count >= 0.4 * min(one.count, other.count):
            singles[key] = pair
            pair.nouns, pair.verbs = pair.count, 0
    return singles


def _count(
    number: int,
    spoken: list[str],
    singles: dict[str, _Found],
    pairs: dict[str, _Found],
    without: set[str],
) -> None:
    before, last = "", ""
    for place, word in enumerate(spoken):
        plain = fold(word)
        is_word = 3 <= len(plain) <= _LONGEST_WORD and plain not in without and not is_empty(plain)
        key = stem(plain) if is_word else ""
        if key:
            item = singles.setdefault(key, _Found(factor=0.3 if key in _GENERIC else 1.0))
            # A capital at the start of a sentence says nothing, so the form inside one decides.
            item.see(number, _shown(word, place), 1.0 if place else 0.3)
            item.nouns += before in cues.NOUN_BEFORE
            item.verbs += before in cues.VERB_BEFORE
            if last and last != key:
                surface = f"{_shown(spoken[place - 1], place - 1)} {_shown(word, place)}"
                pairs.setdefault(f"{last} {key}", _Found()).see(number, surface)
        before, last = plain, key


def _shown(word: str, place: int) -> str:
    """A word as it is written inside a sentence: only names and acronyms keep their capitals."""
    return word if place or any(letter.isupper() for letter in word[1:]) else word.lower()


def _segmented(texts: Sequence[Sequence[str]], segment: Segment, without: set[str]) -> dict[str, _Found]:
    found: dict[str, _Found] = {}
    edges = {*cues.THAI_EDGES, *cues.THAI_GENERIC}
    for number, text in enumerate(texts):
        for run in _runs(text):
            for word in segment(run):
                if 3 <= len(word) <= _LONGEST_WORD and word not in edges and word not in without:
                    found.setdefault(word, _Found()).see(number, word)
    return found


def _repeated(texts: Sequence[Sequence[str]], without: set[str]) -> dict[str, _Found]:
    """What repeats in runs of Thai and stands between boundaries; the longest form of it."""
    runs = [(number, run) for number, text in enumerate(texts) for run in _runs(text)]
    fewest = min(2, len(texts))
    grown: dict[str, list[tuple[int, int]]] = {}
    sure: dict[str, float] = {}
    for word, places in _grow(runs, fewest).items():
        if word not in without and not _has_edge(word) and not _is_generic(word):
            bounded = _boundedness(word, places, runs)
            if bounded >= _LEAST_BOUNDED:
                grown[word], sure[word] = places, bounded
    heaviest = sorted(grown, key=lambda item: (-len(item) * len(grown[item]), item))[:_CANDIDATES]
    found: dict[str, _Found] = {}
    for word in sorted(heaviest, key=lambda item: (-len(item), item)):
        longer = (other for other in found if word in other)
        if not any(len(grown[word]) <= 1.5 * found[other].count for other in longer):
            # A long repeat is more likely a word, and says more, than a short one.
            item = found.setdefault(word, _Found(factor=sure[word] * min(1.6, 0.5 + len(word) / 8)))
            for place, _ in grown[word]:
                item.see(runs[place][0], word)
    return found


def _runs(text: Iterable[str]) -> list[str]:
    found: list[str] = []
    room = _THAI_CHARACTERS
    for line in text:
        for run in _THAI_RUN.findall(cues.THAI_BREAK.sub(" ", line)) if room > 0 else ():
            found.append(run[: max(0, room)])
            room -= len(run)
    return found


def _grow(runs: Sequence[tuple[int, str]], fewest: int) -> dict[str, list[tuple[int, int]]]:
    """Every substring of 3 or more characters that occurs twice or more in enough texts, with its places."""
    level: dict[str, list[tuple[int, int]]] = {}
    for place, (_, run) in enumerate(runs):
        for start in range(len(run) - 2):
            if run[start] not in _NO_START:
                level.setdefault(run[start : start + 3], []).append((place, start))
    found: dict[str, list[tuple[int, int]]] = {}
    for size in range(3, _LONGEST_REPEAT + 1):
        level = {
            word: places
            for word, places in level.items()
            if len(places) >= 2 and len({runs[place][0] for place, _ in places}) >= fewest
        }
        found.update(level)
        longer: dict[str, list[tuple[int, int]]] = {}
        for places in level.values():
            for place, start in places:
                if start + size < len(runs[place][1]):
                    longer.setdefault(runs[place][1][start : start + size + 1], []).append((place, start))
        level = longer
    return found


def _boundedness(word: str, places: Sequence[tuple[int, int]], runs: Sequence[tuple[int, str]]) -> float:
    """How sure it is that a word begins and ends here, 0..1, by the function words and spaces next to it.

    Where a vowel binds it to a neighbour it is no word at all.
    """
    if word[-1] in _NO_END:
        return 0.0
    left = right = bound = 0
    for place, start in places:
        run, end = runs[place][1], start + len(word)
        bound += (start > 0 and run[start - 1] in _NO_END) or (end < len(run) and run[end] in _NO_START)
        left += not start or run.endswith(cues.THAI_EDGES, 0, start)
        right += end == len(run) or run.startswith(cues.THAI_EDGES, end)
    if bound > 0.2 * len(places):
        return 0.0
    return sqrt(left * right) / len(places)


def _is_generic(word: str) -> bool:
    """Whether it is one of the words that recur everywhere, or a piece of one."""
    return word in cues.THAI_GENERIC or any(word in other for other in cues.THAI_GENERIC if len(other) > 4)


def _has_edge(word: str) -> bool:
    return word.startswith(cues.THAI_EDGES) or word.endswith(cues.THAI_EDGES)
