"""The list of everything derived from one account's ledger, in the order in which a redaction reaches it."""

from __future__ import annotations

from collections.abc import Iterator

from octavo.engine import mirror
from octavo.engine.attachments import KEY, Attachments
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.storage.projections import Projection


def outside(spine: Spine) -> list[Projection]:
    """What lies in the open, readable for other programs; erased first, while the ledger has the wordings."""
    if spine.store.read(KEY, first=1) is None:
        return list(spine.followers)
    # The trees first: what is then left in one is a person's, and holds the sweep up.
    return [*spine.followers, *mirror.listed(spine), Attachments(spine)]


def inside(spine: Spine, index: Indexing | None = None) -> Iterator[Projection]:
    """What is made from the ledger alone; erased behind it, so that an interrupted sweep finds its way."""
    yield spine.state
    yield Indexing(spine, spine.index, None) if index is None else index


def projections(spine: Spine, index: Indexing | None = None) -> Iterator[Projection]:
    """All of them; `index` is the caller's own, which knows its embedder."""
    yield from outside(spine)
    yield from inside(spine, index)
