"""Assemblies as the command line shows them: a page with members, and a lineage as a tree."""

from __future__ import annotations

from collections.abc import Iterator

from octavo.domain.lineage import Ancestor, Lineage
from octavo.doors.render.shapes import Line, Shown, dim, grid, line, moment, plural, table
from octavo.doors.render.text import one_line, said
from octavo.doors.render.values import cell
from octavo.engine.explain import Assembly

_STATUS = {"cycle_detected": ["again: a cycle"], "depth_limit_reached": ["and further"]}


def assembly_lines(value: Assembly) -> Iterator[Shown]:
    """An assembly as a page to read."""
    scope = f", {value.scope}" if value.scope != "shared" else ""
    yield line((one_line(value.name), "bold cyan"), (f"   {value.assembly_id}{scope}", "dim"))
    yield ""
    members = table("id", "at", "text")
    for member in value.members:
        members.add(member.id, f"{member.at:%Y-%m-%d}", said(member))
    yield members
    yield ""
    drifted = f"nothing now ({value.drift_reason}); `octavo catch-up`, then `octavo upkeep`"
    yield grid(
        {
            "topics": ", ".join(value.topics),
            "tags": ", ".join(value.tags),
            "feels": cell(value.emotion_profile),
            "formed": cell(value.formed),
            "since": f"{moment(value.created_at)}, changed {moment(value.updated_at)}",
            "lifts": "its members, when it fits a question" if value.is_synchronized else drifted,
            "activated": plural("time", value.activation_count) if value.activation_count else None,
            "merged from": ", ".join(value.merged_from),
        }
    )


def lineage_lines(value: Lineage) -> Iterator[Shown]:
    """A lineage as a tree: each assembly below the one it went into, with its size and its day."""
    rows = {row.assembly_id: row for row in value.lineage if row.status != "cycle_detected"}
    yield from _branch(value.target_assembly_id, rows, set(), "", "")
    if value.max_depth_reached:
        yield dim("there is more: --max-depth")


def _branch(id_: str, rows: dict[str, Ancestor], shown: set[str], lead: str, below: str) -> Iterator[Shown]:
    row, is_again = rows[id_], id_ in shown
    yield line((lead, "dim"), _node(row, is_again))
    shown.add(id_)
    parents = () if is_again or row.status == "depth_limit_reached" else row.merged_from
    for number, parent in enumerate(parents, start=1):
        corner, stem = ("└─ ", "   ") if number == len(parents) else ("├─ ", "│  ")
        yield from _branch(parent, rows, shown, below + corner, below + stem)


def _node(row: Ancestor, is_again: bool) -> Line:
    if row.name is None or row.created_at is None:
        return line((row.assembly_id, "cyan"), ("  not found", "red"))
    more = [f"{row.created_at:%Y-%m-%d}", plural("memory", row.memory_count or 0)]
    more += ["ended"] * row.ended + _STATUS.get(row.status, []) + ["see above"] * is_again
    name = (one_line(row.name), "" if row.ended else "bold")
    return line(name, (f"  {row.assembly_id}  {', '.join(more)}", "dim"))
