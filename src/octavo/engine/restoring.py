"""Restoring: the live memories made equal to an older version's, as a new version."""

from __future__ import annotations

from dataclasses import replace

from octavo.domain import gate
from octavo.domain.memory import Memory
from octavo.engine.spine import Plan, Spine
from octavo.storage.codec import REDACTED
from octavo.storage.ledger import Version
from octavo.storage.state_view import DbView


def restore(spine: Spine, target: int, actor: str) -> Version | None:
    """Commit what makes the newest version say what an older one said; None if it does already."""

    def decide(view: DbView) -> Plan:
        old = spine.state.at(target)
        changes: list[Memory] = []
        for id_ in sorted(spine.state.ids_changed(target, view.version)):
            now, then = view.get(id_), old.get(id_)
            back = _back(now, then, actor) if now else None
            if back is not None and not _stays_out(spine, view, back):
                changes.append(back)
        return Plan(changes=changes, cause=f"restore {target}", actor=actor)

    return spine.commit(decide)


def _stays_out(spine: Spine, view: DbView, memory: Memory) -> bool:
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
