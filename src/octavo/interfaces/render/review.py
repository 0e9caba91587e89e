"""Proposals, rejections and redactions as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from octavo.interfaces.render.console import Line, moment, table
from octavo.interfaces.render.diff import diff_lines
from octavo.interfaces.render.shapes import Text
from octavo.interfaces.render.text import clean, said

if TYPE_CHECKING:
    from octavo.engine.redaction import Redacted
    from octavo.engine.review import Waiting


def proposals_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """What waits, as a table."""
    if not value["proposals"]:
        yield Text("nothing waits", "dim")
        return
    rows = table("id", "wants to", "by", "text")
    for proposal in value["proposals"]:
        why = Text.assemble(said(proposal.memory), (f"\n{clean(proposal.reason)}", "dim"))
        rows.add_row(proposal.id, proposal.action, clean(proposal.by), why)
    yield rows


def waiting_lines(waiting: Waiting) -> Iterator[Line]:
    """One proposal with its difference."""
    proposal = waiting.proposal
    yield Text.assemble((f"{proposal.action}  ", "magenta"), clean(f"{proposal.reason} ({proposal.by})"))
    yield from diff_lines(waiting.diff)
    yield Text(f"approve it as seen: octavo approve {proposal.id} --seen {waiting.digest}", "dim")


def approved_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """What an approval put into effect."""
    memory = value["approved"]
    named = Text(clean(memory)) if isinstance(memory, str) else Text.assemble(f"{memory.id}  ", said(memory))
    yield Text.assemble(("approved", "bold green"), "  ", named)


def ended_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """How many memories a rejection ended."""
    yield Text.assemble(("rejected", "bold green"), f" for ever; ended {len(value['ended'])} that said so")


def rejections_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """The rejections in force, as a table."""
    if not value["rejections"]:
        yield Text("no value is rejected", "dim")
        return
    rows = table("at", "scope", "by", "text")
    for rejection in value["rejections"]:
        rows.add_row(moment(rejection.at), rejection.scope, clean(rejection.by), clean(rejection.reason))
    yield rows


def redacted_lines(done: Redacted) -> Iterator[Line]:
    """What a redaction did and what is left to decide."""
    yield Text.assemble(("redacted", "bold green"), f"  {done.memory} in {len(done.versions)} versions")
    yield from (Text(f"  also ended, being derived from it: {id_}") for id_ in done.derived)
    yield from (Text(f"  waits for sandbox {id_} to close", "yellow") for id_ in done.waiting)
    yield from (Text(f"  not finished, {clean(why)}", "yellow") for why in done.unreached)
    yield from (Text(f"  says it too, decide about it: {id_}", "yellow") for id_ in done.also_in)


def pairs_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """Look-alikes as a table, and how to go on."""
    if not value["pairs"]:
        yield Text("no two memories look alike", "dim")
        return
    rows = table("alike", "id", "text", numbers=("alike",))
    for pair in value["pairs"]:
        rows.add_row(f"{pair.score:.2f}", pair.first.id, said(pair.first))
        rows.add_row("", pair.second.id, said(pair.second))
    yield rows
    first = value["pairs"][0]
    yield Text(f"ask to merge two: octavo propose-merge {first.first.id} {first.second.id}", "dim")


def doubts_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """Memories worth asking about as a table."""
    if not value["doubts"]:
        yield Text("nothing is in doubt", "dim")
        return
    rows = table("id", "kind", "text")
    for doubt in value["doubts"]:
        why = Text.assemble(said(doubt.memory), (f"\n{clean(doubt.reason)}", "dim"))
        rows.add_row(doubt.memory.id, doubt.memory.kind, why)
    yield rows
    yield Text("put them before a person: octavo propose-deletions", "dim")


def asked_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """The new proposals."""
    if not value["asked"]:
        yield Text("nothing new to ask", "dim")
    yield from (Text.assemble(("waits for a person", "magenta"), f"  {id_}") for id_ in value["asked"])
