"""What mem0's `get_all` returns, as JSON: every entry a fact with its own times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavo.documents.imports.taking import batches, id_of, read_export, take, time_of
from octavo.documents.transfer import Imported
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.engine.fields import plain_json
from octavo.storage.projections import Progress

FORMAT = "mem0"


def import_(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in the entries of `get_all`, an array or an object with `results`."""
    entries = enumerate(read_export(path, "", "results", "memories"), start=1)
    items = [(f"entry {number}", _memory(account, entry, number)) for number, entry in entries]
    return take(account, FORMAT, batches(items), progress)


def _memory(account: Account, entry: Mapping[str, Any], number: int) -> Memory:
    text = entry.get("memory") or entry.get("data") or entry.get("text") or ""
    labels = entry.get("categories")
    return Memory(
        id=id_of(account, FORMAT, str(entry.get("id") or f"{number} {text}")),
        kind="fact",
        text=text if isinstance(text, str) else "",
        scope=account.scope or SHARED,
        tags=tuple(str(label) for label in labels) if isinstance(labels, list) else (),
        source="tool",
        at=time_of(entry.get("updated_at") or entry.get("created_at")),
        data={FORMAT: plain_json(entry)} if text else {},
    )
