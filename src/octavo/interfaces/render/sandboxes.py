"""Accounts and sandboxes as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from octavo.interfaces.render.console import Line, moment, table, write
from octavo.interfaces.render.shapes import Text
from octavo.interfaces.render.text import clean, one_line, said
from octavo.later import Later

if TYPE_CHECKING:
    from octavo.domain.verdicts import Consolidation

plain = Later("octavo.interfaces.plain")


def init_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """Whether the account was begun or found."""
    what = "begun" if value["is_new"] else f"there already, at version {value['version']}"
    yield Text.assemble("account ", (clean(value["account"]), "bold"), f" in {value['root']}: {what}")


def accounts_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """One account a line."""
    yield from (clean(name) for name in value["accounts"])
    if not value["accounts"]:
        yield Text("no accounts; `octavo init` begins one", "dim")


def sandbox_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """The id alone on standard output, so that a script can keep it: `s=$(octavo sandbox)`."""
    about = f"{clean(value['name'])} on version {value['parent_version']}, scope {value['scope']}"
    write(Text(about, "dim"), stderr=True)
    yield value["id"]


def sandboxes_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """The open sandboxes as a table."""
    if not value["sandboxes"]:
        yield Text("no sandbox is open", "dim")
        return
    rows = table("id", "name", "scope", "on", "age", "lines", numbers=("on", "age", "lines"))
    for info in value["sandboxes"]:
        name = f"{clean(info.name)}{' (sealed)' if info.is_sealed else ''}"
        rows.add_row(info.id, name, info.scope, str(info.parent_version), _age(info.age), str(info.lines))
    yield rows


def buffer_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """What a sandbox has written, a line each."""
    opened = value["sandbox"]
    yield Text(f"{opened.name} on version {opened.parent}, scope {opened.scope}, {opened.actor}", "bold")
    for item in value["entries"]:
        entry = item["entry"]
        if item["t"] == "turn":
            yield Text.assemble((f"  {clean(entry.turn.speaker)}: ", "cyan"), one_line(entry.turn.text))
        else:
            yield Text.assemble((f"  {item['t']}  ", "magenta"), _entry(item["t"], entry))
    if value["torn_bytes"]:
        yield Text(f"  a torn last line of {value['torn_bytes']} bytes, never acknowledged", "yellow")


def _entry(tag: str, entry: Any) -> Text:
    """What an entry of a buffer that is no turn asks for."""
    match tag:
        case "memory":
            return said(entry.memory)
        case "revise":
            return Text.assemble(f"{entry.wanted.id}  ", said(entry.wanted))
        case "state":
            return Text.assemble((f"{clean(entry.name)}  ", "cyan"), one_line(str(plain.plain(entry.data))))
        case "forget":
            return Text(entry.memory)
        case "use":
            return Text(", ".join(entry.memories))
        case _:
            return Text(moment(entry.at))


def consolidation_lines(done: Consolidation) -> Iterator[Line]:
    """What a consolidation did, and what it reports."""
    session = f", session {done.session}" if done.session else ""
    yield Text.assemble(("consolidated", "bold green"), f" version {done.version}{session}")
    counts = {"added": done.added, "superseded": done.superseded, "forgotten": done.forgotten}
    summary = ", ".join(f"{len(ids)} {what}" for what, ids in counts.items() if ids)
    if summary:
        yield f"  {summary}"
    for merge in done.merged:
        yield Text.assemble(("  merged  ", "cyan"), f"into {merge.into}: ", one_line(merge.text))
    for clash in done.clashes:
        detail = f"{clean(clash.detail)}, {clash.found_rev} when it closed; the later one won"
        yield Text.assemble(("  clash  ", "yellow"), detail)
    for refusal in done.refused:
        yield Text.assemble(("  refused  ", "red"), f"{refusal.check}: {clean(refusal.detail)}")
    for proposal in done.proposals:
        yield Text.assemble(("  waits for a person  ", "magenta"), f"{proposal.id}: ", said(proposal.memory))


def _age(age: timedelta) -> str:
    minutes = max(int(age.total_seconds()) // 60, 0)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"
