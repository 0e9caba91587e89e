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
from octavo.storage.stores.names import folder_of

_HELD = ".held"
_LIMIT_BYTES = 4_000_000_000
_ONE_IN = 64  # looking takes time, so not everybody who opens an account does
_SAMPLE = 32


def default_root() -> Path:
    """Where the cache is if nobody says so."""
    return Path("~/.cache/octavo").expanduser()


def folder_for(root: Path, place: str, account: str) -> tuple[Path, Callable[[], None]]:
    """The folder for what is derived from an account, held until the callable is called."""
    folder = root / hashlib.sha256(place.encode()).hexdigest()[:16] / folder_of(account)
    try:
        is_new = not folder.exists()
        if is_new and secrets.randbelow(_ONE_IN) == 0:
            trim(root)
        while True:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            fd = os.open(folder / _HELD, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600)
            fcntl.flock(fd, fcntl.LOCK_SH)
            os.utime(fd)  # the least recently opened goes first
            if _is_there(fd, folder / _HELD):
                return folder, partial(os.close, fd)
            os.close(fd)  # it was removed in between
    except OSError as error:
        hint = "name another folder for the cache, or make room in this one"
        raise Unavailable(f"using the cache in {root}: {error.strerror}", hint=hint) from error


def trim(root: Path, limit_bytes: int = _LIMIT_BYTES) -> int:
    """Remove what was opened longest ago and nobody holds, until the rest is small enough."""
    folders = [Path(account) for place in _below(root) for account in _below(Path(place))]
    sample = random.sample(folders, min(len(folders), _SAMPLE))
    if sum(map(_size, sample)) * len(folders) <= limit_bytes * len(sample):
        return 0  # by a look at some of them, which is all that most of those who look have to do
    sizes = {folder: _size(folder) for folder in folders}
    total, removed = sum(sizes.values()), 0
    for folder in sorted(folders, key=_opened):
        if total <= limit_bytes:
            break
        if _removed(folder):
            total -= sizes[folder]
            removed += 1
    return removed


def _below(folder: Path) -> list[str]:
    """The folders in a folder, without those that are being removed."""
    try:
        with os.scandir(folder) as entries:
            return [entry.path for entry in entries if not entry.name.startswith(".") and entry.is_dir()]
    except FileNotFoundError:
        return []


def _removed(folder: Path) -> bool:
    try:
        fd = os.open(folder / _HELD, os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        doomed = folder.with_name(f".deleted-{secrets.token_hex(8)}")
        folder.rename(doomed)
    except BlockingIOError:
        return False
    finally:
        os.close(fd)
    shutil.rmtree(doomed, ignore_errors=True)
    return True


def _is_there(fd: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(fd), path.stat())
    except FileNotFoundError:
        return False


def _opened(folder: Path) -> float:
    try:
        return (folder / _HELD).stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _size(folder: Path) -> int:
    total = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            with suppress(FileNotFoundError):  # whoever has it open may be writing it anew
                total += os.lstat(f"{inside}/{name}").st_size
    return total
