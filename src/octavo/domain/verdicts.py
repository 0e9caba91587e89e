"""What became of a write, as values: a verdict for each candidate, a consolidation for a sandbox."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from octavo.domain.memory import Change, Clash, Memory, Merge, Proposal, Refusal
from octavo.errors import Immutable, Refused

Outcome = Literal["admitted", "superseding", "merged", "proposed", "refused", "unchanged"]


class Contrast(Struct, frozen=True, kw_only=True):
    """A memory that is there and that a new one may be about to replace; both stay until somebody says so."""

    id: str
    text: str


class Verdict(Struct, frozen=True, kw_only=True):
    """Truthy when the memory is in; otherwise `check` names what kept it out and `advice` what to do.

    `contrasts` are memories that say otherwise, or that the new one seems to change.
    """

    outcome: Outcome
    memory: Memory | None = None
    check: str | None = None
    detail: str = ""
    advice: str = ""
    proposal: str | None = None
    contrasts: tuple[Contrast, ...] = ()

    def __bool__(self) -> bool:
        return self.outcome in ("admitted", "superseding", "merged", "unchanged")

    def or_raise(self) -> Memory:
        """The memory, or the refusal as an error."""
        if self and self.memory is not None:
            return self.memory
        kind = Immutable if self.check == "immutable" else Refused
        what = f"it waits for approval as {self.proposal}" if self.proposal else f"refused by {self.check}"
        raise kind(f"the memory is not in: {what}: {self.detail}", hint=self.advice or None)


def refused(check: str, detail: str, advice: str = "") -> Verdict:
    """What a check says of a memory that stays out."""
    return Verdict(outcome="refused", check=check, detail=detail, advice=advice)


class Consolidation(Struct, frozen=True, kw_only=True):
    """What a consolidation did; it can be read again from the version's own lines."""

    version: int
    added: tuple[str, ...] = ()
    merged: tuple[Merge, ...] = ()
    superseded: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    clashes: tuple[Clash, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    session: int | None = None


def summarise(version: int, changes: Iterable[Change], session: int | None = None) -> Consolidation:
    """The consolidation that a version's changes amount to."""
    found = list(changes)
    merged = tuple(c for c in found if isinstance(c, Merge))
    joined = {(m.into, m.rev) for m in merged}
    memories = [c for c in found if isinstance(c, Memory)]
    later = [m for m in memories if m.rev > 1 and not m.gone and (m.id, m.rev) not in joined]
    return Consolidation(
        version=version,
        added=tuple(m.id for m in memories if m.rev == 1 and not m.gone),
        merged=merged,
        superseded=tuple(m.id for m in later),
        forgotten=tuple(m.id for m in memories if m.gone),
        refused=tuple(c for c in found if isinstance(c, Refusal)),
        clashes=tuple(c for c in found if isinstance(c, Clash)),
        proposals=tuple(c for c in found if isinstance(c, Proposal)),
        session=session,
    )
