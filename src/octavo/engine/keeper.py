"""The care of a whole account: summaries, index, proof and repair, copies and mirrors."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import screening
from octavo.domain.memory import SHARED, Memory, check_id
from octavo.domain.mirror import Synced
from octavo.domain.ports import Place, Progress
from octavo.engine import (
    assemble,
    beliefs,
    compress,
    copies,
    health,
    mirror,
    redaction,
    retirement,
    review,
    syncing,
    writing,
)
from octavo.engine.attachments import unswept
from octavo.engine.freshness import Freshness, Lag
from octavo.engine.handle import Handle
from octavo.engine.reading import Stats
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.engine.syncing import Comparison, Take
from octavo.errors import NotFound
from octavo.storage import checkpoints, segments

_PROVED_AT_ONCE = 256  # versions that a round of upkeep reads again


class Upkeep(Struct, frozen=True, kw_only=True):
    """What one round of upkeep did, and what it found wrong with what is derived."""

    expired: int = 0
    swept: int = 0
    made: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    contested: tuple[str, ...] = ()
    sealed: int = 0
    checkpoint: int | None = None
    assembled: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


@public
class Keeper(Handle):
    """The acts that keep an account whole, small and up to date."""

    def upkeep(self) -> Upkeep:
        """Do the work that no conversation waits for, and say what was done.

        That is redactions, cores and spheres, retirement, beliefs, proposals, assemblies, packing. What lies
        in the open follows; what is derived is proved.
        """
        spine, index, policy = self._spine, self._indexing, self.policy
        swept, *_ = redaction.sweep(spine)
        outside = redaction.outside(spine)
        for projection in outside:
            projection.follow()
        is_due = policy.compression.mode != "manual"
        made = list(compress.compress(spine, self._summariser)) if is_due else []
        retired, contested = retirement.retire(spine), beliefs.contest(spine)
        expired = review.expire(spine, writing.Writer(spine=spine, actor="system", scope=SHARED))
        ended = assemble.end_small(spine)
        walk = [*outside, index]
        problems = [why for projection in walk for why in projection.verify(stamp=True)]
        # What is damaged is told before anybody groups by it, and would be made anew.
        may_group = policy.assemblies.mode != "manual" and index.is_used and not problems
        grouped = index.healed(partial(assemble.assemble, spine, index)) if may_group else []
        merged = index.healed(partial(assemble.merge_alike, spine, index)) if may_group else ()
        sealed, checkpoint = _pack(spine)
        problems += self._proof.go_on(_PROVED_AT_ONCE)
        if self.scope is not None:
            return Upkeep(made=tuple(memory.id for memory in made if self.sees(memory.scope)))
        if policy.retention.mode == "on":
            retired += [id_ for ids in self.retire_aged().values() for id_ in ids]
        return Upkeep(
            swept=len(swept),
            made=tuple(memory.id for memory in made),
            retired=tuple(retired),
            contested=tuple(contested),
            expired=expired,
            assembled=(*ended, *grouped),
            merged=tuple(merged),
            sealed=sealed,
            checkpoint=checkpoint,
            problems=tuple(problems),
        )

    def aged(self) -> dict[str, list[Memory]]:
        """Episodes past the limits of the policy that might go to the archive, by group."""
        held = frozenset(id_ for core in self.memories(kind="core") for id_ in core.linked("part"))
        return retirement.overdue(self._spine, self.memories(kind="episode"), held)

    def retire_aged(self) -> dict[str, list[str]]:
        """Move episodes past their age, number or size to the archive; returns the ids that went, by group.

        Milestones stay, and so does a conversation that no core holds; many at once become a proposal.
        """
        self._spine.must_write()
        return {
            rule: retirement.let_go(self._spine, f"retention_{rule}", old, len(old))
            for rule, old in self.aged().items()
        }

    def compress(
        self, id_: Annotated[str | None, "A removed core or sphere to make again."] = None
    ) -> list[Memory]:
        """Make the cores and spheres that are due, or one that was removed; returns those made."""
        if id_ is not None:
            self._must_see(check_id(id_).partition("@")[2] or SHARED)
            return [compress.remake(self._spine, self._summariser, id_)]
        return [m for m in compress.compress(self._spine, self._summariser) if self.sees(m.scope)]

    def uncompress(self, id_: Annotated[str, "The core's or sphere's id."]) -> list[str]:
        """Remove a core or sphere until it is asked for again; its sources stay. Returns what was removed."""
        memory = self.get(id_)
        if memory is None:
            raise NotFound(f"there is no core or sphere {id_!r}", hint="`octavo cores` lists them")
        return compress.uncompress(self._spine, self.actor, memory.id)

    def counters(self, scope: str = SHARED) -> dict[str, Any]:
        """The seed's counters of a scope: Session_seq, Core_seq, Sphere_seq, Total_sessions, last_update."""
        self._must_see(scope)
        return compress.counters(self._spine, scope)

    def catch_up(
        self,
        *,
        force: Annotated[bool, "Try at once what waits for another attempt, or was given up."] = False,
        progress: Progress | None = None,
    ) -> int:
        """Bring the index up to the newest version; returns which that is."""
        self._spine.must_write()
        self._indexing.healed(partial(self._indexing.catch_up, progress, force=force))
        return self.version

    def reindex(self, *, progress: Progress | None = None) -> int:
        """Throw the index away and make it anew from the ledger; returns the newest version."""
        self._spine.must_write()
        self._indexing.healed(partial(self._indexing.rebuild, progress))
        return self.catch_up(progress=progress)

    def freshness(self, id_: str) -> Freshness:
        """Whether the index holds a memory's current revision, and since when its vectors are there."""
        memory = self.get(id_)
        if memory is None:
            raise NotFound(f"there is no memory {id_!r} to look up in the index")
        if memory.kind == "assembly":
            return self.explained.freshness(memory)
        return self._indexing.freshness(memory)[0]

    def stats(self) -> Stats:
        """Counts by kind, scope and category, and what there is of assemblies."""
        told = super().stats()
        has_any = "assembly" in told.by_kind
        told = replace(told, assemblies=self.explained.stats()) if has_any else told
        damage = self._proof.problems
        return replace(told, damage=damage if self.scope is None else damage and health.DAMAGED)

    def lag(self) -> Lag:
        """How far the index is behind the newest version, and what could not be embedded."""
        return self._indexing.lag()

    def check(self, *, progress: Progress | None = None) -> health.Report:
        """Prove that every byte is what was written; name the first damage in each file."""
        report = health.check(self._spine, self._indexing, progress)
        if self.scope is not None:  # whether all is well, and nothing of what lies in other scopes
            told = health.DAMAGED if report.problems else ()
            return replace(report, lines=0, sandboxes=len(self.sandboxes()), problems=told, notes=())
        most, notes = self.policy.assemblies.max_assemblies, self._indexing.notes()
        if self._spine.state.at(self._spine.state.watermark()[0]).count("assembly") >= most:
            notes.append(f"{most} assemblies are there, no more are begun: max_assemblies in the policy")
        if self._worker.failure is not None:
            notes.append(f"background work failed: {self._worker.failure.message}")
        return replace(report, notes=(*report.notes, *notes))

    def repair(
        self,
        *,
        accept: Annotated[bool, "Accept that the end of the ledger is lost."] = False,
        progress: Progress | None = None,
    ) -> health.Report:
        """Make everything derived anew from the ledger; restores nothing by guessing."""
        self._spine.must_write()
        self._must_be_owner("repair")
        if accept:
            self._must_be_human("accept the loss of versions")
        health.repair(self._spine, self._indexing, accept=accept, progress=progress)
        return self.check()

    def backup(
        self,
        path: Annotated[str | Path | Place, "The folder or the URL to copy it to."],
        *,
        progress: Progress | None = None,
    ) -> str:
        """Copy ledger, buffers and policy to another place, ready to open like the original."""
        self._must_be_owner("back up")
        copies.note(self._spine, path, is_backup=True)
        return copies.backup(self._spine, path, progress)

    def salvage(self, path: str | Path | Place) -> str:
        """Copy what lies before the first damage of the ledger into a new account, which opens by itself."""
        self._must_be_owner("salvage")
        copies.note(self._spine, path, is_backup=True)
        return copies.backup(self._spine, path, last=self._spine.ledger.whole_until())

    def mirror(
        self, path: Annotated[str | Path | None, "Its folder; the account's own `mirror` if not said."] = None
    ) -> Synced:
        """Show the account as a tree of Markdown and JSON files; what people changed there is left alone."""
        self._spine.must_write()
        self._must_be_owner("mirror")
        folder = None if path is None else Path(screening.check_name(str(path), "path"))
        return syncing.sync(mirror.begun(self._spine, folder), None)

    def sync(
        self,
        path: str | Path | None = None,
        *,
        commit: bool = False,
        take: Take | None = None,
        delete: bool = False,
        endings: bool = True,
    ) -> Synced:
        """What people changed in a mirror; with `commit` it is taken in as one version, through the gate.

        `take` decides conflicts for the account (`ours`) or for the person (`theirs`), `delete` allows many
        endings at once; without `endings` a file that ends memories is left alone.
        """
        self._must_be_owner("sync")
        tree = mirror.chosen(self._spine, None if path is None else Path(path))
        if not commit:
            return Comparison(tree, take).told()
        self._must_be_human("take in edits by hand")
        self._spine.must_write()
        done = syncing.sync(tree, self._writer, take=take, delete=delete, endings=endings)
        self._worker.wake()
        return done


def _pack(spine: Spine) -> tuple[int, int | None]:
    """Seal whole thousands of versions, and keep a checkpoint; says how many, and of which version."""
    mark = segments.next_mark(spine.store)  # before anything is read: what a redaction erases is not packed
    head = spine.head().version
    if unswept(spine):  # this machine's state may still hold what is being erased
        return 0, None
    sealed = spine.ledger.seal(head, unless=mark)
    return sealed, checkpoints.make(spine.store, spine.state, unless=mark)
