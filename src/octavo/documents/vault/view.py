"""`vault.jsonl` as a projection: its records in step with the ledger on one side, the file on the other."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec
from msgspec import Struct

from octavo.documents.vault.lines import Entry, Problem, VaultMemory, fold, newest, parse, renamed, take_in
from octavo.domain.erasure import Erasure
from octavo.domain.memory import is_human
from octavo.domain.units import Watermark
from octavo.engine.account import Account
from octavo.storage.projections import Progress
from octavo.storage.stores.disk import replace_file

_REDACTING = "redact "  # how the cause of a redaction's commit begins


class Mark(Struct, frozen=True, kw_only=True):
    """How far the file has followed: up to which version of which ledger, and how long it was then."""

    version: int = 0
    hash: str = ""
    size: int = 0


class VaultView:
    """Every revision of a vault as a record, in the order of the ledger; safe for threads."""

    def __init__(self, account: Account, path: Path, folder: Path) -> None:
        self.path = path
        self.name = path.name
        self.problems: list[Problem] = []
        self._account = account
        self._attached = account.attached
        self._mark_path = folder / "view.json"
        self._copy = path.with_name(f"{path.name}.imported")
        self._file = self._attached.files.beside(path, "view")
        self._is_listed = False
        self._stamp: tuple[int, int, int] | None = None
        self._lock = threading.RLock()
        self._begin()

    def latest(self) -> dict[str, Entry]:
        """Every memory's newest entry as of now, tombstones and what others appended included."""
        with self._lock:
            self._take_in_whole_lines()
            self._refresh()
            return dict(self._latest)

    def record(self, id_: str, rev: int) -> VaultMemory:
        """The record that one revision made."""
        with self._lock:
            self._refresh()
            return next(
                e.record for e in reversed(self._entries) if (e.memory.id, e.memory.rev) == (id_, rev)
            )

    def data(self) -> bytes:
        """The bytes of the file, none if it is not there."""
        return self._attached.files.read(self._file) or b""

    def compact(self) -> tuple[int, int]:
        """Leave one line for each live memory in the file; returns how many lines there were and are."""
        with self._holding():
            self._follow()
            before = self.data().count(b"\n")
            live = [e for e in self._latest.values() if e.record.deleted_at is None]
            live.sort(key=lambda e: (e.record.category, e.record.created_at, e.memory.id))
            self._replace(b"".join(entry.line for entry in live))
        return before, len(live)

    def watermark(self) -> Watermark:
        """How far the file has followed."""
        mark = self._mark()
        return Watermark(version=mark.version, header=mark.hash)

    def follow(self, progress: Progress | None = None) -> None:
        """Bring the file up to the ledger, and what is foreign in the file into the ledger."""
        with self._holding():
            self._follow()

    def erase(self, erasure: Erasure) -> list[str]:
        """Nothing: the file is attached, so any handle cleans it, whether or not a vault is open."""
        return []

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Whether who reads the file alone reads the vault's live memories."""
        with self._holding():
            self._refresh()
            live = {id_: e.record.text for id_, e in self._latest.items() if e.record.deleted_at is None}
            told = {id_: r.text for id_, r in newest(parse(self.data())[0]).items() if r.deleted_at is None}
        return [] if live == told else [f"{self.path} does not tell what the vault holds"]

    def clear(self) -> None:
        """Forget how far the file has followed, so that it is told from the beginning."""
        with self._holding():
            self._attached.files.disk.remove(self._mark_path)

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Hold the file alone, known to the account as one that its redactions must reach."""
        with self._lock, self._attached.files.locked():
            if not self._is_listed:
                self._attached.files.attach(self.path, "view")
                self._attached.adopt(self._copies(), renamed)
                self._is_listed = True
            yield
            self._stamp = self._stamp_now()

    def _copies(self) -> list[Path]:
        """The copies of foreign lines that were kept: the first one, and those with a number."""
        numbered = re.compile(re.escape(self._copy.name) + r"(-\d+)?")
        beside = self.path.parent.glob(f"{self._copy.name}*")
        return sorted(path for path in beside if numbered.fullmatch(path.name) and not path.is_symlink())

    def _begin(self) -> None:
        self._entries: list[Entry] = []
        self._latest: dict[str, Entry] = {}
        self._hashes: dict[int, str] = {0: ""}
        self._version = 0
        self._redacted = 0

    def _refresh(self) -> None:
        """Follow the ledger; a redaction changes what older versions say, so all is read again."""
        if self._account.version == self._version:
            return
        commits = self._account.versions(after=self._version)
        if any(commit.cause.startswith(_REDACTING) for commit in commits):
            self._begin()
            commits = self._account.versions()
        upto = commits[-1].version
        revisions = [r for r in self._account.revisions(after=self._version) if r.version <= upto]
        for entry in fold(self._latest, revisions, commits):
            self._entries.append(entry)
            self._latest[entry.memory.id] = entry
        self._hashes |= {commit.version: commit.hash for commit in commits}
        redacting = [c.version for c in commits if c.cause.startswith(_REDACTING)]
        self._redacted = max([self._redacted, *redacting])
        self._version = upto

    def _stamp_now(self) -> tuple[int, int, int] | None:
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_ino, status.st_size, status.st_mtime_ns

    def _take_in_whole_lines(self) -> None:
        """Look at what another program has written since; half a line is not looked at before it is whole.

        Only a person imports, so an agent's handle leaves it to the next person's.
        """
        stamp = self._stamp_now()
        if stamp in (None, self._stamp) or not is_human(self._account.actor):
            return
        if self.data().endswith(b"\n"):
            self.follow()

    def _follow(self) -> None:
        self._refresh()
        mark = self._mark()
        if self._hashes.get(mark.version) != mark.hash or self._redacted > mark.version:
            mark = Mark()  # of another history, or of a file that was swept since
        data = self.data()
        pending = self._lines_after(mark.version)
        if len(data) >= mark.size and pending.startswith(data[mark.size :]):
            # What stands there already is ours, perhaps torn by a kill: the rest of it completes it.
            if rest := pending[len(data) - mark.size :]:
                self._attached.files.append(self._file, rest)
            self._move(mark.size + len(pending))
            return
        foreign = data if len(data) < mark.size else data[mark.size :]
        if foreign:
            problems = take_in(self._account, foreign, self._latest)
            self.problems += problems
            if any(problem.check != "redaction" for problem in problems if not problem.is_exact):
                self._attached.keep(self._copy, foreign, renamed(foreign))  # not all of it fits exactly
            self._refresh()
        lines = self._lines_after(0)
        if lines == data:
            self._move(len(lines))
        else:
            self._replace(lines)

    def _lines_after(self, version: int) -> bytes:
        return b"".join(entry.line for entry in self._entries if entry.version > version)

    def _replace(self, lines: bytes) -> None:
        self._attached.files.replace(self._file, lines)
        self._move(len(lines))

    def _mark(self) -> Mark:
        """How far the file has followed; a mark that cannot be read is none, and costs a closer look."""
        try:
            return msgspec.json.decode(self._attached.files.disk.read(self._mark_path), type=Mark)
        except (FileNotFoundError, ValueError):
            return Mark()

    def _move(self, size: int) -> None:
        mark = Mark(version=self._version, hash=self._hashes[self._version], size=size)
        if mark != self._mark():
            replace_file(self._attached.files.disk, self._mark_path, msgspec.json.encode(mark))
