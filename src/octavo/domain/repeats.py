"""Words of scripts without spaces: what repeats between function words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import sqrt

from octavo import words
from octavo.domain.patterns import pattern

Places = list[tuple[int, int]]

_RUN = pattern("[\u0e01-\u0e4e]+")
# A content word neither begins nor ends with one of these.
_EDGES = tuple(sorted(words.listed("talk.edges"), key=lambda word: (-len(word), word)))
_GENERIC = words.listed("talk.generic", spaced=False)
_BREAK = pattern("|".join(words.block("talk.breaks", "th").split()))
_NO_START = frozenset(
    "ะาำๅๆฯ"
    + "\u0e31\u0e34\u0e35\u0e36\u0e37\u0e38\u0e39\u0e3a\u0e47\u0e48\u0e49\u0e4a\u0e4b\u0e4c\u0e4d\u0e4e"
)
_NO_END = frozenset("เแโใไ")
_LONGEST_REPEAT = 20
_CHARACTERS = 8_000  # of each text; what recurs shows within that
_CANDIDATES = 500
_LEAST_BOUNDED = 0.3


def repeated(texts: Sequence[Sequence[str]], without: set[str]) -> dict[str, tuple[float, list[int]]]:
    """What repeats between boundaries, in its longest form: how sure it is a word, and in which texts."""
    runs = [(number, run) for number, text in enumerate(texts) for run in _runs(text)]
    grown: dict[str, Places] = {}
    sure: dict[str, float] = {}
    for word, places in _grow(runs, min(2, len(texts))).items():
        if word not in without and not _has_edge(word) and not _is_generic(word):
            bounded = _boundedness(word, places, runs)
            if bounded >= _LEAST_BOUNDED:
                grown[word], sure[word] = places, bounded
    heaviest = sorted(grown, key=lambda item: (-len(item) * len(grown[item]), item))[:_CANDIDATES]
    kept: dict[str, tuple[float, list[int]]] = {}
    for word in sorted(heaviest, key=lambda item: (-len(item), item)):
        longer = (len(numbers) for other, (_, numbers) in kept.items() if word in other)
        if not any(len(grown[word]) <= 1.5 * count for count in longer):
            # A long repeat is more likely a word, and says more, than a short one.
            weight = sure[word] * min(1.6, 0.5 + len(word) / 8)
            kept[word] = (weight, [runs[place][0] for place, _ in grown[word]])
    return kept


def _runs(text: Iterable[str]) -> list[str]:
    runs: list[str] = []
    room = _CHARACTERS
    for line in text:
        for run in _RUN.findall(_BREAK.sub(" ", line)) if room > 0 else ():
            runs.append(run[: max(0, room)])
            room -= len(run)
    return runs


def _grow(runs: Sequence[tuple[int, str]], fewest: int) -> dict[str, Places]:
    """Every substring of 3 or more characters that occurs twice or more in enough texts, with its places."""
    level: dict[str, Places] = {}
    for place, (_, run) in enumerate(runs):
        for start in range(len(run) - 2):
            if run[start] not in _NO_START:
                level.setdefault(run[start : start + 3], []).append((place, start))
    repeating: dict[str, Places] = {}
    for size in range(3, _LONGEST_REPEAT + 1):
        level = {
            word: places
            for word, places in level.items()
            if len(places) >= 2 and len({runs[place][0] for place, _ in places}) >= fewest
        }
        repeating.update(level)
        longer: dict[str, Places] = {}
        for places in level.values():
            for place, start in places:
                if start + size < len(runs[place][1]):
                    longer.setdefault(runs[place][1][start : start + size + 1], []).append((place, start))
        level = longer
    return repeating


def _boundedness(word: str, places: Places, runs: Sequence[tuple[int, str]]) -> float:
    """How sure it is that a word begins and ends here, 0..1, by the function words and spaces next to it.

    Where a vowel binds it to a neighbour it is no word at all.
    """
    if word[-1] in _NO_END:
        return 0.0
    left = right = bound = 0
    for place, start in places:
        run, end = runs[place][1], start + len(word)
        bound += (start > 0 and run[start - 1] in _NO_END) or (end < len(run) and run[end] in _NO_START)
        left += not start or run.endswith(_EDGES, 0, start)
        right += end == len(run) or run.startswith(_EDGES, end)
    if bound > 0.2 * len(places):
        return 0.0
    return sqrt(left * right) / len(places)


def _is_generic(word: str) -> bool:
    """Whether it is one of the words that recur everywhere, or a piece of one."""
    return word in _GENERIC or any(word in other for other in _GENERIC if len(other) > 4)


def _has_edge(word: str) -> bool:
    return word.startswith(_EDGES) or word.endswith(_EDGES)
