"""The state: a SQLite file derived from the ledger, with the versions each revision is valid from and to.

It is the first projection: it follows in every commit, and is compared with the ledger byte by byte.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any

import apsw

from octavo.domain.erasure import Erasure
from octavo.domain.ports import Progress
from octavo.errors import IndexDamaged, LedgerDamaged, LedgerTruncated, OctavoError, StoreFull
from octavo.storage import state_file
from octavo.storage.ledger import GENESIS, Ledger, Version
from octavo.storage.state_log import StateLog
from octavo.storage.state_view import DbView

_log = logging.getLogger(__name__)


class StateDb(StateLog):
    """The read model of one account; safe for threads, followed by any number of processes."""

    name = "index/state.db"

    def __init__(
        self, path: Path, ledger: Ledger, *, read_only: bool = False, db: apsw.Connection | None = None
    ) -> None:
        """Open the file at a path, or take what is `private` in its place."""
        self._lock = threading.RLock()
        self.path, self.ledger = path, ledger
        self._read_only, self._is_private = read_only, db is not None
        self.when_closed: Callable[[], None] | None = None
        self.when_redacted: Callable[[], None] | None = None  # and swept, by somebody else
        self._db = db or state_file.opened(self.path, read_only=self._read_only)
        self._file = state_file.number_of(path)
        self._is_spare = False  # whether it is private only until the disk has room again

    @classmethod
    def private(cls, path: Path, ledger: Ledger, *, copied: bool = False, follows: bool = True) -> StateDb:
        """A state that touches nothing: a copy of what lies at the path, or a new one."""
        if not copied:
            return cls(path, ledger, read_only=not follows, db=state_file.private(path, None))
        with closing(state_file.opened(path, read_only=True)) as source:
            return cls(path, ledger, db=state_file.private(path, source))

    @property
    def folder(self) -> Path:
        """Where the file lies; other derived files lie beside it."""
        return self.path.parent

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()
            if self.when_closed:
                self.when_closed()

    def open(self) -> int:
        """Catch up when an account is opened: another history is rebuilt, a shorter one is an error."""
        version, hash_ = self.watermark()
        if version == 0:
            self.ledger.must_be_whole()
        try:
            is_its_own = self.ledger.hash_of(version) == hash_
        except LedgerDamaged:
            self.must_not_be_ahead()
            raise
        return self.catch_up() if is_its_own else self.rebuild()

    def must_not_be_ahead(self) -> None:
        """Raise if the ledger ends before the version this state was derived from."""
        version, _ = self.watermark()
        if not self.ledger.exists(version):
            raise LedgerTruncated(
                f"the ledger ends before version {version}, which the state was derived from"
            )

    def is_current(self) -> bool:
        """Whether the state is at the head of its ledger."""
        version, hash_ = self.watermark()
        if version == 0:  # probes alone would take a ledger without its first version for an empty one
            return self.ledger.must_be_whole() == 0
        self.must_not_be_ahead()
        return not self.ledger.goes_beyond(version) and self.ledger.hash_of(version) == hash_

    def catch_up(self) -> int:
        """Follow the ledger to its head and return that version.

        A handle opened to read leaves this to the writers and reads what they have derived.
        """
        if self._is_spare:
            self._leave_memory()
        version, _ = self.watermark()
        if self._read_only or not self.ledger.goes_beyond(version):
            return version
        try:
            return self._newest()
        except StoreFull:
            self._go_into_memory()
            return self._newest()
        except IndexDamaged:
            if not self._heal():
                raise
            return self.watermark()[0]

    def follow(self, progress: Progress | None = None) -> None:
        """Apply the versions that are new."""
        self.catch_up()

    def erase(self, erasure: Erasure) -> list[str]:
        """Mask what spoke of it and rewrite the file; memories were masked by the redaction's own commit."""
        with self._writing():
            for version, line, change in self.spoken():
                if erasure.holds(change):
                    sql = "UPDATE other SET body = NULL WHERE version = ? AND line = ?"
                    self._db.execute(sql, (version, line))
        self.scrub()
        return []

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Whether the state holds exactly the revisions of the ledger, byte by byte."""
        last, hash_ = self.watermark()
        problems = [f"{self.name}: {what}" for what in self.check()]
        if not self.ledger.exists(last):
            head = self.ledger.must_be_whole()
            return [*problems, f"{self.name} is at version {last}, the ledger ends at {head}"]
        with suppress(OctavoError):  # a version that is damaged is named by who proves the ledger
            if self.ledger.hash_of(last) != hash_:
                problems.append(f"{self.name} was derived from another version {last}")
            for number in range(1, last + 1):
                lines = [line for line in self.ledger.read(number).lines if line.t == "memory"]
                if self.lines_in(number) != [(bytes(x.envelope), x.body_bytes()) for x in lines]:
                    problems.append(f"{self.name} does not hold the memories of version {number} as they are")
        return problems

    def clear(self) -> None:
        """Derive the state again at once: no reader may meet an empty one."""
        self.rebuild()

    def _go_into_memory(self) -> None:
        """Go on with a copy that can follow a ledger on a full disk: what is committed can be read."""
        with self._lock:
            copy = state_file.private(self.path, self._db)
            self._db.close()
            self._db, self._is_spare = copy, True

    def _leave_memory(self) -> None:
        """Go back to the file if there is room for it again."""
        with self._lock:
            spare = self._db
            try:
                self._db = state_file.opened(self.path, read_only=False)
                self._newest()
            except StoreFull:
                if self._db is not spare:
                    self._db.close()
                self._db = spare
            else:
                self._is_spare = False
                spare.close()

    def _newest(self) -> int:
        with self._writing():
            version, hash_ = self.watermark()
            is_swept = False
            for newer in self.ledger.newer(version, hash_):
                is_swept |= state_file.write_version(self._db, newer)
                version = newer.header.version
        if is_swept and self.when_redacted:
            self.when_redacted()
        return version

    def apply(self, version: Version) -> None:
        """Add a version just committed, unless another process has done so already."""
        with self._writing():
            known, hash_ = self.watermark()
            if known == version.header.version - 1 and hash_ == version.header.parent_hash:
                state_file.write_version(self._db, version)

    def rebuild(self, progress: Progress | None = None) -> int:
        """Throw the state away and derive it again."""
        head = self.ledger.must_be_whole()
        if self.is_damaged():
            self._begin_anew()
        with self._writing():
            for name in state_file.TABLES:
                self._db.execute(f"DELETE FROM {name}")
            state_file.begin_at_zero(self._db)
            for found in self.ledger.newer(0, GENESIS, upto=head):
                state_file.write_version(self._db, found)
                if progress:
                    progress(found.header.version, head)
        return head

    def at(self, version: int) -> DbView:
        """The state as of a version."""
        return DbView(self, version)

    def copy_to(self, path: Path) -> tuple[int, str]:
        """Write the state into another file, packed tight; says at which version it is."""
        try:
            with closing(state_file.reading(self.path)) as db:
                # Nothing may be written early: who proves pages goes by the first one, which comes last.
                db.pragma("cache_size", db.pragma("page_count") + 1)
                db.execute("VACUUM INTO ?", (str(path),))
            with closing(state_file.reading(path)) as copy:
                rows = dict(copy.execute("SELECT key, value FROM meta WHERE key IN ('version', 'hash')"))
        except apsw.Error as error:
            raise state_file.failure(path, error) from error
        return int(rows["version"]), str(rows["hash"])

    def check(self) -> list[str]:
        """What SQLite's own check finds wrong with the file."""
        with self._lock:
            return [str(row[0]) for row in self._rows("PRAGMA quick_check") if row[0] != "ok"]

    def is_damaged(self) -> bool:
        """Whether the file must be made anew before anything can be written to it."""
        try:
            return bool(self.check())
        except IndexDamaged:
            return True

    def _begin_anew(self) -> None:
        """Begin a new file in the damaged one's place, unless another process has done so.

        Who only reads begins one of his own.
        """
        with self._lock:
            self._db.close()
            if self._read_only or self._is_private:
                self._read_only, self._is_private = False, True
                self._db = state_file.private(self.path, None)
                return
            if state_file.number_of(self.path) == self._file:
                state_file.remove(self.path)
            self._db = state_file.opened(self.path, read_only=False)
            self._file = state_file.number_of(self.path)

    def _heal(self) -> bool:
        """Derive a damaged file again from the ledger; says whether that could be done."""
        with self._lock:
            if self._db.in_transaction:
                return False
            _log.warning("state made anew reason=damaged")
            self._begin_anew()
            self._newest()
            return True

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        """All rows of a query; a file that turns out to be damaged is made anew and asked again."""
        with self._lock:
            try:
                return self._rows(sql, values)
            except IndexDamaged:
                if not self._heal():
                    raise
                return self._rows(sql, values)

    def _rows(self, sql: str, values: Sequence[Any] = ()) -> list[Any]:
        try:
            return self._db.execute(sql, values).fetchall()
        except apsw.Error as error:
            raise state_file.failure(self.path, error) from error

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            try:
                self._db.execute("BEGIN IMMEDIATE")
                try:
                    yield
                except BaseException:
                    self._db.execute("ROLLBACK")
                    raise
                self._db.execute("COMMIT")
            except apsw.Error as error:
                raise state_file.failure(self.path, error) from error

    def scrub(self) -> None:
        """Rewrite the file without what was erased, its write-ahead log included."""
        if self._is_spare:
            raise StoreFull(f"{self.path} cannot be written anew without what was erased")
        with self._lock:
            try:
                self._db.execute("VACUUM")
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.Error as error:
                raise state_file.failure(self.path, error) from error
