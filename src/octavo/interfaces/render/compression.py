"""Cores, spheres and the odometer as the command line shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any

from octavo.interfaces.render.console import Line, grid, page, plural, table
from octavo.interfaces.render.memories import memory_lines
from octavo.interfaces.render.shapes import Text
from octavo.interfaces.render.text import clean, one_line
from octavo.later import Later

if TYPE_CHECKING:
    from octavo.domain.memory import Memory

_MADE = ("core", "sphere")
_pages = Later("octavo.domain.pages")


def shown_lines(memory: Memory) -> Iterator[Line]:
    """A core or sphere as a page to read, any other memory field by field."""
    if memory.kind not in _MADE:
        yield from memory_lines(memory)
        return
    scope = f", {memory.scope}" if memory.scope != "shared" else ""
    yield Text.assemble((memory.id, "bold cyan"), (f"   {_span(memory)}{scope}", "dim"))
    yield ""
    yield page([_paragraph(part) for part in memory.text.split("\n\n")])
    yield grid(
        {
            "felt": _arc(memory),
            "milestones": "\n".join(_milestones(memory)),
            "made of": f"{_sources(memory)}, {_method(memory)}",
            "instead of": _fallback(memory),
        }
    )


def made_of_lines(name: str) -> Callable[[Mapping[str, Any]], Iterator[Line]]:
    """A view that lists cores or spheres."""

    def view(value: Mapping[str, Sequence[Memory]]) -> Iterator[Line]:
        if not value[name]:
            yield Text(f"no {name[:-1]} yet", "dim")
            return
        rows = table("id", "scope", "when", "text")
        for memory in value[name]:
            rows.add_row(memory.id, memory.scope, _span(memory), _beginning(memory))
        yield rows

    return view


def compressed_lines(value: Mapping[str, Sequence[Memory]]) -> Iterator[Line]:
    """What compression made, and what a model could not tell."""
    if not value["made"]:
        yield Text("nothing was due", "dim")
    for memory in value["made"]:
        yield Text.assemble(("made", "bold green"), f"  {memory.id}  ", _beginning(memory))
        if why := _fallback(memory):
            yield Text(f"  {why}", "yellow")
    if value["made"]:
        yield Text(f"read it: octavo show {value['made'][0].id}", "dim")


def removed_lines(value: Mapping[str, Sequence[str]]) -> Iterator[Line]:
    """What was removed, and how it comes back."""
    for id_ in value["removed"]:
        yield Text.assemble(("removed", "bold green"), f"  {id_}; `octavo compress {id_}` makes it again")


def counters_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """The counters under the documents' names."""
    yield grid({name: str(n) for name, n in value["counters"].items() if n is not None})


def sessions_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """Closed sessions as a table, each with its place in the odometer."""
    if not value["sessions"]:
        yield Text("no session has closed yet", "dim")
        return
    rows = table("session", "scope", "place", "version", "at", "sandbox", numbers=("session", "version"))
    for session in value["sessions"]:
        place = [f"{name.removesuffix('_seq')} {n}" for name, n in reversed(session.position.items())]
        at = f"{session.at:%Y-%m-%d %H:%M}"
        rows.add_row(
            str(session.ordinal), session.scope, ", ".join(place), str(session.version), at, session.sandbox
        )
    yield rows


def _paragraph(text: str) -> Text:
    """A paragraph; where a heading stands above lines, it is bold."""
    first, newline, rest = clean(text).partition("\n")
    return Text.assemble((first, "bold"), newline, rest) if newline else Text(first)


def _beginning(memory: Memory) -> str:
    return one_line(memory.text.partition("\n\n")[0])


def _span(memory: Memory) -> str:
    first, last = memory.data.get("timestamp_start"), memory.data.get("timestamp_end")
    if not first or not last:
        return f"{memory.at:%Y-%m-%d}"
    return str(_pages.period(datetime.fromisoformat(first), datetime.fromisoformat(last), thai=False))


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
    return clean(f"{meta.get('compression_method', 'unknown')}{model}{share}")


def _fallback(memory: Memory) -> str | None:
    why = memory.data.get("meta", {}).get("fallback_reason")
    return clean(f"a model's summary: {why}") if why else None


def _arc(memory: Memory) -> str | None:
    arc = memory.data.get("compressed_narrative", {}).get("emotional_arc", {})
    felt = [arc.get(name) for name in ("start_state", "peak_emotion", "end_state")]
    return clean(" → ".join(dict.fromkeys(word for word in felt if word))) or None


def _milestones(memory: Memory) -> list[str]:
    anchors = memory.data.get("salience_anchors", ())
    return [one_line(f"“{anchor['phrase']}”") for anchor in anchors if anchor.get("phrase")][:3]
