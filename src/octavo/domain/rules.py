"""The rules of consolidation, pure: what buffered candidates become on top of a state.

A commit that loses the race runs them again on the newer state; nothing here remembers anything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec
from msgspec.structs import replace

from octavo.domain import assembling, gate, screening
from octavo.domain.buffer import Forgot, Revised, SetState, Used, Wrote, patch
from octavo.domain.contrasts import contrasts_of, said_so, way_to_replace
from octavo.domain.lookalikes import look
from octavo.domain.memory import SHARED, STATE, UNCOUNTED, Link, Memory, Merge, Use, is_human
from octavo.domain.patterns import pattern
from octavo.domain.state import Pending
from octavo.domain.text import key_of
from octavo.domain.verdicts import (
    RuleContext,
    Verdict,
    keep_out,
    missing,
    note_clash,
    propose,
    propose_end,
    refuse,
)

Candidate = Wrote | SetState | Revised | Forgot | Used

PROFILE = "profile"  # how the topic begins of what an agent only guesses about the user, before a slash
_SLASH = pattern(r"[/\\\u2044\u2215\uff0f\u29f8]")  # and what looks like one
GUARDRAIL, PROCEDURAL = "guardrail", "procedural"
APPROVED_ONLY = (GUARDRAIL, PROCEDURAL)  # categories of skills that a person approves, or that are not
CONCEPT = "concept"  # entries for one concept merge: the surer one stays, the other is recorded
RELATIONSHIP = "relationship"
KEYED = "key_"  # how an id begins that was made of a caller's key


def consolidate(
    pending: Pending,
    wanted: Sequence[Candidate],
    context: RuleContext,
    progress: Callable[[int, int], None] | None = None,
) -> list[Verdict]:
    """Apply the rules to candidates in order, each on top of the ones before it, as who wrote it."""
    aliases: dict[str | None, str] = {
        w.alias: w.memory.id for w in wanted if isinstance(w, Wrote) and w.alias
    }
    verdicts = []
    uses: dict[str, tuple[int, float]] = {}
    for number, candidate in enumerate(wanted, start=1):
        if progress:
            progress(number, len(wanted))
        # A sandbox that somebody else opened lends no authority.
        actor = candidate.memory.actor if isinstance(candidate, Wrote) else candidate.actor
        own = context if actor in (None, context.actor) else replace(context, actor=actor)
        match candidate:
            case Wrote():
                verdicts.append(write(pending, _resolved(candidate, aliases), own))
            case SetState():
                verdicts.append(_set_state(pending, candidate, own))
            case Revised():
                verdicts.append(_revise(pending, candidate, own))
            case Forgot():
                verdicts.append(_forget(pending, aliases.get(candidate.memory, candidate.memory), own))
            case Used():
                _note_uses(uses, candidate, aliases)
    for memory, (count, feedback) in sorted(uses.items()):
        if _seen(pending, memory, context) is not None:
            pending.apply(Use(memory=memory, count=count, feedback=feedback))
    return verdicts


def write(pending: Pending, wrote: Wrote, context: RuleContext) -> Verdict:
    """One candidate through the gate's state checks and the rule of its kind."""
    memory, overridden = wrote.memory, wrote.override is not None and is_human(context.actor)
    known = pending.live(memory.id) if memory.id.startswith(KEYED) else None
    if known is not None and known.scope == memory.scope:
        return Verdict(outcome="unchanged", memory=known, detail="this key was written before")
    checked: Memory | Verdict | None = None
    if context.guard is not None:
        checked = context.guard(pending, memory, context.policy)
    if checked is None:
        checked = gate.check_state(pending, memory, context.keyed, overridden=overridden)
    if isinstance(checked, Verdict):
        return refuse(pending, memory, checked, context)
    memory = checked
    if memory.kind == "episode":
        return _append(pending, memory, context)
    if pending.get(memory.id) is not None:
        return keep_out(pending, memory, "id", f"a memory {memory.id} exists already", "use revise", context)
    floor = context.policy.kinds.of(memory.kind).min_confidence
    sure = floor is None or memory.confidence > floor or "confidence" in context.skip
    if not sure and not overridden:
        detail = f"confidence {memory.confidence:g} is not above {floor or 0:g}"
        return keep_out(pending, memory, "confidence", detail, "confirm it, then remember it again", context)
    if wrote.supersedes is not None:
        return _supersede(pending, wrote.supersedes, memory, context)
    return _admit(pending, memory, context, overridden=overridden)


