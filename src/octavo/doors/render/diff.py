"""The difference of two versions in colour, down to the words that changed in a text."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec.structs import fields

from octavo.domain.memory import Memory
from octavo.domain.patterns import pattern
from octavo.domain.text import UNSPACED
from octavo.doors import plain
from octavo.doors.render.shapes import Line, dim, line, said, topic
from octavo.engine.versions import Diff

# A word is a run of letters; in scripts without spaces it is one letter with the marks that sit on it.
_MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3"
_PIECE = pattern(f"[{UNSPACED}][{_MARKS}]*|[^\\W{UNSPACED}]+|\\s+|.", re.DOTALL)
_LONGEST = 20_000
_DERIVED = ("id", "rev", "actor", "sandbox")


def diff_lines(difference: Diff) -> Iterator[Line]:
    """One line for each memory that came or went, and the changed fields of each that changed."""
    for memory in difference.added:
        yield line(("+ ", "bold green"), (f"{memory.id} {memory.kind}  ", "green"), said(memory))
    for memory in difference.removed:
        yield line(("- ", "bold red"), (f"{memory.id} {memory.kind}  ", "red"), said(memory))
    for old, new in difference.changed:
        yield line(("~ ", "bold yellow"), (f"{new.id} {new.kind}  ", "yellow"), topic(new))
        seen = list(changed_fields(old, new))
        yield from seen or [dim(f"    says the same, as revision {new.rev}")]
    if not difference:
        yield dim("nothing differs")


def changed_fields(old: Memory, new: Memory) -> Iterator[Line]:
    """What two revisions of a memory differ in, a line a field."""
    for field in fields(new):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before == after or field.name in _DERIVED:
            continue
        if field.name == "text":
            yield line("    ", changed_words(before, after))
        elif isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _changed_keys(field.name, before, after)
        else:
            yield _replaced(field.name, before, after)


def changed_words(before: str, after: str) -> Line:
    """Both texts in one: what went struck through in red, what came underlined in green."""
    marked = {"-": ("[-{}-]", "red strike"), "+": ("{{+{}+}}", "green underline"), "=": ("{}", "")}
    steps = ((*marked[sign], piece) for sign, piece in word_steps(before, after))
    return line(*((form.format(piece), style) for form, style, piece in steps))


def word_steps(before: str, after: str) -> Iterator[tuple[str, str]]:
    """What leads from one text to another: pieces that stay (`=`), went (`-`) or came (`+`), in order."""
    old, new = _pieces(before), _pieces(after)
    for action, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if action == "equal":
            yield "=", "".join(old[a:b])
            continue
        if a < b:
            yield "-", "".join(old[a:b])
        if c < d:
            yield "+", "".join(new[c:d])


def _pieces(text: str) -> list[str]:
    """The words of a text; the lines of a very long one, for comparing takes the square of their number."""
    return _PIECE.findall(text) if len(text) <= _LONGEST else text.splitlines(keepends=True)


def _changed_keys(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Line]:
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) != after.get(key):
            yield _replaced(f"{name}.{key}", before.get(key), after.get(key))


def _replaced(name: str, before: Any, after: Any) -> Line:
    old, new = (str(plain.plain(before)), "red"), (str(plain.plain(after)), "green")
    if before is None or after is None:
        return line((f"    {name} ", "dim"), *(("+ ", new) if before is None else ("- ", old)))
    return line((f"    {name} ", "dim"), old, " → ", new)
