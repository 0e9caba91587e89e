"""The store in a local folder: temp file, fsync, exclusive link, fsync of the folder."""

from __future__ import annotations

import errno
import time
from bisect import bisect_right
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from typing import TypeVar

from octavo.errors import Damaged, LeaseLost, NotFound, SandboxBusy, StoreUnfit
from octavo.storage.stores.disk import Disk, failure, locked, saying, through_temporary
from octavo.storage.stores.entries import checked, whole_lines

T = TypeVar("T")

_NO_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


class LocalStore:
    """One account's entries as files below a folder."""

    def __init__(
        self, folder: Path, *, disk: Disk | None = None, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        self.folder = folder
        self.disk = self._disk = disk or Disk()
        self._sleep = sleep
        self._made: set[Path] = set()

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry durably; False, and nothing changed, if the key or the key `unless` exists."""
        path = self._path(key)
        with saying(f"writing {path}"):
            self._make_folder(path.parent)
            if not through_temporary(self._disk, path, data, self._name):
                return False
            if unless and self._disk.exists(self._path(unless)):  # it may have come to be since it was asked
                self._disk.remove(path)
                self._disk.sync_folder(path.parent)
                return False
            return True

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""
        path = f"{self.folder}/{checked(key)}"
        try:
            return self._disk.read(path, first)
        except FileNotFoundError:
            return None
        except IsADirectoryError as error:
            raise Damaged(
                f"{key} is a folder", hint="move it elsewhere, put the file back from a backup"
            ) from error
        except OSError as error:
            raise failure(f"reading {path}", error) from error

    def read_many(self, keys: Sequence[str], *, first: int | None = None) -> list[bytes | None]:
        """What `read` says of each key, read in their order."""
        return [self.read(key, first=first) for key in keys]

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """The keys in a folder (the prefix ends in a slash) beyond one of them, sorted, at most so many."""
        folder = self._path(prefix.rstrip("/"))
        with saying(f"listing {folder}"):
            keys = [f"{prefix}{name}" for name in self._disk.names(folder) if not name.startswith(".")]
        start = bisect_right(keys, after)
        return keys[start : start + limit]

    def delete(self, *keys: str) -> None:
        """Remove keys, in their order; one that does not exist is fine."""
        touched: dict[Path, None] = {}
        for key in keys:
            path = self._path(key)
            with saying(f"removing {path}"):
                try:
                    self._disk.remove(path)
                except FileNotFoundError:
                    continue
            touched[path.parent] = None
        for folder in touched:
            with saying(f"removing from {folder}"):
                self._disk.sync_folder(folder)

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry durably over what is there."""
        path = self._path(key)
        with saying(f"writing {path}"):
            self._make_folder(path.parent)
            through_temporary(self._disk, path, data, self._disk.replace)
            self._disk.sync_folder(path.parent)

    def hold(self, key: str, seconds: float, *, owner: str = "") -> LocalLease:
        """Take hold of a series of lines by flock: a lease as long as the owner lives."""
        path = self._path(key)
        with saying(f"opening {path}"):
            return LocalLease(path, self._disk, self.replace, key)

    def lines(self, key: str) -> tuple[Sequence[bytes], int] | None:
        """The whole lines of a series and the bytes of a torn last one, None if there is no series."""
        data = self.read(key)
        return None if data is None else whole_lines(data)

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """Stand in line for the account's commits; yields whether the turn came in time."""
        with saying(f"locking {self.folder}"):
            self._make_folder(self.folder)
        return locked(self._disk, self.folder / "lock", wait_seconds, sleep=self._sleep)

    def leftovers(self) -> Sequence[str]:
        """Temporary files that a killed writer left behind."""
        found = []
        for folder in (self.folder, *(self.folder / name for name in ("ledger", "buffers", "archive"))):
            found += [str(folder / n) for n in self._disk.names(folder) if n.startswith(".tmp-")]
        return found

    def clear_leftovers(self) -> int:
        """Remove temporary files of killed writers; nothing ever reads them."""
        found = self.leftovers()
        for name in found:
            with suppress(FileNotFoundError):
                self._disk.remove(Path(name))
        return len(found)

    def _name(self, temporary: Path, path: Path) -> bool:
        """Give the finished file its name if nobody has it; this is the moment that decides."""
        try:
            self._link(temporary, path)
        except FileExistsError:
            # The winner may have stopped before its sync: nobody builds on what may vanish.
            self._disk.sync_folder(path.parent)
            return False
        self._disk.sync_folder(path.parent)
        return True

    def _link(self, temporary: Path, path: Path) -> None:
        try:
            self._disk.link(temporary, path)
        except OSError as error:
            if error.errno not in _NO_LINKS:
                raise
            try:
                self._disk.move_new(temporary, path)
            except (OSError, AttributeError) as worse:
                if isinstance(worse, FileExistsError | FileNotFoundError):
                    raise
                raise StoreUnfit(
                    f"{self.folder} is on a file system with neither hard links nor exclusive rename"
                ) from worse

    def _make_folder(self, folder: Path) -> None:
        if folder in self._made:
            return
        if folder != self.folder:
            self._make_folder(self.folder)
        missing = []
        at = folder
        while not self._disk.exists(at):
            missing.append(at)
            at = at.parent
        for part in reversed(missing):
            self._disk.make_folder(part)
            self._disk.sync_folder(part.parent)
        if not missing:  # who made it may have stopped before its sync
            self._disk.sync_folder(folder.parent)
        self._made.add(folder)

    def _path(self, key: str) -> Path:
        return self.folder / checked(key)


class LocalLease:
    """The owner's hold on one file of lines, by flock for as long as it is open."""

    def __init__(self, path: Path, disk: Disk, replace: Callable[[str, bytes], None], key: str) -> None:
        self._path = path
        self._disk = disk
        self._replace = replace
        self._key = key
        self._has_failed = False
        try:
            self._fd = disk.open_append(path)
        except FileNotFoundError as error:
            raise NotFound(f"there is no session buffer {path.stem!r}") from error
        try:
            self._take()
        except BaseException:
            disk.close(self._fd)
            raise

    def _take(self) -> None:
        if not self._disk.try_lock(self._fd):
            raise SandboxBusy(f"sandbox {self._path.stem!r} has another owner")
        if not self._disk.is_at(self._fd, self._path):
            raise NotFound(f"there is no session buffer {self._path.stem!r}; its owner has just closed it")
        self._lines, self.torn = whole_lines(self._disk.read(self._path))
        if self.torn:
            self._disk.truncate(self._fd, sum(map(len, self._lines)))
            self._disk.sync(self._fd)
        self._size = sum(map(len, self._lines))

    def lines(self) -> list[bytes]:
        """Every whole line that was there when the hold was taken."""
        return self._lines

    def append(self, line: bytes) -> None:
        """Add a line that ends in a newline; on return it is durable."""
        if self._fd < 0:
            raise LeaseLost(f"writing {self._path}: it was let go")
        try:
            self._take_back()
            self._has_failed = True
            self._disk.write(self._fd, line)
            self._disk.sync(self._fd)
            is_mine = self._disk.is_named(self._fd)
        except OSError as error:
            with suppress(OSError):  # if not now, then before the next line
                self._take_back()
            raise failure(f"writing {self._path}", error) from error
        if not is_mine:  # somebody removed or replaced the file meanwhile: nobody will read this line
            raise LeaseLost(f"writing {self._path}: it has gone to somebody else")
        self._has_failed = False
        self._size += len(line)

    def _take_back(self) -> None:
        """Cut off what a failed append left, so that no line ever follows half a line."""
        if self._has_failed:
            self._disk.truncate(self._fd, self._size)
            self._has_failed = False

    def replace(self, data: bytes) -> None:
        """Put other lines in place of all there are, and let go."""
        self.renew()
        self._replace(self._key, data)
        self.close()

    def renew(self) -> None:
        """See that it is still held; a lock needs no renewing."""
        with saying(f"looking at {self._path}"):
            if self._fd < 0 or not self._disk.is_at(self._fd, self._path):
                raise LeaseLost(f"{self._path} has gone to somebody else")

    def delete(self) -> None:
        """Remove the file and let go; not if it is another's file by now."""
        with saying(f"removing {self._path}"):
            if self._fd >= 0 and self._disk.is_at(self._fd, self._path):
                self._disk.remove(self._path)
                self._disk.sync_folder(self._path.parent)
        self.close()

    def close(self) -> None:
        """Let go; a second time is fine."""
        if self._fd >= 0:
            self._disk.close(self._fd)
            self._fd = -1
