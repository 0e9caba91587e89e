"""Review: the one queue of proposals, rejections, promotions, and what is worth asking about."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import review
from octavo.domain.memory import Kind, Memory, Proposal, Rejection
from octavo.domain.outcomes import RuleContext
from octavo.domain.review import Doubt, Pair
from octavo.domain.state import Pending
from octavo.domain.text import key_of
from octavo.domain.verdicts import Verdict
from octavo.engine.differences import Diff
from octavo.engine.reading import Reader
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.errors import BadInput, NotFound, Stale
from octavo.storage import codec
from octavo.storage.state_view import DbView

_APART: tuple[tuple[Kind, ...], ...] = tuple((kind,) for kind in review.REVIEWED)


class Waiting(Struct, frozen=True, kw_only=True):
    """A proposal with the difference it would make and the hash of what it says."""

    proposal: Proposal
    diff: Diff
    digest: str


def digest(proposal: Proposal) -> str:
    """A hash of everything a proposal says; who approves may insist on it."""
    return hashlib.sha256(codec.encode_json(proposal)).hexdigest()


def waiting(reader: Reader, view: DbView, id_: str) -> Waiting:
    """One proposal that still waits, as a person should see it before deciding."""
    proposal = _found(view, reader, id_)
    current = view.get(proposal.memory.id)
    live = current if current and not current.gone else None
    version = view.version
    if proposal.action == "forget":
        diff = Diff(before=version, after=version + 1, removed=(live,) if live else ())
    elif live is not None:
        diff = Diff(before=version, after=version + 1, changed=((live, proposal.memory),))
    else:
        sources = [view.get(old) for old in proposal.memory.linked("merged_from")]
        gone = tuple(m for m in sources if m and not m.gone) if proposal.action == "merge" else ()
        diff = Diff(before=version, after=version + 1, added=(proposal.memory,), removed=gone)
    return Waiting(proposal=proposal, diff=diff, digest=digest(proposal))


def approve(
    spine: Spine, reader: Reader, writer: Writer, id_: str, seen: str | None, text: str | None = None
) -> Memory | None:
    """Put a proposal into effect as the person who approves it, in other words if they have any."""
    done: list[Memory | None] = []

    def act(pending: Pending, context: RuleContext, view: DbView) -> None:
        proposal = _found(view, reader, id_)
        if seen is not None and seen != digest(proposal):
            raise Stale(f"proposal {id_} does not say what was seen", hint="look at it again")
        if text is not None:
            said = writer.proposable(replace(proposal.memory, text=text), view)
            proposal = replace(proposal, memory=said)
        done[:] = [review.approve(pending, proposal, context)]

    _commit(spine, writer, f"approve {id_}", act)
    return done[0]


def decline(spine: Spine, reader: Reader, writer: Writer, id_: str, reason: str) -> None:
    """Refuse a proposal; what it wanted to write stays refused."""

    def act(pending: Pending, context: RuleContext, view: DbView) -> None:
        review.decline(pending, _found(view, reader, id_), reason, context)

    _commit(spine, writer, f"decline {id_}", act)


def reject(spine: Spine, writer: Writer, value: str, reason: str) -> list[str]:
    """Keep a value out of the writer's scope for ever and end what says exactly this; returns those ids."""
    if not isinstance(value, str) or not key_of(value):
        raise BadInput("there is no value to reject", hint="hand in the text that shall stay out")
    ended: list[str] = []

    def act(pending: Pending, context: RuleContext, view: DbView) -> None:
        pending.apply(review.rejection(value, writer.scope, reason, context))
        ended[:] = review.retract(pending, value, writer.scope, context)

    _commit(spine, writer, "reject", act)
    return ended


def unreject(spine: Spine, writer: Writer, value: str, reason: str) -> None:
    """Let a refused value in again."""

    def act(pending: Pending, context: RuleContext, view: DbView) -> None:
        lifted = review.rejection(value, writer.scope, reason, context, lifted=True)
        if not view.is_rejected(lifted.key, writer.scope):
            raise NotFound(f"that value is not refused in scope {writer.scope!r}")
        pending.apply(lifted)

    _commit(spine, writer, "unreject", act)


def rejections(spine: Spine, reader: Reader) -> list[Rejection]:
    """The rejections in force; they keep no clear text."""
    spine.head()
    latest: dict[tuple[str, str], Rejection] = {}
    for _, change in reversed(spine.state.others("rejection")):
        if isinstance(change, Rejection) and reader.sees(change.scope):
            latest[change.key, change.scope] = change
    return [rejection for rejection in latest.values() if not rejection.lifted]


def expire(spine: Spine, writer: Writer) -> int:
    """Close proposals that nobody answered in time; returns how many."""
    closed: list[int] = [0]

    def act(pending: Pending, context: RuleContext, view: DbView) -> None:
        days = spine.policy.review.expire_days
        decisions = [] if days is None else review.expired(view.proposals(), context.at, days)
        closed[0] = len(decisions)
        for decision in decisions:
            pending.apply(decision)

    _commit(spine, writer, "expire", act)
    return closed[0]


