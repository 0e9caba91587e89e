"""What was done, as the command line tells it where a sentence of views.toml does not suffice."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from octavo.documents.brain.teaching import Reply
from octavo.domain.mirror import Edit, Held, Synced
from octavo.domain.verdicts import Verdict
from octavo.doors.render.console import write
from octavo.doors.render.diff import diff_lines
from octavo.doors.render.pages import fallback
from octavo.doors.render.shapes import Shown, dim, line, moment, one_line, plural, said, value_lines
from octavo.doors.render.views import View, beginning, sentence
from octavo.engine.review import Waiting

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
        form = _ENTRIES.get(item["t"])
        told = sentence(form, item["entry"]) if form else moment(item["entry"].at)
        yield line((f"  {item['t']}  ", "magenta"), told)
    if value["torn_bytes"]:
        yield line((f"  a torn last line of {value['torn_bytes']} bytes, never acknowledged", "yellow"))


# What an entry of a buffer says, by its tag.
_ENTRIES = {
    "turn": "{turn.speaker:line}: {turn.text:line}",
    "memory": "{memory:said}",
    "revise": "{wanted.id}  {wanted:said}",
    "state": "{name:line}  {data}",
    "forget": "{memory}",
    "use": "{memories:comma}",
}


def waiting_lines(waiting: Waiting) -> Iterator[Shown]:
    """One proposal with its difference."""
    proposal = waiting.proposal
    yield line((f"{proposal.action}  ", "magenta"), f"{proposal.reason} ({proposal.by})")
    yield from diff_lines(waiting.diff)
    yield dim(f"approve it as seen: octavo approve {proposal.id} --seen {waiting.digest}")


def carried_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What an export or import did."""
    yield line((value["format"], _GOOD), f" {value['path']}")
    yield from value_lines(value["result"])


def compressed_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What compression made, and what a model could not tell."""
    for memory in value["made"]:
        yield line(("made", _GOOD), f"  {memory.id}  ", beginning(memory.text))
        if why := fallback(memory):
            yield line((f"  {why}", "yellow"))
    yield dim(f"read it: octavo show {value['made'][0].id}" if value["made"] else "nothing was due")


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


def answer_lines(answer: Reply) -> Iterator[Shown]:
    """What the robot says, and what it would do."""
    yield line((answer.text, "bold red" if answer.denial else _GOOD))
    if len(answer.actions) > 1:  # one is in the text
        yield from (line(f"  {number}. {action}") for number, action in enumerate(answer.actions, 1))


DEEDS: dict[str, View] = {
    **dict.fromkeys(("remember", "alias", "revise", "update_state", "promote"), verdict_lines),
    **dict.fromkeys(("remember_many", "end_order"), verdicts_lines),
    **dict.fromkeys(("export", "import"), carried_lines),
    **dict.fromkeys(("mirror", "sync"), synced_lines),
    **dict.fromkeys(("teach", "invoke"), answer_lines),
    **dict.fromkeys(("mcp", "hook"), lambda _: ()),  # they have answered somebody else already
    "sandbox": sandbox_lines,
    "buffer": buffer_lines,
    "forget": lambda value: verdicts_lines(value, "forgotten"),
    "proposal": waiting_lines,
    "compress": compressed_lines,
    "diff": lambda d: [line((f"version {d.before} → {d.after}", "bold")), *diff_lines(d)],
}
