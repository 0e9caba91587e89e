"""Bounded logs beside the ledger, for people: what the gate refused, and which copies were made.

Nothing depends on one: a damaged line is left out of what is read, and `damaged` names it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Generic, TypeVar

import msgspec
from msgspec import Struct

from octavo.domain.memory import Refusal
from octavo.domain.ports import Store
from octavo.domain.records import shape_of
from octavo.errors import Damaged, NotFound, SandboxBusy
from octavo.storage import codec

R = TypeVar("R", bound=Struct)

_LEASE_SECONDS = 10.0
_TRIES = 200
_PAUSE_SECONDS = 0.005


class Copy(Struct, frozen=True, kw_only=True):
    """An export or a backup that was written somewhere, and the version it was made of.

    `files` are the keyed hashes of an export's files: which of those at the place are as we wrote them.
    """

    place: str
    version: int
    is_backup: bool = False
    files: tuple[str, ...] = ()


class Log(Generic[R]):
    """One file of records of one type, a line each, in any store; whoever writes holds it for a moment."""

    def __init__(self, key: str, record: type[R]) -> None:
        self._key, self._record = key, record

    def add(self, store: Store, record: R, *, keep: int) -> None:
        """Append a record; once there are twice as many as are kept, the older half goes."""
        line = codec.encode_json(record) + b"\n"
        for _ in range(_TRIES):
            try:
                held = store.hold(self._key, _LEASE_SECONDS)
            except NotFound:
                if store.create(self._key, line):
                    return
                continue
            except SandboxBusy:
                time.sleep(_PAUSE_SECONDS)
                continue
            with closing(held):
                if len(held.lines()) + 1 > 2 * keep:
                    held.replace(b"".join((*held.lines(), line)[-keep:]))
                else:
                    held.append(line)
            return
        raise SandboxBusy(f"{self._key} was held by others for a second")

    def read(self, store: Store) -> list[R]:
        """The records that are kept, oldest first."""
        return [one for one in self._decoded(store) if not isinstance(one, str)]

    def damaged(self, store: Store) -> list[str]:
        """What is wrong with the log, line by line."""
        lines = enumerate(self._decoded(store), start=1)
        return [f"{self._key}, line {number}: {why}" for number, why in lines if isinstance(why, str)]

    def keep_only(self, store: Store, is_kept: Callable[[R], bool]) -> None:
        """Write the log anew without what must go, damaged lines included; redaction's sweep does this."""
        if all(not isinstance(one, str) and is_kept(one) for one in self._decoded(store)):
            return
        with closing(store.hold(self._key, _LEASE_SECONDS)) as held:
            pairs = [(line, self._of(line)) for line in held.lines()]
            held.replace(b"".join(line for line, one in pairs if not isinstance(one, str) and is_kept(one)))

    def _decoded(self, store: Store) -> Iterator[R | str]:
        try:
            lines = store.lines(self._key)
        except Damaged as error:  # something else stands in its place
            return iter([error.message])
        return map(self._of, () if lines is None else lines[0])

    def _of(self, line: bytes) -> R | str:
        try:
            return msgspec.json.decode(line, type=shape_of(self._record))
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            return str(error)


REFUSALS = Log("refusals.jsonl", Refusal)
COPIES = Log("copies.jsonl", Copy)
