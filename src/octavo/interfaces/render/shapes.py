"""The shapes that the command line prints: text in styles, and columns that fold to a width.

A library for this takes longer to load than most commands run. Widths are counted in the cells of a terminal:
a Thai mark takes none, a Chinese character two.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_CODES = {
    "bold": "1",
    "dim": "2",
    "underline": "4",
    "strike": "9",
    "red": "31",
    "green": "32",
    "yellow": "33",
    "magenta": "35",
    "cyan": "36",
}
_GAP = "  "
_NARROWEST = 12  # a column is folded to no less; what is still too wide runs over
_TAB = "    "

Piece = tuple[str, str]  # some text and its style, such as "bold red"


class Cell(NamedTuple):
    """A character with the marks upon it, its style, and how many columns of a terminal it takes."""

    text: str
    style: str
    width: int


class Text:
    """A text in pieces, each with a style of its own."""

    def __init__(self, text: str = "", style: str = "") -> None:
        self.pieces: list[Piece] = [(text, style)]

    @classmethod
    def assemble(cls, *parts: str | Piece | Text) -> Text:
        """One text out of several parts."""
        made = cls()
        for part in parts:
            if isinstance(part, Text):
                made.pieces += part.pieces
            else:
                made.pieces.append((part, "") if isinstance(part, str) else part)
        return made

    def append(self, text: str, style: str = "") -> None:
        """Add some text at the end."""
        self.pieces.append((text, style))

    @property
    def plain(self) -> str:
        """The text without its styles."""
        return "".join(text for text, _ in self.pieces)


class Column(NamedTuple):
    """A column: whether its text may fold, where it stands, its style, and how wide it gets at most."""

    name: str = ""
    folds: bool = False
    is_right: bool = False
    style: str = ""
    widest: int | None = None


class Table:
    """Columns without lines between them; `airy` rows have an empty line between them."""

    def __init__(self, *columns: Column, has_header: bool = False, airy: bool = False) -> None:
        self.columns = columns
        self.airy = airy
        self.rows: list[Sequence[str | Text]] = []
        if has_header:
            self.rows.append([Text(column.name, "bold") for column in columns])

    def add_row(self, *cells: str | Text) -> None:
        """Add a row; cells that are not given are empty."""
        self.rows.append([*cells, *[""] * (len(self.columns) - len(cells))])

    def lines(self, width: int, *, coloured: bool) -> Iterator[str]:
        """The table as lines of at most that width."""
        rows = [
            [_cells(cell, column.style) for cell, column in zip(row, self.columns, strict=True)]
            for row in self.rows
        ]
        widths = self._widths(rows, width)
        for number, row in enumerate(rows):
            if number and self.airy:
                yield ""
            folded = [_folded(cell, size) for cell, size in zip(row, widths, strict=True)]
            for line in range(max(map(len, folded), default=0)):
                parts = [cell[line] if line < len(cell) else [] for cell in folded]
                yield self._line(parts, widths, coloured)

    def _line(self, parts: Sequence[Sequence[Cell]], widths: Sequence[int], coloured: bool) -> str:
        shown = []
        for cells, size, column in zip(parts, widths, self.columns, strict=True):
            room = " " * (size - sum(cell.width for cell in cells))
            text = written([(cell.text, cell.style) for cell in cells], coloured=coloured)
            shown.append(room + text if column.is_right else text + room)
        return _GAP.join(shown).rstrip(" ")

    def _widths(self, rows: Sequence[Sequence[Sequence[Cell]]], width: int) -> list[int]:
        """How wide each column gets: as its widest line, unless it may fold and all would be too wide."""
        found = [
            max((_width(line) for row in rows for line in _folded(row[n], None)), default=0)
            for n in range(len(self.columns))
        ]
        found = [
            size if column.widest is None else min(size, column.widest)
            for size, column in zip(found, self.columns, strict=True)
        ]
        excess = sum(found) + len(_GAP) * (len(found) - 1) - width
        for n, column in enumerate(self.columns):
            if column.folds and excess > 0:
                kept = max(found[n] - excess, min(found[n], _NARROWEST))
                excess -= found[n] - kept
                found[n] = kept
        return found


def written(pieces: Sequence[Piece], *, coloured: bool) -> str:
    """Pieces as a terminal reads them, neighbours of one style together."""
    if not coloured:
        return "".join(text for text, _ in pieces)
    runs: list[Piece] = []
    for text, style in pieces:
        if runs and runs[-1][1] == style:
            runs[-1] = (runs[-1][0] + text, style)
        elif text:
            runs.append((text, style))
    return "".join(f"\x1b[{_code(style)}m{text}\x1b[0m" if style else text for text, style in runs)


def _code(style: str) -> str:
    return ";".join(_CODES[word] for word in style.split())


def _cells(text: str | Text, style: str) -> list[Cell]:
    """A text, character by character; a mark belongs to the character it stands upon."""
    cells: list[Cell] = []
    for piece, own in [(text, "")] if isinstance(text, str) else text.pieces:
        for character in piece.replace("\t", _TAB):
            width = _columns(character)
            if width == 0 and character != "\n" and cells and cells[-1].text != "\n":
                base = cells[-1]
                cells[-1] = Cell(base.text + character, base.style, base.width)
            else:
                cells.append(Cell(character, own or style, width))
    return cells


def _columns(character: str) -> int:
    if character < "\u0300":
        return 0 if character == "\n" else 1
    if unicodedata.category(character) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in ("W", "F") else 1


def _width(cells: Sequence[Cell]) -> int:
    return sum(cell.width for cell in cells)


def _folded(cells: Sequence[Cell], width: int | None) -> list[list[Cell]]:
    """The lines of a text, each at most that wide, broken at a space if there is one."""
    lines: list[list[Cell]] = [[]]
    taken = 0
    for cell in cells:
        if cell.text == "\n":
            lines.append([])
            taken = 0
            continue
        lines[-1].append(cell)
        taken += cell.width
        if width is not None and taken > width and len(lines[-1]) > 1:
            lines[-1:] = _broken(lines[-1])
            taken = _width(lines[-1])
    return lines


def _broken(line: list[Cell]) -> list[list[Cell]]:
    """A line that is one cell too wide, as two: the space that they part at belongs to neither."""
    space = max((n for n, cell in enumerate(line) if cell.text == " "), default=0)
    return [line[:space], line[space + 1 :]] if space else [line[:-1], line[-1:]]
