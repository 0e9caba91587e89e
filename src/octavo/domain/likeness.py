"""Whether two texts say nearly the same, what differs when they do, and how to find such texts among many.

The measure is the document's: shared words over the smaller set of words, or the ratio of matching
stretches, on the normal form. Three rules of our own keep it sensible at the ends:

- A text of fewer than three words is near another by its words only if both have the same words: one
  shared word of one says nothing.
- A text of more than twice as many words is not near by its words: it says more, not the same.
- Past 200 characters the stretches are counted in words, not in characters: letters make all long texts
  alike, and comparing them takes far too long.
"""

from __future__ import annotations

import hashlib
import unicodedata
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Sequence, Set
from difflib import SequenceMatcher
from functools import cache, lru_cache
from math import ceil

from rapidfuzz.distance import LCSseq

from octavo import words as word_lists
from octavo.domain.patterns import pattern
from octavo.domain.policy import GatePolicy
from octavo.domain.text import STOP_WORDS, UNSPACED, fold, grams, key_of, words

FEW_WORDS = 3
MORE_WORDS = 2
CHARACTERS = 200
MOST_TOKENS = 200

_FIRST_UNSPACED = UNSPACED[0]


def overlap(a: str, b: str) -> float:
    """Shared words over the smaller set of words."""
    ours, theirs = _word_set(a), _word_set(b)
    smaller = min(len(ours), len(theirs))
    return len(ours & theirs) / smaller if smaller else 0.0


def likeness(a: str, b: str, floor: float = 0.0) -> float:
    """The greater of both measures if that is a floor or more; below it, perhaps that of the words alone."""
    shared = overlap(a, b)
    first, second = _stretches(a, b)
    could = _can_reach(first, second, max(shared, floor))
    return max(shared, _ratio(first, second)) if could else shared


def is_near(a: str, b: str, policy: GatePolicy) -> bool:
    """Whether two texts are near-duplicates under the policy's thresholds."""
    return near_to(a, policy)(b)


def near_to(text: str, policy: GatePolicy) -> Callable[[str], bool]:
    """Whether another text is a near-duplicate of this one, which is taken apart once for all others.

    Of many candidates hardly one is near, so most of them are told apart by their words and lengths alone.
    """
    ours, folded, ratio = _word_set(text), fold(text), policy.sequence_ratio
    size = len(folded)

    def is_near(other: str) -> bool:
        if _share_enough(ours, set(words(other)), policy.token_overlap):
            return True
        theirs = fold(other)
        if max(size, len(theirs)) <= CHARACTERS and not _can_reach(folded, theirs, ratio):
            return False
        first, second = _stretches(text, other)
        return _can_reach(first, second, ratio) and _ratio(first, second) >= ratio

    return is_near


def _share_enough(ours: Set[str], theirs: Set[str], threshold: float) -> bool:
    count, others = len(ours), len(theirs)
    smaller, larger = (count, others) if count < others else (others, count)
    if smaller < FEW_WORDS or larger > MORE_WORDS * smaller:
        return smaller > 0 and ours == theirs
    return len(ours & theirs) >= threshold * smaller


@lru_cache(maxsize=8192)
def _word_set(text: str) -> frozenset[str]:
    return frozenset(words(text))


def _stretches(a: str, b: str) -> tuple[Sequence[str], Sequence[str]]:
    """Both texts as what their stretches are made of, in an order that does not depend on the caller's."""
    first, second = fold(a), fold(b)
    if (len(first), first) > (len(second), second):
        first, second = second, first
    return (first, second) if len(second) <= CHARACTERS else (words(first), words(second))


def _ratio(first: Sequence[str], second: Sequence[str]) -> float:
    return SequenceMatcher(None, first, second, autojunk=False).ratio() if first and second else 0.0


def _can_reach(first: Sequence[str], second: Sequence[str], ratio: float) -> bool:
    """Whether the ratio can be that high at all: by the lengths, then by the longest common subsequence."""
    both = len(first) + len(second)
    if 2 * min(len(first), len(second)) < ratio * both:
        return False
    return 2 * shared_in_order(first, second) >= ratio * both


