"""The rules of consolidation, pure: what buffered candidates become on top of a state.

A commit that loses the race runs them again on the newer state; nothing here remembers anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from octavo.domain import gate
from octavo.domain.buffer import Forgot, Revised, SetState, Used, Wrote, patch
from octavo.domain.gate import Stop
from octavo.domain.memory import (
    STATE,
    UNCOUNTED,
    Link,
    Memory,
    Merge,
    Use,
    is_human,
)
from octavo.domain.outcomes import Setting, keep_out, missing, note_clash, propose, propose_end, refuse
from octavo.domain.state import State, View
from octavo.domain.text import key_of
from octavo.domain.verdicts import Verdict

Candidate = Wrote | SetState | Revised | Forgot | Used

PROFILE = "profile/"
GUARDRAIL = "guardrail"
CONCEPT = "concept"  # entries for one concept merge: the surer one stays, the other is recorded
RELATIONSHIP = "relationship"


def consolidate(view: View, wanted: Sequence[Candidate], setting: Setting) -> tuple[State, list[Verdict]]:
    """Apply the rules to candidates in order, each on top of the ones before it."""
    state = State(view)
    aliases: dict[str | None, str] = {
        w.alias: w.memory.id for w in wanted if isinstance(w, Wrote) and w.alias
    }
    verdicts = []
    uses: dict[str, tuple[int, float]] = {}
    for candidate in wanted:
        match candidate:
            case Wrote():
                verdicts.append(write(state, _resolved(candidate, aliases), setting))
            case SetState():
                verdicts.append(_set_state(state, candidate, setting))
            case Revised():
                verdicts.append(_revise(state, candidate, setting))
            case Forgot():
                verdicts.append(_forget(state, aliases.get(candidate.memory, candidate.memory), setting))
            case Used():
                _note_uses(uses, candidate, aliases)
    for memory, (count, feedback) in sorted(uses.items()):
        if state.get(memory) is not None:
            state.apply(Use(memory=memory, count=count, feedback=feedback))
    return state, verdicts


def write(state: State, wrote: Wrote, setting: Setting) -> Verdict:
    """One candidate through the gate's state checks and the rule of its kind."""
    memory = wrote.memory
    stopped = gate.check_state(state, memory, setting.keyed, overridden=wrote.override is not None)
    if isinstance(stopped, Stop):
        return refuse(state, memory, stopped, setting)
    memory = stopped
    if memory.kind == "episode":
        return _append(state, memory, setting)
    if state.get(memory.id) is not None:
        return keep_out(state, memory, "id", f"a memory {memory.id} exists already", "use revise", setting)
    floor = setting.policy.kinds.of(memory.kind).min_confidence
    sure = floor is None or memory.confidence > floor or "confidence" in setting.skip
    if not sure and wrote.override is None:
        detail = f"confidence {memory.confidence:g} is not above {floor or 0:g}"
        return keep_out(state, memory, "confidence", detail, "confirm it, then remember it again", setting)
    if wrote.supersedes is not None:
        return _supersede(state, wrote.supersedes, memory, setting)
    return _settle(state, memory, setting, overridden=wrote.override is not None)


def counts_as_episode(memory: Memory) -> bool:
    """Whether a memory counts in the episode totals and makes a session."""
    return memory.kind == "episode" and memory.category not in UNCOUNTED


def needs_approval(memory: Memory, actor: str) -> bool:
    """Whether a write of this memory by this actor waits for a person."""
    if is_human(actor):
        return False
    if memory.kind == "skill":
        return memory.category == GUARDRAIL
    return memory.kind == "canon" or (memory.topic or "").startswith(PROFILE)


def tombstone(old: Memory, actor: str) -> Memory:
    """The revision that ends a memory; what it said stays in its history."""
    return replace(old, rev=old.rev + 1, gone=True, actor=actor, text="", turns=(), data={}, approved=None)


def _settle(state: State, memory: Memory, setting: Setting, *, overridden: bool) -> Verdict:
    """Topic upsert, then near-duplicate, then capacity, then in."""
    old = state.by_topic(memory.kind, memory.scope, memory.topic) if memory.topic else None
    if old is not None and memory.category == CONCEPT:
        return _merge(state, old, memory, setting)
    if old is not None:
        return _next_revision(state, old, memory, setting)
    like = None
    if setting.policy.kinds.of(memory.kind).duplicates and "duplicate" not in setting.skip and not overridden:
        like = gate.nearest(state, memory, setting.policy.gate)
    if like is not None and like.contrast is None:
        return _merge(state, like.memory, memory, setting)
    if needs_approval(memory, setting.actor) and not _may_pass(memory, like is not None, setting):
        return propose(state, memory, 0, "an agent's word about this waits for a person", setting)
    limit = setting.policy.kinds.of(memory.kind).capacity
    full = limit is not None and state.count(memory.kind) >= limit and "capacity" not in setting.skip
    if full and not overridden:
        detail = f"the account is full: {limit} memories of kind {memory.kind}"
        return keep_out(state, memory, "capacity", detail, "forget some, or raise the capacity", setting)
    if like is not None:
        memory = replace(memory, links=_with_link(memory.links, Link(name="contrasts", to=like.memory.id)))
    state.apply(_approved(memory, setting))
    if like is not None and like.contrast == "negation":
        propose_end(state, like.memory, f"{memory.id} says the opposite", setting)
    return Verdict(outcome="admitted", memory=memory, detail=f"contrasts: {like.contrast}" if like else "")


