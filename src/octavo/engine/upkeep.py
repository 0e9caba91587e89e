"""Upkeep: the work that no conversation waits for, done in the background or by `octavo upkeep`."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from octavo.engine import assemble, beliefs, compress, merging, projections, redaction, retirement, review
from octavo.engine.attachments import unswept
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.models.summarisers import Summariser
from octavo.storage import checkpoints, sweeps
from octavo.storage.projections import Projection


class Upkeep(Struct, frozen=True, kw_only=True):
    """What one round of upkeep did, and what it found wrong with what is derived."""

    expired: int = 0
    swept: int = 0
    made: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    contested: tuple[str, ...] = ()
    sealed: int = 0
    checkpoint: int | None = None
    assembled: tuple[str, ...] = ()
    merged: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def upkeep(
    spine: Spine, writer: Writer, summariser: Summariser, indexing: Indexing, walk: Sequence[Projection]
) -> Upkeep:
    """One round: redactions, cores and spheres, retirement, beliefs, proposals, assemblies, packing.

    What lies in the open follows; everything on the `walk` is proved.
    """
    swept, *_ = redaction.sweep(spine)
    for projection in projections.outside(spine):
        projection.follow()
    made = compress.compress(spine, summariser) if spine.policy.compression.mode != "manual" else []
    retired, contested = retirement.retire(spine), beliefs.contest(spine)
    expired, ended = review.expire(spine, writer), assemble.end_small(spine)
    problems = [why for projection in walk for why in projection.verify(stamp=True)]
    # What is damaged is told before anybody groups by it, and would be made anew.
    may_group = spine.policy.assemblies.mode != "manual" and indexing.is_used and not problems
    grouped = assemble.assemble(spine, indexing) if may_group else []
    merged = merging.merge_alike(spine, indexing) if may_group else ()
    sealed, checkpoint = _pack(spine)
    return Upkeep(
        swept=len(swept),
        made=tuple(memory.id for memory in made),
        retired=tuple(retired),
        contested=tuple(contested),
        expired=expired,
        assembled=(*ended, *grouped),
        merged=tuple(merged),
        sealed=sealed,
        checkpoint=checkpoint,
        problems=tuple(problems),
    )


def _pack(spine: Spine) -> tuple[int, int | None]:
    """Seal whole thousands of versions, and keep a checkpoint; says how many, and of which version."""
    mark = sweeps.next_mark(spine.store)  # before anything is read: what a redaction erases is not packed
    head = spine.head().version
    if unswept(spine):  # this machine's state may still hold what is being erased
        return 0, None
    sealed = spine.ledger.seal(head, unless=mark)
    return sealed, checkpoints.make(spine.store, spine.state, unless=mark)
