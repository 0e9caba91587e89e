"""The state: a SQLite file derived from the ledger, with the versions each revision is valid from and to."""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import apsw
import msgspec

from octavo.domain.memory import (
    COMPARED,
    Change,
    Clash,
    Decision,
    Memory,
    Merge,
    Proposal,
    Redaction,
    Refusal,
    Rejection,
    Use,
)
from octavo.domain.units import Spoken
from octavo.errors import IndexDamaged, LedgerTruncated, NotFound, OctavoError, StoreFull, Unavailable
from octavo.storage import codec, postings
from octavo.storage.codec import Header
from octavo.storage.ledger import GENESIS, Ledger, Version
from octavo.storage.spoken import COLUMNS, spoken_of
from octavo.storage.state_view import OPEN, DbView

SCHEMA = 4
_BUSY_MILLISECONDS = 60_000
_AT_ONCE = 5_000  # revisions that are held in memory for indexing
_CACHE_KIBIBYTES = 16_000  # grams land all over their table; with less, one commit reads a page many times

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE revision (
  row INTEGER PRIMARY KEY, id TEXT NOT NULL, rev INTEGER NOT NULL, kind TEXT NOT NULL, scope TEXT NOT NULL,
  layer TEXT NOT NULL, topic TEXT, category TEXT, tags TEXT, session TEXT, at INTEGER NOT NULL,
  since INTEGER NOT NULL, until INTEGER NOT NULL, gone INTEGER NOT NULL,
  envelope BLOB NOT NULL, body BLOB
);
CREATE INDEX revision_id ON revision (id, until);
CREATE INDEX revision_since ON revision (since);
CREATE INDEX revision_live ON revision (kind, at, id) WHERE until = 4611686018427387904 AND gone = 0;
CREATE INDEX revision_ended ON revision (until) WHERE until < 4611686018427387904;
CREATE INDEX revision_topic ON revision (topic, kind, scope, until) WHERE topic IS NOT NULL;
CREATE INDEX revision_session ON revision (session) WHERE session IS NOT NULL;
CREATE TABLE gram (gram INTEGER NOT NULL, rare INTEGER NOT NULL, row INTEGER NOT NULL,
  PRIMARY KEY (gram, rare, row)) WITHOUT ROWID;
CREATE TABLE link (target TEXT NOT NULL, name TEXT NOT NULL, row INTEGER NOT NULL,
  PRIMARY KEY (target, name, row)) WITHOUT ROWID;
CREATE TABLE version (
  version INTEGER PRIMARY KEY, at INTEGER NOT NULL, cause TEXT NOT NULL, actor TEXT NOT NULL, scope TEXT,
  session INTEGER, sandbox TEXT, last_line INTEGER, hash TEXT NOT NULL, changes INTEGER NOT NULL
);
CREATE INDEX version_at ON version (at);
CREATE INDEX version_sandbox ON version (sandbox) WHERE sandbox IS NOT NULL;
CREATE INDEX version_session ON version (scope, session) WHERE session IS NOT NULL;
CREATE TABLE other (
  version INTEGER NOT NULL, line INTEGER NOT NULL, tag TEXT NOT NULL, ref TEXT NOT NULL, scope TEXT,
  envelope BLOB NOT NULL, body BLOB, PRIMARY KEY (version, line)
) WITHOUT ROWID;
CREATE INDEX other_ref ON other (tag, ref, version);
CREATE TABLE tally (kind TEXT NOT NULL, scope TEXT NOT NULL, category TEXT NOT NULL, live INTEGER NOT NULL,
  PRIMARY KEY (kind, scope, category)) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Commit:
    """One version as listed: when, why, by whom, and how much it changed."""

    version: int
    at: datetime
    cause: str
    actor: str
    scope: str | None
    session: int | None
    sandbox: str | None
    changes: int
    hash: str


