"""A series of lines in an object store: objects with numbers that go up by one, and taking hold is one too.

Whoever creates the next number has it, so an owner that was followed finds its number taken.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from octavo.errors import LeaseLost, NotFound, SandboxBusy
from octavo.storage.stores.bucket import Objects
from octavo.storage.stores.entries import whole_lines

_TICK = timedelta(seconds=1)  # object stores tell the time in whole seconds


class _Mark(msgspec.Struct, frozen=True, kw_only=True):
    """The first line of a numbered object: what it is, whose, and for how long it holds."""

    kind: str  # take, line, instead (of the line before), all (instead of all before), free
    owner: str
    seconds: float = 0.0


class Series:
    """The lines of a series and who has it, by its numbered objects."""

    def __init__(self, base: bytes) -> None:
        self.lines, self.torn = whole_lines(base)
        self.owner, self.seconds, self.last = "", 0.0, 0
        self.heard: datetime | None = None  # of its owner, by the server's clock

    @classmethod
    def read(cls, store: Objects, key: str) -> Series | None:
        """The series under a key, None if there is none."""
        base = store.read(key)
        if base is None:
            return None
        series, metas = cls(base), _numbered(store, key, 0)
        for (path, moment), data in zip(metas, store.read_many([path for path, _ in metas]), strict=True):
            if data is None:  # removed meanwhile: somebody put other lines in place of all before
                return cls.read(store, key)
            series.add(int(path.rpartition("/")[2]), data, moment)
        return series

    def add(self, number: int, data: bytes, moment: datetime) -> None:
        """Take the next object into account."""
        line, _, rest = data.partition(b"\n")
        mark = msgspec.json.decode(line, type=_Mark)
        self.last = number
        self.heard = moment if self.heard is None else max(self.heard, moment)
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
        self._store = store
        self._key = key
        self._owner = owner
        self._seconds = seconds
        self._last = self._taken = -1  # the numbers last written, and by which it was taken
        self._unsure: bytes | None = None  # a line that was sent and never acknowledged
        self._sure = _elapsed()
        series = self._take()
        self._lines, self.torn = series.lines, series.torn

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
        self._be_sure(started)

    def replace(self, data: bytes) -> None:
        """Put other lines in place of all there are, and let go."""
        self._write("all", data)
        self._store.replace(self._key, b"")
        self._store.delete(
            *(p for p, _ in _numbered(self._store, self._key, 0) if p < self._path(self._last))
        )
        self._last = -1

    def renew(self) -> None:
        """Make the lease last from now on, by writing anew the object that took it."""
        self._must_hold()
        if _numbered(self._store, self._key, self._last) or self._store.modified(self._key) is None:
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
        while paths := [path for path, _ in _numbered(self._store, self._key, 0)]:
            self._store.delete(*paths)
        self._last = -1

    def close(self) -> None:
        """Let go; a second time is fine."""
        if self._last >= 0:
            with suppress(LeaseLost):  # then it was let go of already
                self._write("free", b"")
            self._last = -1

    def _take(self) -> Series:
        series = Series.read(self._store, self._key)
        if series is None:
            raise NotFound(f"there is no session buffer {self._key!r}")
        if series.owner not in ("", self._owner) and not self._is_over(series):
            raise SandboxBusy(f"{self._key!r} has another owner")
        self._last = series.last
        try:
            if series.torn:  # dropped for good
                self._write("all", b"".join(series.lines))
            self._write("take", b"")
        except LeaseLost as error:
            raise SandboxBusy(f"{self._key!r} has another owner") from error
        self._taken = self._last
        return series

    def _is_over(self, series: Series) -> bool:
        """Whether an owner was not heard of for as long as it holds, by the server's clock alone."""
        if series.heard is None:
            return True
        return self._store.now() - series.heard - _TICK >= timedelta(seconds=series.seconds)

    def _write(self, kind: str, rest: bytes) -> None:
        """Create the next number; one that is there is this owner's own, or its lease is lost."""
        self._must_hold()
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

    def _be_sure(self, started: float) -> None:
        """After a pause that may have been longer than the lease: see that the series is still there.

        Who followed may have removed it with all its numbers, and a number of nothing can be created.
        """
        if _elapsed() - self._sure >= self._seconds / 2 and self._store.modified(self._key) is None:
            self._store.delete(self._path(self._last))
            raise self._lost()
        self._sure = started

    def _must_hold(self) -> None:
        if self._last < 0:
            raise self._lost()

    def _marked(self, kind: str, rest: bytes) -> bytes:
        mark = _Mark(kind=kind, owner=self._owner, seconds=self._seconds)
        return msgspec.json.encode(mark) + b"\n" + rest

    def _path(self, number: int) -> str:
        return f"{_folder(self._key)}{number:010d}"

    def _lost(self) -> LeaseLost:
        return LeaseLost(f"{self._key} has gone to somebody else")


def _folder(key: str) -> str:
    return f"lines/{key}/"


def _numbered(store: Objects, key: str, after: int) -> list[tuple[str, datetime]]:
    """The numbered objects of a series beyond a number, and when each was last written."""
    metas: list[tuple[str, datetime]] = []
    start, page = f"{_folder(key)}{after:010d}" if after else "", 1000
    while True:
        more = store.listed(_folder(key), start, page)
        metas += more
        if len(more) < page:
            return metas
        start = more[-1][0]


def _elapsed() -> float:
    """Seconds that pass while a process is stopped and while its machine sleeps, too."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)
