"""What there is, as the command line shows it: a memory, a core, an assembly, what was recalled and why."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from octavo.domain.assembling import Lineage
from octavo.domain.memory import Memory
from octavo.doors.render.console import write
from octavo.doors.render.shapes import (
    Line,
    Page,
    Shown,
    Table,
    dim,
    grid,
    line,
    moment,
    one_line,
    plural,
    said,
    table,
    topic,
)
from octavo.doors.render.views import ABOVE, View, described, fallback, span
from octavo.engine.explain import Assembly

DESCRIBED = described()
_FRESH = "the index holds this revision"
_DRIFTED = "the index holds this revision; drifted: its vectors were last verified too long ago"


def shown_lines(memory: Memory) -> Iterator[Shown]:
    """A core or sphere as a page to read, any other memory field by field."""
    if memory.kind not in ("core", "sphere"):
        yield from DESCRIBED["get"](memory)
        return
    yield _title(memory.id, span(memory), memory.scope)
    yield ""
    paragraphs = [part.partition("\n") for part in memory.text.split("\n\n")]
    yield Page(line((head, "bold" if below else ""), newline, below) for head, newline, below in paragraphs)
    arc = memory.data.get("compressed_narrative", {}).get("emotional_arc", {})
    felt = [arc.get(name) for name in ("start_state", "peak_emotion", "end_state")]
    anchors = [anchor["phrase"] for anchor in memory.data.get("salience_anchors", ()) if anchor.get("phrase")]
    yield grid(
        {
            "felt": " → ".join(dict.fromkeys(word for word in felt if word)),
            "milestones": [one_line(f"“{phrase}”") for phrase in anchors[:3]],
            "made of": _made_of(memory),
            "instead of": fallback(memory),
        }
    )


def _title(name: str, more: str, scope: str) -> Line:
    return line(
        (one_line(name), "bold cyan"), (f"   {more}{f', {scope}' if scope != 'shared' else ''}", "dim")
    )


def _made_of(memory: Memory) -> str:
    """What a core or sphere was made of, and how."""
    meta, parts = memory.data.get("meta", {}), len(memory.linked("part"))
    sessions = plural("session", len(memory.data.get("source_sessions", ())))
    sources = plural("core", parts) if memory.kind == "sphere" else f"{sessions}, {plural('episode', parts)}"
    model = f" by {meta['model']}" if meta.get("model") else ""
    kept = meta.get("detail_retention")
    share = f"; {kept:.0%} of their length" if isinstance(kept, float) and kept < 1 else ""
    return f"{sources}, {meta.get('compression_method', 'unknown')}{model}{share}"


def assembly_lines(value: Assembly) -> Iterator[Shown]:
    """An assembly as a page to read."""
    members = [{"id": one.id, "at": f"{one.at:%Y-%m-%d}", "text": said(one)} for one in value.members]
    yield from (_title(value.name, value.assembly_id, value.scope), "", table(members), "")
    yield from DESCRIBED["assembly"](value)


def lineage_lines(value: Lineage) -> Iterator[Shown]:
    """A lineage as a tree: each assembly below the one it went into, with its size and its day."""
    rows, shown = {row.assembly_id: row for row in value.lineage if row.status != "cycle_detected"}, set()

    def branch(id_: str, lead: str, below: str) -> Iterator[Shown]:
        row, is_again = rows[id_], id_ in shown
        day = f"{row.created_at:%Y-%m-%d}" if row.created_at else "not found"
        size = plural("memory", row.memory_count) if row.memory_count else ""
        further = "and further: --max-depth" if row.status == "depth_limit_reached" else ""
        told = (day, size, "ended" if row.ended else "", further, "see above" if is_again else "")
        about = (f"  {id_}  {', '.join(filter(None, told))}", "dim")
        yield line((lead, "dim"), (one_line(row.name or ""), "" if row.ended else "bold"), about)
        shown.add(id_)
        above = () if is_again or further else row.merged_from
        for number, parent in enumerate(above, start=1):
            corner, stem = ("└─ ", "   ") if number == len(above) else ("├─ ", "│  ")
            yield from branch(parent, below + corner, below + stem)

    yield from branch(value.target_assembly_id, "", "")


def recall_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """Hits as a table; with their reasons and where they come from, if these were asked for."""
    if not value["hits"]:
        yield dim("nothing found")
    else:
        yield (_explained if value["explained"] else _listed)(value["hits"])
    for order in value["orders"]:
        yield line(("asked for  ", "bold"), f"{order.at:%Y-%m-%d}  {order.memory}  ", one_line(order.text))
    for step in value["trail"]:
        ending = "that sufficed" if step.sufficed else "that did not suffice"
        yield dim(f"looked among {plural(step.layer, 2)[2:]}: best {step.best:.2f}, {ending}")
    for note in value["notes"]:
        # Beside the answer, not in it: a script that reads the hits does not want it.
        write(line(("note  ", "yellow"), note), stderr=not value["explained"])


def _listed(hits: list[dict[str, Any]]) -> Table:
    told = ((hit, hit["memory"]) for hit in hits)
    rows = [(f"{hit['score']:.2f}", f"{m.at:%Y-%m-%d}", m.id, m.kind, _matched(hit)) for hit, m in told]
    return table([dict(zip(("score", "at", "id", "kind", "text"), row, strict=True)) for row in rows])


def _explained(hits: list[dict[str, Any]]) -> Table:
    """A line for the hit, one for each part of its score, and one each for its origin and its index."""
    rows: list[tuple[str | Line, ...]] = []
    for rank, hit in enumerate(hits, start=1):
        memory = hit["memory"]
        rows.append((line((str(rank), "bold")), line((f"{hit['score']:.2f}", "bold")), _matched(hit)))
        for reason in hit["reasons"]:
            colour = "green" if reason["value"] > 0 else "red"
            rows.append(("", line((f"{reason['value']:+.2f}", colour)), dim(reason["part"])))
        origin = (
            f"{memory.kind} {memory.id}",
            memory.sandbox or "written outside a session",
            f"version {hit['version']}" if hit["version"] else "not yet consolidated",
            memory.actor,
        )
        rows.append(("", dim("from"), dim(f"{' → '.join(origin)}, {moment(memory.at)}")))
        held = ABOVE if not hit["is_fresh"] else _DRIFTED if hit["is_drifted"] else _FRESH
        rows.append(("", dim("index"), dim(held)))
        rows += [("", line(("note", "yellow")), line((note, "yellow"))) for note in hit["notes"]]
        rows.append(("", "", ""))
    return table([dict(zip(("hit", "score", "text"), row, strict=True)) for row in rows])


def _matched(hit: Mapping[str, Any]) -> Line:
    """What matched: one turn with its speaker, or the memory with its topic."""
    memory, turn = hit["memory"], hit["turn"]
    if turn is not None and memory.turns:
        return line((f"{one_line(memory.turns[turn].speaker)}: ", "cyan"), one_line(hit["text"]))
    held = hit["replaced"]
    until = f"  {'until' if held.is_certain else 'perhaps until'} {held.at:%Y-%m-%d}" if held else ""
    return line(topic(memory), one_line(hit["text"]), (until, "yellow"))


PAGES: dict[str, View] = {
    "show": shown_lines,
    "assembly": assembly_lines,
    "lineage": lineage_lines,
    "recall": recall_lines,
}
