"""Composites: one vector an assembly, in a file of float16 rows and a file that says what they are made of.

They lie beside the vectors of their embedder. Both files are replaced whole; the second names the checksum of
the first, so that a pair that does not belong together is as good as none.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec import Struct

from octavo.domain.records import shape_of
from octavo.domain.units import Watermark
from octavo.libraries import Array, np
from octavo.storage.columns import replace_file
from octavo.storage.stores.disk import Disk

ROWS, VALUES = "composites.json", "composites.bin"


class Composite(Struct, frozen=True, kw_only=True):
    """What one row is made of: an assembly's revision, and a hash of its members' revisions.

    `used` of its `members` had a vector; fewer than two make no composite. `length` is that of the sum before
    it was made one, `at` when the row was made, in microseconds.
    """

    id: str
    rev: int
    basis: str
    scope: str
    members: int
    used: int
    length: float
    at: int


class CompositeManifest(Struct, frozen=True, kw_only=True):
    """Whose composites these are and what they have seen: `vectors` counts those there were, and the missing.

    `assembled` is the row up to which memories were looked at for grouping, `verified` when all was last
    found right, in microseconds.
    """

    embedder: str
    dimension: int
    watermark: Watermark = Watermark(version=0, header="")
    vectors: tuple[int, int] = (0, 0)
    rows: tuple[Composite, ...] = ()
    checksum: int = 0
    assembled: int = 0
    verified: int = 0


class Composites:
    """A reader's view of the composites, pinned to one manifest."""

    def __init__(self, manifest: CompositeManifest, halves: Array) -> None:
        self.manifest, self.halves = manifest, halves
        self.rows = {row.id: row for row in manifest.rows}
        self.places = {row.id: place for place, row in enumerate(manifest.rows)}

    @cached_property
    def floats(self) -> Array:
        """The composites, one a row, of length one or zero."""
        return self.halves.astype(np.float32)

    def pairs(self) -> Iterator[tuple[Composite, Array]]:
        """What each row is made of, and its vector."""
        return zip(self.manifest.rows, self.halves, strict=True)

    def vector(self, id_: str) -> Array | None:
        """An assembly's composite, None if it has none."""
        return self.floats[self.places[id_]] if id_ in self.rows and self.rows[id_].used else None


def read(folder: Path, embedder: str, dimension: int, is_ours: Callable[[Watermark], bool]) -> Composites:
    """The composites as last published; none if they are damaged, of another embedder or another ledger."""
    with suppress(FileNotFoundError, msgspec.DecodeError):
        told = msgspec.json.decode(Disk().read(folder / ROWS), type=shape_of(CompositeManifest))
        data = Disk().read(folder / VALUES)
        is_whole = (told.embedder, told.dimension, told.checksum) == (embedder, dimension, zlib.crc32(data))
        if is_whole and (not told.watermark.version or is_ours(told.watermark)):
            return Composites(told, np.frombuffer(data, dtype="<f2").reshape(-1, dimension))
    manifest = CompositeManifest(embedder=embedder, dimension=dimension)
    return Composites(manifest, np.empty((0, dimension), dtype="<f2"))


def publish(folder: Path, manifest: CompositeManifest, halves: Array) -> None:
    """Make composites the ones that count; the caller holds the lock."""
    folder.mkdir(exist_ok=True)  # a model that is out from the start has made no vectors there
    data = np.ascontiguousarray(halves, dtype="<f2").tobytes()
    manifest = msgspec.structs.replace(manifest, checksum=zlib.crc32(data))
    replace_file(folder / VALUES, data)
    replace_file(folder / ROWS, msgspec.json.encode(manifest))
