"""A store in a dictionary: for tests, and the shortest answer to what a store must do."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from octavo.errors import LeaseLost, NotFound, SandboxBusy
from octavo.storage.stores.entries import whole_lines


class MemoryStore:
    """One account's entries in a dictionary, safe for threads, gone with the process."""

    folder = None

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._entries: dict[str, bytes] = {}
        self._leases: dict[str, tuple[str, float]] = {}  # by whom, and until when
        self._guard = threading.RLock()
        self._queue = threading.Lock()
        self._clock = clock

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry; False, and nothing changed, if the key or the key `unless` exists."""
        with self._guard:
            if key in self._entries or unless in self._entries:
                return False
            self._entries[key] = bytes(data)
            return True

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""
        with self._guard:
            data = self._entries.get(key)
        return data if data is None else data[:first]

    def read_many(self, keys: Sequence[str], *, first: int | None = None) -> list[bytes | None]:
        """What `read` says of each key."""
        return [self.read(key, first=first) for key in keys]

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> list[str]:
        """The keys in a folder (the prefix ends in a slash) beyond one of them, sorted, at most so many."""
        with self._guard:
            inside = (k for k in self._entries if k.startswith(prefix) and "/" not in k[len(prefix) :])
            return sorted(key for key in inside if key > after)[:limit]

    def delete(self, *keys: str) -> None:
        """Remove keys; one that does not exist is fine."""
        with self._guard:
            for key in keys:
                self._entries.pop(key, None)
                self._leases.pop(key, None)

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry over what is there; who held its lines holds them no more."""
        with self._guard:
            self._entries[key] = bytes(data)
            self._leases.pop(key, None)

    def hold(self, key: str, seconds: float, *, owner: str = "") -> MemoryLease:
        """Take hold of a series of lines; SandboxBusy if somebody else has it and did so lately."""
        mine = owner or secrets.token_hex(8)
        with self._guard:
            if key not in self._entries:
                raise NotFound(f"there is no session buffer {key!r}")
            holder, until = self._leases.get(key, ("", 0.0))
            if holder not in ("", mine) and self._clock() < until:
                raise SandboxBusy(f"{key!r} has another owner")
            whole, torn = whole_lines(self._entries[key])
            self._entries[key] = b"".join(whole)
            self._leases[key] = (mine, self._clock() + seconds)
            return MemoryLease(self, key, mine, seconds, whole, torn)

    def lines(self, key: str) -> tuple[Sequence[bytes], int] | None:
        """The whole lines of a series and the bytes of a torn last one, None if there is no series."""
        data = self.read(key)
        return None if data is None else whole_lines(data)

    @contextmanager
    def lock(self, wait_seconds: float) -> Iterator[bool]:
        """Stand in line for the account's commits; yields whether the turn came in time."""
        taken = self._queue.acquire(timeout=wait_seconds)
        try:
            yield taken
        finally:
            if taken:
                self._queue.release()

    def leftovers(self) -> Sequence[str]:
        """Nothing outlives a writer here."""
        return ()

    def clear_leftovers(self) -> int:
        """Nothing outlives a writer here."""
        return 0

    @contextmanager
    def _owning(self, key: str, owner: str, seconds: float) -> Iterator[None]:
        """Act as the owner, whose lease begins anew by it."""
        with self._guard:
            if self._leases.get(key, ("", 0.0))[0] != owner:
                raise LeaseLost(f"writing {key}: it has gone to somebody else")
            self._leases[key] = (owner, self._clock() + seconds)
            yield


class MemoryLease:
    """The owner's hold on one series of lines."""

    def __init__(
        self, store: MemoryStore, key: str, owner: str, seconds: float, whole: Sequence[bytes], torn: int
    ) -> None:
        self.torn = torn
        self._store = store
        self._mine = (key, owner, seconds)
        self._key = key
        self._whole = whole

    def lines(self) -> Sequence[bytes]:
        """Every whole line that was there when the hold was taken."""
        return self._whole

    def append(self, line: bytes) -> None:
        """Add a line that ends in a newline."""
        with self._store._owning(*self._mine):
            self._store._entries[self._key] += line

    def replace(self, data: bytes) -> None:
        """Put other lines in place of all there are, and let go."""
        with self._store._owning(*self._mine):
            self._store.replace(self._key, data)

    def renew(self) -> None:
        """Make the lease last from now on."""
        with self._store._owning(*self._mine):
            pass

    def delete(self) -> None:
        """Remove the series and let go; not if it is another's by now."""
        with self._store._guard:
            if self._is_mine():
                self._store.delete(self._key)

    def close(self) -> None:
        """Let go; a second time is fine."""
        with self._store._guard:
            if self._is_mine():
                del self._store._leases[self._key]

    def _is_mine(self) -> bool:
        return self._store._leases.get(self._key, ("", 0.0))[0] == self._mine[1]
