"""Which format a file or a folder is of, by names and keys that no other format has."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path

from octavo.documents import trees
from octavo.documents.msp import forms
from octavo.errors import BadFile

_LOOKED_AT = 65_536  # bytes of a file
# What a path ends with, or a file begins with, that only one format has.
_NAMES = {
    "consciousness": r"(?:^|/)consciousness/.*\.json$",
    "msp": rf"(?:^|/)(?:{'|'.join(map(re.escape, forms.FILES.values()))}|core/10_state/[^/]+\.json)$",
    "rlds": r"(?:^|/)(?:steps\.jsonl|robotgrid_[^/]*\.json)$",
    "skills": r"(?:^|/)SKILL\.md$",
    "synthians": r"\.(?:mem|asm)\.json$",
}
_KEYS = {
    "chatgpt": rb'"mapping"\s*:\s*\{',
    "claude": rb'"chat_messages"\s*:\s*\[',
    "langgraph": rb'\A(?=.*"key"\s*:)(?=.*"value"\s*:).*"(?:prefix|namespace)"\s*:',
    "mem0": rb'"memory"\s*:\s*"',
    "vault": rb'"tier"\s*:\s*"',
}


def guessed(path: Path, formats: list[str]) -> str:
    """The one format that a file or a folder has the shape of; an error where none or several fit."""
    names = (
        [f"{path.absolute().name}/{name}" for name in trees.files_below(path)[0]]
        if path.is_dir()
        else [path.name]
    )
    found = {format_ for format_, form in _NAMES.items() if any(re.search(form, name) for name in names)}
    if not found:
        begins = list(_beginnings(path))
        found = {
            format_ for format_, form in _KEYS.items() if any(re.search(form, b, re.DOTALL) for b in begins)
        }
    if not found and any(name.endswith(".md") for name in names):
        found = {"markdown"}
    if len(found) == 1:
        return found.pop()
    told = f"may be {' or '.join(sorted(found))}" if found else "has the shape of no format"
    raise BadFile(f"{path} {told}", hint=f"say which with --format: {', '.join(formats)}")


def _beginnings(path: Path) -> Iterator[bytes]:
    """How the JSON of a file begins, or that of a folder's or an archive's conversations."""
    if path.is_file() and zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            for name in archive.namelist():
                if fnmatch(Path(name).name, "conversations*.json"):
                    with archive.open(name) as packed:
                        yield packed.read(_LOOKED_AT)
        return
    for file in sorted(path.glob("conversations*.json")) if path.is_dir() else [path]:
        if file.suffix in (".json", ".jsonl") and file.is_file():
            with file.open("rb") as opened:
                yield opened.read(_LOOKED_AT)
