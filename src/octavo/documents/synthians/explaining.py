"""Explanations of assemblies as seed 003 spells them, and the vectors they and its files tell of."""

from __future__ import annotations

from operator import mul
from typing import Annotated, Any

from msgspec import Meta

from octavo.domain import assembling
from octavo.domain.memory import Memory
from octavo.engine.account import Account
from octavo.engine.explain import AssemblyId
from octavo.engine.fields import OPTION, MemoryId
from octavo.engine.surface import fitted
from octavo.errors import NotFound

Explained = dict[str, Any]


def vectors_of(account: Account, *memories: Memory) -> dict[str, list[float]]:
    """The vectors of memories, an assembly's being its composite, of those that have one."""
    composing = account.explained.indexing.composing
    made = composing.vectors_of(memories) if composing and memories else {}
    return {id_: vector.tolist() for id_, vector in made.items()}


def activation(
    account: Account,
    id_: AssemblyId,
    memory_id: MemoryId,
    query: Annotated[str | None, OPTION, "The question; without one the memory itself is compared."] = None,
) -> Explained:
    """Say whether an assembly is activated, and what that gives a memory."""
    asked, rules = {"assembly_id": id_, "memory_id": memory_id}, account.policy.assemblies
    memory, explained = account.get(memory_id), account.explained
    explained.must_explain()
    if memory is None:
        return asked | {"notes": f"Memory {memory_id} not found"}
    try:
        told, vectors = explained.assembly(id_), vectors_of(account, explained.found(id_), memory)
    except NotFound:
        return asked | {"notes": f"Assembly {id_} not found"}
    own = vectors.get(memory_id) if query is None else _asked(account, query)
    cosine = _dot(vectors[id_], own) if own and id_ in vectors else None
    passed, is_member = cosine is not None and cosine >= rules.activation, memory_id in told.memory_ids
    lifts = is_member and told.is_synchronized and rules.mode != "off"
    is_question = query is not None and own and memory_id in vectors
    base = _dot(vectors[memory_id], own or []) if is_question else 0.0  # without what words add
    if rules.mode == "off":
        notes = "no assembly lifts anything: the policy's mode is off"
    elif cosine is None:
        notes = "there is no vector to compare"
    elif told.drift_reason:
        notes = f"it lifts nothing while it is drifted ({told.drift_reason})"
    elif not passed:
        notes = "it is less like the question than the threshold"
    else:
        notes = (
            f"it {'lifts this member' if is_member else 'is activated, but the memory is no member of it'}"
        )
    return asked | {
        "check_timestamp": explained.spine.now(),
        "trigger_context": "the memory itself" if query is None else "a question",
        "assembly_state_before_check": {
            "memory_count": len(told.memory_ids),
            "last_activation_time": told.last_activation,
            "is_synchronized": told.is_synchronized,
            "drift_reason": told.drift_reason,
        },
        "calculated_similarity": cosine,
        "activation_threshold": rules.activation,
        "passed_threshold": passed,
        "is_member": is_member,
        "boost": assembling.boost(cosine or 0.0, base, rules) if lifts else 0.0,
        "notes": notes,
    }


def merge(account: Account, id_: AssemblyId) -> Explained:
    """Say which merge made an assembly, of what, and how alike they were."""
    asked = {"target_assembly_id": id_}
    try:
        _, *sources = account.explained.lineage(id_, 1).lineage
    except NotFound:
        return asked | {"notes": f"Assembly {id_} not found"}
    for event in _events(account, 1, id_):
        names = {source.assembly_id: source.name or "" for source in sources}
        return asked | {
            "merge_event_id": event["merge_event_id"],
            "merge_timestamp": event["creation_timestamp"],
            "source_assembly_ids": event["source_assembly_ids"],
            "source_assembly_names": [names.get(source, "") for source in event["source_assembly_ids"]],
            "similarity_at_merge": event["similarity_at_merge"],
            "threshold_at_merge": event["merge_threshold"],
            "reconciled_cleanup_status": event["final_cleanup_status"],
            "cleanup_details": {"timestamp": event["cleanup_timestamp"], "error": None},
            "notes": "the sources ended in the commit that made it; `unmerge` brings them back",
        }
    return asked | {"notes": "Assembly was not formed by a merge."}


@fitted
def log(
    account: Account,
    limit: Annotated[int, Meta(ge=1, le=1_000), OPTION, "At most so many."] = 50,
) -> Explained:
    """List the merges there were, newest first: a view of the ledger, which forgets none."""
    events = _events(account, limit)
    return {"reconciled_log_entries": events, "count": len(events)}


def _asked(account: Account, text: str) -> list[float]:
    """The vector of a text, as questions have one; empty without an embedder."""
    own = account.explained.indexing.embedding
    return [] if own is None else [float(value) for value in own.embed([text])[0]]


def _events(account: Account, limit: int, into: str | None = None) -> list[Explained]:
    """The merges there were, newest first, or the one that made an assembly: a view of the ledger.

    Sources end in the commit that makes the target, so each is always completed.
    """
    account.explained.must_explain()
    spine = account.explained.spine
    spine.head()
    made = spine.state.history(into)[:1] if into else spine.state.merges()
    seen = [(v, m) for v, m in made if m.linked("merged_from") and account.sees(m.scope)][:limit]
    headers = [(spine.ledger.header(version)[0], whole) for version, whole in seen]
    return [
        {
            "merge_event_id": header.commit,
            "creation_timestamp": header.at,
            "source_assembly_ids": list(whole.linked("merged_from")),
            "target_assembly_id": whole.id,
            "similarity_at_merge": whole.data.get("formed", {}).get("similarity"),
            "merge_threshold": whole.data.get("formed", {}).get("threshold"),
            "final_cleanup_status": "completed",
            "cleanup_timestamp": header.at,
            "cleanup_error": None,
        }
        for header, whole in headers
    ]


def _dot(one: list[float], other: list[float]) -> float:
    """The cosine of two vectors of length one."""
    cosine: float = sum(map(mul, one, other))
    return cosine
