"""Versions, their differences, counts and health as the command line shows them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from octavo.doors import plain
from octavo.doors.render.diff import diff_lines
from octavo.doors.render.shapes import Shown, dim, grid, line, plural
from octavo.engine.differences import Diff
from octavo.engine.health import Report
from octavo.engine.upkeep import Upkeep


def difference_lines(difference: Diff) -> Iterator[Shown]:
    """The difference of two versions."""
    yield line((f"version {difference.before} → {difference.after}", "bold"))
    yield from diff_lines(difference)


def report_lines(report: Report) -> Iterator[Shown]:
    """Whether the account is sound, and every problem found."""
    word = ("sound", "bold green") if report else ("damaged", "bold red")
    parts = {"version": report.versions, "line": report.lines, "open sandbox": report.sandboxes}
    facts = ", ".join(plural(what, n) for what, n in parts.items())
    yield line(word, f": {facts}")
    yield from (line(("  problem  ", "red"), problem) for problem in report.problems)
    yield from (line(("  note  ", "yellow"), note) for note in report.notes)


def carried_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What an export or import did."""
    done = plain.plain(value["result"])
    yield line((value["format"], "bold green"), f" {value['path']}")
    if isinstance(done, dict):
        yield grid({name: _listed(item) for name, item in done.items()})


def upkeep_lines(done: Upkeep) -> Iterator[Shown]:
    """What a round of upkeep did, a line for each sort of work."""
    told = {
        "finished erasing what was redacted, in": plural("version", done.swept) if done.swept else None,
        "made": ", ".join(done.made),
        "retired to the archive": plural("original", len(done.retired)) if done.retired else None,
        "contested by newer sessions": ", ".join(done.contested),
        "lapsed without an answer": plural("proposal", done.expired) if done.expired else None,
    }
    lines = [line((f"{what} ", "bold green"), n) for what, n in told.items() if n]
    lines += [line(("  wrong  ", "red"), problem) for problem in done.problems]
    yield from lines or [dim("nothing was due")]


def _listed(value: Any) -> str:
    return "\n".join(map(str, value)) if isinstance(value, list) else str(value)