def candidates(
    reader: Reader, spine: Spine, scope: str | None, floor: float, kinds: Sequence[Sequence[Kind]] = _APART
) -> list[Pair]:
    """Pairs of live memories that look alike, best first, for a person to merge or leave.

    `kinds` says which are compared with each other: each with its own, unless it is told otherwise.
    """
    view = spine.head()
    found: list[Pair] = []
    for together in kinds:
        groups: dict[str, list[Memory]] = {}
        for memory in reader.memories(kind=together, scope=scope):
            if memory.text:
                groups.setdefault(memory.scope, []).append(memory)
        for memories in groups.values():
            near = partial(_near, view, together)
            found += review.pairs(memories, floor, near)
    return sorted(found, key=lambda pair: (-pair.score, pair.first.id, pair.second.id))


def _near(view: DbView, kinds: Sequence[Kind], memory: Memory) -> list[Memory]:
    return [other for kind in kinds for other in view.alike(kind, memory.scope, memory.text)]


def doubtful(reader: Reader, spine: Spine, scope: str | None) -> list[Doubt]:
    """Memories worth asking about, with reasons; nothing is deleted."""
    memories = reader.memories(kind=review.REVIEWED, scope=scope)
    return review.doubts(memories, spine.policy, spine.now(), candidates(reader, spine, scope, 0.85))


def propose_doubts(spine: Spine, reader: Reader, writer: Writer, found: Sequence[Doubt]) -> list[str]:
    """Put deletions into the queue, each once."""
    ids: list[str] = []

    def act(pending: Pending, context: RuleContext, view: DbView) -> None:
        ids.clear()
        asked = {p.memory.id for p in pending.proposals() if p.action == "forget"}
        for doubt in found:
            current = view.get(doubt.memory.id)
            declined = view.was_declined("forget", doubt.memory.id)
            if doubt.memory.id in asked or declined or current is None or current.gone:
                continue
            proposal = Proposal(
                id=context.new_id(),
                action="forget",
                memory=current,
                base_rev=current.rev,
                reason=doubt.reason,
                by=context.actor,
                at=context.at,
            )
            pending.apply(proposal)
            ids.append(proposal.id)

    _commit(spine, writer, "propose deletions", act)
    return ids


def propose_merge(
    spine: Spine, reader: Reader, writer: Writer, first: str, second: str, text: str | None
) -> str:
    """Ask a person to make one memory of two; returns the proposal's id."""
    a, b = reader.get(first), reader.get(second)
    if a is None or b is None:
        raise NotFound(f"there is no live memory {first if a is None else second}")
    if (a.kind, a.scope) != (b.kind, b.scope) or a.kind not in review.REVIEWED:
        raise BadInput(f"{first} and {second} cannot be merged: they differ in kind or scope")
    better = max((a, b), key=lambda m: (m.confidence, m.at))
    said = replace(better, text=better.text if text is None else text)
    wanted = writer.proposable(said, spine.head()).text
    proposal_id = spine.new_id()

    def act(pending: Pending, context: RuleContext, view: DbView) -> None:
        memory = review.merged(a, b, wanted, context.new_id())
        pending.apply(
            Proposal(
                id=proposal_id,
                action="merge",
                memory=memory,
                reason=f"{first} and {second} say nearly the same",
                by=context.actor,
                at=context.at,
            )
        )

    _commit(spine, writer, "propose merge", act)
    return proposal_id


def promote(
    spine: Spine, reader: Reader, writer: Writer, id_: str, text: str | None, tags: Sequence[str] | None
) -> Verdict:
    """Make a register or fact canon, a learned skill procedural: by a person, or by a proposal to one."""
    old = reader.get(id_)
    if old is None:
        raise NotFound(f"there is no live memory {id_} to promote")
    if old.kind not in ("register", "fact", "skill"):
        raise BadInput(f"{id_} is a {old.kind}", hint="registers and facts become canon, skills procedural")
    if old.kind == "skill" and old.approved is not None:
        raise BadInput(f"{id_} is approved already, by {old.approved}")
    wanted = writer.proposable(review.promoted(old, text, tags), spine.head())
    wanted = replace(wanted, actor=writer.actor)
    above = "procedural" if old.kind == "skill" else "canon"
    proposal = Proposal(
        id=spine.new_id(),
        action="promote",
        memory=wanted,
        base_rev=old.rev,
        reason=f"promotion of {old.kind} {old.topic or old.id} to {above}",
        by=writer.actor,
        at=spine.now(),
    )
    if not writer.is_human:
        _commit(spine, writer, f"propose {id_}", lambda pending, context, view: pending.apply(proposal))
        detail = f"{above} waits for a person"
        return Verdict(outcome="proposed", check="approval", detail=detail, proposal=proposal.id)
    done: list[Memory | None] = []

    def act(pending: Pending, context: RuleContext, view: DbView) -> None:
        pending.apply(proposal)
        done[:] = [review.approve(pending, proposal, context)]

    _commit(spine, writer, f"promote {id_}", act)
    return Verdict(outcome="superseding", memory=done[0], detail=f"{id_} is {above} now")


def _found(view: DbView, reader: Reader, id_: str) -> Proposal:
    proposal = view.proposal(id_)
    if proposal is None or not reader.sees(proposal.memory.scope):
        raise NotFound(f"there is no waiting proposal {id_!r}", hint="`octavo proposals` lists them")
    return proposal


def _commit(
    spine: Spine, writer: Writer, cause: str, act: Callable[[Pending, RuleContext, DbView], None]
) -> None:
    def attempt(pending: Pending, view: DbView) -> None:
        act(pending, writer.context(), view)

    spine.commit(attempt, cause=cause, actor=writer.actor)
