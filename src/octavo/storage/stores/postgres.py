"""The store in PostgreSQL: a row an entry, a row a line, a row a hold."""

# ruff: noqa: S608  # the SQL text is our own; values are always bound

from __future__ import annotations

import hashlib
import secrets
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Any, TypeVar
from urllib.parse import parse_qs, urlsplit

from octavo.domain.ports import Store
from octavo.errors import LeaseLost, NewerFormat, NotFound, SandboxBusy, StoreFull, Unavailable
from octavo.storage.stores.entries import Elsewhere, checked, whole_lines
from octavo.storage.stores.names import secrets_in, shown
from octavo.storage.stores.retrying import Patience

T = TypeVar("T")
Connection = Any  # of psycopg, which loads when the first place is opened

_CONNECTIONS = _PARTITIONS = 16
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
_KEY = 'account text COLLATE "C" NOT NULL, key text COLLATE "C" NOT NULL'
_STEPS = (
    (
        f"CREATE TABLE octavo.entry ({_KEY}, data bytea NOT NULL, PRIMARY KEY (account, key)) "
        "PARTITION BY HASH (account)",
        f"CREATE TABLE octavo.line ({_KEY}, n integer NOT NULL, owner text NOT NULL, data bytea NOT NULL, "
        "PRIMARY KEY (account, key, n)) PARTITION BY HASH (account)",
        f"CREATE TABLE octavo.hold ({_KEY}, fence bigint NOT NULL, owner text NOT NULL, "
        "until timestamptz NOT NULL, PRIMARY KEY (account, key)) PARTITION BY HASH (account)",
        *(
            f"CREATE TABLE octavo.{table}_{n} PARTITION OF octavo.{table} "
            f"FOR VALUES WITH (MODULUS {_PARTITIONS}, REMAINDER {n})"
            for table in ("entry", "line", "hold")
            for n in range(_PARTITIONS)
        ),
        "CREATE INDEX entry_account ON octavo.entry (account) WHERE key = 'account.json'",
    ),
)
_DELETE = (
    "WITH lines AS (DELETE FROM octavo.line WHERE {0}), holds AS (DELETE FROM octavo.hold WHERE {0}) "
    "DELETE FROM octavo.entry WHERE {0}"
)
_SERIES = (
    "SELECT -1, data FROM octavo.entry WHERE account = %(account)s AND key = %(key)s UNION ALL "
    "SELECT n, data FROM octavo.line WHERE account = %(account)s AND key = %(key)s ORDER BY 1"
)
_UNTORN = (  # dropped for good
    "UPDATE octavo.entry SET data = substr(data, 1, length(data) - %(torn)s) "
    "WHERE account = %(account)s AND key = %(key)s"
)
_UNTIL = "clock_timestamp() + %(seconds)s * interval '1 second'"
_MINE = "account = %(account)s AND key = %(key)s AND owner = %(owner)s"
_TAKE = (
    f"INSERT INTO octavo.hold SELECT account, key, 1, %(owner)s, {_UNTIL} FROM octavo.entry "
    "WHERE account = %(account)s AND key = %(key)s ON CONFLICT (account, key) DO UPDATE "
    "SET fence = octavo.hold.fence + 1, owner = excluded.owner, until = excluded.until "
    "WHERE octavo.hold.until <= clock_timestamp() OR octavo.hold.owner IN ('', excluded.owner)"
)
_RENEW = f"UPDATE octavo.hold SET until = {_UNTIL} WHERE {_MINE}"
_LET_GO = f"UPDATE octavo.hold SET owner = '' WHERE {_MINE}"
# A line that was written and never acknowledged is the owner's to put right.
_APPEND = (
    f"WITH mine AS ({_RENEW} RETURNING 1) INSERT INTO octavo.line "
    "SELECT %(account)s, %(key)s, %(n)s, %(owner)s, %(data)s FROM mine "
    "ON CONFLICT (account, key, n) DO UPDATE SET data = excluded.data "
    "WHERE octavo.line.owner = excluded.owner"
)
_WITH_LINES = (
    "lines AS (DELETE FROM octavo.line USING mine WHERE line.account = mine.account AND line.key = mine.key)"
)
_REPLACE = (
    f"WITH mine AS ({_LET_GO} RETURNING account, key), {_WITH_LINES} UPDATE octavo.entry "
    "SET data = %(data)s FROM mine WHERE entry.account = mine.account AND entry.key = mine.key"
)
_REMOVE = (
    f"WITH mine AS (DELETE FROM octavo.hold WHERE {_MINE} RETURNING account, key), {_WITH_LINES} "
    "DELETE FROM octavo.entry USING mine WHERE entry.account = mine.account AND entry.key = mine.key"
)


