"""Disks and stores that stop, fail, forget or lose replies, at a moment the test chooses."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from octavo.storage.stores.disk import Disk

# Taken from the class, so that a call added to Disk is stopped at without a word here.
CALLS = tuple(name for name, value in vars(Disk).items() if callable(value) and not name.startswith("_"))
WRITING = frozenset(
    {"make_folder", "open_new", "open_append", "open_lock", "write", "write_at"}
    | {"truncate", "sync", "sync_folder", "link", "move_new", "replace", "remove"}
)


class Stopped(BaseException):
    """The process is dead; no `except Exception` may bring it back."""


class TappedDisk(Disk):
    """A disk whose every call passes through `tap` on its way to another disk."""

    def __init__(self, inner: Disk | None = None) -> None:
        self.inner = inner or Disk()
        self.calls: list[str] = []

    def tap(self, name: str, args: Sequence[Any]) -> Any:
        """One call; the subclasses decide what becomes of it."""
        self.calls.append(name)
        return getattr(self.inner, name)(*args)

    def _half(self, name: str, fd: int, data: bytes, *place: int) -> None:
        """Put down half of the bytes that a call was to write."""
        getattr(self.inner, name)(fd, data[: len(data) // 2], *place)


def _through_tap(name: str) -> Callable[..., Any]:
    def call(self: TappedDisk, *args: Any) -> Any:
        return self.tap(name, args)

    return call


for _name in CALLS:
    setattr(TappedDisk, _name, _through_tap(_name))


class StoppingDisk(TappedDisk):
    """A disk whose process dies before the n-th call (counted from 1); its files close, as the kernel does.

    With `torn`, a write that is to be stopped puts down half of its bytes first.
    """

    def __init__(self, stop_at: int | None, *, torn: bool = False, inner: Disk | None = None) -> None:
        super().__init__(inner)
        self.stop_at = stop_at
        self.torn = torn
        self.stopped = False
        self._open: set[int] = set()

    def tap(self, name: str, args: Sequence[Any]) -> Any:
        """Let the call through, or die."""
        if self.stopped:
            raise Stopped
        if self.stop_at is not None and len(self.calls) + 1 >= self.stop_at:
            if self.torn and name in ("write", "write_at"):
                self._half(name, *args)
            self.kill()
            raise Stopped
        result = super().tap(name, args)
        if name.startswith("open_"):
            self._open.add(result)
        elif name == "close":
            self._open.discard(args[0])
        return result

    def kill(self) -> None:
        """Die now: files close and their locks fall, and no further call does anything."""
        self.stopped = True
        for fd in self._open:
            self.inner.close(fd)
        self._open.clear()


class FailingDisk(TappedDisk):
    """A disk whose n-th call (of those in `only`) fails with an errno, once or from then on."""

    def __init__(
        self,
        number: int,
        *,
        at: int = 1,
        lasting: bool = False,
        only: Collection[str] = WRITING,
        inner: Disk | None = None,
    ) -> None:
        super().__init__(inner)
        self.number = number
        self.at: int | None = at
        self.lasting = lasting
        self.only = only
        self.failed: list[str] = []
        self._seen = 0

    def tap(self, name: str, args: Sequence[Any]) -> Any:
        """Let the call through, or fail; a failing write puts down half of its bytes, as a full disk does."""
        if name in self.only and self.at is not None:
            self._seen += 1
            if self._seen == self.at or (self.lasting and self._seen > self.at):
                self.failed.append(name)
                if name in ("write", "write_at"):
                    self._half(name, *args)
                if name == "close":
                    self.inner.close(args[0])
                raise OSError(self.number, os.strerror(self.number))
        return super().tap(name, args)

    def mend(self) -> None:
        """Fail no more."""
        self.at = None


class _File:
    """One file, whatever its names: what a power cut leaves of it, and where its bytes are now."""

    def __init__(self, durable: bytes, fd: int) -> None:
        self.durable, self.fd = durable, fd

    def now(self) -> bytes:
        return Path(f"/proc/self/fd/{self.fd}").read_bytes() if self.fd >= 0 else self.durable


_Entries = dict[str, "_File | None"]  # None stands for a folder


class RecordingDisk(TappedDisk):
    """A disk that knows what was synced, and can rebuild the folder as a power cut would leave it.

    Only what goes through it is known; what lay below `root` before is taken as durable.
    """

    def __init__(self, root: Path, inner: Disk | None = None) -> None:
        super().__init__(inner)
        self.root = root
        self._names: dict[Path, _File | None] = {}
        self._entries: dict[Path, _Entries] = {root: {}}
        self._open: dict[int, _File] = {}
        self._kept: list[_File] = []
        for path in sorted(root.rglob("*")):
            self._names[path] = None if path.is_dir() else self._known(path, path.read_bytes())
            self._entries[path.parent][path.name] = self._names[path]
            if path.is_dir():
                self._entries[path] = {}

    def tap(self, name: str, args: Sequence[Any]) -> Any:
        """Do the call, then note what it changed and what it made durable."""
        result = super().tap(name, args)
        match name:
            case "make_folder":
                self._names.setdefault(args[0], None)
                self._entries.setdefault(args[0], {})
            case "open_new" | "open_append" | "open_lock":
                self._open[result] = self._file(args[0])
            case "sync":
                self._open[args[0]].durable = self._open[args[0]].now()
            case "sync_folder":
                self._entries[args[0]] = self._listing(args[0])
            case "link":
                self._names[args[1]] = self._names[args[0]]
            case "replace" | "move_new":
                self._names[args[1]] = self._names.pop(args[0])
            case "remove":
                self._names.pop(args[0], None)
            case "close":
                self._open.pop(args[0], None)
        return result

    def after_power_cut(self, target: Path, chance: Callable[[], bool] = lambda: False) -> Path:
        """Write what survives into a new folder; by `chance`, something never synced survives too."""
        self._write(self.root, target, chance)
        return target

    def forget(self) -> None:
        """Let go of the files it watched."""
        for file in self._kept:
            os.close(file.fd)
            file.fd = -1
        self._kept.clear()

    def _file(self, path: Path) -> _File:
        found = self._names.get(path)
        if found is None:
            found = self._names[path] = self._known(path, b"")
        return found

    def _known(self, path: Path, durable: bytes) -> _File:
        """Hold the file open, so that its bytes can be read under whatever name, or none."""
        file = _File(durable, os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        self._kept.append(file)
        return file

    def _listing(self, folder: Path) -> _Entries:
        return {path.name: file for path, file in self._names.items() if path.parent == folder}

    def _write(self, folder: Path, target: Path, chance: Callable[[], bool]) -> None:
        target.mkdir()
        durable, now = self._entries[folder], self._listing(folder)
        for name in sorted({*durable, *now}):
            held = now if durable.get(name, self) is not now.get(name, self) and chance() else durable
            if name not in held:
                continue
            file = held[name]
            if file is None:
                self._write(folder / name, target / name, chance)
            else:
                (target / name).write_bytes(file.now() if chance() else file.durable)


class TappedStore:
    """A store whose every call, and every call of its leases, passes through `tap` on its way to another."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.calls: list[str] = []

    def __getattr__(self, name: str) -> Any:
        value = getattr(self.inner, name)
        return partial(self.tap, name, value) if callable(value) else value

    def tap(self, name: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """One call; the subclasses decide what becomes of it."""
        self.calls.append(name)
        result = call(*args, **named)
        if name == "hold":
            lease = TappedStore(result)
            lease.tap = self.tap  # type: ignore[method-assign]  # what becomes of it is decided here
            return lease
        return result


class StoppingStore(TappedStore):
    """A store whose process dies at the n-th call (counted from 1), by turns before and after it is done."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.stop_at: int | None = None
        self.stopped = False

    def tap(self, name: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Let the call through, or die."""
        if self.stopped:
            raise Stopped
        if self.stop_at is None or len(self.calls) + 1 < self.stop_at:
            return super().tap(name, call, *args, **named)
        self.kill()
        if self.stop_at % 2:
            call(*args, **named)
        raise Stopped

    def kill(self) -> None:
        """Die now: no further call does anything; what it held stays held until its lease is over."""
        self.stopped = True


class LosingStore(TappedStore):
    """A store whose next creates do their work and lose the reply: the caller hears "exists already"."""

    def __init__(self, inner: Any, *, lose: int = 1, prefix: str = "") -> None:
        super().__init__(inner)
        self.lose = lose
        self.prefix = prefix

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Create, and say False although it was done."""
        created = bool(self.inner.create(key, data, unless=unless))
        if created and self.lose and key.startswith(self.prefix):
            self.lose -= 1
            return False
        return created


class UnlockedStore(TappedStore):
    """A store without a queue: everybody's turn comes at once, and only `create` decides."""

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """Let everybody through."""
        return nullcontext(False)


class CountingStore(TappedStore):
    """A store that counts what it is asked."""

    def __init__(self, inner: Any) -> None:
        super().__init__(inner)
        self.asked: Counter[str] = Counter()

    def tap(self, name: str, call: Callable[..., Any], *args: Any, **named: Any) -> Any:
        """Count the call, and hand it on."""
        self.asked[name] += 1
        return call(*args, **named)
