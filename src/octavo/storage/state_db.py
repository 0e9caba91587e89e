"""The state: a SQLite file derived from the ledger, with the versions each revision is valid from and to."""

from __future__ import annotations

import logging
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import apsw

from octavo.domain.memory import Memory, Redaction
from octavo.domain.themselves import topics_of
from octavo.errors import IndexDamaged, LedgerTruncated, StoreFull
from octavo.storage import codec
from octavo.storage.codec import Header
from octavo.storage.ledger import GENESIS, Ledger, Version
from octavo.storage.state_file import (
    TABLES,
    begin_at_zero,
    copied_to_memory,
    copy_file,
    failure,
    looked_up_by,
    number_of,
    opened,
    places_of,
    reading,
    reference,
    remove,
    revision_row,
)
from octavo.storage.state_log import OPEN, StateLog
from octavo.storage.state_view import DbView

_log = logging.getLogger(__name__)


class StateDb(StateLog):
    """The read model of one account; safe for threads, followed by any number of processes."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._lock = threading.RLock()
        self.path = path
        self._read_only = read_only
        self.when_closed: Callable[[], None] | None = None
        self.when_redacted: Callable[[], None] | None = None  # and swept, by somebody else
        self._ledger: Ledger | None = None  # that it follows, and is made anew from when it is damaged
        self._db = opened(self.path, read_only=self._read_only)
        self._file = number_of(path)
        self._is_spare = False  # whether it is a copy in memory, because the disk is full

    @classmethod
    def private(cls, path: Path | None) -> StateDb:
        """A copy of a state file (or a new one) in a temporary folder that goes when the state is closed."""
        folder = tempfile.TemporaryDirectory(prefix="octavo-")
        target = Path(folder.name) / "state.db"
        try:
            if path is not None and path.exists():
                copy_file(path, target)
            state = cls(target)
        except BaseException:
            folder.cleanup()
            raise
        state.when_closed = folder.cleanup
        return state

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

    def follow(self, ledger: Ledger) -> int:
        """Catch up when an account is opened: another history is rebuilt, a shorter one is an error."""
        self._ledger = ledger
        version, hash_ = self.watermark()
        if version == 0:
            ledger.must_be_whole()
        else:
            self.must_not_be_ahead_of(ledger)
            if ledger.hash_of(version) != hash_:
                return self.rebuild(ledger)
        return self.catch_up(ledger)

    def stay(self) -> None:
        """Follow no further."""
        self._read_only = True

    def must_not_be_ahead_of(self, ledger: Ledger) -> None:
        """Raise if the ledger ends before the version this state was derived from."""
        version, _ = self.watermark()
        if not ledger.exists(version):
            raise LedgerTruncated(
                f"the ledger ends before version {version}, which the state was derived from"
            )

    def is_current(self, ledger: Ledger) -> bool:
        """Whether the state is at the head of this very ledger, which it then belongs to."""
        self._ledger = ledger
        version, hash_ = self.watermark()
        if version == 0:  # probes alone would take a ledger without its first version for an empty one
            return ledger.must_be_whole() == 0
        self.must_not_be_ahead_of(ledger)
        return not ledger.goes_beyond(version) and ledger.hash_of(version) == hash_

    def catch_up(self, ledger: Ledger) -> int:
        """Follow the ledger to its head and return that version.

        A handle opened to read leaves this to the writers and reads what they have derived.
        """
        if self._is_spare:
            self._leave_memory(ledger)
        version, _ = self.watermark()
        if self._read_only or not ledger.goes_beyond(version):
            return version
        try:
            return self._newest(ledger)
        except StoreFull:
            self._go_into_memory()
            return self._newest(ledger)
        except IndexDamaged:
            self._ledger = ledger
            if not self._heal():
                raise
            return self.watermark()[0]

    def _go_into_memory(self) -> None:
        """Go on with a copy that can follow a ledger on a full disk: what is committed can be read."""
        with self._lock:
            copy = copied_to_memory(self.path, self._db)
            self._db.close()
            self._db, self._is_spare = copy, True

    def _leave_memory(self, ledger: Ledger) -> None:
        """Go back to the file if there is room for it again."""
        with self._lock:
            spare = self._db
            try:
                self._db = opened(self.path, read_only=False)
                self._newest(ledger)
            except StoreFull:
                if self._db is not spare:
                    self._db.close()
                self._db = spare
            else:
                self._is_spare = False
                spare.close()

    def _newest(self, ledger: Ledger) -> int:
        with self._writing():
            version, hash_ = self.watermark()
            is_swept = False
            for newer in ledger.newer(version, hash_):
                is_swept |= self._apply(newer)
                version = newer.header.version
        if is_swept and self.when_redacted:
            self.when_redacted()
        return version

    def apply(self, version: Version) -> None:
        """Add a version just committed, unless another process has done so already."""
        with self._writing():
            known, hash_ = self.watermark()
            if known == version.header.version - 1 and hash_ == version.header.parent_hash:
                self._apply(version)

    def rebuild(self, ledger: Ledger, progress: Callable[[int, int], None] | None = None) -> int:
        """Throw the state away and derive it again."""
        head = ledger.must_be_whole()
        if self.is_damaged():
            self._begin_anew()
        with self._writing():
            for name in TABLES:
                self._db.execute(f"DELETE FROM {name}")
            begin_at_zero(self._db)
            for found in ledger.newer(0, GENESIS, upto=head):
                self._apply(found)
                if progress:
                    progress(found.header.version, head)
        return head

    def at(self, version: int) -> DbView:
        """The state as of a version."""
        return DbView(self, version)

    def copy_to(self, path: Path) -> tuple[int, str]:
        """Write the state into another file, packed tight; says at which version it is."""
        try:
            with closing(reading(self.path)) as db:
                # Nothing may be written early: who proves pages goes by the first one, which comes last.
                db.pragma("cache_size", db.pragma("page_count") + 1)
                db.execute("VACUUM INTO ?", (str(path),))
            with closing(reading(path)) as copy:
                rows = dict(copy.execute("SELECT key, value FROM meta WHERE key IN ('version', 'hash')"))
        except apsw.Error as error:
            raise failure(path, error) from error
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
            if self._read_only:
                folder = tempfile.TemporaryDirectory(prefix="octavo-")
                self.path, self._read_only = Path(folder.name) / "state.db", False
                self.when_closed = folder.cleanup
            elif number_of(self.path) == self._file:
                remove(self.path)
            self._db = opened(self.path, read_only=False)
            self._file = number_of(self.path)

    def _heal(self) -> bool:
        """Derive a damaged file again from the ledger; says whether that could be done."""
        with self._lock:
            if self._ledger is None or self._db.in_transaction:
                return False
            _log.warning("state made anew reason=damaged")
            self._begin_anew()
            self._newest(self._ledger)
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
            raise failure(self.path, error) from error

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
                raise failure(self.path, error) from error

    def _apply(self, version: Version) -> bool:
        """Add one version inside an open transaction; says whether a redaction was finished by it."""
        number = version.header.version
        revisions: list[tuple[Any, ...]] = []
        first = row = int(self.one("SELECT max(row) FROM revision") or 0)
        memories: list[Memory] = []
        redacted: list[str] = []
        is_swept = False
        for position, line in enumerate(version.lines):
            body = line.body_bytes()
            change = version.change(position)
            if isinstance(change, Memory):
                row += 1
                revisions.append(revision_row(row, change, number, bytes(line.envelope), body))
                memories.append(change)
            else:
                if isinstance(change, Redaction):
                    is_swept |= change.swept
                    if not change.swept:
                        redacted.append(change.memory)
                self._db.execute(
                    "INSERT INTO other VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (number, position, line.t, *reference(line.t, change), bytes(line.envelope), body),
                )
        self._db.executemany(f"INSERT INTO revision VALUES ({','.join('?' * 16)})", revisions)
        for sql, values in looked_up_by(first, memories):
            if values:
                self._db.executemany(sql, values)
        self._end_older(number, memories)  # after the inserts: a version may hold two revisions of one memory
        for id_ in redacted:  # last, because the counters go by the category that is erased
            self._erase(id_, number)
        self._record(version.header, version.hash)
        return is_swept

    def _erase(self, id_: str, version: int) -> None:
        """Mask a redacted memory: its bodies, what they were looked up by, and what was said about it.

        What the redaction's own version says in its place stays.
        """
        own = "id = ? AND (since < ? OR gone = 1)"
        erased = self.rows(f"SELECT row, envelope, body FROM revision WHERE {own}", (id_, version))
        for row, envelope, body in erased:
            memory = codec.decode_memory(envelope, body)
            places = places_of(row, memory)
            self._db.executemany("DELETE FROM filed WHERE place = ?", [(place,) for place in places])
            self._db.executemany(
                "DELETE FROM tagged WHERE tag = ? AND at = ? AND id = ? AND row = ?",
                [(tag, codec.micros(memory.at), id_, row) for tag in memory.tags],
            )
            told = [(topic, row) for topic in topics_of(memory)]
            self._db.executemany("DELETE FROM told WHERE topic = ? AND row = ?", told)
        for table in ("standing_order", "called"):  # our own table names
            rows = f"SELECT row FROM revision WHERE {own}"
            self._db.execute(f"DELETE FROM {table} WHERE row IN ({rows})", (id_, version))
        self._db.execute(
            f"UPDATE revision SET body = NULL, topic = NULL, category = NULL, tags = NULL WHERE {own}",
            (id_, version),
        )
        self._db.execute("UPDATE other SET body = NULL WHERE tag IN ('merge', 'clash') AND ref = ?", (id_,))

    def erase_other(self, version: int, line: int) -> None:
        """Mask one change that is no memory; redaction's sweep finds them by their text."""
        with self._writing():
            self._db.execute("UPDATE other SET body = NULL WHERE version = ? AND line = ?", (version, line))

    def scrub(self) -> None:
        """Rewrite the file without what was erased, its write-ahead log included."""
        if self._is_spare:
            raise StoreFull(f"{self.path} cannot be written anew without what was erased")
        with self._lock:
            try:
                self._db.execute("VACUUM")
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.Error as error:
                raise failure(self.path, error) from error

    def _end_older(self, version: int, memories: Sequence[Memory]) -> None:
        """Close the revision before each later one, and its links, which nobody who asks now reads again.

        What is live is counted here, in the same transaction; nothing is ever counted by scanning.
        """
        ended = self._db.executemany(
            f"UPDATE revision SET until = ? WHERE id = ? AND until = {OPEN} AND rev = ? "
            "RETURNING row, envelope, gone, kind, scope, coalesce(category, '')",
            [(version, m.id, m.rev - 1) for m in memories if m.rev > 1],
        )
        live = Counter((m.kind, m.scope, m.category or "") for m in memories if not m.gone)
        links: list[tuple[int, str, str, int]] = []
        for row, envelope, is_gone, kind, scope, category in ended:
            live[kind, scope, category] -= not is_gone
            links += [
                (version, link.to, link.name, row) for link in codec.decode_memory(envelope, None).links
            ]
        self._db.executemany(
            f"UPDATE link SET until = ? WHERE target = ? AND until = {OPEN} AND name = ? AND row = ?", links
        )
        self._db.executemany(
            "INSERT INTO tally VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET live = live + excluded.live",
            [(*where, n) for where, n in live.items() if n],
        )

    def _record(self, header: Header, hash_: str) -> None:
        h = header
        row = (h.version, codec.micros(h.at), h.cause, h.actor, h.scope, h.session, h.sandbox, h.last_line)
        self._db.execute("INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row, hash_, h.count))
        self._db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (header.version,))
        self._db.execute("UPDATE meta SET value = ? WHERE key = 'hash'", (hash_,))
