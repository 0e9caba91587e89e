"""The agent tool of seed 002: a vault by named actions and plain JSON, each action allowed or denied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from octavo.documents.vault.limits import ACTIONS
from octavo.documents.vault.lines import VaultMemory
from octavo.documents.vault.memory_vault import MemoryVault, Proposed, UnknownMemory
from octavo.documents.vault.reading import Scopes
from octavo.domain.memory import SHARED
from octavo.engine.surface import fitted
from octavo.errors import OctavoError

Reply = dict[str, Any]


def vault_tool(vault: MemoryVault, action: str, **arguments: Any) -> Reply:
    """Do one action for an agent; the reply is plain JSON with a `status`, never an exception.

    Unless the vault was opened for a named actor, an agent acts, so canon waits for a person.
    `status` is stored, updated, deleted, ok, proposed, not_found, denied or error; the last two, and
    proposed, come with a `message`.
    """
    if action not in vault.actions:
        allowed = ", ".join(vault.actions) or "nothing"
        what = f"action {action!r} is {'denied' if action in ACTIONS else 'unknown'}"
        return {"status": "denied", "message": f"{what}; allowed here: {allowed}"}
    try:
        call, unsaid, told = _ACTS[action]
        return told(call(vault.for_tool(), **{**unsaid, **arguments}))
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


_ADDED = {"tier": "register", "source": "tool"}


@fitted
def _bulk_add(vault: MemoryVault, items: Iterable[Mapping[str, Any]]) -> Reply:
    return vault.bulk_add([{**_ADDED, **item} for item in items])


@fitted
def _remember(vault: MemoryVault, text: str) -> VaultMemory | Proposed:
    return vault.add_memory(text, SHARED, "other", ["remembered"], "chat", tier="register")


@fitted
def _recall(
    vault: MemoryVault,
    scope: Scopes = None,
    category: str | None = None,
    tags: Sequence[str] | None = None,
    limit: int | None = None,
) -> list[VaultMemory]:
    return vault.recall(scope, category, tags, vault.max_items if limit is None else limit)


@fitted
def _get(vault: MemoryVault, memory_id: str) -> Reply:
    memory = vault.get(memory_id)
    if memory is None:
        raise UnknownMemory(f"there is no memory {memory_id!r} in the vault")
    return {"memory": memory.to_dict()}


@fitted
def _delete(vault: MemoryVault, memory_id: str) -> Reply:
    done = vault.delete_memory(memory_id)
    if isinstance(done, Proposed):
        return _written(done)
    if not done:
        raise UnknownMemory(f"there is no memory {memory_id!r} in the vault")
    return {"status": "deleted", "id": memory_id}


@fitted
def _journal(vault: MemoryVault, text: str, scope: str = SHARED) -> Reply:
    return {"status": "stored", "id": vault.journal(text, scope)}


@fitted
def _directives(vault: MemoryVault, query: str | None = None, scope: Scopes = None) -> Reply:
    rules = vault.directives(query, scope)
    return {"directives": [{"id": r.id, "text": r.text, "scope": r.scope} for r in rules]}


@fitted
def _rebuild_index(vault: MemoryVault) -> Reply:
    vault.account.reindex()
    return {}


def _written(outcome: VaultMemory | Proposed) -> Reply:
    if isinstance(outcome, Proposed):
        return {"status": outcome.status, "proposal": outcome.proposal, "message": outcome.reason}
    return {"status": outcome.status, "id": outcome.id, "version": outcome.version}


def _listed(found: Iterable[VaultMemory]) -> Reply:
    rows = [m.to_dict() if m.score is None else {**m.to_dict(), "score": m.score} for m in found]
    return {"status": "ok", "memories": rows}


def _ok(reply: Reply) -> Reply:
    return {"status": "ok", **reply}


# Each action's call, what it says where the agent says nothing, and how its outcome is told.
_ACTS: dict[str, tuple[Callable[..., Any], Reply, Callable[[Any], Reply]]] = {
    "add": (MemoryVault.add_memory, {"scope": SHARED, "category": "other", **_ADDED}, _written),
    "bulk_add": (_bulk_add, {}, _ok),
    "remember": (_remember, {}, _written),
    "search": (MemoryVault.search_memories, {}, _listed),
    "recall": (_recall, {}, _listed),
    "get": (_get, {}, _ok),
    "list": (_recall, {}, _listed),
    "update": (MemoryVault.update_memory, {}, _written),
    "delete": (_delete, {}, _ok),
    "bulk_delete": (MemoryVault.bulk_delete, {}, _ok),
    "journal": (_journal, {}, _ok),
    "directives": (_directives, {}, _ok),
    "stats": (MemoryVault.vault_stats, {}, _ok),
    "compact": (MemoryVault.compact, {}, _ok),
    "rebuild_index": (_rebuild_index, {}, _ok),
}
