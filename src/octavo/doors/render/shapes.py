"""What a view is made of: lines in styles, tables and pages; a memory in a line, and any value in a cell."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from octavo.domain.memory import Memory
from octavo.doors import plain

Piece = tuple[str, str]  # some text and its style, such as "bold red"
_EMPTY: tuple[Any, ...] = (None, "", (), [], {})
_NESTED = (Struct, Mapping, list, tuple)
_LONGEST = 200
_NUMBER = re.compile(r"[+-]?[\d.,]+%?")


class Line(list[Piece]):
    """A text in pieces, each with a style of its own."""

    @property
    def plain(self) -> str:
        """The text without its styles."""
        return "".join(text for text, _ in self)


class Table(Struct, frozen=True, kw_only=True):
    """Columns without lines between them; the `wide` one takes the room that the others leave, and folds."""

    columns: tuple[str, ...]
    rows: list[list[Line]]

    @property
    def wide(self) -> int:
        """The text, or else the column in which most is said."""
        if "text" in self.columns:
            return self.columns.index("text")
        longest = [max(len(each.plain) for each in column) for column in zip(*self.rows, strict=True)]
        return len(longest) - 1 - longest[::-1].index(max(longest))

    def is_number(self, column: int) -> bool:
        """Whether numbers stand in a column."""
        return column != self.wide and _NUMBER.fullmatch(self.rows[0][column].plain) is not None


class Page(list[Line]):
    """Paragraphs to read like a book, with an empty line between them; a list hangs behind its dashes."""


Shown = Line | Table | Page | str  # a bare text is shown as it stands, line by line


def line(*parts: str | Piece | Line) -> Line:
    """One line out of several parts."""
    made = Line()
    for part in parts:
        made += part if isinstance(part, Line) else [(part, "") if isinstance(part, str) else part]
    return made


def dim(text: str) -> Line:
    """A remark."""
    return line((text, "dim"))


def table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """A table of rows; a column in which nothing is said is left out."""
    names = dict.fromkeys(name for row in rows for name, item in row.items() if item not in _EMPTY)
    cells = [[cell(row.get(name)) or line() for name in names] for row in rows]
    return Table(columns=tuple(names), rows=cells)


def grid(rows: Mapping[str, Any]) -> Table:
    """Names and values, one below the other; what is empty is left out."""
    told = [[dim(name), shown] for name, value in rows.items() if (shown := cell(value)) is not None]
    return Table(columns=("", ""), rows=told)


def moment(at: datetime) -> str:
    """A time for reading, to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def plural(noun: str, n: int) -> str:
    """A number with its noun."""
    if n != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}{'es' if noun.endswith('x') else 's'}"
    return f"{n} {noun}"


def one_line(text: str) -> str:
    """The beginning of a text, on one line."""
    flat = " ".join(plain.clean(text).split())
    return flat if len(flat) <= _LONGEST else f"{flat[:_LONGEST]}…"


def said(memory: Memory) -> Line:
    """A memory in a line: its topic and tags, and its text, of a page the first words, else its data."""
    tags = line((f"  {one_line(' '.join(f'#{tag}' for tag in memory.tags))}", "dim")) if memory.tags else ""
    text = memory.text if memory.kind != "episode" else " · ".join(memory.text.splitlines())
    if memory.kind in ("core", "sphere"):
        text = text.partition("\n\n")[0]
    if not text:
        text = json.dumps(plain.plain(memory.data), ensure_ascii=False)
    return line(topic(memory), one_line(text), tags)


def topic(memory: Memory) -> Line:
    """The topic of a memory, before its text."""
    return line((f"{one_line(memory.topic)}  ", "cyan")) if memory.topic else line()


def cell(value: Any) -> Line | None:
    """A value in a few words, None if there is nothing to say."""
    if value in _EMPTY:
        return None
    if isinstance(value, Memory):
        return line(f"{value.id}  ", said(value))
    return value if isinstance(value, Line) else line(_words(value))


def _words(value: Any) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
        case float():
            return f"{value:g}"
        case Struct():
            return _words(_fields(value))
        case Mapping() if not any(isinstance(item, _NESTED) for item in value.values()):
            return ", ".join(f"{name} {_words(item)}" for name, item in value.items() if item not in _EMPTY)
        case list() | tuple() if not any(isinstance(item, list | tuple) for item in value):
            return "\n".join(map(_words, value))
        case Mapping() | list() | tuple():
            return one_line(plain.document(value))
        case _:
            return str(plain.plain(value))


def value_lines(value: Any) -> Iterator[Shown]:
    """Any value by its form: records as a table, one field by field; what stands alone without its name."""
    if isinstance(value, Mapping) and len(value) == 1:
        (value,) = value.values()
    if value in _EMPTY:
        yield dim("nothing found")
    elif _is_record(value):
        yield grid(_fields(value))
    elif isinstance(value, str) or not isinstance(value, Sequence):
        yield cell(value) or line()
    elif all(map(_is_record, value)):
        yield table([_fields(item) for item in value])
    else:
        yield from (cell(item) or line() for item in value)


def _is_record(value: Any) -> bool:
    return isinstance(value, Struct | Mapping) and not isinstance(value, Memory)


def _fields(value: Any) -> Mapping[str, Any]:
    """The fields of a record under their names in words, those of a mapping under the names it has."""
    if not isinstance(value, Struct):
        return {str(name): item for name, item in value.items()}
    return {name.replace("_", " "): item for name, item in asdict(value).items()}
