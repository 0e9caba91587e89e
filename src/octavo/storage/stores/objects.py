"""The store in an object store: S3 and its like, Google, Azure."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext

from octavo.errors import NotFound
from octavo.storage.stores.bucket import Bucket, Objects
from octavo.storage.stores.entries import checked
from octavo.storage.stores.names import account_of, folder_of
from octavo.storage.stores.object_lease import ObjectLease, Series
from octavo.storage.stores.probing import probe
from octavo.storage.stores.retrying import Patience, Retrying, RetryingStore


class ObjectsPlace:
    """Accounts below a prefix of a bucket."""

    def __init__(self, url: str, *, patience: Patience | None = None) -> None:
        self._bucket = Bucket(url)
        self.name = self._bucket.name
        self._retrying = Retrying(patience)
        self._guard = threading.Lock()
        self._is_probed = False

    def open(self, account: str) -> RetryingStore:
        """The store of one account; the first time it is seen that the place keeps the condition."""
        with self._guard:
            if not self._is_probed:
                probe(self._retrying.store(ObjectStore(self._bucket, "probes/"), ""))
                self._is_probed = True
        return self._retrying.store(self._store(account), account)

    def accounts(self, after: str = "", limit: int = 1000) -> list[str]:
        """The accounts beyond one of them, in the order of the place, at most so many."""
        start = f"accounts/{folder_of(after)}" if after else ""
        folders = [key.removeprefix("accounts/") for key, _ in self._bucket.listed("accounts/", start, limit)]
        return [name for name in map(account_of, folders) if name is not None]

    def delete(self, account: str) -> None:
        """Remove an account whole; first what says that it is there."""
        store = self._store(account)
        if store.read("account.json") is None:
            raise NotFound(f"there is no account {account!r} in {self.name}")
        store.delete("account.json")
        while keys := [key for key, _ in self._bucket.listed(store.prefix, "", 1000)]:
            self._bucket.remove(keys)
        self._bucket.remove([f"accounts/{folder_of(account)}"])

    def close(self) -> None:
        """End the threads that requests are made in."""
        self._bucket.close()

    def _store(self, account: str) -> ObjectStore:
        folder = folder_of(account)
        return ObjectStore(self._bucket, f"data/{folder}/", f"accounts/{folder}")


class ObjectStore(Objects):
    """One account's entries as objects below a prefix."""

    def __init__(self, bucket: Bucket, prefix: str, marker: str = "") -> None:
        super().__init__(bucket, prefix)
        self._marker = marker

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry durably; False, and nothing changed, if the key or the key `unless` exists."""
        if key == "account.json" and self._marker:  # by this the account is listed
            self.bucket.call("listing the account", lambda api, b: api.put(b, self._marker, b""))
        if not self.put_new(key, data):
            return False
        if unless and self.modified(unless) is not None:
            self.delete(key)
            return False
        return True

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """The keys in a folder (the prefix ends in a slash) beyond one of them, sorted, at most so many."""
        start = self.prefix + after if after else ""
        metas = self.bucket.listed(self.prefix + prefix, start, limit)
        return [path.removeprefix(self.prefix) for path, _ in metas]

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
