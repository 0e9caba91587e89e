"""What every store agrees on: keys, whole lines, how a folder is listed, and that `create` keeps its word."""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from octavo.domain.ports import Store
from octavo.errors import BadInput, StoreUnfit

_KEY = re.compile(r"(?!\.)[^/\\\0]+(?:/(?!\.)[^/\\\0]+)*")
_PAGE = 1000
_WRITERS, _ROUNDS = 4, 2  # of the probe


def checked(key: str) -> str:
    """The key, if it names a place inside the account."""
    if not _KEY.fullmatch(key):
        raise BadInput(f"key {key!r} does not name a place inside the account")
    return key


def whole_lines(data: bytes) -> tuple[list[bytes], int]:
    """Complete lines, each with its newline, and how many bytes of a torn last line follow."""
    *lines, torn = data.split(b"\n")
    return [line + b"\n" for line in lines], len(torn)


def every(store: Store, prefix: str, *, page: int = _PAGE) -> Iterator[str]:
    """All the keys in a folder, sorted, however many pages that takes."""
    after = ""
    while True:
        keys = store.scan(prefix, after=after, limit=page)
        yield from keys
        if len(keys) < page:
            return
        after = keys[-1]


def probe(store: Store) -> None:
    """See that of several writers of one key exactly one wins, and that a late one changes nothing."""
    with ThreadPoolExecutor(_WRITERS) as threads:
        for _ in range(_ROUNDS):
            key = f"probe/{secrets.token_hex(8)}"
            try:
                written = [b"%d" % number for number in range(_WRITERS)]
                won = list(threads.map(lambda data, key=key: store.create(key, data), written))
                is_late_refused = not store.create(key, b"late")
                kept = store.read(key)
            finally:
                store.delete(key)
            if won.count(True) != 1 or not is_late_refused or kept != written[won.index(True)]:
                raise StoreUnfit("the store overwrites what is there when it is told not to")