class PostgresPlace:
    """Accounts in one database, through a pool of connections that its stores share."""

    def __init__(
        self, url: str, *, connections: int = _CONNECTIONS, patience: Patience | None = None
    ) -> None:
        self._patience = patience or Patience()
        self._pool = _Pool(url, connections)
        self.name, self.close = self._pool.name, self._pool.close

    def open(self, account: str) -> Store:
        """The store of one account."""
        self._patience.run("prepare", lambda _: self._pool.prepare())
        return self._patience.store(PostgresStore(self._pool, account), account)

    def accounts(self, after: str = "", limit: int = 1000) -> list[str]:
        """The accounts beyond one of them, in the order of the place, at most so many."""
        sql = (
            "SELECT account FROM octavo.entry WHERE key = 'account.json' AND account > %s "
            "ORDER BY account LIMIT %s"
        )
        rows = self._patience.run(
            "accounts", lambda _: self._pool.rows("listing accounts", sql, (after, limit))
        )
        return [row[0] for row in rows]

    def delete(self, account: str) -> None:
        """Remove an account whole."""
        sql, values = _DELETE.format("account = %(account)s"), {"account": account}
        if not self._patience.run(
            "delete", lambda again: self._pool.written("deleting an account", sql, values) or again
        ):
            raise NotFound(f"there is no account {account!r} in {self.name}")


class PostgresStore(Elsewhere):
    """One account's entries as rows."""

    def __init__(self, pool: _Pool, account: str) -> None:
        self._pool, self._account = pool, account
        digest = hashlib.sha256(b"octavo\0" + account.encode()).digest()
        self._lock_key = int.from_bytes(digest[:8], "big", signed=True)

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry durably; False, and nothing changed, if the key or the key `unless` exists."""
        sql = (
            "INSERT INTO octavo.entry SELECT %s, %s, %s WHERE NOT EXISTS "
            "(SELECT 1 FROM octavo.entry WHERE account = %s AND key = %s) ON CONFLICT DO NOTHING"
        )
        values = (self._account, checked(key), data, self._account, unless)
        return self._pool.written(f"creating {key}", sql, values) == 1

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""
        return self.read_many((key,), first=first)[0]

    def read_many(self, keys: Sequence[str], *, first: int | None = None) -> list[bytes | None]:
        """What `read` says of each key, in one statement."""
        part = "data" if first is None else f"substr(data, 1, {first:d})"
        sql = f"SELECT key, {part} FROM octavo.entry WHERE account = %s AND key = ANY(%s)"
        values = (self._account, [checked(key) for key in keys])
        rows = dict(self._pool.rows(f"reading {', '.join(keys[:2])}", sql, values))
        return [rows.get(key) for key in keys]

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """The keys in a folder (the prefix ends in a slash) beyond one of them, sorted, at most so many."""
        sql = (
            "SELECT key FROM octavo.entry WHERE account = %s AND key > %s AND key < %s "
            "AND strpos(substr(key, %s), '/') = 0 ORDER BY key LIMIT %s"
        )
        beyond = prefix[:-1] + "0"  # the character after the slash
        values = (self._account, max(prefix, after), beyond, len(prefix) + 1, limit)
        return [row[0] for row in self._pool.rows(f"listing {prefix}", sql, values)]

    def delete(self, *keys: str) -> None:
        """Remove keys; one that does not exist is fine."""
        values = {"account": self._account, "keys": [checked(key) for key in keys]}
        sql = _DELETE.format("account = %(account)s AND key = ANY(%(keys)s)")
        self._pool.written(f"removing {len(keys)} entries", sql, values)

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry durably over what is there."""
        sql = (
            "INSERT INTO octavo.entry VALUES (%s, %s, %s) "
            "ON CONFLICT (account, key) DO UPDATE SET data = excluded.data"
        )
        self._pool.written(f"replacing {key}", sql, (self._account, checked(key), data))

    def hold(self, key: str, seconds: float, *, owner: str = "") -> PostgresLease:
        """Take hold of a series of lines; SandboxBusy if somebody has it and its time is not over."""
        return PostgresLease(self._pool, self._account, checked(key), owner or secrets.token_hex(16), seconds)

    def lines(self, key: str) -> tuple[Sequence[bytes], int] | None:
        """The whole lines of a series and the bytes of a torn last one, None if there is no series."""
        values = {"account": self._account, "key": checked(key)}
        return _series(self._pool.rows(f"reading {key}", _SERIES, values))

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """Stand in line for the account's commits; the first entry written ends it."""
        return self._pool.locked(self._lock_key, wait_seconds)


