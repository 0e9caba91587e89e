"""The store in an object store (S3 and its like, Google, Azure); only put-if-absent is relied on."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, nullcontext
from datetime import timedelta
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from octavo.domain.ports import Store
from octavo.errors import BadInput, NotFound, Unavailable
from octavo.storage.stores.entries import checked, probe
from octavo.storage.stores.names import account_of, folder_of, shown
from octavo.storage.stores.numbered import NumberedStore
from octavo.storage.stores.retrying import Patience

T = TypeVar("T")

_ACCOUNTS = "accounts/"
_AT_ONCE, _AT_A_TIME = 16, 1000  # requests, and keys in one of them
_HINT = "s3://bucket/prefix?endpoint=…&region=…, gs://bucket/prefix, az://container/prefix?account=…"
_OPTIONS = {"endpoint": "endpoint", "region": "region", "account": "account_name"}  # ours, and obstore's


class ObjectsPlace:
    """Accounts below a prefix of a bucket; an object below `accounts/` lists each of them."""

    def __init__(self, url: str, *, patience: Patience | None = None) -> None:
        self.name, self.bucket = shown(url), _bucket(url)
        self.threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="octavo-objects")
        self.close = self.threads.shutdown
        self._root = ObjectStore(self, "")
        self._patience = patience or Patience()
        self._guard = threading.Lock()
        self._is_probed = False

    def open(self, account: str) -> Store:
        """The store of one account; the first time it is seen that the place keeps the condition."""
        with self._guard:
            if not self._is_probed:
                probe(self._patience.store(ObjectStore(self, "probes/"), ""))
                self._is_probed = True
        return self._patience.store(self._store(account), account)

    def accounts(self, after: str = "", limit: int = 1000) -> list[str]:
        """The accounts beyond one of them, in the order of the place, at most so many."""
        start = _ACCOUNTS + folder_of(after) if after else ""
        keys = self._root.scan(_ACCOUNTS, after=start, limit=limit)
        names = (account_of(key.removeprefix(_ACCOUNTS)) for key in keys)
        return [name for name in names if name is not None]

    def delete(self, account: str) -> None:
        """Remove an account whole; first what says that it is there."""
        store = self._store(account)
        if store.read("account.json") is None:
            raise NotFound(f"there is no account {account!r} in {self.name}")
        store.delete("account.json")
        while keys := store.scan(""):
            store.delete(*keys)
        self._root.delete(_ACCOUNTS + folder_of(account))

    def _store(self, account: str) -> ObjectStore:
        folder = folder_of(account)
        return ObjectStore(self, f"data/{folder}/", listed_by=partial(self._root.replace, _ACCOUNTS + folder))


class ObjectStore(NumberedStore):
    """Entries as objects below a prefix."""

    tick = 1.0  # object stores tell the time in whole seconds

    def __init__(
        self, place: ObjectsPlace, prefix: str, listed_by: Callable[[bytes], None] | None = None
    ) -> None:
        self._place, self._bucket, self._prefix = place, place.bucket, prefix
        self._listed_by = listed_by

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry durably; False, and nothing changed, if the key or the key `unless` exists."""
        if key == "account.json" and self._listed_by:
            self._listed_by(b"")
        put = partial(self._bucket.put, self._prefix + checked(key), data, mode="create")
        try:
            self._call(f"creating {key}", put)
        except FileExistsError:
            if self.read(key, first=1) is None:  # said of a key that two write at once, and none came to be
                message = f"creating {key} in {self._place.name}: a conflict without a winner"
                raise Unavailable(message) from None
            return False
        if unless and self.read(unless, first=1) is not None:
            self.delete(key)
            return False
        return True

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""

        def act() -> bytes:
            found = self._bucket.get(self._prefix + checked(key))
            if first is None:
                return bytes(found.bytes())
            return next((bytes(part)[:first] for part in found.stream(min_chunk_size=first)), b"")

        try:
            return self._call(f"reading {key}", act)
        except FileNotFoundError:
            return None

    def read_many(self, keys: Sequence[str], *, first: int | None = None) -> list[bytes | None]:
        """What `read` says of each key, some at the same time."""
        read = partial(self.read, first=first)
        return list(self._place.threads.map(read, keys)) if len(keys) > 1 else [read(key) for key in keys]

    def delete(self, *keys: str) -> None:
        """Remove keys, many in a request; one that does not exist is fine."""
        paths = [self._prefix + checked(key) for key in keys]
        for at in range(0, len(paths), _AT_A_TIME):
            self._call(f"removing {keys[at]}", partial(self._bucket.delete, paths[at : at + _AT_A_TIME]))

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry durably over what is there."""
        self._call(f"replacing {key}", partial(self._bucket.put, self._prefix + checked(key), data))

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """There is no line between processes here: their writers meet at `create`."""
        return nullcontext(True)

    def listed(self, prefix: str, after: str = "", limit: int | None = None) -> list[tuple[str, float]]:
        """Keys below a prefix, sorted, and when each was last written by the server's clock."""
        whole, start = self._prefix + prefix, self._prefix + after if after else ""

        def act() -> list[tuple[str, float]]:
            metas: list[tuple[str, float]] = []
            for chunk in self._bucket.list(whole, offset=start or None, chunk_size=_AT_A_TIME):
                # Some list the folder itself, or begin with the key they were to begin behind.
                metas += [
                    (meta["path"].removeprefix(self._prefix), meta["last_modified"].timestamp() // 1)
                    for meta in chunk
                    if meta["path"].startswith(whole) and meta["path"] > max(start, whole)
                ]
                if limit is not None and len(metas) >= limit:
                    break
            return sorted(metas)[:limit]

        return self._call(f"listing {prefix}", act)

    def _call(self, what: str, act: Callable[[], T]) -> T:
        """Ask the object store, its refusals turned into ours; FileNotFoundError and FileExistsError pass."""
        from obstore import exceptions

        try:
            return act()
        except exceptions.AlreadyExistsError as error:
            raise FileExistsError(what) from error
        except (exceptions.NotFoundError, FileNotFoundError) as error:
            raise FileNotFoundError(what) from error
        except (exceptions.BaseError, OSError) as error:
            raise Unavailable(f"{what} in {self._place.name}: {_said(error)}") from error


def _bucket(url: str) -> Any:
    """The bucket that a URL names, as obstore's own kind of store."""
    name = shown(url)
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as error:
        raise Unavailable(f"{name} needs obstore", hint="install octavo[objects]") from error
    options = dict(parse_qsl(urlsplit(url).query))
    if unknown := sorted(options.keys() - _OPTIONS.keys()):
        raise BadInput(f"{name} has no option {unknown[0]!r}", hint=f"known are {', '.join(_OPTIONS)}")
    is_plain = options.get("endpoint", "").startswith("http:")
    client = {"timeout": "30s", "connect_timeout": "5s", "allow_http": is_plain}
    # Tried again by ourselves: a repeated put-if-absent must be recognised as our own.
    retry: Any = {"max_retries": 0, "retry_timeout": timedelta(seconds=30)}
    bare, config = url.partition("?")[0], {_OPTIONS[option]: value for option, value in options.items()}
    try:
        return from_url(bare, config=config or None, client_options=client, retry_config=retry)  # type: ignore[call-overload]
    except BaseError as error:
        raise BadInput(f"{name} cannot be used: {_said(error)}", hint=_HINT) from error


def _said(error: Exception) -> str:
    """The first line of what a library said, without what may be signed in a URL."""
    return re.sub(r"\?[^\s\"']*", "", (str(error).strip().splitlines() or [type(error).__name__])[0])[:300]
