"""Where a search finds its rows: in the index, and behind it in columns of the same shape held in memory."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from octavo.libraries import Array, np
from octavo.storage.frequencies import containing
from octavo.storage.rows import Units
from octavo.storage.vectors import Vectors


class Source(NamedTuple):
    """Rows that are searched: those of the index, or behind them those that are held in memory."""

    first: int  # the number of its first row
    units: Units
    vectors: Vectors | None
    scopes: Array  # the codes of those that may be seen
    rows: int  # how many there are at the version asked for

    def holds(self, rows: Array) -> Array:
        """Which rows are among its own."""
        return np.asarray((rows >= self.first) & (rows < self.first + self.units.manifest.rows))


Sources = Sequence[Source]


def counts_of(sources: Sources, codes: Array) -> Array:
    """In how many passages of all sources each term occurs."""
    return np.asarray(sum(containing(s.units, codes, s.scopes, s.rows) for s in sources))


def cosines_of(sources: Sources, query: Array, rows: Array, otherwise: float) -> Array:
    """How near some rows are to the question, or a number for those that have no vector."""
    found = np.full(len(rows), otherwise, dtype=np.float32)
    for source in sources:
        if (vectors := source.vectors) is not None:
            stored = (rows >= source.first) & (rows < source.first + vectors.manifest.rows)
            if len(vectors.lacking):
                stored &= ~np.isin(rows - source.first, vectors.lacking)
            found[stored] = vectors.cosines(query, rows[stored] - source.first)
    return found
