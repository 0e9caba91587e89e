"""Import and export of `vault.jsonl`: every line a revision, nothing dropped, everything unusual listed."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.transfer import Exported, Imported, Note
from octavo.documents.vault.records import (
    OWN,
    TIERS,
    Entry,
    Line,
    Problem,
    VaultMemory,
    fold,
    newest,
    parse,
    time_of,
)
from octavo.domain import gate, likeness, screening
from octavo.domain.buffer import Forgot, Revised, Wrote
from octavo.domain.memory import SOURCES, Memory, check_id, check_scope, is_human
from octavo.engine.account import Account
from octavo.errors import BadFile, BadInput, HumanOnly

_SET = ("text", "kind", "topic", "category", "tags", "source", "at", "data")
_CHANGED = {"secret", "name", "topic"}
_LEFT_OUT = {"rejection", "redaction", "unreadable", "torn", "version", "tombstone"}
_REASON = "it is in the vault that is imported"


def import_(account: Account, path: Path) -> Imported:
    """Take a foreign vault.jsonl into an account, every line a revision, kept as it came."""
    if not path.is_file():
        raise BadFile(f"there is no file {path}", hint="name a vault.jsonl")
    data = trees.read_bytes(path)
    before = fold({}, account.revisions(), account.versions())
    problems = take_in(account, data, {entry.memory.id: entry for entry in before})
    entries = fold({}, account.revisions(), account.versions())[len(before) :]
    return Imported(
        format="vault",
        version=account.version,
        account=account.name,
        counts=dict(Counter(entry.memory.kind for entry in entries)),
        changed=_notes(problems, _CHANGED),
        left_out=_notes(problems, _LEFT_OUT),
        notes=_notes(problems, {problem.check for problem in problems} - _CHANGED - _LEFT_OUT),
    )


def export(account: Account, path: Path) -> Exported:
    """Write an account's canon and registers as vault.jsonl, one line a revision."""
    entries = [entry for entry in fold({}, account.revisions(), account.versions()) if entry.is_told]
    trees.write_bytes(path, b"".join(entry.line for entry in entries))
    return Exported(
        format="vault",
        version=account.version,
        account=account.name,
        counts=dict(Counter(entry.memory.kind for entry in entries)),
        left_out={kind: n for kind, n in account.stats().by_kind.items() if kind not in TIERS},
        files=(path.name,),
    )


def _notes(problems: Sequence[Problem], checks: Collection[str]) -> tuple[Note, ...]:
    return tuple(
        Note(place=f"line {p.line}", reason=f"{p.check}: {p.detail}") for p in problems if p.check in checks
    )


def take_in(account: Account, data: bytes, known: Mapping[str, Entry]) -> list[Problem]:
    """Import the lines of a file that an account does not have; the gate lists, it does not drop.

    A secret is masked. What a person refused or erased stays out.
    """
    lines, problems = parse(data)
    fresh = _unknown(lines, known, problems)
    if not fresh:
        return problems
    if not is_human(account.actor):
        raise HumanOnly(
            f"{account.actor} tried to import {len(fresh)} lines of a vault",
            hint='open the vault once as a person, for instance with actor="human:operator"',
        )
    for scope in sorted({line.record.scope for line in fresh}):
        _write(account, scope, [line for line in fresh if line.record.scope == scope], known, problems)
    _find_said_twice(account, {line.record.id: line for line in fresh}, problems)
    return sorted(problems, key=lambda problem: problem.line)


def renamed(data: bytes) -> dict[int, str]:
    """The ids that memories have here, by line number, where the line itself has another one or none."""
    fitted = {line.number: (_fitting(line.record)[0].id, line.original.get("id")) for line in parse(data)[0]}
    return {number: id_ for number, (id_, own) in fitted.items() if own != id_}


def _unknown(lines: Sequence[Line], known: Mapping[str, Entry], problems: list[Problem]) -> list[Line]:
    """Lines above what the ledger has of their memory; a different line of the same version is reported."""
    fresh = []
    for given in lines:
        record, changed = _fitting(given.record)
        line = replace(given, record=record)
        if changed:
            problems.append(_problem(line, "name", changed))
        there = known.get(record.id)
        if there is None or record.version > there.record.version:
            fresh.append(line)
        elif record.version == there.record.version and record.text != there.record.text:
            detail = f"version {record.version} is there with another text, which stays"
            problems.append(_problem(line, "version", detail))
    return fresh


def _fitting(record: VaultMemory) -> tuple[VaultMemory, str]:
    """The record with an id, a scope and a tier that an account can hold, and what had to change."""
    changed = []
    try:
        check_id(record.id)
    except BadInput:
        new_id = hashlib.sha256(record.id.encode(errors="replace")).hexdigest()[:12]
        changed.append(f"id {record.id!r} became {new_id}")
        record = replace(record, id=new_id)
    try:
        check_scope(record.scope)
    except BadInput:
        # A name of its own, never `shared`: a malformed scope must not become visible to everybody.
        scope = re.sub(r"[^a-z0-9_.-]", "-", record.scope).strip("-._")[:50] or "unnamed"
        changed.append(f"scope {record.scope!r} became {scope}")
        record = replace(record, scope=scope)
    if record.tier not in TIERS:
        changed.append(f"tier {record.tier!r} became register")
        record = replace(record, tier="register")
    return record, "; ".join(changed)


