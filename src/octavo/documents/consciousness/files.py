"""Seed 001's tree of files, `consciousness/…`: episodes, cores, spheres, counters, in and out without loss.

Counters and places are always written from arithmetic; everything else goes out as it came.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from octavo.documents import trees
from octavo.documents.consciousness import tree as layout
from octavo.documents.consciousness.tree import (
    COUNTERS,
    EPISODES,
    FOLDERS,
    ROOT,
    document_of,
    scoped,
)
from octavo.documents.transfer import MASKED, Exported, Imported, Note, Tally, is_kept
from octavo.domain import compression
from octavo.domain.buffer import Wrote
from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, Memory
from octavo.domain.review import RETIRED
from octavo.domain.rules import counts_as_episode
from octavo.engine import compress
from octavo.engine.account import Account
from octavo.errors import BadInput, HumanOnly, OutOfScope

_NOTES, _FILES = "consciousness", "consciousness/files/"
_SEQUENCES = ("Session_seq", "Core_seq", "Sphere_seq")


def import_(account: Account, path: Path) -> Imported:
    """Read a tree: its sessions one commit each, in their order, then its cores and spheres, then the rest.

    Interrupted, it goes on where it stopped when it is run again; run twice it changes nothing.
    """
    work = _Import(account, path)
    scopes = work.tree.scopes()
    for scope in scopes:
        if not account.sees(scope):
            raise OutOfScope(f"a handle bound to {account.scope!r} tried to import scope {scope!r}")
    for scope in scopes:
        planned = work.tree.order(scope)
        work.take_sessions(scope, planned)
        work.take_made(scope, planned)
        work.note_counters(scope, planned)
    work.take_files()
    work.tally.files = sorted(work.tree.files)
    return work.tally.imported(account, ROOT)


def export(account: Account, path: Path) -> Exported:
    """Write the account as a tree; every file is replaced whole, others are left alone."""
    tree, shown = _Written(account), ("episode", *FOLDERS)
    memories = tree.view.memories()
    return trees.export(
        account,
        ROOT,
        layout.home(path),
        tree.files(),
        counts=(m.kind for m in memories if m.kind in shown),
        left_out=(f"kind {m.kind}" for m in memories if m.kind not in shown and not _is_note(m)),
        version=tree.version,
    )


class _Import:
    """One import of a tree, and what it has done so far."""

    def __init__(self, account: Account, path: Path) -> None:
        self.account = account
        self.at = datetime.now(UTC)
        self.policy = account.policy.compression
        self.tree = layout.Tree(path, self.policy, self.at)
        self.tally = Tally(notes=self.tree.notes)

    def take_sessions(self, scope: str, planned: Sequence[str]) -> None:
        """Write the sessions of a scope, one commit each."""
        closed = {session.sandbox for session in self.account.sessions(scope=scope)}
        spoken: dict[str | None, list[tuple[str, Memory]]] = {}
        for relative, memory in self.tree.episodes.items():
            if memory.scope != scope:
                continue
            if _is_there(self.account, memory):
                self.tally.unchanged += 1
            else:
                spoken.setdefault(memory.sandbox, []).append((relative, memory))
        for ordinal, name in enumerate(planned, start=1):
            said = spoken.pop(name, [])
            counted = any(counts_as_episode(memory) for _, memory in said)
            is_next = len(closed) == ordinal - 1
            if name in closed or not (counted or is_next):
                self._write(scope, said)
                continue
            if not counted:
                note = trees.keep(f"{_NOTES}/sessions/{name}", {"missing": True}, at=self.at)
                said.append(("", note))
            if self._write(scope, said, closes=name):
                closed.add(name)
                self.tally.counts["session"] += 1
        for said in spoken.values():
            self._write(scope, said)

    def _write(self, scope: str, said: Iterable[tuple[str, Memory]], closes: str | None = None) -> bool:
        """Write the episodes of a session in one commit; whether there was anything new."""
        ordered = sorted(said, key=lambda row: (row[1].at, row[0]))
        rows = [(relative, Wrote(memory=memory)) for relative, memory in ordered]
        return bool(rows) and self.tally.write(self.account, ROOT, rows, closes=closes, scope=scope)

    def take_made(self, scope: str, planned: Sequence[str]) -> None:
        """Take cores and spheres from the files where the same sessions have their places here."""
        here = {session.ordinal: session.sandbox for session in self.account.sessions(scope=scope)}
        for due in sorted(self.tree.made_in(scope), key=lambda due: (due.sessions[-1], due.kind)):
            document, span = self.tree.made[due.id], f"{due.sessions[0]} to {due.sessions[-1]}"
            if any(here.get(ordinal) != planned[ordinal - 1] for ordinal in due.sessions):
                self.tally.leave_out(due.id, f"sessions {span} are others here; it is made of those")
                continue
            try:
                memory = self.account.intake.adopt(due.id, document)
            except (BadInput, HumanOnly) as error:
                self.tally.leave_out(due.id, error.message)
                continue
            if memory is not None:
                self.tally.counts[memory.kind] += 1
                if _told(memory) != document:
                    self.tally.changed.append(Note(place=due.id, reason=MASKED))
            elif (there := self.account.get(due.id)) is not None and _told(there) == document:
                self.tally.unchanged += 1
            else:
                self.tally.leave_out(due.id, "it was made or removed here already, which stays")

    def note_counters(self, scope: str, planned: Sequence[str]) -> None:
        """Say where the tree counted otherwise; what is written again is counted by sessions."""
        counted = compression.counters(len(planned), self.policy)
        told = self.tree.counters.get(scope, {})
        if any(told.get(name, value) != value for name, value in counted.items()):
            reason = f"does not fit the {len(planned)} sessions of the tree, which count"
            self.tally.say(f"{scoped(COUNTERS, scope)}.json", reason)
        places = {name: layout.place_at(n, self.policy) for n, name in enumerate(planned, start=1)}
        spoken = [m for m in self.tree.episodes.values() if m.scope == scope and m.sandbox in places]
        other = sum(layout.place_of(m.data) not in (None, places[m.sandbox or ""]) for m in spoken)
        if other:
            self.tally.say(EPISODES, f"{other} episodes had another compression_meta than their session has")

    def take_files(self) -> None:
        """Keep what is no file of the seed, and what the pages and counters of sessions say beyond ours."""
        # The total of sessions follows from the rest of the counters.
        counters = {
            scope: {key: value for key, value in told.items() if key != "Total_sessions"}
            for scope, told in self.tree.counters.items()
        }
        root: dict[str, Any] = {"counters": counters}
        if (name := self.tree.developer()) not in (None, _developer(self.account)):
            root["developer"] = name
        made = _Written(self.account, root).pages()
        for relative, value in self.tree.pages.items():
            if made.get(relative) != value:
                self.tree.files[relative] = trees.json_bytes(value)
        kept = [trees.keep_file(_FILES, *one, at=self.at) for one in sorted(self.tree.files.items())]
        kept.append(trees.keep(f"{_NOTES}/root", root, at=self.at))
        rows = [(trees.place_of(memory), Wrote(memory=memory)) for memory in kept]
        self.tally.write(self.account, ROOT, rows, scope=SHARED)


def _is_there(account: Account, memory: Memory) -> bool:
    """Whether an episode stands in the account as the file tells it, wherever its session stands."""
    there = account.get(memory.id)
    if there is None or there.kind != "episode":
        return False
    one, other = document_of(there, None), document_of(memory, None)
    return {**one, "compression_meta": None} == {**other, "compression_meta": None}


class _Written:
    """The newest version of an account as a tree; `root` is what an import noted of the tree as a whole."""

    def __init__(self, account: Account, root: Mapping[str, Any] | None = None) -> None:
        self.account, self.version = account, account.version
        self.policy = account.policy.compression
        self.view = account.at(self.version)
        self.root = trees.kept(self.view).get(f"{_NOTES}/root", {}) if root is None else root
        self.sessions = [session for session in account.sessions() if session.version <= self.version]
        # Those that were retired for a core are told, too.
        episodes = {memory.id: memory for memory in self.view.memories(kind="episode")}
        for core in self.view.memories(kind="core"):
            for id_ in core.linked("part"):
                history = [] if id_ in episodes else self.view.history(id_)
                if history and history[-1].memory.data.get(RETIRED):
                    episodes[id_] = next(r.memory for r in reversed(history) if not r.memory.gone)
        self.episodes = sorted(episodes.values(), key=lambda memory: (memory.at, memory.id))

    def files(self) -> dict[str, bytes]:
        """Every file of the tree by its path."""
        places = {session.sandbox: session.position for session in self.sessions}
        files: dict[str, Any] = {}
        for memory in self.episodes:
            name = f"{EPISODES}/{layout.file_name(memory)}"
            if name in files:
                raise BadInput(f"two episodes would be written as {name}")
            files[name] = document_of(memory, places.get(memory.sandbox or ""))
        for memory in self.view.memories(kind=tuple(FOLDERS)):
            files[f"{FOLDERS[memory.kind]}/{memory.id}.json"] = _told(memory)
        files |= self.pages() | self.counters()
        written = {name: trees.json_bytes(value) for name, value in files.items()}
        return written | trees.kept_files(self.view, _FILES)

    def pages(self) -> dict[str, dict[str, Any]]:
        """The page of each session by its path."""
        spoken, files = layout.by_session(self.episodes), {}
        name = self.root.get("developer") or _developer(self.account)
        for session in self.sessions:
            title = compression.display_name(name, session.ordinal, self.policy)
            page = layout.page(session, spoken.get(session.sandbox, ()), self.policy)
            files[f"{layout.SESSIONS}/{scoped(title, session.scope)}.json"] = page
        return files

    def counters(self) -> dict[str, dict[str, Any]]:
        """Each scope's counters; what an imported file said beyond them stays, its time until one closes."""
        closed = {session.scope: session for session in self.sessions}
        files, noted = {}, self.root.get("counters", {})
        for scope in sorted({SHARED, *closed, *noted}):
            if self.account.sees(scope):
                last, told = closed.get(scope), noted.get(scope, {})
                counted = compression.counters(last.ordinal if last else 0, self.policy)
                at = {"last_update": iso(last.at) if last else None}
                if all(counted[name] == told.get(name) for name in _SEQUENCES):
                    at = {name: told[name] for name in at if name in told} or at
                files[f"{scoped(COUNTERS, scope)}.json"] = {**told, **counted, **at}
        return files


def _told(memory: Memory) -> dict[str, Any]:
    """A core or sphere as its file."""
    return {name: value for name, value in memory.data.items() if name not in compress.OWN}


def _is_note(memory: Memory) -> bool:
    """Whether it is what an import of a tree kept beside the memories."""
    return is_kept(memory) and str(memory.data.get("name")).startswith(f"{_NOTES}/")


def _developer(account: Account) -> str:
    return re.sub(r"[^\w.-]", "_", account.name)
