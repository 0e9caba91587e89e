"""Conversations: what a client says is a sandbox's turns, and part of the memory when it is over."""

from __future__ import annotations

import hashlib
import re
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from datetime import UTC, datetime, timedelta

from msgspec.structs import replace

from octavo.domain.buffer import SessionBuffer, Spoke
from octavo.domain.memory import SHARED, Turn, is_human
from octavo.domain.verdicts import Consolidation
from octavo.doors.settings import Settings
from octavo.engine.account import Account
from octavo.engine.handle import SandboxInfo
from octavo.engine.sandbox import Sandbox
from octavo.errors import NotFound, SandboxBusy, SandboxClosed

IDLE = timedelta(minutes=10)  # a client that was killed cannot say that its conversation is over
HOOK, MCP = "hook conversation ", "mcp conversation "  # how the names of their sandboxes begin
_WAIT_SECONDS, _PAUSE_SECONDS = 10.0, 0.01


def agent_settings(settings: Settings, client: str) -> Settings:
    """The settings of an agent's handle: bound to a scope, and never a person's."""
    name = re.sub(r"[^\w.-]+", "-", client).strip("-.")[:60] or "client"
    actor = f"agent:{name}" if is_human(settings.actor) else settings.actor
    return replace(settings, actor=actor, scope=settings.scope or SHARED)


@contextmanager
def taken_up(account: Account, id_: str) -> Iterator[Sandbox]:
    """An open sandbox, let go afterwards; who comes while another client is in it waits for its turn."""
    deadline = time.monotonic() + _WAIT_SECONDS
    while True:
        try:
            sandbox = account.resume(id_)
            break
        except SandboxBusy:
            if time.monotonic() > deadline:
                raise
            time.sleep(_PAUSE_SECONDS)
    with closing(sandbox):
        yield sandbox


@contextmanager
def held(account: Account, name: str) -> Iterator[Sandbox]:
    """The conversation's sandbox, taken up again or begun; let go afterwards, for the next call."""
    open_ = open_ids(account, name)
    begun = None if open_ else _begun(account, name)
    with (
        taken_up(account, (open_ or open_ids(account, name))[0])
        if begun is None
        else closing(begun) as sandbox
    ):
        yield sandbox


def _begun(account: Account, name: str) -> Sandbox | None:
    """A conversation's new sandbox, None if another client found it and took it up before we had it."""
    with suppress(SandboxBusy):
        begun = account.sandbox(name, scope=account.scope or SHARED)
        if begun.name == name:
            return begun
        begun.discard()
        return account.sandbox(_hidden(name), scope=account.scope or SHARED)
    return None


def open_ids(account: Account, name: str) -> list[str]:
    """The sandboxes of a conversation that has begun and is not over; two calls at once may begin two."""
    return [info.id for info in account.sandboxes() if info.name in (name, _hidden(name))]


def _hidden(name: str) -> str:
    """What a conversation is called whose name is masked, as a number is that could be a card's."""
    kind, of, said = name.partition(" conversation ")
    return f"{kind}{of}{hashlib.sha256(said.encode()).hexdigest()[:16]}"


def turns(buffer: SessionBuffer) -> list[Turn]:
    """What was said so far, in order."""
    return [entry.turn for entry in buffer.entries if isinstance(entry, Spoke)]


def end(account: Account, name: str) -> Consolidation | None:
    """Make a conversation part of the memory; None if none of that name is open."""
    done = None
    for id_ in open_ids(account, name):
        with taken_up(account, id_) as sandbox:
            done = sandbox.consolidate()
    return done


def end_begun(account: Account, since: datetime) -> None:
    """End the conversations that an MCP client of this actor has begun since."""

    def is_ours(info: SandboxInfo, _: list[datetime]) -> bool:
        is_begun = info.actor == account.actor and info.started_at >= since
        return is_begun and info.name.startswith(MCP)

    _end(account, is_ours)


def end_idle(account: Account, *, now: datetime | None = None) -> list[str]:
    """End the conversations in which nothing was said for a while; returns their names."""
    since = (now or datetime.now(UTC)) - IDLE
    return _end(account, lambda info, said: max([info.started_at, *said]) < since)


def _end(account: Account, is_over: Callable[[SandboxInfo, list[datetime]], bool]) -> list[str]:
    """End those that are over, told when something was said in each."""
    ended = []
    for info in account.sandboxes():
        with suppress(NotFound, SandboxBusy, SandboxClosed):  # somebody else is at it, or was first
            said = turns(account.buffer(info.id)) if info.name.startswith((HOOK, MCP)) else None
            if said is not None and is_over(info, [turn.at for turn in said if turn.at]):
                end(account, info.name)
                ended.append(info.name)
    return ended
