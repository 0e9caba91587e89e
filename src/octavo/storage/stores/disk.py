"""The only module that writes files, true or derived: opening, writing, syncing, linking, locking."""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TypeVar

from octavo.errors import Damaged, OctavoError, StoreFull, Unavailable

T = TypeVar("T")

TEMPORARY = ".tmp-"  # how the name of a file begins that no reader looks at

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1
_TRIES = 20
_POLL_SECONDS = 0.001
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_NO_FILE = (errno.EISDIR, errno.ENOTSUP)
_TOO_MANY_OPEN = (errno.EMFILE, errno.ENFILE)


def failure(what: str, error: OSError, hint: str = "") -> OctavoError:
    """What a refusal of the operating system means to a user, and what to do now."""
    said = f"{what}: {error.strerror}"
    if error.errno in _FULL:
        return StoreFull(said)
    if error.errno in _TOO_MANY_OPEN:
        return Unavailable(said, hint="close what is open elsewhere, or raise the limit (`ulimit -n`)")
    if error.errno in _NO_FILE:
        return Damaged(said, hint="something else stands where a file belongs: move it elsewhere")
    hint = hint or "check the folder's permissions, or open the account with read_only=True"
    return Unavailable(said, hint=hint)


@contextmanager
def saying(what: str, hint: str = "") -> Iterator[None]:
    """Turn the operating system's refusals into ours."""
    try:
        yield
    except OSError as error:
        raise failure(what, error, hint) from error


class Disk:
    """The operating system's file calls, one method each, so that tests can stop at any of them."""

    def read(self, path: Path | str, first: int | None = None) -> bytes:
        """The bytes of a file, or only the first of them.

        A pipe or a device, which might never end, is refused without waiting for it.
        """
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)  # every recall asks: no file object
        try:
            told = os.fstat(fd)
            if not stat.S_ISREG(told.st_mode):
                number = errno.EISDIR if stat.S_ISDIR(told.st_mode) else errno.ENOTSUP
                raise OSError(number, "it is no file", str(path))
            size = told.st_size if first is None else min(first, told.st_size)
            data = os.read(fd, size)
            while len(data) < size and (more := os.read(fd, size - len(data))):
                data += more
            return data
        finally:
            os.close(fd)

    def exists(self, path: Path | str) -> bool:
        """Whether the path exists."""
        try:
            os.stat(path)  # noqa: PTH116  # every recall asks, and a Path takes longer than the disk
        except (FileNotFoundError, NotADirectoryError):
            return False
        return True

    def names(self, folder: Path) -> list[str]:
        """The names in a folder, sorted; none if there is no folder."""
        try:
            return sorted(os.listdir(folder))  # noqa: PTH208  # names, not paths
        except FileNotFoundError:
            return []

    def make_folder(self, folder: Path) -> None:
        """Create a folder for its owner alone; one that exists is fine."""
        folder.mkdir(exist_ok=True, mode=0o700)

    def open_new(self, path: Path) -> int:
        """Open a file that must not exist."""
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)

    def open_append(self, path: Path) -> int:
        """Open a file that exists, to append."""
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)

    def open_lock(self, path: Path) -> int:
        """Open a file to lock it, or to write anywhere in it; it comes to be if it is not there."""
        return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def write(self, fd: int, data: bytes) -> None:
        """Write all of the bytes."""
        written = os.write(fd, data)
        while written < len(data):  # a disk that is nearly full takes part of it
            written += os.write(fd, memoryview(data)[written:])

    def write_at(self, fd: int, data: bytes, place: int) -> None:
        """Write all of the bytes at a place of the file."""
        written = 0
        while written < len(data):
            written += os.pwrite(fd, memoryview(data)[written:], place + written)

    def size(self, fd: int) -> int:
        """How long an open file is."""
        return os.fstat(fd).st_size

    def truncate(self, fd: int, size: int) -> None:
        """Cut an open file."""
        os.ftruncate(fd, size)

    def sync(self, fd: int) -> None:
        """Make an open file's bytes durable."""
        os.fdatasync(fd)

    def sync_folder(self, folder: Path) -> None:
        """Make a folder's entries durable."""
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def close(self, fd: int) -> None:
        """Close an open file."""
        os.close(fd)

    def link(self, source: Path, target: Path) -> None:
        """Give a file a second name, or raise FileExistsError."""
        os.link(source, target)

    def move_new(self, source: Path, target: Path) -> None:
        """Rename onto a name that must not exist, for file systems without hard links."""
        import ctypes  # few file systems need this

        libc = ctypes.CDLL(None, use_errno=True)
        code = libc.renameat2(
            _AT_FDCWD, os.fsencode(source), _AT_FDCWD, os.fsencode(target), _RENAME_NOREPLACE
        )
        if code != 0:
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), str(target))

    def replace(self, source: Path, target: Path) -> None:
        """Rename onto a name, replacing what is there."""
        source.replace(target)

    def remove(self, path: Path) -> None:
        """Remove a file."""
        path.unlink()

    def try_lock(self, fd: int) -> bool:
        """Take the exclusive lock of an open file if nobody has it."""
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
                return False
            raise
        return True

    def is_named(self, fd: int) -> bool:
        """Whether an open file still has a name; one that was removed or replaced has none."""
        return os.fstat(fd).st_nlink > 0

    def is_at(self, fd: int, path: Path) -> bool:
        """Whether the open file still has that name."""
        try:
            return os.path.samestat(os.fstat(fd), path.stat())
        except FileNotFoundError:
            return False


@contextmanager
def locked(
    disk: Disk,
    path: Path,
    wait_seconds: float | None,
    hint: str = "",
    sleep: Callable[[float], None] = time.sleep,
) -> Iterator[bool]:
    """Stand in line for a file's lock, across threads and processes; yields whether the turn came in time."""
    with saying(f"locking {path}", hint):
        fd = disk.open_lock(path)
    try:
        with saying(f"locking {path}", hint):
            waited, taken = 0.0, disk.try_lock(fd)
            while not taken and (wait_seconds is None or waited < wait_seconds):
                pause = _POLL_SECONDS * (0.5 + secrets.randbelow(1000) / 1000)
                sleep(pause)
                waited, taken = waited + pause, disk.try_lock(fd)
        yield taken
    finally:
        disk.close(fd)


def make_folders(disk: Disk, folder: Path) -> None:
    """Create a folder and whatever is missing above it."""
    for missing in reversed([part for part in (folder, *folder.parents) if not disk.exists(part)]):
        disk.make_folder(missing)


def replace_file(disk: Disk, path: Path, data: bytes) -> None:
    """Write a file durably over what is there, private to its owner; a reader sees the old or the new one."""
    through_temporary(disk, path, data, disk.replace)
    disk.sync_folder(path.parent)


def through_temporary(disk: Disk, path: Path, data: bytes, name: Callable[[Path, Path], T]) -> T:
    """Write a temporary file and give it its name; once more if a sweep took it for a dead writer's."""
    tries = 0
    while True:
        temporary = _write_beside(disk, path, data)
        try:
            return name(temporary, path)
        except FileNotFoundError:
            tries += 1
            if tries == _TRIES:
                raise
        finally:
            with suppress(FileNotFoundError):
                disk.remove(temporary)


def _write_beside(disk: Disk, path: Path, data: bytes) -> Path:
    temporary = path.with_name(f"{TEMPORARY}{secrets.token_hex(8)}")
    fd = disk.open_new(temporary)
    try:
        disk.write(fd, data)
        disk.sync(fd)
    except OSError:
        with suppress(OSError):
            disk.remove(temporary)
        raise
    finally:
        disk.close(fd)
    return temporary
