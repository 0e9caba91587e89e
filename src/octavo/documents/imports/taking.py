"""What every importer shares: bounded files, ids made of foreign ones, and one way through the gate.

A foreign id becomes an id of ours, within its scope: what is there already stays, what a person forgot
here does not come back, and a second import writes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.transfer import Imported, Tally
from octavo.domain.buffer import Revised, Wrote
from octavo.domain.memory import SHARED, Memory, Turn, transcript
from octavo.engine.account import Account
from octavo.errors import BadFile
from octavo.storage.projections import Progress

MOST_BYTES = 512 * 1024 * 1024
_BATCH = 500
_FORGOTTEN = "it was forgotten here and stays so"
_REVISED = ("text", "topic", "category", "tags", "at", "links", "data")
_PAIR = 2


def read_export(path: Path, *names: str) -> Any:
    """The JSON of an export: the file itself, or the first of these names in a folder."""
    file = next((path / name for name in names if (path / name).is_file()), path)
    must_be_bounded(file, MOST_BYTES, f"name {names[0]}; unpack an archive first" if names else "name a file")
    return trees.read_json(file)


def must_be_bounded(file: Path, most: int, hint: str) -> None:
    """Raise BadFile unless it is a regular file of at most so many bytes."""
    if file.is_symlink() or not file.is_file():
        raise BadFile(f"{file} is no regular file", hint=hint)
    if (size := file.stat().st_size) > most:
        raise BadFile(f"{file} has {size} bytes, at most {most} are read", hint="split the file")


def objects_in(value: Any, file: Path, *wrappers: str) -> list[Mapping[str, Any]]:
    """The objects of an array, which may stand under one of some names."""
    for name in wrappers:
        value = value[name] if isinstance(value, Mapping) and isinstance(value.get(name), list) else value
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise BadFile(f"{file} holds no array of objects")
    return value


def id_of(account: Account, format_: str, *foreign: str) -> str:
    """The id that a foreign one has here, in the scope of the handle alone."""
    parts = hashlib.sha256(json.dumps([account.scope or SHARED, *foreign]).encode()).hexdigest()
    return f"{format_}_{parts[:24]}" if account.scope is None else f"{format_}_{parts[:16]}@{account.scope}"


def time_of(value: Any, otherwise: datetime | None = None) -> datetime:
    """A foreign time, ISO 8601 or seconds since 1970, UTC if it does not say; `otherwise` if unreadable."""
    moment = otherwise or datetime.now(UTC)
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value, UTC)
        elif isinstance(value, str | date) and value:
            read = datetime.fromisoformat(str(value))
            moment = (read if read.tzinfo else read.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        pass  # a time nobody can read is no reason to lose what was said
    return moment


def take_memories(
    account: Account,
    format_: str,
    items: Sequence[tuple[str, Memory | str]],
    progress: Progress | None,
    change: Callable[[Account, Memory], Wrote | Revised | str | None] | None = None,
) -> Imported:
    """Take in memories with their places, some hundred a commit; a text in a memory's stead says why not.

    `change` says how one is written: None is here already, a text says why it stays outside.
    """
    tally = Tally()
    for start in range(0, len(items), _BATCH):
        writes = []
        for place, item in items[start : start + _BATCH]:
            write = item if isinstance(item, str) else (change or _by_id)(account, item)
            if isinstance(write, str):
                tally.leave_out(place, write)
            elif write is None:
                tally.unchanged += 1
            else:
                writes.append((place, write))
        if writes:
            tally.write(account, format_, writes, scope=account.scope or SHARED)
        if progress is not None:
            progress(min(start + _BATCH, len(items)), len(items))
    return tally.imported(account, format_)


def _by_id(account: Account, memory: Memory) -> Wrote | Revised | str | None:
    """A memory that is new, or came with other content than ever before; what it became here since stays."""
    there = account.history(memory.id)
    if not there:
        return Wrote(memory=memory)
    old = there[-1].memory
    if old.gone:
        return _FORGOTTEN
    if any(revision.memory.data == memory.data for revision in there):
        return None
    new = replace(memory, kind=old.kind, scope=old.scope, rev=old.rev)
    return Revised(wanted=new, fields=_REVISED, at=memory.at)


def take_conversations(
    account: Account,
    format_: str,
    conversations: Sequence[tuple[str, str, Sequence[Turn]]],
    progress: Progress | None,
) -> Imported:
    """Take in conversations (id, title, turns), each a session; two speakers' turns make an episode."""
    tally = Tally()
    for number, (id_, title, turns) in enumerate(conversations, start=1):
        _take_conversation(account, format_, id_, title, turns, tally)
        if progress is not None:
            progress(number, len(conversations))
    return tally.imported(account, format_)


def _take_conversation(
    account: Account, format_: str, id_: str, title: str, turns: Sequence[Turn], tally: Tally
) -> None:
    tag = f"{format_}:{id_of(account, format_, id_)}"
    there = account.memories(kind="episode", tags=[tag], scope=[account.scope or SHARED])
    known = {turn.data.get("id") for episode in there for turn in episode.turns}
    tally.unchanged += len(there)
    fresh = [turn for turn in turns if turn.data["id"] not in known]
    if not fresh:
        return
    session = id_of(account, format_, id_, str(fresh[0].data["id"]))
    writes: list[tuple[str, Wrote | Revised]] = []
    for pair in _paired(fresh):
        first = str(pair[0].data["id"])
        episode = Memory(
            id=id_of(account, format_, "episode", id_, first),
            kind="episode",
            text=transcript(pair),
            turns=pair,
            tags=(tag,),
            at=pair[0].at or time_of(None),
            sandbox=session,
            data={format_: {"conversation": id_, "title": title}},
        )
        place = f"{title or id_}, {first}"
        if account.history(episode.id):
            tally.leave_out(place, _FORGOTTEN)
        else:
            writes.append((place, Wrote(memory=episode)))
    if writes:
        tally.write(account, format_, writes, closes=session, scope=account.scope or SHARED)
        tally.counts["session"] += 1


def _paired(turns: Iterable[Turn]) -> list[tuple[Turn, ...]]:
    """Turns two by two, where the speaker changes; a lone turn stays alone."""
    pairs: list[tuple[Turn, ...]] = []
    for turn in turns:
        last = pairs[-1] if pairs else ()
        if len(last) in (0, _PAIR) or last[-1].speaker == turn.speaker:
            pairs.append((turn,))
        else:
            pairs[-1] = (*last, turn)
    return pairs
