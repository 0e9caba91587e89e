"""The paths of the documents, as they write them: the vault, memory structures, filesystem memory."""

from __future__ import annotations

from collections import Counter
from typing import Any, Literal

from octavo.documents.brain import FilesystemMemory
from octavo.documents.brain.memory import LEVELS
from octavo.documents.synthians import MemoryCore, MemoryEntry
from octavo.domain.memory import Layer
from octavo.domain.verdicts import Verdict
from octavo.doors.operations import BY_NAME, Operation
from octavo.doors.operations.remembering import live
from octavo.doors.operations.table import PARTS, TABLE
from octavo.doors.plain import plain
from octavo.doors.pool import Pool
from octavo.doors.rest import add_operation
from octavo.doors.visitors import Visitors
from octavo.engine.account import Account
from octavo.errors import BadInput, NotFound
from octavo.storage.mirror_tree import unfit

_VAULT = ("canon", "register")


def vault_add(
    account: Account,
    text: str,
    scope: str | None = None,
    category: str = "other",
    tags: list[str] | None = None,
    source: Literal["chat", "manual", "tool"] = "tool",
    tier: Literal["canon", "register"] = "register",
    topic_id: str | None = None,
) -> Any:
    """Store a memory in the vault; canon of an agent waits for a person."""
    how: dict[str, Any] = {"category": category, "tags": tags or (), "source": source, "scope": scope}
    verdict = account.remember(text, kind=tier, topic=topic_id, **how)
    if verdict.proposal is not None:
        return _waiting(verdict)
    memory = verdict.or_raise()
    return {"status": "stored" if memory.rev == 1 else "updated", "id": memory.id, "version": memory.rev}


def vault_delete(account: Account, memory_id: str) -> Any:
    """Delete a memory of the vault; its history stays."""
    live(account, memory_id)
    (verdict,) = account.forget(memory_id)
    if verdict.proposal is not None:
        return _waiting(verdict)
    verdict.or_raise()
    return {"status": "deleted", "id": memory_id}


def _waiting(verdict: Verdict) -> dict[str, Any]:
    return {"status": "proposed", "proposal": verdict.proposal, "message": verdict.detail}


def vault_stats(account: Account) -> Any:
    """Count what the vault holds."""
    held, most = account.memories(kind=_VAULT), account.policy.kinds.of("register").capacity
    return {
        "status": "ok",
        "active_count": len(held),
        "max_active": most,
        "utilization_pct": round(100 * len(held) / most, 1) if most else 0.0,
        "by_scope": Counter(m.scope for m in held),
        "by_tier": Counter(m.kind for m in held),
        "by_category": Counter(m.category or "other" for m in held),
        "register_topics": sum(1 for m in held if m.kind == "register" and m.topic),
    }


def vault_compact(account: Account) -> Any:
    """Do the upkeep; an account keeps its history in the ledger and has no lines to drop."""
    account.upkeep()
    held = len(account.memories(kind=_VAULT))
    return {"status": "ok", "lines_before": held, "lines_after": held, "lines_removed": 0}


def retrieve_memories(
    account: Account,
    query: str,
    top_k: int = 5,
    threshold: float | None = None,
    user_emotion: str | None = None,
) -> Any:
    """Recall what answers a query; a threshold looks at the score without the assemblies' part."""
    return MemoryCore(account).retrieve_memories(query, min(max(top_k, 0), 1000), threshold, user_emotion)


def provide_feedback(
    account: Account, memory_id: str, was_relevant: bool | None = None, delta: float | None = None
) -> Any:
    """Note how well a memory served, between -1 and 1."""
    live(account, memory_id)
    MemoryCore(account).provide_feedback(memory_id, was_relevant, delta)
    return {"memory_id": memory_id}


def detect_contradictions(account: Account) -> Any:
    """List pairs of memories that contrast."""
    pairs = MemoryCore(account).detect_contradictions()
    return {"contradictions": pairs, "count": len(pairs)}


def update_quickrecal_score(account: Account, memory_id: str, delta: float) -> Any:
    """Raise or lower how much a memory matters."""
    score = min(max(live(account, memory_id).salience + delta, 0.0), 1.0)
    account.revise(memory_id, salience=score).or_raise()
    return {"memory_id": memory_id, "new_quickrecal_score": score}