def counts_as_episode(memory: Memory) -> bool:
    """Whether a memory counts in the episode totals and makes a session."""
    return memory.kind == "episode" and memory.category not in UNCOUNTED


def needs_approval(memory: Memory, actor: str) -> bool:
    """Whether a write of this memory by this actor waits for a person."""
    if is_human(actor):
        return False
    if memory.kind == "skill":
        return look(memory.category or "") in APPROVED_ONLY
    first, *rest = _SLASH.split(memory.topic or "", maxsplit=1)
    return memory.kind == "canon" or (bool(rest) and look(first) == PROFILE)


def tombstone(old: Memory, actor: str) -> Memory:
    """The revision that ends a memory; what it said stays in its history."""
    return replace(old, rev=old.rev + 1, gone=True, actor=actor, text="", turns=(), data={}, approved=None)


def _admit(pending: Pending, memory: Memory, context: RuleContext, *, overridden: bool) -> Verdict:
    """Topic upsert, then near-duplicate, then capacity, then in."""
    old = pending.by_topic(memory.kind, memory.scope, memory.topic) if memory.topic else None
    if old is not None and memory.category == CONCEPT:
        return _merge(pending, old, memory, context)
    if old is not None:
        return _next_revision(pending, old, memory, context)
    other, contrast = _like(pending, memory, context, overridden=overridden) or (None, None)
    if other is not None and contrast is None:
        return _merge(pending, other, memory, context)
    sure = context.policy.canon.pass_confidence
    may_pass = sure is not None and memory.confidence >= sure and other is None
    if needs_approval(memory, context.actor) and not may_pass:
        return propose(pending, memory, 0, "an agent's word about this waits for a person", context)
    limit = context.policy.kinds.of(memory.kind).capacity
    full = limit is not None and pending.count(memory.kind) >= limit and "capacity" not in context.skip
    if full and not overridden:
        detail = f"the account is full: {limit} memories of kind {memory.kind}"
        return keep_out(pending, memory, "capacity", detail, "forget some, or raise the capacity", context)
    if other is not None:
        memory = replace(memory, links=_with_link(memory.links, Link(name="contrasts", to=other.id)))
    pending.apply(_approved(memory, context))
    if other is not None and contrast == "negation":
        propose_end(pending, other, f"{memory.id} says the opposite", context)
    contrasts = contrasts_of(pending, memory, other)
    return Verdict(
        outcome="admitted",
        memory=memory,
        detail=f"contrasts: {contrast}" if contrast else "",
        advice=way_to_replace(contrasts),
        contrasts=contrasts,
    )


def _like(
    pending: Pending, memory: Memory, context: RuleContext, *, overridden: bool = False
) -> tuple[Memory, str | None] | None:
    """What is there and most like it, with the contrast between them, where its kind minds that."""
    minds = context.policy.kinds.of(memory.kind).duplicates and "duplicate" not in context.skip
    return gate.nearest(pending, memory, context.policy.gate) if minds and not overridden else None


def _append(pending: Pending, memory: Memory, context: RuleContext) -> Verdict:
    """append_all: an episode goes in as it is, once, and never changes."""
    old = pending.get(memory.id)
    if old is None:
        pending.apply(memory)
        return Verdict(outcome="admitted", memory=memory)
    if old.text == memory.text and old.turns == memory.turns:
        return Verdict(outcome="unchanged", memory=old)
    detail = f"episode {memory.id} is already there and an episode never changes"
    return keep_out(pending, memory, "immutable", detail, "write a new episode", context)


_bytes = partial(msgspec.json.encode, order="deterministic")


def _next_revision(pending: Pending, old: Memory, new: Memory, context: RuleContext) -> Verdict:
    """latest_wins and careful_merge on an existing topic: the next revision of the same memory."""
    # Whoever says it and whenever; for Python 1 is True.
    again = replace(new, id=old.id, rev=old.rev, at=old.at, sandbox=old.sandbox, actor=old.actor)
    if again == old and _bytes(new.data) == _bytes(old.data):
        return Verdict(outcome="unchanged", memory=old)
    if _guarded(old, new, context):
        return propose(
            pending, replace(new, id=old.id), old.rev, "it would change what a person set", context
        )
    note_clash(pending, old, context)
    memory = _approved(
        replace(new, id=old.id, rev=old.rev + 1), context, is_approved=old.approved is not None
    )
    pending.apply(memory)
    return Verdict(
        outcome="superseding", memory=memory, detail=f"revision {memory.rev} of {memory.topic or memory.id}"
    )


