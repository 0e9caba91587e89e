"""Vectors of standing orders, kept beside an embedder's other vectors, and made anew when they are lost."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from octavo.libraries import Array, np
from octavo.storage.stores.disk import Disk, replace_file

_FILE = "orders.bin"


def key_of_text(text: str) -> bytes:
    """What the vector of a text is kept under."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def has_vectors(folder: Path) -> bool:
    """Whether any vectors are kept there."""
    return (folder / _FILE).exists()


def read_vectors(folder: Path, dimension: int) -> dict[bytes, Array]:
    """The vectors that are kept; none if there are none, or if they are not what was written."""
    try:
        kept = msgspec.msgpack.decode((folder / _FILE).read_bytes(), type=dict[bytes, bytes])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
    return {
        key: np.frombuffer(data, dtype=np.float16).astype(np.float32)
        for key, data in kept.items()
        if len(data) == 2 * dimension
    }


def write_vectors(folder: Path, vectors: Mapping[bytes, Array], keep: Iterable[bytes]) -> None:
    """Keep the vectors of some texts and no others, at once or not at all."""
    data = msgspec.msgpack.encode(
        {key: vectors[key].astype(np.float16).tobytes() for key in keep if key in vectors}
    )
    replace_file(Disk(), folder / _FILE, data)
