"""Journal noise: texts that hold a signal such as "heartbeat" and next to nothing else.

A text is noise when it contains a signal as words and, besides signals, numbers, stop words and the small
talk of machines, fewer than two content words remain. Where a script has no spaces, a signal may stand
anywhere, and what remains counts as two words once it is too long to be one: when in doubt, keep.
"""

from __future__ import annotations

import re
from functools import lru_cache

from octavo import words
from octavo.domain.patterns import pattern
from octavo.domain.text import STOP_WORDS, UNSPACED, key_of

# Words that say that a machine is running, not what it found.
_ROUTINE = STOP_WORDS | words.listed("noise.routine", spaced=True)
_ROUTINE_THAI = pattern("|".join([*words.block("noise.routine", "th").split(), "[๐-๙]+"]))
_NUMBER = pattern(r"[0-9]+[a-z]{0,2}")
_RUN = pattern(f"[{UNSPACED}]+")
_THAI = pattern("[ก-๛]")
_MARK = pattern("[\u0e31\u0e34-\u0e3a\u0e47-\u0e4e]")

# How many letters of a run, vowel signs and tones aside, can still be one word.
_ONE_WORD_THAI, _ONE_WORD = 6, 2


def is_noise(text: str, signals: tuple[str, ...]) -> str | None:
    """The signal that makes a text noise, or None."""
    plain = _plain(text)
    pattern, names = _pattern(signals)
    if not any(name in plain for name in names):  # most texts end here
        return None
    first = pattern.search(plain)
    if first is None or _content(pattern.sub(" ", plain)) >= 2:
        return None
    return names[first[0]]


def _plain(text: str) -> str:
    return key_of(text.replace("_", " "))


@lru_cache(maxsize=64)
def _pattern(signals: tuple[str, ...]) -> tuple[re.Pattern[str], dict[str, str]]:
    """One pattern for all signals, the longest first, and the signal behind each match."""
    names = {_plain(signal): signal for signal in signals if _plain(signal)}
    parts = [_bounded(name) for name in sorted(names, key=len, reverse=True)]
    return pattern("|".join(parts)), names


def _bounded(name: str) -> str:
    """The signal between word boundaries, as far as its script has any."""
    left = "" if _RUN.match(name[0]) else r"(?<!\w)"
    right = "" if _RUN.match(name[-1]) else r"(?!\w)"
    return left + re.escape(name) + right


def _content(rest: str) -> int:
    """How many content words there are, or two if there are more."""
    count = 0
    for word in rest.split():
        if _RUN.match(word):
            count += _words_in_run(word)
        elif word not in _ROUTINE and not _NUMBER.fullmatch(word):
            count += 1
        if count >= 2:
            return 2
    return count


def _words_in_run(run: str) -> int:
    letters = len(_MARK.sub("", _ROUTINE_THAI.sub("", run)))
    if letters < 2:
        return 0
    return 1 if letters <= (_ONE_WORD_THAI if _THAI.match(run) else _ONE_WORD) else 2