def _supersede(pending: Pending, old_id: str, new: Memory, context: RuleContext) -> Verdict:
    """The new memory takes the old one's place; the old one ends in the same commit."""
    old = _seen(pending, old_id, context) or said_so(pending, old_id, new, context)
    if old is None:
        detail = f"there is no one live memory {old_id!r} to supersede"
        return keep_out(
            pending, new, "supersedes", detail, "`octavo recall` tells the id of what it finds", context
        )
    if old.kind == "episode":
        return keep_out(pending, new, "immutable", "an episode cannot be superseded", "forget it", context)
    if _guarded(old, new, context):
        return propose(
            pending, replace(new, id=old.id), old.rev, "it would replace what a person set", context
        )
    note_clash(pending, old, context)
    memory = replace(new, links=_with_link(new.links, Link(name="supersedes", to=old.id)))
    pending.apply(tombstone(old, context.actor))
    same, contrast = _like(pending, memory, context) or (None, None)
    is_said = same is not None and contrast is None and key_of(same.text) == key_of(memory.text)
    if same is not None and is_said and not _guarded(same, memory, context):
        # What says so already takes the place.
        memory = _merge(pending, same, memory, context).memory or memory
    else:
        pending.apply(_approved(memory, context))
    return Verdict(outcome="superseding", memory=memory, detail=f"in place of {old.id}")


def _merge(pending: Pending, old: Memory, new: Memory, context: RuleContext) -> Verdict:
    """validate_and_merge: a restatement joins what is there; the stronger wording wins."""
    stronger = new.confidence > old.confidence
    links = old.links
    for link in new.links:
        links = _with_link(links, link)
    merged = replace(
        old,
        topic=old.topic if needs_approval(new, context.actor) else old.topic or new.topic,
        text=new.text if stronger else old.text,
        data={**old.data, **new.data} if stronger else {**new.data, **old.data},
        confidence=max(old.confidence, new.confidence),
        salience=max(old.salience, new.salience),
        tags=tuple(dict.fromkeys((*old.tags, *new.tags))),
        links=links,
    )
    if merged != old:
        if _guarded(old, new, context):
            return propose(
                pending, replace(merged, actor=context.actor), old.rev, "it restates canon", context
            )
        merged = replace(merged, rev=old.rev + 1, actor=context.actor)
        pending.apply(merged)
    elif key_of(old.text) == key_of(new.text):
        return Verdict(outcome="merged", memory=old, check="duplicate", detail=f"{old.id} says exactly this")
    loser = old if stronger else new
    pending.apply(Merge(id=new.id, into=old.id, rev=merged.rev, text=loser.text, confidence=loser.confidence))
    return Verdict(outcome="merged", memory=merged, check="duplicate", detail=f"it restates {old.id}")


def _set_state(pending: Pending, wanted: SetState, context: RuleContext) -> Verdict:
    """latest_wins for a named state: replaced whole, or patched on top of what is there now."""
    old = pending.by_topic("register", context.scope, wanted.name)
    data = patch(old.data if old else {}, wanted.data) if wanted.patch else wanted.data
    memory = Memory(
        id=wanted.id,
        kind="register",
        scope=context.scope,
        topic=wanted.name,
        category=STATE,
        actor=context.actor,
        at=wanted.at,
        sandbox=context.sandbox,
        data=data,
    )
    checked = gate.check_state(pending, memory, context.keyed)
    if isinstance(checked, Verdict):
        return refuse(pending, memory, checked, context)
    if old is not None:
        return _next_revision(pending, old, checked, context)
    if needs_approval(checked, context.actor):
        return propose(pending, checked, 0, "an agent's word about this waits for a person", context)
    pending.apply(checked)
    return Verdict(outcome="admitted", memory=checked)


