"""The difference of two versions in colour, down to the words that changed in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from octavo.domain.patterns import pattern
from octavo.domain.text import UNSPACED
from octavo.interfaces.render.shapes import Text
from octavo.interfaces.render.text import clean, said
from octavo.later import Later

if TYPE_CHECKING:
    from octavo.domain.memory import Memory
    from octavo.engine.differences import Diff

difflib = Later("difflib")
plain = Later("octavo.interfaces.plain")

# A word is a run of letters; in scripts without spaces it is one letter with the marks that sit on it.
_MARKS = "\u0e31\u0e34-\u0e3a\u0e47-\u0e4e\u0eb1\u0eb4-\u0ebc\u0ec8-\u0ecd\u102b-\u103e\u17b4-\u17d3"
_PIECE = pattern(f"[{UNSPACED}][{_MARKS}]*|[^\\W{UNSPACED}]+|\\s+|.", re.DOTALL)
_LONGEST = 20_000
_DERIVED = ("id", "rev", "actor", "session")


def diff_lines(difference: Diff) -> Iterator[Text]:
    """One line for each memory that came or went, and the changed fields of each that changed."""
    for memory in difference.added:
        yield Text.assemble(("+ ", "bold green"), (f"{memory.id} {memory.kind}  ", "green"), said(memory))
    for memory in difference.removed:
        yield Text.assemble(("- ", "bold red"), (f"{memory.id} {memory.kind}  ", "red"), said(memory))
    for old, new in difference.changed:
        yield Text.assemble(("~ ", "bold yellow"), (f"{new.id} {new.kind}  ", "yellow"), _name(new))
        seen = list(changed_fields(old, new))
        yield from seen or [Text(f"    says the same, as revision {new.rev}", "dim")]
    if not difference:
        yield Text("nothing differs", "dim")


def changed_fields(old: Memory, new: Memory) -> Iterator[Text]:
    """What two revisions of a memory differ in, a line a field."""
    for field in fields(new):
        before, after = getattr(old, field.name), getattr(new, field.name)
        if before == after or field.name in _DERIVED:
            continue
        if field.name == "text":
            yield Text.assemble("    ", changed_words(before, after))
        elif isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from _changed_keys(field.name, before, after)
        else:
            yield _replaced(field.name, before, after)


def changed_words(before: str, after: str) -> Text:
    """Both texts in one: what went struck through in red, what came underlined in green."""
    old, new = _pieces(clean(before)), _pieces(clean(after))
    shown = Text()
    for action, a, b, c, d in difflib.SequenceMatcher(a=old, b=new, autojunk=False).get_opcodes():
        if action == "equal":
            shown.append("".join(old[a:b]))
            continue
        shown.append("[-" + "".join(old[a:b]) + "-]" if a < b else "", "red strike")
        shown.append("{+" + "".join(new[c:d]) + "+}" if c < d else "", "green underline")
    return shown


def _pieces(text: str) -> list[str]:
    """The words of a text; the lines of a very long one, for comparing takes the square of their number."""
    return _PIECE.findall(text) if len(text) <= _LONGEST else text.splitlines(keepends=True)


def _changed_keys(name: str, before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[Text]:
    for key in dict.fromkeys((*before, *after)):
        if before.get(key) != after.get(key):
            yield _replaced(f"{name}.{key}", before.get(key), after.get(key))


def _replaced(name: str, before: Any, after: Any) -> Text:
    old, new = (
        (clean(str(plain.plain(value))), colour) for value, colour in ((before, "red"), (after, "green"))
    )
    arrow = (
        (old, " → ", new) if None not in (before, after) else ("- ", old) if after is None else ("+ ", new)
    )
    return Text.assemble((f"    {clean(name)} ", "dim"), *arrow)


def _name(memory: Memory) -> Text:
    return Text(clean(memory.topic), "cyan") if memory.topic else Text("")
