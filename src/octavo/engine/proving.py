"""The ledger, and the state beside it, proved bit by bit while an account is open, round and round."""

from __future__ import annotations

import secrets

from octavo.engine.spine import Spine
from octavo.errors import Damaged, NotFound
from octavo.storage.ledger import Version, key_of

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
            if not why and not self._is_as_told(found):
                why = (
                    f"the state file does not say what {key_of(version)} says; `octavo repair` makes it anew"
                )
        except NotFound:
            return  # the state begins at a checkpoint, or is made anew just now
        except Damaged as error:
            why = error.message
        self._damage.pop(version, None)
        if why:
            self._damage[version] = why

    def _is_as_told(self, version: Version) -> bool:
        """Whether the state has a version's memories byte by byte, but for bodies that are being erased."""
        told = [line for line in version.lines if line.t == "memory"]
        held = self._spine.state.lines_in(version.header.version)
        return len(told) == len(held) and all(
            bytes(line.envelope) == envelope
            and (None in (body, line.body_bytes()) or body == line.body_bytes())
            for line, (envelope, body) in zip(told, held, strict=True)
        )
