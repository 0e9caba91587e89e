"""Columns: files that only grow, memory-mapped, with one manifest that says how much of them counts.

A manifest is replaced atomically. Bytes behind what it counts are a torn pass and are cut off by the next
writer; one writes at a time, over all processes. Rows, vectors and token vectors are all kept this way.
No byte that was ever published is cut off: who begins anew makes new files, for others may look at the old.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
import threading
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from math import prod
from pathlib import Path
from typing import Any, ClassVar, Generic, Self, TypeVar

import msgspec
from msgspec.structs import replace

from octavo.domain.records import shape_of
from octavo.errors import Damaged, OctavoError, StoreFull
from octavo.libraries import Array, np
from octavo.storage.stores.disk import Disk, failure

GENERATION = re.compile("g[0-9]{1,9}")  # the name of an index that was made beside another
_OTHERS = 0o077
_NO_SPACE = "No space left on device"
Files = Mapping[str, tuple[Any, tuple[int, ...]]]  # each file's type, and how much of it counts
T = TypeVar("T")
M = TypeVar("M", bound=Any)  # a manifest: a record with the checksum of each file
disk = Disk()  # tests put one in its place that stops, or fails


class Columns(Generic[M]):
    """A reader's or writer's view of some columns, pinned to one manifest; `held` ones have no files."""

    FORMAT: ClassVar[int]
    OWNER: ClassVar[tuple[str, ...]] = ()  # the fields of a manifest that say whose columns these are

    def __init__(self, folder: Path, manifest: M, held: Mapping[str, Array] | None = None) -> None:
        self.folder, self.manifest = folder, manifest
        self._files = self._layout(manifest)
        self._maps: dict[str, Array] = dict(held or {})

    def _layout(self, manifest: M) -> Files:
        raise NotImplementedError

    @classmethod
    def open(cls, folder: Path, fresh: M) -> Self:
        """The columns as last published, else fresh ones; `Damaged` if a file is shorter than it must be."""
        columns = cls(folder, cls.published(folder, fresh))
        for name in columns._files:
            path, size = folder / f"{name}.bin", columns._size(name)
            if size and (not path.exists() or path.stat().st_size < size):
                raise damaged(path, f"it is shorter than the {size} bytes that were published")
        return columns

    @classmethod
    def published(cls, folder: Path, fresh: M) -> M:
        """The published manifest, or the fresh one if there is none of ours; `Damaged` if it was changed."""
        path = folder / "manifest.json"
        try:
            must_be_file(path)
            document = json.loads(Disk().read(path))
            body, digest = document["body"], document["hash"]
        except FileNotFoundError:
            return fresh
        except (ValueError, KeyError, TypeError) as error:
            raise damaged(path, "it is not a manifest") from error
        if digest != _digest(body):
            raise damaged(path, "its hash is wrong")
        if body.pop("format") != cls.FORMAT:
            raise damaged(path, f"it has another format than the {cls.FORMAT} that this Octavo reads")
        manifest: M = msgspec.convert(body, type=shape_of(type(fresh)))
        is_ours = all(getattr(manifest, name) == getattr(fresh, name) for name in cls.OWNER)
        return manifest if is_ours else fresh

    def publish(self, **changes: Any) -> Self:
        """Make the manifest, with some changes, the one that counts; the caller holds the write lock."""
        manifest = replace(self.manifest, **changes)
        body = {"format": self.FORMAT, **msgspec.to_builtins(manifest)}
        self.folder.mkdir(parents=True, exist_ok=True)
        written = json.dumps({"body": body, "hash": _digest(body)}).encode()
        replace_file(self.folder / "manifest.json", written)
        return type(self)(self.folder, manifest)

    def column(self, name: str) -> Array:
        """A file as an array, as far as it counts; mapped when first asked for."""
        if name not in self._maps:
            dtype, shape = self._files[name]
            if shape[0] == 0:
                self._maps[name] = np.empty(shape, dtype=dtype)
                return self._maps[name]
            must_be_file(path := self.folder / f"{name}.bin")
            try:
                self._maps[name] = np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=shape))
            except (FileNotFoundError, ValueError) as error:
                raise damaged(path, "it is missing or too short") from error
        return self._maps[name]

    def verify(self) -> None:
        """Raise `Damaged` unless every byte that counts is what was written."""
        for name, checksum in self.found().items():
            if checksum != self.manifest.checksums.get(name, 0):
                raise damaged(self.folder / f"{name}.bin", "its checksum is wrong")

    def found(self) -> dict[str, Any]:
        """What the bytes that count add up to, file by file."""
        return {name: zlib.crc32(self.column(name).reshape(-1).view("u1").data) for name in self._files}

    def add(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Append to the files durably; returns the checksums for the manifest that will publish it."""
        checksums = dict(self.manifest.checksums)
        self.folder.mkdir(parents=True, exist_ok=True)
        for name, array in arrays.items():
            if len(array):
                data = array.tobytes()
                append(self.folder / f"{name}.bin", data, at=self._size(name))
                checksums[name] = zlib.crc32(data, checksums.get(name, 0))
        return checksums

    def _size(self, name: str) -> int:
        dtype, shape = self._files[name]
        return int(np.dtype(dtype).itemsize) * prod(shape)


