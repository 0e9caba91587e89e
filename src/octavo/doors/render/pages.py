"""What a row of views.toml cannot say: pages, what was recalled and why, and what became of a write."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from octavo.domain.assembling import Lineage
from octavo.domain.memory import Memory
from octavo.domain.mirror import Edit, Held, Synced
from octavo.domain.verdicts import Verdict
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
from octavo.doors.render.views import ABOVE, DESCRIBED, View, fallback, span
from octavo.engine.explain import Assembly

_GOOD = "bold green"
_FILES = 20  # that are named one by one
_PYTHONS = re.compile(r"\b(\w+)='(.*?)'")  # how an advice names an argument, which is an option here
_EDITS = {"remember": "green", "revise": "yellow", "forget": "red"}
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
    yield ""
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


def verdict_lines(verdict: Verdict, word: str = "") -> Iterator[Shown]:
    """What became of a write; a memory that is not in is said on standard error."""
    if verdict:
        memory = verdict.memory
        is_next = verdict.outcome == "superseding" and memory is not None and memory.rev > 1
        detail = f"revision {memory.rev}" if is_next and memory else verdict.detail
        text = line((word or verdict.outcome, _GOOD), f" ({detail})" if detail and not word else "")
        yield text if memory is None else line(text, f"  {memory.id}  ", said(memory))
    else:
        stop = "waits for a person" if verdict.outcome == "proposed" else f"refused by {verdict.check}"
        write(line((f"{stop}: ", "bold red"), verdict.detail), stderr=True)
    if verdict.advice and (verdict.contrasts or not verdict):
        advice = _PYTHONS.sub(r"--\1 \2", verdict.advice)
        write(line(("  → ", "bold"), advice), stderr=True)


def verdicts_lines(value: Mapping[str, Any], word: str = "") -> Iterator[Shown]:
    """What became of several writes."""
    for verdict in value["verdicts"]:
        yield from verdict_lines(verdict, word if verdict.memory is not None else "")


def synced_lines(done: Synced) -> Iterator[Shown]:
    """Files written, edits line by line, then everything that stays as it is, and why."""
    yield line(("mirror", _GOOD), f"  {done.folder}, version {done.version}")
    yield from (line(("  wrote  ", "green"), path) for path in done.written[:_FILES])
    yield from (line(("  removed  ", "green"), path) for path in done.removed[:_FILES])
    if more := sum(max(len(paths) - _FILES, 0) for paths in (done.written, done.removed)):
        yield dim(f"  and {plural('file', more)} more")
    yield from (line((f"  {e.action}  ", _EDITS[e.action]), f"{_place(e)}  {e.text}") for e in done.edits)
    stays = {"conflict": done.conflicts, "refused": done.refused, "left alone": done.left_alone}
    for word, held in stays.items():
        style = "dim" if word == "left alone" else "bold red"
        yield from (line((f"  {word}  ", style), f"{_place(one)}: {one.reason}") for one in held)
    if done.conflicts:
        yield dim("edit the line until both say the same, or octavo sync --yes --ours (or --theirs) decides")
    if done.edits and not done.is_done:
        yield dim("nothing is taken in yet: octavo sync --yes")
    elif not (done.written or done.removed or done.edits or done.conflicts or done.refused):
        yield dim("  nothing has changed")


def _place(one: Edit | Held) -> str:
    return f"{one.path}:{one.line}" if one.line else one.path


PAGES: dict[str, View] = {
    "show": shown_lines,
    "assembly": assembly_lines,
    "lineage": lineage_lines,
    "recall": recall_lines,
    **dict.fromkeys(("remember", "alias", "revise", "update_state", "promote"), verdict_lines),
    **dict.fromkeys(("remember_many", "end_order"), verdicts_lines),
    "forget": lambda value: verdicts_lines(value, "forgotten"),
    **dict.fromkeys(("mirror", "sync"), synced_lines),
}
