"""What lies beside a local account and holds its text: which files and trees, their lock, their bytes.

A file lies in the folder that holds the account or in the one above, by a plain name, and is no link: nothing
else can be attached. A tree may lie anywhere, for what is in it is written by its own projection alone.
"""

from __future__ import annotations

import os
import re
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct, field

from octavo.domain.ports import Store
from octavo.errors import BadInput, Busy, Damaged, NewerFormat, Unavailable
from octavo.storage import codec
from octavo.storage.stores.disk import TEMPORARY, Disk, replace_file, saying

KEY = "attached.json"
INSIDE = "mirror"  # the one tree inside the account's folder, so that a copy of the folder has its own

Sort = Literal["view", "copy", "tree"]

_FORMAT = 1
_LOCK = "attached.lock"
_POLL_SECONDS = 0.002
_ABOVE = 2
_AGAIN = "remove it; a vault that is opened attaches its files again"
_LEFT = re.compile(re.escape(TEMPORARY) + "[0-9a-f]{16}")


class Attached(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One of them: a `view` is derived from the ledger, a `copy` is somebody else's lines as they were found,
    a `tree` is a folder of files that people read and edit.

    `path` is relative to the account's folder, of a tree elsewhere absolute; `of` is then the folder of the
    account that it was made for, so that a copy of the account leaves the tree alone. `ids` gives, by line
    number, the memory that a line became where the line itself names it otherwise.
    """

    path: str
    kind: Sort
    ids: Mapping[int, str] = field(default_factory=dict)
    of: str = ""


class _List(Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    format: int
    files: list[Attached]


class AttachedFiles:
    """What is attached to one account; whoever writes one of the files, or the list, holds the lock."""

    def __init__(self, store: Store, disk: Disk | None = None) -> None:
        self._store = store
        self.disk = disk or Disk()

    def listed(self) -> list[Attached]:
        """What was ever attached, whether it is there or not."""
        data = self._store.read(KEY)
        if data is None:
            return []
        try:
            known = msgspec.json.decode(data, type=_List)
        except msgspec.ValidationError as error:
            raise NewerFormat(f"{KEY} holds what this Octavo does not know: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Damaged(f"{KEY} is not JSON: {error}", hint=_AGAIN) from error
        if known.format > _FORMAT:
            raise NewerFormat(f"{KEY} has format {known.format}")
        try:
            for file in known.files:
                self.place_of(file)
        except BadInput as error:
            raise Damaged(f"{KEY}: {error.message}", hint=_AGAIN) from error
        return [file for file in known.files if not self._is_of_another(file)]

    def attach(self, path: Path, kind: Sort, ids: Mapping[int, str] | None = None) -> Attached:
        """Put it on the list, before its first byte is written; what is listed stays as it is."""
        file = self.beside(path, kind, ids)
        files = self.listed()
        known = next((other for other in files if other.path == file.path), None)
        if known is None:
            whole = _List(format=_FORMAT, files=[*files, file])
            self._store.replace(KEY, codec.encode_json(whole) + b"\n")
        return known or file

    def beside(self, path: Path, kind: Sort, ids: Mapping[int, str] | None = None) -> Attached:
        """A file or a tree as the list would name it, or BadInput."""
        # Not resolved: a folder that is a link still lies where its name stands.
        name = Path(os.path.relpath(path.absolute(), self._store.folder.absolute())).as_posix()
        of = ""
        if kind == "tree" and name != INSIDE and not _is_near(name):
            name = Path(os.path.abspath(path)).as_posix()  # noqa: PTH100  # likewise
            of = os.path.abspath(self._store.folder)  # noqa: PTH100  # likewise
        file = Attached(path=name, kind=kind, ids=dict(ids or {}), of=of)
        self.place_of(file)
        return file

    def _is_of_another(self, file: Attached) -> bool:
        """Whether a tree elsewhere belongs to the account that this one was copied from and that is there."""
        is_own = not file.of or file.of == os.path.abspath(self._store.folder)  # noqa: PTH100  # likewise
        return not is_own and Path(file.of, "account.json").exists()

    def place_of(self, file: Attached) -> Path:
        """Where it lies; BadInput for a file that lies elsewhere than beside the account."""
        if file.kind == "tree" and file.path == INSIDE:
            return Path(os.path.abspath(self._store.folder)) / INSIDE  # noqa: PTH100  # likewise
        if file.kind == "tree" and "\0" not in file.path and Path(file.path).is_absolute():
            return Path(file.path)
        if not _is_near(file.path):
            hint = "only a file beside the account's folder, or one above, can be attached"
            raise BadInput(f"{file.path!r} does not lie beside the account", hint=hint)
        *up, name = file.path.split("/")
        return Path(os.path.abspath(self._store.folder)).parents[len(up) - 1] / name  # noqa: PTH100  # likewise

    def read(self, file: Attached) -> bytes | None:
        """The bytes of a file, None if it is gone; a link or a folder in its place is Unavailable."""
        place = self.place_of(file)
        with saying("reading", place):
            try:
                mode = place.lstat().st_mode
            except FileNotFoundError:
                return None
            if not stat.S_ISREG(mode):
                hint = "put the file itself there, or take away what is there"
                raise Unavailable(f"{place} is no file of its own, so it was not looked into", hint=hint)
            return self.disk.read(place)

    def files_in(self, tree: Attached) -> Iterator[tuple[Path, bytes]]:
        """The files of a tree and their bytes; links are not followed."""
        place = self.place_of(tree)
        for folder, _, names in os.walk(place):
            for path in (Path(folder, name) for name in sorted(names)):
                with saying("reading", path), suppress(FileNotFoundError):
                    if stat.S_ISREG(path.lstat().st_mode):
                        yield path, self.disk.read(path)

    def append(self, file: Attached, data: bytes) -> None:
        """Add to a file in one write, durably; it comes to be if it is not there."""
        place = self.place_of(file)
        with saying("writing", place):
            if not self.disk.exists(place):
                replace_file(self.disk, place, data)
                return
            fd = self.disk.open_append(place)
            try:
                self.disk.write(fd, data)
                self.disk.sync(fd)
            finally:
                self.disk.close(fd)

    def replace(self, file: Attached, data: bytes) -> None:
        """Write a file durably over what is there."""
        place = self.place_of(file)
        with saying("writing", place):
            replace_file(self.disk, place, data)

    def clear_leftovers(self, file: Attached) -> None:
        """Remove the temporary files that killed writers of a file left beside it."""
        place = self.place_of(file)
        with saying("removing what was left of", place):
            for name in self.disk.names(place.parent):
                start, _, which = name.removesuffix(".tmp").rpartition(".")  # as they were named once
                is_old = start == place.name and which.isalpha() and name.endswith(".tmp")
                if is_old or _LEFT.fullmatch(name):
                    with suppress(FileNotFoundError):
                        self.disk.remove(place.with_name(name))

    @contextmanager
    def locked(self, wait_seconds: float | None = None) -> Iterator[None]:
        """Hold the files alone, across threads and processes; Busy if the turn does not come in time."""
        lock = self._store.folder / _LOCK
        with saying("locking", lock):
            fd = self.disk.open_lock(lock)
        try:
            with saying("locking", lock):
                self._wait_for(fd, wait_seconds)
            yield
        finally:
            self.disk.close(fd)

    def _wait_for(self, fd: int, wait_seconds: float | None) -> None:
        waited = 0.0
        while not self.disk.try_lock(fd):
            if wait_seconds is not None and waited >= wait_seconds:
                raise Busy(f"the files beside the account were held by others for {wait_seconds:g} seconds")
            time.sleep(_POLL_SECONDS)
            waited += _POLL_SECONDS


def _is_near(path: str) -> bool:
    """Whether a relative path names something beside the account's folder, or one above."""
    *up, name = path.split("/")
    return 1 <= len(up) <= _ABOVE and set(up) == {".."} and name not in ("", ".", "..") and "\0" not in name
