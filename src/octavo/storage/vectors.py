"""The vectors of one embedder: a float16 file, its 1-bit codes and the times they came, all memory-mapped.

Row i belongs to row i of the columns. The files only grow, except that a passage that had no vector (zeros,
and a retry in the manifest) may get one later. The manifest says how many rows count; what lies behind them
is a torn pass and is cut off by the next writer.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from octavo.errors import BadVector
from octavo.libraries import Array, faiss, np, product
from octavo.storage.columns import Columns, Files, write_into
from octavo.storage.retries import Retries, without_model

_FEW = 400  # so many at least are compared in full,
_COMPARED = 7  # and so many times as many as are wanted
_SPARE = 2  # and so many times that are looked at first: some may not be visible
_BOXED = 8000
_MEAN_ROWS = 256
_USUAL_ROWS = 32  # so many texts say what is usual
_SPARSE = 0.1
_AT_ONCE = 512  # rows whose numbers fit the processor's cache
# A half's bits, moved to where a float has them, are the same number made 2 ** 112 times smaller. numpy would
# take a millisecond to widen a thousand rows; two halves are moved at a time.
_HALF_BITS, _WIDER = -0x70002000, 2.0**112


class ModelManifest(Struct, frozen=True, kw_only=True):
    """Whose vectors these are, of passages or of their tokens, and how many rows and tokens of them count."""

    model: str
    dimension: int
    history: str = ""  # the header hash of the ledger's first version: another ledger, other vectors
    rows: int = 0
    tokens: int = 0
    checksums: dict[str, int] = field(default_factory=dict)  # running, one a file
    retries: Retries = ()
    verified: int = 0  # when every row was last found to be right, in microseconds


OWNER = ("model", "dimension", "history")


class Vectors(Columns[ModelManifest]):
    """A reader's or writer's view of the vectors, pinned to one manifest.

    Of `times`, when each vector came in microseconds, 0 says that there is none, or nobody said.
    """

    FORMAT = 3
    OWNER = OWNER

    _mean: tuple[int, Array] | None = None

    def _layout(self, manifest: ModelManifest) -> Files:
        rows, dimension = manifest.rows, manifest.dimension
        return {
            "floats": ("<f2", (rows, dimension)),
            "bits": ("u1", (rows, code_bytes(dimension))),
            "times": ("<i8", (rows,)),
        }

    @property
    def floats(self) -> Array:
        """The vectors, one a row."""
        return self.column("floats")

    @cached_property
    def lacking(self) -> Array:
        """The rows that count and have no vector."""
        return np.array([retry.row for retry in without_model(self.manifest.retries)], dtype=np.int64)

    def up_to(self, rows: int) -> Vectors:
        """The same vectors, of the first rows only."""
        if self.manifest.rows <= rows:
            return self
        kept = tuple(retry for retry in self.manifest.retries if retry.row < rows)
        return Vectors(self.folder, replace(self.manifest, rows=rows, retries=kept))

    def mean(self, rows: int) -> Array:
        """A stand-in for the mean vector: that of the first few rows, which stay the first for ever.

        Of very few it is mostly the text that a question looks for, so it counts by as much as there are.
        """
        count = min(rows, self.manifest.rows, _MEAN_ROWS)
        if self._mean is None or self._mean[0] != count:
            first = np.delete(self.floats[:count], self.lacking[self.lacking < count], axis=0)
            first = first.astype(np.float32)
            share = min((len(first) - 1) / _USUAL_ROWS, 1.0)
            self._mean = (
                count,
                first.mean(axis=0) * share if len(first) else np.zeros(self.manifest.dimension),
            )
        return self._mean[1]

    def nearest(
        self,
        query: Array,
        visible: Callable[[Array], Array],
        *,
        limit: int,
        share: float = 1.0,
        among: Array | None = None,
    ) -> tuple[Array, Array]:
        """The visible rows nearest to a query, best first, and their cosines.

        The scan goes on until enough visible rows are found, so the result is that of a search among the
        visible rows alone; `share` says how many of all rows are visible and chooses the cheaper way.
        `among` holds every row that can be visible, if that is known.
        """
        total = self.manifest.rows
        if total == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        code, count = signs(query[None, :]), max(_FEW, _COMPARED * limit)
        if share < _SPARSE:
            some = np.arange(total) if among is None else among[among < total]
            rows = some[visible(some)]
            if len(rows) > count:
                rows = rows[_hamming(code, np.ascontiguousarray(self.column("bits")[rows]), count)]
        else:
            wanted, is_enough = _SPARE * count, False
            while not is_enough:
                rows = _hamming(code, self.column("bits"), min(wanted, total))
                rows = rows[visible(rows)][:count]
                is_enough, wanted = len(rows) == count or wanted >= total, 8 * wanted
        if len(self.lacking):
            rows = rows[~np.isin(rows, self.lacking)]
        rows = np.sort(rows)  # in the order of the file, and of equals the first
        cosines = self.cosines(query, rows)
        kept = np.argpartition(-cosines, limit)[:limit] if len(rows) > limit else np.arange(len(rows))
        order = kept[np.lexsort((kept, -cosines[kept]))]
        return rows[order], cosines[order]

    def cosines(self, query: Array, rows: Array) -> Array:
        """The cosines of some rows with a query of length one."""
        dimension = self.manifest.dimension
        found = np.zeros(len(rows), dtype=np.float32)
        if dimension % 2:
            return product(self.floats[rows].astype(np.float32), query)
        stored = self.floats.view(f"V{2 * dimension}").reshape(-1)
        even, odd = (query[some::2].astype(np.float32) * _WIDER for some in (0, 1))
        for first in range(0, len(rows), _AT_ONCE):
            right = np.take(stored, rows[first : first + _AT_ONCE]).view("<i4")
            lower, upper = _widened(right << 16, len(even)), _widened(right, len(odd))
            found[first : first + _AT_ONCE] = product(lower, even) + product(upper, odd)
        return found


def held_vectors(vectors: Vectors, new: Array) -> Vectors:
    """Vectors of the same embedder for rows that are held in memory."""
    manifest = replace(vectors.manifest, rows=len(new), retries=())
    return Vectors(vectors.folder, manifest, _arrays(new, range(len(new)), 0, ()))


def append_vectors(vectors: Vectors, new: Any, *, at: int = 0, retries: Retries | None = None) -> Vectors:
    """Add vectors for the next rows, durably and published at once; the caller holds the write lock.

    `at` says when, in microseconds; `retries` are those that count from now on, the old ones if not given.
    """
    manifest = vectors.manifest
    checked = checked_vectors(new, manifest.dimension)
    kept = manifest.retries if retries is None else retries
    rows = range(manifest.rows, manifest.rows + len(checked))
    checksums = vectors.add(_arrays(checked, rows, at, kept))
    return vectors.publish(rows=rows.stop, retries=kept, checksums=checksums)


def fill_vectors(
    vectors: Vectors, rows: Sequence[int], new: Any, *, at: int = 0, retries: Retries = ()
) -> Vectors:
    """Give vectors to rows that had none, in place; the caller holds the write lock.

    Before that every byte is verified, or the new checksums would bless damage. A crash on the way leaves
    wrong checksums and the old retries: the next attempt on those rows finds the damage.
    """
    vectors.verify()
    checked = checked_vectors(new, vectors.manifest.dimension)
    for name, array in _arrays(checked, rows, at, retries).items():
        width = array[:1].nbytes
        parts = [(row * width, values.tobytes()) for row, values in zip(rows, array, strict=True)]
        write_into(vectors.folder / f"{name}.bin", parts)
    return vectors.publish(retries=retries, checksums=Vectors(vectors.folder, vectors.manifest).found())


def checked_vectors(new: Any, dimension: int) -> Array:
    """Vectors as rows of length one (or zero); `BadVector` if one has NaN, Inf or a wrong dimension."""
    try:
        array = np.atleast_2d(np.asarray(new, dtype=np.float32))
    except (TypeError, ValueError) as error:
        raise BadVector("the vector is not a row of numbers") from error
    if array.size == 0:
        return np.empty((0, dimension), dtype=np.float32)
    if array.ndim != 2 or array.shape[1] != dimension:
        raise BadVector(f"the vector has {array.shape[-1]} dimensions, the index has {dimension}")
    if not np.isfinite(array).all():
        raise BadVector("the vector holds NaN or Inf")
    norms = np.linalg.norm(array.astype(np.float64), axis=1, keepdims=True)
    return (array / np.where(norms > 0, norms, 1.0)).astype(np.float32)


def signs(vectors: Array) -> Array:
    """The sign bits of vectors, packed and padded to whole 64-bit words."""
    packed = np.packbits(vectors > 0, axis=1)
    padding = code_bytes(vectors.shape[1]) - packed.shape[1]
    return np.pad(packed, ((0, 0), (0, padding))) if padding else packed


def code_bytes(dimension: int) -> int:
    """How many bytes the sign bits of one vector take."""
    return (dimension + 63) // 64 * 8


def _arrays(checked: Array, rows: Sequence[int], at: int, retries: Retries) -> dict[str, Array]:
    """What the files hold of some rows; a row that has a retry has no time."""
    missing = {retry.row for retry in retries}
    times = np.array([0 if row in missing else at for row in rows], dtype="<i8")
    return {"floats": checked.astype("<f2"), "bits": signs(checked), "times": times}


def _widened(halves: Array, width: int) -> Array:
    """The halves that are the upper bits of some numbers, as floats; in place."""
    halves >>= 3
    halves &= _HALF_BITS
    return halves.view(np.float32).reshape(-1, width)


def _hamming(code: Array, bits: Array, count: int) -> Array:
    """The rows whose signs differ least from a code's, the nearest first."""
    count = min(count, len(bits))  # for what is not there faiss would return -1
    faiss.omp_set_num_threads(1)
    # Few are counted into a box for each distance, which is quick; for many the boxes would be too large.
    distances, rows = faiss.knn_hamming(code, bits, count, "mc" if count <= _BOXED else "hc")
    found: Array = rows[0]
    return found if count <= _BOXED else found[np.lexsort((found, distances[0]))]
