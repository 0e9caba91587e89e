"""The agent tool of seed 002: a vault by named actions and plain JSON, each action allowed or denied."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from octavo.documents.vault.lines import VaultMemory
from octavo.documents.vault.memory_vault import ACTIONS, MemoryVault, UnknownMemory
from octavo.domain.memory import SHARED
from octavo.domain.verdicts import Verdict
from octavo.engine.surface import fitted
from octavo.errors import OctavoError

Reply = dict[str, Any]

_ADDED = {"tier": "register", "source": "tool"}
_REMEMBERED = {"tags": ["remembered"], "source": "chat", "tier": "register"}


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
        call, unsaid = _CALLS[action]
        bound = {"limit": vault.max_items} if action in ("recall", "list") else {}
        return _told(action, arguments, call(vault.for_tool(), **{**unsaid, **bound, **arguments}))
    except UnknownMemory as error:
        return {"status": "not_found", "message": error.message}
    except OctavoError as error:
        return {"status": "error", "message": str(error)}


@fitted
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


@fitted
def _bulk_add(vault: MemoryVault, items: Iterable[Mapping[str, Any]]) -> Reply:
    return vault.bulk_add([{**_ADDED, **item} for item in items])


def _told(action: str, arguments: Mapping[str, Any], outcome: Any) -> Reply:
    """What a call returned, as a reply."""
    match outcome:
        case Verdict():
            return {"status": outcome.outcome, "proposal": outcome.proposal, "message": outcome.detail}
        case VaultMemory() if action == "get":
            return {"status": "ok", "memory": outcome.to_dict()}
        case VaultMemory():
            return {"status": outcome.status, "id": outcome.id, "version": outcome.version}
        case list() if action == "directives":
            return {"status": "ok", action: [{"id": r.id, "text": r.text, "scope": r.scope} for r in outcome]}
        case list():
            scores = [{} if m.score is None else {"score": m.score} for m in outcome]
            rows = [m.to_dict() | score for m, score in zip(outcome, scores, strict=True)]
            return {"status": "ok", "memories": rows}
        case str():
            return {"status": "stored", "id": outcome}
        case True:
            return {"status": "deleted", "id": arguments["memory_id"]}
        case False | None:
            raise UnknownMemory(f"there is no memory {arguments['memory_id']!r} in the vault")
        case _:
            return {"status": "ok", **outcome}


# The call of each action, and what it says where the agent says nothing.
_CALLS: dict[str, tuple[Callable[..., Any], Reply]] = {
    "add": (MemoryVault.add_memory, {"scope": SHARED, "category": "other", **_ADDED}),
    "bulk_add": (_bulk_add, {}),
    "remember": (MemoryVault.add_memory, {"scope": SHARED, "category": "other", **_REMEMBERED}),
    "search": (MemoryVault.search_memories, {}),
    "recall": (MemoryVault.recall, {}),
    "get": (MemoryVault.get, {}),
    "list": (MemoryVault.recall, {}),
    "update": (MemoryVault.update_memory, {}),
    "delete": (MemoryVault.delete_memory, {}),
    "bulk_delete": (MemoryVault.bulk_delete, {}),
    "journal": (MemoryVault.journal, {}),
    "directives": (MemoryVault.directives, {}),
    "stats": (MemoryVault.vault_stats, {}),
    "compact": (MemoryVault.compact, {}),
    "rebuild_index": (MemoryVault.rebuild_index, {}),
}
