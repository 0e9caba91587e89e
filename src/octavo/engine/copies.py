"""Copies of an account: a backup that opens as it is, moving house, and what becomes of those handed out.

Exports and backups are noted when they are made, so that a redaction reaches them too: a backup gets the same
redactions as the account, the files of an export lose the text. What somebody has changed since, or what
cannot be opened, is named: nobody else's work is touched.
"""

from __future__ import annotations

import hashlib
import logging
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack, closing, suppress
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from octavo.domain import privacy
from octavo.domain.erasure import Erasure
from octavo.domain.memory import Redaction
from octavo.domain.ports import Place, Progress
from octavo.domain.rules import tombstone
from octavo.domain.state import Pending
from octavo.engine.spine import Spine
from octavo.engine.spines import open_spine
from octavo.errors import BadInput, Damaged, OctavoError, Unavailable, VersionConflict
from octavo.storage import buffers, segments
from octavo.storage.buffers import Buffer
from octavo.storage.ledger import GENESIS, Ledger, key_of
from octavo.storage.logs import COPIES, Copy
from octavo.storage.state_view import DbView
from octavo.storage.stores.disk import Disk, replace_file
from octavo.storage.stores.entries import every
from octavo.storage.stores.names import folder_of
from octavo.storage.stores.places import place_of

_log = logging.getLogger(__name__)
_KEPT = 500
_LARGEST = 64_000_000  # bytes of a file that is looked into
_CAUSE = "redacted where it was copied from"
_CHANGED = "was changed since; take the text out of it, or delete it"
_UNREAD = "cannot be looked into; delete it if it holds the text"
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
    deque(spine.ledger.newer(0, GENESIS, upto=head), maxlen=0)
    number = 1
    while number <= head:
        key = segments.key_of(number)
        end = (number - 1) // segments.SIZE * segments.SIZE + segments.SIZE
        packed = spine.store.read(key) if end <= head else None
        if packed is not None:
            target.create(key, packed)
            number = end + 1
        for data in spine.ledger.entries(number, min(end, head)):
            target.create(key_of(number), data)
            number += 1
        if progress:
            progress(number - 1, head)
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
    for version in copied.newer(0, GENESIS, upto=head):
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


def note(
    spine: Spine, path: str | Path | Place, *, is_backup: bool = False, written: Iterable[Path] = ()
) -> None:
    """Note a copy before its first byte is written, an export once more by the hashes of its files.

    One made by who may only read cannot be noted.
    """
    place = str(path if isinstance(path, str | Path) else path.name)
    name = place if "://" in place else os.path.abspath(place)  # noqa: PTH100  # as it is called, links and all
    clean, version = privacy.masked(name, spine.policy.privacy), spine.head().version
    with suppress(OSError):  # whoever moves it away at once has it for himself
        files = tuple(_mark(spine, file.read_bytes()) for file in written)
        _add(spine, Copy(place=clean, version=version, is_backup=is_backup, files=files))


def must_lie_apart(spine: Spine, path: str | Path) -> None:
    """Raise if an export would lie among the account's files or around them, which are no copies."""
    own, place = spine.store.folder, Path(path).resolve()
    if own is not None and (place.is_relative_to(own.resolve()) or own.resolve().is_relative_to(place)):
        raise BadInput(f"{path} holds files of the account", hint="name a folder beside it")


def written_at(path: str | Path, result: Any) -> list[Path]:
    """The files that an export has written, as its result names them."""
    place = Path(path)
    named = tuple(f"/{name}" for name in getattr(result, "files", ())) if place.is_dir() else ()
    return [file for file in _files(place) if not named or file.as_posix().endswith(named)]


def follow(
    spine: Spine, erasure: Erasure, pending: Mapping[Redaction, int], sweep: Callable[[Spine], object]
) -> dict[str, str]:
    """Take what is erased out of every copy that still stands at its place, as often as asked.

    Says of each that held it why it still does; nothing of one that is clean now.
    """
    places: dict[tuple[str, bool], list[Copy]] = {}
    for copy in COPIES.read(spine.store):
        places.setdefault((copy.place, copy.is_backup), []).append(copy)
    told: dict[str, str] = {}
    for (place, is_backup), copies in places.items():
        try:
            if is_backup:
                why = _clean_backup(spine, copies[-1], pending, sweep)
            else:
                why = _clean_export(spine, copies, erasure)
        except OctavoError as error:
            why = f"cannot be opened: {error.message}"
        except OSError as error:
            why = f"{_UNREAD} ({error.strerror})"
        if why is not None:
            told[place] = why
    return told


