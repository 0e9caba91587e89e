"""What was done, as the command line tells it: a word and what it was done to, or lines below a head."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from octavo.documents.brain.teaching import Reply
from octavo.domain.mirror import Edit, Held, Synced
from octavo.domain.verdicts import Consolidation, Verdict
from octavo.doors import plain
from octavo.doors.render.console import write
from octavo.doors.render.diff import diff_lines
from octavo.doors.render.lists import beginning, listing, sheet
from octavo.doors.render.pages import fallback
from octavo.doors.render.shapes import (
    Line,
    Shown,
    cell,
    dim,
    line,
    moment,
    one_line,
    plural,
    said,
    value_lines,
)
from octavo.engine.health import Report
from octavo.engine.review import Waiting

View = Callable[[Any], Iterable[Shown]]
_GOOD = "bold green"
_FILES = 20  # that are named one by one
_PYTHONS = re.compile(r"\b(\w+)='(.*?)'")  # how an advice names an argument, which is an option here
_EDITS = {"remember": "green", "revise": "yellow", "forget": "red"}


def done(word: str, style: str = _GOOD, *, then: str = "", empty: str = "") -> View:
    """A view of a line for each thing that was done: the word, what it was done to, what follows from it."""

    def view(value: Mapping[str, Any]) -> Iterator[Shown]:
        (what,) = value.values()
        things = what if isinstance(what, list) else [what]
        lead = (f"{word} " if word else "", style)
        yield from (line(lead, cell(one) or "", then.format(one)) for one in things)
        if empty and not things:
            yield dim(empty)

    return view


def report(head: Callable[[Any], Line], **below: tuple[str, str, Callable[[Any], Line | str]]) -> View:
    """A view of a head and, for each thing in some fields, a line behind that field's word in its style."""

    def view(value: Any) -> Iterator[Shown]:
        yield head(value)
        for name, (word, style, told) in below.items():
            yield from (line((f"  {word}  ", style), told(one)) for one in getattr(value, name))

    return view


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


def _begun(value: Mapping[str, Any]) -> list[Shown]:
    what = "begun" if value["is_new"] else f"there already, at version {value['version']}"
    return [line("account ", (one_line(value["account"]), "bold"), f" in {value['root']}: {what}")]


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
        told = _ENTRIES.get(item["t"], lambda entry: moment(entry.at))(item["entry"])
        yield line((f"  {item['t']}  ", "magenta"), told)
    if value["torn_bytes"]:
        yield line((f"  a torn last line of {value['torn_bytes']} bytes, never acknowledged", "yellow"))


# What an entry of a buffer says, by its tag.
_ENTRIES: dict[str, Callable[[Any], Line | str]] = {
    "turn": lambda entry: f"{one_line(entry.turn.speaker)}: {one_line(entry.turn.text)}",
    "memory": lambda entry: said(entry.memory),
    "revise": lambda entry: line(f"{entry.wanted.id}  ", said(entry.wanted)),
    "state": lambda entry: f"{one_line(entry.name)}  {one_line(plain.document(entry.data))}",
    "forget": lambda entry: str(entry.memory),
    "use": lambda entry: ", ".join(entry.memories),
}


def _consolidated(made: Consolidation) -> Line:
    session = f", session {made.session}" if made.session else ""
    counts = {"added": made.added, "superseded": made.superseded, "forgotten": made.forgotten}
    summary = ", ".join(f"{len(ids)} {what}" for what, ids in counts.items() if ids)
    return line(
        ("consolidated", _GOOD), f" version {made.version}{session}{': ' if summary else ''}{summary}"
    )


def waiting_lines(waiting: Waiting) -> Iterator[Shown]:
    """One proposal with its difference."""
    proposal = waiting.proposal
    yield line((f"{proposal.action}  ", "magenta"), f"{proposal.reason} ({proposal.by})")
    yield from diff_lines(waiting.diff)
    yield dim(f"approve it as seen: octavo approve {proposal.id} --seen {waiting.digest}")


