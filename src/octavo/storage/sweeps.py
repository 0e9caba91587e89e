"""Marks that a redaction leaves, so that nobody packs what was read before it."""

from __future__ import annotations

from octavo.domain.ports import Store
from octavo.storage.stores.entries import every

_FOLDER = "sweeps/"


def next_mark(store: Store) -> str:
    """The mark that the next redaction will leave.

    Whoever copies texts asks for it before reading, and creates the copy unless the mark is there.
    """
    return f"{_FOLDER}{len(list(every(store, _FOLDER))) + 1:010d}"


def leave_mark(store: Store) -> None:
    """Leave a mark: copies made of what was read before are refused from now on."""
    while not store.create(next_mark(store), b""):
        pass  # another redaction left this one