class StateDb:
    """The read model of one account; safe for threads, followed by any number of processes."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        self._lock = threading.RLock()
        self._path = path
        self._read_only = read_only
        self._cleanup: Callable[[], None] | None = None
        self._db = self._connect()

    @classmethod
    def private(cls, path: Path | None) -> StateDb:
        """A copy of a state file (or a new one) in a temporary folder that goes when the state is closed."""
        folder = tempfile.TemporaryDirectory(prefix="octavo-")
        target = Path(folder.name) / "state.db"
        try:
            if path is not None and path.exists():
                with (
                    closing(_reading(path)) as source,
                    closing(apsw.Connection(str(target))) as copy,
                    copy.backup("main", source, "main") as task,
                ):
                    task.step()
            state = cls(target)
        except BaseException as error:
            folder.cleanup()
            if isinstance(error, apsw.Error):
                raise _failure(path or target, error) from error
            raise
        state._cleanup = folder.cleanup
        return state

    def _connect(self) -> apsw.Connection:
        try:
            if self._read_only:
                db = _reading(self._path)
                if db.pragma("user_version") != SCHEMA:
                    raise IndexDamaged(f"{self._path} is not laid out as this Octavo does it")
                return db
            self._path.parent.mkdir(parents=True, exist_ok=True)
            db = apsw.Connection(str(self._path))
            db.set_busy_timeout(_BUSY_MILLISECONDS)
            if db.pragma("user_version") != SCHEMA:
                _log_ahead(db)
                _create(db)
            db.pragma("synchronous", "normal")
            db.pragma("cache_size", -_CACHE_KIBIBYTES)
            db.pragma("secure_delete", "on")
        except (apsw.Error, OSError) as error:
            raise _failure(self._path, error) from error
        return db

    @property
    def folder(self) -> Path:
        """Where the file lies; other derived files lie beside it."""
        return self._path.parent

    def close(self) -> None:
        """Close the file."""
        with self._lock:
            self._db.close()
            if self._cleanup:
                self._cleanup()

    def follow(self, ledger: Ledger) -> int:
        """Catch up when an account is opened: another history is rebuilt, a shorter one is an error."""
        version, hash_ = self.watermark()
        if version == 0:
            ledger.must_be_whole()
        else:
            self.must_not_be_ahead_of(ledger)
            if ledger.hash_of(version) != hash_:
                return self.rebuild(ledger)
        return self.catch_up(ledger)

    def must_not_be_ahead_of(self, ledger: Ledger) -> None:
        """Raise if the ledger ends before the version this state was derived from."""
        version, _ = self.watermark()
        if not ledger.exists(version):
            raise LedgerTruncated(
                f"the ledger ends before version {version}, which the state was derived from"
            )

    def is_current(self, ledger: Ledger) -> bool:
        """Whether the state is at the head of this very ledger."""
        version, hash_ = self.watermark()
        if version == 0:  # probes alone would take a ledger without its first version for an empty one
            return ledger.must_be_whole() == 0
        return ledger.head(version) == version and ledger.hash_of(version) == hash_

    def lines_in(self, version: int) -> list[tuple[bytes, bytes | None]]:
        """Envelope and body of each memory of a version, as they stand in the file."""
        sql = "SELECT envelope, body FROM revision WHERE since = ? ORDER BY row"
        return [(envelope, body) for envelope, body in self.rows(sql, (version,))]

    def watermark(self) -> tuple[int, str]:
        """The version this state has reached, and the hash of that version's header."""
        rows = dict(self.rows("SELECT key, value FROM meta WHERE key IN ('version', 'hash')"))
        return int(rows["version"]), str(rows["hash"])

    def catch_up(self, ledger: Ledger) -> int:
        """Follow the ledger to its head and return that version.

        A handle opened to read leaves this to the writers and reads what they have derived.
        """
        version, hash_ = self.watermark()
        if self._read_only or not ledger.exists(version + 1):
            return version
        head = ledger.head(version)
        with self._writing():
            version, hash_ = self.watermark()
            for found in ledger.chain(version + 1, head, hash_):
                self._apply(found)
        return max(version, head)

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
            self._remake()
        with self._writing():
            for name in ("revision", "gram", "link", "version", "other", "tally", "meta"):
                self._db.execute(f"DELETE FROM {name}")  # our own table names
            _begin_at_zero(self._db)
            for found in ledger.chain(1, head, GENESIS):
                self._apply(found)
                if progress:
                    progress(found.header.version, head)
        return head

    def at(self, version: int) -> DbView:
        """The state as of a version."""
        return DbView(self, version)

    def version_at(self, moment: datetime) -> int:
        """The newest version committed at or before a moment."""
        found = self._one(
            "SELECT version FROM version WHERE at <= ? ORDER BY at DESC, version DESC LIMIT 1",
            (codec.micros(moment),),
        )
        return int(found or 0)

    def commits(self, *, after: int = 0, limit: int = -1) -> list[Commit]:
        """Versions in order."""
        rows = self.rows(
            "SELECT version, at, cause, actor, scope, session, sandbox, changes, hash FROM version "
            "WHERE version > ? ORDER BY version LIMIT ?",
            (after, limit),
        )
        return [_commit(row) for row in rows]

    def commit(self, version: int) -> Commit:
        """One version, or NotFound."""
        rows = self.rows(
            "SELECT version, at, cause, actor, scope, session, sandbox, changes, hash FROM version "
            "WHERE version = ?",
            (version,),
        )
        for row in rows:
            return _commit(row)
        raise NotFound(f"there is no version {version}", hint="`octavo versions` lists them")

    def sessions(self, scope: str, first: int, last: int) -> list[Commit]:
        """The versions that closed the sessions first..last of a scope, in order."""
        rows = self.rows(
            "SELECT version, at, cause, actor, scope, session, sandbox, changes, hash FROM version "
            "WHERE scope = ? AND session BETWEEN ? AND ? ORDER BY session",
            (scope, first, last),
        )
        return [_commit(row) for row in rows]

    def scopes(self) -> set[str]:
        """The scopes that hold memories or ever did."""
        return {str(row[0]) for row in self.rows("SELECT DISTINCT scope FROM tally")}

    def session_scopes(self) -> list[str]:
        """The scopes that have closed a session."""
        rows = self.rows("SELECT DISTINCT scope FROM version WHERE session IS NOT NULL ORDER BY scope")
        return [str(row[0]) for row in rows]

    def commits_of(self, sandbox: str) -> list[tuple[int, int, int | None]]:
        """The versions a sandbox went into: version, last buffer line, session ordinal."""
        return [
            (int(version), int(last or 0), session)
            for version, last, session in self.rows(
                "SELECT version, last_line, session FROM version WHERE sandbox = ? ORDER BY version",
                (sandbox,),
            )
        ]

    def changes_in(self, version: int) -> list[Change]:
        """Every change of a version: memories first, then the rest."""
        memories = self.rows(
            "SELECT 'memory', envelope, body FROM revision WHERE since = ? ORDER BY row", (version,)
        )
        rest = self.rows("SELECT tag, envelope, body FROM other WHERE version = ? ORDER BY line", (version,))
        return [codec.decode_change(*row) for row in (*memories, *rest)]

    def revisions_since(self, after: int, upto: int) -> Iterator[tuple[int, Memory]]:
        """Revisions that became valid in (after, upto], in order, with their version."""
        rows = self.rows(
            "SELECT since, envelope, body FROM revision WHERE since > ? AND since <= ? ORDER BY since, row",
            (after, upto),
        )
        for since, envelope, body in rows:
            yield int(since), codec.decode_memory(envelope, body)

    def spoken_since(self, after: int, upto: int) -> Iterator[tuple[int, Spoken]]:
        """The same as indexing reads them, some at a time: rows are in the order of their versions."""
        first = "SELECT row FROM revision WHERE since > ? AND since <= ? ORDER BY since, row LIMIT 1"
        some = (
            f"SELECT row, since, {COLUMNS} FROM revision WHERE row >= ? AND +since <= ? ORDER BY row LIMIT ?"
        )
        place = self._one(first, (after, upto))
        while place is not None:
            rows = self.rows(some, (place, upto, _AT_ONCE))
            for _, since, *row in rows:
                try:
                    yield int(since), spoken_of(row)
                except (msgspec.MsgspecError, UnicodeDecodeError) as error:
                    raise IndexDamaged(f"{self._path}: a body is no JSON: {error}") from error
            place = rows[-1][0] + 1 if len(rows) == _AT_ONCE else None

    def version_after(self, version: int, revisions: int, limit: int) -> int:
        """The last version within about so many revisions after one, at least the next."""
        rows = self.rows(
            "SELECT since FROM revision WHERE since > ? AND since <= ? ORDER BY since LIMIT 1 OFFSET ?",
            (version, limit, revisions),
        )
        return max(version + 1, int(rows[0][0])) if rows else limit

    def has_more_than(self, revisions: int, after: int, upto: int) -> bool:
        """Whether more than so many revisions became valid in (after, upto]."""
        found = self.rows(
            "SELECT 1 FROM revision WHERE since > ? AND since <= ? LIMIT 1 OFFSET ?", (after, upto, revisions)
        )
        return bool(list(found))

    def ended(self, after: int, upto: int) -> list[tuple[str, int, int]]:
        """Revisions that ceased to be valid in (after, upto]: id, revision and the version that ended it."""
        rows = self.rows("SELECT id, rev, until FROM revision WHERE until > ? AND until <= ?", (after, upto))
        return [(str(id_), int(rev), int(until)) for id_, rev, until in rows]

    def revision(self, id_: str, rev: int) -> Memory:
        """One revision of a memory, or NotFound."""
        rows = self.rows("SELECT envelope, body FROM revision WHERE id = ? AND rev = ?", (id_, rev))
        if not rows:
            raise NotFound(f"there is no revision {rev} of {id_}")
        return codec.decode_memory(*rows[0])

    def turns_of(self, session: str, upto: int) -> int:
        """How many turns of a session came in by a version."""
        rows = self.rows(
            "SELECT envelope, body FROM revision "
            "WHERE session = ? AND since <= ? AND kind = 'episode' AND rev = 1",
            (session, upto),
        )
        return sum(len(codec.decode_memory(*row).turns) for row in rows)

    def history(self, id_: str) -> list[tuple[int, Memory]]:
        """Every revision of a memory with the version it came in."""
        rows = self.rows("SELECT since, envelope, body FROM revision WHERE id = ? ORDER BY rev", (id_,))
        return [(int(since), codec.decode_memory(e, b)) for since, e, b in rows]

    def ids_changed(self, low: int, high: int) -> list[str]:
        """Memories with a revision that began in (low, high]."""
        rows = self.rows("SELECT DISTINCT id FROM revision WHERE since > ? AND since <= ?", (low, high))
        return [str(row[0]) for row in rows]

    def others(self, tag: str, *, upto: int = OPEN, newest: int = -1) -> list[tuple[int, Change]]:
        """Changes of one tag that are no memories, newest first, with their version."""
        rows = self.rows(
            "SELECT version, tag, envelope, body FROM other WHERE tag = ? AND version <= ? "
            "ORDER BY version DESC, line DESC LIMIT ?",
            (tag, upto, newest),
        )
        return [(int(version), codec.decode_change(*row)) for version, *row in rows]

    def check(self) -> list[str]:
        """What SQLite's own check finds wrong with the file."""
        return [str(row[0]) for row in self.rows("PRAGMA quick_check") if row[0] != "ok"]

    def is_damaged(self) -> bool:
        """Whether the file must be made anew before anything can be written to it."""
        try:
            return bool(self.check())
        except IndexDamaged:
            return True

    def _remake(self) -> None:
        """Begin a new file in the damaged one's place."""
        with self._lock:
            self._db.close()
            remove(self._path)
            self._db = self._connect()

    def rows(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """All rows of a query."""
        with self._lock:
            try:
                return cast(list[tuple[Any, ...]], self._db.execute(sql, values).fetchall())
            except apsw.Error as error:
                raise _failure(self._path, error) from error

    def rows_of_each(self, sql: str, values: Sequence[Sequence[Any]]) -> list[tuple[Any, ...]]:
        """All rows of a query run once for each set of values."""
        with self._lock:
            try:
                return cast(list[tuple[Any, ...]], self._db.executemany(sql, values).fetchall())
            except apsw.Error as error:
                raise _failure(self._path, error) from error

    def _one(self, sql: str, values: Sequence[Any] = ()) -> Any:
        rows = self.rows(sql, values)
        return rows[0][0] if rows else None

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
                raise _failure(self._path, error) from error

    def _apply(self, version: Version) -> None:
        """Add one version inside an open transaction."""
        number = version.header.version
        revisions: list[tuple[Any, ...]] = []
        first = row = int(self._one("SELECT max(row) FROM revision") or 0)
        memories: list[Memory] = []
        redacted: list[str] = []
        for position, line in enumerate(version.lines):
            body = line.body_bytes()
            change = version.change(position)
            if isinstance(change, Memory):
                row += 1
                revisions.append(_revision_row(row, change, number, bytes(line.envelope), body))
                memories.append(change)
            else:
                if isinstance(change, Redaction) and not change.swept:
                    redacted.append(change.memory)
                self._db.execute(
                    "INSERT INTO other VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (number, position, line.t, *_reference(change), bytes(line.envelope), body),
                )
        self._db.executemany(f"INSERT INTO revision VALUES ({','.join('?' * 16)})", revisions)
        self._tally(memories)  # after the insert: a version may hold two revisions of one memory
        self._end_older(number, memories)
        self._index(first, memories)
        for id_ in redacted:  # last, because the counters go by the category that is erased
            self._erase(id_)
        self._record(version.header, version.hash)

    def _erase(self, id_: str) -> None:
        """Mask a redacted memory: its bodies, what they were looked up by, and what was said about it."""
        own = "SELECT row FROM revision WHERE id = ?"
        self._db.execute(f"DELETE FROM gram WHERE row IN ({own})", (id_,))
        self._db.execute(
            "UPDATE revision SET body = NULL, topic = NULL, category = NULL, tags = NULL WHERE id = ?", (id_,)
        )
        self._db.execute("UPDATE other SET body = NULL WHERE tag IN ('merge', 'clash') AND ref = ?", (id_,))

    def erase_other(self, version: int, line: int) -> None:
        """Mask one change that is no memory; redaction's sweep finds them by their text."""
        with self._writing():
            self._db.execute("UPDATE other SET body = NULL WHERE version = ? AND line = ?", (version, line))

    def spoken(self, tags: Sequence[str]) -> list[tuple[int, int, Change]]:
        """Changes of these tags that still have a body: version, line and change."""
        marks = ",".join("?" * len(tags))
        rows = self.rows(
            "SELECT version, line, tag, envelope, body FROM other "
            f"WHERE tag IN ({marks}) AND body IS NOT NULL",
            tags,
        )
        return [(int(version), int(line), codec.decode_change(*row)) for version, line, *row in rows]

    def versions_of(self, id_: str) -> list[int]:
        """The versions that hold a revision of a memory."""
        return [int(row[0]) for row in self.rows("SELECT since FROM revision WHERE id = ?", (id_,))]

    def made_from(self, target: str, kinds: Sequence[str]) -> list[str]:
        """The ids of memories of these kinds that ever linked to a memory."""
        marks = ",".join("?" * len(kinds))
        rows = self.rows(
            "SELECT DISTINCT r.id FROM link l JOIN revision r USING (row) "
            f"WHERE l.target = ? AND r.kind IN ({marks})",
            (target, *kinds),
        )
        return [str(row[0]) for row in rows]

    def mentions_of(self, id_: str) -> list[int]:
        """The versions with a merge into a memory or a clash about it."""
        rows = self.rows("SELECT version FROM other WHERE tag IN ('merge', 'clash') AND ref = ?", (id_,))
        return [int(row[0]) for row in rows]

    def scrub(self) -> None:
        """Rewrite the file without what was erased, its write-ahead log included."""
        with self._lock:
            try:
                self._db.execute("VACUUM")
                self._db.wal_checkpoint(mode=apsw.SQLITE_CHECKPOINT_TRUNCATE)
            except apsw.Error as error:
                raise _failure(self._path, error) from error

    def _end_older(self, version: int, memories: Iterable[Memory]) -> None:
        """Close the revision before each later one."""
        self._db.executemany(
            f"UPDATE revision SET until = ? WHERE id = ? AND until = {OPEN} AND rev = ?",
            [(version, m.id, m.rev - 1) for m in memories if m.rev > 1],
        )

    def _tally(self, memories: Iterable[Memory]) -> None:
        """Keep the counters in the same transaction; nothing is ever counted by scanning."""
        delta: dict[tuple[str, str, str], int] = {}
        for memory in memories:
            before = self._before(memory) if memory.rev > 1 else None
            if before is not None:
                delta[before] = delta.get(before, 0) - 1
            if not memory.gone:
                after = (memory.kind, memory.scope, memory.category or "")
                delta[after] = delta.get(after, 0) + 1
        self._db.executemany(
            "INSERT INTO tally VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET live = live + excluded.live",
            [(*key, n) for key, n in delta.items() if n],
        )

    def _before(self, memory: Memory) -> tuple[str, str, str] | None:
        found = self._db.execute(
            "SELECT kind, scope, coalesce(category, ''), gone FROM revision "
            f"WHERE id = ? AND until = {OPEN} AND rev = ?",
            (memory.id, memory.rev - 1),
        ).fetchone()
        return None if found is None or found[3] else (found[0], found[1], found[2])

    def _index(self, first: int, memories: Sequence[Memory]) -> None:
        links = [
            (link.to, link.name, row)
            for row, memory in enumerate(memories, start=first + 1)
            for link in memory.links
        ]
        if links:
            self._db.executemany("INSERT OR IGNORE INTO link VALUES (?, ?, ?)", links)
        grams = [
            (*posting, row)
            for row, memory in enumerate(memories, start=first + 1)
            if memory.kind in COMPARED and memory.text and not memory.gone
            for posting in postings.left_by(memory.kind, memory.scope, memory.text)
        ]
        if grams:
            self._db.executemany("INSERT OR IGNORE INTO gram VALUES (?, ?, ?)", grams)

    def _record(self, header: Header, hash_: str) -> None:
        self._db.execute(
            "INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                header.version,
                codec.micros(header.at),
                header.cause,
                header.actor,
                header.scope,
                header.session,
                header.sandbox,
                header.last_line,
                hash_,
                header.count,
            ),
        )
        self._db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (header.version,))
        self._db.execute("UPDATE meta SET value = ? WHERE key = 'hash'", (hash_,))


