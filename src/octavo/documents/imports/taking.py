"""What every importer shares: bounded files, ids made of foreign ones, and one way through the gate.

A foreign id becomes an id of ours, within its scope: what is there already stays, what a person forgot
here does not come back, and a second import writes nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import zipfile
import zlib
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.transfer import Imported, Tally
from octavo.domain import strict_json
from octavo.domain.buffer import Revised, Wrote
from octavo.domain.episodes import moment
from octavo.domain.memory import SHARED, Memory
from octavo.domain.ports import Progress
from octavo.engine.account import Account
from octavo.errors import BadFile

MOST_BYTES = 512 * 1024 * 1024
_BATCH = 500
# Half a character, which a title that was cut in the middle of an emoji ends with, beside what is whole.
_HALF = re.compile(rb"\\\\|\\u[dD][89abAB]..\\u[dD][c-fC-F]..|(\\u[dD][89a-fA-F]..)")
_REVISED = ("text", "topic", "category", "tags", "at", "links", "data")

# What to take in: where it stands, and the memory; a text says why it stays outside, None is here already.
Item = tuple[str, Memory | str | None]
# Items that come in with one commit, and the session that they are, if they are one.
Group = tuple[str | None, list[Item]]


def read_export(path: Path, names: str = "") -> list[tuple[Any, str]]:
    """The JSON of an export and its place: of a file, or of those of such names in a folder or an archive.

    A file that has an object a line (`.jsonl`) is the array of them.
    """
    if names and path.is_dir():
        files = [file for file in sorted(path.iterdir()) if fnmatch(file.name, names)]
        parts = [(str(file), trees.read_bytes(file, MOST_BYTES)) for file in files]
    elif names and path.is_file() and zipfile.is_zipfile(path):
        parts = _unpacked(path, names)
    else:
        parts = [(str(path), trees.read_bytes(path, MOST_BYTES))]
    if not parts:
        raise BadFile(f"{path} holds no {names}", hint="name the export as it was downloaded")
    return [(strict_json.value_of(_whole(data, place), place), place) for place, data in parts]


def _whole(data: bytes, place: str) -> bytes:
    if place.endswith(".jsonl"):
        data = b"[" + b",\n".join(line for line in data.splitlines() if line.strip()) + b"]"
    return _HALF.sub(lambda found: rb"\ufffd" if found[1] else found[0], data)


def _unpacked(path: Path, names: str) -> list[tuple[str, bytes]]:
    """The files of such names in an archive; nothing is written to disk."""
    try:
        with zipfile.ZipFile(path) as archive:
            held = [info for info in archive.infolist() if fnmatch(Path(info.filename).name, names)]
            if sum(info.file_size for info in held) > MOST_BYTES:
                raise BadFile(f"{path} unpacks to more than {MOST_BYTES} bytes", hint="split the export")
            held.sort(key=lambda info: info.filename)
            return [(f"{path}/{info.filename}", archive.read(info)) for info in held]
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise BadFile(f"{path} cannot be unpacked: {error}", hint="download the export again") from error


def objects_in(value: Any, place: str, *wrappers: str) -> list[Mapping[str, Any]]:
    """The objects of an array, which may stand under one of some names."""
    for name in wrappers:
        value = value[name] if isinstance(value, Mapping) and isinstance(value.get(name), list) else value
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BadFile(f"{place} holds no array of objects")
    return value


def id_of(account: Account, format_: str, *foreign: str) -> str:
    """The id that a foreign one has here, in the scope of the handle alone."""
    parts = hashlib.sha256(json.dumps([account.scope or SHARED, *foreign]).encode()).hexdigest()
    return f"{format_}_{parts[:24]}" if account.scope is None else f"{format_}_{parts[:16]}@{account.scope}"


def fact_of(account: Account, id_: str, text: str, at: datetime, data: dict[str, Any], **more: Any) -> Memory:
    """A fact of the handle's own scope."""
    return Memory(id=id_, kind="fact", text=text, scope=account.scope or SHARED, at=at, data=data, **more)


def time_of(value: Any, otherwise: datetime | None = None) -> datetime:
    """A foreign time; one that nobody can read is no reason to lose what was said."""
    return moment(value, lenient=True) or otherwise or datetime.now(UTC)


def batches(items: Iterable[Item]) -> list[Group]:
    """Items in groups of some hundred, none of which is a session."""
    listed = list(items)
    return [(None, listed[start : start + _BATCH]) for start in range(0, len(listed), _BATCH)]


def take(account: Account, format_: str, groups: list[Group], progress: Progress | None = None) -> Imported:
    """Take in memories, a group a commit, each with the session that it is, if it is one."""
    tally = Tally()
    for number, (session, items) in enumerate(groups, start=1):
        writes = []
        for place, item in items:
            write = _change(account, item) if isinstance(item, Memory) else item
            if isinstance(write, str):
                tally.leave_out(place, write)
            elif write is None:
                tally.unchanged += 1
            else:
                writes.append((place, write))
        if writes:
            tally.write(account, format_, writes, closes=session, scope=account.scope or SHARED)
            tally.counts["session"] += session is not None
        if progress is not None:
            progress(number, len(groups))
    return tally.imported(account, format_)


def _change(account: Account, memory: Memory) -> Wrote | Revised | str | None:
    """A memory that is new, or came with other content than ever before; what it became here since stays."""
    there = account.history(memory.id) if memory.id else []
    if not there:
        return Wrote(memory=memory)
    old = there[-1].memory
    if old.gone:
        return "it was forgotten here and stays so"
    if any(revision.memory.data == memory.data for revision in there):
        return None
    new = replace(memory, kind=old.kind, scope=old.scope, rev=old.rev)
    return Revised(wanted=new, fields=_REVISED, at=memory.at)
