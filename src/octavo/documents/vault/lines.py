"""`vault.jsonl` of seed 002: its records, those that an account's revisions make, and both ways between.

Every line is a revision; nothing is dropped, everything unusual is listed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct, field
from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.transfer import Exported, Imported, Note, Tally
from octavo.domain import gate, screening, strict_json
from octavo.domain.buffer import Forgot, Revised, Wrote
from octavo.domain.episodes import iso, moment
from octavo.domain.memory import SHARED, SOURCES, Kind, Memory, check_scope, is_human, is_id
from octavo.domain.policy import Policy
from octavo.domain.records import shape_of
from octavo.domain.verdicts import Verdict
from octavo.engine.account import Account
from octavo.engine.reading import Revision
from octavo.errors import BadFile, BadInput, HumanOnly
from octavo.storage.state_log import Commit

TIERS: tuple[Kind, ...] = ("canon", "register")
OWN = "vault"  # the key of `data` under which a foreign line is kept as it came
_SET = ("text", "kind", "topic", "category", "tags", "source", "at", "data")
_CHANGED = {"secret", "name", "topic"}
_LEFT_OUT = {"rejection", "redaction", "unreadable", "torn", "version", "tombstone"}
_REASON = "it is in the vault that is imported"


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
        trees.must_be("a memory", given, Mapping)
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
            return msgspec.convert({**known, "extra": extra}, shape_of(cls))
        except (msgspec.ValidationError, UnicodeError) as error:
            raise BadInput(str(error)) from error


_NAMES = tuple(name for name in VaultMemory.__struct_fields__ if name not in ("extra", "score"))


class Problem(Struct, frozen=True, kw_only=True):
    """Something that could not be taken as it is, or (`is_exact`) that the gate would refuse today."""

    line: int
    check: str
    detail: str
    id: str | None = None
    is_exact: bool = False


class Entry(Struct, frozen=True, kw_only=True):
    """A revision of the ledger beside the record it makes, and its line, empty if it stands for none."""

    version: int
    memory: Memory
    record: VaultMemory
    line: bytes


# A record with the number of its line and the object it was read from.
Line = tuple[int, VaultMemory, Mapping[str, Any]]


def parse(data: bytes) -> tuple[list[Line], list[Problem]]:
    """The records of a file, with names that an account can hold, and what was unusual.

    A bad line costs itself alone, a torn last one is reported.
    """
    lines: list[Line] = []
    problems: list[Problem] = []
    torn = None if data.endswith(b"\n") else data.count(b"\n") + 1
    for number, given in strict_json.lines_of(data):
        try:
            if not isinstance(given, dict):
                raise given if isinstance(given, BadFile) else BadInput("the line is no JSON object")
            record, changed = _fitting(VaultMemory.from_dict(given))
            lines.append((number, record, given))
            if changed:
                problems.append(Problem(line=number, check="name", detail=changed, id=record.id))
        except BadInput as error:
            check = "torn" if number == torn else "unreadable"
            problems.append(Problem(line=number, check=check, detail=error.message))
    return lines, problems


def fold(
    entries: Mapping[str, Entry], revisions: Iterable[Revision], commits: Iterable[Commit]
) -> list[Entry]:
    """The records that revisions make, each on top of its memory's record before it."""
    times = {commit.version: commit.at for commit in commits}
    latest = dict(entries)
    made = []
    for revision in revisions:
        memory = revision.memory
        if memory.kind in TIERS and memory.category != "state":
            latest[memory.id] = _entry(latest.get(memory.id), revision, times[revision.version])
            made.append(latest[memory.id])
    return made


def time_of(written: str | None) -> datetime:
    """A record's time; one without a zone is taken as UTC, one that says nothing as the epoch."""
    return moment(written, lenient=True) or datetime.fromtimestamp(0, UTC)


def newest(lines: Iterable[Line]) -> dict[str, VaultMemory]:
    """Every memory's record of the highest version, the first of two that have one."""
    latest: dict[str, VaultMemory] = {}
    for _, record, _ in lines:
        if record.id not in latest or record.version > latest[record.id].version:
            latest[record.id] = record
    return latest


