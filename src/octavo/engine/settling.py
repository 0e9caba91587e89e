"""What is written outside a sandbox: each candidate through guard and rules, all of a call in one version."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from octavo.domain import gate, outcomes, rules
from octavo.domain.buffer import Wrote
from octavo.domain.memory import Memory, Refusal
from octavo.domain.policy import Policy
from octavo.domain.rules import Candidate
from octavo.domain.state import State
from octavo.domain.verdicts import Verdict
from octavo.engine.spine import Plan, Spine
from octavo.engine.writing import Writer
from octavo.storage import refusals
from octavo.storage.state_view import DbView

# A check of the caller's own, on the state the commit builds on and again at every attempt.
Guard = Callable[[State, Memory, Policy], gate.Stop | None]
Wanted = tuple[Writer, Candidate] | Verdict


def settle(
    spine: Spine, wanted: Sequence[Wanted], *, cause: str, actor: str, scope: str | None, guard: Guard | None
) -> list[Verdict]:
    """Commit the candidates of one call; refusals go to their log and make no version."""
    found: list[Verdict] = []
    refused: list[Refusal] = []

    def decide(view: DbView) -> Plan | None:
        state = State(view)
        found[:] = [item if isinstance(item, Verdict) else _settled(state, *item, guard) for item in wanted]
        refused[:] = [c for c in state.changes if isinstance(c, Refusal)]
        changes = [c for c in state.changes if not isinstance(c, Refusal)]
        return Plan(changes=changes, cause=cause, actor=actor, scope=scope) if changes else None

    spine.commit(decide)
    for refusal in refused:
        refusals.add(spine.store, refusal, keep=spine.policy.gate.refusals_kept)
    return found


def _settled(state: State, writer: Writer, candidate: Candidate, guard: Guard | None) -> Verdict:
    if isinstance(candidate, Wrote):
        known = state.live(candidate.memory.id) if candidate.memory.id.startswith("key_") else None
        if known is not None:
            return Verdict(outcome="unchanged", memory=known, detail="this key was written before")
        stop = guard(state, candidate.memory, writer.spine.policy) if guard else None
        if stop is not None:
            return outcomes.refuse(state, candidate.memory, stop, writer.setting())
    after, found = rules.consolidate(state, [candidate], writer.setting())
    for change in after.changes:
        state.apply(change)
    return found[-1]
