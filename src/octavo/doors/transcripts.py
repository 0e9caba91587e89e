"""Transcripts of coding agents: what is said in one and not kept yet goes into the conversation's sandbox.

A prompt is kept as soon as it is said; the transcript brings what no event tells: texts between tool calls,
and whatever a hook that was killed did not keep.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, TypeGuard

from octavo.domain.memory import Turn
from octavo.doors import conversations
from octavo.doors.operations.values import time_of
from octavo.doors.settings import Settings
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput
from octavo.storage.stores.disk import Disk, replace_file
from octavo.storage.stores.names import folder_of

MOST_BYTES, LONGEST = 4_000_000, 20_000
_MOST_LINES, _MOST_HEARD, _TAIL_BYTES = 20_000, 200, 262_144
# What a client says in the user's name: commands, their output, reminders.
_NOT_SAID = re.compile(
    r"\s*(<(command|local-command|system-reminder|bash|task-notification)|\[Request interrupted)"
)

Say = Callable[[Sandbox, Turn], None]


class Kept:
    """How far the transcript of one conversation is kept, and what was heard of it before it was written.

    It stands in a file of its own, so that what was consolidated, and perhaps forgotten by a person, does
    not come back.
    """

    def __init__(self, settings: Settings, session: str) -> None:
        self._path = settings.local / ".hooks" / folder_of(settings.account) / session
        line, *heard = self._path.read_text().split() if self._path.exists() else ["0"]
        self.line, self._heard = int(line) if line.isdecimal() else 0, heard

    def hear(self, speaker: str, text: str) -> None:
        """Note what an event said: the transcript will say it again."""
        self._heard.append(_mark(speaker, text))
        self.save()

    def was_heard(self, turn: Turn) -> bool:
        """Whether an event said it already, asked once of each."""
        mark = _mark(turn.speaker, turn.text)
        is_known = mark in self._heard
        if is_known:
            self._heard.remove(mark)
        return is_known

    def forget_heard(self) -> None:
        """Forget what was heard, for the conversation is over: no trace of a text stays here."""
        if self._heard:
            self._heard.clear()
            self.save()

    def save(self) -> None:
        """Write it down."""
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        noted = [str(self.line), *self._heard[-_MOST_HEARD:]]
        replace_file(Disk(), self._path, "\n".join(noted).encode())


def keep(account: Account, name: str, kept: Kept, transcript: Path, say: Say) -> None:
    """Put what a transcript says and nobody heard yet into the conversation's sandbox."""
    new = list(_turns(transcript, kept.line))
    if not new:
        return
    with conversations.held(account, name) as sandbox:
        # Each turn carries its line: a hook that was killed before it could note how far it came left that.
        last = max([kept.line, *(int(t.data.get("line", 0)) for t in conversations.turns(sandbox.buffer))])
        for line, turn in new:
            if line > last and not kept.was_heard(turn):
                say(sandbox, turn)
            kept.line = line
        kept.save()


def last_answer(transcript: Path) -> str | None:
    """What the assistant says last in a transcript, which may be behind what a client tells."""
    with transcript.open("rb") as file:
        file.seek(max(0, transcript.stat().st_size - _TAIL_BYTES))
        turns = (_turn(line, 0) for line in reversed(file.read().splitlines()))
        return next((turn.text for turn in turns if turn and turn.speaker == "assistant"), None)


def _turns(transcript: Path, after: int) -> Iterator[tuple[int, Turn]]:
    with transcript.open("rb") as lines:
        for number, line in islice(enumerate(lines, 1), after, after + _MOST_LINES):
            turn = _turn(line, number)
            if turn is not None:
                yield number, turn


def _turn(line: bytes, number: int) -> Turn | None:
    """What a line of a transcript says, None if nobody says anything in it."""
    if len(line) > MOST_BYTES:
        return None  # a picture or the like
    try:
        entry = json.loads(line)
        role, content = entry["message"]["role"], entry["message"]["content"]
    except (ValueError, KeyError, TypeError):
        return None  # a line of another sort, or one that is still being written
    is_spoken = role in ("user", "assistant") and role == entry.get("type")
    if not is_spoken or entry.get("isMeta") or entry.get("isSidechain"):
        return None
    blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
    if not isinstance(blocks, list):
        return None
    texts = [b.get("text") for b in blocks if isinstance(b, dict) and b.get("type") == "text"]
    text = "\n".join(text for text in texts if is_said(text))[:LONGEST]
    return (
        Turn(speaker=role, text=text, at=_time(entry.get("timestamp")), data={"line": number})
        if text
        else None
    )


def is_said(text: object) -> TypeGuard[str]:
    """Whether somebody says a text, and not the client in their name."""
    return isinstance(text, str) and bool(text.strip()) and not _NOT_SAID.match(text)


def _time(said: Any) -> datetime | None:
    try:
        return time_of(said) if isinstance(said, str) else None
    except BadInput:
        return None


def _mark(speaker: str, text: str) -> str:
    return hashlib.sha256(f"{speaker}\n{text.strip()}".encode()).hexdigest()[:16]
