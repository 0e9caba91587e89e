"""The pool: accounts and sandboxes that stay open between the requests of a door that serves many."""

from __future__ import annotations

import signal
import threading
import time
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from octavo.doors import models, python
from octavo.doors.operations import Operation, Progress, call, performing
from octavo.doors.operations.values import values_of
from octavo.doors.settings import Settings
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.errors import Busy, SandboxBusy, Unavailable
from octavo.models.embedders import Embedder, is_offline_installed, offline_embedder
from octavo.models.rerank import Reranker, is_rerank_installed, offline_reranker
from octavo.storage.stores.names import folder_of

_Key = tuple[Path | str, str, str, str | None, bool]  # place, account, actor, scope, words alone
_WAIT_SECONDS = 10.0


class _Held:
    """A held account: how many are using it now, and by which files it is known to be still the same."""

    def __init__(self, account: Account, files: tuple[Any, ...]) -> None:
        self.account, self.files, self.leases = account, files, 1


class _Slot:
    """The place of a sandbox that the pool owns for its clients; one of them at a time is in it."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.used = time.monotonic()
        self.account: Account | None = None
        self.sandbox: Sandbox | None = None

    def let_go(self) -> None:
        """Leave the sandbox to whoever wants it; what it holds is on the disk."""
        if self.sandbox is not None:
            self.sandbox.close()
        self.account = self.sandbox = None


class Pool:
    """Open accounts by place, name, actor and scope; the least recently used idle ones are closed.

    Who asks is a `Settings`: a door makes it from a token or from its own settings, never from a payload. A
    held account indexes in the background what is written; one that was deleted or has got another policy is
    not used again. Nothing depends on a clean end: what was acknowledged is on the disk.
    """

    def __init__(self, *, most: int = 100, most_sandboxes: int = 200, idle_seconds: float = 30.0) -> None:
        self._most, self._most_sandboxes, self._idle_seconds = most, most_sandboxes, idle_seconds
        self._accounts: OrderedDict[_Key, _Held] = OrderedDict()
        self._retired: list[_Held] = []  # not to be used again, but somebody still is
        self._opening: set[_Key] = set()
        self._slots: dict[tuple[Path | str, str, str], _Slot] = {}
        self._changed = threading.Condition()
        self._ending = threading.Event()
        self._sweeper: threading.Thread | None = None
        self._opened = self._closed = 0

    def perform(
        self, operation: Operation, who: Settings, said: Mapping[str, Any], progress: Progress | None = None
    ) -> Any:
        """Do an operation for somebody, as `operations.perform` does it, on what is held open."""
        values = values_of(operation.parameters, said)
        if operation.subjects == (Settings,):
            if operation.writes:
                self.retire(who.root, values.get("name", who.account))
            return performing.named(operation, operation(who, **values))
        words = operation.indexes and bool(values.pop("words", False))
        with self.account(who, begins=operation.begins, words=words) as account:
            return call(operation, account, values, progress, partial(self.sandbox, who, account))

    @contextmanager
    def account(self, who: Settings, *, begins: bool = False, words: bool = False) -> Iterator[Account]:
        """An open account for as long as the block lasts; it is not closed under it."""
        held = self._lease((who.root, who.account, who.actor, who.scope, words), who, begins)
        try:
            yield held.account
        finally:
            with self._changed:
                held.leases -= 1
                is_last = not held.leases and held in self._retired
                if is_last:
                    self._retired.remove(held)
                self._changed.notify_all()
            if is_last:
                self._shut(held)

    @contextmanager
    def sandbox(self, who: Settings, account: Account, name: str) -> Iterator[Sandbox]:
        """A sandbox by id or name, held from one request to the next; the next client waits for its turn."""
        place = (who.root, who.account, name)
        if place not in self._slots:
            place = (who.root, who.account, performing.taken(account, name, str))
        slot = self._entered(place)
        try:
            if slot.sandbox is None or slot.account is not account or not slot.sandbox.is_open:
                slot.let_go()
                slot.sandbox, slot.account = account.resume(place[2]), account
            yield slot.sandbox
        finally:
            slot.used = time.monotonic()
            if slot.sandbox is None or not slot.sandbox.is_open:
                self._slots.pop(place, None)
            slot.lock.release()

    def retire(self, root: Path | str, account: str) -> None:
        """Let go of an account in whoever's name it is held; who is inside finishes first."""
        with self._changed:
            doomed = [self._accounts.pop(key) for key in list(self._accounts) if key[:2] == (root, account)]
            self._changed.wait_for(lambda: not any(held.leases for held in doomed), _WAIT_SECONDS)
        for held in doomed:
            self._shut(held)

    def close(self) -> None:
        """Let nobody in any more, wait for those inside, and let go of everything."""
        self._ending.set()
        with self._changed:
            self._changed.notify_all()
            held = [*self._accounts.values(), *self._retired]
            self._changed.wait_for(lambda: not any(one.leases for one in held), _WAIT_SECONDS)
            self._accounts.clear()
        for one in held:
            self._shut(one)
        if self._sweeper is not None:
            self._sweeper.join()

    @contextmanager
    def until_told(self) -> Iterator[Self]:
        """Serve until SIGINT or SIGTERM; each ends the block like a KeyboardInterrupt, then all is closed."""
        told = (signal.SIGINT, signal.SIGTERM)  # both: what starts in a shell's background ignores the first
        before = [signal.signal(number, signal.default_int_handler) for number in told]
        try:
            with self, suppress(KeyboardInterrupt):
                yield self
        finally:
            for number, handler in zip(told, before, strict=True):
                signal.signal(number, handler)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def counts(self) -> dict[str, int]:
        """How many accounts and sandboxes are held, leased, and how many accounts were opened and closed."""
        with self._changed:
            return {
                "accounts": len(self._accounts),
                "sandboxes": len(self._slots),
                "leases": sum(held.leases for held in self._accounts.values()),
                "opened": self._opened,
                "closed": self._closed,
            }

    def _lease(self, key: _Key, who: Settings, begins: bool) -> _Held:
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            files = _files(who)
            with self._changed:
                if self._ending.is_set():
                    raise Unavailable("the server is ending", hint="try again when it is back")
                held = self._accounts.get(key)
                if held is not None and held.files == files:
                    held.leases += 1
                    self._accounts.move_to_end(key)
                    return held
                doomed = self._room_for(key)
                if doomed is None and not self._changed.wait(max(0.0, deadline - time.monotonic())):
                    raise Busy(f"all {self._most} accounts that may be open at once are in use")
            if doomed is not None:
                for one in doomed:
                    self._shut(one)
                return self._begin(key, who, begins)

    def _room_for(self, key: _Key) -> list[_Held] | None:
        """The idle accounts to close so that one may be opened, which is then ours to open; None is wait."""
        if key in self._opening:
            return None
        doomed: list[_Held] = []
        outdated = self._accounts.pop(key, None)
        if outdated is not None:
            (self._retired if outdated.leases else doomed).append(outdated)
        if len(self._accounts) + len(self._opening) >= self._most:
            idle = next((other for other, held in self._accounts.items() if not held.leases), None)
            if idle is None:
                return None
            doomed.append(self._accounts.pop(idle))
        self._opening.add(key)
        return doomed

    def _begin(self, key: _Key, who: Settings, begins: bool) -> _Held:
        held = None
        try:
            account = self._open(who, begins=begins, words=key[4])
            held = _Held(account, _files(who))
            return held
        finally:
            with self._changed:
                self._opening.discard(key)
                if held is not None:
                    self._accounts[key] = held
                    self._opened += 1
                self._changed.notify_all()

    def _open(self, who: Settings, *, begins: bool, words: bool) -> Account:
        if not performing.exists(who) and not (begins and not performing.accounts_in(who.root, 1)):
            raise performing.missing(who.root, who.account)
        rules = performing.rules(who) if who.models else None
        embedder, reranker = models.embedder(who.models), models.reranker(who.models)
        how: dict[str, Any] = {
            "actor": who.actor,
            "scope": who.scope,
            "embedder": False if words else self._offline[0] if embedder is None else embedder,
            "reranker": False if words else self._offline[1] if reranker is None else reranker,
            "policy": rules,
            "summariser": models.summariser(who.models, policy=rules.compression) if rules else None,
            "cache": who.cache,
        }
        try:
            return python.open(who.root, who.account, **how)
        except Unavailable:  # a folder that may not be written can still be read
            return python.open(who.root, who.account, read_only=True, **how)

    @cached_property
    def _offline(self) -> tuple[Embedder | None, Reranker | None]:
        """One embedder and one reranker for all accounts: a model is loaded once."""
        embedder = offline_embedder() if is_offline_installed() else None
        return embedder, offline_reranker() if is_rerank_installed() else None

    def _shut(self, held: _Held) -> None:
        """Close an account that nobody uses, after the sandboxes that were taken up by it."""
        self._sweep(time.monotonic(), held.account)
        held.account.close()
        self._closed += 1

    def _entered(self, place: tuple[Path | str, str, str]) -> _Slot:
        """The slot of a sandbox, its lock taken."""
        deadline = time.monotonic() + _WAIT_SECONDS
        while True:
            with self._changed:
                slot = self._slots.setdefault(place, _Slot())
                if self._sweeper is None and not self._ending.is_set():
                    self._sweeper = threading.Thread(target=self._watch, name="octavo-pool", daemon=True)
                    self._sweeper.start()
            if not slot.lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
                raise SandboxBusy(f"sandbox {place[2]!r} is in use by another request")
            if self._slots.get(place) is slot:
                if len(self._slots) > self._most_sandboxes:
                    self._sweep(min(other.used for other in list(self._slots.values())))
                return slot
            slot.lock.release()  # it was let go while we waited; the next one is ours

    def _watch(self) -> None:
        """Let go of sandboxes that nobody has used for a while, so that another process can take them up."""
        while not self._ending.wait(self._idle_seconds / 2):
            self._sweep(time.monotonic() - self._idle_seconds)

    def _sweep(self, since: float, account: Account | None = None) -> None:
        """Let go of sandboxes that nobody is in and nobody has used since then: of one account, or all."""
        for place, slot in list(self._slots.items()):
            if account in (None, slot.account) and slot.lock.acquire(blocking=False):
                try:
                    if slot.used <= since and account in (None, slot.account):
                        self._slots.pop(place, None)
                        slot.let_go()
                finally:
                    slot.lock.release()


def _files(who: Settings) -> tuple[Any, ...]:
    """What tells an account in a folder from one that took its place, and its policy from a later one."""
    if isinstance(who.root, str):
        return ()
    return tuple(map(_mark, _telling(who.root, who.account)))


@lru_cache(maxsize=10_000)
def _telling(root: Path, account: str) -> tuple[Path, ...]:
    folder = root / folder_of(account)
    return folder / "account.json", folder / "policy.toml"


def _mark(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_ino, status.st_mtime_ns
