"""What a text looks like: letters that a reader takes for others made one, marks and gaps left out.

Unicode's own decompositions do most of it; the table below holds the letters that they leave, after UTS 39.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from octavo.domain.patterns import pattern

# Latin letter: the letters that look like it, lower case, after compatibility decomposition.
_TABLE = """
a ᴀаαɑ⍺ꭺꓮ∂ⲁᗩⱥɐ
b ʙвβьɓƅꮟꓐⲃᗷƀ
c ᴄсϲⅽꮯꓚⲥᑕȼɔ
d ᴅԁɗđꓓꮷᗪ
e ᴇеεєɛ℮ꓰꭼⲉᗴɇǝꬲ
f ꜰƒꓝᖴɟ
g ɢɡԍցɠꓖǥ
h ʜһнհħꓧꮋꮒⲏᕼɥꜧ
i ɪіιıɩꓲꭵ⍳ⲓɨ
j ᴊјϳȷꓙᒍɉ
k ᴋкκƙꓗⲕᛕʞ
l ʟłⅼꓡꮮӏǀᒪ
m ᴍмⅿꓟꮇⲙᗰ
n ɴпոռηŋꓠⲛᑎ
o ᴏоοσօøɵꓳഠ๐০ⲟ
p ᴘрρƿꓑꮲⲣᑭᵽ
q ʠԛգզꞯ
r ʀггɼꓣꮁᖇɍɹ
s ꜱѕʂꓢꮪƽᔕ
t ᴛтτŧꓔꭲⲧʇꞇ
u ᴜυսʋꓴ∪ᑌʉ
v ᴠνѵⅴꓦꮩ∨ᐯʌ
w ᴡԝաɯѡꓪꮃᗯʍ
x хχⅹ×ꓫⲭ
y ʏуγүყꓬꭹⲩɏʎ
z ᴢʐꓜꮓⲍƶ
"""
_LETTERS = {
    ord(shape): line[0]
    for line in _TABLE.strip().splitlines()
    for other in line[2:]
    for shape in (other, other.casefold())  # Cherokee folds to its capitals
    if len(shape) == 1 and not shape.isspace()
}
_LETTERS |= {0x1F1E6 + n: chr(97 + n) for n in range(26)}  # flags' letters
_LETTERS |= {
    first + n: chr(97 + n) for first in (0x1F150, 0x1F170) for n in range(26)
}  # in discs and squares
# Marks that only dress a letter up; vowels and tones of scripts that need theirs are others.
_BACKWARDS = "\u202e"  # what follows is shown from right to left
_MARKS = pattern(
    "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe00-\ufe0f\ufe20-\ufe2f]+"
)
# Vowel signs are no letters to a pattern, but words of these scripts are nothing without them.
_KEPT = "\u0e00-\u0eff\u0900-\u0dff\u1000-\u109f\u1780-\u17ff\u0600-\u06ff\u0590-\u05ff"
_BESIDES = pattern(f"[^\\w{_KEPT}]|_")

# Digits and signs that stand for letters within a word, and a capital I that is read as an l.
_STANDS = pattern(r"(?<=[^\W\d_])[0134578@$!|]+|[0134578@$!|]+(?=[^\W\d_])")
_TALL = pattern("I(?=[a-z])|(?<=[a-z])I")
_READ = (str.maketrans("0134578@$!|", "oleastbasil"), str.maketrans("0134578@$!|", "oieastbasii"))


def looks(text: str) -> Iterator[str]:
    """What a text may look like: as it is, and with signs within words read as letters they stand for."""
    forms = [text]
    if _STANDS.search(text):
        forms += [_read_as(letters, text) for letters in _READ]
    yield from dict.fromkeys(look(form) for one in forms for form in (one, _TALL.sub("l", one)))


def _read_as(letters: dict[int, int], text: str) -> str:
    return _STANDS.sub(lambda m: m[0].translate(letters), text)


def look(text: str) -> str:
    """The letters and digits of a text as they look, without gaps between them."""
    before, _, backwards = text.partition(_BACKWARDS)
    text = before + backwards[::-1]
    plain = _MARKS.sub("", unicodedata.normalize("NFKD", text)).casefold().translate(_LETTERS)
    return _BESIDES.sub("", _MARKS.sub("", unicodedata.normalize("NFKD", plain)))