def calculate_quickrecal(
    account: Account,
    memory_id: str,
    mode: Literal["hpc_qr", "standard", "minimal", "custom"] = "hpc_qr",
) -> Any:
    """Show the factors of a memory's score and what they add up to."""
    return {"memory_id": memory_id, **MemoryCore(account).calculate_quickrecal(memory_id, mode)}


def repair_index(
    account: Account, repair_type: Literal["auto", "recreate_mapping", "rebuild_from_persistence"] = "auto"
) -> Any:
    """Make the index anew from the ledger."""
    return {"repair_type": repair_type, **MemoryCore(account).repair_index(repair_type)}


def trigger_retry_loop(account: Account) -> Any:
    """Try again at once what could not be indexed."""
    account.catch_up(force=True)
    return {"lag": account.lag()}


def runtime_config(account: Account, service: str) -> Any:
    """Show the policy in force; a service is a table of it, or memory-core for all of them."""
    policy = plain(account.policy)
    if service not in ("memory-core", *policy):
        raise NotFound(f"there is no service {service!r}", hint=f"memory-core, {', '.join(policy)}")
    return {"service": service, "config": policy if service == "memory-core" else policy[service]}


def memory_search(account: Account, q: str, levels: str = ",".join(LEVELS), k: int = 10) -> Any:
    """Recall from some levels."""
    asked: list[Any] = [level.strip() for level in levels.split(",") if level.strip()]
    context = FilesystemMemory(account).read_memory(q, asked, min(max(k, 0), 1000))
    return {"query": q, "levels": context.levels, "mixed": context.mixed}


def memory_read(account: Account, level: Layer, path: str) -> Any:
    """Read what stands at a place of a level."""
    entries = FilesystemMemory(account).list_level(level)
    there = [entry for entry in entries if path in (entry.path, entry.path.partition("/")[2], entry.key)]
    if not there and (why := unfit(path)):
        raise BadInput(f"{path!r} is no place of a level: {why}")
    if not there:
        raise NotFound(f"there is nothing at {level}/{path}", hint="/api/memory/search finds what there is")
    return {"level": level, "path": path, "entries": there}


def memory_write(account: Account, level: Layer, path: str, content: str | dict[str, Any]) -> Any:
    """Write at a level: an event is appended, a page replaced, a procedure waits for a person."""
    written = FilesystemMemory(account).write_memory(content, level, path)
    if written.refused and not written.ids:
        raise BadInput(f"nothing was written: {'; '.join(written.refused)}")
    return written


def _plainly(value: Any) -> tuple[Any, int]:
    """A value as it is; what waits for a person is not done yet."""
    told = plain(value)
    return told, 202 if told.get("proposal") else 200


def _enveloped(value: Any) -> tuple[Any, int]:
    """A value in the envelope of seed 003."""
    if value is None:
        raise NotFound("there is no such memory", hint="/assemblies/{id} shows what is an assembly")
    is_entry = isinstance(value, MemoryEntry)
    told = plain({"memory_id": value.id, "memory": value.to_dict()} if is_entry else value)
    return {"success": True, "error": None, **(told if isinstance(told, dict) else {"result": told})}, 200


def _operation(method: str, name: str) -> Operation:
    """What a path of the documents does: an operation, a document's method, or a function of ours."""
    kind, _, own = name.rpartition(".")
    if not kind and name in BY_NAME:
        return BY_NAME[name]
    act = getattr(PARTS[kind], own) if kind else globals()[name]
    return Operation(name=own, function=act, section="documents", example="", begins=method == "POST")


PATHS = tuple((*at.split(), _operation(at.split()[0], name)) for at, name in TABLE["_documents"].items())


def add(app: Any, pool: Pool, visitors: Visitors) -> None:
    """Add every path of the documents; the account is the token's, or the server's own."""
    for method, path, operation in PATHS:
        shape = _plainly if path.startswith(("/api/vault/", "/api/memory/")) else _enveloped
        add_operation(app, pool, visitors, operation, method, path, shape)
