"""`vault.jsonl` as a projection: its records in step with the ledger on one side, the file on the other."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from octavo.documents.vault.lines import Entry, Problem, VaultMemory, fold, renamed, take_in
from octavo.domain.erasure import Erasure
from octavo.domain.memory import is_human
from octavo.domain.ports import Progress
from octavo.engine.account import Account
from octavo.storage.stores.disk import replace_file

_REDACTING = "redact "  # how the cause of a redaction's commit begins


class VaultView:
    """Every revision of a vault as a record, in the order of the ledger; safe for threads."""

    def __init__(self, account: Account, path: Path, folder: Path) -> None:
        self.path = path
        self.name = path.name
        self.problems: list[Problem] = []
        self._account = account
        self._attached = account.attached
        self._compaction = folder / "view.json"  # the version at which the file was last shortened
        self._copy = path.with_name(f"{path.name}.imported")
        self._file = self._attached.beside(path, "view")
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
        return self._attached.read(self._file) or b""

    def compact(self) -> tuple[int, int]:
        """Leave one line for each live memory in the file; returns how many lines there were and are."""
        with self._holding():
            self._follow()
            before = self.data().count(b"\n")
            mark = msgspec.json.encode({"compacted": self._version})
            replace_file(self._attached.disk, self._compaction, mark)
            self._follow()
            return before, self.data().count(b"\n")

    def follow(self, progress: Progress | None = None) -> None:
        """Bring the file up to the ledger, and what is foreign in the file into the ledger."""
        with self._holding():
            self._follow()

    def erase(self, erasure: Erasure) -> list[str]:
        """Nothing: the file is attached, so any handle cleans it, whether or not a vault is open."""
        return []

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Whether the file tells what the vault holds."""
        with self._holding():
            self._refresh()
            return [] if self.data() == self._told() else [f"{self.path} does not tell what the vault holds"]

    def clear(self) -> None:
        """Nothing: whenever it follows, the file is compared as a whole."""

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Hold the file alone, known to the account as one that its redactions must reach."""
        with self._lock, self._attached.locked():
            if not self._is_listed:
                self._attached.attach(self.path, "view")
                self._attached.adopt(self._copies(), renamed)
                self._is_listed = True
            yield
            self._stamp = self._stamp_now()

    def _copies(self) -> list[Path]:
        """The copies of foreign lines that were kept: the first one, and those with a number."""
        numbered = re.compile(re.escape(self._copy.name) + r"(-\d+)?")
        beside = sorted(self.path.parent.glob(f"{self._copy.name}*"))
        return [path for path in beside if numbered.fullmatch(path.name) and not path.is_symlink()]

    def _begin(self) -> None:
        self._entries: list[Entry] = []
        self._latest: dict[str, Entry] = {}
        self._version = 0

    def _refresh(self) -> None:
        """Follow the ledger; a redaction changes what older versions say, so all is read again."""
        if self._account.version == self._version:
            return
        commits = self._account.versions(after=self._version)
        if any(commit.cause.startswith(_REDACTING) for commit in commits):
            self._begin()
            commits = self._account.versions()
        revisions = [
            r for r in self._account.revisions(after=self._version) if r.version <= commits[-1].version
        ]
        for entry in fold(self._latest, revisions, commits):
            self._entries.append(entry)
            self._latest[entry.memory.id] = entry
        self._version = commits[-1].version

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
        data, told = self.data(), self._told()
        if told.startswith(data):  # it is behind, or a kill tore its last line: the rest completes it
            if rest := told[len(data) :]:
                self._attached.append(self._file, rest)
            return
        ours = {entry.line for entry in self._entries}
        foreign = b"".join(line for line in data.splitlines(keepends=True) if line not in ours)
        if foreign:
            problems = take_in(self._account, foreign, self._latest)
            self.problems += problems
            if any(problem.check != "redaction" for problem in problems if not problem.is_exact):
                self._attached.keep(self._copy, foreign, renamed(foreign))  # not all of it fits exactly
            self._refresh()
        if (told := self._told()) != data:
            self._attached.replace(self._file, told)

    def _told(self) -> bytes:
        """What the file is to hold: a line for each that lived when it was last shortened, and all since."""
        since = self._shortened()
        then = {entry.memory.id: entry for entry in self._entries if entry.version <= since}
        live = [entry for entry in then.values() if entry.record.deleted_at is None]
        live.sort(key=lambda entry: (entry.record.category, entry.record.created_at, entry.memory.id))
        return b"".join(e.line for e in (*live, *(e for e in self._entries if e.version > since)))

    def _shortened(self) -> int:
        """The version at which the file was last shortened; a mark that cannot be read is none."""
        try:
            mark = msgspec.json.decode(self._attached.disk.read(self._compaction), type=dict[str, Any])
            return int(mark.get("compacted", 0))
        except (FileNotFoundError, ValueError):
            return 0
