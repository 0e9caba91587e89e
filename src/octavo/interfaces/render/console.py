"""Where the command line prints, and the shapes it prints: lines, tables and grids."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from octavo.interfaces.render.text import clean
from octavo.later import Later

if TYPE_CHECKING:
    from octavo.interfaces.operation import Operation

rich_progress = Later("rich.progress")

Line = Text | Table | str

_PIPE_WIDTH = 160  # a table in a pipe is read by a program, which does not want its lines folded
_PAGE_WIDTH = 88  # a page is read like a book
_LONG = ("check", "repair", "backup", "export", "import", "catch_up", "reindex")


def write(line: Line, *, stderr: bool = False) -> None:
    """Print a line whole, for it may be piped or copied; a table fits itself to the terminal's width."""
    console = Console(stderr=stderr, highlight=False, emoji=False, markup=False)
    if not console.is_terminal:
        console.width = max(console.width, _PIPE_WIDTH)
    console.print(line, soft_wrap=not isinstance(line, Table))


def error(message: str, advice: str) -> None:
    """Say what went wrong and what to do now."""
    write(Text.assemble(("Error: ", "bold red"), clean(message)), stderr=True)
    if advice:
        write(Text.assemble(("  → ", "bold"), clean(advice)), stderr=True)


@contextmanager
def progress(operation: Operation) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error while a long operation runs, if somebody watches."""
    console = Console(stderr=True) if operation.name in _LONG else None
    if console is None or not console.is_terminal:
        yield None
        return
    with rich_progress.Progress(console=console, transient=True) as bar:
        task = bar.add_task(operation.name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


def moment(at: datetime) -> str:
    """A time for reading, to the minute, in UTC."""
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M}"


def table(*columns: str, numbers: Sequence[str] = ()) -> Table:
    """A table without lines; only its column `text` folds."""
    made = Table(box=None, header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
    for column in columns:
        made.add_column(
            column,
            no_wrap=column != "text",
            overflow="fold" if column == "text" else "ellipsis",
            justify="right" if column in numbers else "left",
        )
    return made


def grid(rows: Mapping[str, Any]) -> Table:
    """Names and values, one below the other; what is empty is left out."""
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    made.add_column(style="dim", no_wrap=True)
    made.add_column(overflow="fold")
    for name, value in rows.items():
        if value not in (None, "", (), [], {}):
            made.add_row(name, value if isinstance(value, Text) else clean(str(value)))
    return made


def page(paragraphs: Sequence[Text]) -> Table:
    """Paragraphs set to a width that is pleasant to read, with an empty line between them."""
    made = Table(box=None, show_header=False, pad_edge=False, padding=(0, 0, 1, 0))
    made.add_column(max_width=_PAGE_WIDTH, overflow="fold")
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
