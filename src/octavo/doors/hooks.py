"""Hooks of coding agents: the brief goes in at the start and with each prompt, what was said is kept.

A hook never breaks its client: whatever goes wrong is a line in `hooks.log` beside the accounts, the answer
is nothing and the exit code 0, within a bounded time. It loads no model: words alone find what is needed.
The running server answers the same by HTTP, from what the client sends instead of its transcript.
"""

from __future__ import annotations

import json
import logging
import re
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeGuard

from octavo.domain import brief as pages
from octavo.domain.memory import Memory, Turn
from octavo.domain.privacy import tellable
from octavo.domain.profile import profile
from octavo.doors import conversations
from octavo.doors.mcp import agent_settings
from octavo.doors.operations import Parameter
from octavo.doors.operations.performing import opened
from octavo.doors.operations.values import time_of
from octavo.doors.pool import Pool
from octavo.doors.rest_routes import add_route
from octavo.doors.rest_routes import answer as rest_answer
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.engine import briefing
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
_KEEPS = ("pre-compact", "stop")
SECONDS, _POLL_SECONDS = 20, 0.02
_BUDGET = 1_500  # tokens of a brief; clients cut what is longer than 10,000 characters
_NEWEST, _FACTS, _RELEVANT, _QUERY = 6, 200, 12, 2_000
_MOST_BYTES, _MOST_LINES, _LONGEST = 4_000_000, 20_000, 20_000
_SESSION = re.compile(r"[\w-][\w.-]{0,79}")
# What a client writes into a transcript in the user's name: commands, their output, reminders.
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
    handler = _log_to(settings.local)
    previous = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        reply = respond(settings, event, _read(sys.stdin.buffer.read(_MOST_BYTES)))
        if reply:
            sys.stdout.write(json.dumps(reply, ensure_ascii=False) + "\n")
    except (Exception, _OutOfTime) as error:  # the client goes on, whatever happened here
        # Only what we say ourselves is sure to hold no memory's text.
        said = tellable(error.message) if isinstance(error, OctavoError) else ""
        LOG.error("hook failed event=%s error=%s: %s", tellable(event[:40]), type(error).__name__, said)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)
        LOG.removeHandler(handler)
        handler.close()


def respond(settings: Settings, event: str, payload: dict[str, Any]) -> dict[str, Any] | None:
    """What a hook answers to an event of one session, after keeping what was said."""
    session = _session(event, payload)
    how = {"writes": True, "indexes": True, "begins": True, "words": True}
    with opened(agent_settings(settings, "hook"), **how) as account:
        if event in _KEEPS:
            transcript = Path(str(payload.get("transcript_path", "")))
            keep(settings, account, session, transcript, over=event == "stop")
        return _brief(account, event, payload)


def add(app: Any, pool: Pool, visitors: Visitors) -> None:
    """Let the running server answer hooks at /hooks/<event>, as whom the token says and without any file.

    What was said is what the client sends: the prompt, and the assistant's last message at the end of a turn.
    """
    alone = threading.Lock()  # a client may send the next event before the last is done

    def hook(request: Any, who: Settings, payload: dict[str, Any]) -> Any:
        event = payload.pop("event")
        name = conversations.HOOK + _session(event, payload)
        with pool.account(agent_settings(who, "hook"), begins=True) as account:
            is_first = not any(info.name == name for info in account.sandboxes())
            reply = _brief(account, event, payload, is_first=is_first)
            with alone:
                _hear(account, event, payload, name)
        return rest_answer(reply or {})

    add_route(
        app,
        visitors,
        "POST",
        "/hooks/{event}",
        hook,
        _PAYLOAD,
        section="server",
        summary="Answer a coding agent's hook.",
        is_narrowed=False,
        is_strict=False,
    )


def _session(event: str, payload: dict[str, Any]) -> str:
    if event not in EVENTS:
        raise BadInput(f"hook event {event[:40]!r} is unknown", hint=f"use one of {', '.join(EVENTS)}")
    session = payload.get("session_id")
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        raise BadInput("the hook's JSON has no usable session_id")
    return session


def _brief(
    account: Account, event: str, payload: dict[str, Any], *, is_first: bool = False
) -> dict[str, Any] | None:
    """What goes into the context, in the client's form; a first prompt may be all that is told of a start."""
    if event in _KEEPS:
        return None
    if event == "session-start" or is_first:
        conversations.end_idle(account)
    if event == "session-start":
        text = _start(account)
    else:
        prompt = payload.get("prompt")
        query = prompt[:_QUERY] if _is_said(prompt) else None
        reader: Any = account if is_first else _Told(account)
        text = briefing.brief(reader, query, k=_RELEVANT, budget=_BUDGET, recall=account.recall).text
    if not text:
        return None
    name = payload.get("hook_event_name", EVENTS[event])
    return {"hookSpecificOutput": {"hookEventName": name, "additionalContext": text}}


