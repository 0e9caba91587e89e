"""Hooks of coding agents: the brief goes in at the start and with each prompt, what was said is kept.

What was said is what the client sends: the prompt, and the assistant's last message when it has answered.
The command also reads the transcript that the client names, for what no event tells: texts between tool
calls, and whatever a hook that was killed did not keep. A hook never breaks its client: whatever goes wrong
is a line in `hooks.log` beside the accounts, the answer is nothing and the exit code 0, within a bounded
time. It loads no model: words alone find what is needed. The running server answers the same by HTTP, and
reads no file.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeGuard

from octavo.domain.episodes import moment
from octavo.domain.memory import Turn
from octavo.domain.privacy import tellable
from octavo.doors import conversations
from octavo.doors.conversations import agent_settings
from octavo.doors.operations import Parameter
from octavo.doors.operations.performing import open_account
from octavo.doors.rest import Server
from octavo.doors.rest import answer as rest_answer
from octavo.doors.settings import Settings
from octavo.engine.account import Account
from octavo.errors import BadInput, OctavoError, Refused
from octavo.storage.stores.disk import Disk, replace_file
from octavo.storage.stores.names import folder_of

LOG = logging.getLogger(__name__)
EVENTS = {
    "session-start": "SessionStart",
    "prompt": "UserPromptSubmit",
    "pre-compact": "PreCompact",
    "stop": "Stop",
}
SECONDS = 20
_BUDGET = 1_500  # tokens of a brief; clients cut what is longer than 10,000 characters
_NEWEST, _RELEVANT, _QUERY = 6, 12, 2_000
_MOST_BYTES, _LONGEST = 4_000_000, 20_000
_SESSION = re.compile(r"[\w-][\w.-]{0,79}")
# What a client says in the user's name: commands, their output, reminders.
_NOT_SAID = re.compile(
    r"\s*(<(command|local-command|system-reminder|bash|task-notification)|\[Request interrupted)"
)
_PAYLOAD = (
    Parameter(name="event", summary=f"One of {', '.join(EVENTS)}."),
    Parameter(name="session_id", summary="Which conversation.", is_required=True),
    Parameter(name="prompt", summary="What the user says."),
    Parameter(name="last_assistant_message", summary="What the assistant said last."),
    Parameter(name="hook_event_name", summary="What the client calls the event."),
)


def answer(settings: Settings, event: str) -> None:
    """Read the client's JSON from standard input and answer in its form; never fails."""
    others = os.umask(0o077)  # the log, which comes to be with its first line, is its owner's alone
    handler = _log_to(settings.local)
    previous = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        payload = _told(json.loads(sys.stdin.buffer.read()))
        session = _session(event, payload)
        notes = settings.local / ".hooks" / folder_of(settings.account) / session
        how = {"writes": True, "indexes": True, "begins": True, "words": True}
        with open_account(agent_settings(settings, "hook"), **how) as account:
            reply = respond(account, event, payload, session, notes)
        if reply:
            sys.stdout.write(json.dumps(reply, ensure_ascii=False) + "\n")
    except (Exception, _OutOfTime) as error:  # the client goes on, whatever happened here
        # Only what we say ourselves is sure to hold no memory's text.
        said = tellable(str(error)) if isinstance(error, OctavoError | _OutOfTime) else ""
        LOG.error("hook failed event=%s error=%s: %s", tellable(event[:40]), type(error).__name__, said)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        LOG.removeHandler(handler)
        handler.close()
        os.umask(others)


def add(server: Server) -> None:
    """Let the running server answer hooks at /hooks/<event>, as whom the token says."""

    def hook(request: Any, who: Settings, payload: dict[str, Any]) -> Any:
        """Answer a coding agent's hook."""
        event = payload.pop("event")
        session = _session(event, payload)
        with server.pool.account(agent_settings(who, "hook"), begins=True) as account:
            return rest_answer(respond(account, event, payload, session) or {})

    server.route("POST /hooks/{event}", hook, _PAYLOAD, is_open=True)


def respond(
    account: Account, event: str, payload: dict[str, Any], session: str, notes: Path | None = None
) -> dict[str, Any] | None:
    """What goes into the client's context, in its form; what the event says is kept in the conversation.

    With a file for notes of what was kept, the transcript is read as well.
    """
    name, text = conversations.HOOK + session, ""
    is_open = bool(conversations.open_ids(account, name))
    is_first = notes is None and not is_open  # clients tell no server that a conversation starts
    if event == "session-start" or is_first:
        conversations.end_idle(account)
    said = payload.get("prompt" if event == "prompt" else "last_assistant_message")
    if event == "session-start":
        newest = account.memories(kind=("episode", "core"), newest=True, limit=_NEWEST)
        text = account.brief(budget=_BUDGET, newest=newest).text
    elif event == "prompt":
        # What stands was told at the start, unless this is it.
        query = said[:_QUERY] if _is_said(said) else None
        text = account.brief(query, k=_RELEVANT, budget=_BUDGET, standing=is_first).text
        _keep(account, name, [_event("user", said)], notes)
    else:
        turns, done = [] if notes is None else _turns(payload.get("transcript_path")), _noted(notes)[0]
        _keep(account, name, [(n, turn) for n, turn in turns if n > done], notes)
        answers = [turn.text for _, turn in turns if turn.speaker == "assistant"]
        is_over = event == "stop" and not conversations.open_ids(account, name)
        if not is_over and _is_said(said) and [said.strip()] != [one.strip() for one in answers[-1:]]:
            _keep(account, name, [_event("assistant", said)], notes)
        if event == "stop":
            conversations.end(account, name)
            if notes is not None and notes.exists():  # no trace of what was said stays there
                _note(notes, max([done, *(n for n, _ in turns)]), [])
    return _answered(payload.get("hook_event_name", EVENTS[event]), text)


