"""An open account: everything that can be asked of it and done to it, from Python."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from octavo.domain.compression import position
from octavo.domain.memory import (
    SHARED,
    Kind,
    Memory,
    Proposal,
    Refusal,
    Rejection,
    check_actor,
    check_id,
    check_scope,
    check_time,
    check_words,
    is_human,
)
from octavo.engine.reading import Reader, Snapshot
from octavo.engine.spine import Spine
from octavo.engine.worker import Worker
from octavo.errors import BadInput, HumanOnly, NotFound, OutOfScope, SandboxClosed, Unavailable
from octavo.later import Later
from octavo.storage.state_log import Commit

if TYPE_CHECKING:
    from octavo.domain import buffer as entries
    from octavo.domain import verdicts
    from octavo.domain.buffer import SessionBuffer
    from octavo.domain.ports import Formats
    from octavo.domain.review import Doubt, Pair
    from octavo.domain.verdicts import Consolidation, Verdict
    from octavo.engine import (
        attachments,
        bulk,
        compress,
        counts,
        differences,
        embedding,
        health,
        indexing,
        recall,
        redaction,
        restoring,
        review,
        settling,
        writing,
    )
    from octavo.engine import follower as following
    from octavo.engine import sandbox as sandboxing
    from octavo.engine import upkeep as upkeeping
    from octavo.engine.counts import Session
    from octavo.engine.differences import Diff
    from octavo.engine.follower import Follower
    from octavo.engine.freshness import Freshness, Lag
    from octavo.engine.indexing import Indexing
    from octavo.engine.recall import Recaller
    from octavo.engine.sandbox import Afterwards, Sandbox, SandboxInfo
    from octavo.engine.settling import Guard, Wanted
    from octavo.engine.upkeep import Upkeep
    from octavo.engine.writing import Writer
    from octavo.models import summarisers
    from octavo.models.embedders import Embedder
    from octavo.models.rerank import Reranker
    from octavo.models.summarisers import Summariser
    from octavo.storage import buffers, refusals
else:
    # One open account does everything; one call, or one command, needs a few of these rooms.
    entries = Later("octavo.domain.buffer")
    verdicts = Later("octavo.domain.verdicts")
    attachments = Later("octavo.engine.attachments")
    bulk = Later("octavo.engine.bulk")
    compress = Later("octavo.engine.compress")
    counts = Later("octavo.engine.counts")
    differences = Later("octavo.engine.differences")
    embedding = Later("octavo.engine.embedding")
    following = Later("octavo.engine.follower")
    health = Later("octavo.engine.health")
    indexing = Later("octavo.engine.indexing")
    recall = Later("octavo.engine.recall")
    redaction = Later("octavo.engine.redaction")
    restoring = Later("octavo.engine.restoring")
    review = Later("octavo.engine.review")
    sandboxing = Later("octavo.engine.sandbox")
    settling = Later("octavo.engine.settling")
    upkeeping = Later("octavo.engine.upkeep")
    writing = Later("octavo.engine.writing")
    summarisers = Later("octavo.models.summarisers")
    buffers = Later("octavo.storage.buffers")
    refusals = Later("octavo.storage.refusals")


class Account(Reader):
    """A handle on one account, for one actor, within one scope or (scope=None) all of them."""

    def __init__(
        self,
        spine: Spine,
        *,
        actor: str,
        scope: str | None,
        embedder: Callable[[], Embedder | None] | None = None,
        reranker: Reranker | None = None,
        summariser: Summariser | None = None,
        guard: Guard | None = None,
    ) -> None:
        self._guard = guard
        self._follower: Follower | None = None
        self._worker = Worker(self._work, attempts=spine.policy.compression.attempts)
        self._embedder, self._reranker = embedder, reranker
        self._made: tuple[Indexing, Recaller] | None = None
        self._making = threading.Lock()
        super().__init__(spine, scope, self._recall)
        own = embedder() if embedder and not spine.read_only else None
        if own is not None:
            spine.dimensions[own.name] = own.dimension
        self.actor = check_actor(actor)
        self.name = spine.identity.account
        self.policy = spine.policy
        self.formats: Formats | None = None
        self._given_summariser = summariser

    def sandbox(
        self,
        name: str | None = None,
        *,
        scope: str = SHARED,
        started_at: datetime | None = None,
        strict: bool = False,
        id: str | None = None,  # noqa: A002  # the glossary's word
    ) -> Sandbox:
        """Open a sandbox on the newest version; it is durable at once. An import may bring its id."""
        self._spine.must_write()
        self._must_see(scope)
        started = self._spine.now() if started_at is None else check_time(started_at, "started_at")
        opened = entries.Opened(
            sandbox=f"sandbox_{self._spine.new_id()}" if id is None else self._unused(id),
            name=check_words(name or f"Sandbox {started:%H:%M}", "name"),
            scope=check_scope(scope),
            parent=self._spine.head().version,
            actor=self.actor,
            at=started,
            strict=strict,
        )
        buffer = buffers.Buffer.create(self._spine.store, opened)
        return sandboxing.Sandbox(self._spine, buffer, opened, None, self._afterwards)

    def sandboxes(self) -> list[SandboxInfo]:
        """Open sandboxes, oldest first; nothing removes them but their owners."""
        found = []
        for name in buffers.names(self._spine.store):
            try:
                buffer = buffers.read(self._spine.store, name)
            except NotFound:
                continue  # its owner closed it while we were listing
            if self.sees(buffer.opened.scope):
                found.append(buffer)
        return sandboxing.listed(found, self._spine.now())

    def buffer(self, sandbox: str) -> SessionBuffer:
        """A sandbox's buffer as it stands, read without owning it."""
        found = buffers.read(self._spine.store, check_id(sandbox, "sandbox"))
        if not self.sees(found.opened.scope):
            raise OutOfScope(f"sandbox {sandbox!r} belongs to scope {found.opened.scope!r}")
        return found

    def resume(self, sandbox: str) -> Sandbox:
        """Take up a sandbox again; SandboxBusy while another owner has it."""
        self._spine.must_write()
        found = sandboxing.resume(self._spine, sandbox, self._afterwards)
        if not self.sees(str(found.scope)):
            found.close()
            raise OutOfScope(f"sandbox {sandbox!r} belongs to scope {found.scope!r}")
        return found

    def bound(self, scope: str) -> Account:
        """The same account for the same actor, within one scope and for words alone."""
        self._must_see(scope)
        return Account(self._spine, actor=self.actor, scope=scope)

    def at(self, when: int | datetime) -> Snapshot:
        """The account as it was at a version or a time, for the same reads."""
        return Snapshot(self._spine, self.scope, self._number(when), self._recaller)

    def versions(self, *, after: int = 0, limit: int | None = None) -> list[Commit]:
        """The versions in order: when, why, by whom, how many changes."""
        self._spine.head()
        return self._spine.state.commits(after=after, limit=-1 if limit is None else limit)

    def diff(self, before: int | datetime, after: int | datetime | None = None) -> Diff:
        """What differs between two versions (the second is the head if not said)."""
        last = self.version if after is None else self._number(after)
        return differences.difference(self._spine, self, self._number(before), last)

    def sessions(self, *, scope: str | None = None) -> list[Session]:
        """Closed sessions in the order they closed."""
        return [
            counts.Session(
                ordinal=c.session,
                scope=c.scope or SHARED,
                sandbox=c.sandbox or "",
                version=c.version,
                at=c.at,
                position=position(c.session, self.policy.compression),
            )
            for c in self.versions()
            if c.session is not None and self.sees(c.scope or SHARED) and scope in (None, c.scope)
        ]

    def remember(
        self, text: str, *, scope: str | None = None, key: str | None = None, **fields: Any
    ) -> Verdict:
        """Write one memory outside a sandbox: its own commit, a final verdict.

        `key` makes a retry safe: the same key never writes twice.
        """
        return self.remember_many([{"text": text, "scope": scope, "key": key, **fields}])[0]

    def remember_many(self, items: Iterable[Mapping[str, Any]]) -> list[Verdict]:
        """Write several memories in one commit; a verdict for each, in order."""
        self._spine.must_write()
        wanted: list[Wanted] = []
        for item in items:
            given = dict(item)
            writer = self._writer(given.pop("scope", None))
            key = given.pop("key", None)
            if key is not None:
                given["id"] = f"key_{self._spine.keyed(f'key {key}')[:24]}"
            wrote = writer.candidate(given.pop("text", ""), **given)
            outcome = writer.checked(wrote)
            wanted.append(outcome if isinstance(outcome, verdicts.Verdict) else (writer, outcome))
        return self._write(wanted, "remember")

    def must_fit(self, item: Mapping[str, Any]) -> None:
        """Raise BadInput if an item of `remember_many` could not even be a candidate."""
        given = dict(item)
        self._writer(given.pop("scope", None)).candidate(given.pop("text", ""), **given)

    def write_many(
        self,
        wanted: Iterable[bulk.Finished],
        *,
        cause: str,
        base: int | None = None,
        skip: frozenset[str] = frozenset(),
        whole: bool = False,
        closes: str | None = None,
        scope: str | None = None,
    ) -> list[Verdict]:
        """Write finished candidates in one commit, a verdict for each; imports and documents come this way.

        A memory without an id gets one. `base` is the version the caller has seen; `whole` raises if one
        candidate is refused, and nothing is written; `skip` names checks that do not apply; `closes` names
        the session, held elsewhere, that the candidates are; all of them are written to `scope`.
        """
        self._spine.must_write()
        found = bulk.write(
            self._spine,
            self._writer(scope),
            wanted,
            cause=cause,
            scope=scope or self.scope,
            base=base,
            skip=skip,
            whole=whole,
            closes=None if closes is None else check_id(closes, "session"),
        )
        if self._follower is not None:
            self._follower.wrote(len(found))
        return found

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Index in a process of its own what a long import commits by `write_many`; leaving waits for it."""
        with following.Follower(self._spine) as follower:
            self._follower = follower
            try:
                yield
            finally:
                self._follower = None

    def adopt(self, id_: str, given: Mapping[str, Any]) -> Memory | None:
        """Take in a core or sphere made elsewhere of the sessions that have its place here (import)."""
        self._must_be_human("bring in a summary that was made elsewhere")
        self._must_see(id_.partition("@")[2] or SHARED)
        return bulk.adopt(self._spine, self.actor, check_id(id_), writing.plain_json(given))

    def revise(self, id_: str, **changes: Any) -> Verdict:
        """Give a memory a new revision with some fields changed."""
        old = self.get(id_)
        writer = self._writer(old.scope if old else None)
        outcome = writer.revision(old, id_, changes)
        if isinstance(outcome, verdicts.Verdict):
            return outcome
        return self._write([(writer, outcome)], "revise")[0]

    def forget(self, *ids: str) -> list[Verdict]:
        """End memories by tombstones; their history stays."""
        if not ids:
            raise BadInput("forget what?", hint="name at least one memory's id")
        wanted: list[Wanted] = []
        for id_ in ids:
            memory = self.get(id_)
            writer = self._writer(memory.scope if memory else None)
            wanted.append((writer, entries.Forgot(memory=check_id(id_), at=self._spine.now())))
        return self._write(wanted, "forget")

    def restore(self, version: int | datetime) -> int:
        """Make the live memories equal an older version's, as a new version; returns its number."""
        self._must_be_human("restore an older version")
        if self.scope is not None:
            raise OutOfScope("a bound handle cannot restore the whole account")
        done = restoring.restore(self._spine, self._number(version), self.actor)
        return self.version if done is None else done.header.version

    def proposals(self) -> list[Proposal]:
        """What waits for a person's yes, oldest first."""
        return [p for p in self._spine.head().proposals() if self.sees(p.memory.scope)]

    def proposal(self, id_: str) -> review.Waiting:
        """One proposal with the difference it would make."""
        return review.waiting(self, self._spine.head(), check_id(id_))

    def approve(self, id_: str, *, seen: str | None = None) -> Memory | None:
        """Put a proposal into effect; `seen` insists on what the approver looked at."""
        self._must_be_human("approve a proposal")
        return review.approve(self._spine, self, self._writer(None), check_id(id_), seen)

    def decline(self, id_: str, *, reason: str = "") -> None:
        """Refuse a proposal; what it wanted to write stays refused."""
        self._must_be_human("decline a proposal")
        review.decline(self._spine, self, self._writer(None), check_id(id_), reason)

    def reject(self, value: str, *, scope: str | None = None, reason: str = "") -> list[str]:
        """Keep a value out for ever and end what says exactly this; returns the ids that ended."""
        self._must_be_human("reject a value")
        return review.reject(self._spine, self._writer(scope), value, reason)

    def unreject(self, value: str, *, scope: str | None = None, reason: str = "") -> None:
        """Let a refused value in again."""
        self._must_be_human("lift a rejection")
        review.unreject(self._spine, self._writer(scope), value, reason)

    def rejections(self) -> list[Rejection]:
        """The rejections in force; they keep no clear text."""
        return review.rejections(self._spine, self)

    def redact(self, id_: str, *, reason: str) -> redaction.Redacted:
        """Erase a memory's text from every version and every derived file, leaving its hash."""
        self._must_be_human("redact a memory")
        if not reason.strip():
            raise BadInput("a redaction needs a reason", hint="it stays in the ledger in place of the text")
        return redaction.redact(self._spine, self, self._writer(None), check_id(id_), reason)

    @property
    def attached(self) -> attachments.Attachments:
        """The files that documents keep beside this account; a redaction reaches them too."""
        return attachments.Attachments(self._spine)

    def promote(self, id_: str, text: str | None = None, *, tags: Sequence[str] | None = None) -> Verdict:
        """Make a register or fact canon: at once for a person, by a proposal for anyone else."""
        memory = self.get(id_)
        writer = self._writer(memory.scope if memory else None)
        return review.promote(self._spine, self, writer, id_, text, tags)

    def merge_candidates(
        self, *, scope: str | None = None, floor: float = 0.7, kinds: Sequence[Kind] | None = None
    ) -> list[Pair]:
        """Pairs of live memories that look alike, best first; of one kind, or of any of `kinds`."""
        more = {} if kinds is None else {"kinds": [kinds]}
        return review.candidates(self, self._spine, scope, floor, **more)

    def propose_merge(self, first: str, second: str, text: str | None = None) -> str:
        """Ask a person to make one memory of two; returns the proposal's id."""
        return review.propose_merge(self._spine, self, self._writer(None), first, second, text)

    def deletion_candidates(self, *, scope: str | None = None) -> list[Doubt]:
        """Memories worth asking about, with reasons; nothing is deleted."""
        return review.doubtful(self, self._spine, scope)

    def propose_deletions(self, *, scope: str | None = None) -> list[str]:
        """Put the deletion candidates into the queue; returns the new proposals' ids."""
        found = self.deletion_candidates(scope=scope)
        return review.propose_doubts(self._spine, self, self._writer(scope), found)

    def refusals(self) -> list[Refusal]:
        """What the gate kept out, oldest first: before buffering, and at consolidations."""
        self._spine.head()
        logged = refusals.read(self._spine.store)
        committed = [c for _, c in self._spine.state.others("refusal") if isinstance(c, Refusal)]
        return sorted((r for r in (*logged, *committed) if self.sees(r.scope)), key=lambda r: r.at)

    def upkeep(self) -> Upkeep:
        """Do the work that no conversation waits for."""
        writer = writing.Writer(spine=self._spine, actor="system", scope=SHARED)
        done = upkeeping.upkeep(self._spine, writer, self._summariser)
        return replace(done, problems=tuple(self._indexing.verify(stamp=True)))

    def compress(self, id_: str | None = None) -> list[Memory]:
        """Make every core and sphere that is due, or one that was removed; returns those made."""
        if id_ is not None:
            return [compress.remake(self._spine, self._summariser, check_id(id_))]
        return compress.compress(self._spine, self._summariser)

    def uncompress(self, id_: str) -> list[str]:
        """Remove a core or sphere until it is asked for again; its sources stay. Returns what was removed."""
        memory = self.get(id_)
        if memory is None:
            raise NotFound(f"there is no core or sphere {id_!r}", hint="`octavo cores` lists them")
        return compress.uncompress(self._spine, self.actor, memory.id)

    def counters(self, scope: str = SHARED) -> dict[str, Any]:
        """The seed's counters of a scope: Session_seq, Core_seq, Sphere_seq, Total_sessions, last_update."""
        self._must_see(scope)
        return compress.counters(self._spine, scope)

    def catch_up(self, *, progress: health.Progress | None = None) -> None:
        """Bring words and vectors up to the ledger."""
        self._spine.must_write()
        self._indexing.catch_up(progress)

    def reindex(self, *, progress: health.Progress | None = None) -> None:
        """Throw words and vectors away and make them anew."""
        self._spine.must_write()
        self._indexing.discard()
        self._indexing.catch_up(progress)

    def freshness(self, id_: str) -> Freshness:
        """Whether the index holds a memory's current revision, and since when its vectors are there."""
        memory = self.get(id_)
        if memory is None:
            raise NotFound(f"there is no memory {id_!r} to look up in the index")
        return self._indexing.freshness(memory)[0]

    def lag(self) -> Lag:
        """How far the index is behind the newest version, and what could not be embedded."""
        return self._indexing.lag()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the background work that is under way; False if the time ran out."""
        return self._worker.wait(seconds)

    def check(self, *, progress: health.Progress | None = None) -> health.Report:
        """Prove versions, buffers, state and index; name the first damage in each file."""
        report = self._with_index(health.check(self._spine, progress))
        failure = self._worker.failure
        if failure is None:
            return report
        return replace(report, notes=(*report.notes, f"background work failed: {failure.message}"))

    def repair(self, *, accept: bool = False, progress: health.Progress | None = None) -> health.Report:
        """Make everything derived anew; restores nothing by guessing."""
        self._spine.must_write()
        report = health.repair(self._spine, accept=accept, progress=progress)
        if self._indexing.verify(stamp=True):
            self._indexing.rebuild(progress)
        return self._with_index(report)

    def _with_index(self, report: health.Report) -> health.Report:
        """A report that also says what is wrong with words and vectors, by ids and revisions."""
        problems, notes = self._indexing.verify(), self._indexing.notes()
        return replace(report, problems=(*report.problems, *problems), notes=(*report.notes, *notes))

    def backup(self, path: str | Path, *, progress: health.Progress | None = None) -> Path:
        """Copy ledger, buffers and policy into a folder that opens like the original."""
        return health.backup(self._spine, Path(path), progress)

    def export(self, path: str | Path, *, format: str = "msp") -> Any:  # noqa: A002  # the glossary's word
        """Write the account as the files of another system (msp, consciousness, vault)."""
        return self._formats().export_account(self, path, format)

    def import_(self, path: str | Path, *, format: str = "msp") -> Any:  # noqa: A002  # likewise
        """Read the files of another system, through the gate; the result lists every change."""
        with self.importing():
            return self._formats().import_account(self, path, format)

    def _formats(self) -> Formats:
        if self.formats is None:
            raise Unavailable("this handle knows no file formats", hint="open the account by octavo.open")
        return self.formats

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

    def _write(self, wanted: Sequence[Wanted], cause: str) -> list[Verdict]:
        return settling.settle(
            self._spine, wanted, cause=cause, actor=self.actor, scope=self.scope, guard=self._guard
        )

    def _unused(self, sandbox: str) -> str:
        """The id, unless a consolidation has made it part of the ledger."""
        self._spine.head()
        if self._spine.state.commits_of(check_id(sandbox, "sandbox")):
            raise SandboxClosed(f"sandbox {sandbox!r} was consolidated already")
        return sandbox

    def _writer(self, scope: str | None) -> Writer:
        name = check_scope(scope or self.scope or SHARED)
        self._must_see(name)
        visible = None if self.scope is None else frozenset({SHARED, self.scope})
        return writing.Writer(spine=self._spine, actor=self.actor, scope=name, visible=visible)

    @property
    def _indexing(self) -> Indexing:
        return self._recalling()[0]

    def _recall(self) -> Recaller:
        return self._recalling()[1]

    def _recalling(self) -> tuple[Indexing, Recaller]:
        """What recall needs, made when it is first needed: who lists memories never loads it."""
        with self._making:
            if self._made is None:
                embedder = self._embedder() if self._embedder else None
                made = indexing.Indexing(self._spine, self._spine.index, embedder)
                asked = recall.Recaller(self._spine, made, self._worker.wake, self._reranker)
                self._made = made, asked
            return self._made

    @property
    def _summariser(self) -> Summariser:
        """The summariser asked for, or the statistical one."""
        return self._given_summariser or summarisers.StatisticalSummariser(policy=self.policy.compression)

    @property
    def _afterwards(self) -> Afterwards:
        """What a sandbox of this account shares with it: its recall, and what happens when it closes."""
        return sandboxing.Afterwards(closed=self._closed, recaller=self._recaller)

    def _closed(self, result: Consolidation) -> None:
        """A session has closed: make what became due, when the policy says."""
        policy = self.policy.compression
        if result.session is None or result.session % policy.levels[0].radix or policy.mode == "manual":
            return
        if policy.mode == "immediate":
            compress.compress(self._spine, self._summariser)
        else:
            self._worker.wake()

    def _work(self) -> None:
        """What the worker does when it is woken: due cores and spheres, and what recall is waiting for."""
        if self.policy.compression.mode == "background":
            compress.compress(self._spine, self._summariser)
        if self._made is not None and self._indexing.is_used:
            self._indexing.add_words()
            # A batch at a time: who closes the account does not wait for all of them.
            while self._indexing.add_vectors(limit=embedding.BATCH) and not self._worker.is_stopping:
                pass

    def _must_see(self, scope: str) -> None:
        if not self.sees(check_scope(scope)):
            raise OutOfScope(f"a handle bound to {self.scope!r} tried to write to scope {scope!r}")

    def _must_be_human(self, what: str) -> None:
        if not is_human(self.actor):
            raise HumanOnly(f"{self.actor} tried to {what}")

    def _number(self, when: int | datetime) -> int:
        head = self._spine.head().version
        if isinstance(when, datetime):
            return self._spine.state.version_at(check_time(when))
        if isinstance(when, bool) or not isinstance(when, int) or not 0 <= when <= head:
            raise NotFound(
                f"there is no version {when!r}; the account is at {head}", hint="`octavo versions`"
            )
        return when