def _sound(report: Report) -> Line:
    word = ("sound", _GOOD) if report else ("damaged", "bold red")
    parts = {"version": report.versions, "line": report.lines, "open sandbox": report.sandboxes}
    return line(word, f": {', '.join(plural(what, n) for what, n in parts.items())}")


def carried_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What an export or import did."""
    yield line((value["format"], _GOOD), f" {value['path']}")
    yield from value_lines(value["result"])


def compressed_lines(value: Mapping[str, Any]) -> Iterator[Shown]:
    """What compression made, and what a model could not tell."""
    for memory in value["made"]:
        yield line(("made", _GOOD), f"  {memory.id}  ", beginning(memory))
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


def _is_settled(aged: Mapping[str, Any]) -> bool:
    return aged["is_done"] or not aged["episodes"]


DONE: dict[str, View] = {
    **dict.fromkeys(("remember", "alias", "revise", "update_state", "promote"), verdict_lines),
    **dict.fromkeys(("remember_many", "end_order"), verdicts_lines),
    **dict.fromkeys(("turn", "write_episode", "use"), done("noted")),
    **dict.fromkeys(("backup", "salvage"), done("copied to")),
    **dict.fromkeys(("reopen", "propose_merge"), done("waits for a person:")),
    **dict.fromkeys(("export", "import"), carried_lines),
    **dict.fromkeys(("mirror", "sync"), synced_lines),
    **dict.fromkeys(("teach", "invoke"), answer_lines),
    **dict.fromkeys(("mcp", "hook"), lambda _: ()),  # they have answered somebody else already
    **dict.fromkeys(
        ("check", "repair"),
        report(_sound, problems=("problem", "red", str), notes=("note", "yellow", str)),
    ),
    "accounts": done("", empty="no accounts; `octavo init` begins one"),
    "init": _begun,
    "delete_account": done("deleted"),
    "sandbox": sandbox_lines,
    "buffer": buffer_lines,
    "consolidate": report(
        _consolidated,
        merged=("merged", "cyan", lambda m: f"into {m.into}: {one_line(m.text)}"),
        clashes=("clash", "yellow", "{0.detail}, {0.found_rev} when it closed; the later one won".format),
        refused=("refused", "red", lambda refusal: f"{refusal.check}: {refusal.detail}"),
        proposals=("waits for a person", "magenta", lambda p: line(f"{p.id}: ", said(p.memory))),
    ),
    "discard": done("discarded"),
    "forget": lambda value: verdicts_lines(value, "forgotten"),
    "explain": done(""),
    "catch_up": done("indexed up to version"),
    "reindex": done("indexed anew up to version"),
    "proposal": waiting_lines,
    "approve": done("approved "),
    "decline": done("declined"),
    "reject": lambda value: [
        line(("rejected", _GOOD), f" for ever; ended {len(value['ended'])} that said so")
    ],
    "unreject": done("allowed again:"),
    "redact": report(
        lambda erased: line(("redacted", _GOOD), f"  {erased.memory} in {len(erased.versions)} versions"),
        derived=("also ended, being derived from it:", "", str),
        waiting=("waits for a sandbox to close:", "yellow", str),
        unreached=("not finished:", "yellow", str),
        also_in=("says it too, decide about it:", "yellow", str),
        cleaned=("erased in a copy, too:", "", str),
        copies=("a copy still holds it:", "yellow", str),
    ),
    "propose_deletions": done("waits for a person ", "magenta", empty="nothing new to ask"),
    "compress": compressed_lines,
    "uncompress": done("removed ", then="; `octavo compress {}` makes it again"),
    "retention": listing(
        "nothing is kept by age",
        "group episodes gone=is_done",
        episodes=lambda aged: len(aged["episodes"]),
        then=lambda aged: "" if all(map(_is_settled, aged)) else "nothing went yet: octavo retention --apply",
    ),
    "unmerge": done("lives again"),
    "diff": lambda d: [line((f"version {d.before} → {d.after}", "bold")), *diff_lines(d)],
    "restore": done("restored as version"),
    "revert": done("reverted as version"),
    "upkeep": sheet(
        "erased=swept made retired contested lapsed=expired sealed assembled merged wrong=problems",
        empty="nothing was due",
    ),
}
