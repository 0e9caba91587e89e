"""The file of the state: its tables and their rows, how it is opened, and what its errors mean."""

from __future__ import annotations

import errno
import os
import re
import time
from collections import Counter
from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cache
from pathlib import Path
from typing import Any

import apsw
from apsw import sqlite_extra

from octavo.domain.likeness import filed_under
from octavo.domain.memory import COMPARED, Memory, Redaction
from octavo.domain.names import called_in
from octavo.domain.orders import orders_of, said_by_user
from octavo.domain.themselves import TOPICS, topics_of
from octavo.errors import IndexDamaged, OctavoError, StoreFull, Unavailable
from octavo.storage import codec, state_filed
from octavo.storage.ledger import GENESIS, Version
from octavo.storage.state_log import OPEN
from octavo.storage.state_view import ORDERS

SCHEMA = 14
_CHECKED = "cksmvfs"  # SQLite's own layer that proves every page by a checksum when it is read
_CHECKSUM_BYTES = 8  # at the end of a page, which that layer goes by
_KIBIBYTES_IN_MEMORY = 1 << 19
_BUSY_MILLISECONDS = 60_000
_CACHE_KIBIBYTES = 32_000  # numbers of texts lie all over; with less, one commit reads a page many times

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
CREATE TABLE filed (part INTEGER PRIMARY KEY, places BLOB NOT NULL);
CREATE TABLE link (target TEXT NOT NULL, until INTEGER NOT NULL, name TEXT NOT NULL, row INTEGER NOT NULL,
  PRIMARY KEY (target, until, name, row)) WITHOUT ROWID;
CREATE TABLE tagged (tag TEXT NOT NULL, at INTEGER NOT NULL, id TEXT NOT NULL, row INTEGER NOT NULL,
  PRIMARY KEY (tag, at, id, row)) WITHOUT ROWID;
CREATE TABLE told (topic TEXT NOT NULL, row INTEGER NOT NULL, PRIMARY KEY (topic, row)) WITHOUT ROWID;
CREATE TABLE called (name TEXT NOT NULL, speaker TEXT NOT NULL, row INTEGER NOT NULL,
  PRIMARY KEY (name, speaker, row)) WITHOUT ROWID;
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
# The field that a change which is no memory is looked up by; its id where none is named.
_REFERENCES = {
    "decision": "proposal", "rejection": "key", "redaction": "key",
    "use": "memory", "clash": "memory", "merge": "into",
}  # fmt: skip
# Of each name a few uses are enough to know whose it is; so the table stays small in any account.
_CALL = (
    "INSERT OR IGNORE INTO called SELECT ?, ?, ? "
    "WHERE (SELECT count(*) FROM called WHERE name = ? AND speaker = ?) < 20"
)
TABLES = re.findall(r"CREATE TABLE (\w+)", _TABLES)


def connected(
    name: str, flags: int = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE
) -> apsw.Connection:
    """A connection that proves every page it reads: a changed byte is an error and never an answer."""
    return apsw.Connection(name, flags=flags, vfs=_layer())


@cache
def _layer() -> str | None:
    """The name of the layer that checks pages, loaded once; None where apsw was built without its extras."""
    if sqlite_extra.has("cksumvfs") is None:
        return None
    default = apsw.vfs_names()[0]
    with closing(apsw.Connection(":memory:")) as db:
        sqlite_extra.load(db, "cksumvfs")
    apsw.set_default_vfs(default)  # others in this process go on as they did
    return _CHECKED


def opened(path: Path, *, read_only: bool) -> apsw.Connection:
    """A connection to a state file; one to be written is laid out if it is not."""
    try:
        if read_only:
            db = reading(path)
            if not _is_laid(db):
                raise IndexDamaged(f"{path} is not laid out as this Octavo does it")
            return db
        # SQLite gives what it writes beside the file the file's own mode. A file that is there is not opened:
        # closing it would drop the locks that other connections of this process hold on it.
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with suppress(FileExistsError):
                os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        db = connected(str(path))
        db.set_busy_timeout(_BUSY_MILLISECONDS)
        if not _is_laid(db):
            if db.pragma("schema_version") and not _is_laid(db):  # others may lay it at this moment
                db.close()
                remove(path)  # of another Octavo; it is derived, so nothing is lost
                return opened(path, read_only=False)
            db.reserve_bytes("main", _CHECKSUM_BYTES)
            _log_ahead(db)
            _create(db)
        elif db.pragma("journal_mode") != "wal":  # it was a checkpoint
            _log_ahead(db)
        db.pragma("synchronous", "normal")
        db.pragma("cache_size", -_CACHE_KIBIBYTES)
        db.pragma("secure_delete", "on")
    except (apsw.Error, OSError) as error:
        raise failure(path, error) from error
    return db


