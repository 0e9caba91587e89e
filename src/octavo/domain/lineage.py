"""Lineage: the assemblies that an assembly was merged from, and those that they were, breadth first."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from octavo.errors import BadInput

DEEPEST = 100


class Ancestor(Struct, frozen=True, kw_only=True):
    """What history says of one assembly of a lineage: `origin` came of no merge, `merged` did."""

    assembly_id: str
    name: str | None = None
    depth: int = 0
    status: Literal["origin", "merged", "not_found", "cycle_detected", "depth_limit_reached"] = "not_found"
    created_at: datetime | None = None
    memory_count: int | None = None
    ended: bool = False
    merged_from: tuple[str, ...] = ()


class Lineage(Struct, frozen=True, kw_only=True):
    """An assembly and its ancestors, each once at its least depth; only foreign data has cycles."""

    target_assembly_id: str
    lineage: tuple[Ancestor, ...]
    max_depth_reached: bool = False
    cycles_detected: bool = False


def lineage(target: str, known: Callable[[str], Ancestor | None], max_depth: int = 10) -> Lineage:
    """The ancestors of an assembly, as far up as is asked for; `known` says what history tells of one."""
    if isinstance(max_depth, bool) or not isinstance(max_depth, int) or not 1 <= max_depth <= DEEPEST:
        raise BadInput(f"max_depth {max_depth!r} is not between 1 and {DEEPEST}")
    depths, rows = {target: 0}, {}
    queue = [target]
    for id_ in queue:  # it grows meanwhile
        row = known(id_) or Ancestor(assembly_id=id_)
        if row.merged_from and depths[id_] == max_depth:
            row = replace(row, status="depth_limit_reached")
        rows[id_] = replace(row, depth=depths[id_])
        new = [parent for parent in _parents(rows[id_]) if parent not in depths]
        depths |= dict.fromkeys(new, depths[id_] + 1)
        queue += dict.fromkeys(new)
    cycles = [
        Ancestor(assembly_id=id_, name=rows[id_].name, depth=depths[child] + 1, status="cycle_detected")
        for child, id_ in _closing(rows)
    ]
    return Lineage(
        target_assembly_id=target,
        lineage=tuple(sorted([*rows.values(), *cycles], key=lambda row: row.depth)),
        max_depth_reached=any(row.status == "depth_limit_reached" for row in rows.values()),
        cycles_detected=bool(cycles),
    )


def _parents(row: Ancestor) -> tuple[str, ...]:
    return () if row.status == "depth_limit_reached" else row.merged_from


def _closing(rows: Mapping[str, Ancestor]) -> list[tuple[str, str]]:
    """The steps that lead back to where they come from; two paths that meet do not, and every cycle has one.

    Somewhere a cycle goes no further from the target: only such steps are looked at.
    """
    steps = [(child, parent) for child, row in rows.items() for parent in dict.fromkeys(_parents(row))]
    back = [(child, parent) for child, parent in steps if rows[parent].depth <= rows[child].depth]
    return [(child, parent) for child, parent in back if child in _above(parent, rows)]


def _above(id_: str, rows: Mapping[str, Ancestor]) -> dict[str, None]:
    """An assembly and all its ancestors."""
    above = {id_: None}
    queue = [id_]
    for one in queue:  # it grows meanwhile
        new = [parent for parent in _parents(rows[one]) if parent not in above]
        above |= dict.fromkeys(new)
        queue += dict.fromkeys(new)
    return above
