"""The ports: what the engine needs from a store, and from whoever turns text into vectors or summaries."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol


class Formats(Protocol):
    """Whoever knows the file formats of other systems."""

    def export_account(self, account: Any, path: Any, format: str) -> Any:  # noqa: A002
        """Write an account as the files of a format."""
        ...

    def import_account(self, account: Any, path: Any, format: str) -> Any:  # noqa: A002
        """Read the files of a format into an account."""
        ...


class Lines(Protocol):
    """The owner's hold on one append-only series of numbered lines."""

    def lines(self) -> Sequence[bytes]:
        """Every whole line, in order."""
        ...

    @property
    def torn(self) -> int:
        """How many bytes of a torn last line were dropped when the hold was taken."""
        ...

    def append(self, line: bytes) -> None:
        """Add a line that ends in a newline; on return it is durable."""
        ...

    def delete(self) -> None:
        """Remove the series and let go."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class Store(Protocol):
    """Where one account's bytes lie. `create` is the one primitive that decides."""

    def create(self, key: str, data: bytes) -> bool:
        """Write a new entry durably; False, and nothing changed, if the key exists."""
        ...

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""
        ...

    def exists(self, key: str) -> bool:
        """Whether a key exists."""
        ...

    def list(self, prefix: str) -> Sequence[str]:
        """The keys in a folder, sorted; the prefix ends in a slash."""
        ...

    def delete(self, key: str) -> None:
        """Remove a key; one that does not exist is fine."""
        ...

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry durably over what is there; for sweeps and hints only."""
        ...

    def append(self, key: str) -> Lines:
        """Take hold of an entry as a series of lines, as its one owner; SandboxBusy if somebody has it."""
        ...

    def lines(self, key: str) -> tuple[Sequence[bytes], int] | None:
        """The whole lines of a series and the bytes of a torn last one, None if there is no series."""
        ...

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """Stand in line for the account's commits; advisory, so running out of patience is no error."""
        ...
