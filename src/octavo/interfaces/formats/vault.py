"""Import and export of `vault.jsonl`: every line a revision, nothing dropped, everything unusual listed."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from octavo.domain import gate, likeness, privacy
from octavo.domain.buffer import Forgot, Revised, Wrote
from octavo.domain.memory import SOURCES, Memory, check_id, check_scope, is_human
from octavo.domain.policy import GatePolicy, Policy
from octavo.engine.account import Account
from octavo.errors import BadFile, BadInput, HumanOnly, Unavailable
from octavo.interfaces.formats.vault_records import (
    OWN,
    TIERS,
    Entry,
    Line,
    Problem,
    VaultMemory,
    fold,
    parse,
    time_of,
)

_SET = ("text", "kind", "topic", "category", "tags", "source", "at", "data")
_DIFFERENT = ("negation", "number", "name")
_REASON = "it is in the vault that is imported"


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did; `problems` is everything that is not as the file has it, or that the gate minds."""

    version: int
    revisions: int
    problems: tuple[Problem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export wrote; `left_out` counts the live memories that a vault has no place for, by kind."""

    version: int
    lines: int
    left_out: Mapping[str, int]


def import_(account: Account, path: Path) -> Imported:
    """Take a foreign vault.jsonl into an account, every line a revision."""
    try:
        data = path.read_bytes()
    except OSError as error:
        raise BadFile(f"reading {path}: {error.strerror}", hint="name a vault.jsonl") from error
    before = _entries(account)
    problems = take_in(account, data, {entry.memory.id: entry for entry in before})
    return Imported(
        version=account.version,
        revisions=len(_entries(account)) - len(before),
        problems=tuple(problems),
    )


def export(account: Account, path: Path) -> Exported:
    """Write an account's canon and registers as vault.jsonl, one line a revision."""
    lines = [entry.record.to_line() for entry in _entries(account) if entry.is_told]
    try:
        path.write_bytes(b"".join(lines))
    except OSError as error:
        raise Unavailable(
            f"writing {path}: {error.strerror}", hint="name a file that can be written"
        ) from error
    left_out = {kind: n for kind, n in account.stats().by_kind.items() if kind not in TIERS}
    return Exported(version=account.version, lines=len(lines), left_out=left_out)


def restates(old: str, new: str, rules: GatePolicy) -> bool:
    """Whether the seed's gate calls a text a duplicate; another name, number or negation is none."""
    if not likeness.is_near(old, new, rules):
        return False
    return likeness.contrast(old, new) not in _DIFFERENT


def take_in(account: Account, data: bytes, known: Mapping[str, Entry]) -> list[Problem]:
    """Import the lines of a file that an account does not have; the gate lists, it does not drop.

    A secret is masked. What a person refused or erased stays out.
    """
    lines, problems = parse(data)
    fresh, more = _unknown(lines, known)
    problems += more
    if not fresh:
        return problems
    if not is_human(account.actor):
        raise HumanOnly(
            f"{account.actor} tried to import {len(fresh)} lines of a vault",
            hint='open the vault once as a person, for instance with actor="human:operator"',
        )
    for scope in sorted({line.record.scope for line in fresh}):
        problems += _write(account, scope, [line for line in fresh if line.record.scope == scope], known)
    problems += _said_twice(account, {line.record.id: line.number for line in fresh})
    return sorted(problems, key=lambda problem: problem.line)


def renamed(data: bytes) -> dict[int, str]:
    """The ids that memories have here, by line number, where the line itself has another one or none."""
    raw = data.split(b"\n")
    found = {line.number: _fitting(line.record)[0].id for line in parse(data)[0]}
    return {number: id_ for number, id_ in found.items() if json.loads(raw[number - 1]).get("id") != id_}


def _entries(account: Account) -> list[Entry]:
    revisions = account.revisions()
    return fold({}, revisions, account.versions())


def _unknown(lines: Sequence[Line], known: Mapping[str, Entry]) -> tuple[list[Line], list[Problem]]:
    """Lines above what the ledger has of their memory; a different line of the same version is reported."""
    fresh: list[Line] = []
    problems: list[Problem] = []
    for line in lines:
        record, renamed = _fitting(line.record)
        if renamed:
            problems.append(Problem(line=line.number, check="name", detail=renamed, id=record.id))
        there = known.get(record.id)
        if there is None or record.version > there.record.version:
            fresh.append(replace(line, record=record))
        elif record.version == there.record.version and record.text != there.record.text:
            detail = f"version {record.version} is there with another text, which stays"
            problems.append(Problem(line=line.number, check="version", detail=detail, id=record.id))
    return fresh, problems


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


def _write(account: Account, scope: str, lines: Sequence[Line], known: Mapping[str, Entry]) -> list[Problem]:
    """Write the lines of one scope in one commit: every line a revision, in the order of versions."""
    problems: list[Problem] = []
    wanted: list[tuple[Line, Wrote | Revised | Forgot]] = []
    held = _topic_holders(lines)
    by_id: dict[str, list[Line]] = {}
    for line in lines:
        by_id.setdefault(line.record.id, []).append(line)
    for id_, own in by_id.items():
        # Of two lines with one version the seed keeps the first, so the first must come last here.
        series = sorted(own, key=lambda line: (line.record.version, -line.number))
        made, more = _series(account, series, known.get(id_), held)
        wanted += made
        problems += more
    verdicts = account.write_many(
        [candidate for _, candidate in wanted],
        cause="import vault.jsonl",
        skip=frozenset({"duplicate", "capacity"}),
        scope=scope,
    )
    for (line, _), verdict in zip(wanted, verdicts, strict=True):
        if not verdict:
            problems.append(_problem(line, verdict.check or verdict.outcome, verdict.detail))
    return problems


def _series(
    account: Account, series: Sequence[Line], there: Entry | None, held: Mapping[str, str]
) -> tuple[list[tuple[Line, Wrote | Revised | Forgot]], list[Problem]]:
    """One memory's lines as candidates: written, revised, and ended if the last one is a tombstone."""
    problems: list[Problem] = []
    made: list[tuple[Line, Wrote | Revised | Forgot]] = []
    last = series[-1] if series[-1].record.deleted_at is not None else None
    living = [line for line in series if line.record.deleted_at is None]
    problems += [
        _problem(line, "tombstone", "it was followed by a newer version")
        for line in series
        if line.record.deleted_at is not None and line is not last
    ]
    rev = there.memory.rev if there else 0
    if not living and there is None and last is not None:
        living = [last]  # nothing but the end is known; its text goes in unsaid, so that it can end
    for line in living:
        rev += 1
        memory, stops = _memory(line, rev, account.policy, held)
        problems += stops
        facts = dict(memory.data[OWN])
        if line is last:
            facts["is_unsaid"] = True
        if last is not None and line is living[-1]:
            facts["end"] = {
                name: getattr(last.record, name) for name in ("version", "updated_at", "deleted_at")
            }
        memory = replace(memory, data={OWN: facts})
        override = _REASON if any(stop.is_exact for stop in stops) else None
        if rev == 1:
            made.append((line, Wrote(memory=memory, override=override)))
        else:
            made.append((line, Revised(wanted=memory, fields=_SET, at=memory.at, override=override)))
    if last is not None:
        made.append((last, Forgot(memory=last.record.id, at=time_of(last.record.deleted_at))))
    return made, problems


def _memory(line: Line, rev: int, policy: Policy, held: Mapping[str, str]) -> tuple[Memory, list[Problem]]:
    """A record as the memory to write, masked if it holds a secret, and what the gate says about it."""
    record = line.record
    problems: list[Problem] = []
    facts = {
        "rev": rev,
        "version": record.version,
        "created_at": record.created_at or None,
        "updated_at": record.updated_at,
        **({"extra": dict(record.extra)} if record.extra else {}),
        **({"source": record.source} if record.source not in SOURCES else {}),
    }
    topic = record.topic_id
    if topic is not None and held.get(topic, record.id) != record.id:
        problems.append(_problem(line, "topic", f"topic {topic!r} is held by {held[topic]}"))
        facts["topic_id"], topic = topic, None
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
        data={OWN: facts},
    )
    stopped = gate.check_text(memory, policy)
    secret = gate.check_text(memory, policy, overridden=True) if isinstance(stopped, gate.Stop) else None
    if isinstance(secret, gate.Stop):
        problems.append(_problem(line, secret.check, f"{secret.detail}; it was masked"))
        memory = _masked(memory, policy)
        stopped = gate.check_text(memory, policy)
    if isinstance(stopped, gate.Stop):
        problems.append(replace(_problem(line, stopped.check, stopped.detail), is_exact=True))
    return memory, problems


