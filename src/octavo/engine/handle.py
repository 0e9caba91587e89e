"""What every act on an open account needs: who acts, in which scope, its sandboxes, index and worker."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from types import TracebackType
from typing import Annotated, Any, Self

from msgspec import Struct

from octavo.domain import buffer as entries
from octavo.domain import gate, screening
from octavo.domain.buffer import Opened, SessionBuffer
from octavo.domain.memory import SHARED, check_actor, check_id, check_scope, check_time, is_human
from octavo.domain.ports import Formats
from octavo.domain.rules import Candidate
from octavo.domain.verdicts import Consolidation, Guard, Verdict
from octavo.engine import (
    assemble,
    boosts,
    compress,
    embedding,
    explain,
    indexing,
    judging,
    mirror,
    recall,
    writing,
)
from octavo.engine.explain import Explainer
from octavo.engine.health import ChainProof
from octavo.engine.indexing import Indexing
from octavo.engine.reading import Reader
from octavo.engine.recall import Recaller
from octavo.engine.sandbox import Sandbox, committed
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.engine.worker import Worker
from octavo.engine.writing import Writer, commit_writes
from octavo.errors import Damaged, HumanOnly, LedgerTruncated, NotFound, OutOfScope, SandboxClosed
from octavo.models.embedders import Embedder
from octavo.models.rerank import Reranker, TokenReranker
from octavo.models.summarisers import Summariser
from octavo.storage import buffers
from octavo.storage.buffers import Buffer

_TOGETHER_SECONDS = 0.25  # what is written within it is indexed together
_CORES = 8
_ENCODED = 64  # passages that are encoded for a second look before somebody may close the account


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
class Handle(Reader):
    """An account held by one actor, within one scope or (scope=None) all of them."""

    def __init__(
        self,
        spine: Spine,
        *,
        actor: str,
        scope: str | None,
        embedder: Embedder | None = None,
        reranker: Callable[[], Reranker | None] | None = None,
        summariser: Summariser | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._guard = guard
        self._proof = ChainProof(spine)
        self._worker = Worker(
            self._work, attempts=spine.policy.compression.attempts, delay_seconds=_TOGETHER_SECONDS
        )
        self._embedder, self._reranker = embedder, reranker
        self._made: tuple[Indexing, Recaller] | None = None
        self._making = threading.Lock()
        super().__init__(spine, scope, self._recall)
        if embedder is not None and not spine.read_only:
            spine.dimensions[embedder.name] = embedder.dimension
        self.actor = check_actor(actor)
        self.name = spine.identity.account
        self.policy = spine.policy
        self.formats: Formats | None = None
        self._given_summariser = summariser
        self._compressed = 0  # up to which version every core and sphere that was due is there
        self._judged = spine.state.watermark()[0] if summariser else 0

    def __repr__(self) -> str:
        scope = "" if self.scope is None else f", scope={self.scope!r}"
        return f"Account({self.name!r}, actor={self.actor!r}{scope})"

    @property
    def explained(self) -> Explainer:
        """What assemblies are, why they were activated or merged, and where they come from."""
        return explain.Explainer(self._spine, self, self._indexing)

    def sandbox(
        self,
        name: Annotated[str | None, "What to call it (the time if not said)."] = None,
        *,
        scope: str | None = None,
        started_at: Annotated[datetime | None, "When the conversation began (now if not said)."] = None,
        strict: Annotated[bool, "Refuse to consolidate if the account has moved on."] = False,
        id: str | None = None,  # noqa: A002  # the glossary's word
    ) -> Sandbox:
        """Open a sandbox on the newest version; it is durable at once. An import may bring its id.

        What a bound handle says in it is in its own scope, unless `scope` says `shared`.
        """
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

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the background work that is under way; False if the time ran out."""
        return self._worker.wait(seconds)

    def close(self) -> None:
        """Finish background work and let go of the account."""
        self._worker.stop()
        self._spine.state.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _write(self, writes: Sequence[Candidate | Verdict], cause: str, **more: Any) -> list[Verdict]:
        written = commit_writes(self._writer(None), writes, cause=cause, scope=self.scope, **more)
        self._worker.wake()
        return written

    def _writer(self, scope: str | None) -> Writer:
        name = check_scope(scope or self.scope or SHARED)
        self._must_see(name)
        visible = None if self.scope is None else frozenset({SHARED, self.scope})
        return writing.Writer(
            spine=self._spine,
            actor=self.actor,
            scope=name,
            visible=visible,
            guard=self._guard,
            may_name=self.scope is None,
        )

    @property
    def _indexing(self) -> Indexing:
        return self._recalling()[0]

    def _recall(self) -> Recaller:
        self._worker.asked()
        return self._recalling()[1]

    def _recalling(self) -> tuple[Indexing, Recaller]:
        """What recall needs, made when it is first needed: who lists memories never loads it."""
        with self._making:
            if self._made is None:
                again = self._reranker() if self._reranker else None
                tokens, scorer = (again, None) if isinstance(again, TokenReranker) else (None, again)
                made = indexing.Indexing(self._spine, self._spine.index, self._embedder, tokens)
                lifting = boosts.assemblies(self._spine, made, self._worker.wake)
                asked = recall.Recaller(self._spine, made, self._worker.wake, scorer, [lifting])
                self._made = made, asked
            return self._made

    @property
    def _summariser(self) -> Summariser:
        """The summariser asked for, or the statistical one."""
        return self._given_summariser or Summariser(policy=self.policy.compression)

    def _work(self) -> None:
        """What the worker does when it is woken; of an account that was deleted nothing is left to do."""
        try:
            self._follow()
        except (LedgerTruncated, FileNotFoundError):
            if self._spine.store.read("account.json", first=1) is None and not self._spine.ledger.exists(1):
                return
            raise

    def _follow(self) -> None:
        """What a new version asks for: due cores and spheres, and what recall is waiting for.

        Words come first, and again between: what they lack every question reads itself.
        """
        self._indexing.add_words()
        if self.policy.compression.mode == "background":
            head, since = self._spine.state.watermark()[0], self._compressed
            for made, _ in enumerate(compress.compress(self._spine, self._summariser, since), start=1):
                self._worker.must_stop()  # not before all are made
                if made % _CORES == 0:
                    self._indexing.add_words()
            self._compressed = head
            if (model := self._given_summariser) and model.endpoint:
                self._judged = judging.judge(self._spine, model, self._judged)
            self._indexing.add_words()
        if self.policy.mirror.mode == "after_commit":
            for tree in mirror.listed(self._spine) or [mirror.Mirror(self._spine)]:
                tree.follow()
        self._proof.go_on(2, small=True)  # faster than commits come, or it never goes round
        if not self._indexing.is_used:
            return
        # A batch at a time: who closes the account does not wait for all of them.
        index, batch = self._indexing, embedding.BATCH
        for add, limit in (
            (index.add_vectors, batch),
            (index.add_orders, batch),
            (index.add_tokens, _ENCODED),
        ):
            while not self._worker.must_stop() and add(limit=limit):
                pass
        self._group()

    def _group(self) -> None:
        """Bring composites up to the vectors, and group what gathered meanwhile, as the policy says."""
        least = {"background": assemble.GATHERED, "immediate": 1}.get(self.policy.assemblies.mode)
        if not self._worker.must_stop():
            self._indexing.compose()
        if least is not None:
            assemble.assemble(self._spine, self._indexing, least, self._worker.must_stop)

    def _must_see(self, scope: str) -> None:
        if not self.sees(check_scope(scope)):
            raise OutOfScope(f"a handle bound to {self.scope!r} tried to write to scope {scope!r}")

    def _must_be_owner(self, what: str) -> None:
        if self.scope is not None:
            raise OutOfScope(f"a handle bound to {self.scope!r} tried to {what} the whole account")

    def _must_be_human(self, what: str) -> None:
        if not is_human(self.actor):
            raise HumanOnly(f"{self.actor} tried to {what}")

    def _number(self, when: int | datetime) -> int:
        head = self._spine.head().version
        if isinstance(when, datetime):
            return self._spine.state.version_at(check_time(when))
        if not 0 <= when <= head:
            raise NotFound(
                f"there is no version {when!r}; the account is at {head}",
                hint="`octavo versions` lists those there are",
            )
        return when

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