def _write(
    account: Account, scope: str, lines: Sequence[Line], known: Mapping[str, Entry], problems: list[Problem]
) -> None:
    """Write the lines of one scope in one commit: every line a revision, in the order of versions."""
    latest = newest(lines)
    ended = [line.record for line in lines if latest[line.record.id] is line.record]
    # Which memory holds a topic when a race left several: the one that was written last.
    held = {r.topic_id: r.id for r in ended if r.topic_id is not None and r.deleted_at is None}
    wanted: list[tuple[Line, Wrote | Revised | Forgot]] = []
    by_id: dict[str, list[Line]] = {}
    for line in reversed(lines):  # of two lines with one version the seed keeps the first: it comes last
        by_id.setdefault(line.record.id, []).append(line)
    for id_ in latest:
        series = sorted(by_id[id_], key=lambda line: line.record.version)
        wanted += _series(account, series, known.get(id_), held, problems)
    verdicts = account.intake.write_many(
        [candidate for _, candidate in wanted],
        cause="import vault.jsonl",
        skip=frozenset({"duplicate", "capacity"}),
        scope=scope,
    )
    for (line, _), verdict in zip(wanted, verdicts, strict=True):
        if not verdict:
            problems.append(_problem(line, verdict.check or verdict.outcome, verdict.detail))


def _series(
    account: Account,
    series: Sequence[Line],
    there: Entry | None,
    held: Mapping[str, str],
    problems: list[Problem],
) -> list[tuple[Line, Wrote | Revised | Forgot]]:
    """One memory's lines as candidates: written, revised, and ended if the last one is a tombstone."""
    made: list[tuple[Line, Wrote | Revised | Forgot]] = []
    last = series[-1] if series[-1].record.deleted_at is not None else None
    living = [line for line in series if line.record.deleted_at is None]
    problems += [
        _problem(line, "tombstone", "it was followed by a newer version")
        for line in series
        if line.record.deleted_at is not None and line is not last
    ]
    if not living and there is None and last is not None:
        living = [last]  # nothing but the end is known; its text goes in unsaid, so that it can end
    for rev, line in enumerate(living, start=there.memory.rev + 1 if there else 1):
        own: dict[str, Any] = {"rev": rev, "original": line.original}
        if line is last:
            own["is_unsaid"] = True
        if last is not None and line is living[-1]:
            own["end"] = last.original
        memory, override = _memory(account, line, own, held, problems)
        if rev == 1:
            made.append((line, Wrote(memory=memory, override=override)))
        else:
            made.append((line, Revised(wanted=memory, fields=_SET, at=memory.at, override=override)))
    if last is not None:
        made.append((last, Forgot(memory=last.record.id, at=time_of(last.record.deleted_at))))
    return made


def _memory(
    account: Account, line: Line, own: Mapping[str, Any], held: Mapping[str, str], problems: list[Problem]
) -> tuple[Memory, str | None]:
    """A record as the memory to write, masked if it holds a secret, and why it goes in past the gate."""
    record, policy = line.record, account.policy
    topic = record.topic_id
    if topic is not None and held.get(topic, record.id) != record.id:
        problems.append(_problem(line, "topic", f"topic {topic!r} is held by {held[topic]}"))
        topic = None
    at = time_of(record.created_at if record.tier == "canon" else record.updated_at or record.created_at)
    memory = Memory(
        id=record.id,
        kind="canon" if record.tier == "canon" else "register",
        text=record.text,
        scope=record.scope,
        topic=topic,
        category=record.category,
        tags=record.tags,
        source=next((s for s in SOURCES if s == record.source), "manual"),
        at=at,
        confidence=1.0,
        data={OWN: own},
    )
    stopped = gate.check_text(memory, policy)
    secret = gate.check_text(memory, policy, overridden=True) if isinstance(stopped, gate.Stop) else None
    if isinstance(secret, gate.Stop):
        problems.append(_problem(line, secret.check, f"{secret.detail}; it was masked"))
        memory = screening.masked(memory, policy.privacy)
        stopped = gate.check_text(memory, policy)
    if isinstance(stopped, gate.Stop):
        problems.append(_problem(line, stopped.check, stopped.detail, is_exact=True))
        return memory, _REASON
    return memory, None


def _find_said_twice(account: Account, lines: Mapping[str, Line], problems: list[Problem]) -> None:
    """Name the near-duplicates among what was imported, which the gate would refuse today."""
    rules = account.policy.gate
    numbers = {id_: line.number for id_, line in lines.items()}
    for pair in account.merge_candidates(floor=min(rules.token_overlap, rules.sequence_ratio)):
        older, newer = sorted((pair.second, pair.first), key=lambda memory: numbers.get(memory.id, 0))
        if newer.id in lines and likeness.restates(older.text, newer.text, rules):
            problems.append(_problem(lines[newer.id], "duplicate", f"it restates {older.id}", is_exact=True))


def _problem(line: Line, check: str, detail: str, is_exact: bool = False) -> Problem:
    return Problem(line=line.number, check=check, detail=detail, id=line.record.id, is_exact=is_exact)