def _clean_export(spine: Spine, copies: list[Copy], erasure: Erasure) -> str | None:
    """Write the files of an export anew that hold what is erased; None if none did."""
    place, ours = Path(copies[0].place), {mark for copy in copies for mark in copy.files}
    disk, held, left = Disk(), False, []
    for path in _files(place):
        below = path.relative_to(place).as_posix() if path != place else path.name
        if path.stat().st_size > _LARGEST:
            left.append(f"{below} {_UNREAD}")
            continue
        data = disk.read(path)
        clean = erasure.cleaned(below, data)
        if clean == data:
            continue
        held = True
        if _mark(spine, data) not in ours:
            left.append(f"{below} {_CHANGED}")
        elif clean is None:
            disk.remove(path)
            disk.sync_folder(path.parent)
            with suppress(OSError):  # others are in it
                path.parent.rmdir()
        else:
            _add(spine, replace(copies[-1], files=(_mark(spine, clean),)))  # first: a kill leaves one of both
            replace_file(disk, path, clean)
    return "; ".join(left) if held or left else None


def _clean_backup(
    spine: Spine, copy: Copy, pending: Mapping[Redaction, int], sweep: Callable[[Spine], object]
) -> str | None:
    """Commit the same redactions in a backup and sweep it; None if it holds nothing of them."""
    store = place_of(copy.place).open(spine.identity.account)
    if store.read("account.json", first=1) is None:
        is_begun = store.folder is not None and store.folder.exists()
        return "is the beginning of a backup only; delete it" if is_begun else None
    since = min((v for r in pending for v, _ in spine.state.history(r.memory)[:1]), default=0)
    if copy.version < since and not list(buffers.names(store)):
        return None
    index = None if store.folder is None or (store.folder / "index").exists() else store.folder / "index"
    try:
        return _redact_there(spine, copy, pending, sweep)
    finally:
        if index is not None:
            shutil.rmtree(index, ignore_errors=True)  # it was made to look into the backup


def _redact_there(
    spine: Spine, copy: Copy, pending: Mapping[Redaction, int], sweep: Callable[[Spine], object]
) -> str:
    other = open_spine(copy.place, spine.identity.account, clock=spine.clock)
    with closing(other.state):
        if not _is_as_made(spine, other, copy.version):
            return _CHANGED
        known = {(r.memory, r.key) for _, r in other.state.others("redaction") if isinstance(r, Redaction)}
        new = [replace(r, swept=False) for r in pending if (r.memory, r.key) not in known]

        def act(again: Pending, view: DbView) -> None:
            for id_ in {redaction.memory for redaction in new}:
                there, here = view.live(id_), spine.head().live(id_)
                if there is None:
                    continue
                is_masked = here is not None and here.kind == "episode"
                after = replace(here, rev=there.rev + 1) if here and is_masked else None
                again.apply(after or tombstone(there, new[0].by))
            again.extend(new)

        other.commit(act, cause=_CAUSE, actor=new[0].by if new else "system")
        sweep(other)
    return ""


def _is_as_made(spine: Spine, other: Spine, version: int) -> bool:
    """Whether a backup is of this account's history, and nobody but a redaction has written to it since."""
    last = other.state.watermark()[0]
    while last and other.state.commit(last).cause in (_CAUSE, "swept"):
        last -= 1
    is_older = last <= version and other.identity.key == spine.identity.key
    return is_older and (not last or spine.ledger.hash_of(last) == other.ledger.hash_of(last))


def _add(spine: Spine, copy: Copy) -> None:
    if spine.read_only:
        return
    try:
        if copy not in COPIES.read(spine.store):
            COPIES.add(spine.store, copy, keep=_KEPT)
    except (Damaged, Unavailable) as error:  # a full disk is a reason to make a backup, not to refuse one
        _log.warning("copy not noted reason=%s", type(error).__name__)


def _mark(spine: Spine, data: bytes) -> str:
    """What a file of an export is known by, without saying what is in it or how it is called."""
    return spine.keyed(hashlib.sha256(data).hexdigest())[:16]


def _files(place: Path) -> list[Path]:
    below = sorted(place.rglob("*")) if place.is_dir() else [place]
    return [path for path in below if path.is_file() and not path.is_symlink()]
