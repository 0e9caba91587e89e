"""MemoryCore: the calls of seed 003 on an account, and the same table through threads for asyncio."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from octavo.documents.synthians import quickrecal
from octavo.documents.synthians.explaining import vectors_of
from octavo.documents.synthians.files import assembly_of, entry_of
from octavo.documents.synthians.records import MemoryAssembly, MemoryEntry, clamped, vector_problem
from octavo.domain.hits import Hit
from octavo.domain.memory import Memory
from octavo.engine.account import Account
from octavo.engine.surface import public
from octavo.errors import BadInput, NotFound, OctavoError

_REPAIRS = ("auto", "recreate_mapping", "rebuild_from_persistence")


@public
class MemoryCore:
    """The origin's core, on one account; every call may be made from any thread."""

    def __init__(self, account: Account) -> None:
        self.account = account

    def process_memory(
        self,
        content: str,
        embedding: Sequence[float] | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> MemoryEntry:
        """Keep a text as an entry; returns it. What the gate keeps out is raised as `Refused`."""
        told = dict(metadata or {})
        vector = None
        if embedding is not None:
            if problem := vector_problem(embedding):
                raise BadInput(problem, hint="hand in finite numbers, or none")
            length = math.hypot(*embedding)
            embedder = str(told.get("embedder") or f"import:{len(embedding)}")
            vector = (embedder, [v / length for v in embedding])
        verdict = self.account.remember(
            content,
            salience=clamped(told.get("quick_recal_score", told.get("quickrecal_score", 0.5))),
            tags=list(told.get("tags") or ()),
            data={"original": {"metadata": told}},
            vector=vector,
        )
        return self._entry(verdict.or_raise())

    def retrieve_memories(
        self,
        query: str,
        top_k: int = 5,
        threshold: float | None = None,
        user_emotion: Any = None,
    ) -> dict[str, Any]:
        """Recall what answers a query; the threshold looks at the score without an assembly's boost."""
        try:
            hits = self.account.recall(query, k=top_k, mood=user_emotion)
        except OctavoError as error:
            return {"success": False, "memories": [], "error": error.message}
        kept = [hit for hit in hits if threshold is None or _base(hit) >= threshold]
        return {"success": True, "memories": [self._told(hit) for hit in kept], "error": None}

    def get_memory(self, id_: str) -> MemoryEntry | None:
        """Show one entry; returns None if there is none."""
        memory = self.account.get(id_)
        return None if memory is None or memory.kind == "assembly" else self._entry(memory)

    def update_memory(self, id_: str, updates: Mapping[str, Any]) -> bool:
        """Change some fields of an entry; metadata is merged at any depth. False if there is none."""
        memory = self.account.get(id_)
        if memory is None:
            return False
        changes: dict[str, Any] = {}
        for name, value in updates.items():
            if name == "content":
                changes["text"] = value
            elif name in ("quick_recal_score", "quickrecal_score"):
                changes["salience"] = clamped(value)
            elif name == "metadata":
                if not isinstance(value, Mapping):
                    raise BadInput(f"metadata is {type(value).__name__}, not an object")
                original = dict(memory.data.get("original") or {})
                original["metadata"] = _merged(original.get("metadata") or {}, value)
                changes["data"] = {**memory.data, "original": original}
            elif name == "tags":
                changes["tags"] = value
            else:
                hint = "content, quick_recal_score, metadata, tags"
                raise BadInput(f"{name!r} cannot be updated", hint=hint)
        return self.account.revise(id_, **changes).outcome in ("superseding", "unchanged")

    def provide_feedback(self, id_: str, relevant: bool | None = None, delta: float | None = None) -> bool:
        """Note how well an entry served, between -1 and 1; returns False if there is none."""
        if self.account.get(id_) is None:
            return False
        value = delta if delta is not None else 1.0 if relevant else -1.0
        sandbox = self.account.sandbox("feedback")
        sandbox.use(id_, max(-1.0, min(1.0, float(value))))
        sandbox.consolidate()
        return True

    def update_quickrecal_score(self, id_: str, score: float) -> bool:
        """Set an entry's score; False if there is none."""
        return self.update_memory(id_, {"quick_recal_score": score})

    def calculate_quickrecal(self, id_: str, mode: str = "hpc_qr") -> dict[str, Any]:
        """Show the factors of an entry and what they add up to; a diagnosis, no part of recall."""
        return quickrecal.calculate(self.account, id_, mode)

    def get_assembly(self, id_: str) -> MemoryAssembly | None:
        """One assembly, None if there is none."""
        try:
            return assembly_of(self.account, id_)
        except NotFound:
            return None

    def list_assemblies(self) -> list[MemoryAssembly]:
        """The assemblies, the largest first."""
        return [assembly_of(self.account, one.assembly_id) for one in self.account.explained.assemblies()]

    def merge_assemblies(self, ids: Sequence[str]) -> str:
        """Make one assembly of two or more; returns its id."""
        if len(ids) < 2:
            raise BadInput("merging needs two assemblies", hint="name two or more")
        whole, *others = ids
        for other in others:
            whole = self.account.merge_assemblies(whole, other).id
        return whole

    def detect_contradictions(self) -> list[dict[str, Any]]:
        """List pairs of entries that contrast with each other."""
        return quickrecal.contradictions(self.account)

    def check_index_integrity(self) -> dict[str, Any]:
        """Whether everything derived is what the ledger says; changes nothing."""
        report = self.account.check()
        return {"success": True, "is_consistent": bool(report), "problems": list(report.problems)}

    def repair_index(self, mode: str = "auto") -> dict[str, Any]:
        """Make what is derived anew; the ledger is the mapping and the persistence both."""
        if mode not in _REPAIRS:
            raise BadInput(f"there is no repair {mode!r}", hint=f"use {', '.join(_REPAIRS)}")
        self.account.reindex()
        report = self.account.repair()
        return {"success": bool(report), "mode": mode, "problems": list(report.problems)}

    def _entry(self, memory: Memory) -> MemoryEntry:
        return entry_of(self.account, memory, vectors_of(self.account, memory).get(memory.id))

    def _told(self, hit: Hit) -> dict[str, Any]:
        boost = hit.parts.get("assembly", 0.0)
        rules = self.account.policy.assemblies
        reason = f"{rules.boost_mode}({hit.assembly})" if boost else "no_activated_assemblies"
        return {
            **self._entry(hit.memory).to_dict(),
            "similarity": _base(hit),
            "relevance_score": hit.score,
            "boost_info": {
                "base_similarity": _base(hit),
                "assembly_boost": boost,
                "max_activation": boost / rules.boost if boost else 0.0,
                "boost_reason": reason,
            },
        }


class AsyncMemoryCore:
    """The same calls to be awaited: each runs in a thread, there is no second implementation."""

    def __init__(self, account: Account) -> None:
        self.core = MemoryCore(account)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        call = getattr(self.core, name)
        if name.startswith("_") or not callable(call):
            raise AttributeError(name)
        return partial(asyncio.to_thread, call)


def _base(hit: Hit) -> float:
    return hit.score - hit.parts.get("assembly", 0.0)


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Metadata with some of it changed, at any depth."""
    merged = dict(old)
    for name, value in new.items():
        before = merged.get(name)
        both = isinstance(before, Mapping) and isinstance(value, Mapping)
        merged[name] = _merged(before, value) if both else value  # type: ignore[arg-type]
    return merged
