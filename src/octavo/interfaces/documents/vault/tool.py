"""The agent tool of seed 002: a vault by named actions and plain JSON, each action allowed or denied."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from octavo.domain.memory import SHARED
from octavo.errors import BadInput, OctavoError
from octavo.interfaces.documents.vault.actions import ACTIONS
from octavo.interfaces.documents.vault.memory_vault import MemoryVault, Proposed, UnknownMemory
from octavo.interfaces.formats.vault_records import VaultMemory

Reply = dict[str, Any]


def vault_tool(vault: MemoryVault, action: str, **arguments: Any) -> Reply:
    """Do one action for an agent; the reply is plain JSON with a `status`, never an exception.

    `status` is stored, updated, deleted, ok, proposed, not_found, denied or error; the last two, and
    proposed, come with a `message`.
    """
    if action not in vault.actions:
        allowed = ", ".join(vault.actions) or "nothing"
        what = f"action {action!r} is {'denied' if action in ACTIONS else 'unknown'}"
        return {"status": "denied", "message": f"{what}; allowed here: {allowed}"}
    try:
        return _fitting(_ACTS[action], vault, arguments)()
    except UnknownMemory as error:
        return {"status": "not_found", "message": error.message}
    except OctavoError as error:
        return {"status": "error", "message": str(error)}


def flush_proposed(vault: MemoryVault, proposed: Iterable[Mapping[str, Any]]) -> Reply:
    """Write what an agent proposed during a tick, through the gate, as the tick ends.

    The reply has the counts of the seed's journal line and, for each memory that was kept out, its error.
    """
    items = list(proposed)
    done = vault_tool(vault, "bulk_add", items=items)
    errors = [row["message"] for row in done.get("errors", ())]
    if done["status"] in ("denied", "error"):
        errors = [done["message"]]
    return {
        "status": done["status"],
        "memories_proposed": len(items),
        "memories_written": len(done.get("stored", ())),
        "errors": [f"memory_write_error: {message}" for message in errors],
    }


def _fitting(
    act: Callable[..., Reply], vault: MemoryVault, arguments: Mapping[str, Any]
) -> Callable[[], Reply]:
    """The action with its arguments, or BadInput: what an agent sends may be anything."""
    try:
        inspect.signature(act).bind(vault, **arguments)
    except TypeError as error:
        raise BadInput(f"the arguments do not fit: {error}") from error
    for name, value in arguments.items():
        kind, items = _SORTS[name]
        is_right = isinstance(value, kind) and not isinstance(value, bool)
        if value is not None and not (is_right and (items is None or _are_all(value, items))):
            raise BadInput(f"{name} cannot be {value!r}")
    return partial(act, vault, **arguments)


def _are_all(value: Any, kind: type) -> bool:
    return not isinstance(value, list) or all(isinstance(item, kind) for item in value)


def _add(
    vault: MemoryVault,
    text: str,
    scope: str = SHARED,
    category: str = "other",
    tags: Sequence[str] | None = None,
    source: str = "tool",
    tier: str = "register",
    topic_id: str | None = None,
) -> Reply:
    return _told(vault.add_memory(text, scope, category, tags, source, tier=tier, topic_id=topic_id))


def _bulk_add(vault: MemoryVault, items: Iterable[Mapping[str, Any]]) -> Reply:
    return {"status": "ok", **vault.bulk_add([{"tier": "register", "source": "tool", **i} for i in items])}


def _remember(vault: MemoryVault, text: str) -> Reply:
    return _add(vault, text, tags=["remembered"], source="chat")


def _search(vault: MemoryVault, query: str, scope: str | list[str] | None = None, limit: int = 10) -> Reply:
    found = vault.search_memories(query, scope, limit)
    return {"status": "ok", "memories": [{**m.to_dict(), "score": m.score} for m in found]}


def _recall(
    vault: MemoryVault,
    scope: str | list[str] | None = None,
    category: str | None = None,
    tags: Sequence[str] | None = None,
    limit: int | None = None,
) -> Reply:
    found = vault.recall(scope, category, tags, vault.max_items if limit is None else limit)
    return {"status": "ok", "memories": [memory.to_dict() for memory in found]}


def _get(vault: MemoryVault, memory_id: str) -> Reply:
    found = vault.get(memory_id)
    if found is None:
        raise UnknownMemory(f"there is no memory {memory_id!r} in the vault")
    return {"status": "ok", "memory": found.to_dict()}


def _update(
    vault: MemoryVault,
    memory_id: str,
    text: str | None = None,
    category: str | None = None,
    tags: Sequence[str] | None = None,
) -> Reply:
    return _told(vault.update_memory(memory_id, text, category=category, tags=tags))


def _delete(vault: MemoryVault, memory_id: str) -> Reply:
    done = vault.delete_memory(memory_id)
    if isinstance(done, Proposed):
        return _told(done)
    if not done:
        raise UnknownMemory(f"there is no memory {memory_id!r} in the vault")
    return {"status": "deleted", "id": memory_id}


def _bulk_delete(vault: MemoryVault, memory_ids: Iterable[str]) -> Reply:
    return {"status": "ok", **vault.bulk_delete(memory_ids)}


def _stats(vault: MemoryVault) -> Reply:
    return {"status": "ok", **vault.vault_stats()}


def _compact(vault: MemoryVault) -> Reply:
    return {"status": "ok", **vault.compact()}


def _rebuild_index(vault: MemoryVault) -> Reply:
    vault.account.reindex()
    return {"status": "ok"}


def _told(outcome: VaultMemory | Proposed) -> Reply:
    if isinstance(outcome, Proposed):
        return {"status": outcome.status, "proposal": outcome.proposal, "message": outcome.reason}
    return {"status": outcome.status, "id": outcome.id, "version": outcome.version}


# Of which sort an argument is and, if it is a list, its items.
_SORTS: dict[str, tuple[Any, type | None]] = {
    **dict.fromkeys(("text", "query", "memory_id", "category", "source", "tier", "topic_id"), (str, None)),
    **dict.fromkeys(("memory_ids", "tags"), (list, str)),
    "scope": (str | list, str),
    "items": (list, dict),
    "limit": (int, None),
}

_ACTS: dict[str, Callable[..., Reply]] = {
    "add": _add,
    "bulk_add": _bulk_add,
    "remember": _remember,
    "search": _search,
    "recall": _recall,
    "get": _get,
    "list": _recall,
    "update": _update,
    "delete": _delete,
    "bulk_delete": _bulk_delete,
    "stats": _stats,
    "compact": _compact,
    "rebuild_index": _rebuild_index,
}
