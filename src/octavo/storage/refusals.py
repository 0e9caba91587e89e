"""The bounded log of writes that the gate refused before anything was buffered; no secret is in it."""

from __future__ import annotations

import time
from collections.abc import Sequence

import msgspec

from octavo.domain.memory import Refusal
from octavo.domain.ports import Store
from octavo.errors import Damaged, NotFound, SandboxBusy
from octavo.storage import codec

_KEY = "refusals.jsonl"
_TRIES = 200
_PAUSE_SECONDS = 0.005


def add(store: Store, refusal: Refusal, *, keep: int) -> None:
    """Append a refusal; once there are twice as many as are kept, the older half goes."""
    line = codec.encode_json(refusal) + b"\n"
    for _ in range(_TRIES):
        try:
            held = store.append(_KEY)
        except NotFound:
            if store.create(_KEY, line):
                return
            continue
        except SandboxBusy:
            time.sleep(_PAUSE_SECONDS)
            continue
        try:
            held.append(line)
            if len(held.lines()) >= 2 * keep:
                store.replace(_KEY, b"".join((*held.lines(), line)[-keep:]))
        finally:
            held.close()
        return
    raise SandboxBusy("the log of refusals was held by others for a second")


def read(store: Store) -> Sequence[Refusal]:
    """The refusals that are kept, oldest first."""
    found = store.lines(_KEY)
    return [] if found is None else [_decoded(line, n) for n, line in enumerate(found[0], start=1)]


def _decoded(line: bytes, number: int) -> Refusal:
    try:
        return msgspec.json.decode(line, type=Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        hint = "remove the line; the log of refusals is for people and nothing depends on it"
        raise Damaged(f"{_KEY}, line {number}: {error}", hint=hint) from error


def replace(store: Store, kept: Sequence[Refusal]) -> None:
    """Write the log anew; redaction's sweep does this."""
    store.replace(_KEY, b"".join(codec.encode_json(refusal) + b"\n" for refusal in kept))
