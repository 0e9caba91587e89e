"""Cores, spheres and the odometer as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from octavo.domain.memory import Memory
from octavo.doors.render.lists import beginning, span
from octavo.doors.render.memories import memory_lines
from octavo.doors.render.shapes import Line, Page, Shown, dim, grid, line, plural
from octavo.doors.render.text import one_line

_MADE = ("core", "sphere")


def shown_lines(memory: Memory) -> Iterator[Shown]:
    """A core or sphere as a page to read, any other memory field by field."""
    if memory.kind not in _MADE:
        yield from memory_lines(memory)
        return
    scope = f", {memory.scope}" if memory.scope != "shared" else ""
    yield line((memory.id, "bold cyan"), (f"   {span(memory)}{scope}", "dim"))
    yield ""
    yield Page([_paragraph(part) for part in memory.text.split("\n\n")])
    yield grid(
        {
            "felt": _arc(memory),
            "milestones": "\n".join(_milestones(memory)),
            "made of": f"{_sources(memory)}, {_method(memory)}",
            "instead of": _fallback(memory),
        }
    )


def compressed_lines(value: Mapping[str, Sequence[Memory]]) -> Iterator[Shown]:
    """What compression made, and what a model could not tell."""
    if not value["made"]:
        yield dim("nothing was due")
    for memory in value["made"]:
        yield line(("made", "bold green"), f"  {memory.id}  ", beginning(memory))
        if why := _fallback(memory):
            yield line((f"  {why}", "yellow"))
    if value["made"]:
        yield dim(f"read it: octavo show {value['made'][0].id}")


def removed_lines(value: Mapping[str, Sequence[str]]) -> Iterator[Shown]:
    """What was removed, and how it comes back."""
    for id_ in value["removed"]:
        yield line(("removed", "bold green"), f"  {id_}; `octavo compress {id_}` makes it again")


def _paragraph(text: str) -> Line:
    """A paragraph; where a heading stands above lines, it is bold."""
    first, newline, rest = text.partition("\n")
    return line((first, "bold"), newline, rest) if newline else line(first)


def _sources(memory: Memory) -> str:
    if memory.kind == "sphere":
        return plural("core", len(memory.linked("part")))
    sessions = plural("session", len(memory.data.get("source_sessions", ())))
    return f"{sessions}, {plural('episode', len(memory.linked('part')))}"


def _method(memory: Memory) -> str:
    meta = memory.data.get("meta", {})
    model = f" by {meta['model']}" if meta.get("model") else ""
    kept = meta.get("detail_retention")
    share = f"; {kept:.0%} of their length" if isinstance(kept, float) and kept < 1 else ""
    return f"{meta.get('compression_method', 'unknown')}{model}{share}"


def _fallback(memory: Memory) -> str | None:
    why = memory.data.get("meta", {}).get("fallback_reason")
    return f"a model's summary: {why}" if why else None


def _arc(memory: Memory) -> str | None:
    arc = memory.data.get("compressed_narrative", {}).get("emotional_arc", {})
    felt = [arc.get(name) for name in ("start_state", "peak_emotion", "end_state")]
    return " → ".join(dict.fromkeys(word for word in felt if word)) or None


def _milestones(memory: Memory) -> list[str]:
    anchors = memory.data.get("salience_anchors", ())
    return [one_line(f"“{anchor['phrase']}”") for anchor in anchors if anchor.get("phrase")][:3]
