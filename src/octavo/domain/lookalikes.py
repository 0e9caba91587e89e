"""What a text looks like: letters that a reader takes for others made one, marks and gaps left out.

Unicode's own decompositions do most of it; the word lists hold the letters that they leave, after UTS 39.
"""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterator

from octavo import words
from octavo.domain.patterns import pattern

_LETTERS = {
    ord(shape): letter
    for others, letter in words.valued("letters.look_alikes").items()
    for other in others
    for shape in (other, other.casefold())  # Cherokee folds to its capitals
    if len(shape) == 1
}
_LETTERS |= {0x1F1E6 + n: chr(97 + n) for n in range(26)}  # flags' letters
_LETTERS |= {
    first + n: chr(97 + n) for first in (0x1F150, 0x1F170) for n in range(26)
}  # in discs and squares
# Marks that only dress a letter up; vowels and tones of scripts that need theirs are others.
_BACKWARDS = pattern("\u202e([^\u202c]*)\u202c?")  # shown from right to left, up to its end
_MARKS = pattern(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]+"
)
# Letters that nobody sees.
_BLANK = pattern("[\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0]+")
# Thai that is written in two ways and looks the same: a doubled e for ae, a tone before the vowel above it.
_DOUBLED_E, _TONE_FIRST = "\u0e40\u0e40", pattern("([\u0e48-\u0e4b])([\u0e31\u0e34-\u0e37\u0e4d])")
# What a reader of pages, addresses and code sees through: tags, links, escapes.
_TAGS = pattern(r"<[!/]?[A-Za-z-][^<>]{0,200}>|\[([^\[\]]{1,200})\]\([^()\s]{0,500}\)")
_ESCAPE = pattern(r"\\u([0-9a-fA-F]{4})|\\x([0-9a-fA-F]{2})")
_PERCENT = pattern("(?:%[0-9a-fA-F]{2})+")
_ROUNDS = 3  # of what is escaped within something escaped
# Vowel signs are no letters to a pattern, but words of these scripts are nothing without them.
_KEPT = "\u0e00-\u0eff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u0600-\u06ff\u0590-\u05ff"
_BESIDES = pattern(f"[^\\w{_KEPT}]|_")

# Digits and signs that stand for letters within a word, and a capital I that is read as an l.
_STANDS = pattern(r"(?<=[^\W\d_])[01234578@$!|€]+|[01234578@$!|€]+(?=[^\W\d_])")
_TALL = pattern("I(?=[a-z])|(?<=[a-z])I")
_READ = (str.maketrans("01234578@$!|€", "olzeastbasile"), str.maketrans("01234578@$!|€", "oizeastbasiie"))
_IN_NUMBERS = pattern("[lIO|](?=[0-9])|(?<=[0-9])[lIO|]")
_AS_DIGITS = str.maketrans("lIO|", "1101")


def looks(text: str) -> Iterator[str]:
    """What a text may look like: as it is, unescaped, with signs in words read as letters and back."""
    forms = list(dict.fromkeys((text, _unescaped(text))))
    for one in tuple(forms):
        if _STANDS.search(one):
            forms += [_read_as(letters, one) for letters in _READ]
        forms.append(_IN_NUMBERS.sub(lambda m: m[0].translate(_AS_DIGITS), one))
    yield from dict.fromkeys(look(form) for one in forms for form in (one, _TALL.sub("l", one)))


def _unescaped(text: str) -> str:
    """What a page, an address or a program shows of a text that is written for it."""
    for _ in range(_ROUNDS):
        plain = _TAGS.sub(lambda m: m[1] or "", html.unescape(text))
        plain = _PERCENT.sub(lambda m: bytes.fromhex(m[0].replace("%", "")).decode(errors="replace"), plain)
        plain = _ESCAPE.sub(lambda m: chr(int(m[1] or m[2], 16)), plain)
        if plain == text:
            break
        text = plain
    return text


def _read_as(letters: dict[int, int], text: str) -> str:
    return _STANDS.sub(lambda m: m[0].translate(letters), text)


def look(text: str) -> str:
    """The letters and digits of a text as they look, without gaps between them."""
    text = _BACKWARDS.sub(lambda m: m[1][::-1], text)
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", text)).casefold().translate(_LETTERS)
    plain = _BESIDES.sub("", _MARKS.sub("", unicodedata.normalize("NFKD", plain)))
    if plain.isascii():
        return plain
    plain = _TONE_FIRST.sub(r"\2\1", _BLANK.sub("", plain).replace(_DOUBLED_E, "\u0e41"))
    return "".join(str(unicodedata.decimal(c)) if c.isdecimal() else c for c in plain)
