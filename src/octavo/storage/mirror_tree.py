"""The bytes of a mirror: files below one folder, listed without following links, each written whole."""

from __future__ import annotations

import hashlib
import os
import re
import stat
import unicodedata
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct, field

from octavo.domain.mirror_places import RESERVED
from octavo.domain.records import shape_of
from octavo.errors import BadInput, NewerFormat
from octavo.storage.stores.disk import TEMPORARY, Disk, failure, make_folders, replace_file, saying

MANIFEST = ".octavo/mirror.json"
IGNORED, SESSION = ".gitignore", "session_state.json"
_FORMAT = 1
_LARGEST = 16_000_000
_OWN = re.compile(re.escape(TEMPORARY) + "[0-9a-f]{16}")
_ENDINGS = (".md", ".json", ".jsonl")
_STORED = "make it writable and try again; what was remembered is stored"
_DRIVE = re.compile(r"[A-Za-z]:")


class Shown(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A file as last written: its hash, what it shows, how often used; `is_behind` a person keeps it."""

    sha256: str
    ids: Mapping[str, int] = field(default_factory=dict)
    uses: Mapping[str, int] = field(default_factory=dict)
    is_behind: bool = False


class Manifest(Struct, frozen=True, kw_only=True):
    """What the mirror was at a version: the base that edits are told from.

    `taken` are the new memories that a sync took from which files, until these show them.
    """

    format: int = _FORMAT
    account: str = ""
    version: int = 0
    header: str = ""
    files: Mapping[str, Shown] = field(default_factory=dict)
    taken: Mapping[str, str] = field(default_factory=dict)


class Tree:
    """The files of one mirror."""

    def __init__(self, disk: Disk, folder: Path) -> None:
        self._disk = disk
        self.folder = folder

    def scan(self) -> tuple[dict[str, bytes], dict[str, str]]:
        """Every file's bytes by its path, and what was not read, with the reason; links are not followed.

        What begins with a dot is an editor's or another tool's, and not looked at.
        """
        files: dict[str, bytes] = {}
        left: dict[str, str] = {}
        for root, folders, names in os.walk(self.folder, onerror=_unlisted):
            folders[:] = sorted(name for name in folders if not name.startswith("."))
            for name in (*folders, *sorted(name for name in names if not name.startswith("."))):
                at = Path(root, name)
                path = os.fsencode(at.relative_to(self.folder)).decode("utf-8", "backslashreplace")
                if at.is_symlink():
                    left[path] = "it is a link and was not followed"
                elif name in folders and name.endswith(_ENDINGS):
                    left[path] = "it is a folder"
                elif name in names and path != SESSION:
                    if why := unfit(path):
                        left[path] = why
                    elif (data := self.read(path)) is None:
                        left[path] = "it is no file, or too large to be read"
                    else:
                        files[path] = data
        plain = {path: unicodedata.normalize("NFC", path) for path in files}
        alike = Counter(name.casefold() for name in plain.values())
        for path in [path for path, name in plain.items() if path != name or alike[name.casefold()] > 1]:
            left[path] = "some systems take its name for another one"
            del files[path]
        return files, left

    def clear_leftovers(self) -> None:
        """Remove what writers that died left behind; who calls it holds the tree alone."""
        for left in [at for at in self.folder.rglob(f"{TEMPORARY}*") if _OWN.fullmatch(at.name)]:
            with saying(f"removing {left}", _STORED), suppress(FileNotFoundError):
                self._disk.remove(left)

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None if there is none, or no plain one."""
        place = self.inside(path)
        with saying(f"reading {place}", _STORED), suppress(FileNotFoundError, NotADirectoryError):
            status = place.lstat()
            if stat.S_ISREG(status.st_mode) and status.st_size <= _LARGEST:
                return self._disk.read(place)
        return None

    def put(self, path: str, data: bytes | None, *, over: bytes | None) -> bool:
        """Write a file whole, or remove it, if what is there is still what the writer saw; False if not.

        The folders that a removed file leaves empty go too.
        """
        place = self.inside(path)
        with saying(f"writing {place}", _STORED):
            if self.read(path) != over or (over is None and os.path.lexists(place)):
                return False
            if data is None and over is not None:
                self._disk.remove(place)
                for folder in place.parents:
                    if folder == self.folder or any(folder.iterdir()):
                        break
                    folder.rmdir()
            elif data is not None and data != over:
                make_folders(self._disk, place.parent)
                replace_file(self._disk, place, data)
        return True

    def manifest(self) -> Manifest | None:
        """What the mirror was; None if nobody knows, which costs a closer look and no edit."""
        try:
            known = msgspec.json.decode(self.read(MANIFEST) or b"", type=shape_of(Manifest))
        except (msgspec.MsgspecError, UnicodeDecodeError):
            return None
        if known.format > _FORMAT:
            raise NewerFormat(f"{self.folder / MANIFEST} has format {known.format}")
        return known

    def inside(self, path: str) -> Path:
        """A path below the folder, through no link, or BadInput: nothing is ever touched elsewhere."""
        if why := unfit(path):
            raise BadInput(f"{path!r} is no file of the mirror: {why}")
        place = self.folder / path
        with saying(f"reading {place}", _STORED):
            links = [above for above in Path(path).parents[:-1] if (self.folder / above).is_symlink()]
        if links:
            raise BadInput(f"{path!r} is no file of the mirror: {links[-1]} is a link")
        return place


def hash_of(data: bytes) -> str:
    """The hash by which a file is known again."""
    return hashlib.sha256(data).hexdigest()


def unfit(path: str) -> str | None:
    """Why a path cannot name a file of a mirror."""
    parts = path.split("/")
    if any(part in ("", ".", "..") for part in parts) or "\\" in path or _DRIVE.match(path):
        return "it does not stay inside"
    if any(RESERVED.fullmatch(part) or part.endswith((".", " ")) or min(part) < " " for part in parts):
        return "its name is reserved or impossible on some systems"
    return None


def _unlisted(error: OSError) -> None:
    """A folder that cannot be read holds nobody knows what; to pass over it would end what it shows."""
    if not isinstance(error, FileNotFoundError):
        raise failure(f"listing {error.filename}", error, "make it readable and try again") from error
