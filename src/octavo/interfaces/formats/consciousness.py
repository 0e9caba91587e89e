"""Seed 001's tree of files, `consciousness/…`: episodes, cores, spheres, counters, in and out without loss.

Counters and places are always written from arithmetic; everything else goes out as it came.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from octavo.domain import compression
from octavo.domain.buffer import Wrote
from octavo.domain.compression import CompressionPolicy
from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, Memory
from octavo.domain.review import RETIRED
from octavo.domain.rules import counts_as_episode
from octavo.engine import compress
from octavo.engine.account import Account
from octavo.engine.counts import Session
from octavo.errors import BadInput, HumanOnly, OutOfScope
from octavo.interfaces.documents.msp import stores
from octavo.interfaces.formats import consciousness_sessions, trees
from octavo.interfaces.formats.consciousness_tree import (
    EPISODES,
    FOLDERS,
    SEQUENCES,
    Tree,
    counters_file,
    document_of,
    file_name,
    home,
    place_of,
    read,
)
from octavo.interfaces.formats.msp import Left
from octavo.interfaces.formats.msp_tree import bytes_of

_SKIP = frozenset({"duplicate", "capacity", "confidence"})
_CAUSE = "import consciousness"
_NOTES, _FILES = "consciousness", "consciousness/files/"
_SEQUENCES = ("Session_seq", "Core_seq", "Sphere_seq")
_COUNTED = (*_SEQUENCES, "Total_sessions", "last_update")


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did; `refused`, `masked` and `notes` are everything that is not as the tree has it."""

    version: int
    sessions: int = 0
    episodes: int = 0
    made: tuple[str, ...] = ()
    unchanged: int = 0
    files: tuple[str, ...] = ()
    refused: tuple[Left, ...] = ()
    masked: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export wrote; `left_out` counts what the seed has no place for, by kind."""

    version: int
    files: tuple[str, ...]
    left_out: Mapping[str, int]


@dataclass(slots=True)
class _Tally:
    """What an import has done so far."""

    sessions: int = 0
    episodes: int = 0
    unchanged: int = 0
    made: list[str] = field(default_factory=list)
    refused: list[Left] = field(default_factory=list)
    masked: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def import_(account: Account, path: Path) -> Imported:
    """Read a tree: its sessions one commit each, in their order, then its cores and spheres, then the rest.

    Interrupted, it goes on where it stopped when it is run again; run twice it changes nothing.
    """
    at = datetime.now(UTC)
    policy = account.policy.compression
    tree = read(path, policy, at)
    tally = _Tally(notes=list(tree.notes))
    for scope in consciousness_sessions.scopes(tree):
        if not account.sees(scope):
            raise OutOfScope(f"a handle bound to {account.scope!r} tried to import scope {scope!r}")
    for scope in consciousness_sessions.scopes(tree):
        planned = consciousness_sessions.order(tree, scope, policy)
        _import_sessions(account, tree, scope, planned, at, tally)
        _import_made(account, tree, scope, planned, tally)
        _note_counters(tree, scope, planned, policy, tally)
    _import_files(account, tree, at, tally)
    return Imported(
        version=account.version,
        sessions=tally.sessions,
        episodes=tally.episodes,
        made=tuple(tally.made),
        unchanged=tally.unchanged,
        files=tuple(sorted(tree.files)),
        refused=tuple(tally.refused),
        masked=tuple(tally.masked),
        notes=tuple(tally.notes),
    )


def export(account: Account, path: Path) -> Exported:
    """Write the account as a tree; every file is replaced whole, others are left alone."""
    version = account.version
    files = _files(account, version)
    for relative, value in files.items():
        data = value if isinstance(value, bytes) else _json(value)
        trees.write_bytes(trees.inside(home(path), relative), data)
    shown = ("episode", *FOLDERS)
    rest = [m for m in account.at(version).memories() if m.kind not in shown and _note_of(m) is None]
    return Exported(
        version=version, files=tuple(sorted(files)), left_out=dict(Counter(f"kind {m.kind}" for m in rest))
    )


def _import_sessions(
    account: Account, tree: Tree, scope: str, planned: Sequence[str], at: datetime, tally: _Tally
) -> None:
    handle = account.bound(scope)
    closed = {session.sandbox for session in handle.sessions(scope=scope)}
    spoken: dict[str | None, list[tuple[str, Memory]]] = {}
    for relative, memory in tree.episodes.items():
        if memory.scope != scope:
            continue
        if _is_there(handle, memory):
            tally.unchanged += 1
        else:
            spoken.setdefault(memory.session, []).append((relative, memory))
    for ordinal, name in enumerate(planned, start=1):
        said = spoken.pop(name, [])
        counted = any(counts_as_episode(memory) for _, memory in said)
        is_next = len(closed) == ordinal - 1
        if name in closed or not (counted or is_next):
            _write(handle, said, None, tally)
            continue
        note = [] if counted else [stores.file(f"{_NOTES}/sessions/{name}", {"missing": True}, at=at).memory]
        if _write(handle, [*said, *(("", memory) for memory in note)], name, tally):
            closed.add(name)
            tally.sessions += 1
    for said in spoken.values():
        _write(handle, said, None, tally)


def _is_there(handle: Account, memory: Memory) -> bool:
    """Whether an episode stands in the account as the file tells it, wherever its session stands."""
    there = handle.get(memory.id)
    if there is None or there.kind != "episode":
        return False
    one, other = document_of(there, None), document_of(memory, None)
    return {**one, "compression_meta": None} == {**other, "compression_meta": None}


def _write(handle: Account, said: Iterable[tuple[str, Memory]], closes: str | None, tally: _Tally) -> bool:
    """Write the episodes of a session in one commit; whether there was anything new."""
    rows = sorted(said, key=lambda row: (row[1].at, row[0]))
    wanted = [Wrote(memory=memory) for _, memory in rows]
    verdicts = handle.write_many(wanted, cause=_CAUSE, skip=_SKIP, closes=closes) if wanted else []
    for (relative, memory), verdict in zip(rows, verdicts, strict=True):
        kept = verdict.memory
        if not verdict or kept is None:
            tally.refused.append(Left(where=relative, why=f"{verdict.check}: {verdict.detail}"))
        elif verdict.outcome == "unchanged":
            tally.unchanged += 1
        elif relative:
            tally.episodes += 1
            if (kept.turns, kept.data, kept.text) != (memory.turns, memory.data, memory.text):
                tally.masked.append(relative)
    return any(verdict and verdict.outcome != "unchanged" for verdict in verdicts)


def _import_made(account: Account, tree: Tree, scope: str, planned: Sequence[str], tally: _Tally) -> None:
    """Take cores and spheres from the files where the same sessions have their places here."""
    here = {session.ordinal: session.sandbox for session in account.sessions(scope=scope)}
    found = [(compression.recognise(id_, account.policy.compression), id_) for id_ in tree.made]
    mine = [(due, id_) for due, id_ in found if due is not None and due.scope == scope]
    for due, id_ in sorted(mine, key=lambda row: (row[0].sessions[-1], row[0].kind)):
        if any(here.get(ordinal) != planned[ordinal - 1] for ordinal in due.sessions):
            why = f"sessions {due.sessions[0]} to {due.sessions[-1]} are others here; it is made of those"
            tally.refused.append(Left(where=id_, why=why))
            continue
        try:
            memory = account.adopt(id_, tree.made[id_])
        except (BadInput, HumanOnly) as error:
            tally.refused.append(Left(where=id_, why=error.message))
            continue
        _note_made(account, id_, memory, tree.made[id_], tally)


def _note_made(
    account: Account, id_: str, memory: Memory | None, given: Mapping[str, Any], tally: _Tally
) -> None:
    if memory is not None:
        tally.made.append(id_)
        if _told(memory) != given:
            tally.masked.append(id_)
    elif (there := account.get(id_)) is not None and _told(there) == given:
        tally.unchanged += 1
    else:
        tally.refused.append(Left(where=id_, why="it was made or removed here already, which stays"))


def _note_counters(
    tree: Tree, scope: str, planned: Sequence[str], policy: CompressionPolicy, tally: _Tally
) -> None:
    """Say where the tree counted otherwise; what is written again is counted by sessions."""
    counted = compression.counters(len(planned), policy)
    given = tree.counters.get(scope, {})
    if any(given.get(name, value) != value for name, value in counted.items()):
        where = counters_file(scope)
        tally.notes.append(f"{where} does not fit the {len(planned)} sessions of the tree, which count")
    places = {name: compression.position(n, policy) for n, name in enumerate(planned, start=1)}
    told = [
        (place_of(m.data), places.get(m.session or "")) for m in tree.episodes.values() if m.scope == scope
    ]
    other = sum(1 for said, place in told if said and place and said != tuple(place[n] for n in SEQUENCES))
    if other:
        tally.notes.append(f"{other} episodes had another compression_meta than their session has")


def _import_files(account: Account, tree: Tree, at: datetime, tally: _Tally) -> None:
    """Keep what is no file of the seed, and what the pages and counters of sessions say beyond ours."""
    name = consciousness_sessions.developer(tree)
    root: dict[str, Any] = {"counters": {scope: _noted(value) for scope, value in tree.counters.items()}}
    if name is not None and name != _developer(account, None):
        root["developer"] = name
    version = account.version
    made = _pages(account, version, root, _episodes(account, version))
    for relative, value in tree.pages.items():
        if made.get(relative) != value:
            tree.files[relative] = {"text": _json(value).decode()}
    # A whole path can look like a token to the gate; its parts do not.
    kept = {
        f"{_FILES}{hashlib.sha256(name.encode()).hexdigest()[:32]}": {"path": name.split("/"), **value}
        for name, value in tree.files.items()
    }
    entries = [stores.file(n, v, at=at) for n, v in sorted({**kept, f"{_NOTES}/root": root}.items())]
    handle = account.bound(SHARED)
    wanted = [Wrote(memory=entry.memory) for entry in entries]
    for entry, verdict in zip(entries, handle.write_many(wanted, cause=_CAUSE, skip=_SKIP), strict=True):
        if not verdict:
            where = "/".join(entry.value.get("path", [_NOTES]))
            tally.refused.append(Left(where=where, why=f"{verdict.check}: {verdict.detail}"))


def _files(account: Account, version: int) -> dict[str, Any]:
    """Every file of the tree by its path, as JSON values, or bytes where nobody knows what it is."""
    view = account.at(version)
    notes = {name: m for m in view.memories(kind="register", category=stores.FILE) if (name := _note_of(m))}
    root = notes[f"{_NOTES}/root"].data if f"{_NOTES}/root" in notes else {}
    said = _episodes(account, version)
    places = {session.sandbox: session.position for session in _sessions(account, version)}
    files: dict[str, Any] = {}
    for memory in said:
        name = f"{EPISODES}/{file_name(memory)}"
        if name in files:
            raise BadInput(f"two episodes would be written as {name}")
        files[name] = document_of(memory, places.get(memory.session or ""))
    files |= _pages(account, version, root, said)
    for memory in view.memories(kind=tuple(FOLDERS)):
        files[f"{FOLDERS[memory.kind]}/{memory.id}.json"] = _told(memory)
    files |= _counters(account, version, root)
    kept = [memory.data for name, memory in notes.items() if name.startswith(_FILES)]
    return files | {"/".join(value["path"]): bytes_of(value) for value in kept}


def _episodes(account: Account, version: int) -> list[Memory]:
    """The episodes of a version, those among them that were retired for a core included."""
    view = account.at(version)
    found = {memory.id: memory for memory in view.memories(kind="episode")}
    for core in view.memories(kind="core"):
        for id_ in core.linked("part"):
            history = [] if id_ in found else view.history(id_)
            if history and history[-1].memory.data.get(RETIRED):
                found[id_] = next(r.memory for r in reversed(history) if not r.memory.gone)
    return sorted(found.values(), key=lambda memory: (memory.at, memory.id))


def _pages(
    account: Account, version: int, root: Mapping[str, Any], said: Iterable[Memory]
) -> dict[str, dict[str, Any]]:
    spoken: dict[str, list[Memory]] = {}
    for memory in said:
        if memory.session is not None and counts_as_episode(memory):
            spoken.setdefault(memory.session, []).append(memory)
    name = _developer(account, root.get("developer"))
    return consciousness_sessions.pages(_sessions(account, version), spoken, name, account.policy.compression)


def _counters(account: Account, version: int, root: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The counters of each scope; what an imported file said beyond them stays, its time until one closes."""
    closed: dict[str, Session] = {session.scope: session for session in _sessions(account, version)}
    files = {}
    for scope in sorted({SHARED, *closed, *root.get("counters", {})}):
        if not account.sees(scope):
            continue
        total = closed[scope].ordinal if scope in closed else 0
        given = root.get("counters", {}).get(scope, {})
        counted = compression.counters(total, account.policy.compression)
        last = iso(closed[scope].at) if scope in closed else None
        if "last_update" in given and all(counted[name] == given.get(name) for name in _SEQUENCES):
            last = given["last_update"]
        more = {name: value for name, value in given.items() if name not in _COUNTED}
        files[counters_file(scope)] = {**counted, "last_update": last, **more}
    return files


def _noted(given: Mapping[str, Any]) -> dict[str, Any]:
    """What a counters file says that arithmetic does not; the total follows from the rest."""
    return {name: value for name, value in given.items() if name != "Total_sessions"}


def _sessions(account: Account, version: int) -> list[Session]:
    return [session for session in account.sessions() if session.version <= version]


def _told(memory: Memory) -> dict[str, Any]:
    """A core or sphere as its file."""
    return {name: value for name, value in memory.data.items() if name not in compress.OWN}


def _note_of(memory: Memory) -> str | None:
    """The name of what an import kept beside the memories, None if it is no such thing."""
    name = memory.data.get("name") if memory.category == stores.FILE else None
    return name if isinstance(name, str) and name.startswith(f"{_NOTES}/") else None


def _developer(account: Account, given: str | None) -> str:
    return given or re.sub(r"[^\w.-]", "_", account.name)


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
