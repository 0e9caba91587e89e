"""Packing: long histories into segments, and the state into checkpoints; nothing waits for either."""

from __future__ import annotations

from octavo.engine.attachments import unswept
from octavo.engine.spine import Spine
from octavo.storage import checkpoints, sweeps


def pack(spine: Spine) -> tuple[int, int | None]:
    """Seal whole thousands of versions, and keep a checkpoint; says how many, and of which version."""
    mark = sweeps.next_mark(spine.store)  # before anything is read: what a redaction erases is not packed
    head = spine.head().version
    if unswept(spine):  # this machine's state may still hold what is being erased
        return 0, None
    sealed = spine.ledger.seal(head, unless=mark)
    return sealed, checkpoints.make(spine.store, spine.state, unless=mark)
