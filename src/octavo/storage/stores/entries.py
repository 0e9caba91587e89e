"""What every store agrees on: which keys there can be, what a whole line is, how a folder is listed."""

from __future__ import annotations

import re
from collections.abc import Iterator

from octavo.domain.ports import Store
from octavo.errors import BadInput

_KEY = re.compile(r"(?!\.)[^/\\\0]+(?:/(?!\.)[^/\\\0]+)*")
_PAGE = 1000


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
