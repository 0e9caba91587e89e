"""An open account: everything that can be asked of it and done to it, from Python."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Unpack

from octavo.domain import buffer as entries
from octavo.domain import screening
from octavo.domain.memory import SHARED, check_id, check_time, check_words
from octavo.domain.names import ALIAS
from octavo.domain.orders import ENDED
from octavo.domain.ports import Formats
from octavo.domain.verdicts import Consolidation, Verdict
from octavo.engine import compress, handed_out, health, restoring, sandboxes
from octavo.engine.fields import Changes, Fields
from octavo.engine.intake import Intake
from octavo.engine.keeper import Keeper
from octavo.engine.reading import Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.engine.spine import without_gc
from octavo.engine.surface import public
from octavo.engine.writing import Writer, candidate_of
from octavo.errors import BadInput, NotFound, SandboxClosed, Unavailable
from octavo.storage.buffers import Buffer


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
        return self._hold(Buffer.create(self._spine.store, opened), opened, None)

    def resume(self, sandbox: str) -> Sandbox:
        """Take up a sandbox again; SandboxBusy while another owner has it."""
        self._spine.must_write()
        return sandboxes.resume(self._spine, sandbox, self._hold, self.sees)

    @cached_property
    def intake(self) -> Intake[Account]:
        """How documents and doors bring in what is finished; nothing that a user needs."""
        agent = partial(Account, self._spine, actor="agent", scope=self.scope, guard=self._guard)
        return Intake(self._spine, self, self._writer, self._worker.wake, agent)

    def at(self, when: int | datetime) -> Snapshot:
        """The account as it was at a version or a time, for the same reads."""
        return Snapshot(self._spine, self.scope, self._number(when), self._recaller)

    def remember(
        self, text: str, *, scope: str | None = None, key: str | None = None, **fields: Unpack[Fields]
    ) -> Verdict:
        """Write one memory (`fields.Fields`) outside a sandbox: its own commit, a final verdict.

        `key` makes a retry safe: within a scope the same key never writes twice.
        """
        self._spine.must_write()
        writer = self._writer(scope)
        return self._write([writer.checked(writer.candidate(text, key=key, **fields))], "remember")[0]

    def remember_many(
        self, items: Iterable[Mapping[str, Any]], *, progress: health.Progress | None = None
    ) -> list[Verdict]:
        """Write several memories in one commit; a verdict for each, in order."""
        self._spine.must_write()
        with without_gc():
            own = [candidate_of(self._writer, item) for item in items]
            writes = [writer.checked(wrote) for writer, wrote in own]
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

    def revise(
        self,
        id_: str,
        *,
        override: str | None = None,
        rev: int | None = None,
        **changes: Unpack[Changes],
    ) -> Verdict:
        """Give a memory a new revision with some fields (`fields.Changes`) changed.

        `rev` insists on the one it replaces.
        """
        outcome = self._writer(None).revision(self.get(id_), id_, override, **changes)
        return self._write([outcome], "revise", revs={id_: rev})[0]

    def forget(self, *ids: str, rev: int | None = None) -> list[Verdict]:
        """End memories by tombstones; their history stays. `rev` insists on the revision that ends."""
        if not ids:
            raise BadInput("forget what?", hint="name at least one memory's id")
        writer = self._writer(None)
        return self._write([writer.end(id_) for id_ in ids], "forget", revs=dict.fromkeys(ids, rev))

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
        done = self._formats().export_account(self, path, format, **chosen)
        handed_out.note_files(self._spine, path, done)
        return done

    def import_(
        self,
        path: str | Path,
        *,
        format: str = "msp",  # noqa: A002  # likewise
        progress: health.Progress | None = None,
    ) -> Any:
        """Read the files of another system, through the gate; the result lists every change."""
        with self.intake.importing():
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

    def _hold(self, buffer: Buffer | None, opened: entries.Opened, result: Consolidation | None) -> Sandbox:
        """A sandbox with what it has of this handle: actor, recall, and what happens when it closes."""
        return Sandbox(
            self._spine,
            buffer,
            opened,
            result,
            actor=self.actor,
            is_owner=self.scope is None,
            closed=self._closed,
            recaller=self._recall,
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
