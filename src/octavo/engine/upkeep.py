"""Upkeep: the work that no conversation waits for, done in the background or by `octavo upkeep`."""

from __future__ import annotations

from dataclasses import dataclass

from octavo.engine import redaction, review
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkeep:
    """What one round of upkeep did."""

    expired: int = 0
    swept: int = 0


def upkeep(spine: Spine, writer: Writer) -> Upkeep:
    """One round: lapsed proposals, unfinished redactions."""
    expired = review.expire(spine, writer)
    versions, _ = redaction.sweep(spine)
    return Upkeep(expired=expired, swept=len(versions))