def _append(state: State, memory: Memory, setting: Setting) -> Verdict:
    """append_all: an episode goes in as it is, once, and never changes."""
    old = state.get(memory.id)
    if old is None:
        state.apply(memory)
        return Verdict(outcome="admitted", memory=memory)
    if old.text == memory.text and old.turns == memory.turns:
        return Verdict(outcome="unchanged", memory=old)
    detail = f"episode {memory.id} is already there and an episode never changes"
    return keep_out(state, memory, "immutable", detail, "write a new episode", setting)


def _next_revision(state: State, old: Memory, new: Memory, setting: Setting) -> Verdict:
    """latest_wins and careful_merge on an existing topic: the next revision of the same memory."""
    if _same(old, new):
        return Verdict(outcome="unchanged", memory=old)
    if _guarded(old, new, setting):
        return propose(state, replace(new, id=old.id), old.rev, "it would change what a person set", setting)
    note_clash(state, old, setting)
    memory = _approved(replace(new, id=old.id, rev=old.rev + 1), setting)
    state.apply(memory)
    return Verdict(
        outcome="superseding", memory=memory, detail=f"revision {memory.rev} of {memory.topic or memory.id}"
    )


def _supersede(state: State, old_id: str, new: Memory, setting: Setting) -> Verdict:
    """The new memory takes the old one's place; the old one ends in the same commit."""
    old = _seen(state, old_id, setting)
    if old is None:
        detail = f"there is no live memory {old_id} to supersede"
        return keep_out(state, new, "supersedes", detail, "look the id up and try again", setting)
    if old.kind == "episode":
        return keep_out(state, new, "immutable", "an episode cannot be superseded", "forget it", setting)
    if _guarded(old, new, setting):
        return propose(state, replace(new, id=old.id), old.rev, "it would replace what a person set", setting)
    note_clash(state, old, setting)
    memory = replace(new, links=_with_link(new.links, Link(name="supersedes", to=old.id)))
    state.apply(tombstone(old, setting.actor))
    state.apply(_approved(memory, setting))
    return Verdict(outcome="superseding", memory=memory, detail=f"in place of {old.id}")


def _merge(state: State, old: Memory, new: Memory, setting: Setting) -> Verdict:
    """validate_and_merge: a restatement joins what is there; the stronger wording wins."""
    stronger = new.confidence > old.confidence
    links = old.links
    for link in new.links:
        links = _with_link(links, link)
    merged = replace(
        old,
        text=new.text if stronger else old.text,
        data={**old.data, **new.data} if stronger else {**new.data, **old.data},
        confidence=max(old.confidence, new.confidence),
        salience=max(old.salience, new.salience),
        tags=tuple(dict.fromkeys((*old.tags, *new.tags))),
        links=links,
    )
    if merged != old:
        if _guarded(old, new, setting):
            return propose(state, replace(merged, actor=setting.actor), old.rev, "it restates canon", setting)
        merged = replace(merged, rev=old.rev + 1, actor=setting.actor)
        state.apply(merged)
    elif key_of(old.text) == key_of(new.text):
        return Verdict(outcome="merged", memory=old, check="duplicate", detail=f"{old.id} says exactly this")
    loser = old if stronger else new
    state.apply(Merge(id=new.id, into=old.id, rev=merged.rev, text=loser.text, confidence=loser.confidence))
    return Verdict(outcome="merged", memory=merged, check="duplicate", detail=f"it restates {old.id}")


def _set_state(state: State, wanted: SetState, setting: Setting) -> Verdict:
    """latest_wins for a named state: replaced whole, or patched on top of what is there now."""
    old = state.by_topic("register", setting.scope, wanted.name)
    data = patch(old.data if old else {}, wanted.data) if wanted.patch else wanted.data
    memory = Memory(
        id=wanted.id,
        kind="register",
        scope=setting.scope,
        topic=wanted.name,
        category=STATE,
        actor=setting.actor,
        at=wanted.at,
        session=setting.sandbox,
        data=data,
    )
    if old is not None:
        return _next_revision(state, old, memory, setting)
    state.apply(memory)
    return Verdict(outcome="admitted", memory=memory)