def _entry(before: Entry | None, revision: Revision, at: datetime) -> Entry:
    """What one revision tells: the foreign line it came as, the seed's form laid over it where it changed.

    A tombstone tells what was there, one version on; the line it came as is kept with what it ended.
    """
    memory, then, now = revision.memory, before.record if before else None, iso(at)
    ended = before.memory if memory.gone and before else None
    holder = ended or memory
    own: Any = holder.data.get(OWN)
    own = own if isinstance(own, Mapping) and own.get("rev") == holder.rev else {}
    original = own.get("end" if ended else "original")
    foreign = VaultMemory.from_dict(original) if isinstance(original, Mapping) else None
    first = VaultMemory(id=memory.id, created_at=now, text=holder.text)
    told = foreign or (replace(then, version=then.version + 1, updated_at=now) if then else first)
    is_kept = foreign is not None or ended is not None  # what the account has no word for
    record = replace(
        told,
        id=memory.id,
        created_at=told.created_at or (then or first).created_at,
        tier=holder.kind,
        topic_id=holder.topic or (told.topic_id if is_kept else None),
        source=told.source if is_kept else holder.source,
        scope=holder.scope,
        category=holder.category or "other",
        tags=holder.tags,
        deleted_at=(foreign.deleted_at if foreign else now) if ended else None,
        text=holder.text,
    )
    is_same = foreign is not None and foreign == replace(record, created_at=foreign.created_at)
    line = json.dumps(original if is_same else record.to_dict(), ensure_ascii=False).encode() + b"\n"
    is_told = ended is not None or not own.get("is_unsaid", False)
    return Entry(version=revision.version, memory=memory, record=record, line=line if is_told else b"")


def import_(account: Account, path: Path) -> Imported:
    """Take a foreign vault.jsonl into an account, every line a revision, kept as it came."""
    before = fold({}, account.revisions(), account.versions())
    problems = take_in(account, trees.read_bytes(path), {entry.memory.id: entry for entry in before})
    tally = Tally()
    told = {**dict.fromkeys(_CHANGED, tally.changed), **dict.fromkeys(_LEFT_OUT, tally.left_out)}
    for problem in problems:
        note = Note(place=f"line {problem.line}", reason=f"{problem.check}: {problem.detail}")
        told.get(problem.check, tally.notes).append(note)
    entries = fold({}, account.revisions(), account.versions())[len(before) :]
    tally.counts.update(entry.memory.kind for entry in entries)
    return tally.imported(account, "vault")


def export(account: Account, path: Path) -> Exported:
    """Write an account's canon and registers as vault.jsonl, one line a revision."""
    entries = [entry for entry in fold({}, account.revisions(), account.versions()) if entry.line]
    files = {path.name: b"".join(entry.line for entry in entries)}
    others = {kind: n for kind, n in account.stats().by_kind.items() if kind not in TIERS}
    kinds = (entry.memory.kind for entry in entries)
    return trees.export(account, "vault", path.parent, files, counts=kinds, left_out=others)


def take_in(account: Account, data: bytes, known: Mapping[str, Entry]) -> list[Problem]:
    """Import the lines of a file that an account does not have; the gate lists, it does not drop.

    A secret is masked. What a person refused or erased stays out.
    """
    lines, problems = parse(data)

    def note(line: Line, check: str, detail: str, is_exact: bool = False) -> None:
        problems.append(Problem(line=line[0], check=check, detail=detail, id=line[1].id, is_exact=is_exact))

    fresh: dict[str, list[Line]] = {}
    for line in lines:
        record, there = line[1], known.get(line[1].id)
        if there is None or record.version > there.record.version:
            fresh.setdefault(record.scope, []).append(line)
        elif record.version == there.record.version and record.text != there.record.text:
            note(line, "version", f"version {record.version} is there with another text, which stays")
    if fresh and not is_human(account.actor):
        raise HumanOnly(
            f"{account.actor} tried to import lines of a vault",
            hint='open the vault once as a person, for instance with actor="human:operator"',
        )
    for scope, own in sorted(fresh.items()):
        rows = list(_revisions(own, known, account.policy, note))
        verdicts = account.intake.write_many(
            [candidate for _, candidate in rows],
            cause="import vault.jsonl",
            skip=frozenset({"duplicate", "capacity"}),
            scope=scope,
        )
        for (line, _), verdict in zip(rows, verdicts, strict=True):
            if not verdict:
                note(line, verdict.check or verdict.outcome, verdict.detail)
    return sorted(problems, key=lambda problem: problem.line)


