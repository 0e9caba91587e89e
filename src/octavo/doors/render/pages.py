"""What there is, as the command line shows it: a memory, a core, an assembly, what was recalled and why."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec.structs import asdict

from octavo.domain.assembling import Lineage
from octavo.domain.brief import Brief
from octavo.domain.memory import Memory
from octavo.doors import plain
from octavo.doors.render.console import write
from octavo.doors.render.lists import sheet, span
from octavo.doors.render.shapes import (
    Line,
    Page,
    Shown,
    Table,
    cell,
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
from octavo.engine.explain import Assembly

_FRESH = "the index holds this revision"
_DRIFTED = "the index holds this revision; drifted: its vectors were last verified too long ago"
_ABOVE = "newer than the index; found by looking at it directly"


memory_lines = sheet(
    "id kind rev layer scope topic category tags at by=actor source approved sure=confidence matters=salience"
    " feels links sandbox text data",
    tags=lambda memory: ", ".join(memory.tags),
    feels=lambda memory: memory.emotion and memory.emotion.label,
    links=lambda memory: [f"{link.name} {link.to}" for link in memory.links],
    data=lambda memory: plain.document(memory.data) if memory.data else None,
)


def shown_lines(memory: Memory) -> Iterator[Shown]:
    """A core or sphere as a page to read, any other memory field by field."""
    if memory.kind not in ("core", "sphere"):
        yield from memory_lines(memory)
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


def fallback(memory: Memory) -> str | None:
    """Why a core or sphere is told without the model that was asked."""
    why = memory.data.get("meta", {}).get("fallback_reason")
    return f"a model's summary: {why}" if why else None


def assembly_lines(value: Assembly) -> Iterator[Shown]:
    """An assembly as a page to read."""
    members = table("id", "at", "text")
    for member in value.members:
        members.add(member.id, f"{member.at:%Y-%m-%d}", said(member))
    yield from (_title(value.name, value.assembly_id, value.scope), "", members, "")
    yield from _assembly(value)


_assembly = sheet(
    "topics tags feels=emotion_profile formed since=created_at changed=updated_at lifts activated merged",
    topics=lambda one: ", ".join(one.topics),
    tags=lambda one: ", ".join(one.tags),
    lifts=lambda one: "its members, when it fits a question" if one.is_synchronized else _drift(one),
    activated=lambda one: one.activation_count or None,
    merged=lambda one: ", ".join(one.merged_from),
)


def _drift(one: Assembly) -> str:
    return f"nothing now ({one.drift_reason}); `octavo catch-up`, then `octavo upkeep`"


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
    rows = table("score", "at", "id", "kind", "text", numbers=("score",))
    for hit in hits:
        memory = hit["memory"]
        rows.add(f"{hit['score']:.2f}", f"{memory.at:%Y-%m-%d}", memory.id, memory.kind, _matched(hit))
    return rows


def _explained(hits: list[dict[str, Any]]) -> Table:
    """A line for the hit, one for each part of its score, and one each for its origin and its index."""
    rows = table("hit", "score", "text", numbers=("hit", "score"))
    for rank, hit in enumerate(hits, start=1):
        memory = hit["memory"]
        rows.add(line((str(rank), "bold")), line((f"{hit['score']:.2f}", "bold")), _matched(hit))
        for reason in hit["reasons"]:
            colour = "green" if reason["value"] > 0 else "red"
            rows.add("", line((f"{reason['value']:+.2f}", colour)), dim(reason["part"]))
        origin = (
            f"{memory.kind} {memory.id}",
            memory.sandbox or "written outside a session",
            f"version {hit['version']}" if hit["version"] else "not yet consolidated",
            memory.actor,
        )
        rows.add("", dim("from"), dim(f"{' → '.join(origin)}, {moment(memory.at)}"))
        held = _ABOVE if not hit["is_fresh"] else _DRIFTED if hit["is_drifted"] else _FRESH
        rows.add("", dim("index"), dim(held))
        for note in hit["notes"]:
            rows.add("", line(("note", "yellow")), line((note, "yellow")))
        rows.add()
    return rows


def _matched(hit: Mapping[str, Any]) -> Line:
    """What matched: one turn with its speaker, or the memory with its topic."""
    memory, turn = hit["memory"], hit["turn"]
    if turn is not None and memory.turns:
        return line((f"{one_line(memory.turns[turn].speaker)}: ", "cyan"), one_line(hit["text"]))
    held = hit["replaced"]
    until = f"  {'until' if held.is_certain else 'perhaps until'} {held.at:%Y-%m-%d}" if held else ""
    return line(topic(memory), one_line(hit["text"]), (until, "yellow"))


def brief_lines(brief: Brief) -> Iterator[Shown]:
    """The text for the prompt alone on standard output; what it costs and lacks beside it."""
    yield brief.text if brief.text else dim("nothing to say")
    left = cell({name: n or None for name, n in asdict(brief.left_out).items()})
    out = f"; left out: {left.plain}" if left and left.plain else ""
    write(dim(f"about {plural('token', brief.tokens)}{out}"), stderr=True)


def freshness_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What the index holds of a memory, or how far it is behind."""
    yield from (_held if "memory" in value else _lag)(value)


_lag = sheet(
    "version words vectors waiting given_up verified",
    words=lambda lag: f"{plural('version', lag['versions'])} behind" if lag["versions"] else "up to date",
    vectors=lambda lag: f"{plural('passage', lag['passages'])} without" if lag["passages"] else "up to date",
    waiting=lambda lag: lag["waiting"] or None,
    given_up=lambda lag: lag["dead"] or None,
    verified=lambda lag: lag["verified_at"] or "never",
)
_held = sheet(
    "memory rev state index vectors=vector_index_updated_at verified=verified_at",
    state=lambda held: "fresh" if held["is_fresh"] else "drifted" if held["has_words"] else _ABOVE,
    index=lambda held: f"holds revision {held['indexed_rev']}" if held["has_words"] else None,
)


PAGES: dict[str, Callable[[Any], Iterator[Shown]]] = {
    "get": memory_lines,
    "show": shown_lines,
    "assembly": assembly_lines,
    "lineage": lineage_lines,
    "recall": recall_lines,
    "brief": brief_lines,
    "freshness": freshness_lines,
}
