"""What a new fact contrasts with, told to whoever writes it, and which older fact a writer means by a text.

Nothing is decided here: what replaces what is a matter of the question, or of the writer's own word.
"""

from __future__ import annotations

from collections.abc import Sequence

from octavo.domain import likeness
from octavo.domain.corrections import is_change, may_replace, tells_a_change
from octavo.domain.filters import Filter
from octavo.domain.memory import SHARED, Kind, Memory
from octavo.domain.readings import read
from octavo.domain.rivals import SHORTEST_NAME
from octavo.domain.state import Pending
from octavo.domain.text import key_of
from octavo.domain.verdicts import RuleContext

_MOST = 3
_COMPARED = 4  # look-alikes, the nearest first
_NEWEST, _FEW = 24, 8  # facts that are looked at, beside so many written at once
_CHANGING = ("fact", "register")
_STATED: tuple[Kind, ...] = ("fact", "register", "canon", "skill")


def contrasts_of(pending: Pending, memory: Memory, like: Memory | None) -> tuple[Memory, ...]:
    """A look-alike that says otherwise, and what the new fact's own words seem to change.

    That is not looked for among many written at once: there nobody waits for advice.
    """
    found = {like.id: like} if like is not None else {}
    if len(pending.own) <= _FEW and memory.kind in _CHANGING and is_change(memory.text):
        alike = pending.alike(memory.kind, memory.scope, memory.text)[:_COMPARED]
        for other in (*(m for m in alike if may_replace(m.text, memory.text)), *_changed(pending, memory)):
            if other.id != memory.id and len(found) < _MOST:
                found.setdefault(other.id, other)
    return tuple(found.values())


def _changed(pending: Pending, memory: Memory) -> list[Memory]:
    """Of the newest facts those that the new one tells a change of in other words: "lives", "moved"."""
    wanted = Filter(kinds=(memory.kind,), scopes=(memory.scope,), limit=_NEWEST, newest=True)
    first, told = memory.text[:SHORTEST_NAME], read(memory.text)
    newest = (m for m in pending.parent.memories(wanted) if m.text.startswith(first))
    return [m for m in newest if tells_a_change(read(m.text), told)]


def way_to_replace(contrasts: Sequence[Memory]) -> str:
    """What a writer can do if the new fact takes the older one's place."""
    if not contrasts:
        return ""
    return (
        f"if it takes the place of {contrasts[0].id}, say supersedes={contrasts[0].id!r}; "
        "a value that changes again belongs in a register with a topic"
    )


def said_so(pending: Pending, text: str, new: Memory, context: RuleContext) -> Memory | None:
    """The one live memory that says a text, in these words or nearly; None if there are several."""
    alike = [
        other
        for kind in _STATED
        for scope in dict.fromkeys((new.scope, SHARED))
        for other in pending.alike(kind, scope, text)
        if context.visible is None or other.scope in context.visible
    ]
    exact = {other.id: other for other in alike if key_of(other.text) == key_of(text)}
    near = {other.id: other for other in alike if likeness.is_near(other.text, text, context.policy.gate)}
    meant = list((exact or near).values())
    return meant[0] if len(meant) == 1 else None
