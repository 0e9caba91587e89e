"""Lineage: the assemblies that an assembly was merged from, and those that they were, breadth first."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from msgspec import Struct

from octavo.errors import BadInput

DEEPEST = 100
Status = Literal["origin", "merged", "not_found", "cycle_detected", "depth_limit_reached"]


class Known(Struct, frozen=True, kw_only=True):
    """What history says of one assembly, ended or not."""

    name: str
    memory_count: int
    created_at: datetime
    ended: bool = False
    merged_from: tuple[str, ...] = ()


class Ancestor(Struct, frozen=True, kw_only=True):
    """One assembly of a lineage: `origin` came of no merge, `merged` did."""

    assembly_id: str
    name: str | None = None
    depth: int
    status: Status
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


def lineage(target: str, known: Callable[[str], Known | None], max_depth: int = 10) -> Lineage:
    """The ancestors of an assembly, as far up as is asked for."""
    if isinstance(max_depth, bool) or not isinstance(max_depth, int) or not 1 <= max_depth <= DEEPEST:
        raise BadInput(f"max_depth {max_depth!r} is not between 1 and {DEEPEST}")
    depths = {target: 0}
    rows: list[Ancestor] = []
    level = [target]
    for depth in range(max_depth + 1):
        following: list[str] = []
        for id_ in level:
            one = known(id_)
            rows.append(_row(id_, one, depth, depth == max_depth))
            for parent in one.merged_from if one and depth < max_depth else ():
                if parent not in depths:
                    depths[parent] = depth + 1
                    following.append(parent)
        level = following
    parents = {row.assembly_id: row.merged_from for row in rows if row.depth < max_depth}
    cycles = [
        _closed(known(closed), closed, depths[child] + 1) for child, closed in _closing(target, parents)
    ]
    return Lineage(
        target_assembly_id=target,
        lineage=tuple(sorted([*rows, *cycles], key=lambda row: row.depth)),
        max_depth_reached=any(row.status == "depth_limit_reached" for row in rows),
        cycles_detected=bool(cycles),
    )


def _closed(one: Known | None, id_: str, depth: int) -> Ancestor:
    """The row that says where a lineage runs into itself."""
    name = one.name if one else None
    return Ancestor(assembly_id=id_, name=name, depth=depth, status="cycle_detected")


def _row(id_: str, one: Known | None, depth: int, is_last: bool) -> Ancestor:
    if one is None:
        return Ancestor(assembly_id=id_, depth=depth, status="not_found")
    status: Status = "merged" if one.merged_from else "origin"
    return Ancestor(
        assembly_id=id_,
        name=one.name,
        depth=depth,
        status="depth_limit_reached" if is_last and one.merged_from else status,
        created_at=one.created_at,
        memory_count=one.memory_count,
        ended=one.ended,
        merged_from=one.merged_from,
    )


def _closing(target: str, parents: dict[str, tuple[str, ...]]) -> list[tuple[str, str]]:
    """The steps that lead back to an assembly of their own path; two paths that meet are none."""
    closing: list[tuple[str, str]] = []
    done: set[str] = set()
    path: dict[str, None] = {}
    stack: list[tuple[str, bool]] = [(target, False)]
    while stack:
        id_, is_left = stack.pop()
        if is_left:
            del path[id_]
            done.add(id_)
        elif id_ not in done and id_ not in path:
            path[id_] = None
            stack.append((id_, True))
            for parent in parents.get(id_, ()):
                if parent in path:
                    closing.append((id_, parent))
                elif parent not in done:
                    stack.append((parent, False))
    return sorted(set(closing))
