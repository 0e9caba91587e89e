"""The file `vault.jsonl` as a live view of the ledger: the only module that writes it."""

from __future__ import annotations

import fcntl
import json
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from octavo.errors import Unavailable
from octavo.storage.stores.disk import Disk


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """How far the file has followed: up to which version of which ledger, and how long it was then."""

    version: int = 0
    hash: str = ""
    size: int = 0


class VaultFile:
    """Appending, replacing and locking of one vault.jsonl; any number of processes take turns.

    The lock is a file of its own, so that replacing the vault does not let a second writer in.
    """

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self._folder = folder
        self._mark = folder / "view.json"
        self._disk = Disk()
        self._turn = threading.RLock()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the file alone, across threads and processes."""
        with self._turn:
            self._folder.mkdir(parents=True, exist_ok=True)
            fd = self._disk.open_lock(self._folder / "view.lock")
            try:
                fcntl.flock(fd, fcntl.LOCK_EX)
                yield
            except OSError as error:
                hint = "the memory itself is stored; the file follows when it can be written"
                raise Unavailable(f"writing {self.path}: {error.strerror}", hint=hint) from error
            finally:
                self._disk.close(fd)

    def mark(self) -> Mark:
        """How far the file has followed; a mark that cannot be read is none."""
        try:
            return Mark(**json.loads(self._mark.read_bytes()))
        except (FileNotFoundError, ValueError, TypeError):
            return Mark()

    def read(self) -> bytes | None:
        """The whole file, None if there is none."""
        try:
            return self._disk.read(self.path)
        except FileNotFoundError:
            return None

    def beyond(self, size: int) -> bytes | None:
        """What stands behind a size, None if the file is shorter than that."""
        try:
            with self.path.open("rb") as file:
                if os.fstat(file.fileno()).st_size < size:
                    return None
                file.seek(size)
                return file.read()
        except FileNotFoundError:
            return b"" if size == 0 else None

    def append(self, lines: bytes, mark: Mark) -> None:
        """Add lines in one write, make them durable, then move the mark."""
        if lines:
            is_new = not self.path.exists()
            fd = os.open(self.path, os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC, 0o600)
            try:
                self._disk.write(fd, lines)
                self._disk.sync(fd)
            finally:
                self._disk.close(fd)
            if is_new:
                self._disk.sync_folder(self.path.parent)
        self._move(mark)

    def replace(self, lines: bytes, mark: Mark, *, suffix: str) -> None:
        """Put other lines in the place of all, at once; a reader sees the old file or the new one."""
        temporary = self.path.with_name(f"{self.path.name}.{suffix}.tmp")
        fd = os.open(temporary, os.O_CREAT | os.O_TRUNC | os.O_WRONLY | os.O_CLOEXEC, 0o600)
        try:
            self._disk.write(fd, lines)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)
        self._disk.replace(temporary, self.path)
        self._disk.sync_folder(self.path.parent)
        self._move(mark)

    def keep_copy(self, data: bytes) -> Path:
        """Keep the bytes of a foreign file beside it, under a name that is free."""
        number = 1
        while True:
            copy = self.path.with_name(f"{self.path.name}.imported{f'-{number}' if number > 1 else ''}")
            try:
                fd = self._disk.open_new(copy)
                break
            except FileExistsError:
                number += 1
        try:
            self._disk.write(fd, data)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)
        return copy

    def _move(self, mark: Mark) -> None:
        """The mark may be lost or late: what is missing is then told from the file itself."""
        temporary = self._mark.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(mark)))
        temporary.replace(self._mark)
