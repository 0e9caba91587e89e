"""The only module that touches the disk for the ledger: opening, writing, syncing, linking, locking."""

from __future__ import annotations

import errno
import fcntl
import os
from pathlib import Path

_AT_FDCWD = -100
_RENAME_NOREPLACE = 1


class Disk:
    """The operating system's file calls, one method each, so that tests can stop at any of them."""

    def read(self, path: Path, first: int | None = None) -> bytes:
        """The bytes of a file, or only the first of them."""
        with path.open("rb") as file:
            return file.read(-1 if first is None else first)

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
        """Create a folder; one that exists is fine."""
        folder.mkdir(exist_ok=True)

    def open_new(self, path: Path) -> int:
        """Open a file that must not exist."""
        return os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | os.O_CLOEXEC, 0o600)

    def open_append(self, path: Path) -> int:
        """Open a file that exists, to append."""
        return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)

    def open_lock(self, path: Path) -> int:
        """Open a file that exists only to be locked."""
        return os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)

    def write(self, fd: int, data: bytes) -> None:
        """Write all of the bytes."""
        written = os.write(fd, data)
        while written < len(data):  # a disk that is nearly full takes part of it
            written += os.write(fd, memoryview(data)[written:])

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

    def is_at(self, fd: int, path: Path) -> bool:
        """Whether the open file still has that name."""
        try:
            return os.path.samestat(os.fstat(fd), path.stat())
        except FileNotFoundError:
            return False
