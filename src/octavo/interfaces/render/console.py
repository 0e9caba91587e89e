"""Where the command line prints, and the shapes it prints: lines, tables and grids."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from octavo.interfaces import settings
from octavo.interfaces.render.shapes import Column, Table, Text, written
from octavo.interfaces.render.text import clean
from octavo.later import Later

if TYPE_CHECKING:
    from octavo.interfaces.operation import Operation

shutil = Later("shutil")
rich_console = Later("rich.console")
rich_progress = Later("rich.progress")

Line = Text | Table | str

_PIPE_WIDTH = 160  # a table in a pipe is read by a program, which does not want its lines folded
_PAGE_WIDTH = 88  # a page is read like a book
_LONG = ("check", "repair", "backup", "export", "import", "catch_up", "reindex")


def write(line: Line, *, stderr: bool = False) -> None:
    """Print a line whole, for it may be piped or copied; a table fits itself to the terminal's width."""
    stream = sys.stderr if stderr else sys.stdout
    is_terminal = stream.isatty()
    coloured = is_terminal and settings.wants_colours()
    if isinstance(line, Table):
        columns = shutil.get_terminal_size().columns
        shown = line.lines(columns if is_terminal else max(columns, _PIPE_WIDTH), coloured=coloured)
        stream.writelines(f"{each}\n" for each in shown)
    else:
        pieces = [(line, "")] if isinstance(line, str) else line.pieces
        stream.write(written(pieces, coloured=coloured) + "\n")
    stream.flush()


def error(message: str, advice: str) -> None:
    """Say what went wrong and what to do now."""
    write(Text.assemble(("Error: ", "bold red"), clean(message)), stderr=True)
    if advice:
        write(Text.assemble(("  → ", "bold"), clean(advice)), stderr=True)


@contextmanager
def progress(operation: Operation) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error while a long operation runs, if somebody watches."""
    if operation.name not in _LONG or not sys.stderr.isatty():
        yield None
        return
    # The one thing that moves is worth loading a library for: these operations are long.
    console = rich_console.Console(stderr=True)
    with rich_progress.Progress(console=console, transient=True) as bar:
        task = bar.add_task(operation.name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def moment(at: datetime) -> str:
    """A time for reading, to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """A table without lines; only its column `text` folds."""
    made = (Column(name, folds=name == "text", is_right=name in numbers) for name in columns)
    return Table(*made, has_header=True)


def grid(rows: Mapping[str, Any]) -> Table:
    """Names and values, one below the other; what is empty is left out."""
    made = Table(Column(style="dim"), Column(folds=True))
    for name, value in rows.items():
        if value not in (None, "", (), [], {}):
            made.add_row(name, value if isinstance(value, Text) else clean(str(value)))
    return made


def page(paragraphs: Sequence[Text]) -> Table:
    """Paragraphs set to a width that is pleasant to read, with an empty line between them."""
    made = Table(Column(folds=True, widest=_PAGE_WIDTH), airy=True)
    for paragraph in paragraphs:
        made.add_row(paragraph)
    return made


def word_lines(word: str, key: str) -> Callable[[Mapping[str, Any]], Iterator[Line]]:
    """A view of one line: what was done, and to what."""

    def view(value: Mapping[str, Any]) -> Iterator[Line]:
        yield Text.assemble((word, "bold green"), " ", clean(str(value[key])))

    return view


def plural(noun: str, n: int) -> str:
    """A number with its noun."""
    ending = "" if n == 1 else "es" if noun.endswith("x") else "s"
    return f"{n} {noun}{ending}"