def _hear(account: Account, event: str, payload: dict[str, Any], name: str) -> None:
    """Keep what an event itself says, once; the conversation is part of the memory when it is over."""
    speaker, field = ("user", "prompt") if event == "prompt" else ("assistant", "last_assistant_message")
    text = payload.get(field)
    if _is_said(text):
        with conversations.held(account, name) as sandbox:
            last = next(reversed(conversations.turns(sandbox.buffer)), None)
            if last is None or (last.speaker, last.text) != (speaker, text[:_LONGEST]):
                sandbox.turn(speaker, text[:_LONGEST])
    if event == "stop":
        conversations.end(account, name)


def keep(settings: Settings, account: Account, session: str, transcript: Path, *, over: bool) -> int:
    """Put the turns of a transcript that are not kept yet into the conversation's sandbox; returns how many.

    Each turn carries its line. How far a conversation is kept stands in a file of its own too, so that what
    was consolidated, and perhaps forgotten by a person, does not come back.
    """
    folder = settings.local / ".hooks" / folder_of(settings.account)
    name, mark, kept = conversations.HOOK + session, folder / session, 0
    with _alone(folder):
        done = int(mark.read_text()) if mark.exists() else 0
        with conversations.held(account, name) as sandbox:
            said = conversations.turns(sandbox.buffer)
            done = max([done, *(int(turn.data.get("line", 0)) for turn in said)])
            for line, turn in _turns(transcript, done):
                try:
                    sandbox.turn(turn.speaker, turn.text, at=turn.at, data={"line": line})
                    kept += 1
                except Refused as refusal:
                    LOG.warning("turn refused line=%s error=%s", line, type(refusal).__name__)
                done = line
        replace_file(Disk(), mark, str(done).encode())
        if over:
            conversations.end(account, name)
    return kept


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """One hook at a time keeps what was said: a client may fire the next before the last is done."""
    disk = Disk()
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = disk.open_lock(folder / ".lock")
    try:
        while not disk.try_lock(lock):
            time.sleep(_POLL_SECONDS)
        yield
    finally:
        disk.close(lock)


def _start(account: Account) -> str:
    """What stands and is known of the user, and the newest of what was said."""
    standing = account.memories(kind=("canon", "register"))
    facts = account.memories(kind="fact", newest=True, limit=_FACTS)
    newest = account.memories(kind=("episode", "core"), newest=True, limit=_NEWEST)
    known = profile(facts, account.uses(*(fact.id for fact in facts)))
    return pages.render(standing, newest, facts=known, budget=_BUDGET).text


class _Told:
    """A reader of which nothing stands: a prompt gets what is relevant; the rest was told at the start."""

    def __init__(self, account: Account) -> None:
        self.grouped = account.grouped

    def memories(self, **_: Any) -> list[Memory]:
        """Nothing."""
        return []

    def uses(self, *ids: str) -> dict[str, int]:
        """Nothing."""
        return {}


def _turns(transcript: Path, after: int) -> Iterator[tuple[int, Turn]]:
    """What people and the assistant said behind a line of a transcript, with the lines' numbers."""
    if not transcript.is_file():
        raise BadInput("the hook's JSON names no transcript that is there")
    with transcript.open("rb") as lines:
        for number, line in islice(enumerate(lines, 1), after, after + _MOST_LINES):
            turn = _turn(line)
            if turn is not None:
                yield number, turn


def _turn(line: bytes) -> Turn | None:
    """What a line of a transcript says, None if nobody says anything in it."""
    if len(line) > _MOST_BYTES:
        return None  # a picture or the like
    try:
        entry = json.loads(line)
        message = entry["message"]
        role, content = message["role"], message["content"]
    except (ValueError, KeyError, TypeError):
        return None  # a line of another sort, or one that is still being written
    if (
        role not in ("user", "assistant")
        or role != entry.get("type")
        or entry.get("isMeta")
        or entry.get("isSidechain")
    ):
        return None
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    text = "\n".join(text for text in texts if _is_said(text))[:_LONGEST]
    if not text:
        return None
    return Turn(speaker=role, text=text, at=_time(entry.get("timestamp")))


def _time(said: Any) -> datetime | None:
    try:
        return time_of(said) if isinstance(said, str) else None
    except BadInput:
        return None


def _is_said(text: object) -> TypeGuard[str]:
    return isinstance(text, str) and bool(text.strip()) and not _NOT_SAID.match(text)


def _read(data: bytes) -> dict[str, Any]:
    payload = json.loads(data)
    if not isinstance(payload, dict):
        raise BadInput("the hook's JSON is no object")
    return payload


def _log_to(root: Path) -> logging.Handler:
    """Log beside the accounts, or nowhere: a hook has nobody to tell."""
    from logging.handlers import RotatingFileHandler  # it brings much that no other command needs

    handler: logging.Handler = logging.NullHandler()
    try:
        root.mkdir(parents=True, exist_ok=True)
        handler = RotatingFileHandler(root / "hooks.log", maxBytes=500_000, backupCount=1, delay=True)
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
    except OSError:
        pass
    LOG.addHandler(handler)
    LOG.propagate = False
    return handler


class _OutOfTime(BaseException):
    """The time of a hook is up; what is durable stays, and the next hook goes on from there."""


def _give_up(*_: Any) -> None:
    raise _OutOfTime(f"it took longer than {SECONDS} seconds")
