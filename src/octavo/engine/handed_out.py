"""Copies handed out, exports and backups: their owner's own; a redaction names those that hold a text."""

from __future__ import annotations

import logging
import os
from collections.abc import Collection, Iterator
from pathlib import Path

from octavo.domain import privacy
from octavo.domain.erasure import is_within, plain
from octavo.domain.ports import Place
from octavo.domain.text import key_of
from octavo.engine.spine import Spine
from octavo.errors import Unavailable
from octavo.storage.logs import COPIES, Copy

_log = logging.getLogger(__name__)
_KEPT = 500
_LARGEST = 64_000_000  # bytes of a file that is looked into


def note(spine: Spine, path: str | Path | Place, *, is_backup: bool = False) -> None:
    """Note a copy before its first byte is written; one made by a reader is not known."""
    if spine.read_only:
        return
    place = str(path if isinstance(path, str | Path) else path.name)
    name = place if "://" in place else os.path.abspath(place)  # noqa: PTH100  # as it is called, links and all
    copy = Copy(
        place=privacy.masked(name, spine.policy.privacy), version=spine.head().version, is_backup=is_backup
    )
    try:
        if copy not in COPIES.read(spine.store):
            COPIES.add(spine.store, copy, keep=_KEPT)
    except Unavailable as error:  # a disk that is full is a reason to make a backup, not to refuse one
        _log.warning("copy not noted reason=%s", type(error).__name__)


def holding(spine: Spine, texts: Collection[str], since: int) -> tuple[str, ...]:
    """Copies that were made when a memory was there and still exist: exports that say it, and all backups."""
    keys = [key for text in texts if (key := key_of(text))]
    made = COPIES.read(spine.store)
    return tuple(dict.fromkeys(copy.place for copy in made if _may_hold(copy, keys, since)))


def _may_hold(copy: Copy, keys: Collection[str], since: int) -> bool:
    if copy.is_backup and copy.version < since:
        return False
    if "://" in copy.place:
        return True
    place = Path(copy.place)
    return place.exists() and (copy.is_backup or any(_says(file, keys) for file in _files(place)))


def _files(place: Path) -> Iterator[Path]:
    below = place.rglob("*") if place.is_dir() else [place]
    return (path for path in below if path.is_file() and not path.is_symlink())


def _says(path: Path, keys: Collection[str]) -> bool:
    try:
        if path.stat().st_size > _LARGEST:
            return True
        said = key_of(plain(path.read_text(errors="replace")))
    except OSError:
        return True  # who cannot look cannot say that it is not there
    return any(is_within(key, said) for key in keys)
