"""The store in an object store (S3 and its like, Google, Azure): entries as objects, lines as numbered ones.

A series of lines is objects with numbers that go up by one, and taking hold of it is one too. Whoever creates
the next number has it, so an owner that was followed finds its number taken.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import UTC, datetime, timedelta

import msgspec

from octavo.domain.ports import Store
from octavo.errors import LeaseLost, NotFound, SandboxBusy
from octavo.storage.stores.bucket import Objects, connect
from octavo.storage.stores.entries import checked, probe, whole_lines
from octavo.storage.stores.names import account_of, folder_of
from octavo.storage.stores.retrying import Patience

_ACCOUNTS = "accounts/"
_TICK = timedelta(seconds=1)  # object stores tell the time in whole seconds


class ObjectsPlace:
    """Accounts below a prefix of a bucket."""

    def __init__(self, url: str, *, patience: Patience | None = None) -> None:
        self._root = connect(url)
        self.name, self.close = self._root.name, self._root.close
        self._patience = patience or Patience()
        self._guard = threading.Lock()
        self._is_probed = False

    def open(self, account: str) -> Store:
        """The store of one account; the first time it is seen that the place keeps the condition."""
        with self._guard:
            if not self._is_probed:
                probe(self._patience.store(ObjectStore(self._root, "probes/"), ""))
                self._is_probed = True
        return self._patience.store(self._store(account), account)

    def accounts(self, after: str = "", limit: int = 1000) -> list[str]:
        """The accounts beyond one of them, in the order of the place, at most so many."""
        start = _ACCOUNTS + folder_of(after) if after else ""
        keys = [key.removeprefix(_ACCOUNTS) for key, _ in self._root.listed(_ACCOUNTS, start, limit)]
        return [name for name in map(account_of, keys) if name is not None]

    def delete(self, account: str) -> None:
        """Remove an account whole; first what says that it is there."""
        store = self._store(account)
        if store.read("account.json") is None:
            raise NotFound(f"there is no account {account!r} in {self.name}")
        store.delete("account.json")
        while keys := [key for key, _ in store.listed("", "", 1000)]:
            store.delete(*keys)
        self._root.delete(_ACCOUNTS + folder_of(account))

    def _store(self, account: str) -> ObjectStore:
        folder = folder_of(account)
        return ObjectStore(self._root, f"data/{folder}/", _ACCOUNTS + folder)


class ObjectStore(Objects):
    """One account's entries as objects below a prefix; an object `marker` of the place lists it."""

    def __init__(self, root: Objects, prefix: str, marker: str = "") -> None:
        super().__init__(*root.below(prefix))
        self._root, self._marker = root, marker

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry durably; False, and nothing changed, if the key or the key `unless` exists."""
        if key == "account.json" and self._marker:
            self._root.replace(self._marker, b"")
        if not self.put_new(key, data):
            return False
        if unless and self.modified(unless) is not None:
            self.delete(key)
            return False
        return True

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """The keys in a folder (the prefix ends in a slash) beyond one of them, sorted, at most so many."""
        return [key for key, _ in self.listed(prefix, after, limit)]

    def hold(self, key: str, seconds: float, *, owner: str = "") -> ObjectLease:
        """Take hold of a series of lines; SandboxBusy if somebody has it and its time is not over."""
        return ObjectLease(self, checked(key), owner or secrets.token_hex(16), seconds)

    def lines(self, key: str) -> tuple[Sequence[bytes], int] | None:
        """The whole lines of a series and the bytes of a torn last one, None if there is no series."""
        series = _Series.read(self, checked(key))
        return None if series is None else (series.lines, series.torn)

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """There is no line between processes here: their writers meet at `create`."""
        return nullcontext(True)


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a numbered object: what it is, whose, and for how long it holds."""

    kind: str  # take, line, instead (of the line before), all (instead of all before), free
    owner: str
    seconds: float = 0.0


class _Series:
    """The lines of a series and who has it, by its numbered objects."""

    def __init__(self, base: bytes) -> None:
        self.lines, self.torn = whole_lines(base)
        self.owner, self.seconds, self.last = "", 0.0, 0
        self.heard = datetime.min.replace(tzinfo=UTC)  # of its owner, by the server's clock

    @classmethod
    def read(cls, store: Objects, key: str) -> _Series | None:
        """The series under a key, None if there is none."""
        base = store.read(key)
        if base is None:
            return None
        series, metas = cls(base), _numbered(store, key)
        for (path, moment), data in zip(metas, store.read_many([path for path, _ in metas]), strict=True):
            if data is None:  # removed meanwhile: somebody put other lines in place of all before
                return cls.read(store, key)
            series._add(data)
            series.last = int(path.rpartition("/")[2])
            series.heard = max(series.heard, moment)
        return series

    def _add(self, data: bytes) -> None:
        line, _, rest = data.partition(b"\n")
        mark = msgspec.json.decode(line, type=_Mark)
        match mark.kind:
            case "take":
                self.owner, self.seconds = mark.owner, mark.seconds
            case "line":
                self.lines.append(rest)
            case "instead":
                self.lines[-1] = rest
            case "all":
                (self.lines, self.torn), self.owner = whole_lines(rest), ""
            case _:
                self.owner = ""


