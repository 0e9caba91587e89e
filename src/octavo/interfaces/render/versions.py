"""Versions, their differences, counts and health as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from rich.text import Text

from octavo.interfaces.later import Later
from octavo.interfaces.render.console import Line, grid, moment, plural, table
from octavo.interfaces.render.diff import diff_lines
from octavo.interfaces.render.text import clean

if TYPE_CHECKING:
    from octavo.engine.health import Report
    from octavo.engine.reading import Diff, Stats

plain = Later("octavo.interfaces.plain")


def versions_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """Versions as a table, and how to go on."""
    if not value["versions"]:
        yield Text("no version yet: nothing has been written", "dim")
        return
    rows = table("version", "at", "cause", "by", "scope", "changes", numbers=("version", "changes"))
    for commit in value["versions"]:
        session = f" (session {commit.session})" if commit.session else ""
        rows.add_row(
            str(commit.version),
            moment(commit.at),
            f"{commit.cause}{session}",
            clean(commit.actor),
            commit.scope or "",
            str(commit.changes),
        )
    yield rows
    if value["next"]:
        yield Text(f"more: --after {value['next']}", "dim")


def difference_lines(difference: Diff) -> Iterator[Line]:
    """The difference of two versions."""
    yield Text(f"version {difference.before} → {difference.after}", "bold")
    yield from diff_lines(difference)


def sessions_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """Closed sessions as a table."""
    if not value["sessions"]:
        yield Text("no session has closed yet", "dim")
        return
    rows = table("session", "scope", "version", "at", "sandbox", numbers=("session", "version"))
    for session in value["sessions"]:
        at = moment(session.at)
        rows.add_row(str(session.ordinal), session.scope, str(session.version), at, session.sandbox)
    yield rows


def stats_lines(stats: Stats) -> Iterator[Line]:
    """Counts, field by field."""
    yield grid(
        {
            "account": stats.account,
            "version": str(stats.version),
            "memories": str(stats.memories),
            "episodes": str(stats.episodes),
            "by kind": _counts(stats.by_kind),
            "by scope": _counts(stats.by_scope),
            "by category": _counts(stats.by_category),
            "sessions": _counts(stats.sessions),
            "proposals": str(stats.proposals) if stats.proposals else None,
        }
    )


def report_lines(report: Report) -> Iterator[Line]:
    """Whether the account is sound, and every problem found."""
    word = ("sound", "bold green") if report else ("damaged", "bold red")
    parts = {"version": report.versions, "line": report.lines, "open sandbox": report.sandboxes}
    facts = ", ".join(plural(what, n) for what, n in parts.items())
    yield Text.assemble(word, f": {facts}")
    yield from (Text.assemble(("  problem  ", "red"), clean(problem)) for problem in report.problems)
    yield from (Text.assemble(("  note  ", "yellow"), clean(note)) for note in report.notes)


def carried_lines(value: Mapping[str, Any]) -> Iterator[Line]:
    """What an export or import did."""
    done = plain.plain(value["result"])
    yield Text.assemble((value["format"], "bold green"), f" {clean(value['path'])}")
    if isinstance(done, dict):
        yield grid({name: _listed(item) for name, item in done.items()})


def upkeep_lines(done: Any) -> Iterator[Line]:
    """What a round of upkeep did."""
    yield Text("done", "bold green")
    yield grid({name: str(n) for name, n in plain.plain(done).items()})


def _listed(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items())
