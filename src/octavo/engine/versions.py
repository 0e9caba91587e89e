"""The versions of an account: listed, compared, and taken back by a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import gate
from octavo.domain.compression import position
from octavo.domain.memory import SHARED, Change, Decision, Memory, Proposal, Rejection, check_id
from octavo.domain.rules import tombstone
from octavo.domain.state import Pending, View
from octavo.engine.fields import Count
from octavo.engine.handle import Handle
from octavo.engine.reading import Snapshot
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.engine.writing import Writer
from octavo.errors import NotFound, Stale
from octavo.storage.codec import REDACTED
from octavo.storage.state_log import Commit
from octavo.storage.state_view import DbView

_AT_ONCE = 500


class Diff(Struct, frozen=True, kw_only=True):
    """What differs between two versions."""

    before: int
    after: int
    added: tuple[Memory, ...] = ()
    changed: tuple[tuple[Memory, Memory], ...] = ()
    removed: tuple[Memory, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.added or self.changed or self.removed)


class Session(Struct, frozen=True, kw_only=True):
    """A closed session: its ordinal within its scope, the version it became, its place (compression_meta)."""

    ordinal: int
    scope: str
    sandbox: str
    version: int
    at: datetime
    position: Mapping[str, int]


@public
class Versions(Handle):
    """The acts on an account's history."""

    def versions(self, *, after: int = 0, limit: int | None = None) -> list[Commit]:
        """The versions in order: when, why, by whom, how many changes; of other scopes only that they are."""
        self._spine.head()
        commits = self._spine.state.commits(after=after, limit=-1 if limit is None else limit)
        if self.scope is None:
            return commits
        hidden = self._spine.state.versions_beyond((SHARED, self.scope), after)
        nothing = {"cause": "", "actor": "", "scope": None, "session": None, "sandbox": None, "changes": 0}
        return [replace(c, **nothing) if c.version in hidden else c for c in commits]

    def sessions(self, *, scope: str | None = None) -> list[Session]:
        """List the closed sessions and their places, in the order they closed."""
        return [
            Session(
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

    def at(self, when: int | datetime) -> Snapshot:
        """The account as it was at a version or a time, for the same reads."""
        return Snapshot(self._spine, self.scope, self._recaller, self._number(when))

    def diff(self, before: int | datetime, after: int | datetime | None = None) -> Diff:
        """What differs between two versions (the second is the head if not said)."""
        first, last = self._number(before), self.version if after is None else self._number(after)
        added, changed, removed = [], [], []
        ids = sorted(self._spine.state.ids_changed(min(first, last), max(first, last)))
        for start in range(0, len(ids), _AT_ONCE):
            some = ids[start : start + _AT_ONCE]
            older, newer = (self._live(version, some) for version in (first, last))
            for id_ in some:
                old, new = older.get(id_), newer.get(id_)
                if old is None and new is not None:
                    added.append(new)
                elif old is not None and new is None:
                    removed.append(old)
                elif old and new and replace(old, rev=new.rev, actor=new.actor) != new:
                    changed.append((old, new))
        return Diff(
            before=first, after=last, added=tuple(added), changed=tuple(changed), removed=tuple(removed)
        )

    def _live(self, version: int, ids: Sequence[str]) -> dict[str, Memory]:
        memories = (memory for _, memory in self._spine.state.at(version).many(ids).values())
        return {memory.id: memory for memory in memories if not memory.gone and self.sees(memory.scope)}

    def restore(self, version: Annotated[int | datetime, "The version or time to go back to."]) -> int:
        """Make the memories what they were, as a new version; returns its number."""
        self._must_be_human("restore an older version")
        self._must_be_owner("restore")
        spine, target = self._spine, self._number(version)

        def act(pending: Pending, view: DbView) -> None:
            old = spine.state.at(target)
            for id_ in sorted(spine.state.ids_changed(target, view.version)):
                now, then = view.get(id_), old.get(id_)
                back = _back(now, then, self.actor) if now else None
                if back is not None and not _stays_out(spine, view, back):
                    pending.apply(back)

        _, done = spine.commit(act, cause=f"restore {target}", actor=self.actor)
        return self.version if done is None else done.header.version

    def revert(self, version: Annotated[Count, "The version whose changes go back."]) -> int:
        """Take one version's changes back, as a new version; returns its number.

        Stale names the memory where a later revision stands on them; `restore` goes back behind that too.
        Proposals that it decided wait again, its rejections are lifted; erased texts, uses and refusals stay.
        """
        self._must_be_human("revert a version")
        self._must_be_owner("revert a version of")
        if self._number(version) == 0:
            raise NotFound(
                "there is no version 0 to take back", hint="`octavo versions` lists those there are"
            )
        writer = self._writer(None)

        def act(pending: Pending, view: DbView) -> None:
            _undo(writer, pending, view, version, self._spine.state.changes_in(version))

        _, done = self._spine.commit(act, cause=f"revert {version}", actor=self.actor)
        self._worker.wake()
        return self.version if done is None else done.header.version

    def reopen(self, id_: Annotated[str, "The proposal's id."]) -> str:
        """Take a yes or no back, with what came of it; the proposal waits again, under a new id."""
        self._must_be_human("reopen a proposal")
        spine, writer = self._spine, self._writer(None)
        check_id(id_)
        spine.head()
        decided, proposal = spine.state.others("decision", ref=id_), spine.state.asked(id_)
        if not decided or proposal is None or not self.sees(proposal.memory.scope):
            raise NotFound(
                f"there is no decided proposal {id_!r}", hint="`octavo proposals` lists what waits"
            )
        if proposal.memory.text == REDACTED:
            raise Stale(f"proposal {id_} cannot be reopened: its text was erased")
        version, decision = decided[0]

        def act(pending: Pending, view: DbView) -> str:
            changes: list[Change] = [decision]
            if (
                isinstance(decision, Decision) and decision.outcome != "expired"
            ):  # one version closes many that nobody answered
                changes = spine.state.changes_in(version)
            for asked in _undo(writer, pending, view, version, changes):
                return asked
            raise Stale(f"proposal {id_} waits again already", hint="`octavo proposals` lists it")

        return spine.commit(act, cause=f"reopen {id_}", actor=self.actor)[0]


def _undo(
    writer: Writer, pending: Pending, view: DbView, version: int, changes: Sequence[Change]
) -> list[str]:
    """Take some changes of a version back; returns the ids under which proposals wait again."""
    spine, at = writer.spine, writer.spine.now()
    for change in changes:  # what was rejected is let in again, what was let in again is rejected
        if isinstance(change, Rejection) and view.is_rejected(change.key, change.scope) != change.lifted:
            pending.apply(replace(change, lifted=not change.lifted, by=writer.actor, at=at))
    before = spine.state.at(version - 1)
    last_of_each = {change.id: change for change in changes if isinstance(change, Memory)}
    for memory in last_of_each.values():
        _take_back(spine, pending, memory, before.get(memory.id), writer.actor)
    return _ask_again(spine, pending, changes, at)


def _take_back(spine: Spine, pending: Pending, memory: Memory, then: Memory | None, actor: str) -> None:
    """Make a memory what it was before a revision; what it says must be what is said now."""
    now = pending.get(memory.id) or memory
    back = _back(now, then, actor)
    if back is None or _stays_out(spine, pending, back):
        return
    name = back.topic or memory.topic or memory.text[:60] or memory.id
    if replace(now, rev=memory.rev, actor=memory.actor) != memory:
        raise Stale(
            f"{memory.id} ({name}) was changed again since: it is at revision {now.rev}, not {memory.rev}",
            hint="take the later change back first, or restore an older version",
        )
    holder = pending.by_topic(back.kind, back.scope, back.topic) if back.topic and not back.gone else None
    if holder is not None and holder.id != back.id:
        raise Stale(f"{back.id} cannot come back: {holder.id} holds its topic {back.topic!r} now")
    pending.apply(back)


def _ask_again(spine: Spine, pending: Pending, changes: Sequence[Change], at: datetime) -> list[str]:
    """Propose again what some decisions closed; what was asked and decided in one step is no question."""
    own = {change.id for change in changes if isinstance(change, Proposal)}
    waiting = {(p.action, p.memory.id, p.memory.text) for p in pending.proposals()}
    ids = []
    for change in changes:
        proposal = spine.state.asked(change.proposal) if isinstance(change, Decision) else None
        if proposal is None or proposal.id in own or proposal.memory.text == REDACTED:
            continue
        if (proposal.action, proposal.memory.id, proposal.memory.text) in waiting:
            continue
        current = pending.live(proposal.memory.id)
        base = current.rev if current else 0
        again = replace(proposal, id=spine.new_id(), base_rev=base, at=at)
        pending.apply(again)
        ids.append(again.id)
    return ids


def _stays_out(spine: Spine, view: View, memory: Memory) -> bool:
    """Rejections and redactions do not go back with a restore."""
    if memory.gone:
        return False
    return memory.text == REDACTED or not isinstance(gate.check_state(view, memory, spine.keyed), Memory)


def _back(now: Memory, then: Memory | None, actor: str) -> Memory | None:
    """The revision that makes a memory what it was, None if it is that already."""
    if then is None or then.gone:
        if now.gone:
            return None
        # A tombstone's data says how it ended: a removed core stays removed, a retired original can return.
        return replace(tombstone(now, actor), data=then.data if then else {})
    if replace(now, rev=then.rev, actor=then.actor) == then:
        return None
    return replace(then, rev=now.rev + 1, actor=actor)