def reading(path: Path) -> apsw.Connection:
    """Open a state file without writing beside it, even in a folder that cannot be written."""
    try:
        db = connected(str(path), apsw.SQLITE_OPEN_READONLY)
        db.pragma("user_version")
    except (apsw.CantOpenError, apsw.ReadOnlyError):
        flags = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        db = connected(f"{path.absolute().as_uri()}?immutable=1", flags)
    db.set_busy_timeout(_BUSY_MILLISECONDS)
    return db


def failure(path: Path, error: apsw.Error | OSError) -> OctavoError:
    """What an error of SQLite or of the disk means to a user."""
    is_changed = getattr(error, "extendedresult", 0) == apsw.SQLITE_IOERR_DATA
    if is_changed or isinstance(error, apsw.CorruptError | apsw.NotADBError):
        return IndexDamaged(f"{path} is damaged: {error}")
    if isinstance(error, apsw.FullError) or getattr(error, "errno", None) == errno.ENOSPC:
        return StoreFull(f"{path}: {error}")
    if isinstance(error, apsw.ConnectionClosedError):
        return Unavailable("this account's handle was closed", hint="open the account again")
    if isinstance(error, apsw.BusyError):
        hint = "another process works on this account; try again in a moment"
        return Unavailable(f"{path} is in use: {error}", hint=hint)
    if path.is_dir():
        return Unavailable(f"{path} is a folder", hint="move the folder elsewhere; the file is made anew")
    hint = "check the folder's permissions, or open the account with read_only=True"
    return Unavailable(f"{path} cannot be used: {error}", hint=hint)


def private(path: Path, source: apsw.Connection | None) -> apsw.Connection:
    """A state without a file of its own, that goes with its connection: a copy of another, or a new one.

    It needs a disk only if it is too large for memory.
    """
    db = apsw.Connection("")
    try:
        db.pragma("cache_size", -_KIBIBYTES_IN_MEMORY)
        db.pragma("journal_mode", "memory")
        if source is None:
            db.reserve_bytes("main", _CHECKSUM_BYTES)
            _create(db)
        else:
            with db.backup("main", source, "main") as task:
                task.step()
    except apsw.Error as error:
        raise failure(path, error) from error
    return db


