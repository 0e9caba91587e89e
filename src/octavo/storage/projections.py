"""Projections: everything derived from the ledger stands behind one port, so that whoever erases, proves or
repairs walks a list and knows none of them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Protocol

from octavo.domain.erasure import Erasure
from octavo.domain.units import Watermark
from octavo.errors import OctavoError
from octavo.storage.ledger import Ledger
from octavo.storage.state_db import StateDb

Progress = Callable[[int, int], None]


class Projection(Protocol):
    """Something that follows the ledger and can be made from it again."""

    @property
    def name(self) -> str:
        """How people call it: its place in the account's folder, or beside it."""
        ...

    def watermark(self) -> Watermark:
        """The version it has reached, and the hash of that version's header; 0 if it says neither."""
        ...

    def follow(self, progress: Progress | None = None) -> None:
        """Bring it up to the newest version."""
        ...

    def erase(self, erasure: Erasure) -> list[str]:
        """Take out what a redaction names; returns what could not be cleaned, and why."""
        ...

    def verify(self, *, stamp: bool = False) -> list[str]:
        """What is wrong with it; that changes nothing, but `stamp` may note when it was found right."""
        ...

    def clear(self) -> None:
        """Begin anew: nothing of what it held stays, and `follow` brings all of it back."""
        ...


class StateProjection:
    """The state file behind the port: it follows in every commit, and is compared byte by byte."""

    name = "index/state.db"

    def __init__(self, state: StateDb, ledger: Ledger) -> None:
        self._state = state
        self._ledger = ledger

    def watermark(self) -> Watermark:
        """The version the state has reached."""
        version, header = self._state.watermark()
        return Watermark(version=version, header=header)

    def follow(self, progress: Progress | None = None) -> None:
        """Apply the versions that are new."""
        self._state.catch_up(self._ledger)

    def erase(self, erasure: Erasure) -> list[str]:
        """Mask what spoke of it and rewrite the file; memories were masked by the redaction's own commit."""
        for version, line, change in self._state.spoken():
            if erasure.holds(change):
                self._state.erase_other(version, line)
        self._state.scrub()
        return []

    def verify(self, *, stamp: bool = False) -> list[str]:
        """Whether the state holds exactly the revisions of the ledger, byte by byte."""
        mark = self.watermark()
        problems = [f"{self.name}: {what}" for what in self._state.check()]
        if mark.version and not self._ledger.exists(mark.version):
            head = self._ledger.must_be_whole()
            return [*problems, f"{self.name} is at version {mark.version}, the ledger ends at {head}"]
        with suppress(OctavoError):  # a version that is damaged is named by who proves the ledger
            if mark.version and self._ledger.hash_of(mark.version) != mark.header:
                problems.append(f"{self.name} was derived from another version {mark.version}")
            for version in range(1, mark.version + 1):
                lines = [line for line in self._ledger.read(version).lines if line.t == "memory"]
                if self._state.lines_in(version) != [(bytes(x.envelope), x.body_bytes()) for x in lines]:
                    problems.append(
                        f"{self.name} does not hold the memories of version {version} as they are"
                    )
        return problems

    def clear(self) -> None:
        """Derive the state again at once: no reader may meet an empty one."""
        self._state.rebuild(self._ledger)
