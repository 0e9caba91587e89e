"""Memories, their history, and what became of a write, as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from octavo.interfaces.render.console import Line, grid, moment, table, write
from octavo.interfaces.render.shapes import Text
from octavo.interfaces.render.text import clean, one_line, said
from octavo.later import Later

if TYPE_CHECKING:
    from octavo.domain.memory import Memory, Refusal
    from octavo.domain.verdicts import Verdict

plain = Later("octavo.interfaces.plain")


def memory_lines(memory: Memory) -> Iterator[Line]:
    """One memory, field by field."""
    yield grid(
        {
            "id": Text(memory.id, "bold"),
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
            "session": memory.session,
            "text": memory.text,
            "data": plain.document(memory.data) if memory.data else None,
        }
    )


def memories_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """Memories as a table, and how to go on."""
    if not value["memories"]:
        yield Text("nothing found", "dim")
        return
    scoped = any(memory.scope != "shared" for memory in value["memories"])
    rows = table("id", "kind", "at", *(("scope",) if scoped else ()), "text")
    for memory in value["memories"]:
        scope = (memory.scope,) if scoped else ()
        rows.add_row(memory.id, memory.kind, moment(memory.at), *scope, said(memory))
    yield rows
    if value["next"]:
        yield Text(f"more: --after {value['next']}", "dim")


def history_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """The revisions of a memory as a table."""
    rows = table("rev", "version", "at", "by", "text", numbers=("rev", "version"))
    for revision in value["revisions"]:
        memory = revision.memory
        text = Text("forgotten", "red") if memory.gone else said(memory)
        rows.add_row(str(memory.rev), str(revision.version), moment(memory.at), clean(memory.actor), text)
    yield rows


def refusals_lines(value: Mapping[str, Sequence[Refusal]]) -> Iterator[Line]:
    """What was kept out and why, as a table."""
    if not value["refusals"]:
        yield Text("nothing was refused", "dim")
        return
    rows = table("at", "check", "kind", "scope", "text")
    for refusal in value["refusals"]:
        kept = one_line(refusal.text) if refusal.text else Text("(not kept)", "dim")
        why = Text.assemble(kept, (f"\n{clean(refusal.detail)}", "dim"))
        rows.add_row(moment(refusal.at), Text(refusal.check, "red"), refusal.kind, refusal.scope, why)
    yield rows


def verdict_lines(verdict: Verdict) -> Iterator[Line]:
    """What became of a write; a memory that is not in is said on standard error."""
    if verdict:
        memory = verdict.memory
        is_next = verdict.outcome == "superseding" and memory is not None and memory.rev > 1
        detail = f"revision {memory.rev}" if is_next and memory else clean(verdict.detail)
        text = Text.assemble((verdict.outcome, "bold green"), f" ({detail})" if detail else "")
        yield text if memory is None else Text.assemble(text, f"  {memory.id}  ", said(memory))
        return
    stop = "waits for a person" if verdict.outcome == "proposed" else f"refused by {verdict.check}"
    write(Text.assemble((f"{stop}: ", "bold red"), clean(verdict.detail)), stderr=True)
    if verdict.advice:
        write(Text.assemble(("  → ", "bold"), clean(verdict.advice)), stderr=True)


def verdicts_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """What became of several writes."""
    for verdict in value["verdicts"]:
        yield from verdict_lines(verdict)


def forgotten_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """What was forgotten."""
    for verdict in value["verdicts"]:
        if verdict and verdict.memory is not None:
            yield Text.assemble(("forgotten", "bold green"), f"  {verdict.memory.id}  ", said(verdict.memory))
        else:
            yield from verdict_lines(verdict)
