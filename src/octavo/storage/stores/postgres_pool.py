"""Connections to one PostgreSQL: a pool that its stores share, errors without passwords, and the schema."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from octavo.errors import NewerFormat, StoreFull, Unavailable
from octavo.storage.stores.retrying import Patience
from octavo.storage.stores.urls import secrets_in, shown

T = TypeVar("T")
Connection = Any  # of psycopg, which loads when the first place is opened

_PARTITIONS = 16
_WAIT_SECONDS = 5.0
_FULL = {"53100", "53200"}
# A cable that is pulled says nothing: a server that is silent for so long is out of reach (milliseconds, s).
_SILENCE = {
    "tcp_user_timeout": 15_000,
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
}

# One step a schema version; a step is never changed once it was released.
_STEPS = (
    (
        "CREATE TABLE octavo.entry (account text COLLATE \"C\" NOT NULL, key text COLLATE \"C\" NOT NULL, "
        "data bytea NOT NULL, PRIMARY KEY (account, key)) PARTITION BY HASH (account)",
        "CREATE TABLE octavo.line (account text COLLATE \"C\" NOT NULL, key text COLLATE \"C\" NOT NULL, "
        "n integer NOT NULL, owner text NOT NULL, data bytea NOT NULL, PRIMARY KEY (account, key, n)) "
        "PARTITION BY HASH (account)",
        "CREATE TABLE octavo.hold (account text COLLATE \"C\" NOT NULL, key text COLLATE \"C\" NOT NULL, "
        "fence bigint NOT NULL, owner text NOT NULL, until timestamptz NOT NULL, PRIMARY KEY (account, key)) "
        "PARTITION BY HASH (account)",
        *(
            f"CREATE TABLE octavo.{table}_{n} PARTITION OF octavo.{table} "
            f"FOR VALUES WITH (MODULUS {_PARTITIONS}, REMAINDER {n})"
            for table in ("entry", "line", "hold")
            for n in range(_PARTITIONS)
        ),
        "CREATE INDEX entry_account ON octavo.entry (account) WHERE key = 'account.json'",
    ),
)  # fmt: skip


class Pool:
    """Connections that stores act on: none keeps a state between two transactions, so any pooler will do."""

    def __init__(self, url: str, connections: int, patience: Patience) -> None:
        self.name = shown(url)
        self._secrets = secrets_in(url)
        self._patience = patience
        self._mine = threading.local()
        self._ready = threading.Lock()
        self._is_ready = False
        try:
            from psycopg_pool import ConnectionPool
        except ImportError as error:
            hint = "install octavo[postgres]"
            raise Unavailable(f"{self.name} needs psycopg and its pool", hint=hint) from error
        options = {"connect_timeout": 10, **_SILENCE, "autocommit": True, "prepare_threshold": None}
        for named in parse_qs(urlsplit(url).query):  # who says how long in the URL decides
            options.pop(named, None)
        self._pool: Any = ConnectionPool(
            url, min_size=0, max_size=connections, kwargs=options, open=False, timeout=_WAIT_SECONDS
        )
        weakref.finalize(self, self._pool.close)

    def close(self) -> None:
        """Close the connections."""
        self._pool.close()

    def rows(self, what: str, sql: str, values: Any) -> list[tuple[Any, ...]]:
        """All rows of one statement."""
        return self._run(what, lambda db: db.execute(sql, values).fetchall())

    def written(self, what: str, sql: str, values: Any) -> int:
        """How many rows a statement wrote, durably."""
        return self._run(what, lambda db: int(db.execute(sql, values).rowcount), is_last=True)

    def transact(self, what: str, act: Callable[[Connection], T]) -> T:
        """Act in a transaction, durable on return."""

        def whole(db: Connection) -> T:
            with db.transaction():
                return act(db)

        return self._run(what, whole, is_last=True)

    @contextmanager
    def locked(self, key: int, wait_seconds: float) -> Iterator[bool]:
        """Hold an advisory lock in a transaction of this thread; it ends with the first entry written.

        Until the block ends the thread has this connection and no other, so that a pool cannot be used up by
        writers who wait for a second one.
        """
        from psycopg import Error, errors

        if getattr(self._mine, "db", None) is not None:
            yield False
            return
        milliseconds = max(1, int(wait_seconds * 1000))
        begin = (
            f"BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL lock_timeout = {milliseconds}; "
            f"SELECT pg_advisory_xact_lock({key})"
        )
        with self._saying("standing in line"), self._pool.connection() as db:
            taken = True
            try:
                db.execute(begin)
            except errors.LockNotAvailable:
                db.rollback()
                taken = False
            self._mine.db = db
            try:
                yield taken
            finally:
                self._mine.db = None
                with suppress(Error):  # what was written in it is written, whatever becomes of it
                    db.rollback()

    def prepare(self) -> None:
        """Open the pool, and lay the tables or bring them to this schema, once in a process."""
        with self._ready:
            if not self._is_ready:
                self._patience.run("prepare", lambda _: self._lay_tables())
                self._pool.open()
                self._is_ready = True

    def _lay_tables(self) -> None:
        """Lay the tables on a connection of its own: what is wrong with the URL is said at once."""
        import psycopg

        with self._saying("connecting"), psycopg.connect(self._pool.conninfo, **self._pool.kwargs) as db:
            _migrate(db)

    def _run(self, what: str, act: Callable[[Connection], T], *, is_last: bool = False) -> T:
        """Act on a connection: the one whose lock this thread holds, or one of the pool's.

        With `is_last` a lock that is held ends with it, so that what was written is durable on return.
        """
        with self._saying(what):
            held: Connection | None = getattr(self._mine, "db", None)
            if held is None or held.closed:
                with self._pool.connection() as db:
                    return act(db)
            try:
                result = act(held)
                if is_last:
                    held.commit()
            except BaseException:
                if not held.closed:
                    held.rollback()  # the lock goes with it
                raise
            return result

    @contextmanager
    def _saying(self, what: str) -> Iterator[None]:
        """Turn the database's refusals into ours, without a password in them."""
        import psycopg
        from psycopg_pool import PoolTimeout

        try:
            yield
        except PoolTimeout:
            message = f"{what} in {self.name}: no connection within {_WAIT_SECONDS:g} s"
            raise Unavailable(message) from None
        except psycopg.Error as error:
            is_cut = (error.sqlstate or "57P")[:3] == "57P"  # a failover breaks all of them at once
            if is_cut and not self._pool.closed:
                self._pool.check()
            message = f"{what} in {self.name}: {error}".strip().splitlines()[0]
            for secret in self._secrets:
                message = message.replace(secret, "…")
            raise (StoreFull if error.sqlstate in _FULL else Unavailable)(message) from None


def _migrate(db: Connection) -> None:
    """Bring the tables to this schema, one process at a time."""
    with db.transaction():
        known = db.execute("SELECT to_regclass('octavo.schema')").fetchone()
        version = 0 if known is None or known[0] is None else _version(db)
        if version == len(_STEPS):
            return
        if version > len(_STEPS):
            raise NewerFormat(f"the database has schema {version}, this Octavo knows {len(_STEPS)}")
        db.execute("SELECT pg_advisory_xact_lock(%s)", (0x6F637461766F,))
        db.execute("CREATE SCHEMA IF NOT EXISTS octavo")
        db.execute("CREATE TABLE IF NOT EXISTS octavo.schema (version integer NOT NULL)")
        for step in _STEPS[_version(db) :]:  # another process may have been faster
            for statement in step:
                db.execute(statement)
        db.execute("DELETE FROM octavo.schema")
        db.execute("INSERT INTO octavo.schema VALUES (%s)", (len(_STEPS),))


def _version(db: Connection) -> int:
    row = db.execute("SELECT max(version) FROM octavo.schema").fetchone()
    return 0 if row is None or row[0] is None else int(row[0])