def remove(path: Path) -> None:
    """Delete a state file and what SQLite keeps beside it; it is derived, so nothing is lost."""
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        path.with_name(name).unlink(missing_ok=True)


def _log_ahead(db: apsw.Connection) -> None:
    """Switch to the write-ahead log; SQLite does not wait here for others who do so, so we do."""
    for _ in range(_BUSY_MILLISECONDS // 10):
        try:
            db.pragma("journal_mode", "wal")
        except apsw.BusyError:
            time.sleep(0.01)
        else:
            return
    db.pragma("journal_mode", "wal")


def _create(db: apsw.Connection) -> None:
    """Lay the tables, or replace those of another schema; the state is derived, so nothing is lost."""
    db.execute("BEGIN IMMEDIATE")
    if db.pragma("user_version") != SCHEMA:  # another process may have been faster
        for (name,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            db.execute(f'DROP TABLE "{name}"')
        for statement in _TABLES.split(";\n"):
            db.execute(statement)
        _begin_at_zero(db)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
    db.execute("COMMIT")


def _begin_at_zero(db: apsw.Connection) -> None:
    db.execute("INSERT INTO meta VALUES ('version', 0), ('hash', ?)", (GENESIS,))


def _revision_row(row: int, m: Memory, version: int, envelope: bytes, body: bytes | None) -> tuple[Any, ...]:
    tags = codec.encode_json(m.tags).decode() if m.tags else None
    return (
        row, m.id, m.rev, m.kind, m.scope, m.layer, m.topic, m.category, tags, m.session, codec.micros(m.at),
        version, OPEN, int(m.gone), envelope, body,
    )  # fmt: skip


def _reference(change: Change) -> tuple[str, str | None]:
    """What a change that is no memory is looked up by, and its scope."""
    match change:
        case Decision():
            return change.proposal, None
        case Rejection():
            return change.key, change.scope
        case Redaction():
            return change.key, None
        case Use() | Clash():
            return change.memory, None
        case Merge():
            return change.into, None
        case Refusal():
            return change.id, change.scope
        case Proposal() | Memory():
            return change.id, None


def _commit(row: tuple[Any, ...]) -> Commit:
    version, at, cause, actor, scope, session, sandbox, changes, hash_ = row
    return Commit(
        version=version,
        at=codec.moment_of(at),
        cause=cause,
        actor=actor,
        scope=scope,
        session=session,
        sandbox=sandbox,
        changes=changes,
        hash=hash_,
    )


def _reading(path: Path) -> apsw.Connection:
    """Open a state file without writing beside it, even in a folder that cannot be written."""
    try:
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        db.pragma("user_version")
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        db = apsw.Connection(f"{path.absolute().as_uri()}?immutable=1", flags=flags)
    db.set_busy_timeout(_BUSY_MILLISECONDS)
    return db


def _failure(path: Path, error: apsw.Error | OSError) -> OctavoError:
    if isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return IndexDamaged(f"{path} is damaged: {error}")
    if isinstance(error, apsw.FullError):
        return StoreFull(f"{path}: {error}")
    hint = "check the folder's permissions, or open the account with read_only=True"
    return Unavailable(f"{path} cannot be used: {error}", hint=hint)
