"""The store in PostgreSQL: a row an entry, and so a row a line and a row a hold."""

# ruff: noqa: S608  # the SQL text is our own; values are always bound

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any
from urllib.parse import parse_qs, urlsplit

from octavo.domain.ports import Store
from octavo.errors import NewerFormat, NotFound, StoreFull, Unavailable
from octavo.storage.stores.entries import checked
from octavo.storage.stores.names import secrets_in, shown
from octavo.storage.stores.numbered import NumberedStore
from octavo.storage.stores.retrying import Patience

Connection = Any  # of psycopg, which loads when the first place is opened

_CONNECTIONS = _PARTITIONS = 16
_WAIT_SECONDS = 5.0
_FULL = {"53100", "53200"}
# A cable that is pulled says nothing: a server that is silent for so long is out of reach (milliseconds, s).
_OPTIONS = {
    "connect_timeout": 10, "tcp_user_timeout": 15_000,
    "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "autocommit": True, "prepare_threshold": None,
}  # fmt: skip
_SCHEMA = 2
_KEY = 'account text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL'
_LAYOUT = (
    "CREATE SCHEMA IF NOT EXISTS octavo",
    "CREATE TABLE octavo.schema (version integer NOT NULL)",
    f"INSERT INTO octavo.schema VALUES ({_SCHEMA})",
    f"CREATE TABLE octavo.entry ({_KEY}, data bytea NOT NULL, written timestamptz, "
    "PRIMARY KEY (account, key)) PARTITION BY HASH (account)",
    *(
        f"CREATE TABLE octavo.entry_{n} PARTITION OF octavo.entry "
        f"FOR VALUES WITH (MODULUS {_PARTITIONS}, REMAINDER {n})"
        for n in range(_PARTITIONS)
    ),
    "CREATE INDEX entry_account ON octavo.entry (account) WHERE key = 'account.json'",
)


class PostgresPlace:
    """Accounts in one database, through a pool of connections that its stores share.

    None of them keeps a state between two transactions, so any pooler will do.
    """

    def __init__(self, url: str, *, patience: Patience | None = None) -> None:
        self.name, self._secrets = shown(url), secrets_in(url)
        self._patience = patience or Patience()
        self._mine = threading.local()  # the connection whose lock a thread holds
        self._guard = threading.Lock()
        self._is_ready = False
        try:
            from psycopg_pool import ConnectionPool
        except ImportError as error:
            hint = "install octavo[postgres]"
            raise Unavailable(f"{self.name} needs psycopg and its pool", hint=hint) from error
        named = parse_qs(urlsplit(url).query)  # who says how long in the URL decides
        options = {option: value for option, value in _OPTIONS.items() if option not in named}
        self._pool: Any = ConnectionPool(
            url, min_size=0, max_size=_CONNECTIONS, kwargs=options, open=False, timeout=_WAIT_SECONDS
        )
        self.close = self._pool.close

    def open(self, account: str) -> Store:
        """The store of one account."""
        self._patience.run("prepare", lambda _: self._prepare())
        return self._patience.store(PostgresStore(self, account), account)

    def accounts(self, after: str = "", limit: int = 1000) -> list[str]:
        """The accounts beyond one of them, in the order of the place, at most so many."""
        sql = (
            "SELECT account FROM octavo.entry WHERE key = 'account.json' AND account > %s "
            "ORDER BY account LIMIT %s"
        )
        cursor = self._patience.run("accounts", lambda _: self.run("listing accounts", sql, (after, limit)))
        return [row[0] for row in cursor.fetchall()]

    def delete(self, account: str) -> None:
        """Remove an account whole."""
        sql = "DELETE FROM octavo.entry WHERE account = %s"

        def act(again: bool) -> bool:
            return self.run("deleting an account", sql, (account,), writes=True).rowcount > 0 or again

        if not self._patience.run("delete", act):
            raise NotFound(f"there is no account {account!r} in {self.name}")

    def _prepare(self) -> None:
        """Open the pool, and lay the tables, once in a process."""
        import psycopg

        with self._guard, self._saying("connecting"):
            if self._is_ready:
                return
            # On a connection of its own: what is wrong with the URL is said at once.
            with psycopg.connect(self._pool.conninfo, **self._pool.kwargs) as db:
                _lay(db)
            self._pool.open()
            self._is_ready = True

    def run(self, what: str, sql: str, values: Sequence[Any], *, writes: bool = False) -> Any:
        """The cursor behind a statement, run on the connection whose lock this thread holds or on a free one.

        What writes ends such a lock, so that what was written is durable on return.
        """
        if not self._is_ready:
            self._prepare()
        with self._saying(what):
            held: Connection | None = getattr(self._mine, "db", None)
            if held is None or held.closed:
                with self._pool.connection() as db:
                    return db.execute(sql, values)
            try:
                cursor = held.execute(sql, values)
                if writes:
                    held.commit()
            except BaseException:
                if not held.closed:
                    held.rollback()  # the lock goes with it
                raise
            return cursor

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