def number_of(path: Path) -> int:
    """The number by which the disk knows a file, another one once the file is made anew; 0 if it is gone."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


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


def _is_laid(db: apsw.Connection) -> bool:
    """Whether the tables are ours, and the pages such that a change in one is noticed."""
    return db.pragma("user_version") == SCHEMA and db.reserve_bytes("main") == _CHECKSUM_BYTES


def _create(db: apsw.Connection) -> None:
    """Lay the tables."""
    db.execute("BEGIN IMMEDIATE")
    if not _is_laid(db):  # another process may have been faster
        for statement in _TABLES.split(";\n"):
            db.execute(statement)
        begin_at_zero(db)
        db.execute(f"PRAGMA user_version = {SCHEMA}")
    db.execute("COMMIT")


def begin_at_zero(db: apsw.Connection) -> None:
    """Note in empty tables that nothing is followed yet."""
    db.execute("INSERT INTO meta VALUES ('version', 0), ('hash', ?), ('filed', '[]')", (GENESIS,))


def _revision_row(row: int, m: Memory, version: int, envelope: bytes, body: bytes | None) -> tuple[Any, ...]:
    """A memory as a row of its table."""
    tags = codec.encode_json(m.tags).decode() if m.tags else None
    return (
        row, m.id, m.rev, m.kind, m.scope, m.layer, m.topic, m.category, tags, m.sandbox, codec.micros(m.at),
        version, OPEN, int(m.gone), envelope, body,
    )  # fmt: skip


def _looked_up_by(first: int, memories: Sequence[Memory]) -> list[tuple[str, list[tuple[Any, ...]]]]:
    """What memories are found by besides their own columns, as statements and their rows."""
    rows = list(enumerate(memories, start=first + 1))
    spoken = [(row, m, said) for row, m in rows if (said := list(said_by_user(m)))]
    return [
        (
            "INSERT OR IGNORE INTO link VALUES (?, ?, ?, ?)",
            [(k.to, OPEN, k.name, row) for row, m in rows for k in m.links],
        ),
        (
            "INSERT OR IGNORE INTO tagged VALUES (?, ?, ?, ?)",
            [(tag, codec.micros(m.at), m.id, row) for row, m in rows for tag in m.tags],
        ),
        (
            "INSERT INTO told VALUES (?, ?)",
            [(topic, row) for row, m, said in spoken for topic in topics_of(m, said)],
        ),
        (
            "INSERT INTO told VALUES (?, ?)",
            [(ORDERS, row) for row, m, said in spoken if orders_of(m, said=said)],
        ),
        (_CALL, [(n, who, row, n, who) for row, m in rows if m.turns for n, who in called_in(m)]),
    ]


def _places_of(row: int, memory: Memory) -> set[int]:
    """The numbers that a text is filed under, each with its row."""
    if memory.kind not in COMPARED or not memory.text or memory.gone:
        return set()
    return {state_filed.place_of(n, row) for n in filed_under(memory.kind, memory.scope, memory.text)}


def write_version(db: apsw.Connection, version: Version) -> bool:
    """Add one version inside an open transaction; says whether a redaction was finished by it."""
    number = version.header.version
    revisions: list[tuple[Any, ...]] = []
    first = row = int(db.execute("SELECT max(row) FROM revision").get or 0)
    memories: list[Memory] = []
    redacted: list[str] = []
    is_swept = False
    for position, line in enumerate(version.lines):
        body = line.body_bytes()
        change = version.change(position)
        if isinstance(change, Memory):
            row += 1
            revisions.append(_revision_row(row, change, number, bytes(line.envelope), body))
            memories.append(change)
        else:
            if isinstance(change, Redaction):
                is_swept |= change.swept
                if not change.swept:
                    redacted.append(change.memory)
            about, scope = getattr(change, _REFERENCES.get(line.t, "id")), getattr(change, "scope", None)
            db.execute(
                "INSERT INTO other VALUES (?, ?, ?, ?, ?, ?, ?)",
                (number, position, line.t, about, scope, bytes(line.envelope), body),
            )
    db.executemany(f"INSERT INTO revision VALUES ({','.join('?' * 16)})", revisions)
    for sql, values in _looked_up_by(first, memories):
        if values:
            db.executemany(sql, values)
    if places := [place for n, m in enumerate(memories, start=first + 1) for place in _places_of(n, m)]:
        state_filed.add(db, places)
    _end_older(db, number, memories)  # after the inserts: a version may hold two revisions of one memory
    for id_ in redacted:  # last, because the counters go by the category that is erased
        _erase(db, id_, number)
    h = version.header
    row_of = (h.version, codec.micros(h.at), h.cause, h.actor, h.scope, h.session, h.sandbox, h.last_line)
    db.execute("INSERT INTO version VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", (*row_of, version.hash, h.count))
    db.execute("UPDATE meta SET value = ? WHERE key = 'version'", (number,))
    db.execute("UPDATE meta SET value = ? WHERE key = 'hash'", (version.hash,))
    return is_swept


def _erase(db: apsw.Connection, id_: str, version: int) -> None:
    """Mask a redacted memory: its bodies, what they were looked up by, and what was said about it.

    What the redaction's own version says in its place stays.
    """
    own = "id = ? AND (since < ? OR gone = 1)"
    sql = f"SELECT row, envelope, body FROM revision WHERE {own}"
    erased: list[Any] = db.execute(sql, (id_, version)).fetchall()
    for row, envelope, body in erased:
        memory = codec.decode_memory(envelope, body)
        state_filed.remove(db, _places_of(row, memory))
        db.executemany(
            "DELETE FROM tagged WHERE tag = ? AND at = ? AND id = ? AND row = ?",
            [(tag, codec.micros(memory.at), id_, row) for tag in memory.tags],
        )
        topics = [(topic, row) for topic in (*TOPICS, ORDERS)]
        db.executemany("DELETE FROM told WHERE topic = ? AND row = ?", topics)
    db.execute(f"DELETE FROM called WHERE row IN (SELECT row FROM revision WHERE {own})", (id_, version))
    db.execute(
        f"UPDATE revision SET body = NULL, topic = NULL, category = NULL, tags = NULL WHERE {own}",
        (id_, version),
    )
    db.execute("UPDATE other SET body = NULL WHERE tag IN ('merge', 'clash') AND ref = ?", (id_,))


def _end_older(db: apsw.Connection, version: int, memories: Sequence[Memory]) -> None:
    """Close the revision before each later one, and its links, which nobody who asks now reads again.

    What is live is counted here, in the same transaction; nothing is ever counted by scanning.
    """
    ended = db.executemany(
        f"UPDATE revision SET until = ? WHERE id = ? AND until = {OPEN} AND rev = ? "
        "RETURNING row, envelope, gone, kind, scope, coalesce(category, '')",
        [(version, m.id, m.rev - 1) for m in memories if m.rev > 1],
    )
    live = Counter((m.kind, m.scope, m.category or "") for m in memories if not m.gone)
    links: list[tuple[int, str, str, int]] = []
    for row, envelope, is_gone, kind, scope, category in ended:
        live[kind, scope, category] -= not is_gone
        links += [(version, link.to, link.name, row) for link in codec.decode_memory(envelope, None).links]
    db.executemany(
        f"UPDATE link SET until = ? WHERE target = ? AND until = {OPEN} AND name = ? AND row = ?", links
    )
    db.executemany(
        "INSERT INTO tally VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET live = live + excluded.live",
        [(*where, n) for where, n in live.items() if n],
    )