def renamed(data: bytes) -> dict[int, str]:
    """The ids that memories have here, by line number, where the line itself has another one or none."""
    return {number: record.id for number, record, own in parse(data)[0] if own.get("id") != record.id}


def _fitting(record: VaultMemory) -> tuple[VaultMemory, str]:
    """The record with an id, a scope and a tier that an account can hold, and what had to change."""
    fields = {}
    if not is_id(record.id):
        fields["id"] = hashlib.sha256(record.id.encode(errors="replace")).hexdigest()[:12]
    try:
        check_scope(record.scope)
    except BadInput:
        # A name of its own, never `shared`: a malformed scope must not become visible to everybody.
        fields["scope"] = re.sub(r"[^a-z0-9_.-]", "-", record.scope).strip("-._")[:50] or "unnamed"
    if record.tier not in TIERS:
        fields["tier"] = "register"
    changed = [f"{name} {getattr(record, name)!r} became {value}" for name, value in fields.items()]
    return replace(record, **fields), "; ".join(changed)


def _revisions(
    lines: Sequence[Line], known: Mapping[str, Entry], policy: Policy, note: Callable[..., None]
) -> Iterator[tuple[Line, Wrote | Revised | Forgot]]:
    """The lines of a scope as candidates, memory by memory."""
    latest = newest(lines)
    # Which memory holds a topic when a race left several: the one that was written last.
    ends = [record for _, record, _ in lines if latest[record.id] is record]
    held = {record.topic_id: record.id for record in ends if record.deleted_at is None}
    by_id: dict[str, list[Line]] = {id_: [] for id_ in latest}
    for line in reversed(lines):  # of two lines with one version the seed keeps the first: it comes last
        by_id[line[1].id].append(line)
    for id_, series in by_id.items():
        series.sort(key=lambda line: line[1].version)
        living = [line for line in series if line[1].deleted_at is None]
        end = series[-1] if series[-1] not in living else None
        for line in series[:-1]:
            if line not in living:
                note(line, "tombstone", "it was followed by a newer version")
        there = known.get(id_)
        if not living and there is None:
            living = [series[-1]]  # nothing but the end is known; its text goes in unsaid, so that it can end
        for rev, line in enumerate(living, start=there.memory.rev + 1 if there else 1):
            own = {"rev": rev, "original": line[2], **({"is_unsaid": True} if line is end else {})}
            if end is not None and line is living[-1]:
                own["end"] = end[2]
            memory, override = _memory(line, own, held, policy, note)
            if rev == 1:
                yield line, Wrote(memory=memory, override=override)
            else:
                yield line, Revised(wanted=memory, fields=_SET, at=memory.at, override=override)
        if end is not None:
            yield end, Forgot(memory=id_, at=time_of(end[1].deleted_at))


def _memory(
    line: Line,
    own: Mapping[str, Any],
    held: Mapping[str | None, str],
    policy: Policy,
    note: Callable[..., None],
) -> tuple[Memory, str | None]:
    """A record as the memory to write, masked if it holds a secret, and why it goes in past the gate."""
    record, topic = line[1], line[1].topic_id
    if topic is not None and held.get(topic, record.id) != record.id:
        note(line, "topic", f"topic {topic!r} is held by {held[topic]}")
        topic = None
    is_canon = record.tier == "canon"
    memory = Memory(
        id=record.id,
        kind="canon" if is_canon else "register",
        text=record.text,
        scope=record.scope,
        topic=topic,
        category=record.category,
        tags=record.tags,
        source=next((s for s in SOURCES if s == record.source), "manual"),
        at=time_of(record.created_at if is_canon else record.updated_at or record.created_at),
        confidence=1.0,
        data={OWN: own},
    )
    clean = screening.masked(memory, policy.privacy)
    if clean != memory:
        note(line, "secret", "it holds a secret or personal data, which was masked")
    verdict = gate.check_text(clean, policy)
    if isinstance(verdict, Verdict):
        note(line, verdict.check, verdict.detail, is_exact=True)
        return clean, _REASON
    return clean, None
