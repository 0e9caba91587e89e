"""The sandboxes of an account: which are open, and how one is taken up again."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import datetime, timedelta

from msgspec import Struct

from octavo.domain import buffer as entries
from octavo.domain.buffer import Opened, SessionBuffer
from octavo.domain.memory import check_id
from octavo.engine.sandbox import Sandbox, committed
from octavo.engine.spine import Spine
from octavo.errors import Damaged, NotFound, SandboxClosed
from octavo.storage import buffers
from octavo.storage.buffers import Buffer


class SandboxInfo(Struct, frozen=True, kw_only=True):
    """An open sandbox as listed; nothing removes it but its owner."""

    id: str
    name: str
    scope: str
    parent_version: int
    actor: str
    started_at: datetime
    age: timedelta
    lines: int
    is_sealed: bool


def absent(sandbox: str) -> NotFound:
    """What is said of a sandbox that is not there, and of one that the handle does not see."""
    return NotFound(f"there is no sandbox {sandbox!r}", hint="`octavo sandboxes` lists those that are open")


def must_be_seen(spine: Spine, sandbox: str, sees: Callable[[str], bool]) -> None:
    """Raise if a handle sees no sandbox of this id, before anything of it could tell that it is there."""
    scope = buffers.scope_of(spine.store, check_id(sandbox, "sandbox"))
    if scope is not None and not sees(scope):
        raise absent(sandbox)


def resume(spine: Spine, sandbox: str, hold: Callable[..., Sandbox], sees: Callable[[str], bool]) -> Sandbox:
    """Take up a sandbox again after a crash or a restart; a finished one comes back with its result."""
    must_be_seen(spine, sandbox, sees)
    try:
        held = Buffer.resume(spine.store, sandbox)
    except NotFound:
        result = committed(spine, sandbox)
        if result is None or not sees((ghost := _ghost(spine, sandbox)).scope):
            raise absent(sandbox) from None
        return hold(None, ghost, result)
    try:
        return _resumed(spine, held, hold)
    except BaseException:
        held.close()
        raise


def _resumed(spine: Spine, held: Buffer, hold: Callable[..., Sandbox]) -> Sandbox:
    found = held.read()
    if found.is_discarded:
        held.delete()
        raise SandboxClosed(f"sandbox {held.sandbox!r} was discarded")
    spine.head()
    done = max((last for _, last, _ in spine.state.commits_of(held.sandbox)), default=-1)
    if done >= found.last_line:
        spine.make_durable(spine.state.watermark()[0])
        held.delete()
        return hold(None, found.opened, committed(spine, held.sandbox))
    if found.is_sealed:
        held.append(entries.Reopened(at=spine.now()))
    return hold(held, found.opened, None)


def _ghost(spine: Spine, sandbox: str) -> Opened:
    """What the ledger still says of a sandbox whose buffer is gone."""
    version, _, _ = spine.state.commits_of(sandbox)[-1]
    commit = spine.state.commit(version)
    return Opened(
        sandbox=sandbox,
        name=sandbox,
        scope=commit.scope or "shared",
        parent=version - 1,
        actor=commit.actor,
        at=commit.at,
    )


def listed(spine: Spine, sees: Callable[[str], bool]) -> list[SandboxInfo]:
    """Open sandboxes that a handle sees, oldest first."""
    held: list[SessionBuffer] = []
    for name in buffers.names(spine.store):
        # One may close while we are listing, `check` names one that is damaged: the others are listed.
        with suppress(NotFound, Damaged):
            held.append(buffers.read(spine.store, name))
    return [
        SandboxInfo(
            id=b.opened.sandbox,
            name=b.opened.name,
            scope=b.opened.scope,
            parent_version=b.opened.parent,
            actor=b.opened.actor,
            started_at=b.opened.at,
            age=spine.now() - b.opened.at,
            lines=len(b.entries),
            is_sealed=b.is_sealed,
        )
        for b in sorted(held, key=lambda b: b.opened.at)
        if not b.is_discarded and sees(b.opened.scope)
    ]
