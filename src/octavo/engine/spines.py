"""How the spine of an account is opened: its store, identity, policy, and its state brought up to date."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from octavo.domain.policy import Policy
from octavo.domain.ports import Place, Store
from octavo.engine.spine import Spine, identify, must_be_its_key
from octavo.errors import IndexDamaged, NotFound
from octavo.storage import cache, checkpoints, codec
from octavo.storage.index import clear
from octavo.storage.ledger import GENESIS, Ledger
from octavo.storage.state_db import StateDb
from octavo.storage.state_file import remove
from octavo.storage.stores.disk import Disk, replace_file, saying
from octavo.storage.stores.places import place_of

_NOWHERE = Path("/nonexistent/octavo/state.db")


def open_spine(
    root: str | Path | Place,
    account: str,
    *,
    read_only: bool = False,
    policy: Policy | str | Path | None = None,
    clock: Callable[[], datetime] | None = None,
    accept_loss: bool = False,
    cache_root: Path | None = None,
) -> Spine:
    """Open an account's spine; the account comes to be if it is not there, unless it is opened to read."""
    place = place_of(root)
    store = place.open(account)
    tick = clock or (lambda: datetime.now(UTC))
    identity = identify(store, account, None if read_only else tick())
    rules = _policy(store, policy, f"policy.toml of {account!r} in {place.name}")
    ledger = Ledger(store)
    if not read_only:
        must_be_its_key(ledger, identity)
    if read_only and accept_loss:
        return Spine(store, _until_damage(ledger), identity, policy=rules, clock=tick, read_only=True)
    if store.folder is None:  # what is derived is this machine's own, so it is kept up to date even to read
        home, release = cache.folder_for(cache_root, place.name, account)
        try:
            state = _state(home, store, ledger, accept_loss)
        except BaseException:
            release()
            raise
        state.when_closed = release
        state.when_redacted = partial(_scrub, state, home / "recall")
    else:
        home = store.folder / "index"
        state = _state_to_read(home, ledger) if read_only else _state(home, store, ledger, accept_loss)
    return Spine(store, state, identity, policy=rules, clock=tick, read_only=read_only, index=home)


def _policy(store: Store, given: Policy | str | Path | None, name: str) -> Policy:
    if isinstance(given, Policy):
        return given
    if given is not None:
        path = Path(given)
        if not path.is_file():
            raise NotFound(f"there is no policy file {path}", hint="name a TOML file")
        return codec.decode_policy(Disk().read(path), str(path))
    own = store.read("policy.toml")
    return Policy() if own is None else codec.decode_policy(own, name)


def _state(home: Path, store: Store, ledger: Ledger, accept_loss: bool) -> StateDb:
    """The account's own state file, made anew if it is damaged or tells another history."""
    path = home / "state.db"
    _hide_from_git(home)
    try:
        if not path.exists():
            checkpoints.restore(store, ledger, path)
        state = StateDb(path, ledger)
        if accept_loss and not ledger.exists(state.watermark()[0]):
            state.rebuild()
        return _followed(state)
    except IndexDamaged:
        remove(path)
        return _followed(StateDb(path, ledger))


def _followed(state: StateDb) -> StateDb:
    try:
        state.open()
    except BaseException:
        state.close()
        raise
    return state


def _until_damage(ledger: Ledger) -> StateDb:
    """A private state of what lies before the first damage of a ledger, beside no index."""
    state = StateDb.private(_NOWHERE, ledger, follows=False)
    for version in ledger.newer(0, GENESIS, upto=ledger.whole_until()):
        state.apply(version)
    return state


def _scrub(state: StateDb, index: Path) -> None:
    """Make this machine's files anew from a ledger that somebody else has erased something from."""
    state.rebuild()
    state.scrub()
    if index.exists():
        clear(index)


def _hide_from_git(index: Path) -> None:
    """What is derived stays out of a repository that holds an account."""
    with saying(f"writing {index}"):
        if not (index / ".gitignore").exists():
            index.mkdir(exist_ok=True, mode=0o700)
            replace_file(Disk(), index / ".gitignore", b"*\n")


def _state_to_read(home: Path, ledger: Ledger) -> StateDb:
    """The account's state if it is current, else a private copy brought up to date; nothing is touched."""
    path = home / "state.db"
    if path.exists():
        with suppress(IndexDamaged):
            state = StateDb(path, ledger, read_only=True)
            if state.is_current():
                return state
            state.close()
            return _followed(StateDb.private(path, ledger, copied=True))
    return _followed(StateDb.private(path, ledger))
