"""Opening, listing and deleting accounts."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from octavo.domain.memory import check_actor, check_scope
from octavo.domain.policy import Policy
from octavo.engine.account import Account
from octavo.engine.spine import Spine, identify
from octavo.errors import BadInput, IndexDamaged, NotFound, Unavailable
from octavo.later import Later
from octavo.storage import codec
from octavo.storage.ledger import Ledger
from octavo.storage.libraries import shutil
from octavo.storage.state_db import StateDb
from octavo.storage.state_file import remove
from octavo.storage.stores.local import LocalStore
from octavo.storage.stores.names import account_of, folder_of

if TYPE_CHECKING:
    from octavo.engine import redaction
    from octavo.engine.settling import Guard
    from octavo.models import embedders
    from octavo.models.embedders import Embedder
    from octavo.models.rerank import Reranker
    from octavo.models.summarisers import Summariser
else:
    redaction = Later("octavo.engine.redaction")
    embedders = Later("octavo.models.embedders")


def open(  # noqa: A001  # octavo.open is the public name
    root: str | Path,
    account: str = "default",
    *,
    actor: str = "agent",
    scope: str | None = None,
    read_only: bool = False,
    policy: Policy | str | Path | None = None,
    embedder: Embedder | Literal[False] | None = None,
    reranker: Reranker | None = None,
    summariser: Summariser | None = None,
    clock: Callable[[], datetime] | None = None,
    accept_loss: bool = False,
    guard: Guard | None = None,
) -> Account:
    """Open an account in a folder; it comes to be if it is not there, unless it is opened to read.

    `policy` is a Policy, or the path of a TOML file used instead of the account's own policy.toml.
    `reranker` takes a second look at the best hits (`octavo.models.rerank.offline_reranker()`, an extra).
    `embedder` turns text into vectors for recall: the offline default if None, words alone if False.
    `accept_loss` opens an account whose ledger has lost its end, at what is left of it.
    `guard` is a check of the caller's own for what is remembered outside a sandbox: `(state, memory, policy)`
    gives a Stop or None, at the commit itself, so that it holds however many writers there are.
    """
    if "://" in str(root):
        raise BadInput(f"{root} is no folder", hint="remote stores come as extras; hand in a folder's path")
    check_actor(actor)
    if scope is not None:
        check_scope(scope)
    tick = clock or (lambda: datetime.now(UTC))
    store = LocalStore(Path(root) / folder_of(account))
    identity = identify(store, account, tick(), create=not read_only)
    rules = _policy(store, policy)
    ledger = Ledger(store)
    state = _state_to_read(store, ledger) if read_only else _state(store, ledger, accept_loss)
    index = store.folder / "index"
    spine = Spine(store, state, identity, policy=rules, clock=tick, read_only=read_only, index=index)
    handle = Account(
        spine,
        actor=actor,
        scope=scope,
        embedder=cache(partial(_embedder, embedder)),
        reranker=reranker,
        summariser=summariser,
        guard=guard,
    )
    if not read_only:
        _finish_sweeps(spine)
    return handle


def accounts(root: str | Path) -> list[str]:
    """The accounts in a folder."""
    try:
        found = sorted(Path(root).iterdir())
    except FileNotFoundError as error:
        raise NotFound(
            f"there is no folder {root}", hint="name the folder that holds the accounts"
        ) from error
    names = [account_of(path.name) for path in found if (path / "account.json").exists()]
    return [name for name in names if name is not None]


def delete_account(root: str | Path, account: str) -> None:
    """Delete an account whole, with its history; nothing can bring it back."""
    folder = Path(root) / folder_of(account)
    if not (folder / "account.json").exists():
        raise NotFound(f"there is no account {account!r} in {root}")
    doomed = folder.with_name(f".deleted-{folder.name}")
    folder.rename(doomed)  # gone at once for everybody, even if the removal is interrupted
    shutil.rmtree(doomed)


def _embedder(given: Embedder | Literal[False] | None) -> Embedder | None:
    """The embedder asked for, or the offline default if installed; nothing loads before its first use."""
    if given is None:
        return embedders.offline_embedder() if embedders.is_offline_installed() else None
    return given or None


def _policy(store: LocalStore, given: Policy | str | Path | None) -> Policy:
    if isinstance(given, Policy):
        return given
    if given is not None:
        path = Path(given)
        if not path.is_file():
            raise NotFound(f"there is no policy file {path}", hint="name a TOML file")
        return codec.decode_policy(path.read_bytes(), str(path))
    own = store.read("policy.toml")
    return Policy() if own is None else codec.decode_policy(own, str(store.folder / "policy.toml"))


def _state(store: LocalStore, ledger: Ledger, accept_loss: bool) -> StateDb:
    """The account's own state file, made anew if it is damaged or tells another history."""
    path = store.folder / "index" / "state.db"
    _hide_from_git(path.parent)
    try:
        state = StateDb(path)
        if accept_loss and not ledger.exists(state.watermark()[0]):
            state.rebuild(ledger)
        return _followed(state, ledger)
    except IndexDamaged:
        remove(path)
        return _followed(StateDb(path), ledger)


def _finish_sweeps(spine: Spine) -> None:
    """Finish a redaction that was interrupted, before anybody reads."""
    try:
        if spine.state.others("redaction"):
            redaction.sweep(spine)
    except IndexDamaged:
        spine.state.rebuild(spine.ledger)
        redaction.sweep(spine)


def _followed(state: StateDb, ledger: Ledger) -> StateDb:
    try:
        state.follow(ledger)
    except BaseException:
        state.close()
        raise
    return state


def _hide_from_git(index: Path) -> None:
    """What is derived stays out of a repository that holds an account."""
    try:
        index.mkdir(exist_ok=True)
        if not (index / ".gitignore").exists():
            (index / ".gitignore").write_text("*\n")
    except OSError as error:
        hint = "check the folder's permissions, or open the account with read_only=True"
        raise Unavailable(f"writing {index}: {error.strerror}", hint=hint) from error


def _state_to_read(store: LocalStore, ledger: Ledger) -> StateDb:
    """The account's state if it is current, else a private copy brought up to date; nothing is touched."""
    path = store.folder / "index" / "state.db"
    try:
        if path.exists():
            state = StateDb(path, read_only=True)
            if state.is_current(ledger):
                return state
            state.close()
        return _followed(StateDb.private(path), ledger)
    except IndexDamaged:
        return _followed(StateDb.private(None), ledger)
