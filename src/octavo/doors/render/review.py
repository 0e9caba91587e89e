"""Proposals, rejections and redactions as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from octavo.doors.render.diff import diff_lines
from octavo.doors.render.shapes import Shown, dim, line
from octavo.doors.render.text import said
from octavo.engine.redaction import Redacted
from octavo.engine.review import Waiting


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
    yield line(("approved", "bold green"), "  ", named)


def ended_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """How many memories a rejection ended."""
    yield line(("rejected", "bold green"), f" for ever; ended {len(value['ended'])} that said so")


def redacted_lines(done: Redacted) -> Iterator[Shown]:
    """What a redaction did and what is left to decide."""
    yield line(("redacted", "bold green"), f"  {done.memory} in {len(done.versions)} versions")
    yield from (line(f"  also ended, being derived from it: {id_}") for id_ in done.derived)
    yield from (line((f"  waits for sandbox {id_} to close", "yellow")) for id_ in done.waiting)
    yield from (line((f"  not finished, {why}", "yellow")) for why in done.unreached)
    yield from (line((f"  says it too, decide about it: {id_}", "yellow")) for id_ in done.also_in)


def asked_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """The new proposals."""
    if not value["asked"]:
        yield dim("nothing new to ask")
    yield from (line(("waits for a person", "magenta"), f"  {id_}") for id_ in value["asked"])
