"""How a door has an operation done: the account is opened, its subject found, the function called."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, closing, contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from octavo.domain.policy import Policy
from octavo.domain.ports import Store
from octavo.doors import models, python, telemetry
from octavo.doors.operations.table import Operation, Progress
from octavo.doors.operations.values import values_of
from octavo.doors.settings import Settings, captures_text
from octavo.engine import opening
from octavo.engine.account import Account
from octavo.engine.reading import Reader, Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, NotFound, Unavailable
from octavo.storage import codec
from octavo.storage.stores.places import place_of

_Taken = TypeVar("_Taken")
Take = Callable[[str], AbstractContextManager[Sandbox]]
_MOST_NAMED = 12


def perform(
    operation: Operation, settings: Settings, said: Mapping[str, Any], progress: Progress | None = None
) -> Any:
    """Do an operation with what a door was told; what is None, absent or an empty list was not said."""
    values = values_of(operation.parameters, said)
    if operation.subjects == (Settings,):
        return of_settings(operation, settings, values)
    with open_account(
        settings,
        # A sandbox has one owner at a time: even reading one takes it up, and that is a write.
        writes=operation.writes or (Sandbox in operation.subjects and "sandbox" in values),
        indexes=operation.indexes and not operation.writes,
        begins=operation.begins,
        accept_loss=values.get("accept", False),
        words=values.pop("words", False) if operation.indexes else False,
    ) as account:
        return call(operation, account, values, progress)


def of_settings(operation: Operation, settings: Settings, values: Mapping[str, Any]) -> Any:
    """Do an operation that is asked of the folder of accounts."""
    with telemetry.span(operation.span, values.get("name", settings.account), values) as told:
        told.value = operation(settings, **values)
    return named(operation, told.value)


def call(
    operation: Operation,
    account: Account,
    values: dict[str, Any],
    progress: Progress | None = None,
    take: Take | None = None,
) -> Any:
    """Do an operation on an open account, in the sandbox or older version that is meant.

    A door that holds sandboxes for its clients says how one is taken up; else it is let go at the end.
    """
    sandbox = values.pop("sandbox", None) if Sandbox in operation.subjects else None
    when = values.pop("at", None) if Snapshot in operation.subjects else None
    if operation.takes_progress:
        values["progress"] = progress
    with (
        telemetry.span(operation.span, account.name, values, text=captures_text()) as told,
        _subject(account, sandbox, when, take) as subject,
    ):
        told.value = operation(subject, **values)
    return named(operation, told.value)


def named(operation: Operation, value: Any) -> Any:
    """What an operation gave, under its name if it is a bare value."""
    return value if operation.result is None else {operation.result: value}


def open_account(
    settings: Settings,
    *,
    writes: bool = False,
    indexes: bool = False,
    begins: bool = False,
    accept_loss: bool = False,
    words: bool = False,
    may_only_read: bool = False,
) -> Account:
    """The account, which must be there, unless it is the first of its folder and this may begin it.

    What indexes, or may do with reading alone, also works where nothing may be written.
    """
    _must_be_folder(settings.root)
    if not exists(settings) and not (begins and not accounts_in(settings.root, 1)):
        raise missing(settings, settings.account)
    policy = rules(settings) if writes and settings.models else None
    how: dict[str, Any] = {
        "actor": settings.actor,
        "scope": settings.scope,
        "embedder": False if words else models.embedder(settings.models),
        "reranker": models.reranker(settings.models) if indexes and not words else False,
        "policy": policy,
        "summariser": models.summariser(settings.models, policy=policy.compression) if policy else None,
        "accept_loss": accept_loss,
        "cache": settings.cache,
    }
    try:
        return python.open(settings.root, settings.account, read_only=not (writes or indexes), **how)
    except Unavailable:
        if not may_only_read and (writes or not indexes):
            raise
        return python.open(settings.root, settings.account, read_only=True, **how)


def rules(settings: Settings) -> Policy:
    """The account's policy, which a summariser must know before the account is open."""
    own = store_of(settings).read("policy.toml")
    return Policy() if own is None else codec.decode_policy(own, policy_name(settings))


@contextmanager
def _subject(
    account: Account, sandbox: str | None, when: int | datetime | None, take: Take | None
) -> Iterator[Reader]:
    """What is meant: the account itself, an open sandbox of it, or an older version."""
    if sandbox is not None and when is not None:
        raise BadInput("a sandbox has no older versions", hint="say --sandbox or --at, not both")
    if sandbox is not None:
        with take(sandbox) if take else closing(taken(account, sandbox, account.resume)) as held:
            yield held
    else:
        yield account if when is None else account.at(when)


def taken(account: Account, name: str, take: Callable[[str], _Taken]) -> _Taken:
    """Take a sandbox by its id, or by its name when only one open sandbox has it."""
    open_ = account.sandboxes()
    named = [info.id for info in open_ if name == info.name]
    if len(named) > 1:
        raise BadInput(f"{len(named)} sandboxes are called {name!r}", hint=f"say which: {', '.join(named)}")
    try:
        return take(named[0] if named else name)
    except (NotFound, BadInput) as error:
        there = ", ".join(f"{info.id} ({info.name})" for info in open_[:_MOST_NAMED])
        hint = f"open are: {there}" if open_ else "none is open; `octavo sandbox` opens one"
        raise NotFound(f"there is no sandbox {name!r}", hint=hint) from error


def exists(settings: Settings) -> bool:
    """Whether the account of the settings is there."""
    return store_of(settings).read("account.json", first=1) is not None


def store_of(settings: Settings) -> Store:
    """Where the account of the settings lies."""
    return place_of(settings.root).open(settings.account)


def policy_name(settings: Settings) -> str:
    """How people call the account's policy."""
    folder = store_of(settings).folder
    return f"policy.toml of {settings.account!r}" if folder is None else str(folder / "policy.toml")


def accounts_in(root: Path | str, limit: int | None = None) -> list[str]:
    """The accounts in a place, or the first of them; a folder that is not there holds none."""
    if isinstance(root, str):
        return opening.accounts(root, limit=limit)
    _must_be_folder(root)
    return opening.accounts(root, limit=limit) if root.exists() else []


def _must_be_folder(root: Path | str) -> None:
    if isinstance(root, Path) and root.exists() and not root.is_dir():
        raise BadInput(f"{root} is no folder", hint="name the folder that holds the accounts")


def missing(settings: Settings, account: str) -> NotFound:
    """The error that names the accounts there are, to who may know of them."""
    root = settings.root
    if settings.is_alone:
        return NotFound(f"the account {account!r} is not there any more", hint="ask who gave you its token")
    known = accounts_in(root, _MOST_NAMED + 1)  # there may be a million
    more = "" if len(known) <= _MOST_NAMED else " and more"
    there = f"there are: {', '.join(known[:_MOST_NAMED])}{more}" if known else "there is none yet"
    return NotFound(
        f"there is no account {account!r} in {place_of(root).name}",
        hint=f"{there}; `octavo init --account {account}` begins it",
    )
