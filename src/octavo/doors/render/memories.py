"""Memories, their history, and what became of a write, as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from octavo.domain.memory import Memory
from octavo.domain.verdicts import Verdict
from octavo.doors import plain
from octavo.doors.render.console import write
from octavo.doors.render.shapes import Shown, grid, line, moment
from octavo.doors.render.text import said


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


def verdict_lines(verdict: Verdict) -> Iterator[Shown]:
    """What became of a write; a memory that is not in is said on standard error."""
    if verdict:
        memory = verdict.memory
        is_next = verdict.outcome == "superseding" and memory is not None and memory.rev > 1
        detail = f"revision {memory.rev}" if is_next and memory else verdict.detail
        text = line((verdict.outcome, "bold green"), f" ({detail})" if detail else "")
        yield text if memory is None else line(text, f"  {memory.id}  ", said(memory))
        if verdict.contrasts:
            write(line(("  → ", "bold"), verdict.advice), stderr=True)
        return
    stop = "waits for a person" if verdict.outcome == "proposed" else f"refused by {verdict.check}"
    write(line((f"{stop}: ", "bold red"), verdict.detail), stderr=True)
    if verdict.advice:
        write(line(("  → ", "bold"), verdict.advice), stderr=True)


def verdicts_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What became of several writes."""
    for verdict in value["verdicts"]:
        yield from verdict_lines(verdict)


def forgotten_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What was forgotten."""
    for verdict in value["verdicts"]:
        if verdict and verdict.memory is not None:
            yield line(("forgotten", "bold green"), f"  {verdict.memory.id}  ", said(verdict.memory))
        else:
            yield from verdict_lines(verdict)
