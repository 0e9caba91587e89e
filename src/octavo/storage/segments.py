"""Segments: a thousand versions in one compressed entry, byte for byte what their own entries held; and marks
that a redaction leaves, so that nobody packs what was read before it."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from itertools import accumulate

import msgspec

from octavo.domain.ports import Store
from octavo.domain.records import shape_of
from octavo.errors import LedgerDamaged, NewerFormat
from octavo.storage.stores.entries import every

SIZE = 1000
FORMAT = 1
FOLDER = "segments/"
_MARKS = "sweeps/"


class Index(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The first line of a segment: which versions are in it, how long each is, and their headers' hashes."""

    format: int
    first: int
    last: int
    sizes: tuple[int, ...]
    hashes: tuple[str, ...]


def key_of(version: int) -> str:
    """Where the segment lies that a version is in, once it is sealed."""
    first = (version - 1) // SIZE * SIZE + 1
    return f"{FOLDER}{first:020d}-{first + SIZE - 1:020d}"


def first_of(key: str) -> int | None:
    """The first version of the segment under a key, None if it names no segment."""
    number = key.removeprefix(FOLDER).partition("-")[0]
    return int(number) if number.isdecimal() and int(number) > 0 and key == key_of(int(number)) else None


def pack(first: int, versions: Sequence[bytes], hashes: Sequence[str]) -> bytes:
    """The segment of some versions that follow each other."""
    sizes = tuple(len(data) for data in versions)
    last = first + len(versions) - 1
    index = Index(format=FORMAT, first=first, last=last, sizes=sizes, hashes=tuple(hashes))
    return msgspec.json.encode(index) + b"\n" + zlib.compress(b"".join(versions), 6)


def unpack(key: str, data: bytes) -> tuple[Index, list[bytes]]:
    """The index of a segment, and the bytes of each of its versions."""
    line, _, packed = data.partition(b"\n")
    try:
        index = msgspec.json.decode(line, type=shape_of(Index))
        whole = zlib.decompress(packed)
    except msgspec.ValidationError as error:
        raise NewerFormat(f"{key}, line 1: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, zlib.error) as error:
        raise LedgerDamaged(f"{key}: it cannot be unpacked: {error}") from error
    if index.format > FORMAT:
        raise NewerFormat(f"{key} has format {index.format}")
    if key != key_of(index.first) or index.last != index.first + len(index.sizes) - 1:
        raise LedgerDamaged(f"{key} holds versions {index.first} to {index.last}")
    if len(whole) != sum(index.sizes) or len(index.hashes) != len(index.sizes):
        raise LedgerDamaged(f"{key}: its parts are not as long as its first line says")
    ends = accumulate(index.sizes)
    return index, [whole[end - size : end] for size, end in zip(index.sizes, ends, strict=True)]


def next_mark(store: Store) -> str:
    """The mark that the next redaction will leave.

    Whoever copies texts asks for it before reading, and creates the copy unless the mark is there.
    """
    return f"{_MARKS}{len(list(every(store, _MARKS))) + 1:010d}"


def leave_mark(store: Store) -> None:
    """Leave a mark: copies made of what was read before are refused from now on."""
    while not store.create(next_mark(store), b""):
        pass  # another redaction left this one
