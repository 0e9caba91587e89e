"""What every importer shares: bounded files, ids made of foreign ones, and one way through the gate.

A foreign id becomes an id of ours, within its scope: what is there already stays, what a person forgot
here does not come back, and a second import writes nothing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.transfer import Imported, Note
from octavo.domain.buffer import Revised, Wrote
from octavo.domain.memory import SHARED, Memory, Turn, transcript
from octavo.domain.verdicts import Verdict
from octavo.engine.account import Account
from octavo.errors import BadFile
from octavo.storage.projections import Progress

MOST_BYTES = 512 * 1024 * 1024
_BATCH = 500
_SKIP = frozenset({"duplicate", "capacity", "confidence"})
_MASKED = "a secret was masked"
_FORGOTTEN = "it was forgotten here and stays so"
_REVISED = ("text", "topic", "category", "tags", "at", "links", "data")
_PAIR = 2


class Conversation(Struct, frozen=True, kw_only=True):
    """A foreign conversation: its turns in order, each with its foreign id in `data`."""

    id: str
    title: str
    turns: tuple[Turn, ...]


class Tally(Struct):
    """What an import has done so far."""

    counts: Counter[str] = field(default_factory=Counter)
    revised: int = 0
    unchanged: int = 0
    changed: list[Note] = field(default_factory=list)
    left_out: list[Note] = field(default_factory=list)

    def leave_out(self, place: str, reason: str) -> None:
        """Note what stayed outside."""
        self.left_out.append(Note(place=place, reason=reason))

    def note(self, place: str, wrote: Memory, verdict: Verdict) -> None:
        """Note what became of one write."""
        if not verdict or verdict.memory is None:
            self.leave_out(place, f"{verdict.check or verdict.outcome}: {verdict.detail}")
        elif verdict.outcome == "unchanged":
            self.unchanged += 1
        else:
            if verdict.outcome == "superseding":
                self.revised += 1
            else:
                self.counts[wrote.kind] += 1
            if (verdict.memory.text, verdict.memory.data) != (wrote.text, wrote.data):
                self.changed.append(Note(place=place, reason=_MASKED))

    def imported(self, account: Account, format_: str) -> Imported:
        """The report."""
        return Imported(
            format=format_,
            version=account.version,
            account=account.name,
            counts=dict(self.counts),
            revised=self.revised,
            unchanged=self.unchanged,
            changed=tuple(self.changed),
            left_out=tuple(self.left_out),
        )


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


def take_conversations(
    account: Account, format_: str, conversations: Sequence[Conversation], progress: Progress | None
) -> Imported:
    """Take in conversations, each a session of its own: two speakers' turns make an episode."""
    tally = Tally()
    for number, conversation in enumerate(conversations, start=1):
        _take_conversation(account, format_, conversation, tally)
        if progress is not None:
            progress(number, len(conversations))
    return tally.imported(account, format_)


def take_memories(
    account: Account, format_: str, memories: Sequence[tuple[str, Memory]], progress: Progress | None
) -> Imported:
    """Take in memories with their places, some hundred a commit; a foreign one that changed is revised."""
    tally, left, done = Tally(), iter(memories), 0
    while batch := list(islice(left, _BATCH)):
        writes = [(p, m, w) for p, m in batch if (w := _wanted(account, p, m, tally)) is not None]
        _write(account, format_, writes, tally)
        done += len(batch)
        if progress is not None:
            progress(done, len(memories))
    return tally.imported(account, format_)


def _wanted(account: Account, place: str, memory: Memory, tally: Tally) -> Wrote | Revised | None:
    there = account.history(memory.id)
    if not there:
        return Wrote(memory=memory)
    old = there[-1].memory
    if old.gone:
        tally.leave_out(place, _FORGOTTEN)
        return None
    if any(revision.memory.data == memory.data for revision in there):
        tally.unchanged += 1  # it came before; whatever it has become here since stays
        return None
    new = replace(memory, kind=old.kind, scope=old.scope, rev=old.rev)
    return Revised(wanted=new, fields=_REVISED, at=memory.at)


def _write(
    account: Account,
    format_: str,
    writes: Sequence[tuple[str, Memory, Wrote | Revised]],
    tally: Tally,
    closes: str | None = None,
) -> None:
    if not writes:
        return
    verdicts = account.intake.write_many(
        [write for _, _, write in writes],
        cause=f"import {format_}",
        skip=_SKIP,
        closes=closes,
        scope=account.scope or SHARED,
    )
    for (place, memory, _), verdict in zip(writes, verdicts, strict=True):
        tally.note(place, memory, verdict)


def _take_conversation(account: Account, format_: str, conversation: Conversation, tally: Tally) -> None:
    tag = f"{format_}:{id_of(account, format_, conversation.id)}"
    there = account.memories(kind="episode", tags=[tag], scope=[account.scope or SHARED])
    known = {turn.data.get("id") for episode in there for turn in episode.turns}
    tally.unchanged += len(there)
    fresh = [turn for turn in conversation.turns if turn.data["id"] not in known]
    if not fresh:
        return
    session = id_of(account, format_, conversation.id, str(fresh[0].data["id"]))
    about = {"conversation": conversation.id, "title": conversation.title}
    writes: list[tuple[str, Memory, Wrote | Revised]] = []
    for turns in _paired(fresh):
        episode = Memory(
            id=id_of(account, format_, "episode", conversation.id, str(turns[0].data["id"])),
            kind="episode",
            text=transcript(turns),
            turns=turns,
            tags=(tag,),
            at=turns[0].at or time_of(None),
            sandbox=session,
            data={format_: about},
        )
        place = f"{conversation.title or conversation.id}, {turns[0].data['id']}"
        if account.history(episode.id):
            tally.leave_out(place, _FORGOTTEN)
        else:
            writes.append((place, episode, Wrote(memory=episode)))
    _write(account, format_, writes, tally, closes=session)
    tally.counts["session"] += bool(writes)


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
