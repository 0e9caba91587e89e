"""A Markdown page as a list of blocks, pure: one block is one memory, named by the id that ends it.

Octavo writes a block as a list item. People may also write paragraphs, tables and code; a block without an
id is new. Every text comes back exactly: lines are indented, control characters become `&#13;`, and so do
blanks at the end of a line, which editors add and take away: in a file they mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from octavo.errors import BadInput

_ID = re.compile(r"(.*)[ \n]\^([A-Za-z0-9][A-Za-z0-9_.:@-]{0,95})[ \t]*\Z", re.DOTALL)
_CONTROLS = (*range(9), *range(11, 32), 0x7F, 0x85, 0x2028, 0x2029, 0xFEFF)
_CONTROL = re.compile(f"[{re.escape(''.join(map(chr, _CONTROLS)))}]")
_ENTITY = re.compile(f"&((?:amp;)*)#({'|'.join(map(str, (9, 10, 32, *_CONTROLS)))});")
_BULLETS, _INDENTED = ("- ", "* ", "+ "), ("  ", "\t")
_BLANKS = " \t"
_ENDING = re.compile(f"[{_BLANKS}](?=\n|\\Z)")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_MERGE = re.compile(r"^<{7} .*^={7}$.*^>{7} ", re.DOTALL | re.MULTILINE)
_FENCE = re.compile(r"(`{3,}|~{3,})")


def page(title: str, items: Iterable[tuple[str, str]], front: Mapping[str, Any]) -> str:
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
    first, *others = _ENDING.sub(_entity, f"{escaped(text)} ^{id_}").split("\n")
    return "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in others)]) + "\n"


def blocks_of(text: str, titles: Collection[str] = ()) -> Iterator[tuple[str, str, str | None, int, int]]:
    """The blocks of a page, whoever wrote it: the section, what is said, whose id, first and last line.

    A heading of the first order is a section like one of the second, unless it is one of the page's `titles`.
    """
    lines = plain(text).split("\n")
    section, at = "", len(lines) - front_of(text)[1].count("\n") - 1
    own = {title.strip().casefold() for title in titles}
    while at < len(lines):
        line = lines[at]
        if line.startswith(("# ", "## ")):
            heading = unescaped(line.lstrip("#").strip(_BLANKS))
            section = section if line.startswith("# ") and heading.strip().casefold() in own else heading
            at += 1
        elif not line.strip():
            at += 1
        else:
            is_item = line.startswith(_BULLETS) or f"{line} " in _BULLETS
            end = _end_of_item(lines, at) if is_item else _end_of_paragraph(lines, at)
            inner = [one[1 if one.startswith("\t") else 2 :] if is_item else one for one in lines[at:end]]
            said = "\n".join(one.rstrip(_BLANKS) for one in inner)
            named = _ID.match(said)
            if named or said:
                text, id_ = named.groups() if named else (said, None)
                yield section, unescaped(text), id_, at + 1, end
            at = end


def _end_of_item(lines: list[str], at: int) -> int:
    """Where a list item ends: its lines are indented, and empty ones belong to it if more of it follows."""
    end = at + 1
    for place in range(at + 1, len(lines)):
        if lines[place].strip() and not lines[place].startswith(_INDENTED):
            break
        end = place + 1 if lines[place].strip() else end
    return end


def _end_of_paragraph(lines: list[str], at: int) -> int:
    """Where a paragraph, a table or a fence ends; a fence holds empty lines."""
    fence = _FENCE.match(lines[at])
    for place in range(at + 1, len(lines)):
        if fence and lines[place].startswith(fence[1]):
            return place + 1
        if not fence and (not lines[place].strip() or lines[place].startswith(("# ", "## ", *_BULLETS))):
            return place
    return len(lines)


def front_of(text: str) -> tuple[Mapping[str, Any], str]:
    """The fields of a text's front matter, none if it has none, and what follows it; BadInput if broken."""
    text = plain(text)
    front = _FRONT.match(text)
    try:
        fields = msgspec.yaml.decode(front[1].encode()) or {} if front else None
    except msgspec.DecodeError as error:
        raise BadInput(f"the front matter is no YAML: {str(error).splitlines()[0]}") from error
    return (fields, text[front.end() :]) if front and isinstance(fields, Mapping) else ({}, text)


def front_matter(fields: Mapping[str, Any]) -> str:
    """Front matter that any reader of YAML understands."""
    return f"---\n{msgspec.yaml.encode(fields).decode()}---\n"


def plain(text: str) -> str:
    """A text, whichever line ends an editor gave it; BadInput if Git left a merge in it."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    if merge := _MERGE.search(text):
        line = text.count("\n", 0, merge.start()) + 1
        raise BadInput(f"line {line}: a merge of Git is not finished here", hint="decide it, then sync")
    return text


def escaped(text: str) -> str:
    """A text without control characters; what looks like an escaped one is marked."""
    return _CONTROL.sub(_entity, _ENTITY.sub(r"&amp;\1#\2;", text))


def unescaped(text: str) -> str:
    """The text again."""
    return _ENTITY.sub(
        lambda entity: f"&{entity[1][4:]}#{entity[2]};" if entity[1] else chr(int(entity[2])), text
    )


def _entity(character: re.Match[str]) -> str:
    return f"&#{ord(character[0])};"


def _one_line(text: str) -> str:
    """A text as a heading; blanks around it are spelt out, because a heading has none."""
    line = escaped(text).replace("\n", "&#10;")
    return re.sub(f"^[{_BLANKS}]|[{_BLANKS}]$", _entity, line)
