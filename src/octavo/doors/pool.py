"""The pool: accounts that stay open between the requests of a door that serves many."""

from __future__ import annotations

import signal
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Self

from octavo.doors.conversations import taken_up
from octavo.doors.operations import Operation, call, performing
from octavo.doors.operations.values import values_of
from octavo.doors.settings import Settings
from octavo.engine.account import Account
from octavo.errors import Busy, Unavailable
from octavo.storage.stores.names import folder_of

_Key = tuple[Path | str, str, str, str | None, bool]  # place, account, actor, scope, words alone
_WAIT_SECONDS = 10.0


class _Held:
    """An account's place in the pool: opened by who comes first, closed when it is let go and empty."""

    def __init__(self) -> None:
        self.opening = threading.Lock()
        self.account: Account | None = None
        self.files: tuple[Any, ...] = ()  # by which it is known to be still the same
        self.leases = 0


class Pool(AbstractContextManager["Pool"]):
    """Open accounts by place, name, actor and scope; the least recently used idle ones are closed.

    Who asks is a `Settings`: a door makes it from a token or from its own settings, never from a payload. A
    held account indexes in the background what is written; one that was deleted or has got another policy is
    not used again. Nothing depends on a clean end: what was acknowledged is on the disk.
    """

    def __init__(self, *, most: int = 100) -> None:
        self._most = most
        self._accounts: OrderedDict[_Key, _Held] = OrderedDict()
        self._let_go: list[_Held] = []  # not to be entered again; closed when the last one leaves
        self._changed = threading.Condition()
        self._shut = set[tuple[Path | str, str]]()  # accounts that nobody may enter now
        self._is_ending = False
        self._opened = self._closed = 0

    def perform(self, operation: Operation, who: Settings, said: Mapping[str, Any]) -> Any:
        """Do an operation for somebody, as `operations.perform` does it, on what is held open."""
        values = values_of(operation.parameters, said)
        if operation.subjects == (Settings,):
            with self._alone(who.root, values.get("name", who.account)):
                return performing.of_settings(operation, who, values)
        words = operation.indexes and bool(values.pop("words", False))
        with self.account(who, begins=operation.begins, words=words) as account:
            sandboxes = partial(performing.taken, account, take=partial(taken_up, account))
            return call(operation, account, values, take=sandboxes)

    @contextmanager
    def _alone(self, root: Path | str, name: str) -> Iterator[None]:
        """An account with nobody in it for as long as the block lasts: who is inside leaves, others wait."""
        account = root, name
        with self._changed:
            if not self._changed.wait_for(lambda: account not in self._shut, _WAIT_SECONDS):
                raise Busy(f"account {name!r} is being begun or deleted")
            self._shut.add(account)
        try:
            self._leave(lambda key: key[:2] == account)
            yield
        finally:
            with self._changed:
                self._shut.discard(account)
                self._changed.notify_all()

    @contextmanager
    def account(self, who: Settings, *, begins: bool = False, words: bool = False) -> Iterator[Account]:
        """An open account for as long as the block lasts; it is not closed under it."""
        key = (who.root, who.account, who.actor, who.scope, words)
        held = self._entered(key, _files(who))
        try:
            with held.opening:
                if held.account is None:
                    how = {"writes": True, "indexes": True, "may_only_read": True, "begins": begins}
                    held.account, held.files = performing.open_account(who, words=words, **how), _files(who)
                    self._opened += 1
            yield held.account
        finally:
            with self._changed:
                held.leases -= 1
                if held.account is None and self._accounts.get(key) is held:
                    self._let_go.append(self._accounts.pop(key))  # it could not be opened
                self._changed.notify_all()
            self._close_empty()

    def close(self) -> None:
        """Let nobody in any more, wait for those inside, and let go of everything."""
        self._is_ending = True
        self._leave(lambda _: True)

    def __exit__(self, *error: object) -> None:
        self.close()

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

    @property
    def counts(self) -> dict[str, int]:
        """How many accounts are held and leased, and how many were opened and closed."""
        with self._changed:
            leases = sum(held.leases for held in self._accounts.values())
            held = {"accounts": len(self._accounts), "leases": leases}
            return {**held, "opened": self._opened, "closed": self._closed}

    def _entered(self, key: _Key, files: tuple[Any, ...]) -> _Held:
        """The place of an account, leased; who comes when all are in use waits a while."""
        with self._changed:
            outdated = self._accounts.get(key)
            if outdated is not None and outdated.account is not None and outdated.files != files:
                self._let_go.append(self._accounts.pop(key))
            if not self._changed.wait_for(lambda: self._has_room(key), _WAIT_SECONDS):
                what = f"account {key[1]!r} is being begun or deleted" if key[:2] in self._shut else ""
                raise Busy(what or f"all {self._most} accounts that may be open at once are in use")
            if self._is_ending:
                raise Unavailable("the server is ending", hint="try again when it is back")
            held = self._accounts.setdefault(key, _Held())
            held.leases += 1
            self._accounts.move_to_end(key)
        self._close_empty()
        return held

    def _has_room(self, key: _Key) -> bool:
        if key[:2] in self._shut:
            return self._is_ending
        if self._is_ending or key in self._accounts or len(self._accounts) < self._most:
            return True
        idle = next((other for other, held in self._accounts.items() if not held.leases), None)
        if idle is not None:
            self._let_go.append(self._accounts.pop(idle))
        return idle is not None

    def _leave(self, is_meant: Callable[[_Key], bool]) -> None:
        """Let go of accounts, and wait for those inside."""
        with self._changed:
            gone = [self._accounts.pop(key) for key in list(self._accounts) if is_meant(key)]
            self._let_go += gone
            self._changed.notify_all()
            self._changed.wait_for(lambda: not any(held.leases for held in gone), _WAIT_SECONDS)
        self._close_empty()

    def _close_empty(self) -> None:
        """Close what was let go and nobody is in any more."""
        with self._changed:
            empty = [held.account for held in self._let_go if held.account and not held.leases]
            self._let_go = [held for held in self._let_go if held.leases]
            self._closed += len(empty)
        for account in empty:
            account.close()


def _files(who: Settings) -> tuple[Any, ...]:
    """What tells an account in a folder from one that took its place, and its policy from a later one."""
    marks = []
    if isinstance(who.root, Path):
        folder = who.root / folder_of(who.account)
        for name in ("account.json", "policy.toml"):
            with suppress(OSError):
                status = (folder / name).stat()
                marks.append((name, status.st_ino, status.st_mtime_ns))
    return tuple(marks)
