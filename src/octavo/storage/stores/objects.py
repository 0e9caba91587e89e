"""The store in an object store: S3 and its like, Google, Azure."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from octavo.errors import NotFound
from octavo.storage.stores.bucket import Objects, connect
from octavo.storage.stores.entries import checked
from octavo.storage.stores.names import account_of, folder_of
from octavo.storage.stores.object_lease import ObjectLease, Series
from octavo.storage.stores.probing import probe
from octavo.storage.stores.retrying import Patience, Retrying, RetryingStore

_ACCOUNTS = "accounts/"


class ObjectsPlace:
    """Accounts below a prefix of a bucket."""

    def __init__(self, url: str, *, patience: Patience | None = None) -> None:
        self._root = connect(url)
        self.name, self.close = self._root.name, self._root.close
        self._retrying = Retrying(patience)
        self._guard = threading.Lock()
        self._is_probed = False

    def open(self, account: str) -> RetryingStore:
        """The store of one account; the first time it is seen that the place keeps the condition."""
        with self._guard:
            if not self._is_probed:
                probe(self._retrying.store(ObjectStore(self._root, "probes/"), ""))
                self._is_probed = True
        return self._retrying.store(self._store(account), account)

    def accounts(self, after: str = "", limit: int = 1000) -> list[str]:
        """The accounts beyond one of them, in the order of the place, at most so many."""
        start = _ACCOUNTS + folder_of(after) if after else ""
        keys = [key.removeprefix(_ACCOUNTS) for key, _ in self._root.listed(_ACCOUNTS, start, limit)]
        return [name for name in map(account_of, keys) if name is not None]

    def delete(self, account: str) -> None:
        """Remove an account whole; first what says that it is there."""
        store = self._store(account)
        if store.read("account.json") is None:
            raise NotFound(f"there is no account {account!r} in {self.name}")
        store.delete("account.json")
        while keys := [key for key, _ in store.listed("", "", 1000)]:
            store.delete(*keys)
        self._root.delete(_ACCOUNTS + folder_of(account))

    def _store(self, account: str) -> ObjectStore:
        folder = folder_of(account)
        return ObjectStore(self._root, f"data/{folder}/", _ACCOUNTS + folder)


class ObjectStore(Objects):
    """One account's entries as objects below a prefix; an object `marker` of the place lists it."""

    def __init__(self, root: Objects, prefix: str, marker: str = "") -> None:
        super().__init__(*root.below(prefix))
        self._root, self._marker = root, marker

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry durably; False, and nothing changed, if the key or the key `unless` exists."""
        if key == "account.json" and self._marker:
            self._root.replace(self._marker, b"")
        if not self.put_new(key, data):
            return False
        if unless and self.modified(unless) is not None:
            self.delete(key)
            return False
        return True

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """The keys in a folder (the prefix ends in a slash) beyond one of them, sorted, at most so many."""
        return [key for key, _ in self.listed(prefix, after, limit)]

    def hold(self, key: str, seconds: float, *, owner: str = "") -> ObjectLease:
        """Take hold of a series of lines; SandboxBusy if somebody has it and its time is not over."""
        return ObjectLease(self, checked(key), owner or secrets.token_hex(16), seconds)

    def lines(self, key: str) -> tuple[Sequence[bytes], int] | None:
        """The whole lines of a series and the bytes of a torn last one, None if there is no series."""
        series = Series.read(self, checked(key))
        return None if series is None else (series.lines, series.torn)

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """There is no line between processes here: their writers meet at `create`."""
        return nullcontext(True)

    def leftovers(self) -> Sequence[str]:
        """A request that was cut off leaves nothing."""
        return ()

    def clear_leftovers(self) -> int:
        """A request that was cut off leaves nothing."""
        return 0
