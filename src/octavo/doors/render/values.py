"""Any value in a view, by its form: records as a table, one record field by field, a word as it is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from octavo.domain.memory import Memory
from octavo.doors import plain
from octavo.doors.render.shapes import Line, Shown, Table, dim, grid, line, moment
from octavo.doors.render.text import one_line, said

_EMPTY: tuple[Any, ...] = (None, "", (), [], {})


def value_lines(value: Any) -> Iterator[Shown]:
    """A value: what stands alone under a name is shown without it."""
    if isinstance(value, Mapping) and len(value) == 1:
        (value,) = value.values()
    if value in _EMPTY:
        yield dim("nothing found")
    elif isinstance(value, Struct | Mapping) and not isinstance(value, Memory):
        yield grid({name: cell(item) for name, item in _fields(value).items()})
    elif isinstance(value, Sequence) and not isinstance(value, str):
        yield from _listed(value)
    else:
        yield cell(value) or line()


def _listed(items: Sequence[Any]) -> Iterator[Shown]:
    if not all(isinstance(item, Struct | Mapping) and not isinstance(item, Memory) for item in items):
        yield from (cell(item) or line() for item in items)
        return
    rows = [_fields(item) for item in items]
    names = [
        n
        for n in dict.fromkeys(n for row in rows for n in row)
        if any(row.get(n) not in _EMPTY for row in rows)
    ]
    cells = [[cell(row.get(name)) or line() for name in names] for row in rows]
    longest = [max(len(row[n].plain) for row in cells) for n in range(len(names))]
    numbers = tuple(name for name in names if isinstance(rows[0].get(name), int | float))
    yield Table(columns=tuple(names), rows=cells, numbers=numbers, wide=longest.index(max(longest)))


def _fields(value: Any) -> Mapping[str, Any]:
    """The fields of a record under their names in words, those of a mapping under the names it has."""
    if not isinstance(value, Struct):
        return {str(name): item for name, item in value.items()}
    return {name.replace("_", " "): item for name, item in asdict(value).items()}


def cell(value: Any) -> Line | None:
    """A value in a few words, None if there is nothing to say."""
    if value in _EMPTY:
        return None
    if isinstance(value, Memory):
        return line(f"{value.id}  ", said(value))
    return value if isinstance(value, Line) else line(_words(value))


def _words(value: Any) -> str:
    nested = (Struct, Mapping, list, tuple)
    match value:
        case bool():
            return "yes" if value else "no"
        case datetime():
            return moment(value)
        case float():
            return f"{value:g}"
        case Mapping() if not any(isinstance(item, nested) for item in value.values()):
            return ", ".join(f"{name} {plain.plain(item)}" for name, item in value.items())
        case list() | tuple() if not any(isinstance(item, nested) for item in value):
            return "\n".join(str(plain.plain(item)) for item in value)
        case Struct() | Mapping() | list() | tuple():
            return one_line(plain.document(value))
        case _:
            return str(plain.plain(value))
