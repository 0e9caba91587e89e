"""Token vectors of the indexed passages: what a second look compares, made when a passage is indexed.

Row i belongs to row i of the columns and may hold no tokens: a text in a script that the model does not read.
The files only grow; the manifest says how much of them counts.
"""

from __future__ import annotations

from collections.abc import Sequence

from octavo.libraries import Array, np, product
from octavo.storage.columns import Columns, Files
from octavo.storage.rows import ranges
from octavo.storage.vectors import OWNER, ModelManifest

_SCALE = 127  # a vector of length one in whole numbers of a byte each

Encoded = tuple[Array, Array]  # the ids of a text's tokens, and a vector of length one for each


class Tokens(Columns[ModelManifest]):
    """A reader's or writer's view of the token vectors, pinned to one manifest."""

    FORMAT = 2
    OWNER = OWNER

    def _layout(self, manifest: ModelManifest) -> Files:
        return {
            "ends": ("<u8", (manifest.rows,)),
            "ids": ("<u2", (manifest.tokens,)),
            "vectors": ("i1", (manifest.tokens, manifest.dimension)),
        }

    def best(self, asked: Encoded, rows: Array) -> tuple[Array, Array, Array]:
        """How near some token of each row comes to each token asked; which rows have tokens; the weights.

        A token weighs more the fewer of the rows hold it; the weights add up to one.
        """
        ids, vectors = asked
        low, high = self._bounds(rows)
        is_there = high > low
        near = np.zeros((len(rows), len(ids)), dtype=np.float32)
        counts = np.zeros(len(ids))
        if is_there.any() and len(ids):
            places, lengths = ranges(low, high), (high - low)[is_there]
            starts = np.cumsum(lengths) - lengths
            cosines = product(np.take(self.column("vectors"), places, axis=0).astype(np.float32), vectors.T)
            near[is_there] = np.maximum.reduceat(cosines, starts, axis=0) / _SCALE
            same = np.take(self.column("ids"), places)[:, None] == ids.astype("<u2")[None, :]
            counts = np.logical_or.reduceat(same, starts, axis=0).sum(axis=0)
        weights = np.log(1 + len(rows) / (1 + counts))
        return near, is_there, (weights / max(weights.sum(), 1e-9)).astype(np.float32)

    def _bounds(self, rows: Array) -> tuple[Array, Array]:
        """Where the tokens of some rows begin and end; nowhere for rows that nobody looked at yet."""
        ends, known = self.column("ends"), rows < self.manifest.rows
        low, high = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
        high[known] = ends[rows[known]]
        low[known] = np.where(rows[known] > 0, ends[rows[known] - 1], 0)
        # Nobody reads every byte before a question: what is damaged must not point outside of the file.
        return np.minimum(low, self.manifest.tokens), np.clip(high, low, self.manifest.tokens)


def append_tokens(tokens: Tokens, encoded: Sequence[Encoded]) -> Tokens:
    """Add the tokens of the next rows, durably and published at once; the caller holds the write lock."""
    old = tokens.manifest
    ends = old.tokens + np.cumsum([len(ids) for ids, _ in encoded], dtype="<u8")
    ids = np.concatenate([np.empty(0), *(ids for ids, _ in encoded)])
    vectors = np.concatenate([np.empty((0, old.dimension)), *(vectors for _, vectors in encoded)])
    checksums = tokens.add(
        {
            "ends": ends,
            "ids": ids.astype("<u2"),
            "vectors": np.rint(_SCALE * np.clip(vectors, -1, 1)).astype("i1"),
        }
    )
    return tokens.publish(rows=old.rows + len(encoded), tokens=int(ends[-1]), checksums=checksums)