def _answered(moment: str, text: str) -> dict[str, Any] | None:
    """What goes into the context, in the client's form; Cursor takes nothing with a prompt."""
    match moment, text:
        case "beforeSubmitPrompt", _:
            return {"continue": True}
        case _, "":
            return None
        case "sessionStart", _:
            return {"additional_context": text}
        case _:
            return {"hookSpecificOutput": {"hookEventName": moment, "additionalContext": text}}


def _told(payload: Any) -> Any:
    """What a client sends, in the words of Claude Code and Codex; of Cursor all but its own transcript."""
    if not isinstance(payload, dict) or "cursor_version" not in payload:
        return payload
    known = {name: value for name, value in payload.items() if name != "transcript_path"}
    return {"session_id": known.get("conversation_id"), "last_assistant_message": known.get("text"), **known}


def _session(event: str, payload: Any) -> str:
    """Which conversation an event is of, both of which must be known."""
    if event not in EVENTS:
        raise BadInput(f"hook event {event[:40]!r} is unknown", hint=f"use one of {', '.join(EVENTS)}")
    session = payload.get("session_id") if isinstance(payload, dict) else None
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        raise BadInput("the hook's JSON has no usable session_id")
    return session


def _event(speaker: str, said: Any) -> tuple[int, Turn | None]:
    """What an event says, as a turn that stands in no line."""
    return 0, Turn(speaker=speaker, text=said[:_LONGEST]) if _is_said(said) else None


def _keep(account: Account, name: str, said: Sequence[tuple[int, Turn | None]], notes: Path | None) -> None:
    """Keep each turn once.

    A client says an answer with every event until the next one. What a transcript says may have been heard:
    up to the noted line it was consolidated, and perhaps forgotten by a person; what is kept of the rest has
    its mark in the notes, or stands in the sandbox if a hook was killed before it could note that.
    """
    new = [(line, turn) for line, turn in said if turn is not None]
    if not new:
        return
    done, marks = _noted(notes)
    with conversations.held(account, name) as sandbox:
        spoken = [_mark(turn) for turn in conversations.turns(sandbox.buffer)]
        heard = Counter(marks) | Counter(spoken) if new[0][0] else Counter(spoken[-1:])
        for _, turn in new:
            if heard[_mark(turn)]:
                heard[_mark(turn)] -= 1
                continue
            try:
                sandbox.turn(turn.speaker, turn.text, at=turn.at)
            except Refused as refusal:  # the client is briefed all the same
                LOG.warning("turn refused speaker=%s error=%s", turn.speaker, type(refusal).__name__)
            marks.append(_mark(turn))  # the transcript will say it again
    if notes is not None:
        _note(notes, done, marks)


def _noted(notes: Path | None) -> tuple[int, list[str]]:
    """Up to which line a conversation's transcript is consolidated, and the marks of what is kept since."""
    line, *marks = notes.read_text().split() if notes is not None and notes.exists() else ["0"]
    return int(line) if line.isdecimal() else 0, marks


def _note(notes: Path, line: int, marks: list[str]) -> None:
    notes.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    replace_file(Disk(), notes, "\n".join([str(line), *marks]).encode())


def _mark(turn: Turn) -> str:
    return hashlib.sha256(f"{turn.speaker}\n{turn.text.strip()}".encode()).hexdigest()[:16]


def _turns(path: Any) -> list[tuple[int, Turn]]:
    """What is said in a transcript, each with its line; not every client keeps one."""
    try:
        transcript = Path(path)
        if not path or not transcript.is_file():
            return []
    except (OSError, TypeError, ValueError):  # no name of a file at all
        return []
    with transcript.open("rb") as lines:
        said = ((number, _turn(line)) for number, line in enumerate(lines, 1))
        return [(number, turn) for number, turn in said if turn is not None]


def _turn(line: bytes) -> Turn | None:
    """What a line of a transcript says, None if nobody says anything in it."""
    if len(line) > _MOST_BYTES:
        return None  # a picture or the like
    try:
        entry = json.loads(line)
        role, content = entry["message"]["role"], entry["message"]["content"]
    except (ValueError, KeyError, TypeError):
        return None  # a line of another sort, or one that is still being written
    is_spoken = role in ("user", "assistant") and role == entry.get("type")
    if not is_spoken or entry.get("isMeta") or entry.get("isSidechain"):
        return None
    blocks = content if isinstance(content, list) else [{"type": "text", "text": content}]
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    text = "\n".join(text for text in texts if _is_said(text))[:_LONGEST]
    return Turn(speaker=role, text=text, at=moment(entry.get("timestamp"), lenient=True)) if text else None


def _is_said(text: object) -> TypeGuard[str]:
    """Whether somebody says a text, and not the client in their name."""
    return isinstance(text, str) and bool(text.strip()) and not _NOT_SAID.match(text)


def _log_to(root: Path) -> logging.Handler:
    """Log beside the accounts, or nowhere: a hook has nobody to tell."""
    from logging.handlers import RotatingFileHandler  # it brings much that no other command needs

    with suppress(OSError):
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
    handler = RotatingFileHandler(root / "hooks.log", maxBytes=500_000, backupCount=1, delay=True)
    handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    handler.handleError = lambda record: None  # type: ignore[method-assign]
    LOG.addHandler(handler)
    LOG.propagate = False
    return handler


class _OutOfTime(BaseException):
    """The time of a hook is up; what is durable stays, and the next hook goes on from there."""


def _give_up(*_: Any) -> None:
    raise _OutOfTime(f"it took longer than {SECONDS} seconds")
