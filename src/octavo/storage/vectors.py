"""The vectors of one embedder: an append-only float16 file and its 1-bit codes, both memory-mapped.

Row i belongs to row i of the columns. A zero vector stands for a passage that has none. The manifest says
how many rows count; what lies behind them is a torn pass and is cut off by the next writer.
"""

from __future__ import annotations

import hashlib
import json
import os
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from octavo.errors import BadVector, NewerFormat
from octavo.storage.libraries import Array, faiss, np
from octavo.storage.units import append, damaged, sync_folder

FORMAT = 1
_NEAREST = 1000
_MEAN_ROWS = 256
_SPARSE = 0.1


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorManifest:
    """Whose vectors these are and how many rows of them count."""

    embedder: str
    dimension: int
    rows: int = 0
    floats: int = 0  # running checksums of the two files
    bits: int = 0
    history: str = ""  # the header hash of the ledger's first version: another ledger, other vectors


class Vectors:
    """A reader's or writer's view of the vectors, pinned to one manifest."""

    def __init__(self, folder: Path, manifest: VectorManifest) -> None:
        self.folder = folder
        self.manifest = manifest
        self._floats: Array | None = None
        self._bits: Array | None = None
        self._mean: tuple[int, Array] | None = None

    @property
    def floats(self) -> Array:
        """The vectors, one a row."""
        if self._floats is None:
            self._floats = _map(
                self.folder / "floats.bin", "<f2", self.manifest.rows, self.manifest.dimension
            )
        return self._floats

    @property
    def bits(self) -> Array:
        """The signs of the vectors, eight to a byte."""
        if self._bits is None:
            width = code_bytes(self.manifest.dimension)
            self._bits = _map(self.folder / "bits.bin", "u1", self.manifest.rows, width)
        return self._bits

    def mean(self, rows: int) -> Array:
        """A stand-in for the mean vector: that of the first few rows, which stay the first for ever."""
        count = min(rows, self.manifest.rows, _MEAN_ROWS)
        if self._mean is None or self._mean[0] != count:
            first = self.floats[:count].astype(np.float32)
            self._mean = (count, first.mean(axis=0) if count else np.zeros(self.manifest.dimension))
        return self._mean[1]

    def nearest(
        self, query: Array, visible: Callable[[Array], Array], *, limit: int, share: float = 1.0
    ) -> tuple[Array, Array]:
        """The visible rows nearest to a query, best first, and their cosines.

        The scan goes on until enough visible rows are found, so the result is that of a search among the
        visible rows alone; `share` says how many of all rows are visible and chooses the cheaper way.
        """
        total = self.manifest.rows
        if total == 0:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)
        code = signs(query[None, :])
        rows = self._near_few(code, visible) if share < _SPARSE else self._near_many(code, visible)
        cosines = self.cosines(query, rows)
        order = np.argsort(-cosines, kind="stable")[:limit]
        return rows[order], cosines[order]

    def cosines(self, query: Array, rows: Array) -> Array:
        """The cosines of some rows with a query of length one."""
        # faiss multiplies halves as they are; numpy would first spend a millisecond on widening them.
        halves = faiss.IndexScalarQuantizer(
            self.manifest.dimension, faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        )
        halves.is_trained = True
        found = np.zeros(len(rows), dtype=np.float32)
        if len(rows):
            faiss.omp_set_num_threads(1)
            halves.add_sa_codes(np.take(self.floats, rows, axis=0).view(np.uint8))
            values, places = halves.search(np.ascontiguousarray(query[None, :]), len(rows))
            found[places[0]] = values[0]
        return found

    def _near_many(self, code: Array, visible: Callable[[Array], Array]) -> Array:
        total, wanted = self.manifest.rows, _NEAREST
        while True:
            rows = _hamming(code, self.bits, min(wanted, total))
            kept = rows[visible(rows)]
            if len(kept) >= _NEAREST or wanted >= total:
                return kept[:_NEAREST]
            wanted *= 8

    def _near_few(self, code: Array, visible: Callable[[Array], Array]) -> Array:
        rows = np.flatnonzero(visible(np.arange(self.manifest.rows)))
        if len(rows) <= _NEAREST:
            return rows
        return rows[_hamming(code, np.ascontiguousarray(self.bits[rows]), _NEAREST)]

    def verify(self) -> None:
        """Raise `Damaged` unless every byte that counts is what was written."""
        for name, data, wanted in (
            ("floats.bin", self.floats, self.manifest.floats),
            ("bits.bin", self.bits, self.manifest.bits),
        ):
            if zlib.crc32(data.tobytes()) != wanted:
                raise damaged(self.folder / name, "its checksum is wrong")


def open_vectors(folder: Path, *, embedder: str, dimension: int, history: str) -> Vectors:
    """The vectors as last published; none if they belong to another embedder or another ledger."""
    fresh = VectorManifest(embedder=embedder, dimension=dimension, history=history)
    manifest = _read(folder) or fresh
    if replace(manifest, rows=0, floats=0, bits=0) != fresh:
        manifest = fresh
    for name, width in (("floats.bin", 2 * dimension), ("bits.bin", code_bytes(dimension))):
        path, wanted = folder / name, manifest.rows * width
        if wanted and (not path.exists() or path.stat().st_size < wanted):
            raise damaged(path, f"it is shorter than the {wanted} bytes that were published")
    return Vectors(folder, manifest)


def append_vectors(vectors: Vectors, new: Any) -> Vectors:
    """Add vectors for the next rows, durably and published at once; the caller holds the write lock."""
    checked = checked_vectors(new, vectors.manifest.dimension)
    manifest, folder = vectors.manifest, vectors.folder
    folder.mkdir(parents=True, exist_ok=True)
    floats, bits = checked.astype("<f2").tobytes(), signs(checked).tobytes()
    append(folder / "floats.bin", floats, at=manifest.rows * manifest.dimension * 2)
    append(folder / "bits.bin", bits, at=manifest.rows * code_bytes(manifest.dimension))
    published = replace(
        manifest,
        rows=manifest.rows + len(checked),
        floats=zlib.crc32(floats, manifest.floats),
        bits=zlib.crc32(bits, manifest.bits),
    )
    _publish(folder, published)
    return Vectors(folder, published)


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


def _hamming(code: Array, bits: Array, count: int) -> Array:
    faiss.omp_set_num_threads(1)
    distances, rows = faiss.knn_hamming(code, bits, count)
    order = np.lexsort((rows[0], distances[0]))
    found: Array = rows[0][order].astype(np.int64)
    return found


def _map(path: Path, dtype: str, rows: int, width: int) -> Array:
    if rows == 0:
        return np.empty((0, width), dtype=dtype)
    return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=(rows, width)))


def _read(folder: Path) -> VectorManifest | None:
    path = folder / "manifest.json"
    try:
        document = json.loads(path.read_bytes())
        body, digest = document["body"], document["hash"]
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise damaged(path, "it is not a manifest") from error
    if digest != _digest(body):
        raise damaged(path, "its hash is wrong")
    if body.pop("format") != FORMAT:
        raise NewerFormat(f"the vectors in {folder} have a format this Octavo does not read")
    return VectorManifest(**body)


def _publish(folder: Path, manifest: VectorManifest) -> None:
    body = {"format": FORMAT, **asdict(manifest)}
    temporary = folder / "manifest.json.tmp"
    with temporary.open("wb") as file:
        file.write(json.dumps({"body": body, "hash": _digest(body)}).encode())
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(folder / "manifest.json")
    sync_folder(folder)


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
