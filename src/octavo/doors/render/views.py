"""What was done, as the command line tells it: a few lines, a page, or a field below the other."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from octavo.domain.memory import Memory
from octavo.domain.verdicts import Consolidation, Verdict
from octavo.doors import plain
from octavo.doors.render.console import write
from octavo.doors.render.diff import diff_lines
from octavo.doors.render.lists import beginning, span
from octavo.doors.render.shapes import Line, Page, Shown, dim, grid, line, moment, plural
from octavo.doors.render.text import one_line, said
from octavo.engine.health import Report
from octavo.engine.keeper import Upkeep
from octavo.engine.redaction import Redacted
from octavo.engine.review import Waiting
from octavo.engine.versions import Diff

View = Callable[[Any], Iterator[Shown]]
_GOOD = "bold green"


def done(word: str, style: str = _GOOD, *, then: str = "", empty: str = "") -> View:
    """A view of a line for each thing that was done: the word, what it was done to, what follows from it."""

    def view(value: Mapping[str, Any]) -> Iterator[Shown]:
        (what,) = value.values()
        things = what if isinstance(what, list) else [what]
        yield from (line((f"{word} " if word else "", style), f"{one}{then.format(one)}") for one in things)
        if empty and not things:
            yield dim(empty)

    return view


def _each(
    word: str, style: str, things: Iterable[Any], told: Callable[[Any], Line | str] = str
) -> Iterator[Line]:
    """A line for each thing, behind a word."""
    return (line((f"  {word}  ", style), told(thing)) for thing in things)


def nothing(value: None) -> Iterator[Shown]:
    """A view of what has answered somebody else already."""
    yield from ()


def memory_lines(memory: Memory) -> Iterator[Shown]:
    """One memory, field by field."""
    yield grid(
        {
            "id": line((memory.id, "bold")),
            "kind": f"{memory.kind}, revision {memory.rev}, {memory.layer}",
            "scope": memory.scope,
            "topic": memory.topic,
            "category": memory.category,
            "tags": ", ".join(memory.tags),
            "at": moment(memory.at),
            "by": f"{memory.actor}, {memory.source}",
            "approved": memory.approved,
            "sure": f"{memory.confidence:g}",
            "matters": f"{memory.salience:g}",
            "feels": memory.emotion.label if memory.emotion else None,
            "links": "\n".join(f"{link.name} {link.to}" for link in memory.links),
            "sandbox": memory.sandbox,
            "text": memory.text,
            "data": plain.document(memory.data) if memory.data else None,
        }
    )


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
        write(line(("  → ", "bold"), verdict.advice), stderr=True)


def verdicts_lines(value: Mapping[str, Any], word: str = "") -> Iterator[Shown]:
    """What became of several writes."""
    for verdict in value["verdicts"]:
        yield from verdict_lines(verdict, word if verdict.memory is not None else "")


def init_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """Whether the account was begun or found."""
    what = "begun" if value["is_new"] else f"there already, at version {value['version']}"
    yield line("account ", (one_line(value["account"]), "bold"), f" in {value['root']}: {what}")


def sandbox_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """The id alone on standard output, so that a script can keep it: `s=$(octavo sandbox)`."""
    about = f"{one_line(value['name'])} on version {value['parent_version']}, scope {value['scope']}"
    write(dim(about), stderr=True)
    yield value["id"]


def buffer_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What a sandbox has written, a line each."""
    opened = value["sandbox"]
    where = f"on version {opened.parent}, scope {opened.scope}, {opened.actor}"
    yield line((f"{one_line(opened.name)} {where}", "bold"))
    for item in value["entries"]:
        tag, entry = item["t"], item["entry"]
        if tag == "turn":
            yield line((f"  {one_line(entry.turn.speaker)}: ", "cyan"), one_line(entry.turn.text))
        else:
            yield line((f"  {tag}  ", "magenta"), _ASKED.get(tag, lambda e: moment(e.at))(entry))
    if value["torn_bytes"]:
        yield line((f"  a torn last line of {value['torn_bytes']} bytes, never acknowledged", "yellow"))


# What an entry of a buffer that is no turn asks for, by its tag.
_ASKED: dict[str, Callable[[Any], Line | str]] = {
    "memory": lambda entry: said(entry.memory),
    "revise": lambda entry: line(f"{entry.wanted.id}  ", said(entry.wanted)),
    "state": lambda entry: line(
        (f"{one_line(entry.name)}  ", "cyan"), one_line(str(plain.plain(entry.data)))
    ),
    "forget": lambda entry: str(entry.memory),
    "use": lambda entry: ", ".join(entry.memories),
}


def consolidation_lines(made: Consolidation) -> Iterator[Shown]:
    """What a consolidation did, and what it reports."""
    session = f", session {made.session}" if made.session else ""
    yield line(("consolidated", _GOOD), f" version {made.version}{session}")
    counts = {"added": made.added, "superseded": made.superseded, "forgotten": made.forgotten}
    summary = ", ".join(f"{len(ids)} {what}" for what, ids in counts.items() if ids)
    if summary:
        yield f"  {summary}"
    yield from _each("merged", "cyan", made.merged, lambda m: f"into {m.into}: {one_line(m.text)}")
    clash = "{0.detail}, {0.found_rev} when it closed; the later one won"
    yield from _each("clash", "yellow", made.clashes, clash.format)
    yield from _each("refused", "red", made.refused, lambda refusal: f"{refusal.check}: {refusal.detail}")
    yield from _each(
        "waits for a person", "magenta", made.proposals, lambda p: line(f"{p.id}: ", said(p.memory))
    )


