"""What documents and mirrors keep beside a local account: which files and trees, their lock, their bytes, as
one projection that is proved and that redactions reach.

A file lies in the folder that holds the account or in the one above, by a plain name, and is no link: nothing
else can be attached. A tree may lie anywhere, for what is in it is written by its own projection alone.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from octavo.domain.erasure import Erasure
from octavo.domain.memory import Redaction
from octavo.domain.ports import Progress, Projection
from octavo.domain.records import shape_of
from octavo.domain.text import key_of
from octavo.engine.spine import Spine
from octavo.errors import BadInput, Busy, Damaged, NewerFormat, Unavailable
from octavo.storage import codec
from octavo.storage.mirror_tree import Manifest, Tree, hash_of
from octavo.storage.stores.disk import TEMPORARY, Disk, locked, replace_file, saying

KEY = "attached.json"
INSIDE = "mirror"  # the one tree inside the account's folder, so that a copy of the folder has its own

Sort = Literal["view", "copy", "tree"]

_FORMAT = 1
_LOCK = "attached.lock"
_ABOVE = 2
_AGAIN = "remove it; a vault that is opened attaches its files again"
_STORED = "make it writable and try again; what was remembered is stored"
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


class Attachments:
    """The files and trees beside one account; whoever writes one of them, or the list, holds the lock.

    Whoever made one follows the ledger with it and can throw it away; what every handle can do, whether or
    not that document is open, is to erase and to prove.
    """

    def __init__(self, spine: Spine) -> None:
        if spine.store.folder is None:
            raise BadInput("an account without a folder has no files beside it", hint="use a local folder")
        self._spine = spine
        self.folder = Path(os.path.abspath(spine.store.folder))  # noqa: PTH100  # links stay
        self.disk: Disk = getattr(spine.store, "disk", None) or Disk()

    def join(self, projection: Projection) -> None:
        """Let what an open document makes of the ledger be followed, erased and proved with all the rest."""
        self._spine.followers.append(projection)

    def listed(self) -> list[Attached]:
        """What was ever attached, whether it is there or not."""
        data = self._spine.store.read(KEY)
        if data is None:
            return []
        try:
            known = msgspec.json.decode(data, type=dict[str, Any])
            if set(known) != {"format", "files"} or known["format"] > _FORMAT:
                raise NewerFormat(f"{KEY} has format {known.get('format')} and {', '.join(known)}")
            files = msgspec.convert(known["files"], shape_of(list[Attached]), str_keys=True)
        except (msgspec.ValidationError, TypeError) as error:
            raise NewerFormat(f"{KEY} holds what this Octavo does not know: {error}") from error
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise Damaged(f"{KEY} is not JSON: {error}", hint=_AGAIN) from error
        try:
            for file in files:
                self.place_of(file)
        except BadInput as error:
            raise Damaged(f"{KEY}: {error.message}", hint=_AGAIN) from error
        # A tree elsewhere may belong to the account that this one was copied from and that is still there.
        ours = ("", str(self.folder))
        return [file for file in files if file.of in ours or not Path(file.of, "account.json").exists()]

    def attach(self, path: Path, kind: Sort, ids: Mapping[int, str] | None = None) -> Attached:
        """Put it on the list, before its first byte is written; what is listed stays as it is."""
        file = self.beside(path, kind, ids)
        files = self.listed()
        known = next((other for other in files if other.path == file.path), None)
        if known is None:
            whole = {"format": _FORMAT, "files": [*files, file]}
            self._spine.store.replace(KEY, codec.encode_json(whole) + b"\n")
        return known or file

    def beside(self, path: Path, kind: Sort, ids: Mapping[int, str] | None = None) -> Attached:
        """A file or a tree as the list would name it, or BadInput."""
        # Not resolved: a folder that is a link still lies where its name stands.
        name, of = Path(os.path.relpath(path.absolute(), self.folder)).as_posix(), ""
        if kind == "tree" and name != INSIDE and not _is_near(name):
            name, of = Path(os.path.abspath(path)).as_posix(), str(self.folder)  # noqa: PTH100  # likewise
        file = Attached(path=name, kind=kind, ids=dict(ids or {}), of=of)
        self.place_of(file)
        return file

    def place_of(self, file: Attached) -> Path:
        """Where it lies; BadInput for a file that lies elsewhere than beside the account."""
        if file.kind == "tree" and file.path == INSIDE:
            return self.folder / INSIDE
        if file.kind == "tree" and "\0" not in file.path and Path(file.path).is_absolute():
            return Path(file.path)
        if not _is_near(file.path):
            hint = "only a file beside the account's folder, or one above, can be attached"
            raise BadInput(f"{file.path!r} does not lie beside the account", hint=hint)
        *up, name = file.path.split("/")
        return self.folder.parents[len(up) - 1] / name

    def read(self, file: Attached) -> bytes | None:
        """The bytes of a file, None if it is gone; a link or a folder in its place is Unavailable."""
        place = self.place_of(file)
        with saying(f"reading {place}", _STORED):
            try:
                mode = place.lstat().st_mode
            except FileNotFoundError:
                return None
            if not stat.S_ISREG(mode):
                hint = "put the file itself there, or take away what is there"
                raise Unavailable(f"{place} is no file of its own, so it was not looked into", hint=hint)
            return self.disk.read(place)

    def append(self, file: Attached, data: bytes) -> None:
        """Add to a file in one write, durably; it comes to be if it is not there."""
        place = self.place_of(file)
        if not self.disk.exists(place):
            self.replace(file, data)
            return
        with saying(f"writing {place}", _STORED):
            fd = self.disk.open_append(place)
            try:
                self.disk.write(fd, data)
                self.disk.sync(fd)
            finally:
                self.disk.close(fd)

    def replace(self, file: Attached, data: bytes) -> None:
        """Write a file durably over what is there."""
        place = self.place_of(file)
        with saying(f"writing {place}", _STORED):
            replace_file(self.disk, place, data)

    @contextmanager
    def locked(self, wait_seconds: float | None = None) -> Iterator[None]:
        """Hold the files alone, across threads and processes; Busy if the turn does not come in time."""
        with locked(self.disk, self.folder / _LOCK, wait_seconds, _STORED) as taken:
            if not taken:
                raise Busy(f"the files beside the account were held by others for {wait_seconds:g} seconds")
            yield

    def keep(self, path: Path, data: bytes, ids: Mapping[int, str]) -> Path:
        """Keep somebody else's lines in a new file, under a name that is free, without what was erased.

        `ids` gives the memories that lines became, by line number.
        """
        number, place, known = 1, path, self._names()
        while place.name in known or place.exists() or place.is_symlink():
            number += 1
            place = path.with_name(f"{path.name}-{number}")
        clean = self._without(erasure_of(self._spine, _redactions(self._spine)), data, ids)
        self.replace(self.attach(place, "copy", ids), clean)
        return place

    def adopt(self, paths: Iterable[Path], ids: Callable[[bytes], Mapping[int, str]]) -> None:
        """Attach files of somebody else's lines that lie there already: a list can be lost, a file renamed.

        A redaction that did not know of one is made good before it is listed.
        """
        known = self._names()
        for path in (path for path in paths if path.name not in known):
            became = ids(self.disk.read(path))
            file = self.beside(path, "copy", became)
            for why in self._held(file, erasure_of(self._spine, _redactions(self._spine)), clean=True):
                raise Unavailable(f"a redacted text may be in a file that cannot be cleaned: {why}")
            self.attach(path, "copy", became)

    def follow(self, progress: Progress | None = None) -> None:
        """Nothing: the document whose files they are follows with them."""

    def erase(self, erasure: Erasure) -> list[str]:
        """Erase texts from every file; returns what could not be cleaned, and why.

        A tree is only looked into: its own projection has cleaned it before, and what is left is a person's.
        """
        try:
            with self.locked(self._spine.policy.commit.wait_seconds):
                return [why for file in self.listed() for why in self._held(file, erasure, clean=True)]
        except (Busy, Damaged, Unavailable) as error:
            return [error.message]

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Which of them still hold what was erased, or cannot be looked into."""
        pending = unswept(self._spine)
        erasure = erasure_of(self._spine, pending)
        return [why for file in self.listed() for why in self._held(file, erasure)] if pending else []

    def clear(self) -> None:
        """Nothing: what stands in them and not in the ledger is somebody else's."""

    def _names(self) -> set[str]:
        return {self.place_of(file).name for file in self.listed()}

    def _held(self, file: Attached, erasure: Erasure, *, clean: bool = False) -> Iterator[str]:
        """What of a file, or of the files of a tree, still holds what was erased; a file can be cleaned."""
        try:
            if file.kind == "tree":
                held = [path for path, data in self._edited(file) if erasure.is_in(data)]
            else:
                data = self.read(file) or b""
                left = self._cleaned(file, data, erasure)
                held = [self.place_of(file)] * (left != data and not clean)
                if clean and left != data:
                    self.replace(file, left)
                if clean:
                    self._clear_leftovers(file)
        except (Damaged, Unavailable) as error:
            yield error.message
        else:
            yield from (f"{path} still holds what was erased" for path in held)

    def _edited(self, tree: Attached) -> Iterator[tuple[Path, bytes]]:
        """The files of a tree that the mirror did not write: its own are as the ledger has it now."""
        place = self.place_of(tree)
        shown = (Tree(self.disk, place).manifest() or Manifest()).files.values()
        ours = {file.sha256 for file in shown}
        for folder, _, names in os.walk(place):
            for path in (Path(folder, name) for name in sorted(names)):
                with saying(f"reading {path}", _STORED), suppress(FileNotFoundError):
                    if (
                        stat.S_ISREG(path.lstat().st_mode)
                        and hash_of(data := self.disk.read(path)) not in ours
                    ):
                        yield path, data

    def _clear_leftovers(self, file: Attached) -> None:
        """Remove the temporary files that killed writers of a file left beside it."""
        place = self.place_of(file)
        with saying(f"removing what was left of {place}", _STORED):
            for name in self.disk.names(place.parent):
                # The vault's first program writes its compaction beside the file, as `.compact.tmp`.
                if _LEFT.fullmatch(name) or name == f"{place.name}.compact.tmp":
                    with suppress(FileNotFoundError):
                        self.disk.remove(place.with_name(name))

    def _cleaned(self, file: Attached, data: bytes, erasure: Erasure) -> bytes:
        """A view loses its lines, for they come again as the ledger tells them; a copy keeps their hashes."""
        return self._without(erasure, data, file.ids) if file.kind == "copy" else erasure.without(data)

    def _without(self, erasure: Erasure, data: bytes, ids: Mapping[int, str]) -> bytes:
        """Somebody else's lines, in the place of an erased one its hash under the account's key."""

        def instead(line: bytes) -> bytes:
            return codec.encode_json({"redacted": self._spine.keyed(line.decode("utf-8", "replace"))})

        # In these an id says nothing: two of them may say the same.
        return replace(erasure, is_other=lambda id_: False).without(data, instead, ids)


