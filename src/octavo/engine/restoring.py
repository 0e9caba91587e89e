"""The way back: an older version restored, one version's changes reverted, a decided proposal reopened."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from octavo.domain import gate
from octavo.domain.memory import Change, Decision, Memory, Proposal, Rejection
from octavo.domain.outcomes import RuleContext
from octavo.domain.state import Pending, View
from octavo.engine.reading import Reader
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.errors import NotFound, Stale
from octavo.storage.codec import REDACTED
from octavo.storage.ledger import Version
from octavo.storage.state_view import DbView


def restore(spine: Spine, target: int, actor: str) -> Version | None:
    """Commit what makes the newest version say what an older one said; None if it does already."""

    def act(pending: Pending, view: DbView) -> None:
        old = spine.state.at(target)
        for id_ in sorted(spine.state.ids_changed(target, view.version)):
            now, then = view.get(id_), old.get(id_)
            back = _back(now, then, actor) if now else None
            if back is not None and not _stays_out(spine, view, back):
                pending.apply(back)

    return spine.commit(act, cause=f"restore {target}", actor=actor)


def revert(spine: Spine, writer: Writer, version: int) -> Version | None:
    """Commit what takes one version's changes back; Stale where a later revision stands on them.

    Proposals that it decided wait again and its rejections are lifted; erased texts, uses and refusals stay.
    """

    def act(pending: Pending, view: DbView) -> None:
        changes = spine.state.changes_in(version)
        _unsay(pending, view, changes, writer.context())
        before = spine.state.at(version - 1)
        for memory in _last_of_each(changes):
            _take_back(spine, pending, memory, before.get(memory.id), writer.actor)
        _ask_again(spine, pending, changes, writer.context())

    return spine.commit(act, cause=f"revert {version}", actor=writer.actor)


def reopen(spine: Spine, reader: Reader, writer: Writer, id_: str) -> str:
    """Take a decision back with what came of it and ask the same again; returns the new proposal's id."""
    spine.head()
    decided = [
        (version, decision)
        for version, decision in spine.state.others("decision")
        if isinstance(decision, Decision) and decision.proposal == id_
    ]
    proposal = spine.state.asked(id_)
    if not decided or proposal is None or not reader.sees(proposal.memory.scope):
        raise NotFound(f"there is no decided proposal {id_!r}", hint="`octavo proposals` lists what waits")
    if proposal.memory.text == REDACTED:
        raise Stale(f"proposal {id_} cannot be reopened: its text was erased")
    version, decision = decided[0]
    asked: list[str] = []

    def act(pending: Pending, view: DbView) -> None:
        changes: list[Change] = [decision]
        if decision.outcome != "expired":  # one version closes many that nobody answered
            changes = spine.state.changes_in(version)
        _unsay(pending, view, changes, writer.context())
        for memory in _last_of_each(changes):
            _take_back(spine, pending, memory, spine.state.at(version - 1).get(memory.id), writer.actor)
        asked[:] = _ask_again(spine, pending, changes, writer.context())
        if not asked:
            raise Stale(f"proposal {id_} waits again already", hint="`octavo proposals` lists it")

    spine.commit(act, cause=f"reopen {id_}", actor=writer.actor)
    return asked[0]


def _last_of_each(changes: Sequence[Change]) -> list[Memory]:
    """The revisions that a version left behind, one a memory."""
    return list({change.id: change for change in changes if isinstance(change, Memory)}.values())


def _unsay(pending: Pending, view: DbView, changes: Sequence[Change], context: RuleContext) -> None:
    """Lift the rejections among some changes, and put back those that were lifted."""
    for change in changes:
        if isinstance(change, Rejection) and view.is_rejected(change.key, change.scope) != change.lifted:
            pending.apply(replace(change, lifted=not change.lifted, by=context.actor, at=context.at))


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


def _ask_again(spine: Spine, pending: Pending, changes: Sequence[Change], context: RuleContext) -> list[str]:
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
        pending.apply(replace(proposal, id=context.new_id(), base_rev=base, at=context.at))
        ids += [p.id for p in pending.changes[-1:] if isinstance(p, Proposal)]
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
        return replace(
            now,
            rev=now.rev + 1,
            gone=True,
            actor=actor,
            text="",
            turns=(),
            data=then.data if then else {},
            approved=None,
        )
    if replace(now, rev=then.rev, actor=then.actor) == then:
        return None
    return replace(then, rev=now.rev + 1, actor=actor)
