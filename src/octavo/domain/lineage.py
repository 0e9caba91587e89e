"""Lineage: the assemblies that an assembly was merged from, and those that they were, breadth first."""

from __future__ import annotations

from collections.abc import Callable
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
    rows: dict[str, Ancestor] = {}

    def parents(id_: str, depth: int) -> tuple[str, ...]:
        row = known(id_) or Ancestor(assembly_id=id_)
        is_cut = bool(row.merged_from) and depth == max_depth
        rows[id_] = replace(row, depth=depth, status="depth_limit_reached" if is_cut else row.status)
        return () if is_cut else row.merged_from

    above = _above(target, parents)
    # Two paths that meet make no cycle; somewhere a cycle goes no further from the target, so that only
    # such steps are followed to see whether they lead back to where they come from.
    steps = [(child, parent) for child, own in above.items() for parent in dict.fromkeys(own)]
    cycles = [
        Ancestor(assembly_id=id_, name=rows[id_].name, depth=rows[child].depth + 1, status="cycle_detected")
        for child, id_ in steps
        if rows[id_].depth <= rows[child].depth and child in _above(id_, lambda one, _: above[one])
    ]
    return Lineage(
        target_assembly_id=target,
        lineage=tuple(sorted([*rows.values(), *cycles], key=lambda row: row.depth)),
        max_depth_reached=any(row.status == "depth_limit_reached" for row in rows.values()),
        cycles_detected=bool(cycles),
    )


def _above(start: str, parents: Callable[[str, int], tuple[str, ...]]) -> dict[str, tuple[str, ...]]:
    """An assembly and all its ancestors, the nearest first, each with its parents."""
    depths, above, queue = {start: 0}, dict[str, tuple[str, ...]](), [start]
    for id_ in queue:  # it grows meanwhile
        above[id_] = parents(id_, depths[id_])
        new = [parent for parent in dict.fromkeys(above[id_]) if parent not in depths]
        depths |= dict.fromkeys(new, depths[id_] + 1)
        queue += new
    return above
