"""The file `vault.jsonl` as a live view of the ledger: the only module that writes it."""

from __future__ import annotations

import json
import os
import re
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
    """Appending to and replacing one vault.jsonl, by whoever holds the lock of the account's files."""

    def __init__(self, path: Path, folder: Path) -> None:
        self.path = path
        self._folder = folder
        self._mark = folder / "view.json"
        self._disk = Disk()

    @contextmanager
    def saying(self) -> Iterator[None]:
        """Turn the operating system's refusals into ours."""
        try:
            yield
        except OSError as error:
            hint = "the memory itself is stored; the file follows when it can be written"
            raise Unavailable(f"writing {self.path}: {error.strerror}", hint=hint) from error

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

    @property
    def copy(self) -> Path:
        """Where the lines of a foreign file are kept if something in them could not be taken exactly."""
        return self.path.with_name(f"{self.path.name}.imported")

    def copies(self) -> list[Path]:
        """The copies that were kept: the first one, and those with a number."""
        found = self.path.parent.glob(f"{self.copy.name}*")
        numbered = re.compile(re.escape(self.copy.name) + r"(-\d+)?")
        return sorted(path for path in found if numbered.fullmatch(path.name) and not path.is_symlink())

    def _move(self, mark: Mark) -> None:
        """The mark may be lost or late: what is missing is then told from the file itself."""
        temporary = self._mark.with_suffix(".tmp")
        temporary.write_text(json.dumps(asdict(mark)))
        temporary.replace(self._mark)
