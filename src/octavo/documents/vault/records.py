"""The records of `vault.jsonl` in seed 002's form, and the records that an account's revisions make."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, Kind, Memory
from octavo.engine.reading import Revision
from octavo.errors import BadInput
from octavo.storage.state_log import Commit

TIERS: tuple[Kind, ...] = ("canon", "register")
OWN = "vault"  # the key of `data` under which a foreign line is kept as it came


class VaultMemory(Struct, frozen=True, kw_only=True):
    """A memory with the fields of seed 002, in its order; `extra` keeps what a foreign record has besides.

    `score` is set on what a search returns and is no part of the record.
    """

    id: str
    version: Annotated[int, Meta(ge=1)] = 1
    created_at: str = ""
    updated_at: str | None = None
    tier: str = "canon"
    topic_id: str | None = None
    source: str | None = "manual"
    scope: str = SHARED
    category: str = "other"
    tags: tuple[str, ...] = ()
    deleted_at: str | None = None
    text: str
    extra: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = None

    @property
    def status(self) -> str:
        """What became of the write that returned it."""
        return "stored" if self.version == 1 else "updated"

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON values, in the seed's order."""
        told = {name: getattr(self, name) for name in _NAMES}
        if self.topic_id is None:
            del told["topic_id"]
        return {**told, "tags": list(self.tags), **self.extra}

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> VaultMemory:
        """Read a record; what older files leave out gets the seed's defaults, nothing else is dropped."""
        known = {name: given[name] for name in _NAMES if given.get(name) is not None}
        text = str(known.get("text", ""))
        if not text.strip():
            raise BadInput("the record has no text")
        known.setdefault("id", hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12])
        for name in ("scope", "category", "tier"):
            if isinstance(known.get(name), str):
                known[name] = known[name].strip().lower()
        extra = {name: value for name, value in given.items() if name not in _NAMES}
        try:
            return msgspec.convert({**known, "extra": extra}, cls)
        except msgspec.ValidationError as error:
            raise BadInput(str(error)) from error


_NAMES = tuple(name for name in VaultMemory.__struct_fields__ if name not in ("extra", "score"))


class Problem(Struct, frozen=True, kw_only=True):
    """Something that could not be taken as it is, or (`is_exact`) that the gate would refuse today."""

    line: int
    check: str
    detail: str
    id: str | None = None
    is_exact: bool = False


class Line(Struct, frozen=True, kw_only=True):
    """A record, the object it was read from, and the number of its line."""

    number: int
    record: VaultMemory
    original: Mapping[str, Any]


class Entry(Struct, frozen=True, kw_only=True):
    """A revision of the ledger beside the record it makes; one that stands for no line is not told."""

    version: int
    memory: Memory
    record: VaultMemory
    line: bytes
    is_told: bool = True


def parse(data: bytes) -> tuple[list[Line], list[Problem]]:
    """The records of a file; a bad line costs itself alone, a torn last one is reported."""
    lines: list[Line] = []
    problems: list[Problem] = []
    torn = None if data.endswith(b"\n") else data.count(b"\n") + 1
    for number, raw in enumerate(data.split(b"\n"), start=1):
        if not raw.strip():
            continue
        try:
            given = json.loads(raw)
            if not isinstance(given, dict):
                raise BadInput("the line is no JSON object")
            lines.append(Line(number=number, record=VaultMemory.from_dict(given), original=given))
        except (ValueError, RecursionError) as error:
            check = "torn" if number == torn else "unreadable"
            problems.append(Problem(line=number, check=check, detail=str(error)))
    return lines, problems


def fold(
    entries: Mapping[str, Entry], revisions: Iterable[Revision], commits: Iterable[Commit]
) -> list[Entry]:
    """The records that revisions make, each on top of its memory's record before it."""
    times = {commit.version: commit.at for commit in commits}
    latest = dict(entries)
    found = []
    for revision in revisions:
        memory = revision.memory
        if memory.kind not in TIERS or memory.category == "state":
            continue
        entry = _entry(latest.get(memory.id), revision, times[revision.version])
        latest[memory.id] = entry
        found.append(entry)
    return found


def time_of(written: str | None) -> datetime:
    """A record's time; one without a zone is taken as UTC, one that says nothing as the epoch."""
    try:
        found = datetime.fromisoformat(written or "")
    except ValueError:
        return datetime.fromtimestamp(0, UTC)
    return found.replace(tzinfo=UTC) if found.tzinfo is None else found.astimezone(UTC)


def newest(lines: Iterable[Line]) -> dict[str, VaultMemory]:
    """Every memory's record of the highest version, the first of two that have one."""
    latest: dict[str, VaultMemory] = {}
    for line in lines:
        known = latest.get(line.record.id)
        if known is None or line.record.version > known.version:
            latest[line.record.id] = line.record
    return latest


def _entry(before: Entry | None, revision: Revision, at: datetime) -> Entry:
    """What one revision tells: the foreign line it came as, the seed's form laid over it where it changed."""
    memory = revision.memory
    if memory.gone and before is not None:
        return _ended(before, revision, at)
    own = _own(memory)
    foreign = _foreign(own, "original")
    then = None if before is None else before.record
    record = VaultMemory(
        id=memory.id,
        text=memory.text,
        scope=memory.scope,
        category=memory.category or "other",
        tier=memory.kind,
        topic_id=memory.topic or (foreign.topic_id if foreign else None),
        tags=memory.tags,
        created_at=(foreign and foreign.created_at) or (then.created_at if then else iso(at)),
        updated_at=foreign.updated_at if foreign else iso(at) if then else None,
        source=foreign.source if foreign else memory.source,
        version=foreign.version if foreign else then.version + 1 if then else 1,
        extra=foreign.extra if foreign else then.extra if then else {},
    )
    is_same = foreign is not None and foreign == replace(record, created_at=foreign.created_at)
    line = _line(own["original"]) if is_same else _line(record.to_dict())
    is_told = not own.get("is_unsaid", False)
    return Entry(version=revision.version, memory=memory, record=record, line=line, is_told=is_told)


def _ended(before: Entry, revision: Revision, at: datetime) -> Entry:
    """The tombstone's record: what was there, one version on, with the time it ended."""
    own = _own(before.memory)
    foreign = _foreign(own, "end")
    record = replace(
        before.record,
        version=foreign.version if foreign else before.record.version + 1,
        updated_at=foreign.updated_at if foreign else iso(at),
        deleted_at=foreign.deleted_at if foreign else iso(at),
    )
    line = _line(own["end"]) if foreign == record else _line(record.to_dict())
    return Entry(version=revision.version, memory=revision.memory, record=record, line=line)


def _own(memory: Memory) -> Mapping[str, Any]:
    """What was kept with this very revision of the line it came as."""
    own = memory.data.get(OWN)
    return own if isinstance(own, Mapping) and own.get("rev") == memory.rev else {}


def _foreign(own: Mapping[str, Any], which: str) -> VaultMemory | None:
    original = own.get(which)
    return VaultMemory.from_dict(original) if isinstance(original, Mapping) else None


def _line(given: Mapping[str, Any]) -> bytes:
    return json.dumps(given, ensure_ascii=False).encode() + b"\n"