class Latest(Generic[T]):
    """What a file that is replaced whole says now: read again when another one has taken its place."""

    def __init__(self, path: Path, read: Callable[[], T]) -> None:
        self._path, self._read = path, read
        self._lock, self._changing = threading.RLock(), threading.RLock()
        self._held: tuple[object, T] | None = None
        self._stays = False

    def __call__(self) -> T:
        with self._lock:
            if self._held is None or (not self._stays and self._held[0] != self._stamp()):
                self._held = self._read_now()
            return self._held[1]

    @contextmanager
    def staying(self, ready: Callable[[T], None]) -> Iterator[None]:
        """While the file is changed all others are told what it says now, until the new is `ready`, too."""
        with self._changing:
            with self._lock:
                self()
                self._stays = True
            try:
                yield
                with suppress(Damaged, FileNotFoundError):  # who asks next finds out
                    held = self._read_now()
                    ready(held[1])
                    self._held = held
            finally:
                self._stays = False

    def _read_now(self) -> tuple[object, T]:
        return self._stamp(), self._read()

    def _stamp(self) -> object:
        """What tells a file from the one before; None while there is none."""
        with suppress(FileNotFoundError):
            status = self._path.stat()
            return status.st_ino, status.st_mtime_ns
        return None


def must_be_file(path: Path) -> None:
    """Raise if something else than a file stands at a place; a library would wait for a pipe for ever."""
    if path.exists() and not path.is_file():
        raise damaged(path, "it is no file")


def append(path: Path, data: bytes, *, at: int) -> None:
    """Write bytes behind the first `at` of a file, which are all that counts of it, durably."""
    if at == 0 and disk.exists(path):  # who has mapped an earlier one keeps it: a cut would kill
        disk.remove(path)
    write_into(path, [(at, data)], cut=at)


def write_into(path: Path, parts: Iterable[tuple[int, bytes]], *, cut: int | None = None) -> None:
    """Write bytes at their places in a file, durably; `cut` is how much of it is kept before that."""
    fd = disk.open_lock(path)
    try:
        if cut is not None:
            disk.truncate(fd, cut)
        for place, data in parts:
            disk.write_at(fd, data, place)
        disk.sync(fd)
    finally:
        disk.close(fd)


def replace_file(path: Path, data: bytes) -> None:
    """Put a file in the place of an older one, atomically and durably; the caller holds the write lock."""
    temporary = path.with_name(f"{path.name}.tmp")
    write_into(temporary, [(0, data)], cut=0)
    disk.replace(temporary, path)
    disk.sync_folder(path.parent)


@contextmanager
def writing(folder: Path, name: str = "lock") -> Iterator[None]:
    """Hold the index's write lock: one indexing pass at a time, over all processes.

    A disk that is full or fails is `StoreFull` or `Unavailable`; a file that is gone is the caller's matter,
    and so is a folder that went with its lock while we stood in line: another index has taken its place.
    """
    try:
        if GENERATION.fullmatch(folder.name):
            folder.stat()  # one of an index that was replaced is not made again
        else:
            folder.mkdir(parents=not GENERATION.fullmatch(folder.parent.name), exist_ok=True)
        lock = disk.open_lock(folder / name)
        try:
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not os.path.samestat(os.fstat(lock), (folder / name).stat()):
                raise FileNotFoundError(errno.ENOENT, "another index took its place", str(folder))
            yield
            _make_private(folder)
        finally:
            disk.close(lock)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise failure(f"writing the index in {folder.name}", error) from error


def is_writing(folder: Path) -> bool:
    """Whether anybody holds the index's write lock at this moment."""
    try:
        lock = disk.open_lock(folder / "lock")
    except OSError:  # none is there, or whoever writes next is told why not
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        disk.close(lock)
    return False


def _make_private(folder: Path) -> None:
    """Take from others what libraries let them read; whoever copies the folder copies this, too."""
    for root, _, names in os.walk(folder):  # it passes over what goes meanwhile
        for path in (Path(root), *(Path(root, name) for name in names)):
            with suppress(FileNotFoundError):  # tantivy removes what it no longer needs
                mode = path.stat().st_mode
                if mode & _OTHERS:
                    path.chmod(stat.S_IMODE(mode) & ~_OTHERS)


def _digest(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def damaged(path: Path, why: str) -> OctavoError:
    """The error of an index file that is not what was written, or that a full disk let nobody write."""
    if _NO_SPACE in why:  # all that tantivy tells of it
        return StoreFull(f"writing the index in {path.name}: {_NO_SPACE}")
    return Damaged(
        f"the index file {path.name} cannot be used: {why}",
        hint="the index is derived; `octavo reindex` rebuilds it from the ledger",
    )
