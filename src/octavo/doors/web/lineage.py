"""Where a memory comes from and what came of it: one step for its page, several as a graph in columns."""

from __future__ import annotations

from typing import Any

from octavo.domain.memory import Memory
from octavo.domain.sentences import shorten
from octavo.doors.web import telling
from octavo.engine.account import Account
from octavo.engine.reading import Revision

_STEPS, _MOST = 3, 60  # how far from the memory, and how many memories in all
_WIDE, _HIGH, _COLUMN, _ROW = 190, 50, 226, 70
_LETTERS = 26


def sources(account: Account, history: list[Revision]) -> list[tuple[str, Memory]]:
    """What a memory links to, and the conversations in which it got its wordings; each with a link's name."""
    now = history[-1].memory
    linked = [(link.name, account.get(link.to)) for link in now.links]
    if not now.turns:
        known = {link.to for link in now.links}
        said_in = dict.fromkeys(r.memory.sandbox for r in history if r.memory.sandbox and not r.memory.gone)
        talks = [m for s in said_in for m in account.memories(from_sandbox=s, kind="episode", limit=1)]
        linked += [("talk", talk) for talk in talks if talk.id not in known]
    return [(name, target) for name, target in linked if target is not None]


def drawn(account: Account, id_: str) -> dict[str, Any]:
    """The graph around a memory: boxes in columns, what came first to the left, and lines between them."""
    column: dict[str, int] = {id_: 0}
    memories: dict[str, Memory] = {id_: account.history(id_)[-1].memory}
    edges: dict[tuple[str, str], str] = {}
    ahead, left_out = [id_], 0
    while ahead:
        here = ahead.pop(0)
        # What came of it has other sources too; they are no part of its story.
        led_to_it = sources(account, account.history(here)) if column[here] < 1 else []
        before = [(name, memory, -1) for name, memory in led_to_it]
        after = [("", memory, 1) for memory in account.referring(here)]
        for name, memory, step in before + after:
            if memory.id not in column:
                if len(column) >= _MOST:
                    left_out += 1
                    continue
                column[memory.id] = column[here] - 1 if step < 0 else max(column[here], 0) + 1
                memories[memory.id] = memory
                if abs(column[memory.id]) < _STEPS:
                    ahead.append(memory.id)
            edge = (memory.id, here) if step < 0 else (here, memory.id)
            edges[edge] = name or edges.get(edge, "")
    columns = sorted(set(column.values()))
    rows = {c: [i for i in column if column[i] == c] for c in columns}
    at = {i: (columns.index(c) * _COLUMN, n * _ROW) for c in columns for n, i in enumerate(rows[c])}
    boxes = [
        {"memory": memory, "x": at[i][0], "y": at[i][1], "text": shorten(telling.gist(memory), _LETTERS)}
        for i, memory in memories.items()
    ]
    lines = [
        {"from": memories[a], "to": memories[b], "name": name, "path": _path(*at[a], *at[b])}
        for (a, b), name in edges.items()
    ]
    size = (len(columns) * _COLUMN - _COLUMN + _WIDE, max(map(len, rows.values())) * _ROW - _ROW + _HIGH)
    return {"boxes": boxes, "lines": lines, "size": size, "left_out": left_out}


def _path(x1: int, y1: int, x2: int, y2: int) -> str:
    """A line from the right side of one box to the left side of another, or around within a column."""
    start, end, middle = x1 + _WIDE, x2 if x2 > x1 else x2 + _WIDE, _HIGH // 2
    bend = (_COLUMN - _WIDE) // 2
    turn = end - bend if x2 > x1 else end + bend
    return f"M{start} {y1 + middle}C{start + bend} {y1 + middle} {turn} {y2 + middle} {end} {y2 + middle}"
