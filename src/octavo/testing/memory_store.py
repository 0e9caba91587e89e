"""A store in a dictionary: for tests, and the shortest answer to what a store must do."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from octavo.errors import NotFound, SandboxBusy, Unavailable


class MemoryStore:
    """One account's entries in a dictionary, safe for threads, gone with the process."""

    def __init__(self) -> None:
        self._entries: dict[str, bytes] = {}
        self._owners: dict[str, MemoryLines] = {}
        self._guard = threading.RLock()
        self._queue = threading.Lock()

    def create(self, key: str, data: bytes) -> bool:
        """Write a new entry; False, and nothing changed, if the key exists."""
        with self._guard:
            if key in self._entries:
                return False
            self._entries[key] = bytes(data)
            return True

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""
        with self._guard:
            data = self._entries.get(key)
        return data if data is None else data[:first]

    def exists(self, key: str) -> bool:
        """Whether a key exists."""
        with self._guard:
            return key in self._entries

    def list(self, prefix: str) -> Sequence[str]:
        """The keys in a folder, sorted; the prefix ends in a slash."""
        with self._guard:
            return sorted(k for k in self._entries if k.startswith(prefix) and "/" not in k[len(prefix) :])

    def delete(self, key: str) -> None:
        """Remove a key; one that does not exist is fine."""
        with self._guard:
            self._entries.pop(key, None)
            self._owners.pop(key, None)

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry over what is there; who held its lines holds them no more."""
        with self._guard:
            self._entries[key] = bytes(data)
            self._owners.pop(key, None)

    def append(self, key: str) -> MemoryLines:
        """Take hold of a series of lines as its one owner; SandboxBusy if somebody else has it."""
        with self._guard:
            if key not in self._entries:
                raise NotFound(f"there is no session buffer {key!r}")
            if key in self._owners:
                raise SandboxBusy(f"{key!r} has another owner")
            whole, torn = _whole(self._entries[key])
            self._entries[key] = b"".join(whole)
            self._owners[key] = held = MemoryLines(self, key, whole, torn)
            return held

    def lines(self, key: str) -> tuple[Sequence[bytes], int] | None:
        """The whole lines of a series and the bytes of a torn last one, None if there is no series."""
        data = self.read(key)
        return None if data is None else _whole(data)

    @contextmanager
    def lock(self, wait_seconds: float) -> Iterator[bool]:
        """Stand in line for the account's commits; yields whether the turn came in time."""
        taken = self._queue.acquire(timeout=wait_seconds)
        try:
            yield taken
        finally:
            if taken:
                self._queue.release()

    def add_line(self, held: MemoryLines, line: bytes) -> None:
        """Append for an owner; Unavailable for somebody who is none."""
        with self._guard:
            if self._owners.get(held.key) is not held:
                raise Unavailable(f"writing {held.key}: it is not held any more")
            self._entries[held.key] += line

    def let_go(self, held: MemoryLines, *, delete: bool) -> None:
        """End a hold, and the series too if asked; a second time is fine."""
        with self._guard:
            if self._owners.get(held.key) is held:
                del self._owners[held.key]
                if delete:
                    del self._entries[held.key]


class MemoryLines:
    """The owner's hold on one series of lines."""

    def __init__(self, store: MemoryStore, key: str, whole: Sequence[bytes], torn: int) -> None:
        self.key = key
        self.torn = torn
        self._store = store
        self._whole = whole

    def lines(self) -> Sequence[bytes]:
        """Every whole line that was there when the hold was taken."""
        return self._whole

    def append(self, line: bytes) -> None:
        """Add a line that ends in a newline."""
        self._store.add_line(self, line)

    def delete(self) -> None:
        """Remove the series and let go."""
        self._store.let_go(self, delete=True)

    def close(self) -> None:
        """Let go; a second time is fine."""
        self._store.let_go(self, delete=False)


def _whole(data: bytes) -> tuple[Sequence[bytes], int]:
    *whole, torn = data.split(b"\n")
    return [line + b"\n" for line in whole], len(torn)
