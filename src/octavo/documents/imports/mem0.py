"""What mem0's `get_all` returns, as JSON: every entry a fact with its own times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavo.documents.imports.taking import id_of, objects_in, read_export, take_memories, time_of
from octavo.documents.transfer import Imported
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.engine.fields import plain_json
from octavo.storage.projections import Progress

FORMAT = "mem0"


def import_(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in the entries of `get_all`, an array or an object with `results`."""
    entries = objects_in(read_export(path), path, "results", "memories")
    memories = [(f"entry {n}", _memory(account, entry, n)) for n, entry in enumerate(entries, start=1)]
    return take_memories(account, FORMAT, memories, progress)


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
