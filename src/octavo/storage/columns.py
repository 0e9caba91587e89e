"""Columns: files that only grow, memory-mapped, with one manifest that says how much of them counts.

A manifest is replaced atomically. Bytes behind what it counts are a torn pass and are cut off by the next
writer; one writes at a time, over all processes. Rows and vectors are both kept this way.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from octavo.errors import Damaged, OctavoError, StoreFull
from octavo.libraries import Array, np
from octavo.storage.stores.disk import failure

GENERATION = re.compile("g[0-9]{1,9}")  # the name of an index that was made beside another
_OTHERS = 0o077
_NO_SPACE = "No space left on device"


def read_body(folder: Path, format_: int) -> dict[str, Any] | None:
    """What the published manifest says, None if there is none; `Damaged` if it is not what was written."""
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
    if body.pop("format") != format_:
        raise damaged(path, f"it has another format than the {format_} that this Octavo reads")
    return dict(body)


def publish_body(folder: Path, format_: int, body: dict[str, Any]) -> None:
    """Make a manifest the one that counts, atomically and durably."""
    body = {"format": format_, **body}
    replace_file(folder / "manifest.json", json.dumps({"body": body, "hash": _digest(body)}).encode())


def must_hold(path: Path, size: int) -> None:
    """Raise `Damaged` unless a file holds as many bytes as were published."""
    if size and (not path.exists() or path.stat().st_size < size):
        raise damaged(path, f"it is shorter than the {size} bytes that were published")


def mapped(path: Path, dtype: Any, shape: tuple[int, ...]) -> Array:
    """A file as an array, as far as it counts."""
    if shape[0] == 0:
        return np.empty(shape, dtype=dtype)
    try:
        return np.asarray(np.memmap(path, dtype=dtype, mode="r", shape=shape))
    except (FileNotFoundError, ValueError) as error:
        raise damaged(path, "it is missing or too short") from error


def append(path: Path, data: bytes, *, at: int) -> None:
    """Write bytes behind the first `at` of a file, which are all that counts of it, durably."""
    with path.open("r+b" if path.exists() else "w+b") as file:
        file.truncate(at)
        file.seek(at)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def replace_file(path: Path, data: bytes) -> None:
    """Put a file in the place of an older one, atomically and durably."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def writing(folder: Path, name: str = "lock") -> Iterator[None]:
    """Hold the index's write lock: one indexing pass at a time, over all processes.

    A disk that is full or fails is `StoreFull` or `Unavailable`; a file that is gone is the caller's matter,
    and so is a folder that went with its lock while we stood in line: another index has taken its place.
    """
    try:
        _begin(folder)
        with (folder / name).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            if not os.path.samestat(os.fstat(file.fileno()), (folder / name).stat()):
                raise FileNotFoundError(errno.ENOENT, "another index took its place", str(folder))
            yield
            _make_private(folder)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise failure(f"writing the index in {folder.name}", error) from error


def _begin(folder: Path) -> None:
    """Make a folder to write to; one of an index that was replaced is not made again."""
    if GENERATION.fullmatch(folder.name):
        folder.stat()
    else:
        folder.mkdir(parents=not GENERATION.fullmatch(folder.parent.name), exist_ok=True)


def _make_private(folder: Path) -> None:
    """Take from others what libraries let them read; whoever copies the folder copies this, too."""
    for root, _, names in os.walk(folder):  # it passes over what goes meanwhile
        for path in (Path(root), *(Path(root, name) for name in names)):
            with suppress(FileNotFoundError):  # tantivy removes what it no longer needs
                mode = path.stat().st_mode
                if mode & _OTHERS:
                    path.chmod(stat.S_IMODE(mode) & ~_OTHERS)


def size_of(dtype: Any) -> int:
    """How many bytes one entry of a file takes."""
    return int(np.dtype(dtype).itemsize)


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
