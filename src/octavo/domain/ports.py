"""The ports: what the engine needs from a store, and what everything derived from the ledger can do."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from octavo.domain.erasure import Erasure

Progress = Callable[[int, int], None]


class Formats(Protocol):
    """Whoever knows the file formats of other systems."""

    def export_account(self, account: Any, path: Any, format: str) -> Any:  # noqa: A002
        """Write an account as the files of a format."""

    def import_account(
        self,
        account: Any,
        path: Any,
        format: str | None,  # noqa: A002
        progress: Any = None,
    ) -> Any:
        """Read the files of a format into an account; without one, of that which they have the shape of."""


class Lease(Protocol):
    """The owner's hold on one append-only series of numbered lines, fenced: who lost it can write no more.

    A lease that ran out is still good as long as nobody has taken the series; only others may take it then.
    """

    def lines(self) -> Sequence[bytes]:
        """Every whole line there was when the hold was taken, in order."""

    @property
    def torn(self) -> int:
        """How many bytes of a torn last line were dropped when the hold was taken."""

    def append(self, line: bytes) -> None:
        """Add a line that ends in a newline; on return it is durable. LeaseLost if another has the series.

        After a failure the same line may be handed in again, or another in its place; it counts once.
        """

    def replace(self, data: bytes) -> None:
        """Put other lines in place of all there are, and let go; LeaseLost if another has the series."""

    def renew(self) -> None:
        """Make the lease last from now on; LeaseLost if another has the series."""

    def delete(self) -> None:
        """Remove the series and let go."""

    def close(self) -> None:
        """Let go."""


class Store(Protocol):
    """Where one account's bytes lie. `create` is the one primitive that decides.

    What a network or a server cannot do now is `Unavailable`, with what was tried.
    """

    @property
    def folder(self) -> Any:
        """The local folder whose files are the entries; None where they lie elsewhere."""
        return None

    def create(self, key: str, data: bytes, *, unless: str = "") -> bool:
        """Write a new entry durably; False, and nothing changed, if the key or the key `unless` exists."""

    def read(self, key: str, *, first: int | None = None) -> bytes | None:
        """The bytes under a key (or only the first of them), None if there are none."""

    def read_many(self, keys: Sequence[str], *, first: int | None = None) -> Sequence[bytes | None]:
        """What `read` says of each key, in one call."""

    def scan(self, prefix: str, *, after: str = "", limit: int = 1000) -> Sequence[str]:
        """The keys in a folder (the prefix ends in a slash) beyond one of them, sorted, at most so many."""

    def delete(self, *keys: str) -> None:
        """Remove keys; one that does not exist is fine."""

    def replace(self, key: str, data: bytes) -> None:
        """Write an entry durably over what is there; for sweeps and hints only."""

    def hold(self, key: str, seconds: float, *, owner: str = "") -> Lease:
        """Take hold of an entry as a series of lines; SandboxBusy if somebody has it and did so lately.

        Who asks again under the same name is the same owner.
        """

    def lines(self, key: str) -> tuple[Sequence[bytes], int] | None:
        """The whole lines of a series and the bytes of a torn last one, None if there is no series."""

    def lock(self, wait_seconds: float) -> AbstractContextManager[bool]:
        """Stand in line for the account's commits; advisory, so running out of patience is no error.

        The first entry written in it may end it.
        """

    def leftovers(self) -> Sequence[str]:
        """What killed writers left behind and nothing ever reads; nothing but in a folder."""
        return ()

    def clear_leftovers(self) -> int:
        """Remove what killed writers left behind; says how much it was."""
        return 0


@runtime_checkable
class Place(Protocol):
    """Where accounts lie: a folder, a database, a bucket."""

    @property
    def name(self) -> str:
        """The place as it may be shown and logged: its URL without a password, or its path."""

    def open(self, account: str) -> Store:
        """The store of one account, whether there is one or not yet."""

    def accounts(self, after: str = "", limit: int = 1000) -> Sequence[str]:
        """The accounts beyond one of them, in the order of the place, at most so many."""

    def delete(self, account: str) -> None:
        """Remove an account whole; gone at once for everybody. NotFound if there is none."""


class Projection(Protocol):
    """Something that follows the ledger and can be made from it again; who erases, proves or repairs walks a
    list of them and knows none."""

    def follow(self, progress: Progress | None = None) -> None:
        """Bring it up to the newest version."""

    def erase(self, erasure: Erasure) -> list[str]:
        """Take out what a redaction names; returns what could not be cleaned, and why."""

    def verify(self, *, stamp: bool = False) -> list[str]:
        """What is wrong with it; that changes nothing, but `stamp` may note when it was found right."""

    def clear(self) -> None:
        """Begin anew: nothing of what it held stays, and `follow` brings all of it back."""
