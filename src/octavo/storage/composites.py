"""Composites: one vector an assembly with what it is made of, in a file beside the vectors of their embedder.

The file is replaced whole and begins with its own checksum; one that is damaged is as good as none.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
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

FILE = "composites.bin"
_CHECKED = 4  # bytes of the checksum


class Composite(Struct, frozen=True, kw_only=True):
    """An assembly's vector, and what it is made of: its revision, and a hash of its members' revisions.

    `used` of its `members` had a vector; fewer than two make no composite. `at` is when it was made, in
    microseconds.
    """

    id: str
    rev: int
    basis: str
    scope: str
    members: int
    used: int
    at: int
    vector: bytes


class Composites(Struct, frozen=True, kw_only=True, dict=True):
    """Whose composites these are and what they have seen: `vectors` counts those there were, and the missing.

    `assembled` is the row up to which memories were looked at for grouping, `verified` when all was last
    found right, in microseconds.
    """

    embedder: str
    dimension: int
    watermark: Watermark = Watermark(version=0, header="")
    vectors: tuple[int, int] = (0, 0)
    rows: tuple[Composite, ...] = ()
    assembled: int = 0
    verified: int = 0

    @cached_property
    def places(self) -> dict[str, int]:
        """Where the composite of each assembly stands."""
        return {row.id: place for place, row in enumerate(self.rows)}

    @cached_property
    def floats(self) -> Array:
        """The composites, one a row, of length one or zero."""
        halves = np.frombuffer(b"".join(row.vector for row in self.rows), dtype="<f2")
        return halves.reshape(-1, self.dimension).astype(np.float32)

    def get(self, id_: str) -> Composite | None:
        """The composite of an assembly; None if it has none."""
        row = self.rows[self.places[id_]] if id_ in self.places else None
        return row if row and row.used > 1 else None


def read(folder: Path, embedder: str, dimension: int, is_ours: Callable[[int, str], bool]) -> Composites:
    """The composites as last published; none if they are damaged, of another embedder or another ledger."""
    with suppress(FileNotFoundError, msgspec.MsgspecError):
        data = Disk().read(folder / FILE)
        if data[:_CHECKED] == _checksum(data[_CHECKED:]):
            told = msgspec.msgpack.decode(data[_CHECKED:], type=shape_of(Composites))
            is_whose = (told.embedder, told.dimension) == (embedder, dimension)
            mark = told.watermark
            if is_whose and (not mark.version or is_ours(mark.version, mark.header)):
                return told
    return Composites(embedder=embedder, dimension=dimension)


def publish(folder: Path, made: Composites) -> None:
    """Make composites the ones that count; the caller holds the lock."""
    folder.mkdir(exist_ok=True)  # a model that is out from the start has made no vectors there
    data = msgspec.msgpack.encode(made)
    replace_file(folder / FILE, _checksum(data) + data)


def _checksum(data: bytes) -> bytes:
    return zlib.crc32(data).to_bytes(_CHECKED, "big")
