"""The paths of the documents, as they write them: the vault, memory structures, filesystem memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, Literal

from octavo.documents.brain import FilesystemMemory
from octavo.documents.brain.memory import LEVELS
from octavo.documents.synthians import MemoryEntry
from octavo.domain.memory import Layer
from octavo.domain.verdicts import Verdict
from octavo.doors.operations import BY_NAME, Operation
from octavo.doors.operations.remembering import live
from octavo.doors.operations.table import PARTS, TABLE
from octavo.doors.plain import plain
from octavo.doors.rest import Server
from octavo.engine.account import Account
from octavo.errors import BadInput, NotFound
from octavo.storage.mirror_tree import unfit

_VAULT = ("canon", "register")
_PLACE = re.compile(r"(?:knowledge/|events/)?([\w-]+)\.(?:md|jsonl?)")  # where the tree keeps what has a key


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
    if verdict.proposal:
        return verdict
    memory = verdict.or_raise()
    return {"status": "stored" if memory.rev == 1 else "updated", "id": memory.id, "version": memory.rev}


def vault_delete(account: Account, memory_id: str) -> Any:
    """Delete a memory of the vault; its history stays."""
    (verdict,) = account.forget(live(account, memory_id).id)
    return verdict if verdict.proposal else {"status": "deleted", "id": verdict.or_raise().id}


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


def update_quickrecal_score(account: Account, memory_id: str, delta: float) -> Any:
    """Raise or lower how much a memory matters."""
    score = min(max(live(account, memory_id).salience + delta, 0.0), 1.0)
    account.revise(memory_id, salience=score).or_raise()
    return {"memory_id": memory_id, "new_quickrecal_score": score}


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
    key = place[1] if (place := _PLACE.fullmatch(path)) else path
    written = FilesystemMemory(account).write_memory(content, level, key)
    if written.refused and not written.ids:
        raise BadInput(f"nothing was written: {'; '.join(written.refused)}")
    return {"level": level, "key": key, **plain(written)}


def _shaped(
    value: Any, told: Mapping[str, Any], *, spelt: Mapping[str, str], is_plain: bool
) -> tuple[Any, int]:
    """A value in the words of its document and its status; seed 003 has an envelope around it."""
    if value in (None, False):
        raise NotFound("there is no such memory", hint="/assemblies/{id} shows what is an assembly")
    if isinstance(value, Verdict):  # of an agent
        value = {"status": "proposed", "proposal": value.proposal, "message": value.detail}
    if isinstance(value, MemoryEntry):
        value = {"memory_id": value.id, "memory": value.to_dict()}
    if isinstance(value, list):
        value = {"contradictions": value, "count": len(value)}
    shown = {} if value is True else plain(value)
    if is_plain:  # what waits for a person is not done yet
        return shown, 202 if shown.get("proposal") else 200
    asked = {"memory_id": told["memory_id"]} if "memory_id" in told else {}
    more = {theirs: shown[ours] for ours, theirs in spelt.items() if ours in shown}
    return {"success": True, "error": None, **asked, **shown, **more}, 200


def _row(address: str, told: str) -> tuple[Operation, dict[str, str]]:
    """What a path of the documents does (ours, a document's method, an operation), and how it spells what."""
    name, *spellings = told.split()
    kind, _, own = name.rpartition(".")
    act = getattr(PARTS[kind], own) if kind else globals().get(name)
    how: dict[str, Any] = {"section": "documents", "example": "", "begins": address.startswith("POST")}
    operation = BY_NAME[name] if act is None else Operation(name=own, function=act, **how)
    return operation, dict(spelling.split("=") for spelling in spellings)


PATHS = {address: _row(address, told) for address, told in TABLE["_documents"].items()}


def add(server: Server) -> None:
    """Add every path of the documents; the account is the token's, or the server's own."""
    for address, (operation, spelt) in PATHS.items():
        is_plain = address.partition(" ")[2].startswith(("/api/vault/", "/api/memory/"))
        server.operation(operation, address, partial(_shaped, spelt=spelt, is_plain=is_plain), spelt)
