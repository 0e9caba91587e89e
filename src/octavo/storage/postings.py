"""How texts that may say the same are found: which postings a text leaves, and which it looks up."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from octavo.domain.text import key_of
from octavo.later import Later

if TYPE_CHECKING:
    from octavo.domain import likeness
else:
    likeness = Later("octavo.domain.likeness")  # for those who write

# A gram in every other text says little: of each gram only the newest postings are looked at, so that a
# look-up costs the same among a million texts as among a thousand.
NEWEST = 128
CANDIDATES = 32

_ANY, _RARE, _KEY = 0, 1, 2

Posting = tuple[int, int]


def left_by(kind: str, scope: str, text: str) -> list[Posting]:
    """What a text is found by: its grams, marked if rare, and the key that equal texts share."""
    found = likeness.fingerprint(text)
    own, rare = _number(kind, scope), set(found.rare)
    grams = [(gram ^ own, _RARE if gram in rare else _ANY) for gram in {*found.all, *rare}]
    return [*grams, (_number(kind, scope, key_of(text)), _KEY)]


def sought_by(kind: str, scope: str, text: str) -> list[tuple[int, int, int]]:
    """What a text looks for, the least mark it must have, and how many at most.

    A rare gram of one near text is among the grams of the other, rare there or not.
    """
    found = likeness.fingerprint(text)
    own, rare = _number(kind, scope), set(found.rare)
    grams = [(gram ^ own, _ANY if gram in rare else _RARE, NEWEST) for gram in {*found.all, *rare}]
    return [*grams, (_number(kind, scope, key_of(text)), _KEY, -1)]


def best_of(found: Iterable[tuple[Any, ...]]) -> list[int]:
    """The rows that share most, behind those with the same key; `found` are rows and what they share."""
    counts: Counter[int] = Counter()
    same: dict[int, None] = {}
    for row, sort in found:
        if sort == _KEY:
            same[row] = None
        else:
            counts[row] += 1
    return [*same, *(row for row, _ in counts.most_common(CANDIDATES) if row not in same)]


def _number(*parts: str) -> int:
    """A number of 62 bits that stands for some names; one kind and scope never meets another's postings."""
    named = hashlib.blake2b("\0".join(parts).encode(), digest_size=8).digest()
    return int.from_bytes(named) >> 2
