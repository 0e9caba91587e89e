"""What a person decides, pure: proposals put into effect, look-alikes and deletions worth asking about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import combinations
from math import ceil

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import gate, likeness
from octavo.domain.lookalikes import look
from octavo.domain.memory import Decision, Kind, Link, Memory, Proposal, Rejection
from octavo.domain.policy import Policy
from octavo.domain.rules import tombstone
from octavo.domain.state import Pending
from octavo.domain.text import key_of, words
from octavo.domain.verdicts import RuleContext, Verdict
from octavo.errors import Stale

REVIEWED: tuple[Kind, ...] = ("fact", "register", "canon", "skill")

# How many memories of a scope are compared each with each (0.2 ms a pair), and how many by all their words.
FEW, EXACT = 100, 2000


RETIRE, RETIRED = "retire", "retired"  # in a proposal: what would go; on a tombstone: for which core


class Pair(Struct, frozen=True, kw_only=True):
    """Two live memories that say nearly the same, and how near they are."""

    first: Memory
    second: Memory
    score: float


class Doubt(Struct, frozen=True, kw_only=True):
    """A memory that might go, and why; nothing goes by itself."""

    memory: Memory
    reason: str


def approve(pending: Pending, proposal: Proposal, context: RuleContext) -> Memory | None:
    """Put a proposal into effect; Stale if what it was based on has changed."""
    current = pending.live(proposal.memory.id)
    found_rev = current.rev if current else 0
    if found_rev != proposal.base_rev:
        raise Stale(
            f"proposal {proposal.id} was based on revision {proposal.base_rev} of {proposal.memory.id}, "
            f"which is now at {found_rev}",
            hint="decline it, and propose again from what is there now",
        )
    done = _effect(pending, proposal, current, context)
    pending.apply(Decision(proposal=proposal.id, outcome="approved", by=context.actor, at=context.at))
    return done


def decline(pending: Pending, proposal: Proposal, reason: str, context: RuleContext) -> None:
    """Refuse a proposal; a value that was refused stays refused."""
    pending.apply(
        Decision(proposal=proposal.id, outcome="declined", by=context.actor, at=context.at, reason=reason)
    )
    if proposal.action in ("write", "promote") and proposal.memory.text:
        pending.apply(rejection(proposal.memory.text, proposal.memory.scope, reason, context))


def rejection(
    value: str, scope: str, reason: str, context: RuleContext, *, lifted: bool = False
) -> Rejection:
    """A value refused, or let in again, by what it says and by what it looks like."""
    return Rejection(
        key=context.keyed(key_of(value)),
        look=context.keyed(f"look {look(value)}"),
        scope=scope,
        by=context.actor,
        at=context.at,
        reason=reason,
        lifted=lifted,
    )


def retract(pending: Pending, value: str, scope: str, context: RuleContext) -> list[str]:
    """End the live memories that say exactly this; returns their ids."""
    wanted = key_of(value)
    ended = []
    for kind in REVIEWED:
        for memory in pending.alike(kind, scope, value):
            if key_of(memory.text) == wanted and pending.live(memory.id):
                pending.apply(tombstone(memory, context.actor))
                ended.append(memory.id)
    return ended


def expired(proposals: Iterable[Proposal], now: datetime, max_age_days: float) -> list[Decision]:
    """Proposals nobody answered in time."""
    limit = timedelta(days=max_age_days)
    return [
        Decision(proposal=p.id, outcome="expired", by="system", at=now)
        for p in proposals
        if now - p.at > limit
    ]


def pairs(memories: Sequence[Memory], floor: float, near: Callable[[Memory], Iterable[Memory]]) -> list[Pair]:
    """Look-alikes among live memories of one scope, best first; `near` gives those that an index finds.

    Up to FEW memories each is compared with each. Up to EXACT every pair that shares words enough for the
    floor is found. What else there is comes from the index: nearly every near-duplicate, and of looser pairs
    what it happens to meet.
    """
    found: dict[frozenset[str], Pair] = {}
    for first, second in _compared(memories, floor, near):
        ids = frozenset((first.id, second.id))
        if len(ids) == 2 and ids not in found:
            score = likeness.likeness(first.text, second.text, floor)
            if score >= floor:
                found[ids] = Pair(first=first, second=second, score=score)
    return sorted(found.values(), key=lambda pair: (-pair.score, pair.first.id, pair.second.id))


def _compared(
    memories: Sequence[Memory], floor: float, near: Callable[[Memory], Iterable[Memory]]
) -> Iterator[tuple[Memory, Memory]]:
    if len(memories) <= FEW:
        yield from combinations(memories, 2)
        return
    if len(memories) <= EXACT:
        yield from _sharing(memories, floor)
    yield from ((memory, other) for memory in memories for other in near(memory))


def _sharing(memories: Sequence[Memory], floor: float) -> Iterator[tuple[Memory, Memory]]:
    """Every two memories that share as much of the smaller one's words as the floor says.

    Of n words c must be shared, so one of any n - c + 1 is: the rarest ones are looked up.
    """
    sets = {memory.id: frozenset(words(memory.text)) for memory in memories}
    order = sorted(memories, key=lambda memory: (-len(sets[memory.id]), memory.id))
    frequency = Counter(word for found in sets.values() for word in found)
    holders: dict[str, list[Memory]] = {}
    for memory in order:  # the larger ones first, so that each finds those it is the smaller one of
        own = sets[memory.id]
        # One shared word of two says nothing.
        least = max(ceil(floor * len(own)), min(len(own), 2), 1)
        rarest = sorted(own, key=lambda word: (frequency[word], word))[: len(own) - least + 1]
        larger = {other.id: other for word in rarest for other in holders.get(word, ())}
        yield from ((memory, other) for other in larger.values() if len(own & sets[other.id]) >= least)
        for word in own:
            holders.setdefault(word, []).append(memory)


def doubts(
    memories: Sequence[Memory], policy: Policy, now: datetime, alike: Sequence[Pair] = ()
) -> list[Doubt]:
    """Memories worth asking about: short, stale, without a topic, failing the gate, or said twice."""
    found: dict[str, Doubt] = {}
    for memory in memories:
        reason = _doubt(memory, policy, now)
        if reason:
            found[memory.id] = Doubt(memory=memory, reason=reason)
    for pair in alike:
        older, newer = sorted((pair.first, pair.second), key=lambda m: (m.at, m.id))
        if older.id not in found:
            reason = f"near-duplicate of {newer.id} ({pair.score:.2f})"
            found[older.id] = Doubt(memory=older, reason=reason)
    return sorted(found.values(), key=lambda doubt: (doubt.memory.at, doubt.memory.id))


def promoted(memory: Memory, text: str | None, tags: Sequence[str] | None) -> Memory:
    """A register or fact as the canon, a skill as the approved one it becomes: same id, next revision."""
    return replace(
        memory,
        rev=memory.rev + 1,
        kind=memory.kind if memory.kind == "skill" else "canon",
        text=memory.text if text is None else text,
        tags=memory.tags if tags is None else tuple(tags),
        source="promotion",
    )


def merged(first: Memory, second: Memory, text: str, new_id: str) -> Memory:
    """One memory in place of two, with both as its origin."""
    links = dict.fromkeys((*first.links, *second.links))
    origins = (Link(name="merged_from", to=first.id), Link(name="merged_from", to=second.id))
    return replace(
        first,
        id=new_id,
        rev=1,
        text=text,
        tags=tuple(dict.fromkeys((*first.tags, *second.tags))),
        confidence=max(first.confidence, second.confidence),
        salience=max(first.salience, second.salience),
        links=(*links, *origins),
    )


def _effect(
    pending: Pending, proposal: Proposal, current: Memory | None, context: RuleContext
) -> Memory | None:
    memory = proposal.memory
    if proposal.action == "retire":
        for episode in (pending.live(id_) for id_ in memory.data.get(RETIRE, ())):
            if episode is not None:
                pending.apply(replace(tombstone(episode, context.actor), data={RETIRED: memory.id}))
        return None
    if proposal.action == "forget":
        if current is not None:
            pending.apply(tombstone(current, context.actor))
        return None
    outcome = gate.check_state(pending, memory, context.keyed)
    if isinstance(outcome, Verdict):
        raise Stale(f"proposal {proposal.id}: {outcome.detail}", hint=outcome.advice)
    for old in memory.linked("merged_from") if proposal.action == "merge" else ():
        gone = pending.live(old)
        if gone is None:
            raise Stale(f"proposal {proposal.id}: {old} has ended since")
        pending.apply(tombstone(gone, context.actor))
    holder = pending.by_topic(memory.kind, memory.scope, memory.topic) if memory.topic else None
    if holder is not None and holder.id != memory.id:
        raise Stale(f"proposal {proposal.id}: topic {memory.topic!r} was set by {holder.id} since")
    done = replace(outcome, rev=proposal.base_rev + 1, approved=context.actor)
    pending.apply(done)
    return done


def _doubt(memory: Memory, policy: Policy, now: datetime) -> str | None:
    if len(memory.text.strip()) < 12 and len(words(memory.text)) <= 3 and not memory.data:
        return f"very short text ({len(memory.text.strip())} characters)"
    outcome = gate.check_text(memory, policy)
    if isinstance(outcome, Verdict):
        return f"now fails the gate: {outcome.check}"
    limit = policy.review.stale_days
    if memory.kind == "register" and memory.topic is None:
        return "a register without a topic"
    if memory.kind == "register" and limit is not None and now - memory.at > timedelta(days=limit):
        return f"stale: not written for {(now - memory.at).days} days"
    return None
