"""The bounded log of writes that the gate refused before anything was buffered; no secret is in it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing

import msgspec

from octavo.domain.memory import Refusal
from octavo.domain.ports import Store
from octavo.errors import NotFound, SandboxBusy
from octavo.storage import codec

_KEY = "refusals.jsonl"
_LEASE_SECONDS = 10.0
_TRIES = 200
_PAUSE_SECONDS = 0.005


def add(store: Store, refusal: Refusal, *, keep: int) -> None:
    """Append a refusal; once there are twice as many as are kept, the older half goes."""
    line = codec.encode_json(refusal) + b"\n"
    for _ in range(_TRIES):
        try:
            held = store.hold(_KEY, _LEASE_SECONDS)
        except NotFound:
            if store.create(_KEY, line):
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
    raise SandboxBusy("the log of refusals was held by others for a second")


def read(store: Store) -> Sequence[Refusal]:
    """The refusals that are kept, oldest first; a damaged line is left out, and `damaged` names it."""
    lines = store.lines(_KEY)
    read = [] if lines is None else [_decoded(line) for line in lines[0]]
    return [refusal for refusal in read if isinstance(refusal, Refusal)]


def damaged(store: Store) -> list[str]:
    """What is wrong with the log, line by line; it is for people and nothing depends on it."""
    lines = store.lines(_KEY)
    read = [] if lines is None else [_decoded(line) for line in lines[0]]
    return [f"{_KEY}, line {n}: {why}" for n, why in enumerate(read, start=1) if isinstance(why, str)]


def _decoded(line: bytes) -> Refusal | str:
    try:
        return msgspec.json.decode(line, type=Refusal)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        return str(error)


def keep_only(store: Store, is_kept: Callable[[Refusal], bool]) -> None:
    """Write the log anew without what must go, damaged lines included; redaction's sweep does this."""
    if all(is_kept(refusal) for refusal in read(store)) and not damaged(store):
        return
    with closing(store.hold(_KEY, _LEASE_SECONDS)) as held:
        read_ = [(line, _decoded(line)) for line in held.lines()]
        held.replace(b"".join(line for line, one in read_ if isinstance(one, Refusal) and is_kept(one)))
