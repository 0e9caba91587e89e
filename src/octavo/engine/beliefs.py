"""Beliefs: what a sphere holds for true waits for a person, and is contested when contradicted."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from octavo.domain import cores, gate, likeness
from octavo.domain.filters import Filter
from octavo.domain.memory import Change, Link, Memory, Proposal
from octavo.domain.sentences import split
from octavo.domain.text import key_of
from octavo.engine.spine import Spine
from octavo.storage.state_view import DbView

_CHALLENGES, _CONTESTED_CONFIDENCE = 3, 0.4


def contest(spine: Spine) -> list[str]:
    """Beliefs that several of the last sessions contradict lose their approval; returns their ids."""
    view = spine.head()
    beliefs = view.memories(Filter(kinds=("canon",), category="worldview"))
    held = [m for m in beliefs if m.data.get("sphere") and m.data.get("epistemic_state") != "contested"]
    contested = [belief.id for belief in held if _challenges(spine, view, belief) >= _CHALLENGES]

    def changes(now: DbView) -> Iterator[Memory]:
        for _, belief in now.many(contested).values():
            data = {**belief.data, "epistemic_state": "contested"}
            doubted = replace(belief, confidence=_CONTESTED_CONFIDENCE, approved=None, data=data)
            if not belief.gone:
                yield replace(doubted, rev=belief.rev + 1, actor="system")

    if contested:
        spine.change(changes, cause="contest beliefs", actor="system")
    return contested


def hypotheses(spine: Spine, view: DbView, sphere: Memory) -> list[Change]:
    """A sphere's beliefs as proposals; only a person makes them part of the standing brief.

    What waits already, holds already or may not be said is not asked.
    """
    holding = view.memories(Filter(kinds=("canon",), category="worldview", scopes=(sphere.scope,)))
    asked = {key_of(m.text) for m in (*holding, *(p.memory for p in view.proposals()))}
    proposals: list[Change] = []
    for belief in cores.read(cores.Sphere, sphere.data).abstracted_knowledge.beliefs:
        canon = Memory(
            id=spine.new_id(),
            kind="canon",
            text=belief.belief,
            scope=sphere.scope,
            category="worldview",
            source="promotion",
            actor="system",
            at=sphere.at,
            confidence=belief.confidence,
            links=tuple(Link(name="evidence", to=source) for source in belief.evidence),
            data={"sphere": sphere.id, "epistemic_state": "confirmed"},
        )
        if key_of(canon.text) in asked or not _may_be_said(spine, view, canon):
            continue
        reason = f"a belief of {sphere.id}, from {len(belief.evidence)} sources"
        proposals.append(
            Proposal(
                id=spine.new_id(), action="write", memory=canon, reason=reason, by="system", at=spine.now()
            )
        )
    return proposals


def _may_be_said(spine: Spine, view: DbView, canon: Memory) -> bool:
    """Whether the gate would let a belief in: no secret, nothing that a person refused or erased."""
    checked = gate.check_text(canon, spine.policy)
    return isinstance(checked, Memory) and isinstance(gate.check_state(view, checked, spine.keyed), Memory)


def _challenges(spine: Spine, view: DbView, belief: Memory) -> int:
    """How many of the scope's last sessions say the opposite of a belief."""
    closed = view.sessions(belief.scope)
    radix = spine.policy.compression.levels[0].radix
    count = 0
    for row in spine.state.sessions(belief.scope, max(closed - radix, 0) + 1, closed):
        said_there = Filter(kinds=("fact", "episode"), sandbox=row.sandbox, scopes=(belief.scope,))
        count += any(_contradicts(spine, belief.text, m) for m in view.memories(said_there))
    return count


def _contradicts(spine: Spine, belief: str, memory: Memory) -> bool:
    texts = [part for turn in memory.turns for part in split(turn.text)] or [memory.text]
    return any(
        likeness.is_near(belief, text, spine.policy.gate) and likeness.contrast(belief, text) == "negation"
        for text in texts
    )
