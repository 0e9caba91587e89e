"""Projections: everything derived from the ledger stands behind one port, so that whoever erases, proves or
repairs walks a list and knows none of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from octavo.domain.erasure import Erasure

Progress = Callable[[int, int], None]


class Projection(Protocol):
    """Something that follows the ledger and can be made from it again."""

    def follow(self, progress: Progress | None = None) -> None:
        """Bring it up to the newest version."""

    def erase(self, erasure: Erasure) -> list[str]:
        """Take out what a redaction names; returns what could not be cleaned, and why."""

    def verify(self, *, stamp: bool = False) -> list[str]:
        """What is wrong with it; that changes nothing, but `stamp` may note when it was found right."""

    def clear(self) -> None:
        """Begin anew: nothing of what it held stays, and `follow` brings all of it back."""
