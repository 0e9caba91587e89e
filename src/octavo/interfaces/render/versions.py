"""Versions, their differences, counts and health as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from octavo.interfaces.render.console import Line, grid, moment, plural, table
from octavo.interfaces.render.diff import diff_lines
from octavo.interfaces.render.shapes import Text
from octavo.interfaces.render.text import clean
from octavo.later import Later

if TYPE_CHECKING:
    from octavo.engine.counts import Stats
    from octavo.engine.differences import Diff
    from octavo.engine.health import Report
    from octavo.engine.upkeep import Upkeep

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


def upkeep_lines(done: Upkeep) -> Iterator[Line]:
    """What a round of upkeep did, a line for each sort of work."""
    told = {
        "finished erasing what was redacted, in": plural("version", done.swept) if done.swept else None,
        "made": ", ".join(done.made),
        "retired to the archive": plural("original", len(done.retired)) if done.retired else None,
        "contested by newer sessions": ", ".join(done.contested),
        "lapsed without an answer": plural("proposal", done.expired) if done.expired else None,
    }
    lines = [Text.assemble((f"{what} ", "bold green"), clean(n)) for what, n in told.items() if n]
    lines += [Text.assemble(("  wrong  ", "red"), clean(problem)) for problem in done.problems]
    yield from lines or [Text("nothing was due", "dim")]


def _listed(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {n}" for name, n in counts.items())
