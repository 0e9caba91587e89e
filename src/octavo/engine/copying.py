"""Copies of an account in another place: a backup that opens as it is, and moving house."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from octavo.domain.ports import Place, Store
from octavo.engine.spine import Spine
from octavo.engine.spines import open_spine
from octavo.errors import BadInput, LedgerDamaged, VersionConflict
from octavo.storage import buffers, segments
from octavo.storage.buffers import Buffer
from octavo.storage.ledger import GENESIS, Ledger, key_of
from octavo.storage.stores.entries import every
from octavo.storage.stores.names import folder_of
from octavo.storage.stores.places import place_of

Progress = Callable[[int, int], None]
_BATCH = 64
_MOVED = b"this account was moved to another place\n"
_BESIDE = ("policy.toml", "refusals.jsonl")
_COPIES = "copies.jsonl"  # the account's own, wherever it goes; a backup begins none


def backup(
    spine: Spine, root: str | Path | Place, progress: Progress | None = None, *, last: int | None = None
) -> str:
    """Copy what is true (account file, policy, ledger, buffers) into another place; says where it is.

    Every version is proved before one is copied; `last` ends the copy there, whatever comes behind it.
    """
    account, place = spine.identity.account, place_of(root)
    target = place.open(account)
    if target.read("account.json", first=1) is not None or (target.folder and target.folder.exists()):
        raise BadInput(
            f"account {account!r} exists already in {place.name}",
            hint="name a place that holds no such account",
        )
    head = spine.head().version if last is None else last
    deque(spine.ledger.chain(1, head, GENESIS), maxlen=0)
    if last is None:
        _copy_ledger(spine.store, target, head, progress)
    else:
        for number in range(1, last + 1):
            target.create(key_of(number), spine.ledger.bytes_of(number))
    for key in (*_BESIDE, *every(spine.store, "archive/"), *every(spine.store, "buffers/")):
        series = spine.store.lines(key)
        if series is not None:
            target.create(key, b"".join(series[0]))
    target.create("account.json", spine.store.read("account.json") or b"")  # last: now it is an account
    return str(target.folder) if target.folder else f"{place.name}/{folder_of(account)}"


def move(root: str | Path | Place, account: str, to: str | Path | Place) -> str:
    """Move an account to another place: held, copied, compared, and only then removed where it was.

    Nobody may have a sandbox in hand, and nobody can commit any more once the copy is whole.
    """
    source, target = place_of(root), place_of(to)
    spine = open_spine(source, account)
    with ExitStack() as stack:
        stack.callback(spine.state.close)
        for name in buffers.names(spine.store):
            stack.callback(Buffer.resume(spine.store, name).close)
        where = backup(spine, target)
        try:
            _fence(spine, Ledger(target.open(account)), set(buffers.names(target.open(account))))
        except BaseException:
            target.delete(account)
            raise
        if (made := spine.store.lines(_COPIES)) is not None:
            target.open(account).create(_COPIES, b"".join(made[0]))
    source.delete(account)
    return where


def _fence(spine: Spine, copied: Ledger, sandboxes: set[str]) -> None:
    """Take the next version's place, so that nothing can be committed, and see that the copy is whole."""
    head, hash_ = spine.state.watermark()
    key, last = key_of(head + 1), GENESIS
    for version in copied.chain(1, head, GENESIS):
        last = version.hash
    is_fenced = spine.store.create(key, _MOVED, unless=segments.key_of(head + 1))
    if is_fenced and last == hash_ and set(buffers.names(spine.store)) == sandboxes:
        return
    if is_fenced:
        spine.store.delete(key)
    raise VersionConflict(
        f"account {spine.identity.account!r} was written to while it was moved; it stays where it is",
        hint="move it when nobody writes",
    )


def _copy_ledger(source: Store, target: Store, head: int, progress: Progress | None) -> None:
    """Copy every version up to one, segments as they are."""
    number = 1
    while number <= head:
        key = segments.key_of(number)
        packed = source.read(key)
        if packed is not None:
            target.create(key, packed)
            number = segments.unpack(key, packed)[0].last + 1
            continue
        upto = min(
            number + _BATCH, head + 1, (number - 1) // segments.SIZE * segments.SIZE + segments.SIZE + 1
        )
        for data in source.read_many([key_of(each) for each in range(number, upto)]):
            if data is None and source.read(key, first=1) is None:
                raise LedgerDamaged(f"{key_of(number)} is missing; the copy ends before it")
            if data is None:
                break  # it was sealed meanwhile
            target.create(key_of(number), data)
            number += 1
        if progress:
            progress(number - 1, head)