def shared_in_order(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence."""
    return LCSseq.similarity(first, second)


# What a text is made of when it is compared with one that says nearly the same.
_TOKEN = pattern(rf"(?P<number>[0-9]+(?:[.,:][0-9]+)*)|(?P<run>[{UNSPACED}]+)|(?P<word>[^\W\d_{UNSPACED}]+)")
_NOT = "\0not"
_NEGATIONS = word_lists.listed("likeness.negations")
_NEGATION_THAI = pattern(word_lists.block("likeness.negation", "th"))
_FILLERS = word_lists.listed("likeness.fillers")
_PARTICLES_THAI = pattern(word_lists.block("likeness.particles", "th"))
# Words that narrow what is said: dropping or adding one is never a mere restatement.
_LIMITS = word_lists.listed("likeness.limits")
_COUNTS = word_lists.valued("numbers.counts", "en")
_NO_NAMES = STOP_WORDS.union(_NEGATIONS, _COUNTS)
_LONG_FORMS = word_lists.valued("likeness.long_forms")


def contrast(old: str, new: str) -> str | None:
    """What sets the new text of a near pair apart from the old one; None when it only restates.

    "negation", "number" and "name" (a capitalised word that the other text lacks) go before "term": words
    put in place of others, another order, a content word or one that narrows on either side. A restatement
    differs in fillers, plurals, spelling and punctuation alone, so it can be merged without loss. Thai has no
    capitals and no spaces: there any difference besides politeness, numbers and negation is a "term".
    """
    (our_forms, our_names), (their_forms, their_names) = _said(old), _said(new)
    if our_forms.count(_NOT) != their_forms.count(_NOT):
        return "negation"
    if _numbers(our_forms) != _numbers(their_forms):
        return "number"
    if not our_names.issubset(their_forms) or not their_names.issubset(our_forms):
        return "name"
    left, right = _unmatched(our_forms, their_forms)
    if left and right:
        return "term"
    return "term" if _says_more(left or right) else None


def restates(old: str, new: str, policy: GatePolicy) -> bool:
    """Whether a near text says nothing new: no other number, name, negation or content word on either side.

    What `contrast` finds to be the same is among it; so is another order of the same words, unless two
    names change places. Thai is compared by `contrast` alone, for there a character is no word.
    """
    if not is_near(old, new, policy):
        return False
    apart = contrast(old, new)
    if apart != "term" or pattern(f"[{UNSPACED}]").search(old + new):
        return apart is None
    (our_forms, our_names), (their_forms, their_names) = _said(old), _said(new)
    if _says_more(list(set(our_forms) ^ set(their_forms))):
        return False
    named = our_names & their_names
    return [form for form in our_forms if form in named] == [form for form in their_forms if form in named]


@lru_cache(maxsize=8192)
def _said(text: str) -> tuple[list[str], frozenset[str]]:
    """What is compared of a text: the words that matter, numbers and, for scripts without spaces, characters,
    each in one form and in order; and which of them are names."""
    forms: list[str] = []
    names: set[str] = set()
    for m in _TOKEN.finditer(_legible(text)):
        if m.lastgroup == "number":
            forms.append(m[0].replace(",", ""))
        elif m.lastgroup == "run":
            plain = _PARTICLES_THAI.sub("", m[0])
            forms += [_NOT if c == "\0" else c for c in _NEGATION_THAI.sub("\0", plain)]
        elif (form := _form_of(word := fold(m[0]))) is not None:
            forms.append(form)
            if m[0][0].isupper() and word not in _NO_NAMES:
                names.add(form)
    return forms, frozenset(names)


def _numbers(forms: Sequence[str]) -> list[str]:
    return sorted(form for form in forms if form[0].isdigit())


def _legible(text: str) -> str:
    """NFKC without invisible characters and apostrophes, with ASCII digits; case is kept."""
    plain = unicodedata.normalize("NFKC", text)
    if plain.isascii():
        return plain.replace("'", "")
    return "".join(_legible_character(c) for c in plain)


def _legible_character(c: str) -> str:
    category = unicodedata.category(c)
    if category == "Nd":
        return str(unicodedata.decimal(c))
    return "" if category == "Cf" or c in "'’ʼ`" else c


def _form_of(word: str) -> str | None:
    """The form of a folded word, None if it is a filler."""
    if word in _NEGATIONS:
        return _NOT
    if word in _FILLERS:
        return None
    return _COUNTS.get(word) or _form(word)


def _form(word: str) -> str:
    """The word without a plural or verbal s, in the long form, with one spelling of -our; tense is kept."""
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    if len(word) > 5:
        word = word.replace("our", "or")
    return _LONG_FORMS.get(word, word)


def _unmatched(ours: list[str], theirs: list[str]) -> tuple[list[str], list[str]]:
    """What is left of each side when the common stretches are taken out, in order."""
    start = _shared_start(ours, theirs)
    ours, theirs = ours[start:], theirs[start:]
    end = _shared_start(ours[::-1], theirs[::-1])
    ours, theirs = ours[: len(ours) - end], theirs[: len(theirs) - end]
    if min(len(ours), len(theirs)) > MOST_TOKENS:  # so far apart that no closer look would make them one
        return ours, theirs
    left: list[str] = []
    right: list[str] = []
    for what, i, j, k, m in SequenceMatcher(None, ours, theirs, autojunk=False).get_opcodes():
        if what != "equal":
            left += ours[i:j]
            right += theirs[k:m]
    return left, right


def _shared_start(ours: Sequence[str], theirs: Sequence[str]) -> int:
    pairs = zip(ours, theirs, strict=False)
    return next((n for n, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))


def _says_more(forms: list[str]) -> bool:
    """Whether words that stand on one side alone change what is said."""
    return any(form not in STOP_WORDS or form in _LIMITS for form in forms)


# A text is filed under pairs of its rarest units in one fixed order. A unit is the head of a word, so that
# endings do not matter, or a gram of a script without spaces. Pairs, because the rarest words of many a fact
# are common ones and stand in a large share of all memories; two of them together seldom do.
#
# Two texts that each lack at most m - 2 of the other's units share two of their first m: every text of about
# nine words meets every other that has six of ten words in common with it, whichever is the longer. What
# only restates differs in fewer words than that. Larger texts are cut; the tests hold what that misses. A new
# text is looked up by two units more, because a correction often says more than what it corrects.
_HEAD = 5
_SPACED, _UNSPACED, _MORE = 6, 7, 2
_FLOOR = 0.6
# Short texts may be near by their stretches alone: pairs of their three-letter grams find them.
_SHORT, _SKETCH = 5, 4
# A pair's number begins with the rarer unit, so that the pairs of a text lie on few pages of a state file.
# With a row of 27 bits it is a key of eight bytes.
NUMBER_BITS, _SECOND_BITS = 29, 15
_LARGEST, _SECOND = (1 << NUMBER_BITS) - 1, (1 << _SECOND_BITS) - 1

_COMMON_LETTERS = "านรกอเงมยลวดทสต่้ัีิะetaoinsrhl"
_OTHER_LETTERS = "คบพปหจแใไุูืโ็ขช์dcumfpgwyb"


@lru_cache(maxsize=8192)
def filed_under(kind: str, scope: str, text: str) -> tuple[int, ...]:
    """What a text is stored by among its kind and scope: stable numbers of 29 bits.

    The first is that of its key, which equal texts share. Another order, word list or number above makes
    others: a state that keeps them must then be rebuilt.
    """
    return _placed(kind, scope, text, _fingerprints(text)[0])


@lru_cache(maxsize=1024)
def sought_under(kind: str, scope: str, text: str) -> tuple[int, ...]:
    """What the texts that may say the same as a new one are stored by."""
    return _placed(kind, scope, text, _fingerprints(text)[1])


def _placed(kind: str, scope: str, text: str, numbers: Iterable[int]) -> tuple[int, ...]:
    own = _number(f"{kind}\0{scope}")
    return _digest(f"{kind}\0{scope}\0{key_of(text)}"), *[own ^ number for number in numbers]


@lru_cache(maxsize=1024)
def _fingerprints(text: str) -> tuple[frozenset[int], frozenset[int]]:
    """Numbers of which two texts that say nearly the same have one in common; nearly all others have none.

    What a text is filed under, and the more that it is looked up by; a write asks for both, and again.
    """
    found = _word_set(text)
    count = len(found)
    heads = Counter([word[:_HEAD] for word in found] if text.isascii() else map(_head, found))
    most = min(count - ceil(_FLOOR * count) + 3, _SPACED if text.isascii() else _UNSPACED)
    units = [ranked[-1] for ranked in sorted(map(_ranked, heads))[: most + _MORE]]
    short: Sequence[str] = ()
    if count <= _SHORT:
        run = _BETWEEN_WORDS.sub("", fold(text))
        rarest = sorted(set(grams(run)), key=lambda gram: (-_rarity(gram), zlib.crc32(gram.encode())))
        short = [f"~{gram}" for gram in rarest[:_SKETCH]]
    filed = _pairs(units[:most]) | _pairs(short)
    sought = filed | _pairs(units, since=most)
    for place, unit in enumerate(units):
        if heads[unit] > 1 or count == 1:  # it stands for several words, or for all
            sought.add(_number(unit))
            if place < most:
                filed.add(_number(unit))
    return frozenset(filed), frozenset(sought)


def _pairs(units: Sequence[str], since: int = 0) -> set[int]:
    """A number for every unit from a place on with each one before it, which is the rarer."""
    numbers = list(map(_number, units))
    firsts = [number & ~_SECOND for number in numbers]
    later = enumerate(numbers[since:], start=since)
    return {first | number & _SECOND for place, number in later for first in firsts[:place]}


def _head(word: str) -> str:
    return word if word[0] >= _FIRST_UNSPACED else word[:_HEAD]


@lru_cache(maxsize=32768)
def _ranked(unit: str) -> tuple[int, int, int, str]:
    """A unit in the fixed order: numbers first, then rare ones; the checksum makes it total and even."""
    if unit.isdigit():
        return -1, 0, zlib.crc32(unit.encode()), unit
    rarity = len(unit) if unit.isascii() else _rarity(unit)
    return _commonness().get(unit, 0), -rarity, zlib.crc32(unit.encode()), unit


def _rarity(unit: str) -> int:
    return sum(0 if c in _COMMON_LETTERS else 1 if c in _OTHER_LETTERS else 3 for c in unit)


@cache
def _commonness() -> dict[str, int]:
    # So frequent in what people tell their assistants that they tell little apart, besides stop words.
    common = {_head(part): 1 for word in word_lists.listed("likeness.common") for part in words(word)}
    return common | {_head(word): 2 for word in STOP_WORDS}


@lru_cache(maxsize=32768)
def _number(name: str) -> int:
    return _digest(name)


def _digest(name: str) -> int:
    return int.from_bytes(hashlib.blake2b(name.encode(), digest_size=8).digest()) & _LARGEST


_BETWEEN_WORDS = pattern(f"[^\\w{UNSPACED}]+|_+")
