"""A store in a dictionary: for tests, and the shortest answer to what a store must do."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from octavo.storage.stores.numbered import NumberedStore


class MemoryStore(NumberedStore):
    """One account's entries in a dictionary, safe for threads, gone with the process."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.elapsed = clock  # type: ignore[method-assign]  # all its owners live on one machine
        self._entries: dict[str, tuple[bytes, float]] = {}  # with the second each was written in
        self._guard = threading.Lock()
        self._queue = threading.Lock()

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry; False, and nothing changed, if the key or the key `unless` exists."""
        with self._guard:
            if key in self._entries or unless in self._entries:
                return False
            self._entries[key] = bytes(data), self.elapsed()
            return True

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""
        with self._guard:
            return self._entries[key][0][:first] if key in self._entries else None

    def read_many(self, keys: Sequence[str], *, first: int | None = None) -> list[bytes | None]:
        """What `read` says of each key."""
        return [self.read(key, first=first) for key in keys]

    def listed(self, prefix: str, after: str = "", limit: int | None = None) -> list[tuple[str, float]]:
        """The keys below a prefix beyond one of them, sorted, and the second each was last written in."""
        with self._guard:
            keys = sorted(key for key in self._entries if key.startswith(prefix) and key > after)[:limit]
            return [(key, self._entries[key][1]) for key in keys]

    def delete(self, *keys: str) -> None:
        """Remove keys; one that does not exist is fine."""
        with self._guard:
            for key in keys:
                self._entries.pop(key, None)

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry over what is there."""
        with self._guard:
            self._entries[key] = bytes(data), self.elapsed()

    @contextmanager
    def lock(self, wait_seconds: float) -> Iterator[bool]:
        """Stand in line for the account's commits; yields whether the turn came in time."""
        taken = self._queue.acquire(timeout=wait_seconds)
        try:
            yield taken
        finally:
            if taken:
                self._queue.release()
