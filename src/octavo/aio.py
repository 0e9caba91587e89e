"""The Python API for asyncio: the same accounts, versions and sandboxes, every call in a thread.

Nothing is written twice: each method here is the method of the same name, awaited. A call that is cancelled
still ends in its thread; what it wrote stays written.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from functools import wraps
from types import TracebackType
from typing import Any, Concatenate, Generic, ParamSpec, Self, TypeVar, cast

from octavo.domain.buffer import SessionBuffer
from octavo.doors.python import open as _open
from octavo.engine import account as accounts
from octavo.engine import reading
from octavo.engine import sandbox as sandboxing

P = ParamSpec("P")
R = TypeVar("R")
H = TypeVar("H", bound=reading.Reader)
K = TypeVar("K", accounts.Account, sandboxing.Sandbox)
A = TypeVar("A")
Awaited = Callable[Concatenate[Any, P], Coroutine[Any, Any, R]]


class _Handle(Generic[H]):
    """A handle whose methods are awaited; `sync` is the handle itself."""

    def __init__(self, sync: H) -> None:
        self.sync = sync

    async def version(self) -> int:
        """The version that is being read."""
        return await self.run(lambda: self.sync.version)

    async def run(self, call: Callable[[], R]) -> R:
        """Do something with the handle in a thread."""
        return await asyncio.to_thread(call)

    def __getattr__(self, name: str) -> Any:
        """What needs no waiting (a name, an id, a result) is the handle's own; so a type checker reads the
        methods that `_whole` gives a class."""
        return getattr(self.sync, name)


def _awaited(method: Callable[Concatenate[Any, P], R]) -> Awaited[P, R]:
    """A method of a handle, done in a thread."""

    @wraps(method)
    async def call(self: _Handle[Any], /, *args: P.args, **named: P.kwargs) -> R:
        # By its name, for a kind of handle may have its own.
        return await self.run(lambda: cast(R, getattr(self.sync, method.__name__)(*args, **named)))

    return call


def _opening(method: Callable[Concatenate[Any, P], R], wrap: Callable[[R], Any]) -> Awaited[P, Any]:
    """A method that gives back another handle, which is awaited as well."""

    @wraps(method)
    async def call(self: _Handle[Any], /, *args: P.args, **named: P.kwargs) -> Any:
        return wrap(await self.run(lambda: method(self.sync, *args, **named)))

    return call


def _whole(sync: type) -> Callable[[type[A]], type[A]]:
    """Let a class have every method of a handle; those that a line of it spells are typed, too."""

    def filled(cls: type[A]) -> type[A]:
        for name, method in inspect.getmembers(sync, inspect.isfunction):
            spelt = getattr(cls, name, None)
            if name.startswith("_"):
                continue
            if spelt is None or getattr(spelt, "__wrapped__", method) is not method:
                setattr(cls, name, _awaited(method))
        return cls

    return filled


class _Reader(_Handle[H]):
    """What can be asked of every handle."""

    brief = _awaited(reading.Reader.brief)
    get = _awaited(reading.Reader.get)
    history = _awaited(reading.Reader.history)
    memories = _awaited(reading.Reader.memories)
    recall = _awaited(reading.Reader.recall)


@_whole(reading.Snapshot)
class Snapshot(_Reader[reading.Snapshot]):
    """An account as it was, for reads that are awaited."""


class _Held(_Reader[K]):
    """A handle that is let go of on leaving."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.run(lambda: self.sync.__exit__(kind, error, trace))


@_whole(sandboxing.Sandbox)
class Sandbox(_Held[sandboxing.Sandbox]):
    """One conversation's workspace; its calls follow each other, however many wait."""

    def __init__(self, sync: sandboxing.Sandbox) -> None:
        super().__init__(sync)
        self._turn = asyncio.Lock()

    async def run(self, call: Callable[[], R]) -> R:
        """Do something with the sandbox in a thread, after what was asked of it before."""
        async with self._turn:
            return await asyncio.to_thread(call)

    async def buffer(self) -> SessionBuffer:
        """What has been written so far."""
        return await self.run(lambda: self.sync.buffer)

    close = _awaited(sandboxing.Sandbox.close)
    consolidate = _awaited(sandboxing.Sandbox.consolidate)
    discard = _awaited(sandboxing.Sandbox.discard)
    forget = _awaited(sandboxing.Sandbox.forget)
    remember = _awaited(sandboxing.Sandbox.remember)
    revise = _awaited(sandboxing.Sandbox.revise)
    turn = _awaited(sandboxing.Sandbox.turn)
    update_state = _awaited(sandboxing.Sandbox.update_state)
    use = _awaited(sandboxing.Sandbox.use)
    write_episode = _awaited(sandboxing.Sandbox.write_episode)


@_whole(accounts.Account)
class Account(_Held[accounts.Account]):
    """An open account whose methods are awaited."""

    approve = _awaited(accounts.Account.approve)
    catch_up = _awaited(accounts.Account.catch_up)
    close = _awaited(accounts.Account.close)
    decline = _awaited(accounts.Account.decline)
    diff = _awaited(accounts.Account.diff)
    forget = _awaited(accounts.Account.forget)
    proposals = _awaited(accounts.Account.proposals)
    remember = _awaited(accounts.Account.remember)
    remember_many = _awaited(accounts.Account.remember_many)
    revise = _awaited(accounts.Account.revise)
    sandboxes = _awaited(accounts.Account.sandboxes)
    sessions = _awaited(accounts.Account.sessions)
    versions = _awaited(accounts.Account.versions)
    wait = _awaited(accounts.Account.wait)

    at = _opening(accounts.Account.at, Snapshot)
    sandbox = _opening(accounts.Account.sandbox, Sandbox)
    resume = _opening(accounts.Account.resume, Sandbox)


def _opened(open_: Callable[P, accounts.Account]) -> Callable[P, Coroutine[Any, Any, Account]]:
    @wraps(open_)
    async def call(*args: P.args, **named: P.kwargs) -> Account:
        return Account(await asyncio.to_thread(open_, *args, **named))

    return call


open = _opened(_open)  # noqa: A001  # octavo.aio.open is the public name
