"""Checkpoints: the state as it was at a version, so that a long history opens fast; never the truth.

The first line of one says which state it is and how it is laid out.
"""

from __future__ import annotations

import logging
import tempfile
import zlib
from pathlib import Path

import msgspec

from octavo.domain.ports import Store
from octavo.storage.ledger import Ledger
from octavo.storage.state_db import StateDb
from octavo.storage.state_file import SCHEMA
from octavo.storage.stores.disk import Disk, replace_file, saying
from octavo.storage.stores.entries import every

FOLDER = "checkpoints/"
EVERY = 1000  # versions after which another one is worth its while
_KEPT = 2
_FORMAT = 1
_log = logging.getLogger("octavo.checkpoints")


def make(store: Store, state: StateDb, *, unless: str) -> int | None:
    """Keep the state as it is now, if enough has come since the last time; the two newest are kept."""
    keys = list(every(store, FOLDER))
    newest = keys[-1].removeprefix(FOLDER).partition("-")[0] if keys else "0"
    if state.watermark()[0] - (int(newest) if newest.isdecimal() else 0) < EVERY:
        return None
    with tempfile.TemporaryDirectory(prefix="octavo-") as folder:
        copy = Path(folder) / "state.db"
        version, hash_ = state.copy_to(copy)
        packed = zlib.compress(copy.read_bytes(), 1)
    head = msgspec.json.encode({"format": _FORMAT, "schema": SCHEMA, "version": version, "hash": hash_})
    if not store.create(f"{FOLDER}{version:020d}-{hash_[:16]}", head + b"\n" + packed, unless=unless):
        return None
    store.delete(*keys[: max(len(keys) + 1 - _KEPT, 0)])
    return version


def restore(store: Store, ledger: Ledger, path: Path) -> bool:
    """Begin a state file that is not there from the newest checkpoint of this very history."""
    for key in reversed(list(every(store, FOLDER))):
        line, _, packed = (store.read(key) or b"").partition(b"\n")
        try:
            head = msgspec.json.decode(line, type=dict[str, int | str])
            version = int(head.get("version", 0))
            is_ours = (head.get("format"), head.get("schema")) == (_FORMAT, SCHEMA) and ledger.exists(version)
            if is_ours and ledger.hash_of(version) == head.get("hash"):
                with saying(f"writing {path}"):
                    replace_file(Disk(), path, zlib.decompress(packed))
                return True
        except (ValueError, zlib.error) as error:
            _log.warning("passed over a checkpoint key=%s why=%s", key, type(error).__name__)
    return False


def remove(store: Store) -> None:
    """Remove all of them; redaction does this before it says that it is done."""
    if keys := list(every(store, FOLDER)):
        store.delete(*keys)
