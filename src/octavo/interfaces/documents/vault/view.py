"""A vault's records, kept in step with the ledger on one side and with the file on the other."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from octavo.engine.account import Account
from octavo.interfaces.documents.vault.live_file import Mark, VaultFile
from octavo.interfaces.formats.vault import renamed, take_in
from octavo.interfaces.formats.vault_records import Entry, Problem, VaultMemory, fold

_REDACTING = "redact "  # how the cause of a redaction's commit begins


class VaultView:
    """Every revision of a vault as a record, in the order of the ledger; safe for threads."""

    def __init__(self, account: Account, file: VaultFile) -> None:
        self.problems: list[Problem] = []
        self._account = account
        self._is_attached = False
        self._file = file
        self._lock = threading.RLock()
        self._begin()

    def latest(self) -> dict[str, Entry]:
        """Every memory's newest entry as of now, tombstones included."""
        with self._lock:
            self._refresh()
            return dict(self._latest)

    def record(self, id_: str, rev: int) -> VaultMemory:
        """The record that one revision made."""
        with self._lock:
            self._refresh()
            wanted = (id_, rev)
            return next(e.record for e in reversed(self._entries) if (e.memory.id, e.memory.rev) == wanted)

    def publish(self) -> None:
        """Bring the file up to the ledger, and what is foreign in the file into the ledger."""
        with self._holding():
            self._follow()

    def compact(self) -> tuple[int, int]:
        """Leave one line for each live memory in the file; returns how many lines there were and are."""
        with self._holding():
            self._follow()
            before = (self._file.read() or b"").count(b"\n")
            live = [e.record for e in self._latest.values() if e.record.deleted_at is None]
            live.sort(key=lambda record: (record.category, record.created_at, record.id))
            lines = b"".join(record.to_line() for record in live)
            self._file.replace(lines, self._mark_at(len(lines)), suffix="compact")
        return before, len(live)

    @contextmanager
    def _holding(self) -> Iterator[None]:
        """Hold the file alone, known to the account as one that its redactions must reach."""
        with self._lock, self._account.attached.locked(), self._file.saying():
            if not self._is_attached:
                self._account.attached.show(self._file.path)
                self._account.attached.adopt(self._file.copies(), renamed)
                self._is_attached = True
            yield

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

    def _follow(self) -> None:
        self._refresh()
        mark = self._file.mark()
        if self._hashes.get(mark.version) != mark.hash or self._redacted > mark.version:
            mark = Mark()  # of another history, or of a file that was swept since
        found = self._file.beyond(mark.size)
        pending = self._lines_after(mark.version)
        if found is not None and pending.startswith(found):
            # What stands there already is ours, perhaps torn by a kill: the rest of it completes it.
            self._file.append(pending[len(found) :], self._mark_at(mark.size + len(pending)))
            return
        data = (self._file.read() or b"") if found is None else found
        if data:
            self._take_in(data)
        lines = self._lines_after(0)
        self._file.replace(lines, self._mark_at(len(lines)), suffix="view")

    def _take_in(self, data: bytes) -> None:
        """Import what the file has and the ledger has not; what does not fit exactly is kept beside it."""
        found = take_in(self._account, data, self._latest)
        self.problems += found
        if any(problem.check != "redaction" for problem in found if not problem.is_exact):
            self._account.attached.keep(self._file.copy, data, renamed(data))
        self._refresh()

    def _lines_after(self, version: int) -> bytes:
        return b"".join(e.record.to_line() for e in self._entries if e.version > version and e.is_told)

    def _mark_at(self, size: int) -> Mark:
        return Mark(version=self._version, hash=self._hashes[self._version], size=size)
