"""A Markdown page as a list of blocks, pure: one block is one memory, named by the id that ends it.

Octavo writes a block as a list item. People may also write paragraphs, tables and code; a block without an
id is new. Every text comes back exactly: lines are indented, control characters become `&#13;`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping

_ID = re.compile(r"(.*)[ \n]\^([A-Za-z0-9][A-Za-z0-9_.:@-]{0,95})[ \t]*\Z", re.DOTALL)
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f\x85\u2028\u2029\ufeff]")
_ENTITY = re.compile(r"&((?:amp;)*)#(\d{1,7});")
_FRONT = re.compile(r"\A---\n(.*?)^---(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"(`{3,}|~{3,})")
_PLAIN = re.compile(r"[^\W\d_][\w /().,-]*", re.UNICODE)
_WORDS = ("true", "false", "yes", "no", "on", "off", "null")  # what YAML does not read as a text


def page(title: str, items: Iterable[tuple[str, str]], front: Mapping[str, str]) -> str:
    """A page of items, each with its section, in their order, those of one section together."""
    sections: dict[str, list[str]] = {"": []}
    for section, said in items:
        sections.setdefault(section, []).append(said)
    parts = [front_matter(front) + f"\n# {_one_line(title)}\n"]
    for name, some in sections.items():
        if some:
            heading = f"## {_one_line(name)}\n\n" if name else ""
            parts.append(heading + "".join(some))
    return "\n".join(parts)


def item(text: str, id_: str) -> str:
    """A block as a list item; the lines behind the first are indented, and the id ends the last."""
    first, *others = f"{escaped(text)} ^{id_}".split("\n")
    return "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in others)]) + "\n"


def blocks_of(text: str) -> Iterator[tuple[str, str, str | None, int]]:
    """The blocks of a page, whoever wrote it: the section, what is said, whose id, and the line."""
    lines = lines_of(text)
    front = _FRONT.match("\n".join(lines))
    section, at = "", front[0].count("\n") if front else 0
    while at < len(lines):
        line = lines[at]
        if line.startswith("## "):
            section, at = unescaped(line[3:]), at + 1
        elif not line.strip() or line.startswith("# "):
            at += 1
        else:
            is_item = line.startswith(("- ", "* "))
            end = _end_of_item(lines, at) if is_item else _end_of_paragraph(lines, at)
            said = "\n".join(one[2:] if is_item else one for one in lines[at:end])
            named = _ID.match(said)
            yield section, unescaped(named[1] if named else said), named[2] if named else None, at + 1
            at = end


def _end_of_item(lines: list[str], at: int) -> int:
    """Where a list item ends: its lines are indented, and empty ones belong to it if more of it follows."""
    end = at + 1
    for place in range(at + 1, len(lines)):
        if lines[place].startswith("  "):
            end = place + 1
        elif lines[place]:
            break
    return end


def _end_of_paragraph(lines: list[str], at: int) -> int:
    """Where a paragraph, a table or a fence ends; a fence holds empty lines."""
    fence = _FENCE.match(lines[at])
    for place in range(at + 1, len(lines)):
        if fence and lines[place].startswith(fence[1]):
            return place + 1
        if not fence and (not lines[place].strip() or lines[place].startswith(("# ", "## ", "- ", "* "))):
            return place
    return len(lines)


def front_of(text: str) -> tuple[str | None, str]:
    """The front matter of a text, None if it has none, and what follows it."""
    front = _FRONT.match(text)
    return (front[1], text[front.end() :]) if front else (None, text)


def front_matter(fields: Mapping[str, str | Mapping[str, str]]) -> str:
    """Front matter that any reader of YAML understands, a line a field."""
    lines = []
    for name, value in fields.items():
        if isinstance(value, str):
            lines.append(f"{name}: {_scalar(value)}")
        else:
            lines += [f"{name}:", *(f"  {key}: {_scalar(one)}" for key, one in value.items())]
    return "\n".join(["---", *lines, "---", ""])


def lines_of(text: str) -> list[str]:
    """The lines of a text, whichever ending an editor gave them."""
    return text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")


def escaped(text: str) -> str:
    """A text without control characters; what looks like an escaped one is marked."""
    marked = _ENTITY.sub(lambda m: f"&amp;{m[1]}#{m[2]};" if _is_control(m[2]) else m[0], text)
    return _CONTROL.sub(lambda m: f"&#{ord(m[0])};", marked)


def unescaped(text: str) -> str:
    """The text again."""

    def plain(entity: re.Match[str]) -> str:
        if not _is_control(entity[2]):
            return entity[0]
        return f"&{entity[1][4:]}#{entity[2]};" if entity[1] else chr(int(entity[2]))

    return _ENTITY.sub(plain, text)


def _is_control(number: str) -> bool:
    code = int(number)
    return str(code) == number and (code == 10 or (code < 0x10FFFF and bool(_CONTROL.match(chr(code)))))


def _one_line(text: str) -> str:
    return escaped(text).replace("\n", "&#10;")


def _scalar(value: str) -> str:
    is_plain = _PLAIN.fullmatch(value) and value == value.strip() and value.lower() not in _WORDS
    return value if is_plain else json.dumps(value, ensure_ascii=False)
