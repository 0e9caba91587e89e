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
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from functools import cache, lru_cache
from heapq import nsmallest
from itertools import combinations
from math import ceil

from octavo.domain.patterns import pattern
from octavo.domain.policy import GatePolicy
from octavo.domain.text import STOP_WORDS, UNSPACED, fold, grams, words

FEW_WORDS = 3
MORE_WORDS = 2
CHARACTERS = 200
MOST_TOKENS = 200

_FIRST_UNSPACED = UNSPACED[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What a text is looked up by: two texts are candidates when one's `rare` meets the other's `all`."""

    all: tuple[int, ...] = ()
    rare: tuple[int, ...] = ()


def overlap(a: str, b: str) -> float:
    """Shared words over the smaller set of words."""
    ours, theirs = _word_set(a), _word_set(b)
    smaller = min(len(ours), len(theirs))
    return len(ours & theirs) / smaller if smaller else 0.0


def sequence(a: str, b: str) -> float:
    """The ratio of matching stretches, whichever text comes first."""
    return _ratio(*_stretches(a, b))


def likeness(a: str, b: str, floor: float = 0.0) -> float:
    """The greater of both measures if that is a floor or more; below it, perhaps that of the words alone."""
    shared = overlap(a, b)
    first, second = _stretches(a, b)
    could = _can_reach(first, second, max(shared, floor))
    return max(shared, _ratio(first, second)) if could else shared


def is_near(a: str, b: str, policy: GatePolicy) -> bool:
    """Whether two texts are near-duplicates under the policy's thresholds."""
    if is_near_by_words(a, b, policy.token_overlap):
        return True
    first, second = _stretches(a, b)
    return _can_reach(first, second, policy.sequence_ratio) and _ratio(first, second) >= policy.sequence_ratio


def is_near_by_words(a: str, b: str, threshold: float) -> bool:
    """Whether two texts of comparable size share enough of their words."""
    ours, theirs = _word_set(a), _word_set(b)
    smaller, larger = sorted((len(ours), len(theirs)))
    if smaller < FEW_WORDS or larger > MORE_WORDS * smaller:
        return smaller > 0 and ours == theirs
    return len(ours & theirs) >= threshold * smaller


@lru_cache(maxsize=1024)
def _word_set(text: str) -> frozenset[str]:
    return frozenset(words(text))


@lru_cache(maxsize=1024)
def _folded(text: str) -> str:
    return fold(text)


def _stretches(a: str, b: str) -> tuple[Sequence[str], Sequence[str]]:
    """Both texts as what their stretches are made of, in an order that does not depend on the caller's."""
    first, second = sorted((_folded(a), _folded(b)), key=lambda text: (len(text), text))
    return (first, second) if len(second) <= CHARACTERS else (words(first), words(second))


def _ratio(first: Sequence[str], second: Sequence[str]) -> float:
    return SequenceMatcher(None, first, second, autojunk=False).ratio() if first and second else 0.0


def _can_reach(first: Sequence[str], second: Sequence[str], ratio: float) -> bool:
    """Whether the ratio can be that high at all: by the lengths, then by the longest common subsequence."""
    both = len(first) + len(second)
    if 2 * min(len(first), len(second)) < ratio * both:
        return False
    return 2 * _common(first, second) >= ratio * both


def _common(first: Sequence[str], second: Sequence[str]) -> int:
    """The length of the longest common subsequence, a row of the table at a time as the bits of a number."""
    places: dict[str, int] = {}
    for place, item in enumerate(first):
        places[item] = places.get(item, 0) | 1 << place
    full = (1 << len(first)) - 1
    row = full
    for item in second:
        match = row & places.get(item, 0)
        row = ((row + match) | (row - match)) & full
    return len(first) - row.bit_count()


# What a text is made of when it is compared with one that says nearly the same.
_TOKEN = pattern(rf"(?P<number>[0-9]+(?:[.,:][0-9]+)*)|(?P<run>[{UNSPACED}]+)|(?P<word>[^\W\d_{UNSPACED}]+)")
_NOT = "\0not"
_NEGATIONS_TEXT = """
    not no never none nobody nothing neither nor cannot cant dont doesnt didnt wont wouldnt shouldnt couldnt
    isnt arent wasnt werent hasnt havent hadnt without aint
"""
_NEGATIONS = frozenset(_NEGATIONS_TEXT.split())
_NEGATION_THAI = pattern("ไม่ได้|ไม่|มิ(?:ได้|ใช่|ควร|อาจ|ต้อง)|ห้าม|อย่า(?!ง)")
_FILLERS_TEXT = """
    a an the is are am be do does i my user users that very really quite just also too so please currently
    actually always
"""
_FILLERS = frozenset(_FILLERS_TEXT.split())
_PARTICLES_THAI = pattern("^(?:ผู้ใช้|ดิฉัน|ฉัน|ผม)|(?:ครับ|ค่ะ|คะ|นะ|จ้ะ|จ้า|เลย|จริงๆ|มากๆ|มาก|ๆ|ด้วย)+$")
# Words that narrow what is said: dropping or adding one is never a mere restatement.
_LIMITS_TEXT = """
    only except unless until but if when sometimes rarely hardly former formerly ex was were had did will
    would may might could should must before after instead anymore longer
"""
_LIMITS = frozenset(_LIMITS_TEXT.split())
_COUNTS = {
    "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7", "eight": "8", "nine": "9",
    "ten": "10", "eleven": "11", "twelve": "12",
}  # fmt: skip
_LONG_FORMS = {
    "admin": "administrator", "app": "application", "auth": "authentication", "bike": "bicycle",
    "config": "configuration", "db": "database", "dev": "development", "doc": "document",
    "env": "environment", "info": "information", "mum": "mother", "mom": "mother", "dad": "father",
    "phone": "telephone", "photo": "photograph", "prod": "production", "repo": "repository",
    "spec": "specification", "temp": "temporary",
}  # fmt: skip


def contrast(old: str, new: str) -> str | None:
    """What sets the new text of a near pair apart from the old one; None when it only restates.

    "negation", "number" and "name" (a capitalised word that the other text lacks) go before "term": words
    put in place of others, another order, a content word or one that narrows on either side. A restatement
    differs in fillers, plurals, spelling and punctuation alone, so it can be merged without loss. Thai has no
    capitals and no spaces: there any difference besides politeness, numbers and negation is a "term".
    """
    ours, theirs = _tokens(old), _tokens(new)
    if _negations(ours) != _negations(theirs):
        return "negation"
    if _numbers(ours) != _numbers(theirs):
        return "number"
    if _names_beyond(ours, theirs) or _names_beyond(theirs, ours):
        return "name"
    left, right = _unmatched([t.form for t in ours], [t.form for t in theirs])
    if left and right:
        return "term"
    return "term" if _says_more(left or right) else None


@dataclass(frozen=True, slots=True)
class _Token:
    form: str
    name: bool = False


def _tokens(text: str) -> list[_Token]:
    """The words that matter, numbers and, for scripts without spaces, characters, each in one form."""
    found: list[_Token] = []
    for m in _TOKEN.finditer(_legible(text)):
        if m.lastgroup == "number":
            found.append(_Token(m[0].replace(",", "")))
        elif m.lastgroup == "run":
            found += (_Token(form) for form in _forms_of_run(m[0]))
        else:
            found += _tokens_of_word(m[0])
    return found


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


def _forms_of_run(run: str) -> list[str]:
    plain = _PARTICLES_THAI.sub("", run)
    return [_NOT if c == "\0" else c for c in _NEGATION_THAI.sub("\0", plain)]


def _tokens_of_word(written: str) -> list[_Token]:
    word = fold(written)
    if word in _NEGATIONS:
        return [_Token(_NOT)]
    if word in _FILLERS:
        return []
    if word in _COUNTS:
        return [_Token(_COUNTS[word])]
    return [_Token(_form(word), written[0].isupper() and word not in STOP_WORDS)]


def _form(word: str) -> str:
    """The word without a plural or verbal s, in the long form, with one spelling of -our; tense is kept."""
    if len(word) > 3 and word.endswith("s") and not word.endswith("ss"):
        word = word[:-3] + "y" if word.endswith("ies") and len(word) > 4 else word[:-1]
    if len(word) > 5:
        word = word.replace("our", "or")
    return _LONG_FORMS.get(word, word)


def _negations(tokens: Iterable[_Token]) -> int:
    return sum(t.form == _NOT for t in tokens)


def _numbers(tokens: Iterable[_Token]) -> Counter[str]:
    return Counter(t.form for t in tokens if t.form[0].isdigit())


def _names_beyond(tokens: Iterable[_Token], others: Iterable[_Token]) -> bool:
    """Whether a name stands in one text and in no form in the other."""
    known = {t.form for t in others}
    return any(t.name and t.form not in known for t in tokens)


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


# The fingerprint of a text is made of pairs of its rarest units under one fixed order. A unit is the head of
# a word, so that endings do not matter, or a gram of a script without spaces.
#
# Why pairs: the prefix of single words that a sound filter needs holds common words too, and these stand in a
# large share of all memories; two of them together seldom do.
#
# Why it is sound: let the smaller text have n words, of which at least c = 0.6 n are in the larger one, of b
# words. Of the smaller one's units at most n - c are not shared, so its first two shared units are among its
# first n - c + 2 (`rare`), and among the first b - c + 2 of the larger one, which for b <= 2 n is at most
# 0.7 b + 2 (`all`). Words that share a head make a pair of the head with itself. The bounds cut both for
# larger texts; the tests hold what that misses.
_HEAD = 5
_RARE, _ALL = 6, 10
_FLOOR = 0.6
EXACT_WORDS = 11
# Short texts may be near by their stretches alone: pairs of their three-letter grams find them.
_SHORT, _SKETCH = 5, 6
_LARGEST = (1 << 63) - 1

# Words so frequent in what people tell their assistants that they tell little apart, besides stop words.
_COMMON_TEXT = """
    always been bought came come currently day days enjoys every family feel feels found friend friends from
    get gets getting going good got great happy help home hope keep know last life like liked likes lives long
    look looking love loves made make makes many much name need needs never new nice often old people plan
    plans prefer prefers project really said says see something started still take talk tell thank thanks
    thing things think time times today trip try trying use user users uses using usually want wanted wants
    week weeks well went work worked working works world year years yesterday
    การ ความ ที่ เป็น และ ของ ใน มี ได้ ไม่ ให้ จาก ว่า กับ โดย แต่ หรือ ซึ่ง นี้ นั้น เพื่อ ถูก จะ ยัง แล้ว กว่า เมื่อ มาก
    ทำ ใช้ อยู่ ต่อ ตาม ปี คน ครับ ค่ะ ชอบ อยาก ไป มา เขา ฉัน ผม คุณ วัน เวลา ทุก ประเทศ อย่าง หลาย ด้วย ต้อง
    สามารถ ระบบ เรื่อง ขึ้น ออก เข้า ทาง กัน ระหว่าง สำหรับ ผู้ ใหญ่ สุด
"""
_COMMON_LETTERS = "านรกอเงมยลวดทสต่้ัีิะetaoinsrhl"
_OTHER_LETTERS = "คบพปหจแใไุูืโ็ขช์dcumfpgwyb"


def fingerprint(text: str) -> Fingerprint:
    """The numbers a text is stored and looked up by: stable, 63 bits, about sixty at most.

    It finds every pair that is near by words, at a threshold of 0.6 or more, if neither text has more than
    EXACT_WORDS, and nearly every other near pair. Another order, word list or number above makes other
    fingerprints: a state that keeps them must then be rebuilt.
    """
    found = _word_set(text)
    if not found:
        return Fingerprint()
    heads = Counter(map(_head, found))
    units = nsmallest(_ALL, heads, key=_rank)
    count = len(found)
    several = {unit for unit in units if heads[unit] > 1 or count == 1} if count <= EXACT_WORDS else set()
    sketch = _sketch(text) if count <= _SHORT else set()
    wide = units[: ceil(0.7 * count) + 2]
    rare = units[: min(count - ceil(_FLOOR * count) + 2, _RARE)]
    return Fingerprint(
        all=tuple(sorted(_pairs(wide, several) | sketch)), rare=tuple(sorted(_pairs(rare, several) | sketch))
    )


def _head(word: str) -> str:
    return word if word[0] >= _FIRST_UNSPACED else word[:_HEAD]


@lru_cache(maxsize=32768)
def _rank(unit: str) -> tuple[int, int, int]:
    """The fixed order: rare units first; the checksum makes it total and even."""
    rarity = len(unit) if unit.isascii() else _rarity(unit)
    return _commonness().get(unit, 0), -rarity, zlib.crc32(unit.encode())


def _rarity(unit: str) -> int:
    return sum(0 if c in _COMMON_LETTERS else 1 if c in _OTHER_LETTERS else 3 for c in unit)


@cache
def _commonness() -> dict[str, int]:
    common = {_head(part): 1 for word in _COMMON_TEXT.split() for part in words(word)}
    return common | {_head(word): 2 for word in STOP_WORDS}


def _pairs(units: Sequence[str], several: Container[str] = ()) -> set[int]:
    """Each pair of units, and a unit with itself if it stands for several words or for the whole text."""
    own = {_pair(unit, unit) for unit in units if unit in several}
    return own | {_pair(a, b) for a, b in combinations(units, 2)}


def _pair(a: str, b: str) -> int:
    first, second = sorted((_number(a), _number(b)))
    return (first * 3 + second * 0x9E3779B97F4A7C15) & _LARGEST


@lru_cache(maxsize=32768)
def _number(unit: str) -> int:
    return int.from_bytes(hashlib.blake2b(unit.encode(), digest_size=8).digest()) & _LARGEST


def _sketch(text: str) -> set[int]:
    """Pairs of the rarest three-letter grams of a short text, its words run together."""
    run = _BETWEEN_WORDS.sub("", _folded(text))
    rarest = sorted(set(grams(run)), key=lambda gram: (-_rarity(gram), zlib.crc32(gram.encode())))
    return _pairs([f"~{gram}" for gram in rarest[:_SKETCH]])


_BETWEEN_WORDS = pattern(f"[^\\w{UNSPACED}]+|_+")
