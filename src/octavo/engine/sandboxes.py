"""The sandboxes of an account: opened, taken up again, and listed."""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime, timedelta
from typing import Annotated

from msgspec import Struct

from octavo.domain import buffer as entries
from octavo.domain import gate, screening
from octavo.domain.buffer import Opened, SessionBuffer
from octavo.domain.memory import SHARED, check_id, check_time
from octavo.domain.verdicts import Consolidation
from octavo.engine import compress
from octavo.engine.handle import Handle
from octavo.engine.sandbox import Sandbox, committed
from octavo.engine.surface import public
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


@public
class Sandboxes(Handle):
    """The acts on an account's conversations."""

    def sandbox(
        self,
        name: Annotated[str | None, "What to call it (the time if not said)."] = None,
        *,
        scope: str = SHARED,
        started_at: Annotated[datetime | None, "When the conversation began (now if not said)."] = None,
        strict: Annotated[bool, "Refuse to consolidate if the account has moved on."] = False,
        id: str | None = None,  # noqa: A002  # the glossary's word
    ) -> Sandbox:
        """Open a sandbox on the newest version; it is durable at once. An import may bring its id."""
        self._spine.must_write()
        writer = self._writer(scope)
        started = self._spine.now() if started_at is None else check_time(started_at, "started_at")
        view = self._spine.head()
        if id is not None:
            writer.must_be_allowed(check_id(id, "sandbox"), what="sandbox")
            if self._spine.state.commits_of(id):
                raise SandboxClosed(f"sandbox {id!r} was consolidated already")
        opened = Opened(
            sandbox=f"sandbox_{self._spine.new_id()}" if id is None else id,
            name=gate.without(view, name or f"Sandbox {started:%H:%M}", writer.scope, self._spine.keyed),
            scope=writer.scope,
            parent=view.version,
            actor=self.actor,
            at=started,
            strict=strict,
        )
        opened = screening.screened(opened, self.policy.privacy)
        return self._hold(Buffer.create(self._spine.store, opened), opened)

    def resume(self, sandbox: str) -> Sandbox:
        """Take up a sandbox again after a crash or a restart; a finished one comes back with its result.

        SandboxBusy while another owner has it.
        """
        self._spine.must_write()
        self._must_see_sandbox(sandbox)
        try:
            buffer = Buffer.resume(self._spine.store, sandbox)
        except NotFound:
            return self._finished(sandbox)
        try:
            return self._resumed(buffer)
        except BaseException:
            buffer.close()
            raise

    def sandboxes(self) -> list[SandboxInfo]:
        """List the open sandboxes with their age; nothing removes them but their owners."""
        held: list[SessionBuffer] = []
        for name in buffers.names(self._spine.store):
            # One may close while we are listing, `check` names one that is damaged: the others are listed.
            with suppress(NotFound, Damaged):
                held.append(buffers.read(self._spine.store, name))
        return [
            SandboxInfo(
                id=b.opened.sandbox,
                name=b.opened.name,
                scope=b.opened.scope,
                parent_version=b.opened.parent,
                actor=b.opened.actor,
                started_at=b.opened.at,
                age=self._spine.now() - b.opened.at,
                lines=len(b.entries),
                is_sealed=b.is_sealed,
            )
            for b in sorted(held, key=lambda b: b.opened.at)
            if not b.is_discarded and self.sees(b.opened.scope)
        ]

    def buffer(self, sandbox: str) -> SessionBuffer:
        """A sandbox's buffer as it stands, read without owning it."""
        self._must_see_sandbox(sandbox)
        return buffers.read(self._spine.store, sandbox)

    def _must_see_sandbox(self, sandbox: str) -> None:
        """Raise if a handle sees no sandbox of this id, before anything of it could tell that it is there."""
        scope = buffers.scope_of(self._spine.store, check_id(sandbox, "sandbox"))
        if scope is not None and not self.sees(scope):
            raise _absent(sandbox)

    def _finished(self, sandbox: str) -> Sandbox:
        """A sandbox whose buffer is gone: what the ledger still says of it."""
        result = committed(self._spine, sandbox)
        if result is None:
            raise _absent(sandbox) from None
        commit = self._spine.state.commit(result.version)
        scope = commit.scope or SHARED
        if not self.sees(scope):
            raise _absent(sandbox) from None
        parent = result.version - 1
        opened = Opened(
            sandbox=sandbox, name=sandbox, scope=scope, parent=parent, actor=commit.actor, at=commit.at
        )
        return self._hold(None, opened, result)

    def _resumed(self, buffer: Buffer) -> Sandbox:
        found = buffer.read()
        if found.is_discarded:
            buffer.delete()
            raise SandboxClosed(f"sandbox {buffer.sandbox!r} was discarded")
        self._spine.head()
        done = max((last for _, last, _ in self._spine.state.commits_of(buffer.sandbox)), default=-1)
        if done >= found.last_line:
            self._spine.make_durable(self._spine.state.watermark()[0])
            buffer.delete()
            return self._hold(None, found.opened, committed(self._spine, buffer.sandbox))
        if found.is_sealed:
            buffer.append(entries.Reopened(at=self._spine.now()))
        return self._hold(buffer, found.opened)

    def _hold(self, buffer: Buffer | None, opened: Opened, result: Consolidation | None = None) -> Sandbox:
        """A sandbox with what it has of this handle: actor, recall, and what happens when it closes."""
        return Sandbox(self._writer(None), buffer, opened, result, self._closed, self._recall)

    def _closed(self, result: Consolidation) -> None:
        """A session has closed: make what became due, when the policy says."""
        policy = self.policy.compression
        is_due = result.session is not None and result.session % policy.levels[0].radix == 0
        if is_due and policy.mode == "immediate":
            list(compress.compress(self._spine, self._summariser))
        self._worker.wake()


def _absent(sandbox: str) -> NotFound:
    """What is said of a sandbox that is not there, and of one that the handle does not see."""
    return NotFound(f"there is no sandbox {sandbox!r}", hint="`octavo sandboxes` lists those that are open")
