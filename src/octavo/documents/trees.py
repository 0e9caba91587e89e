"""Trees of files: listed without following links, read as JSON or bytes, each written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from octavo.documents.transfer import Note
from octavo.domain import strict_json
from octavo.errors import BadFile, BadInput, Unavailable
from octavo.storage.stores.disk import Disk, make_folders, replace_file, saying

MAX_BYTES = 2_000_000_000  # of one file to be read


def files_below(folder: Path, place: str = "") -> tuple[list[str], list[Note]]:
    """The files below a folder as relative paths, sorted, and the links that were not followed."""
    files, links = [], []
    for root, folders, names in os.walk(folder):
        at = Path(root)
        for name in sorted((*folders, *names)):
            relative = (at / name).relative_to(folder).as_posix()
            if (at / name).is_symlink():
                links.append(Note(place=f"{place}{relative}", reason="is a link and was not followed"))
            elif name in names and (at / name).is_file():
                files.append(relative)
        folders[:] = [name for name in folders if not (at / name).is_symlink()]
    return sorted(files), sorted(links, key=lambda note: note.place)


def read_bytes(path: Path, most: int = MAX_BYTES) -> bytes:
    """A regular file's bytes, within a bound; a device or a pipe would never end."""
    try:
        if not path.is_file():
            what = "is no regular file" if path.exists() else "is not there"
            raise BadFile(f"{path} {what}", hint="name a file that can be read")
        if path.stat().st_size > most:
            raise BadFile(f"{path} is larger than {most} bytes", hint="split the file")
        return path.read_bytes()
    except OSError as error:
        raise Unavailable(f"reading {path}: {error.strerror}", hint="check the file's permissions") from error


def read_json(path: Path, *, odd: bool = False) -> Any:
    """A file's JSON; anything else is an error that names file and line, as `strict_json` has it."""
    return strict_json.value_of(read_bytes(path), str(path), odd=odd)


def json_bytes(value: Any) -> bytes:
    """JSON that people can read."""
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"


def write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files below a folder, each replaced whole; others are left alone."""
    for relative, data in files.items():
        write_bytes(inside(folder, relative), data)


def write_bytes(path: Path, data: bytes, disk: Disk | None = None) -> None:
    """Write a file by a temporary one and a rename, so that nobody sees half of it."""
    disk = disk or Disk()
    with saying(f"writing {path}", "name a folder you may write"):
        make_folders(disk, path.parent)
        replace_file(disk, path, data)


def kept_bytes(data: bytes) -> dict[str, str]:
    """A file nobody knows, as data: its text, or its bytes in hexadecimal.

    Base64 would look like a token to the gate.
    """
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def bytes_of(value: Mapping[str, Any]) -> bytes:
    """The bytes of a file nobody knows."""
    return bytes.fromhex(value["hex"]) if "hex" in value else str(value.get("text", "")).encode()


def inside(folder: Path, relative: str) -> Path:
    """A path below a folder, or an error: nothing is ever written elsewhere."""
    parts = PurePosixPath(relative).parts
    if (
        not parts
        or relative.startswith("/")
        or any(p in ("..", ".") or "\\" in p or "\0" in p for p in parts)
    ):
        raise BadInput(f"{relative!r} does not name a file below {folder}")
    return folder.joinpath(*parts)
