"""The records of `vault.jsonl` in seed 002's form, and the records that an account's revisions make."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from typing import Any

from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, Memory
from octavo.engine.reading import Revision
from octavo.errors import BadInput
from octavo.storage.state_log import Commit

TIERS = ("canon", "register")
OWN = "vault"  # the key of `data` under which a foreign record's own facts are kept
_CANON, _OTHER, _MANUAL = "canon", "other", "manual"


@dataclass(frozen=True, slots=True, kw_only=True)
class VaultMemory:
    """A memory with the fields of seed 002; `extra` keeps what a foreign record has besides.

    `score` is set on what a search returns and is no part of the record.
    """

    id: str
    text: str
    scope: str = SHARED
    category: str = _OTHER
    tier: str = _CANON
    topic_id: str | None = None
    tags: tuple[str, ...] = ()
    created_at: str = ""
    updated_at: str | None = None
    source: str | None = _MANUAL
    deleted_at: str | None = None
    version: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)
    score: float | None = field(default=None, compare=False)

    @property
    def status(self) -> str:
        """What became of the write that returned it."""
        return "stored" if self.version == 1 else "updated"

    def to_dict(self) -> dict[str, Any]:
        """The record as plain JSON values, in the seed's order."""
        topic = {} if self.topic_id is None else {"topic_id": self.topic_id}
        return {
            "id": self.id,
            "version": self.version,
            "created_at": self.created_at,
            "updated_at": self.updated_at,
            "tier": self.tier,
            **topic,
            "source": self.source,
            "scope": self.scope,
            "category": self.category,
            "tags": list(self.tags),
            "deleted_at": self.deleted_at,
            "text": self.text,
            **self.extra,
        }

    @classmethod
    def from_dict(cls, given: Mapping[str, Any]) -> VaultMemory:
        """Read a record; what older files leave out gets the seed's defaults, nothing else is dropped."""
        known = {name: given[name] for name in _NAMES if given.get(name) is not None}
        text, tags, version = known.get("text"), known.get("tags", []), known.get("version", 1)
        if not isinstance(text, str) or not text.strip():
            raise BadInput("the record has no text")
        if not isinstance(tags, list | tuple) or not all(isinstance(tag, str) for tag in tags):
            raise BadInput("tags is no list of texts")
        if isinstance(version, bool) or not isinstance(version, int) or version < 1:
            raise BadInput(f"version {version!r} is no number from 1 on")
        for name in _NAMES - {"text", "tags", "version"}:
            if name in known and not isinstance(known[name], str):
                raise BadInput(f"{name} is no text")
        for name in ("scope", "category", "tier"):
            if name in known:
                known[name] = known[name].strip().lower()
        known.setdefault("id", hashlib.sha256(text.encode(errors="replace")).hexdigest()[:12])
        known["tags"], known["version"] = tuple(tags), version
        return cls(**known, extra={name: value for name, value in given.items() if name not in _NAMES})

    def to_line(self) -> bytes:
        """The record as a line of the file."""
        return json.dumps(self.to_dict(), ensure_ascii=False).encode() + b"\n"


_NAMES = frozenset(row.name for row in fields(VaultMemory)) - {"extra", "score"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Something that could not be taken as it is, or (`is_exact`) that the gate would refuse today."""

    line: int
    check: str
    detail: str
    id: str | None = None
    is_exact: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A record and the number of its line."""

    number: int
    record: VaultMemory


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A revision of the ledger beside the record it makes; a revision that stands for no line has none."""

    version: int
    memory: Memory
    record: VaultMemory
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
            lines.append(Line(number=number, record=VaultMemory.from_dict(given)))
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


def _entry(before: Entry | None, revision: Revision, at: datetime) -> Entry:
    memory = revision.memory
    own = memory.data.get(OWN, {}) if isinstance(memory.data.get(OWN), Mapping) else {}
    then = None if before is None else before.record
    if memory.gone and before is not None:
        return _ended(before, revision, at)
    facts = own if own.get("rev") == memory.rev else {}
    record = VaultMemory(
        id=memory.id,
        text=memory.text,
        scope=memory.scope,
        category=memory.category or _OTHER,
        tier=memory.kind,
        topic_id=memory.topic or facts.get("topic_id"),
        tags=memory.tags,
        created_at=then.created_at if then else str(facts.get("created_at") or iso(at)),
        updated_at=facts["updated_at"] if "updated_at" in facts else iso(at) if then else None,
        source=facts.get("source", memory.source),
        version=facts.get("version") or (then.version + 1 if then else 1),
        extra=facts.get("extra", then.extra if then else {}),
    )
    return Entry(
        version=revision.version, memory=memory, record=record, is_told=not facts.get("is_unsaid", False)
    )


def _ended(before: Entry, revision: Revision, at: datetime) -> Entry:
    """The tombstone's record: what was there, one version on, with the time it ended."""
    own = before.memory.data.get(OWN, {})
    facts = own.get("end", {}) if own.get("rev") == before.memory.rev else {}
    record = replace(
        before.record,
        version=facts.get("version", before.record.version + 1),
        updated_at=facts.get("updated_at", iso(at)),
        deleted_at=facts.get("deleted_at", iso(at)),
    )
    return Entry(version=revision.version, memory=revision.memory, record=record)