def _is_near(path: str) -> bool:
    """Whether a relative path names something beside the account's folder, or one above."""
    *up, name = path.split("/")
    return 1 <= len(up) <= _ABOVE and set(up) == {".."} and name not in ("", ".", "..") and "\0" not in name


def erasure_of(spine: Spine, redactions: Iterable[Redaction]) -> Erasure:
    """What some redactions erase; a memory that says the same under an id of its own stays."""
    redactions = list(redactions)
    keys = {redaction.key for redaction in redactions}
    return Erasure(
        ids={redaction.memory for redaction in redactions},
        is_erased=lambda text: spine.keyed(key_of(text)) in keys,
        mask=codec.REDACTED,
        is_other=lambda id_: bool(spine.state.history(id_)),
    )


def unswept(spine: Spine) -> dict[Redaction, int]:
    """Redactions whose bytes may still be somewhere, and the version each came in."""
    latest: dict[tuple[str, str], tuple[Redaction, int]] = {}
    for version, change in reversed(spine.state.others("redaction")):
        if isinstance(change, Redaction):
            latest[change.memory, change.key] = (change, version)
    return {redaction: version for redaction, version in latest.values() if not redaction.swept}


def _redactions(spine: Spine) -> list[Redaction]:
    """Every redaction there ever was."""
    spine.head()
    return [change for _, change in spine.state.others("redaction") if isinstance(change, Redaction)]
