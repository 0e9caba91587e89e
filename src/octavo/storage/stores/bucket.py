"""A bucket of an object store, its refusals turned into ours; only put-if-absent is relied on."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import parse_qsl, urlsplit

from octavo.errors import BadInput, Unavailable
from octavo.storage.stores.entries import checked
from octavo.storage.stores.urls import shown

T = TypeVar("T")

_AT_ONCE = 16
_HINT = "s3://bucket/prefix?endpoint=…&region=…, gs://bucket/prefix, az://container/prefix?account=…"
_OPTIONS = {"endpoint": "endpoint", "region": "region", "account": "account_name"}  # ours, and obstore's


class Bucket:
    """Requests to one bucket, below one prefix."""

    def __init__(self, url: str) -> None:
        self.name = shown(url)
        self._bucket = _bucket(url, self.name)
        self._threads = ThreadPoolExecutor(_AT_ONCE, thread_name_prefix="octavo-objects")

    def close(self) -> None:
        """End the threads that requests are made in."""
        self._threads.shutdown()

    def call(self, what: str, act: Callable[[Any, Any], T]) -> T:
        """Ask the object store, its refusals turned into ours; FileNotFoundError and FileExistsError pass."""
        import obstore
        from obstore import exceptions

        try:
            return act(obstore, self._bucket)
        except exceptions.AlreadyExistsError as error:
            raise FileExistsError(what) from error
        except (exceptions.NotFoundError, FileNotFoundError) as error:
            raise FileNotFoundError(what) from error
        except (exceptions.BaseError, OSError) as error:
            raise Unavailable(f"{what} in {self.name}: {_said(error)}") from error

    def remove(self, paths: Sequence[str]) -> None:
        """Remove objects, many in a request."""
        if paths:
            self.call(f"removing {paths[0]}", lambda api, bucket: api.delete(bucket, list(paths)))

    def all_of(self, act: Callable[[str], T], keys: Sequence[str]) -> list[T]:
        """One request a key, some at the same time."""
        return [act(keys[0])] if len(keys) == 1 else list(self._threads.map(act, keys))

    def listed(self, prefix: str, after: str, limit: int) -> list[tuple[str, datetime]]:
        """Keys below a prefix, sorted, and when each was last written by the server's clock."""

        def act(api: Any, bucket: Any) -> list[tuple[str, datetime]]:
            metas: list[tuple[str, datetime]] = []
            for chunk in api.list(bucket, prefix, offset=after or None, chunk_size=min(limit, 1000)):
                # Some list the folder itself, or begin with the key they were to begin behind.
                metas += [
                    (m["path"], m["last_modified"])
                    for m in chunk
                    if m["path"].startswith(prefix) and m["path"] > max(after, prefix)
                ]
                if len(metas) >= limit:
                    break
            return sorted(metas)[:limit]

        return self.call(f"listing {prefix}", act)


class Objects:
    """Entries as objects below a prefix of a bucket."""

    folder = None

    def __init__(self, bucket: Bucket, prefix: str) -> None:
        self.bucket = bucket
        self.prefix = prefix

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""
        path = self.prefix + checked(key)

        def act(api: Any, bucket: Any) -> bytes:
            if first is None:
                return bytes(api.get(bucket, path).bytes())
            if api.head(bucket, path)["size"] == 0:  # no part of nothing can be asked for
                return b""
            return bytes(api.get_range(bucket, path, start=0, length=first))

        try:
            return self.bucket.call(f"reading {key}", act)
        except FileNotFoundError:
            return None

    def read_many(self, keys: Sequence[str], *, first: int | None = None) -> list[bytes | None]:
        """What `read` says of each key, some at the same time."""
        return self.bucket.all_of(lambda key: self.read(key, first=first), keys) if keys else []

    def delete(self, *keys: str) -> None:
        """Remove keys; one that does not exist is fine."""
        for at in range(0, len(keys), 1000):
            self.bucket.remove([self.prefix + checked(key) for key in keys[at : at + 1000]])

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry durably over what is there."""
        path = self.prefix + checked(key)
        self.bucket.call(f"replacing {key}", lambda api, bucket: api.put(bucket, path, data))

    def modified(self, key: str) -> datetime | None:
        """When an entry was last written, by the server's clock; None if there is none."""
        path = self.prefix + key
        try:
            return self.bucket.call(
                f"looking for {key}", lambda api, b: moment_of(api.head(b, path)["last_modified"])
            )
        except FileNotFoundError:
            return None

    def now(self) -> datetime:
        """The time by the server's clock: that of an object just written."""
        key = f"clock/{secrets.token_hex(8)}"
        self.replace(key, b"")
        moment = self.modified(key)
        self.delete(key)
        if moment is None:
            raise Unavailable(f"an object that was just written is not there, in {self.bucket.name}")
        return moment

    def put_new(self, key: str, data: bytes) -> bool:
        """Write an object that must not be there; False if it is."""
        path = self.prefix + checked(key)
        try:
            self.bucket.call(f"creating {key}", lambda api, b: api.put(b, path, data, mode="create"))
        except FileExistsError:
            if (
                self.modified(key) is None
            ):  # said of a key that two write at once, and of which none came to be
                raise Unavailable(
                    f"creating {key} in {self.bucket.name}: a conflict without a winner"
                ) from None
            return False
        return True


def moment_of(moment: datetime) -> datetime:
    """A time in whole seconds: some tell more of it when listing than otherwise."""
    return moment.replace(microsecond=0)


def _bucket(url: str, name: str) -> Any:
    try:
        from obstore.exceptions import BaseError
        from obstore.store import from_url
    except ImportError as error:
        raise Unavailable(f"{name} needs obstore", hint="install octavo[objects]") from error
    options = dict(parse_qsl(urlsplit(url).query))
    if unknown := sorted(options.keys() - _OPTIONS.keys()):
        raise BadInput(f"{name} has no option {unknown[0]!r}", hint=f"known are {', '.join(_OPTIONS)}")
    client = {
        "timeout": "30s",
        "connect_timeout": "5s",
        "allow_http": options.get("endpoint", "").startswith("http:"),
    }
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
