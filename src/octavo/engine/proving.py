"""The chain proved bit by bit while an account is open: some versions at a time, round and round."""

from __future__ import annotations

import secrets

from octavo.engine.spine import Spine
from octavo.errors import Damaged, NotFound
from octavo.storage.ledger import key_of

_LARGEST_CHANGES = 1000  # of a version that is read beside a conversation


class ChainProof:
    """How far one handle has read the ledger again, beginning anywhere, and what it found damaged."""

    def __init__(self, spine: Spine) -> None:
        self._spine = spine
        self._next = 0
        self._damage: dict[int, str] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """What was found damaged and not found whole since, by version."""
        return tuple(self._damage[version] for version in sorted(self._damage))

    def go_on(self, count: int, *, small: bool = False) -> tuple[str, ...]:
        """Read so many versions more, only `small` ones if somebody may wait; says what is damaged."""
        head = self._spine.state.watermark()[0]
        for _ in range(min(count, head)):
            self._next = self._next % head + 1 if self._next else secrets.randbelow(head) + 1
            self._prove(self._next, small=small)
        return self.problems

    def _prove(self, version: int, *, small: bool) -> None:
        try:
            known = self._spine.state.commit(version)
            if small and known.changes > _LARGEST_CHANGES:
                return
            found = self._spine.ledger.read(version)
            why = "" if found.hash == known.hash else f"{key_of(version)} is not what the state was made from"
        except NotFound:
            return  # the state begins at a checkpoint, or is made anew just now
        except Damaged as error:
            why = error.message
        self._damage.pop(version, None)
        if why:
            self._damage[version] = why