class PostgresStore(NumberedStore):
    """One account's entries as rows."""

    def __init__(self, place: PostgresPlace, account: str) -> None:
        self._place, self._account = place, account
        digest = hashlib.sha256(b"octavo\0" + account.encode()).digest()
        self._lock_key = int.from_bytes(digest[:8], "big", signed=True)

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry durably; False, and nothing changed, if the key or the key `unless` exists."""
        sql = (
            "INSERT INTO octavo.entry SELECT %s, %s, %s, clock_timestamp() WHERE NOT EXISTS "
            "(SELECT 1 FROM octavo.entry WHERE account = %s AND key = %s) ON CONFLICT DO NOTHING"
        )
        values = (self._account, checked(key), data, self._account, unless)
        return bool(self._place.run(f"creating {key}", sql, values, writes=True).rowcount)

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""
        return self.read_many((key,), first=first)[0]

    def read_many(self, keys: Sequence[str], *, first: int | None = None) -> list[bytes | None]:
        """What `read` says of each key, in one statement."""
        part = "data" if first is None else f"substr(data, 1, {first:d})"
        sql = f"SELECT key, {part} FROM octavo.entry WHERE account = %s AND key = ANY(%s)"
        values = (self._account, [checked(key) for key in keys])
        rows = dict(self._place.run(f"reading {', '.join(keys[:2])}", sql, values).fetchall())
        return [rows.get(key) for key in keys]

    def listed(self, prefix: str, after: str = "", limit: int | None = None) -> list[tuple[str, float]]:
        """Keys below a prefix, sorted, and when each was last written by the server's clock."""
        sql = (
            "SELECT key, coalesce(extract(epoch FROM written), 0)::float8 FROM octavo.entry "
            "WHERE account = %s AND key > %s AND key < %s ORDER BY key LIMIT %s"
        )
        beyond = prefix[:-1] + "0"  # the character after the slash
        values = (self._account, max(prefix, after), beyond, limit)
        return list(self._place.run(f"listing {prefix}", sql, values).fetchall())

    def delete(self, *keys: str) -> None:
        """Remove keys; one that does not exist is fine."""
        values = (self._account, [checked(key) for key in keys])
        sql = "DELETE FROM octavo.entry WHERE account = %s AND key = ANY(%s)"
        self._place.run(f"removing {len(keys)} entries", sql, values, writes=True)

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry durably over what is there."""
        sql = (
            "INSERT INTO octavo.entry VALUES (%s, %s, %s, clock_timestamp()) "
            "ON CONFLICT (account, key) DO UPDATE SET data = excluded.data, written = excluded.written"
        )
        self._place.run(f"replacing {key}", sql, (self._account, checked(key), data), writes=True)

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """Stand in line for the account's commits; the first entry written ends it."""
        return self._place.locked(self._lock_key, wait_seconds)


def _lay(db: Connection) -> None:
    """Lay the tables where there are none, one process at a time; others than ours are left alone."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (0x6F637461766F,))
        if db.execute("SELECT to_regclass('octavo.schema')").fetchone()[0] is None:
            for statement in _LAYOUT:
                db.execute(statement)
        version = db.execute("SELECT max(version) FROM octavo.schema").fetchone()[0]
        if version != _SCHEMA:
            raise NewerFormat(f"the database has schema {version}, this Octavo knows {_SCHEMA}")
