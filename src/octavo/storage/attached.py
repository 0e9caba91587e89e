"""Files that documents keep beside a local account: which there are, the lock around them, their bytes.

The only module that writes such a file for a redaction. A file lies in the folder that holds the account or
in the one above, by a plain name, and is no link: nothing else can be attached.
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from octavo.errors import BadInput, Busy, Damaged, NewerFormat, Unavailable
from octavo.storage import codec
from octavo.storage.stores.local import LocalStore

KEY = "attached.json"

_FORMAT = 1
_LOCK = "attached.lock"
_POLL_SECONDS = 0.002
_ABOVE = 2
_AGAIN = "remove it; a vault that is opened attaches its files again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached:
    """One file: a `view` is derived from the ledger, a `copy` is somebody else's lines as they were found.

    `path` is relative to the account's folder. `ids` gives, by line number, the memory that a line became
    where the line itself names it otherwise.
    """

    path: str
    kind: Literal["view", "copy"]
    ids: Mapping[int, str] = field(default_factory=dict)


class _List(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    format: int
    files: list[Attached]


class AttachedFiles:
    """The attached files of one account; whoever writes one of them, or the list, holds the lock."""

    def __init__(self, store: LocalStore) -> None:
        self._store = store
        self._disk = store.disk

    def listed(self) -> list[Attached]:
        """The files that were ever attached, whether they are there or not."""
        data = self._store.read(KEY)
        if data is None:
            return []
        try:
            found = msgspec.json.decode(data, type=_List)
        except msgspec.ValidationError as error:
            raise NewerFormat(f"{KEY} holds what this Octavo does not know: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Damaged(f"{KEY} is not JSON: {error}", hint=_AGAIN) from error
        if found.format > _FORMAT:
            raise NewerFormat(f"{KEY} has format {found.format}")
        try:
            for file in found.files:
                self.place_of(file)
        except BadInput as error:
            raise Damaged(f"{KEY}: {error.message}", hint=_AGAIN) from error
        return found.files

    def attach(
        self, path: Path, kind: Literal["view", "copy"], ids: Mapping[int, str] | None = None
    ) -> Attached:
        """Put a file on the list, before its first byte is written; one that is listed stays as it is."""
        wanted = self.beside(path, kind, ids)
        files = self.listed()
        known = next((file for file in files if file.path == wanted.path), None)
        if known is None:
            whole = _List(format=_FORMAT, files=[*files, wanted])
            self._store.replace(KEY, codec.encode_json(whole) + b"\n")
        return known or wanted

    def beside(
        self, path: Path, kind: Literal["view", "copy"], ids: Mapping[int, str] | None = None
    ) -> Attached:
        """A file as the list would name it, or BadInput."""
        # Not resolved: a folder that is a link still lies where its name stands.
        relative = Path(os.path.relpath(path.absolute(), self._store.folder.absolute()))
        found = Attached(path=relative.as_posix(), kind=kind, ids=dict(ids or {}))
        self.place_of(found)
        return found

    def place_of(self, file: Attached) -> Path:
        """Where a file lies; BadInput for one that lies elsewhere than beside the account."""
        *up, name = file.path.split("/")
        if not 1 <= len(up) <= _ABOVE or set(up) != {".."} or name in ("", ".", "..") or "\0" in name:
            hint = "only a file beside the account's folder, or one above, can be attached"
            raise BadInput(f"{file.path!r} does not lie beside the account", hint=hint)
        return Path(os.path.abspath(self._store.folder)).parents[len(up) - 1] / name  # noqa: PTH100  # likewise

    def read(self, file: Attached) -> bytes | None:
        """The bytes of a file, None if it is gone; a link or a folder in its place is Unavailable."""
        place = self.place_of(file)
        with _saying("reading", place):
            try:
                mode = place.lstat().st_mode
            except FileNotFoundError:
                return None
            if not stat.S_ISREG(mode):
                hint = "put the file itself there, or take away what is there"
                raise Unavailable(f"{place} is no file of its own, so it was not looked into", hint=hint)
            return self._disk.read(place)

    def create(self, file: Attached, data: bytes) -> None:
        """Write a file that must not exist, durably."""
        place = self.place_of(file)
        with _saying("writing", place):
            self._write_new(place, data)
            self._disk.sync_folder(place.parent)

    def replace(self, file: Attached, data: bytes) -> None:
        """Write a file durably over what is there."""
        place = self.place_of(file)
        temporary = place.with_name(f"{place.name}.redact.tmp")
        with _saying("writing", place):
            with suppress(FileNotFoundError):
                self._disk.remove(temporary)
            self._write_new(temporary, data)
            self._disk.replace(temporary, place)
            self._disk.sync_folder(place.parent)

    def clear_leftovers(self, file: Attached) -> None:
        """Remove the temporary files that killed writers of a file left beside it."""
        place = self.place_of(file)
        with _saying("removing what was left of", place):
            for name in self._disk.names(place.parent):
                start, _, which = name.removesuffix(".tmp").rpartition(".")
                if start == place.name and which.isalpha() and name.endswith(".tmp"):
                    with suppress(FileNotFoundError):
                        self._disk.remove(place.with_name(name))

    @contextmanager
    def locked(self, wait_seconds: float | None = None) -> Iterator[None]:
        """Hold the files alone, across threads and processes; Busy if the turn does not come in time."""
        lock = self._store.folder / _LOCK
        with _saying("locking", lock):
            fd = self._disk.open_lock(lock)
        try:
            with _saying("locking", lock):
                self._wait_for(fd, wait_seconds)
            yield
        finally:
            self._disk.close(fd)

    def _write_new(self, place: Path, data: bytes) -> None:
        fd = self._disk.open_new(place)
        try:
            self._disk.write(fd, data)
            self._disk.sync(fd)
        finally:
            self._disk.close(fd)

    def _wait_for(self, fd: int, wait_seconds: float | None) -> None:
        waited = 0.0
        while not self._disk.try_lock(fd):
            if wait_seconds is not None and waited >= wait_seconds:
                raise Busy(f"the files beside the account were held by others for {wait_seconds:g} seconds")
            time.sleep(_POLL_SECONDS)
            waited += _POLL_SECONDS


@contextmanager
def _saying(what: str, place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable(
            f"{what} {place}: {error.strerror}", hint="make it writable and try again"
        ) from error
