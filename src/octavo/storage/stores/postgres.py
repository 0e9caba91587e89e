"""The store in PostgreSQL: a row an entry, a row a line, a row a hold."""

# ruff: noqa: S608  # the SQL text is our own; values are always bound

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from contextlib import AbstractContextManager

from octavo.errors import LeaseLost, NotFound, SandboxBusy
from octavo.storage.stores.entries import checked, whole_lines
from octavo.storage.stores.postgres_pool import Connection, Pool
from octavo.storage.stores.retrying import Patience, Retrying, RetryingStore

_CONNECTIONS = 16
_DELETE = (
    "WITH lines AS (DELETE FROM octavo.line WHERE {0}), holds AS (DELETE FROM octavo.hold WHERE {0}) "
    "DELETE FROM octavo.entry WHERE {0}"
)
_SERIES = (
    "SELECT -1, data FROM octavo.entry WHERE account = %(account)s AND key = %(key)s UNION ALL "
    "SELECT n, data FROM octavo.line WHERE account = %(account)s AND key = %(key)s ORDER BY 1"
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
_REPLACE = (
    f"WITH mine AS ({_LET_GO} RETURNING account, key), "
    "lines AS (DELETE FROM octavo.line USING mine WHERE line.account = mine.account AND line.key = mine.key) "
    "UPDATE octavo.entry SET data = %(data)s FROM mine "
    "WHERE entry.account = mine.account AND entry.key = mine.key"
)
_REMOVE = (
    f"WITH mine AS (DELETE FROM octavo.hold WHERE {_MINE} RETURNING account, key), "
    "lines AS (DELETE FROM octavo.line USING mine WHERE line.account = mine.account AND line.key = mine.key) "
    "DELETE FROM octavo.entry USING mine WHERE entry.account = mine.account AND entry.key = mine.key"
)


class PostgresPlace:
    """Accounts in one database, through a pool of connections that its stores share."""

    def __init__(
        self, url: str, *, connections: int = _CONNECTIONS, patience: Patience | None = None
    ) -> None:
        self._retrying = Retrying(patience)
        self._pool = Pool(url, connections, self._retrying.patience)
        self.name, self.close = self._pool.name, self._pool.close

    def open(self, account: str) -> RetryingStore:
        """The store of one account."""
        self._pool.prepare()
        return self._retrying.store(PostgresStore(self._pool, account), account)

    def accounts(self, after: str = "", limit: int = 1000) -> list[str]:
        """The accounts beyond one of them, in the order of the place, at most so many."""
        self._pool.prepare()
        sql = (
            "SELECT account FROM octavo.entry WHERE key = 'account.json' AND account > %s "
            "ORDER BY account LIMIT %s"
        )
        rows = self._retrying.patience.run(
            "accounts", lambda _: self._pool.rows("listing accounts", sql, (after, limit))
        )
        return [row[0] for row in rows]

    def delete(self, account: str) -> None:
        """Remove an account whole."""
        self._pool.prepare()
        sql, values = _DELETE.format("account = %(account)s"), {"account": account}
        deleted = self._retrying.patience.run(
            "delete", lambda again: self._pool.written("deleting an account", sql, values) or again
        )
        if not deleted:
            raise NotFound(f"there is no account {account!r} in {self.name}")


class PostgresStore:
    """One account's entries as rows."""

    folder = None

    def __init__(self, pool: Pool, account: str) -> None:
        self._pool = pool
        self._account = account
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
        rows = self._pool.rows(f"reading {key}", _SERIES, values)
        if not rows or rows[0][0] != -1:
            return None
        whole, torn = whole_lines(rows[0][1])
        return [*whole, *(row[1] for row in rows[1:])], torn

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """Stand in line for the account's commits; the first entry written ends it."""
        return self._pool.locked(self._lock_key, wait_seconds)

    def leftovers(self) -> Sequence[str]:
        """A transaction leaves nothing behind."""
        return ()

    def clear_leftovers(self) -> int:
        """A transaction leaves nothing behind."""
        return 0


class PostgresLease:
    """The owner's hold on one series: a row with its name, a fencing number and an end by the server's clock.

    Every act of the owner locks that row, so that nobody can take over in the middle of it.
    """

    def __init__(self, pool: Pool, account: str, key: str, owner: str, seconds: float) -> None:
        self._pool = pool
        self._key = key
        self._mine = {"account": account, "key": key, "owner": owner, "seconds": seconds}
        self._lines, self.torn = pool.transact(f"holding {key}", self._take)
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

    def _take(self, db: Connection) -> tuple[list[bytes], int]:
        is_taken = db.execute(_TAKE, self._mine).rowcount == 1
        rows = db.execute(_SERIES, self._mine).fetchall()
        if not rows or rows[0][0] != -1:
            raise NotFound(f"there is no session buffer {self._key!r}")
        if not is_taken:
            raise SandboxBusy(f"{self._key!r} has another owner")
        whole, torn = whole_lines(rows[0][1])
        if torn:  # dropped for good
            sql = "UPDATE octavo.entry SET data = %(data)s WHERE account = %(account)s AND key = %(key)s"
            db.execute(sql, {**self._mine, "data": b"".join(whole)})
        return [*whole, *(line[1] for line in rows[1:])], torn
