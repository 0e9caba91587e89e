"""The normal form of a text, and the words it is compared by, in any script."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from functools import lru_cache

from Stemmer import Stemmer

from octavo import words as word_lists
from octavo.domain.patterns import pattern

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han.
UNSPACED = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"

# Of these, the ones whose words are a character or two long: pairs find them, triples would not.
_SHORT_WORDED = "\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
_LONG_WORDED = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff"

_UNSPACED_RUN = pattern(f"[{UNSPACED}]+")
_WORD = pattern(f"[{UNSPACED}]+|[^\\W{UNSPACED}]+")
_APOSTROPHES = pattern("['’ʼ`]")
# The characters of Unicode's category Cf: formats, joiners, marks that nobody sees.
_INVISIBLE = pattern(
    "[\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e\u200b-\u200f\u202a-\u202e"
    "\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U0001343f"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f]+"
)
_TERM = pattern(f"[{_SHORT_WORDED}]+|[{_LONG_WORDED}]+|[^\\W_{UNSPACED}]+")
# Most text has none but these, and then neither invisible characters nor letters that look like others.
_ODD = pattern("[^\x00-\x7f\u00c0-\u024f\u0e01-\u0e4e\u2010-\u2027\u3041-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
# For each byte of ASCII text what stands for it when only its words count: lower case, or a space.
_WORDS_OF_ASCII = bytes(ord(chr(i).lower()) if chr(i).isalnum() else 32 for i in range(128)) + bytes(128)
_NAMES_OF_ASCII = _WORDS_OF_ASCII[: ord("_")] + b"_" + _WORDS_OF_ASCII[ord("_") + 1 :]
_SENTENCE_END = pattern(r"(?<=[.!?…。！？ฯ])\s+|\n+")

_FIRST_UNSPACED, _FIRST_SHORT_WORDED = "\u0e00", "\u3040"
_STEMMER = Stemmer("english", 0)  # its own cache is off: ours is one dictionary look-up

PASSAGE_CHARACTERS = 400

# Words that carry grammar, not content; without apostrophes because folding drops them.
STOP_WORDS = word_lists.listed("search.stop")

# Letters of other alphabets that look like Latin ones; only keys and comparisons fold them.
_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁɡһкмтвнԛԝαορνικτυχβεηγ",
    "aeopcyxijsdghkmtbhqwaopviktuxbeny",
)

# Past forms and plurals that no suffix rule reaches, each with the word it is counted as.
IRREGULAR = word_lists.valued("search.irregular")


def normalise(text: str) -> str:
    """NFKC, case folded, without invisible characters, single spaces."""
    if text.isascii():
        return " ".join(text.lower().split())
    plain = unicodedata.normalize("NFKC", text).casefold()
    return " ".join((_INVISIBLE.sub("", plain) if _ODD.search(plain) else plain).split())


@lru_cache(maxsize=8192)
def fold(text: str) -> str:
    """The normal form with look-alike letters made one and apostrophes dropped."""
    if text.isascii():
        return normalise(text.replace("'", "").replace("`", ""))
    normal = normalise(text)
    folded = _APOSTROPHES.sub("", normal.translate(_LOOK_ALIKES) if _ODD.search(normal) else normal)
    return folded if len(folded) == len(normal) else " ".join(folded.split())


def key_of(text: str) -> str:
    """What two texts share when a person would call them the same: folded words, no punctuation."""
    return " ".join(_words_of_ascii(text, _NAMES_OF_ASCII) if text.isascii() else _WORD.findall(fold(text)))


def words(text: str) -> list[str]:
    """The words of a text in order; a run of a script without spaces becomes overlapping trigrams."""
    if text.isascii():
        return _words_of_ascii(text, _NAMES_OF_ASCII)
    found: list[str] = []
    for run in _WORD.findall(fold(text)):
        if _UNSPACED_RUN.fullmatch(run):
            found.extend(grams(run))
        else:
            found.append(run)
    return found


def grams(run: str, size: int = 3) -> list[str]:
    """The overlapping character grams of a run; a short run is its own gram."""
    if len(run) <= size:
        return [run]
    return [run[i : i + size] for i in range(len(run) - size + 1)]


def runs(text: str) -> list[str]:
    """The runs that a text is indexed by, each of one kind of script; `terms_of_run` says by which terms."""
    return _words_of_ascii(text, _WORDS_OF_ASCII) if text.isascii() else split_runs(fold(text))


def _words_of_ascii(text: str, table: bytes) -> list[str]:
    """The same words as by the general way's patterns, many times faster."""
    return text.encode().translate(table, b"'`").decode().split()


def split_runs(folded: str) -> list[str]:
    """The runs of a folded text, each of one kind of script."""
    return _TERM.findall(folded)


def terms_of_run(run: str) -> Sequence[str]:
    """The terms of one run: its grams if its script has no spaces, else its stem unless a stop word."""
    size = gram_size(run)
    return grams(run, size) if size else _terms_of_word(run)


def gram_size(run: str) -> int:
    """How many characters a gram of a run has, 0 if it is a word of a script with spaces."""
    if run[0] < _FIRST_UNSPACED or not _UNSPACED_RUN.match(run):
        return 0
    return 2 if run[0] >= _FIRST_SHORT_WORDED else 3


@lru_cache(maxsize=200_000)
def _terms_of_word(word: str) -> tuple[str, ...]:
    return () if word in STOP_WORDS else (stem(word),)


@lru_cache(maxsize=200_000)
def stem(word: str) -> str:
    """The English stem of a word, irregular forms included; what is not ASCII passes unchanged."""
    return _STEMMER.stemWord(IRREGULAR.get(word, word)) if word.isascii() else word


def passages(text: str, limit: int = PASSAGE_CHARACTERS) -> list[str]:
    """The text in pieces of at most `limit` characters, cut at sentence ends where there are any."""
    if len(text) <= limit:
        return [text]
    packed: list[str] = []
    for piece in _pieces(text, limit):
        if packed and len(packed[-1]) + 1 + len(piece) <= limit:
            packed[-1] = f"{packed[-1]} {piece}"
        else:
            packed.append(piece)
    return packed or [text[:limit]]


def _pieces(text: str, limit: int) -> list[str]:
    pieces: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        rest = sentence.strip()
        while len(rest) > limit:
            cut = rest.rfind(" ", 1, limit + 1)
            cut = cut if cut > 0 else limit
            pieces.append(rest[:cut].rstrip())
            rest = rest[cut:].lstrip()
        if rest:
            pieces.append(rest)
    return pieces
