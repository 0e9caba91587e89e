"""Accounts and sandboxes as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from octavo.domain.verdicts import Consolidation
from octavo.doors import plain
from octavo.doors.render.console import write
from octavo.doors.render.shapes import Line, Shown, dim, line, moment
from octavo.doors.render.text import one_line, said


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
        entry = item["entry"]
        if item["t"] == "turn":
            yield line((f"  {one_line(entry.turn.speaker)}: ", "cyan"), one_line(entry.turn.text))
        else:
            yield line((f"  {item['t']}  ", "magenta"), _entry(item["t"], entry))
    if value["torn_bytes"]:
        yield line((f"  a torn last line of {value['torn_bytes']} bytes, never acknowledged", "yellow"))


def _entry(tag: str, entry: Any) -> Line:
    """What an entry of a buffer that is no turn asks for."""
    match tag:
        case "memory":
            return said(entry.memory)
        case "revise":
            return line(f"{entry.wanted.id}  ", said(entry.wanted))
        case "state":
            return line((f"{one_line(entry.name)}  ", "cyan"), one_line(str(plain.plain(entry.data))))
        case "forget":
            return line(entry.memory)
        case "use":
            return line(", ".join(entry.memories))
        case _:
            return line(moment(entry.at))


def consolidation_lines(done: Consolidation) -> Iterator[Shown]:
    """What a consolidation did, and what it reports."""
    session = f", session {done.session}" if done.session else ""
    yield line(("consolidated", "bold green"), f" version {done.version}{session}")
    counts = {"added": done.added, "superseded": done.superseded, "forgotten": done.forgotten}
    summary = ", ".join(f"{len(ids)} {what}" for what, ids in counts.items() if ids)
    if summary:
        yield f"  {summary}"
    for merge in done.merged:
        yield line(("  merged  ", "cyan"), f"into {merge.into}: ", one_line(merge.text))
    for clash in done.clashes:
        detail = f"{clash.detail}, {clash.found_rev} when it closed; the later one won"
        yield line(("  clash  ", "yellow"), detail)
    for refusal in done.refused:
        yield line(("  refused  ", "red"), f"{refusal.check}: {refusal.detail}")
    for proposal in done.proposals:
        yield line(("  waits for a person  ", "magenta"), f"{proposal.id}: ", said(proposal.memory))
