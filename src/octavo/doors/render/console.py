"""Where the command line prints: the one place that draws with rich and makes steering visible.

rich is loaded with the first table or colour: it takes longer than help does.
"""

from __future__ import annotations

import io
import shutil
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from octavo.doors import settings
from octavo.doors.plain import clean
from octavo.doors.render.shapes import Line, Page, Shown, Table, grid, line

_PIPE_WIDTH = 160  # a table in a pipe is read by a program, which does not want its lines folded
_PAGE_WIDTH = 88  # a page is read like a book
_BULLETS = ("- ", "• ")  # behind which the lines of a list hang
_NARROWEST = 24  # where a wide column would be narrower than this, each row stands by itself
_GAP = 2  # between columns


def write(shown: Shown, *, stderr: bool = False) -> None:
    """Print a line whole, for it may be piped or copied; a table fits itself to the terminal's width."""
    stream = sys.stderr if stderr else sys.stdout
    is_terminal = stream.isatty()
    coloured = is_terminal and settings.wants_colours()
    if isinstance(shown, str) or (isinstance(shown, Line) and not coloured):
        stream.write(clean(shown if isinstance(shown, str) else shown.plain.rstrip(" ")) + "\n")
    else:
        columns = shutil.get_terminal_size().columns
        width = columns if is_terminal else max(columns, _PIPE_WIDTH)
        drawn = draw(shown, width=width, coloured=coloured)
        stream.writelines(f"{each.rstrip(' ')}\n" for each in drawn.removesuffix("\n").split("\n"))
    stream.flush()


def draw(shown: Line | Table | Page, *, width: int, coloured: bool = False) -> str:
    """A shape as a terminal of that width shows it."""
    from rich.console import Console

    paper = io.StringIO()
    console = Console(
        file=paper,
        width=width,
        force_terminal=coloured,
        color_system="standard" if coloured else None,
        legacy_windows=False,
    )
    if isinstance(shown, Line):
        console.print(_text(shown), soft_wrap=True)
    elif isinstance(shown, Page):
        for number, paragraph in enumerate(shown):
            told: list[Any] = [""] if number else []
            for each in _text(paragraph).split():
                hang = "  " * each.plain.startswith(_BULLETS)
                parts = each.wrap(console, min(width, _PAGE_WIDTH) - len(hang))
                told.append(_text(line(f"\n{hang}")).join(parts))
            console.print(*told, sep="\n")
    elif _fits(shown, width):
        console.print(_columns(shown))
    else:  # each row stands by itself, its cells below each other
        for number, row in enumerate(shown.rows):
            cells = {name: cell for name, cell in zip(shown.columns, row, strict=True) if cell.plain}
            between = [""] if number and row[0].plain else []
            console.print(*between, _columns(grid(cells)), sep="\n")
    return paper.getvalue()


def _text(pieces: Line) -> Any:
    from rich.text import Text

    return Text.assemble(*((clean(text), style) for text, style in pieces), overflow="fold")


def _columns(table: Table) -> Any:
    from rich.table import Table as Columns

    made = Columns(box=None, padding=(0, _GAP, 0, 0), pad_edge=False, show_header=any(table.columns))
    for number, name in enumerate(table.columns):
        how: Any = {
            "justify": "right" if table.is_number(number) else "left",
            "no_wrap": number != table.wide,
        }
        made.add_column(_text(line(name)), overflow="fold", **how)
    for row in table.rows:
        made.add_row(*map(_text, row))
    return made


def _fits(table: Table, width: int) -> bool:
    """Whether the wide column has room enough beside the others."""
    from rich.cells import cell_len

    named = [[line(name) for name in table.columns], *table.rows]
    cells = [[clean(each.plain).split("\n") for each in column] for column in zip(*named, strict=True)]
    longest = [max(cell_len(part) for parts in column for part in parts) for column in cells]
    longest[table.wide] = min(longest[table.wide], _NARROWEST)
    return sum(longest) + _GAP * (len(longest) - 1) <= width


def error(message: str, advice: str) -> None:
    """Say what went wrong and what to do now."""
    write(line(("Error: ", "bold red"), message), stderr=True)
    if advice:
        write(line(("  → ", "bold"), advice), stderr=True)


@contextmanager
def progress(name: str, *, is_long: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error while a long operation runs, if somebody watches."""
    if not is_long or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(name, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
