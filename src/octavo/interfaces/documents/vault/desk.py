"""The account behind a Memory Vault: it refuses what seed 002's gate refuses, at the commit itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from octavo.domain.buffer import Wrote
from octavo.domain.gate import Stop
from octavo.domain.memory import Kind, Memory, Refusal
from octavo.domain.rules import Candidate
from octavo.domain.state import State
from octavo.domain.verdicts import Verdict
from octavo.engine.account import Account
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.interfaces.formats.vault import restates

_TIERS: tuple[Kind, ...] = ("canon", "register")


class Desk(Account):
    """An account where a restatement is refused, not merged, and canon and registers share one capacity.

    Both checks run on the state the commit builds on, again at every attempt, so they hold however many
    writers there are.
    """

    def __init__(self, spine: Spine, *, actor: str, scope: str | None, max_active: int) -> None:
        super().__init__(spine, actor=actor, scope=scope)
        self._max_active = max_active

    @classmethod
    def of(cls, account: Account, *, max_active: int) -> Desk:
        """The desk on an open account."""
        return cls(account._spine, actor=account.actor, scope=account.scope, max_active=max_active)

    def must_fit(self, item: Mapping[str, Any]) -> None:
        """Raise BadInput if an item could not even be a candidate."""
        given = dict(item)
        self._writer(given.pop("scope")).candidate(**given)

    def _settled(self, state: State, writer: Writer, candidate: Candidate) -> Verdict:
        stop = self._stop(state, candidate.memory) if isinstance(candidate, Wrote) else None
        if stop is None or not isinstance(candidate, Wrote):
            return super()._settled(state, writer, candidate)
        state.apply(_refusal(candidate.memory, stop, writer))
        return Verdict(outcome="refused", check=stop.check, detail=stop.detail, advice=stop.advice)

    def _stop(self, state: State, memory: Memory) -> Stop | None:
        if memory.topic and state.by_topic(memory.kind, memory.scope, memory.topic) is not None:
            return None
        for kind in _TIERS:
            for other in state.alike(kind, memory.scope, memory.text):
                if restates(other.text, memory.text, self.policy.gate):
                    percent = f"{self.policy.gate.sequence_ratio:.0%}"
                    detail = f"Duplicate detected (similarity >= {percent}): existing id={other.id}"
                    return Stop(check="duplicate", detail=detail, advice="update that one instead")
        if sum(state.count(kind) for kind in _TIERS) >= self._max_active:
            detail = f"the vault is full: {self._max_active} active memories"
            return Stop(check="capacity", detail=detail, advice="delete or consolidate some first")
        return None


def _refusal(memory: Memory, stop: Stop, writer: Writer) -> Refusal:
    return Refusal(
        id=memory.id,
        check=stop.check,
        detail=stop.detail,
        kind=memory.kind,
        scope=memory.scope,
        text=memory.text,
        confidence=memory.confidence,
        at=writer.spine.now(),
    )
