"""A store behind a network, tried again: bounded, with jitter, and never twice what must happen once."""

from __future__ import annotations

import logging
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, TypeVar, cast
from weakref import WeakValueDictionary

from octavo.domain.ports import Store
from octavo.errors import StoreFull, StoreUnfit, Unavailable

T = TypeVar("T")
_log = logging.getLogger("octavo.stores")
_ATTEMPTS = 6
_PAUSE_SECONDS = 0.05


class Patience:
    """How often and after what pauses the stores of one place try again what was `Unavailable`.

    The writers of an account in this process stand in one line: they have one state in common, so whoever
    comes next begins when it is up to date.
    """

    def __init__(self, attempts: int = _ATTEMPTS, sleep: Callable[[float], None] = time.sleep) -> None:
        self._attempts, self._sleep = attempts, sleep
        self._lines: WeakValueDictionary[str, Any] = WeakValueDictionary()
        self._guard = threading.Lock()

    def store(self, inner: Store, account: str) -> Store:
        """The store of one account, its calls tried again."""
        with self._guard:
            line = self._lines.setdefault(account, threading.Lock())
        return cast(Store, _TriedStore(inner, self.run, line))

    def run(self, what: str, act: Callable[[bool], T]) -> T:
        """Call until it succeeds or patience ends; the call is told whether it was tried before."""
        attempt = 1
        while True:
            try:
                return act(attempt > 1)
            except (StoreFull, StoreUnfit):
                raise
            except Unavailable as error:
                if attempt == self._attempts:
                    message = f"{error.message} (tried {attempt} times)"
                    raise Unavailable(message, hint=error.advice) from error
            _log.info("tried again act=%s attempt=%d", what, attempt)
            self._sleep(_PAUSE_SECONDS * 2 ** (attempt - 1) * (0.5 + secrets.randbelow(1000) / 1000))
            attempt += 1


class _Tried:
    """A store or a lease whose calls may happen twice: each is handed on until it succeeds."""

    def __init__(self, inner: Any, run: Callable[..., Any]) -> None:
        self._inner, self._run = inner, run

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._inner, name)
        if not callable(value):
            return value
        return lambda *args, **named: self._run(name, lambda _: value(*args, **named))


class _TriedStore(_Tried):
    """A store tried again; a reply that was lost is told from a loss by what is there."""

    def __init__(self, inner: Store, run: Callable[..., Any], line: Any) -> None:
        super().__init__(inner, run)
        self._line = line

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry durably; False, and nothing changed, if the key or the key `unless` exists."""

        def act(again: bool) -> bool:
            if self._inner.create(key, data, unless=unless):
                return True
            if not again or self._inner.read(key) != data:
                return False
            # The first try came through, its reply did not; and perhaps it never looked behind itself.
            if unless and self._inner.read(unless, first=1) is not None:
                self._inner.delete(key)
                return False
            return True

        return bool(self._run("create", act))

    def hold(self, key: str, seconds: float, *, owner: str = "") -> _Tried:
        """Take hold of a series of lines; a hold whose reply was lost is asked for under the same name."""
        mine = owner or secrets.token_hex(16)
        return _Tried(self._run("hold", lambda _: self._inner.hold(key, seconds, owner=mine)), self._run)

    @contextmanager
    def lock(self, wait_seconds: float) -> Iterator[bool]:
        """Stand in line with this process's writers, then with all others; one out of reach is no line."""
        with ExitStack() as stack:
            taken = bool(self._line.acquire(timeout=wait_seconds))
            if taken:
                stack.callback(self._line.release)
                try:
                    taken = stack.enter_context(self._inner.lock(wait_seconds))
                except Unavailable:
                    _log.info("no queue could be had")
                    taken = False
            yield taken
