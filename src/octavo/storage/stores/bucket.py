"""Objects of a bucket, its refusals turned into ours; only put-if-absent is relied on."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from functools import partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from octavo.errors import BadInput, Unavailable
from octavo.storage.stores.entries import Elsewhere, checked
from octavo.storage.stores.names import shown

T = TypeVar("T")

_AT_ONCE, _AT_A_TIME = 16, 1000  # requests, and keys in one of them
_HINT = "s3://bucket/prefix?endpoint=…&region=…, gs://bucket/prefix, az://container/prefix?account=…"
_OPTIONS = {"endpoint": "endpoint", "region": "region", "account": "account_name"}  # ours, and obstore's


class Objects(Elsewhere):
    """Entries as objects below a prefix of a bucket."""

    def __init__(self, name: str, client: Any, threads: ThreadPoolExecutor, prefix: str = "") -> None:
        self.name, self.prefix = name, prefix
        self._client, self._threads = client, threads

    def below(self, prefix: str) -> tuple[str, Any, ThreadPoolExecutor, str]:
        """What makes the objects below a prefix of these."""
        return self.name, self._client, self._threads, self.prefix + prefix

    def close(self) -> None:
        """End the threads that requests are made in."""
        self._threads.shutdown()

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""
        path = self.prefix + checked(key)

        def act() -> bytes:
            if first is None:
                return bytes(self._client.get(path).bytes())
            if self._client.head(path)["size"] == 0:  # no part of nothing can be asked for
                return b""
            return bytes(self._client.get_range(path, start=0, length=first))

        try:
            return self._call(f"reading {key}", act)
        except FileNotFoundError:
            return None

    def read_many(self, keys: Sequence[str], *, first: int | None = None) -> list[bytes | None]:
        """What `read` says of each key, some at the same time."""
        read = partial(self.read, first=first)
        return list(self._threads.map(read, keys)) if len(keys) > 1 else [read(key) for key in keys]

    def delete(self, *keys: str) -> None:
        """Remove keys, many in a request; one that does not exist is fine."""
        paths = [self.prefix + checked(key) for key in keys]
        for at in range(0, len(paths), _AT_A_TIME):
            self._call(f"removing {keys[at]}", partial(self._client.delete, paths[at : at + _AT_A_TIME]))

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry durably over what is there."""
        self._call(f"replacing {key}", partial(self._client.put, self.prefix + checked(key), data))

    def modified(self, key: str) -> datetime | None:
        """When an entry was last written, by the server's clock; None if there is none."""
        try:
            meta = self._call(f"looking for {key}", partial(self._client.head, self.prefix + key))
        except FileNotFoundError:
            return None
        return _in_seconds(meta["last_modified"])

    def now(self) -> datetime:
        """The time by the server's clock: that of an object just written."""
        key = f"clock/{secrets.token_hex(8)}"
        self.replace(key, b"")
        moment = self.modified(key)
        self.delete(key)
        if moment is None:
            raise Unavailable(f"an object that was just written is not there, in {self.name}")
        return moment

    def put_new(self, key: str, data: bytes) -> bool:
        """Write an object that must not be there; False if it is."""
        put = partial(self._client.put, self.prefix + checked(key), data, mode="create")
        try:
            self._call(f"creating {key}", put)
        except FileExistsError:
            if self.modified(key) is None:  # said of a key that two write at once, and none came to be
                raise Unavailable(f"creating {key} in {self.name}: a conflict without a winner") from None
            return False
        return True

    def listed(self, prefix: str, after: str, limit: int) -> list[tuple[str, datetime]]:
        """Keys below a prefix, sorted, and when each was last written by the server's clock."""
        whole, start = self.prefix + prefix, self.prefix + after if after else ""

        def act() -> list[tuple[str, datetime]]:
            metas: list[tuple[str, datetime]] = []
            for chunk in self._client.list(whole, offset=start or None, chunk_size=min(limit, _AT_A_TIME)):
                # Some list the folder itself, or begin with the key they were to begin behind.
                metas += [
                    (meta["path"].removeprefix(self.prefix), _in_seconds(meta["last_modified"]))
                    for meta in chunk
                    if meta["path"].startswith(whole) and meta["path"] > max(start, whole)
                ]
                if len(metas) >= limit:
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
            raise Unavailable(f"{what} in {self.name}: {_said(error)}") from error


def connect(url: str) -> Objects:
    """All the objects below a URL."""
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
        bucket = from_url(bare, config=config or None, client_options=client, retry_config=retry)  # type: ignore[call-overload]
    except BaseError as error:
        raise BadInput(f"{name} cannot be used: {_said(error)}", hint=_HINT) from error
    return Objects(name, bucket, ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="octavo-objects"))


def _in_seconds(moment: datetime) -> datetime:
    """A time in whole seconds: some tell more of it when listing than otherwise."""
    return moment.replace(microsecond=0)


def _said(error: Exception) -> str:
    """The first line of what a library said, without what may be signed in a URL."""
    return re.sub(r"\?[^\s\"']*", "", (str(error).strip().splitlines() or [type(error).__name__])[0])[:300]
