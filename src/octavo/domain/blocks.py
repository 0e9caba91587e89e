"""A Markdown page as a list of blocks, pure: one block is one memory, named by the id that ends it.

Octavo writes a block as a list item. People may also write paragraphs, tables and code; a block without an
id is new. Every text comes back exactly: lines are indented, control characters become `&#13;`, and so do
blanks at the end of a line, which editors add and take away: in a file they mean nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from octavo.errors import BadInput

_ID = re.compile(r"(.*)[ \n]\^([A-Za-z0-9][A-Za-z0-9_.:@-]{0,95})[ \t]*\Z", re.DOTALL)
_CONTROLS = (*range(9), *range(11, 32), 0x7F, 0x85, 0x2028, 0x2029, 0xFEFF)
_CONTROL = re.compile(f"[{re.escape(''.join(map(chr, _CONTROLS)))}]")
_ENTITY = re.compile(f"&((?:amp;)*)#({'|'.join(map(str, (9, 10, 32, *_CONTROLS)))});")
_BLANKS = " \t"
# A heading; an item with its indented lines, and empty ones if more of it follows; a fence, which may hold
# empty lines; else a paragraph or a table up to an empty line, a heading or an item.
_BLOCK = re.compile(
    r"""
    ^ (?: (?P<heading> \#{1,2}[ ].* )
        | (?P<item> [-*+] (?: [ ].* )? $ (?: \n (?: [^\S\n]*\n )* (?: [ ]{2} | \t ) .*\S.* )* )
        | (?P<fence> `{3,} | ~{3,} ) (?: .*\n )*? (?: (?<=\n) (?P=fence) .* | .*\Z )
        | .*\S.* (?: \n (?! \#{1,2}[ ] | [-*+][ ] | [^\S\n]*$ ) .* )* )
    """,
    re.MULTILINE | re.VERBOSE,
)
_FENCED = re.compile(r"^ {0,3}(?:`{3,}|~{3,})[ \t]*\Z", re.MULTILINE)
_ENDING = re.compile(f"[{_BLANKS}](?=\n|\\Z)")
_FRONT = re.compile(r"\A---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_COMMENT = re.compile(r"(?:^|(?<=\s))#.*", re.MULTILINE)
_MERGE = re.compile(r"^<{7} .*^={7}$.*^>{7} ", re.DOTALL | re.MULTILINE)


def item(text: str, id_: str) -> str:
    """A block as a list item; the lines behind the first are indented, and the id ends the last.

    Behind code it is a line of its own, for a fence that anything follows does not end.
    """
    if "\n" not in text:  # most are one line, and cheap
        return f"- {escaped(text)} ^{id_}\n"
    between = "\n" if _FENCED.search(text) else " "
    first, *others = _ENDING.sub(_entity, f"{escaped(text)}{between}^{id_}").split("\n")
    return "\n".join([f"- {first}", *(f"  {line}" if line else "" for line in others)]) + "\n"


Block = tuple[str, str, str | None, int, int]  # the section, what is said, whose id, first and last line


def blocks_of(text: str, titles: Collection[str] = (), *, headings: bool = False) -> Iterator[Block]:
    """The blocks of a page, whoever wrote it; with `headings` each of these is one that says nothing too.

    A heading of the first order is a section like one of the second, unless it is one of the page's `titles`.
    """
    whole = plain(text)
    section, line, at = "", 1, 0
    own = {title.strip().casefold() for title in titles}
    for block in _BLOCK.finditer(whole, len(whole) - len(front_of(text)[1])):
        line, at = line + whole.count("\n", at, block.start()), block.start()
        if block["heading"]:
            heading = unescaped(block[0].lstrip("#").strip(_BLANKS))
            if block[0][1] != " " or heading.strip().casefold() not in own:
                section = heading
                yield from [(section, "", None, line, line)] * headings
            continue
        lines = block[0].split("\n")
        if block["item"]:
            lines = [one[1 if one.startswith("\t") else 2 :] for one in lines]
        said = "\n".join(one.rstrip(_BLANKS) for one in lines)
        named = _ID.match(said)
        if named or said:
            words, id_ = named.groups() if named else (said, None)
            yield section, unescaped(words), id_, line, line + len(lines) - 1


def front_of(text: str) -> tuple[Mapping[str, Any], str]:
    """The fields of a text's front matter, none if it has none, and what follows it; BadInput if broken."""
    text = plain(text)
    front = _FRONT.match(text)
    try:
        said = msgspec.yaml.decode(front[1].encode()) or {} if front else None
    except msgspec.DecodeError as error:
        raise BadInput(f"the front matter is no YAML: {str(error).splitlines()[0]}") from error
    fields = msgspec.to_builtins(said, str_keys=True)
    return (fields, text[front.end() :]) if front and isinstance(fields, Mapping) else ({}, text)


def comments_of(text: str) -> Iterator[str]:
    """The comments of a text's front matter: what can be left out of it, and its fields stay the same."""
    fields, rest = front_of(text)
    head = plain(text).removesuffix(rest)
    for mark in _COMMENT.finditer(head):
        with suppress(BadInput):
            if front_of(head[: mark.start()] + head[mark.end() :])[0] == fields:
                yield mark[0]


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
    if text.isprintable() and "&" not in text:
        return text
    return _CONTROL.sub(_entity, _ENTITY.sub(r"&amp;\1#\2;", text))


def unescaped(text: str) -> str:
    """The text again."""
    return _ENTITY.sub(
        lambda entity: f"&{entity[1][4:]}#{entity[2]};" if entity[1] else chr(int(entity[2])), text
    )


def heading(text: str, marks: str) -> str:
    """A heading of one line; blanks around its text are spelt out, because a heading has none."""
    line = escaped(text).replace("\n", "&#10;")
    return f"{marks} {re.sub(f'^[{_BLANKS}]|[{_BLANKS}]$', _entity, line)}\n"


def _entity(character: re.Match[str]) -> str:
    return f"&#{ord(character[0])};"
