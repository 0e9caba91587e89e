"""Assemblies as the command line shows them: a page with members, and a lineage as a tree."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from octavo.domain.lineage import Ancestor, Lineage
from octavo.doors.render.shapes import Line, Shown, dim, grid, line, moment, plural, table
from octavo.doors.render.text import one_line, said
from octavo.doors.render.values import cell
from octavo.engine.explain import Assembly, Explained

_STATUS = {"cycle_detected": "again: a cycle", "not_found": "not found", "depth_limit_reached": "and further"}


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
    yield grid(
        {
            "topics": ", ".join(value.topics),
            "tags": ", ".join(value.tags),
            "feels": ", ".join(f"{name} {mean:+.2f}" for name, mean in value.emotion_profile.items()),
            "formed": _formed(value),
            "since": f"{moment(value.created_at)}, changed {moment(value.updated_at)}",
            "lifts": _lifts(value),
            "activated": plural("time", value.activation_count) if value.activation_count else None,
            "merged from": ", ".join(value.merged_from),
        }
    )


def explained_lines(value: Explained) -> Iterator[Shown]:
    """An explanation, its names in words; what is part of another stands below that."""
    flat = {key: item for key, item in value.items() if not isinstance(item, Mapping)}
    flat |= {
        key: item for inner in value.values() if isinstance(inner, Mapping) for key, item in inner.items()
    }
    notes = flat.pop("notes")
    yield grid({key.replace("_", " "): cell(item) for key, item in flat.items()} | {"notes": notes})


def lineage_lines(value: Lineage) -> Iterator[Shown]:
    """A lineage as a tree: each assembly below the one it went into, with its size and its day."""
    rows = {row.assembly_id: row for row in value.lineage if row.status != "cycle_detected"}
    shown: set[str] = set()
    yield from _branch(value.target_assembly_id, rows, shown, "", "")
    if value.max_depth_reached:
        yield dim("there is more: --max-depth")


def log_lines(value: Explained) -> Iterator[Shown]:
    """The merges, newest first."""
    rows = table("at", "into", "text", "alike")
    for event in value["reconciled_log_entries"]:
        sources, cosine = ", ".join(event["source_assembly_ids"]), event["similarity_at_merge"]
        alike = "" if cosine is None else f"{cosine:.2f}"
        rows.add(moment(event["creation_timestamp"]), event["target_assembly_id"], sources, alike)
    yield rows if rows.rows else dim("nothing was merged yet")


def _branch(id_: str, rows: dict[str, Ancestor], shown: set[str], lead: str, below: str) -> Iterator[Shown]:
    row = rows.get(id_)
    is_again = id_ in shown
    yield line((lead, "dim"), _node(id_, row, is_again))
    shown.add(id_)
    if row is None or is_again or row.status == "depth_limit_reached":
        return
    for number, parent in enumerate(row.merged_from, start=1):
        is_last = number == len(row.merged_from)
        corner, stem = ("└─ ", "   ") if is_last else ("├─ ", "│  ")
        yield from _branch(parent, rows, shown, below + corner, below + stem)


def _node(id_: str, row: Ancestor | None, is_again: bool) -> Line:
    if row is None or row.name is None:
        return line((id_, "cyan"), ("  not found", "red"))
    told = "" if row.created_at is None else f"{row.created_at:%Y-%m-%d}, "
    told += plural("memory", row.memory_count or 0).replace("memorys", "memories")
    more = (
        ["ended"] * row.ended
        + [_STATUS.get(row.status, "")] * (row.status in _STATUS)
        + ["see above"] * is_again
    )
    return line(
        (one_line(row.name), "bold" if not row.ended else ""), (f"  {id_}  {', '.join([told, *more])}", "dim")
    )


def _formed(value: Assembly) -> str:
    by, cosine, least = (value.formed.get(name) for name in ("by", "similarity", "threshold"))
    told = f"by {by}" if by else ""
    told += "" if cosine is None else f", cosine {cosine:.2f}"
    return told + ("" if least is None else f" (at least {least:g})")


def _lifts(value: Assembly) -> str:
    if value.is_synchronized:
        return "its members, when it fits a question"
    reasons = {
        "revision": "a member changed",
        "age": "not verified for too long",
        "no_vector": "no vectors yet",
    }
    why = reasons.get(value.drift_reason or "", value.drift_reason)
    return f"nothing now: {why}; `octavo catch-up`, then `octavo upkeep`"
