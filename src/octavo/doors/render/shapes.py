"""What a view is made of: lines in styles, tables and pages, drawn by whoever shows them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

Piece = tuple[str, str]  # some text and its style, such as "bold red"


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
    numbers: tuple[str, ...] = ()
    wide: int = -1

    def add(self, *cells: str | Line) -> None:
        """Add a row; cells that are not said are empty."""
        empty = [""] * (len(self.columns) - len(cells))
        self.rows.append([cell if isinstance(cell, Line) else line(cell) for cell in (*cells, *empty)])


class Page(Struct, frozen=True):
    """Paragraphs to read like a book, with an empty line between them."""

    paragraphs: Sequence[Line]


Shown = Line | Table | Page | str  # a bare text is shown as it stands, line by line


def line(*parts: str | Piece | Line) -> Line:
    """One line out of several parts."""
    made = Line()
    for part in parts:
        if isinstance(part, Line):
            made += part
        else:
            made.append((part, "") if isinstance(part, str) else part)
    return made


def dim(text: str) -> Line:
    """A remark."""
    return line((text, "dim"))


def table(*columns: str, numbers: Sequence[str] = (), wide: str = "text") -> Table:
    """An empty table with a header."""
    return Table(columns=columns, rows=[], numbers=tuple(numbers), wide=columns.index(wide))


def grid(rows: Mapping[str, Any]) -> Table:
    """Names and values, one below the other; what is empty is left out."""
    made = Table(columns=("", ""), rows=[])
    for name, value in rows.items():
        if value not in (None, "", (), [], {}):
            made.add(dim(name), value if isinstance(value, Line) else str(value))
    return made


def moment(at: datetime) -> str:
    """A time for reading, to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def plural(noun: str, n: int) -> str:
    """A number with its noun."""
    if n != 1:
        noun = f"{noun[:-1]}ies" if noun.endswith("ry") else f"{noun}{'es' if noun.endswith('x') else 's'}"
    return f"{n} {noun}"
