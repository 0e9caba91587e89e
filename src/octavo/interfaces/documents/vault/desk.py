"""What seed 002's gate refuses and the engine does not: a check that runs at the commit itself."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.domain.gate import Stop
from octavo.domain.memory import Kind, Memory
from octavo.domain.policy import Policy
from octavo.domain.state import State
from octavo.interfaces.formats.vault import restates

_TIERS: tuple[Kind, ...] = ("canon", "register")


@dataclass(frozen=True, slots=True, kw_only=True)
class Desk:
    """The guard of a vault: a restatement is refused, not merged, and both tiers share one capacity.

    It is asked about the state the commit builds on, again at every attempt, so it holds however many
    writers there are. Without `max_active` the policy's own capacities are the only ones.
    """

    max_active: int | None

    def __call__(self, state: State, memory: Memory, policy: Policy) -> Stop | None:
        """Why a memory stays out, None if the engine may decide."""
        if memory.topic and state.by_topic(memory.kind, memory.scope, memory.topic) is not None:
            return None
        for kind in _TIERS:
            for other in state.alike(kind, memory.scope, memory.text):
                if restates(other.text, memory.text, policy.gate):
                    percent = f"{policy.gate.sequence_ratio:.0%}"
                    detail = f"Duplicate detected (similarity >= {percent}): existing id={other.id}"
                    return Stop(check="duplicate", detail=detail, advice="update that one instead")
        if self.max_active is not None and sum(map(state.count, _TIERS)) >= self.max_active:
            detail = f"the vault is full: {self.max_active} active memories"
            return Stop(check="capacity", detail=detail, advice="delete or consolidate some first")
        return None
