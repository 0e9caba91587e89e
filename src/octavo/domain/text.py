"""The normal form of a text, and the words it is compared by, in any script."""

from __future__ import annotations

import re
import unicodedata

# Scripts written without spaces between words: Thai, Lao, Myanmar, Khmer, kana, Han.
UNSPACED = "\u0e00-\u0e7f\u0e80-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"

_UNSPACED_RUN = re.compile(f"[{UNSPACED}]+")
_WORD = re.compile(f"[{UNSPACED}]+|[^\\W{UNSPACED}]+")
_SPACES = re.compile(r"\s+")
_APOSTROPHES = re.compile("['’ʼ`]")

# Letters of other alphabets that look like Latin ones; only keys and comparisons fold them.
_LOOK_ALIKES = str.maketrans(
    "аеорсухіјѕԁɡһкмтвнԛԝαορνικτυχβεηγ",
    "aeopcyxijsdghkmtbhqwaopviktuxbeny",
)


def normalise(text: str) -> str:
    """NFKC, case folded, without invisible characters, single spaces."""
    if text.isascii():
        return _SPACES.sub(" ", text.lower()).strip()
    plain = unicodedata.normalize("NFKC", text).casefold()
    visible = "".join(c for c in plain if unicodedata.category(c) != "Cf")
    return _SPACES.sub(" ", visible).strip()


def fold(text: str) -> str:
    """The normal form with look-alike letters made one and apostrophes dropped."""
    return _APOSTROPHES.sub("", normalise(text).translate(_LOOK_ALIKES))


def key_of(text: str) -> str:
    """What two texts share when a person would call them the same: folded words, no punctuation."""
    return " ".join(_WORD.findall(fold(text)))


def words(text: str) -> list[str]:
    """The words of a text in order; a run of a script without spaces becomes overlapping trigrams."""
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