def _revise(state: State, wanted: Revised, setting: Setting) -> Verdict:
    """New values for some fields: the next revision, under the same gate."""
    old = _seen(state, wanted.wanted.id, setting)
    if old is None:
        return missing(state, wanted.wanted.id, "revise", setting)
    changes: dict[str, Any] = {name: getattr(wanted.wanted, name) for name in wanted.fields}
    new = replace(old, **changes, actor=setting.actor)
    if old.kind == "episode":
        detail = f"episode {old.id} never changes"
        return keep_out(state, new, "immutable", detail, "write a new episode, or forget this one", setting)
    stopped = gate.check_state(state, new, setting.keyed, overridden=wanted.override is not None)
    if isinstance(stopped, Stop):
        return refuse(state, new, stopped, setting)
    holder = state.by_topic(new.kind, new.scope, new.topic) if new.topic else None
    if holder is not None and holder.id != old.id:
        detail = f"topic {new.topic!r} belongs to {holder.id}"
        return keep_out(state, new, "topic", detail, "revise that one", setting)
    return _next_revision(state, old, new, setting)


def _forget(state: State, id_: str, setting: Setting) -> Verdict:
    """A tombstone: the memory ends, its history stays."""
    old = _seen(state, id_, setting)
    if old is None:
        return missing(state, id_, "forget", setting)
    if _guarded(old, old, setting):
        return propose_end(state, old, f"{setting.actor} asks to forget it", setting)
    note_clash(state, old, setting)
    state.apply(tombstone(old, setting.actor))
    reached = _reach_derived(state, old, setting)
    return Verdict(outcome="superseding", memory=old, detail=f"forgotten; {reached} derived memories changed")


def _reach_derived(state: State, gone: Memory, setting: Setting) -> int:
    """What was made from a forgotten memory loses the link and is marked; an edge without an end goes too."""
    reached = 0
    for memory in state.referring(gone.id):
        if memory.kind == "episode" or memory.id == gone.id:
            continue
        if memory.category == RELATIONSHIP and gone.id in memory.linked("about"):
            state.apply(tombstone(memory, setting.actor))
        else:
            lost = [*memory.data.get("forgotten_sources", ()), gone.id]
            links = tuple(link for link in memory.links if link.to != gone.id)
            data = {**memory.data, "forgotten_sources": lost}
            state.apply(replace(memory, rev=memory.rev + 1, actor="system", links=links, data=data))
        reached += 1
    return reached


def _seen(state: State, id_: str, setting: Setting) -> Memory | None:
    """A live memory that the writer may see."""
    memory = state.live(id_)
    hidden = memory is not None and setting.visible is not None and memory.scope not in setting.visible
    return None if hidden else memory


def _guarded(old: Memory, new: Memory, setting: Setting) -> bool:
    """Whether changing what is there waits for a person."""
    if is_human(setting.actor):
        return False
    return (
        old.approved is not None or needs_approval(old, setting.actor) or needs_approval(new, setting.actor)
    )


def _may_pass(memory: Memory, clashes: bool, setting: Setting) -> bool:
    threshold = setting.policy.canon.pass_confidence
    return threshold is not None and memory.confidence >= threshold and not clashes


def _approved(memory: Memory, setting: Setting) -> Memory:
    """A person's own guardrail is approved by the person; nobody else's word approves anything."""
    if memory.kind == "skill" and memory.category == GUARDRAIL and is_human(setting.actor):
        return replace(memory, approved=setting.actor)
    return memory


def _same(old: Memory, new: Memory) -> bool:
    """Whether a write says exactly what is there, whoever says it and whenever."""
    return replace(new, id=old.id, rev=old.rev, at=old.at, session=old.session, actor=old.actor) == old


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
        data["crosslinks"] = _renamed(data["crosslinks"], aliases)
    return replace(wrote, memory=replace(memory, links=links, data=data))


def _renamed(value: Any, aliases: Mapping[str | None, str]) -> Any:
    match value:
        case str():
            return aliases.get(value, value)
        case Mapping():
            return {key: _renamed(item, aliases) for key, item in value.items()}
        case list() | tuple():
            return [_renamed(item, aliases) for item in value]
        case _:
            return value


def episodes_in(changes: Iterable[object]) -> int:
    """How many new episodes changes hold that count."""
    return sum(
        1 for c in changes if isinstance(c, Memory) and c.rev == 1 and not c.gone and counts_as_episode(c)
    )
