"""What was done, as the command line tells it where a sentence of views.toml does not suffice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from octavo.domain.mirror import Edit, Held, Synced
from octavo.domain.verdicts import Verdict
from octavo.doors.render.console import write
from octavo.doors.render.shapes import Shown, dim, line, plural, said
from octavo.doors.render.views import View

_GOOD = "bold green"
_FILES = 20  # that are named one by one
_PYTHONS = re.compile(r"\b(\w+)='(.*?)'")  # how an advice names an argument, which is an option here
_EDITS = {"remember": "green", "revise": "yellow", "forget": "red"}


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
        advice = _PYTHONS.sub(r"--\1 \2", verdict.advice)
        write(line(("  → ", "bold"), advice), stderr=True)


def verdicts_lines(value: Mapping[str, Any], word: str = "") -> Iterator[Shown]:
    """What became of several writes."""
    for verdict in value["verdicts"]:
        yield from verdict_lines(verdict, word if verdict.memory is not None else "")


def synced_lines(done: Synced) -> Iterator[Shown]:
    """Files written, edits line by line, then everything that stays as it is, and why."""
    yield line(("mirror", _GOOD), f"  {done.folder}, version {done.version}")
    yield from (line(("  wrote  ", "green"), path) for path in done.written[:_FILES])
    yield from (line(("  removed  ", "green"), path) for path in done.removed[:_FILES])
    if more := sum(max(len(paths) - _FILES, 0) for paths in (done.written, done.removed)):
        yield dim(f"  and {plural('file', more)} more")
    yield from (line((f"  {e.action}  ", _EDITS[e.action]), f"{_place(e)}  {e.text}") for e in done.edits)
    stays = {"conflict": done.conflicts, "refused": done.refused, "left alone": done.left_alone}
    for word, held in stays.items():
        style = "dim" if word == "left alone" else "bold red"
        yield from (line((f"  {word}  ", style), f"{_place(one)}: {one.reason}") for one in held)
    if done.conflicts:
        yield dim("edit the line until both say the same, or octavo sync --yes --ours (or --theirs) decides")
    if done.edits and not done.is_done:
        yield dim("nothing is taken in yet: octavo sync --yes")
    elif not (done.written or done.removed or done.edits or done.conflicts or done.refused):
        yield dim("  nothing has changed")


def _place(one: Edit | Held) -> str:
    return f"{one.path}:{one.line}" if one.line else one.path


DEEDS: dict[str, View] = {
    **dict.fromkeys(("remember", "alias", "revise", "update_state", "promote"), verdict_lines),
    **dict.fromkeys(("remember_many", "end_order"), verdicts_lines),
    **dict.fromkeys(("mirror", "sync"), synced_lines),
    "forget": lambda value: verdicts_lines(value, "forgotten"),
}