class ObjectLease:
    """The owner's hold on one series: the right to create its next number."""

    def __init__(self, store: Objects, key: str, owner: str, seconds: float) -> None:
        self._store, self._key, self._owner, self._seconds = store, key, owner, seconds
        self._unsure: bytes | None = None  # a line that was sent and never acknowledged
        self._sure = _elapsed()
        series = _Series.read(store, key)
        if series is None:
            raise NotFound(f"there is no session buffer {key!r}")
        # An owner that was not heard of for as long as it holds is gone, by the server's clock alone.
        is_free = series.owner in ("", owner)
        if not is_free and store.now() - series.heard - _TICK < timedelta(seconds=series.seconds):
            raise SandboxBusy(f"{key!r} has another owner")
        self._lines, self.torn, self._last = series.lines, series.torn, series.last
        try:
            if series.torn:  # dropped for good
                self._write("all", b"".join(series.lines))
            self._write("take", b"")
        except LeaseLost as error:
            raise SandboxBusy(f"{key!r} has another owner") from error
        self._taken = (
            self._last
        )  # the number by which it was taken; that last written is -1 once it is let go

    def lines(self) -> Sequence[bytes]:
        """Every whole line there was when the hold was taken."""
        return self._lines

    def append(self, line: bytes) -> None:
        """Add a line durably: the next number is created, or somebody else has it."""
        started = _elapsed()
        kind = "line"
        if self._unsure is not None and self._came_through(self._unsure):
            if self._unsure == line:
                self._unsure = None
                return
            kind = "instead"
        self._unsure = line
        self._write(kind, line)
        self._unsure = None
        # After a pause that may have been longer than the lease: who followed may have removed the series
        # with all its numbers, and a number of nothing can be created.
        if _elapsed() - self._sure >= self._seconds / 2 and self._store.modified(self._key) is None:
            self._store.delete(self._path(self._last))
            raise self._lost()
        self._sure = started

    def replace(self, data: bytes) -> None:
        """Put other lines in place of all there are, and let go."""
        self._write("all", data)
        self._store.replace(self._key, b"")
        older = (path for path, _ in _numbered(self._store, self._key) if path < self._path(self._last))
        self._store.delete(*older)
        self._last = -1

    def renew(self) -> None:
        """Make the lease last from now on, by writing anew the object that took it."""
        is_followed = self._last < 0 or _numbered(self._store, self._key, self._path(self._last))
        if is_followed or self._store.modified(self._key) is None:
            raise self._lost()
        self._store.replace(self._path(self._taken), self._marked("take", b""))
        self._sure = _elapsed()

    def delete(self) -> None:
        """Remove the series and let go; not if it is another's by now."""
        try:
            self._write("free", b"")
        except LeaseLost:
            return
        self._store.delete(self._key)
        while paths := [path for path, _ in _numbered(self._store, self._key)]:
            self._store.delete(*paths)
        self._last = -1

    def close(self) -> None:
        """Let go; a second time is fine."""
        with suppress(LeaseLost):  # then it was let go of already
            self._write("free", b"")
        self._last = -1

    def _write(self, kind: str, rest: bytes) -> None:
        """Create the next number; one that is there is this owner's own, or its lease is lost."""
        if self._last < 0:
            raise self._lost()
        data = self._marked(kind, rest)
        path = self._path(self._last + 1)
        if not self._store.put_new(path, data) and self._store.read(path) != data:
            raise self._lost()
        self._last += 1

    def _came_through(self, line: bytes) -> bool:
        """Whether a line whose reply was lost is there; the number after it is the next then."""
        data = self._store.read(self._path(self._last + 1))
        if data is None:
            return False
        if data not in (self._marked("line", line), self._marked("instead", line)):
            raise self._lost()
        self._last += 1
        return True

    def _marked(self, kind: str, rest: bytes) -> bytes:
        mark = _Mark(kind=kind, owner=self._owner, seconds=self._seconds)
        return msgspec.json.encode(mark) + b"\n" + rest

    def _path(self, number: int) -> str:
        return f"lines/{self._key}/{number:010d}"

    def _lost(self) -> LeaseLost:
        return LeaseLost(f"{self._key} has gone to somebody else")


def _numbered(store: Objects, key: str, after: str = "") -> list[tuple[str, datetime]]:
    """The numbered objects of a series beyond one of them, and when each was last written."""
    metas: list[tuple[str, datetime]] = []
    while True:
        more = store.listed(f"lines/{key}/", after, 1000)
        metas += more
        if len(more) < 1000:
            return metas
        after = more[-1][0]


def _elapsed() -> float:
    """Seconds that pass while a process is stopped and while its machine sleeps, too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
