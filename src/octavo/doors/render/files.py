"""What a mirror shows and what a sync took in, as the command line tells it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from octavo.documents.brain.teaching import Reply
from octavo.doors.operations.levels import Aged
from octavo.doors.render.shapes import Shown, dim, line, plural
from octavo.engine.comparison import Held
from octavo.engine.syncing import Synced

_STYLES = {"remember": "green", "revise": "yellow", "forget": "red"}
_FILES = 20  # that are named one by one


def synced_lines(done: Synced) -> Iterator[Shown]:
    """Files written, edits line by line, then everything that stays as it is, and why."""
    yield line(("mirror", "bold green"), f"  {done.folder}, version {done.version}")
    yield from (line(("  wrote  ", "green"), path) for path in done.written[:_FILES])
    if len(done.written) > _FILES:
        yield dim(f"  and {plural('file', len(done.written) - _FILES)} more")
    for edit in done.edits:
        place = f"{edit.path}:{edit.line}" if edit.line else edit.path
        yield line((f"  {edit.action}  ", _STYLES[edit.action]), f"{place}  {edit.text}")
    yield from _held("conflict", "bold red", done.conflicts)
    yield from _held("refused", "red", done.refused)
    yield from _held("left alone", "dim", done.left_alone)
    if done.edits and not done.is_done:
        yield dim("nothing is taken in yet: octavo sync --yes")
    elif not (done.written or done.edits or done.conflicts or done.refused):
        yield dim("  nothing has changed")


def _held(word: str, style: str, held: tuple[Held, ...]) -> Iterator[Shown]:
    for one in held:
        place = f"{one.path}:{one.line}" if one.line else one.path
        yield line((f"  {word}  ", style), f"{place}: {one.reason}")


def answer_lines(answer: Reply) -> Iterator[Shown]:
    """What the robot says, and what it would do."""
    yield line((answer.text, "bold red" if answer.denial else "bold green"))
    yield from (line(f"  {number}. {action}") for number, action in enumerate(answer.actions, 1))


def aged_lines(value: Mapping[str, list[Aged]]) -> Iterator[Shown]:
    """How many episodes are past their limits, or went."""
    for aged in value["aged"]:
        word = "moved to the archive" if aged.is_done else "past the limits"
        yield line((f"{aged.group}  ", "bold"), f"{plural('episode', len(aged.episodes))} {word}")
    if any(aged.episodes and not aged.is_done for aged in value["aged"]):
        yield dim("nothing went yet: octavo retention --apply")
