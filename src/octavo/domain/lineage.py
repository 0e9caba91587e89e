"""Lineage: the assemblies that an assembly was merged from, and those that they were, breadth first."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
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
    if not 1 <= max_depth <= DEEPEST:
        raise BadInput(f"max_depth {max_depth!r} is not between 1 and {DEEPEST}")
    rows, above, depths, queue = dict[str, Ancestor](), dict[str, list[str]](), {target: 0}, [target]
    for id_ in queue:  # it grows meanwhile
        row = known(id_) or Ancestor(assembly_id=id_)
        is_cut = bool(row.merged_from) and depths[id_] == max_depth
        rows[id_] = replace(row, depth=depths[id_], status="depth_limit_reached" if is_cut else row.status)
        above[id_] = [] if is_cut else list(dict.fromkeys(row.merged_from))
        new = [parent for parent in above[id_] if parent not in depths]
        depths |= dict.fromkeys(new, depths[id_] + 1)
        queue += new
    # Two paths that meet make no cycle; somewhere a cycle goes no further from the target, so that only
    # such steps are followed to see whether they lead back to where they come from.
    cycles = [
        Ancestor(assembly_id=id_, name=rows[id_].name, depth=depths[child] + 1, status="cycle_detected")
        for child, own in above.items()
        for id_ in own
        if depths[id_] <= depths[child] and child in _reached(id_, above)
    ]
    return Lineage(
        target_assembly_id=target,
        lineage=tuple(sorted([*rows.values(), *cycles], key=lambda row: row.depth)),
        max_depth_reached=any(row.status == "depth_limit_reached" for row in rows.values()),
        cycles_detected=bool(cycles),
    )


def _reached(start: str, above: Mapping[str, Sequence[str]]) -> list[str]:
    """An assembly and all its ancestors."""
    reached = [start]
    for id_ in reached:
        reached += [parent for parent in above[id_] if parent not in reached]
    return reached