def waiting_lines(waiting: Waiting) -> Iterator[Shown]:
    """One proposal with its difference."""
    proposal = waiting.proposal
    yield line((f"{proposal.action}  ", "magenta"), f"{proposal.reason} ({proposal.by})")
    yield from diff_lines(waiting.diff)
    yield dim(f"approve it as seen: octavo approve {proposal.id} --seen {waiting.digest}")


def approved_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What an approval put into effect."""
    memory = value["approved"]
    named = line(memory) if isinstance(memory, str) else line(f"{memory.id}  ", said(memory))
    yield line(("approved", _GOOD), "  ", named)


def ended_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """How many memories a rejection ended."""
    yield line(("rejected", _GOOD), f" for ever; ended {len(value['ended'])} that said so")


def redacted_lines(erased: Redacted) -> Iterator[Shown]:
    """What a redaction did and what is left to decide."""
    yield line(("redacted", _GOOD), f"  {erased.memory} in {len(erased.versions)} versions")
    yield from (line(f"  also ended, being derived from it: {id_}") for id_ in erased.derived)
    yield from (line((f"  waits for sandbox {id_} to close", "yellow")) for id_ in erased.waiting)
    yield from (line((f"  not finished, {why}", "yellow")) for why in erased.unreached)
    yield from (line((f"  says it too, decide about it: {id_}", "yellow")) for id_ in erased.also_in)
    yield from (line(f"  erased in a copy, too: {place}") for place in erased.cleaned)
    yield from (line((f"  a copy still holds it: {place}", "yellow")) for place in erased.copies)


def difference_lines(difference: Diff) -> Iterator[Shown]:
    """The difference of two versions."""
    yield line((f"version {difference.before} → {difference.after}", "bold"))
    yield from diff_lines(difference)


def report_lines(report: Report) -> Iterator[Shown]:
    """Whether the account is sound, and every problem found."""
    word = ("sound", _GOOD) if report else ("damaged", "bold red")
    parts = {"version": report.versions, "line": report.lines, "open sandbox": report.sandboxes}
    yield line(word, f": {', '.join(plural(what, n) for what, n in parts.items())}")
    yield from _each("problem", "red", report.problems)
    yield from _each("note", "yellow", report.notes)


def carried_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What an export or import did."""
    told = plain.plain(value["result"])
    yield line((value["format"], _GOOD), f" {value['path']}")
    if isinstance(told, dict):
        yield grid({k: "\n".join(map(str, v)) if isinstance(v, list) else str(v) for k, v in told.items()})


def upkeep_lines(kept: Upkeep) -> Iterator[Shown]:
    """What a round of upkeep did, a line for each sort of work."""
    told = {
        "finished erasing what was redacted, in": plural("version", kept.swept) if kept.swept else None,
        "made": ", ".join(kept.made),
        "retired to the archive": plural("original", len(kept.retired)) if kept.retired else None,
        "contested by newer sessions": ", ".join(kept.contested),
        "lapsed without an answer": plural("proposal", kept.expired) if kept.expired else None,
    }
    lines = [line((f"{what} ", _GOOD), n) for what, n in told.items() if n]
    lines += _each("wrong", "red", kept.problems)
    yield from lines or [dim("nothing was due")]


def shown_lines(memory: Memory) -> Iterator[Shown]:
    """A core or sphere as a page to read, any other memory field by field."""
    if memory.kind not in ("core", "sphere"):
        yield from memory_lines(memory)
        return
    scope = f", {memory.scope}" if memory.scope != "shared" else ""
    yield line((memory.id, "bold cyan"), (f"   {span(memory)}{scope}", "dim"))
    yield ""
    yield Page([_paragraph(part) for part in memory.text.split("\n\n")])
    arc = memory.data.get("compressed_narrative", {}).get("emotional_arc", {})
    felt = [arc.get(name) for name in ("start_state", "peak_emotion", "end_state")]
    anchors = [anchor["phrase"] for anchor in memory.data.get("salience_anchors", ()) if anchor.get("phrase")]
    yield grid(
        {
            "felt": " → ".join(dict.fromkeys(word for word in felt if word)),
            "milestones": "\n".join(one_line(f"“{phrase}”") for phrase in anchors[:3]),
            "made of": f"{_sources(memory)}, {_method(memory)}",
            "instead of": _fallback(memory),
        }
    )


def compressed_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What compression made, and what a model could not tell."""
    for memory in value["made"]:
        yield line(("made", _GOOD), f"  {memory.id}  ", beginning(memory))
        if why := _fallback(memory):
            yield line((f"  {why}", "yellow"))
    yield dim(f"read it: octavo show {value['made'][0].id}" if value["made"] else "nothing was due")


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
