"""Hooks of coding agents: the brief goes in at the start and with each prompt, what was said is kept.

What was said is what the client sends: the prompt, and the assistant's last message when it has answered.
The command also reads the transcript that the client names, for what no event tells. A hook never breaks its
client: whatever goes wrong is a line in `hooks.log` beside the accounts, the answer is nothing and the exit
code 0, within a bounded time. It loads no model: words alone find what is needed. The running server answers
the same by HTTP, and reads no file.
"""

from __future__ import annotations

import json
import logging
import os
import re
import signal
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from octavo.domain.memory import Turn
from octavo.domain.privacy import tellable
from octavo.doors import conversations, transcripts
from octavo.doors.conversations import agent_settings
from octavo.doors.operations import Parameter
from octavo.doors.operations.performing import open_account
from octavo.doors.pool import Pool
from octavo.doors.rest_routes import add_route
from octavo.doors.rest_routes import answer as rest_answer
from octavo.doors.settings import Settings
from octavo.doors.transcripts import LONGEST, MOST_BYTES, Kept, is_said
from octavo.doors.visitors import Visitors
from octavo.engine import briefing
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, OctavoError, Refused

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
_SESSION = re.compile(r"[\w-][\w.-]{0,79}")
_PAYLOAD = (
    Parameter(name="event", summary=f"One of {', '.join(EVENTS)}."),
    Parameter(name="session_id", summary="Which conversation.", is_required=True),
    Parameter(name="prompt", summary="What the user says."),
    Parameter(name="last_assistant_message", summary="What the assistant said last."),
    Parameter(name="hook_event_name", summary="What the client calls the event."),
)


def answer(settings: Settings, event: str) -> None:
    """Read the client's JSON from standard input and answer in its form; never fails."""
    others = os.umask(
        0o077
    )  # the log, which comes to be when there is something to say, is its owner's alone
    handler = _log_to(settings.local)
    previous = signal.signal(signal.SIGALRM, _give_up)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    try:
        payload = json.loads(sys.stdin.buffer.read(MOST_BYTES))
        name = _conversation(event, payload)
        how = {"writes": True, "indexes": True, "begins": True, "words": True}
        with open_account(agent_settings(settings, "hook"), **how) as account:
            kept = Kept(settings, name.removeprefix(conversations.HOOK))
            reply = respond(account, event, payload, name, kept=kept)
        if event == "stop":
            kept.forget_heard()
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


def add(app: Any, pool: Pool, visitors: Visitors) -> None:
    """Let the running server answer hooks at /hooks/<event>, as whom the token says."""

    def hook(request: Any, who: Settings, payload: dict[str, Any]) -> Any:
        event = payload.pop("event")
        name = _conversation(event, payload)
        with pool.account(agent_settings(who, "hook"), begins=True) as account:
            # Clients tell no server that a conversation starts; its first prompt does.
            is_first = not conversations.is_open(account, name)
            return rest_answer(respond(account, event, payload, name, is_first=is_first) or {})

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


def respond(
    account: Account,
    event: str,
    payload: dict[str, Any],
    name: str,
    *,
    is_first: bool = False,
    kept: Kept | None = None,
) -> dict[str, Any] | None:
    """What goes into the client's context, in its form; what the event says is kept in the conversation.

    With a place to note what was `kept`, the transcript is read as well.
    """
    speaker, said = "user", payload.get("prompt")
    text = ""
    if event == "session-start" or is_first:
        conversations.end_idle(account)
    if event == "session-start":
        text = _start(account)
    elif event == "prompt":
        text = _relevant(account, said[:_QUERY] if is_said(said) else None, is_first=is_first)
    else:
        speaker, said = "assistant", payload.get("last_assistant_message")
    if kept is not None and event in ("pre-compact", "stop") and (path := _transcript(payload)):
        transcripts.keep(account, name, kept, path, _say)
        if is_said(said) and (transcripts.last_answer(path) or "").strip() == said.strip():
            said = None  # it stands there already
    is_over = event == "stop" and not conversations.is_open(account, name)
    if event != "session-start" and not is_over and is_said(said):
        is_new = _keep(account, name, speaker, said[:LONGEST])
        if is_new and kept is not None:
            kept.hear(speaker, said[:LONGEST])
    if event == "stop":
        conversations.end(account, name)
    if not text:
        return None
    called = payload.get("hook_event_name", EVENTS[event])
    return {"hookSpecificOutput": {"hookEventName": called, "additionalContext": text}}


def _conversation(event: str, payload: Any) -> str:
    """The name of the conversation that an event is of."""
    if event not in EVENTS:
        raise BadInput(f"hook event {event[:40]!r} is unknown", hint=f"use one of {', '.join(EVENTS)}")
    session = payload.get("session_id") if isinstance(payload, dict) else None
    if not isinstance(session, str) or not _SESSION.fullmatch(session):
        raise BadInput("the hook's JSON has no usable session_id")
    return conversations.HOOK + session


def _start(account: Account) -> str:
    """What stands and is known of the user, and the newest of what was said."""
    newest = account.memories(kind=("episode", "core"), newest=True, limit=_NEWEST)
    return briefing.brief(account, budget=_BUDGET, newest=newest).text


def _relevant(account: Account, query: str | None, *, is_first: bool) -> str:
    """What is relevant to a prompt; what stands was told at the start, unless this is it."""
    told: Any = SimpleNamespace(
        memories=lambda **_: [],
        quotes=lambda **_: [],
        orders=lambda **_: [],
        uses=lambda *_: {},
        grouped=account.grouped,
    )
    reader = account if is_first else told
    return briefing.brief(reader, query, k=_RELEVANT, budget=_BUDGET, recall=account.recall).text


def _keep(account: Account, name: str, speaker: str, text: str) -> bool:
    """Keep what was said, once: a client says an answer with every event until the next one."""
    with conversations.held(account, name) as sandbox:
        said = conversations.turns(sandbox.buffer)
        is_new = not said or (said[-1].speaker, said[-1].text.strip()) != (speaker, text.strip())
        if is_new:
            _say(sandbox, Turn(speaker=speaker, text=text))
        return is_new


def _say(sandbox: Sandbox, turn: Turn) -> None:
    try:
        sandbox.turn(turn.speaker, turn.text, at=turn.at, data=turn.data or None)
    except Refused as refusal:  # the client is briefed all the same
        LOG.warning("turn refused speaker=%s error=%s", turn.speaker, type(refusal).__name__)


def _transcript(payload: dict[str, Any]) -> Path | None:
    """The transcript that a client names, if there is one; not every client keeps any."""
    said = payload.get("transcript_path")
    try:
        path = Path(said) if isinstance(said, str) and said else None
        return path if path and path.is_file() else None
    except (OSError, ValueError):  # no name of a file at all
        return None


def _log_to(root: Path) -> logging.Handler:
    """Log beside the accounts, or nowhere: a hook has nobody to tell."""
    from logging.handlers import RotatingFileHandler  # it brings much that no other command needs

    handler: logging.Handler = logging.NullHandler()
    try:
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
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
