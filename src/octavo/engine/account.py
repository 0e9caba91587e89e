"""An open account: everything that can be asked of it and done to it, from Python."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from octavo.domain import buffer as entries
from octavo.domain import screening, verdicts
from octavo.domain.memory import (
    SHARED,
    Memory,
    check_id,
    check_time,
    check_words,
)
from octavo.domain.names import ALIAS
from octavo.domain.orders import ENDED
from octavo.domain.ports import Formats
from octavo.domain.verdicts import Consolidation, Verdict
from octavo.engine import (
    bulk,
    compress,
    handed_out,
    health,
    restoring,
    sandboxes,
    writing,
)
from octavo.engine import follower as following
from octavo.engine import sandbox as sandboxing
from octavo.engine.commit import Write
from octavo.engine.keeper import Keeper
from octavo.engine.reading import Snapshot
from octavo.engine.sandbox import Sandbox, SandboxHooks
from octavo.engine.spine import without_gc
from octavo.engine.surface import public
from octavo.engine.writing import UNSET, Feeling, Links, Unset, Writer
from octavo.errors import BadInput, NotFound, SandboxClosed, Unavailable
from octavo.storage import buffers

_ITEM = frozenset(inspect.signature(Writer.candidate).parameters) - {"self"} | {"scope"}


@public
class Account(Keeper):
    """A handle on one account, for one actor, within one scope or (scope=None) all of them."""

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
        writer = self._writer(scope)
        started = self._spine.now() if started_at is None else check_time(started_at, "started_at")
        opened = entries.Opened(
            sandbox=f"sandbox_{self._spine.new_id()}" if id is None else self._unused(id, writer),
            name=check_words(name or f"Sandbox {started:%H:%M}", "name"),
            scope=writer.scope,
            parent=self._spine.head().version,
            actor=self.actor,
            at=started,
            strict=strict,
        )
        opened = screening.screened(opened, self.policy.privacy)
        buffer = buffers.Buffer.create(self._spine.store, opened)
        return sandboxing.Sandbox(self._spine, buffer, opened, None, self._hooks)

    def resume(self, sandbox: str) -> Sandbox:
        """Take up a sandbox again; SandboxBusy while another owner has it."""
        self._spine.must_write()
        return sandboxes.resume(self._spine, sandbox, self._hooks, self.sees)

    def bound(self, scope: str) -> Account:
        """The same account for the same actor, within one scope and for words alone."""
        self._must_see(scope)
        return Account(self._spine, actor=self.actor, scope=scope)

    def as_agent(self) -> Account:
        """The same account, with the same check of its own, for an agent's writes."""
        return Account(self._spine, actor="agent", scope=self.scope, guard=self._guard)

    def at(self, when: int | datetime) -> Snapshot:
        """The account as it was at a version or a time, for the same reads."""
        return Snapshot(self._spine, self.scope, self._number(when), self._recaller)

    def remember(
        self,
        text: str,
        *,
        scope: str | None = None,
        key: str | None = None,
        kind: str = "fact",
        topic: str | None = None,
        category: str | None = None,
        tags: Sequence[str] = (),
        source: str | None = None,
        at: datetime | None = None,
        salience: float | None = None,
        confidence: float | None = None,
        emotion: Feeling = None,
        links: Links = (),
        data: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002  # the glossary's word
        vector: tuple[str, Sequence[float]] | None = None,
        supersedes: str | None = None,
        override: str | None = None,
    ) -> Verdict:
        """Write one memory outside a sandbox: its own commit, a final verdict.

        `key` makes a retry safe: within a scope the same key never writes twice.
        """
        self._spine.must_write()
        writer = self._writer(scope)
        wrote = writer.candidate(
            text,
            kind=kind,
            topic=topic,
            category=category,
            tags=tags,
            source=source,
            at=at,
            salience=salience,
            confidence=confidence,
            emotion=emotion,
            links=links,
            data=data,
            id=id,
            key=key,
            vector=vector,
            supersedes=supersedes,
            override=override,
        )
        return self._write([self._checked(writer, wrote)], "remember")[0]

    def remember_many(
        self, items: Iterable[Mapping[str, Any]], *, progress: health.Progress | None = None
    ) -> list[Verdict]:
        """Write several memories in one commit; a verdict for each, in order."""
        self._spine.must_write()
        with without_gc():
            writes = [self._checked(*self._candidate(item)) for item in items]
            return self._write(writes, "remember", progress=progress)

    def alias(self, name: str, means: str, *, scope: str | None = None) -> Verdict:
        """Say that a name means a speaker ("Kate" means "Emi"), from the next question on.

        It is a register of its own: saying it again for the same name replaces it, forgetting it ends it.
        """
        for value, what in ((name, "name"), (means, "means")):
            if not isinstance(value, str) or not value.strip() or len(value) > 100:
                raise BadInput(f"{what} {value!r} cannot be used", hint="use at most 100 letters")
        return self.remember(
            f"{name.strip()} is another name for {means.strip()}",
            kind="register",
            topic=f"alias/{name.strip().casefold()}",
            category=ALIAS,
            data={"name": name.strip(), "means": means.strip()},
            scope=scope,
        )

    def end_order(self, id_: str, turn: int | None = None) -> list[Verdict]:
        """End what the user asked for in a memory, or in one turn of it; the memory itself stays.

        It holds again when it is said again, or when the register that ends it is forgotten.
        """
        self._must_be_human("end an order")
        ended = [order for order in self.orders() if order.memory == id_ and turn in (None, order.turn)]
        if not ended:
            raise NotFound(
                f"nothing that the user asked for in {id_} holds", hint="`octavo orders` lists what does"
            )
        return [
            self.remember(
                "",
                kind="register",
                topic=f"{ENDED}/{order.key}",
                category=ENDED,
                data={"order": order.key, "memory": order.memory},
                scope=order.scope,
            )
            for order in ended
        ]

    def must_fit(self, item: Mapping[str, Any]) -> None:
        """Raise BadInput if an item of `remember_many` could not even be a candidate."""
        self._candidate(item)

    def _candidate(self, item: Mapping[str, Any]) -> tuple[Writer, entries.Wrote]:
        if not isinstance(item, Mapping) or not set(item) <= _ITEM:
            unknown = sorted(map(str, set(item) - _ITEM)) if isinstance(item, Mapping) else [repr(item)[:80]]
            raise BadInput(
                f"an item to remember has {', '.join(unknown)}",
                hint=f"it may have {', '.join(sorted(_ITEM))}",
            )
        fields = dict(item)
        writer = self._writer(fields.pop("scope", None))
        return writer, writer.candidate(fields.pop("text", ""), **fields)

    def _checked(self, writer: Writer, wrote: entries.Wrote) -> Write:
        outcome = writer.checked(wrote)
        return outcome if isinstance(outcome, verdicts.Verdict) else (writer, outcome)

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
        writer = replace(self._writer(scope), guard=None)
        if closes is not None and closes not in {info.id for info in self.sandboxes()}:
            writer.must_be_allowed(check_id(closes, "session"), what="session")
        found = bulk.write(
            self._spine,
            writer,
            wanted,
            cause=cause,
            scope=scope or self.scope,
            base=base,
            skip=skip,
            whole=whole,
            closes=closes,
        )
        if self._follower is not None:
            self._follower.wrote(len(found))
        else:
            self._worker.wake()
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

    def revise(
        self,
        id_: str,
        *,
        text: str | Unset = UNSET,
        topic: str | Unset | None = UNSET,
        category: str | Unset | None = UNSET,
        tags: Sequence[str] | Unset = UNSET,
        salience: float | Unset = UNSET,
        confidence: float | Unset = UNSET,
        emotion: Feeling | Unset = UNSET,
        links: Links | Unset = UNSET,
        data: Mapping[str, Any] | Unset = UNSET,
        at: datetime | Unset = UNSET,
        override: str | None = None,
        rev: int | None = None,
    ) -> Verdict:
        """Give a memory a new revision with some fields changed; `rev` insists on the one it replaces."""
        changes = writing.said(
            text=text,
            topic=topic,
            category=category,
            tags=tags,
            salience=salience,
            confidence=confidence,
            emotion=emotion,
            links=links,
            data=data,
            at=at,
        )
        old = self.get(id_)
        writer = self._writer(old.scope if old else None)
        outcome = writer.revision(old, id_, changes, override)
        if isinstance(outcome, verdicts.Verdict):
            return outcome
        return self._write([(writer, outcome)], "revise", {id_: rev})[0]

    def forget(self, *ids: str, rev: int | None = None) -> list[Verdict]:
        """End memories by tombstones; their history stays. `rev` insists on the revision that ends."""
        if not ids:
            raise BadInput("forget what?", hint="name at least one memory's id")
        writes: list[Write] = []
        for id_ in ids:
            memory = self.get(id_)
            writer = self._writer(memory.scope if memory else None)
            writes.append((writer, writer.end(id_)))
        return self._write(writes, "forget", dict.fromkeys(ids, rev))

    def restore(self, version: int | datetime) -> int:
        """Make the live memories equal an older version's, as a new version; returns its number."""
        self._must_be_human("restore an older version")
        self._must_be_owner("restore")
        done = restoring.restore(self._spine, self._number(version), self.actor)
        return self.version if done is None else done.header.version

    def revert(self, version: int) -> int:
        """Take one version's changes back, as a new version; returns its number.

        Stale names the memory where a later revision stands on them; `restore` goes back behind that too.
        """
        self._must_be_human("revert a version")
        self._must_be_owner("revert a version of")
        if self._number(version) == 0:
            raise NotFound("there is no version 0 to take back", hint="`octavo versions`")
        done = restoring.revert(self._spine, self._writer(None), version)
        self._worker.wake()
        return self.version if done is None else done.header.version

    def export(
        self,
        path: str | Path,
        *,
        format: str = "msp",  # noqa: A002  # the glossary's word
        success: bool | None = None,
        max_denials: int | None = None,
        min_reward: float | None = None,
        tags: Sequence[str] | None = None,
    ) -> Any:
        """Write the account as the files of another system (msp, consciousness, vault …).

        Of a robot's episodes (rlds, minari) those with such an end, denials, reward or tags may be chosen.
        """
        self._must_be_owner("export")
        said = {"success": success, "max_denials": max_denials, "min_reward": min_reward, "tags": tags}
        chosen = {name: value for name, value in said.items() if value is not None}
        handed_out.note(self._spine, path)
        return self._formats().export_account(self, path, format, **chosen)

    def import_(
        self,
        path: str | Path,
        *,
        format: str = "msp",  # noqa: A002  # likewise
        progress: health.Progress | None = None,
    ) -> Any:
        """Read the files of another system, through the gate; the result lists every change."""
        with self.importing():
            return self._formats().import_account(self, path, format, progress)

    def _formats(self) -> Formats:
        if self.formats is None:
            raise Unavailable("this handle knows no file formats", hint="open the account by octavo.open")
        return self.formats

    def _unused(self, sandbox: str, writer: Writer) -> str:
        """The id, unless a consolidation has made it part of the ledger."""
        writer.must_be_allowed(sandbox, what="sandbox")
        self._spine.head()
        if self._spine.state.commits_of(check_id(sandbox, "sandbox")):
            raise SandboxClosed(f"sandbox {sandbox!r} was consolidated already")
        return sandbox

    @property
    def _hooks(self) -> SandboxHooks:
        """What a sandbox has of this handle: its actor, its recall, and what happens when it closes."""
        return sandboxing.SandboxHooks(
            actor=self.actor, is_owner=self.scope is None, closed=self._closed, recaller=self._recaller
        )

    def _closed(self, result: Consolidation) -> None:
        """A session has closed: make what became due, when the policy says."""
        policy = self.policy.compression
        if result.session is None or result.session % policy.levels[0].radix or policy.mode == "manual":
            self._worker.wake()
            return
        if policy.mode == "immediate":
            compress.compress(self._spine, self._summariser)
        self._worker.wake()
