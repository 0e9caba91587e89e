"""Upkeep: the work that no conversation waits for, done in the background or by `octavo upkeep`."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.engine import beliefs, compress, redaction, retirement, review
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.models.summarisers import Summariser


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What one round of upkeep did, and what it found wrong with the index."""

    expired: int = 0
    swept: int = 0
    made: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    contested: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def upkeep(spine: Spine, writer: Writer, summariser: Summariser) -> Upkeep:
    """One round: redactions, due cores and spheres, retirement, contested beliefs, lapsed proposals."""
    swept = redaction.sweep(spine)
    made = compress.compress(spine, summariser) if spine.policy.compression.mode != "manual" else []
    return Upkeep(
        swept=len(swept.versions),
        made=tuple(memory.id for memory in made),
        retired=tuple(retirement.retire(spine)),
        contested=tuple(beliefs.contest(spine)),
        expired=review.expire(spine, writer),
    )