class PostgresLease:
    """The owner's hold on one series: a row with its name, a fencing number and an end by the server's clock.

    Every act of the owner locks that row, so that nobody can take over in the middle of it.
    """

    def __init__(self, pool: _Pool, account: str, key: str, owner: str, seconds: float) -> None:
        self._pool, self._key = pool, key
        self._mine = {"account": account, "key": key, "owner": owner, "seconds": seconds}
        self._lines, self.torn = pool.run(f"holding {key}", self._take, is_last=True)
        self._next = len(self._lines)

    def lines(self) -> Sequence[bytes]:
        """Every whole line there was when the hold was taken."""
        return self._lines

    def append(self, line: bytes) -> None:
        """Add a line durably, and make the lease last from now on."""
        self._act("writing", _APPEND, n=self._next, data=line)
        self._next += 1

    def replace(self, data: bytes) -> None:
        """Put other lines in place of all there are, and let go."""
        self._act("writing", _REPLACE, data=data)

    def renew(self) -> None:
        """Make the lease last from now on."""
        self._act("renewing", _RENEW)

    def delete(self) -> None:
        """Remove the series and let go; not if it is another's by now."""
        self._pool.written(f"removing {self._key}", _REMOVE, self._mine)

    def close(self) -> None:
        """Let go; a second time is fine."""
        self._pool.written(f"letting go of {self._key}", _LET_GO, self._mine)

    def _act(self, what: str, sql: str, **more: object) -> None:
        if self._pool.written(f"{what} {self._key}", sql, {**self._mine, **more}) != 1:
            raise LeaseLost(f"{self._key} has gone to somebody else")

    def _take(self, db: Connection) -> tuple[Sequence[bytes], int]:
        with db.transaction():
            is_taken = db.execute(_TAKE, self._mine).rowcount == 1
            series = _series(db.execute(_SERIES, self._mine).fetchall())
            if series is None:
                raise NotFound(f"there is no session buffer {self._key!r}")
            if not is_taken:
                raise SandboxBusy(f"{self._key!r} has another owner")
            if series[1]:
                db.execute(_UNTORN, {**self._mine, "torn": series[1]})
            return series


def _series(rows: Sequence[tuple[int, bytes]]) -> tuple[Sequence[bytes], int] | None:
    """Whole lines, and the bytes of a torn last one, of a series' entry and the lines behind it."""
    if not rows or rows[0][0] != -1:
        return None
    whole, torn = whole_lines(rows[0][1])
    return [*whole, *(line for _, line in rows[1:])], torn


class _Pool:
    """Connections that stores act on: none keeps a state between two transactions, so any pooler will do."""

    def __init__(self, url: str, connections: int) -> None:
        self.name = shown(url)
        self._secrets = secrets_in(url)
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
        self.close = self._pool.close
        weakref.finalize(self, self._pool.close)

    def prepare(self) -> None:
        """Open the pool, and lay the tables or bring them to this schema, once in a process."""
        import psycopg

        with self._ready, self._saying("connecting"):
            if self._is_ready:
                return
            # On a connection of its own: what is wrong with the URL is said at once.
            with psycopg.connect(self._pool.conninfo, **self._pool.kwargs) as db:
                _migrate(db)
            self._pool.open()
            self._is_ready = True

    def rows(self, what: str, sql: str, values: Any) -> list[tuple[Any, ...]]:
        """All rows of one statement."""
        return self.run(what, lambda db: db.execute(sql, values).fetchall())

    def written(self, what: str, sql: str, values: Any) -> int:
        """How many rows a statement wrote, durably."""
        return self.run(what, lambda db: int(db.execute(sql, values).rowcount), is_last=True)

    def run(self, what: str, act: Callable[[Connection], T], *, is_last: bool = False) -> T:
        """Act on a connection: the one whose lock this thread holds, or one of the pool's.

        With `is_last` a lock that is held ends with it, so that what was written is durable on return.
        """
        if not self._is_ready:
            self.prepare()
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


def _migrate(db: Connection) -> None:
    """Bring the tables to this schema, one process at a time."""

    def version() -> int:
        if db.execute("SELECT to_regclass('octavo.schema')").fetchone()[0] is None:
            return 0
        return int(db.execute("SELECT max(version) FROM octavo.schema").fetchone()[0] or 0)

    with db.transaction():
        if version() == len(_STEPS):
            return
        if version() > len(_STEPS):
            raise NewerFormat(f"the database has schema {version()}, this Octavo knows {len(_STEPS)}")
        db.execute("SELECT pg_advisory_xact_lock(%s)", (0x6F637461766F,))
        db.execute("CREATE SCHEMA IF NOT EXISTS octavo")
        db.execute("CREATE TABLE IF NOT EXISTS octavo.schema (version integer NOT NULL)")
        for step in _STEPS[version() :]:  # another process may have been faster
            for statement in step:
                db.execute(statement)
        db.execute("DELETE FROM octavo.schema")
        db.execute("INSERT INTO octavo.schema VALUES (%s)", (len(_STEPS),))
