"""Conversations: what a client says is a sandbox's turns, and part of the memory when it is over."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from octavo.domain.buffer import SessionBuffer, Spoke
from octavo.domain.memory import SHARED, Turn
from octavo.domain.verdicts import Consolidation
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.engine.sandboxes import SandboxInfo
from octavo.errors import NotFound, SandboxBusy, SandboxClosed

IDLE = timedelta(minutes=10)  # a client that was killed cannot say that its conversation is over
HOOK, MCP = "hook conversation ", "mcp conversation "  # how the names of their sandboxes begin


@contextmanager
def held(account: Account, name: str) -> Iterator[Sandbox]:
    """The conversation's sandbox, taken up again or begun; let go afterwards, for the next call."""
    opened = _open(account, name)
    scope = account.scope or SHARED
    sandbox = account.sandbox(name, scope=scope) if opened is None else account.resume(opened)
    try:
        yield sandbox
    finally:
        sandbox.close()


def turns(buffer: SessionBuffer) -> list[Turn]:
    """What was said so far, in order."""
    return [entry.turn for entry in buffer.entries if isinstance(entry, Spoke)]


def end(account: Account, name: str) -> Consolidation | None:
    """Make a conversation part of the memory; None if none of that name is open."""
    opened = _open(account, name)
    if opened is None:
        return None
    sandbox = account.resume(opened)
    try:
        return sandbox.consolidate()
    finally:
        sandbox.close()


def end_those(account: Account, is_over: Callable[[SandboxInfo, datetime], bool]) -> list[str]:
    """End those of which `is_over` says so, told when the last word was said; returns their names."""
    ended = []
    for info in account.sandboxes():
        if not info.name.startswith((HOOK, MCP)):
            continue
        try:
            said = turns(account.buffer(info.id))
            latest = max((turn.at for turn in said if turn.at), default=info.started_at)
            if is_over(info, max(latest, info.started_at)):
                end(account, info.name)
                ended.append(info.name)
        except (NotFound, SandboxBusy, SandboxClosed):
            continue  # somebody else is at it, or was first
    return ended


def end_idle(account: Account, *, now: datetime | None = None) -> list[str]:
    """End the conversations in which nothing was said for a while; returns their names."""
    moment = now or datetime.now(UTC)
    return end_those(account, lambda _, latest: moment - latest > IDLE)


def _open(account: Account, name: str) -> str | None:
    return next((info.id for info in account.sandboxes() if info.name == name), None)
