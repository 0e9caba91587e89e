"""The cache of what is derived from accounts that lie elsewhere: bounded, and safe to delete."""

from __future__ import annotations

import fcntl
import hashlib
import os
import random
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from octavo.errors import Unavailable
from octavo.libraries import shutil
from octavo.storage.stores.disk import Disk
from octavo.storage.stores.names import folder_of

_HELD = ".held"
_LIMIT_BYTES = 4_000_000_000
_ONE_IN = 64  # looking takes time, so not everybody who opens an account does
_SAMPLE = 2 * _ONE_IN  # nor at all of them: more than have come to be since somebody last looked

_disk = Disk()


def folder_for(root: Path | None, place: str, account: str) -> tuple[Path, Callable[[], None]]:
    """The folder for what is derived from an account, held until the callable is called."""
    root = root or Path("~/.cache/octavo").expanduser()
    folder = root / hashlib.sha256(place.encode()).hexdigest()[:16] / folder_of(account)
    try:
        if not folder.exists() and secrets.randbelow(_ONE_IN) == 0:
            trim(root)
        while True:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = _disk.open_lock(folder / _HELD)
            fcntl.flock(fd, fcntl.LOCK_SH)
            os.utime(fd)  # the least recently opened goes first
            if _disk.is_at(fd, folder / _HELD):
                return folder, partial(os.close, fd)
            os.close(fd)  # it was removed in between
    except OSError as error:
        hint = "name another folder for the cache, or make room in this one"
        raise Unavailable(f"using the cache in {root}: {error.strerror}", hint=hint) from error


def trim(root: Path, limit_bytes: int = _LIMIT_BYTES) -> int:
    """Of some folders, remove those opened longest ago that nobody holds, until all are small enough.

    How large all of them are is told from the size of those that are looked at.
    """
    folders = list(root.glob("[!.]*/[!.]*"))
    sample = sorted((*_used(folder), folder) for folder in random.sample(folders, min(len(folders), _SAMPLE)))
    total = sum(size for _, size, _ in sample) * len(folders) / max(len(sample), 1)
    removed = 0
    for _, size, folder in sample:
        if total > limit_bytes and _is_removed(folder):
            total -= size
            removed += 1
    return removed


def _is_removed(folder: Path) -> bool:
    """Remove a folder unless somebody holds it."""
    doomed = folder.with_name(f".deleted-{secrets.token_hex(8)}")
    with suppress(FileNotFoundError):
        fd = _disk.open_lock(folder / _HELD)
        try:
            if _disk.try_lock(fd):
                folder.rename(doomed)
        finally:
            os.close(fd)
    is_removed = doomed.exists()
    shutil.rmtree(doomed, ignore_errors=True)
    return is_removed


def _used(folder: Path) -> tuple[float, int]:
    """When anything in a folder was last written, its hold included, and how large all of it is."""
    newest, total = 0.0, 0
    for inside, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # whoever has it open may be writing it anew
                stat = os.lstat(f"{inside}/{name}")
                newest, total = max(newest, stat.st_mtime), total + stat.st_size
    return newest, total
