"""Trees of files: listed without following links, read as JSON or bytes, each written whole or not at all."""

from __future__ import annotations

import json
import math
import os
import secrets
from contextlib import suppress
from pathlib import Path, PurePosixPath
from typing import Any

from octavo.errors import BadFile, BadInput, StoreFull, Unavailable

_FULL = {28, 122}  # ENOSPC, EDQUOT
_INTEGERS = range(-(2**63), 2**64)


def files_below(folder: Path) -> tuple[list[str], list[str]]:
    """The files below a folder as relative paths, sorted, and the links that were not followed."""
    files, links = [], []
    for root, folders, names in os.walk(folder):
        at = Path(root)
        for name in sorted((*folders, *names)):
            path = at / name
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink():
                links.append(relative)
            elif name in names and path.is_file():
                files.append(relative)
        folders[:] = [name for name in folders if not (at / name).is_symlink()]
    return sorted(files), sorted(links)


def read_bytes(path: Path) -> bytes:
    """A file's bytes."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unavailable(f"reading {path}: {error.strerror}", hint="check the file's permissions") from error


def read_json(path: Path) -> Any:
    """A file's JSON; anything else is an error that names file and line."""
    data = read_bytes(path)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFile(f"{path}, line {line}: not UTF-8") from error
    try:
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=_constant, parse_float=_float, parse_int=_int
        )
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair cannot be kept
    except json.JSONDecodeError as error:
        raise BadFile(f"{path}, line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{path}, line {_line_of(text, error)}: {error}") from error
    return value


def write_json(path: Path, value: Any) -> None:
    """Write JSON that people can read."""
    write_bytes(path, json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n")


def write_bytes(path: Path, data: bytes) -> None:
    """Write a file by a temporary one and a rename, so that nobody sees half of it."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".tmp-{secrets.token_hex(8)}")
        try:
            with temporary.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            temporary.replace(path)
        finally:
            with suppress(FileNotFoundError):
                temporary.unlink()
    except OSError as error:
        if error.errno in _FULL:
            raise StoreFull(f"writing {path}: {error.strerror}") from error
        raise Unavailable(f"writing {path}: {error.strerror}", hint="name a folder you may write") from error


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


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the field {key!r} stands twice in one object")
        found[key] = value
    return found


def _constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _float(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError(f"the number {digits[:40]} is too large")
    return value


def _int(digits: str) -> int:
    value = int(digits) if len(digits) <= 20 else 2**64
    if value not in _INTEGERS:
        raise ValueError(f"the number {digits[:40]} is too large")
    return value


def _line_of(text: str, error: BaseException) -> int:
    """The first line that holds what the error quotes; the parser does not say."""
    words = str(error).replace("'", " ").split()
    quoted = next(
        (word for word in reversed(words) if word.isascii() and len(word) > 2 and word in text), None
    )
    return 1 if quoted is None else text.count("\n", 0, text.index(quoted)) + 1
