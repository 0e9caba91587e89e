"""Series of lines where nothing can be appended to: numbered entries, each of which can be created once.

Taking hold of a series is a number too, so an owner that was followed finds its next number taken.
"""

from __future__ import annotations

import secrets
import time
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from octavo.domain.ports import Store
from octavo.errors import LeaseLost, NotFound, SandboxBusy, Unavailable
from octavo.storage.stores.entries import checked, every, whole_lines

_FOLDER = "lines/"
_MANY = 256  # numbers that a series may have before its lines are put together in one


class NumberedStore(Store):
    """A store whose series are numbered entries; it says when each was written, by a clock that all share."""

    tick = 0.0  # how coarse its clock is, in seconds

    @abstractmethod
    def listed(self, prefix: str, after: str = "", limit: int | None = None) -> list[tuple[str, float]]:
        """The keys below a prefix beyond one of them, sorted, and the second each was last written in."""

    def elapsed(self) -> float:
        """Seconds that pass while this process is stopped and while its machine sleeps, too."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """The keys in a folder (the prefix ends in a slash) beyond one of them, sorted, at most so many."""
        return [key for key, _ in self.listed(prefix, after, limit)]

    def hold(self, key: str, seconds: float, *, owner: str = "") -> NumberedLease:
        """Take hold of a series of lines; SandboxBusy if somebody has it and its time is not over."""
        return NumberedLease(self, checked(key), owner or secrets.token_hex(16), seconds)

    def lines(self, key: str) -> tuple[Sequence[bytes], int] | None:
        """The whole lines of a series and the bytes of a torn last one, None if there is no series."""
        series = _Series.read(self, checked(key))
        return None if series is None else (series.lines, series.torn)

    def leftovers(self) -> list[str]:
        """The series with lines that nothing reads, which their owner did not live to remove."""
        keys = {path.removeprefix(_FOLDER).rpartition("/")[0] for path in every(self, _FOLDER)}
        found = ((key, _Series.read(self, key)) for key in sorted(keys))
        return [key for key, series in found if series is None or series.stale is not None]

    def clear_leftovers(self) -> int:
        """Remove lines that nothing reads; says of how many series."""
        found = self.leftovers()
        for key in found:
            try:
                self.hold(key, 0).close()  # who takes hold removes them
            except SandboxBusy:
                continue
            except NotFound:
                self.delete(*(path for path, _ in self.listed(f"{_FOLDER}{key}/")))
        return len(found)

    def now(self) -> float:
        """The time by the clock that all share: that of an entry just written."""
        folder = f"clock/{secrets.token_hex(8)}/"
        self.replace(f"{folder}now", b"")
        moments = [moment for _, moment in self.listed(folder)]
        self.delete(f"{folder}now")
        if not moments:
            raise Unavailable("an entry that was just written is not listed")
        return moments[0]


def _read(data: bytes) -> tuple[dict[str, Any], bytes]:
    """The first line of a numbered entry, which says its kind, its owner, for how long; and the rest.

    It is a `take`, a `line`, one `instead` of the line before, `all` instead of all before, or `free`.
    """
    line, _, rest = data.partition(b"\n")
    return msgspec.json.decode(line, type=dict[str, Any]), rest


class _Series:
    """The lines of a series and who has it, by its numbered entries."""

    def __init__(self, base: bytes) -> None:
        self.lines, self.torn = whole_lines(base)
        self.base, self.owner, self.seconds, self.heard = base, "", 0.0, 0.0
        self.paths: list[str] = []
        self.stale: list[str] | None = None  # the numbers before others that were put in their place

    @classmethod
    def read(cls, store: NumberedStore, key: str) -> _Series | None:
        """The series under a key, None if there is none."""
        base = store.read(key)
        if base is None:
            return None
        series, metas = cls(base), store.listed(f"{_FOLDER}{key}/")
        datas = store.read_many([path for path, _ in metas]) if metas else ()
        for (path, moment), data in zip(metas, datas, strict=True):
            if data is None:  # removed meanwhile: somebody put other lines in place of all before
                return cls.read(store, key)
            series._add(path, *_read(data))
            series.heard = max(series.heard, moment)
        return series

    def _add(self, path: str, mark: Mapping[str, Any], rest: bytes) -> None:
        match mark["kind"]:
            case "take":
                self.owner, self.seconds = mark["owner"], mark["seconds"]
            case "line":
                self.lines.append(rest)
            case "instead":
                self.lines[-1] = rest
            case "all":
                (self.lines, self.torn), self.owner = whole_lines(rest), ""
                self.stale = list(self.paths) if self.paths or self.base else None
            case _:
                self.owner = ""
        self.paths.append(path)


class NumberedLease:
    """The owner's hold on one series: the right to create its next number."""

    def __init__(self, store: NumberedStore, key: str, owner: str, seconds: float) -> None:
        self._store, self._key, self._owner, self._seconds = store, key, owner, seconds
        self._sure = store.elapsed()  # when nobody else had it yet
        series = _Series.read(store, key)
        if series is None:
            raise NotFound(f"there is no session buffer {key!r}")
        # An owner that was not heard of for as long as it holds is gone, by the clock that all share.
        if series.owner not in ("", owner) and store.now() - series.heard - store.tick < series.seconds:
            raise SandboxBusy(f"{key!r} has another owner")
        self._lines, self.torn, stale = series.lines, series.torn, series.stale
        self._last = int(series.paths[-1].rpartition("/")[2]) if series.paths else 0
        try:
            if series.torn or len(series.paths) > _MANY:  # dropped for good, or put together
                self._write("all", b"".join(series.lines))
                stale = series.paths
            self._write("take")
        except LeaseLost as error:
            raise SandboxBusy(f"{key!r} has another owner") from error
        self._taken = self._last  # the number that it was taken by; the last one is -1 once it is let go
        if stale is not None:
            store.replace(key, b"")
            store.delete(*stale)

    def lines(self) -> Sequence[bytes]:
        """Every whole line there was when the hold was taken."""
        return self._lines

    def append(self, line: bytes) -> None:
        """Add a line durably: the next number is created, or somebody else has it."""
        self._write("line", line)

    def replace(self, data: bytes) -> None:
        """Put other lines in place of all there are, and let go."""
        self._write("all", data)
        self._last = -1
        with suppress(NotFound, SandboxBusy):  # whoever takes hold of it next removes what was there before
            NumberedLease(self._store, self._key, self._owner, self._seconds).close()

    def renew(self) -> None:
        """Make the lease last from now on, by writing anew the entry that took it."""
        started = self._store.elapsed()
        if self._last < 0 or self._is_followed():
            raise self._lost()
        self._store.replace(self._path(self._taken), self._marked("take", b""))
        self._sure = started

    def delete(self) -> None:
        """Remove the series and let go; not if it is another's by now."""
        with suppress(LeaseLost):
            if self._last < 0 or self._may_be_followed():
                self._write("take")  # nobody else takes it now
            self._store.delete(self._key, *(path for path, _ in self._store.listed(f"{_FOLDER}{self._key}/")))
        self._last = -1

    def close(self) -> None:
        """Let go; a second time is fine."""
        with suppress(LeaseLost):  # then it was let go of already
            self._write("free")
        self._last = -1

    def _write(self, kind: str, rest: bytes = b"") -> None:
        """Create the next number, behind lines of this owner's that were never acknowledged."""
        if self._last < 0:
            raise self._lost()
        started, what = self._store.elapsed(), kind
        while not self._store.create(path := self._path(self._last + 1), self._marked(what, rest)):
            there = self._store.read(path)
            if there == self._marked(what, rest):  # its reply was lost
                break
            mark = None if there is None else _read(there)[0]
            if mark is None or mark["owner"] != self._owner or mark["kind"] not in ("line", "instead"):
                raise self._lost()
            self._last += 1
            what = "instead" if kind == "line" else kind
        self._last += 1
        # Whoever followed may have removed its numbers, or the series: then one of them could be created.
        if (kind == "take" or self._may_be_followed()) and self._is_followed():
            self._store.delete(self._path(self._last))
            raise self._lost()
        self._sure = started

    def _may_be_followed(self) -> bool:
        """Whether nothing was heard of this owner for so long that its lease may have run out."""
        return self._store.elapsed() - self._sure >= self._seconds / 2

    def _is_followed(self) -> bool:
        """Whether there is a number behind this owner's last, or no series any more."""
        newer = self._store.listed(f"{_FOLDER}{self._key}/", self._path(self._last), 1)
        return bool(newer) or self._store.read(self._key, first=1) is None

    def _marked(self, kind: str, rest: bytes) -> bytes:
        mark = {"kind": kind, "owner": self._owner, "seconds": self._seconds}
        return msgspec.json.encode(mark) + b"\n" + rest

    def _path(self, number: int) -> str:
        return f"{_FOLDER}{self._key}/{number:010d}"

    def _lost(self) -> LeaseLost:
        return LeaseLost(f"{self._key} has gone to somebody else")