def _masked(memory: Memory, policy: Policy) -> Memory:
    rules = policy.privacy
    return replace(
        memory,
        text=privacy.masked(memory.text, rules),
        topic=privacy.masked(memory.topic, rules) if memory.topic else None,
        category=privacy.masked(memory.category, rules) if memory.category else None,
        tags=tuple(privacy.masked(tag, rules) for tag in memory.tags),
        data=privacy.mask_data(memory.data, rules),
    )


def _topic_holders(lines: Sequence[Line]) -> dict[str, str]:
    """Which memory holds a topic when a race left several: the one that was written last."""
    holders: dict[str, str] = {}
    latest: dict[str, Line] = {}
    for line in lines:
        current = latest.get(line.record.id)
        if current is None or line.record.version > current.record.version:
            latest[line.record.id] = line
    for line in sorted(latest.values(), key=lambda found: found.number):
        if line.record.topic_id is not None and line.record.deleted_at is None:
            holders[line.record.topic_id] = line.record.id
    return holders


def _said_twice(account: Account, numbers: Mapping[str, int]) -> list[Problem]:
    """The near-duplicates among what was imported, which the gate would refuse today."""
    rules = account.policy.gate
    found = []
    for pair in account.merge_candidates(floor=min(rules.token_overlap, rules.sequence_ratio)):
        newer = max((pair.first, pair.second), key=lambda m: numbers.get(m.id, 0))
        older = pair.second if newer is pair.first else pair.first
        if newer.id in numbers and restates(older.text, newer.text, rules):
            detail = f"it restates {older.id}"
            found.append(
                Problem(line=numbers[newer.id], check="duplicate", detail=detail, id=newer.id, is_exact=True)
            )
    return found


def _problem(line: Line, check: str, detail: str) -> Problem:
    return Problem(line=line.number, check=check, detail=detail, id=line.record.id)