def _revise(pending: Pending, wanted: Revised, context: RuleContext) -> Verdict:
    """New values for some fields: the next revision, under the same gate."""
    old = _seen(pending, wanted.wanted.id, context)
    if old is None:
        return missing(pending, wanted.wanted.id, "revise", context)
    changes: dict[str, Any] = {name: getattr(wanted.wanted, name) for name in wanted.fields}
    new = replace(old, **changes, actor=context.actor)
    if old.kind == "episode":
        detail = f"episode {old.id} never changes"
        return keep_out(pending, new, "immutable", detail, "write a new episode, or forget this one", context)
    overridden = wanted.override is not None and is_human(context.actor)
    checked = gate.check_state(pending, new, context.keyed, overridden=overridden)
    if isinstance(checked, Memory) and old.kind == assembling.KIND:
        checked = assembling.amended(pending, old, checked, context.policy.assemblies.max_members)
    if isinstance(checked, Verdict):
        return refuse(pending, new, checked, context)
    new = checked
    holder = pending.by_topic(new.kind, new.scope, new.topic) if new.topic else None
    if holder is not None and holder.id != old.id:
        detail = f"topic {new.topic!r} belongs to {holder.id}"
        return keep_out(pending, new, "topic", detail, "revise that one", context)
    return _next_revision(pending, old, new, context)


def _forget(pending: Pending, id_: str, context: RuleContext) -> Verdict:
    """A tombstone: the memory ends, its history stays."""
    old = _seen(pending, id_, context)
    if old is None:
        return missing(pending, id_, "forget", context)
    if _guarded(old, old, context):
        return propose_end(pending, old, f"{context.actor} asks to forget it", context)
    note_clash(pending, old, context)
    pending.apply(tombstone(old, context.actor))
    reached = _reach_derived(pending, old, context)
    return Verdict(outcome="superseding", memory=old, detail=f"forgotten; {reached} derived memories changed")


def _reach_derived(pending: Pending, gone: Memory, context: RuleContext) -> int:
    """What was made from a forgotten memory loses the link and is marked; an edge without an end goes too."""
    reached = 0
    for memory in pending.referring(gone.id):
        is_other = gone.scope not in (SHARED, memory.scope)  # who names what it does not see learns nothing
        if memory.kind == "episode" or memory.id == gone.id or is_other:
            continue
        if memory.category == RELATIONSHIP and gone.id in memory.linked("about"):
            pending.apply(tombstone(memory, context.actor))
        else:
            lost = [*memory.data.get("forgotten_sources", ()), gone.id]
            links = tuple(link for link in memory.links if link.to != gone.id)
            data = {**memory.data, "forgotten_sources": lost}
            pending.apply(replace(memory, rev=memory.rev + 1, actor="system", links=links, data=data))
        reached += 1
    return reached


def _seen(pending: Pending, id_: str, context: RuleContext) -> Memory | None:
    """A live memory that the writer may see."""
    memory = pending.live(id_)
    hidden = memory is not None and context.visible is not None and memory.scope not in context.visible
    return None if hidden else memory


def _guarded(old: Memory, new: Memory, context: RuleContext) -> bool:
    """Whether changing what is there waits for a person."""
    if is_human(context.actor):
        return False
    return (
        old.approved is not None or needs_approval(old, context.actor) or needs_approval(new, context.actor)
    )


def _approved(memory: Memory, context: RuleContext, *, is_approved: bool = False) -> Memory:
    """A person's own guardrail or procedure, and an approved skill that a person changes, is approved by that
    person; nobody else's word approves."""
    if (
        memory.kind == "skill"
        and (is_approved or memory.category in APPROVED_ONLY)
        and is_human(context.actor)
    ):
        return replace(memory, approved=context.actor)
    return memory


def _with_link(links: tuple[Link, ...], link: Link) -> tuple[Link, ...]:
    return links if link in links else (*links, link)


def _note_uses(uses: dict[str, tuple[int, float]], used: Used, aliases: Mapping[str | None, str]) -> None:
    for memory in used.memories:
        id_ = aliases.get(memory, memory)
        count, feedback = uses.get(id_, (0, 0.0))
        uses[id_] = (count + 1, feedback + used.feedback)


def _resolved(wrote: Wrote, aliases: Mapping[str | None, str]) -> Wrote:
    """The candidate with crosslinks to temporary ids turned to permanent ones."""
    if not aliases:
        return wrote
    memory = wrote.memory
    links = tuple(replace(link, to=aliases.get(link.to, link.to)) for link in memory.links)
    data = dict(memory.data)
    if "crosslinks" in data:
        data["crosslinks"] = screening.mapped(data["crosslinks"], lambda id_: aliases.get(id_, id_))
    return replace(wrote, memory=replace(memory, links=links, data=data))
