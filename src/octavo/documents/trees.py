"""Trees of files: listed without following links, read as JSON or bytes, each written whole or not at all.

What no document has a memory for is kept beside the memories, by a name, and goes out again as it came.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from octavo.documents.transfer import FILE, Exported, Note, is_kept
from octavo.domain import strict_json
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.engine.reading import Reader
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


def must_be(what: str, value: object, *shapes: type) -> None:
    """Raise unless a value of a document has one of the shapes that JSON gives it: objects and lists."""
    if not isinstance(value, shapes):
        right = " or ".join("a list" if shape is list else "an object" for shape in shapes)
        raise BadInput(f"{what} is {type(value).__name__}, not {right}")


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


def export(
    account: Account,
    format_: str,
    folder: Path,
    files: Mapping[str, bytes],
    *,
    counts: Iterable[str] | Mapping[str, int],
    left_out: Iterable[str] | Mapping[str, int],
    version: int | None = None,
) -> Exported:
    """Write an account, or a version of it, in a format; say what that was, each thing by its name."""
    write_all(folder, files)
    return Exported(
        format=format_,
        version=account.version if version is None else version,
        account=account.name,
        counts=dict(Counter(counts)),
        left_out=dict(Counter(left_out)),
        files=tuple(sorted(files)),
    )


def write_bytes(path: Path, data: bytes, disk: Disk | None = None) -> None:
    """Write a file by a temporary one and a rename, so that nobody sees half of it."""
    disk = disk or Disk()
    with saying(f"writing {path}", "name a folder you may write"):
        make_folders(disk, path.parent)
        replace_file(disk, path, data)


def keep(name: str, value: Mapping[str, Any], *, at: datetime) -> Memory:
    """What documents hold besides memories, by a name."""
    return Memory(
        id="",
        kind="register",
        text="",
        category=FILE,
        topic=topic_of(FILE, name),
        source="operator",
        at=at,
        confidence=1.0,
        data={"name": name, **value},
    )


def keep_file(home: str, place: str, data: bytes, *, at: datetime) -> Memory:
    """A file nobody knows, with its place in parts: a whole path can look like a token to the gate."""
    name = f"{home}{hashlib.sha256(place.encode()).hexdigest()[:32]}"
    return keep(name, {"path": place.split("/"), **kept_bytes(data)}, at=at)


def place_of(kept: Memory) -> str:
    """Where something that is kept stood, for people."""
    return "/".join(kept.data.get("path") or [kept.data["name"]])


def kept(reader: Reader) -> dict[str, Mapping[str, Any]]:
    """Everything that is kept, by name."""
    memories = reader.memories(kind="register", category=FILE, scope=SHARED)
    return {str(memory.data.get("name")): memory.data for memory in memories if is_kept(memory)}


def kept_files(reader: Reader, home: str) -> dict[str, bytes]:
    """The files nobody knows that are kept, by their places."""
    files = [value for name, value in kept(reader).items() if name.startswith(home) and "path" in value]
    return {"/".join(map(str, value["path"])): bytes_of(value) for value in files}


def topic_of(prefix: str, key: str) -> str:
    """The topic of a named value; a name that cannot stand in one is hashed."""
    topic = f"{prefix}/{key}"
    return topic if is_label(topic) else f"{prefix}/{hashlib.sha256(key.encode()).hexdigest()[:32]}"


def is_label(value: Any) -> bool:
    """Whether a text can be a topic, a category or a tag as it is."""
    is_short = isinstance(value, str) and 0 < len(value) <= 200 and value == value.strip()
    return is_short and all(ord(c) >= 32 for c in value)


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
