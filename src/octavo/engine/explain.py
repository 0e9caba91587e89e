"""Explaining: what an assembly is, why it was activated or merged, and where it comes from.

An explanation is a mapping with the origin's names, which every door shows as it stands.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from itertools import islice
from typing import Annotated, Any

from msgspec import Meta, Struct

from octavo.domain import assembling, quickrecal
from octavo.domain import lineage as lineages
from octavo.domain.assembling import KIND, MERGED_FROM, live_members, members_of
from octavo.domain.likeness import likeness
from octavo.domain.lineage import Ancestor, Lineage
from octavo.domain.memory import Memory
from octavo.engine.assemble import must_live
from octavo.engine.composing import NO_VECTOR, REVISION, Composing
from octavo.engine.counts import AssemblyStats
from octavo.engine.fields import OPTION, Count, MemoryId
from octavo.engine.freshness import Freshness
from octavo.engine.indexing import Indexing
from octavo.engine.reading import Reader
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.errors import BadInput, HumanOnly, NotFound
from octavo.storage.codec import REDACTED, moment_of
from octavo.storage.composites import Composites

LONGEST_LOG = 1_000
Explained = dict[str, Any]
AssemblyId = Annotated[str, "The assembly's id."]


class Assembly(Struct, frozen=True, kw_only=True):
    """One assembly as a person meets it: what it is about, its members, and whether it may lift them."""

    assembly_id: str
    name: str
    scope: str
    topics: tuple[str, ...]
    tags: tuple[str, ...]
    memory_ids: tuple[str, ...]
    members: tuple[Memory, ...] = ()
    keywords: tuple[str, ...] = ()
    emotion_profile: Mapping[str, float] = {}
    merged_from: tuple[str, ...] = ()
    formed: Mapping[str, Any] = {}
    created_at: datetime
    updated_at: datetime
    activation_count: int = 0
    last_activation: datetime | None = None
    vector_index_updated_at: datetime | None = None
    is_synchronized: bool = False
    drift_seconds: float | None = None
    drift_reason: str | None = None


@public
class Explainer:
    """Answers for one handle, within the scopes that it sees."""

    def __init__(self, spine: Spine, reader: Reader, indexing: Indexing) -> None:
        self._spine, self._reader, self._indexing = spine, reader, indexing

    def assemblies(
        self,
        *,
        scope: str | None = None,
        tags: Annotated[Sequence[str] | None, "Only those with all of these tags."] = None,
        limit: Annotated[Count | None, "At most so many."] = None,
    ) -> list[Assembly]:
        """List the assemblies: memories that belong together, the largest first."""
        whole = self._reader.memories(kind=KIND, scope=scope, tags=tags)
        whole.sort(key=lambda m: (-len(members_of(m)), m.id))
        return [self._told(m) for m in whole[:limit]]

    def assembly(self, id_: AssemblyId) -> Assembly:
        """Show an assembly with its members, its topics, and whether it may lift them."""
        memory = self.found(id_)
        return self._told(memory, live_members(self._spine.head(), members_of(memory)))

    def found(self, id_: str) -> Memory:
        """A live assembly that the handle sees, or NotFound."""
        return must_live(self._reader.get(id_), id_)

    def lineage(
        self,
        id_: AssemblyId,
        max_depth: Annotated[int, Meta(ge=1, le=lineages.DEEPEST), OPTION, "How many merges back."] = 10,
    ) -> Lineage:
        """Show the assemblies that one was merged from, ended and erased ones too, as a tree."""
        self._must_explain()
        if self._known(id_) is None:
            must_live(None, id_)
        return lineages.lineage(id_, self._known, max_depth)

    def activation(
        self,
        id_: AssemblyId,
        memory_id: MemoryId,
        query: Annotated[
            str | None, OPTION, "The question; without one the memory itself is compared."
        ] = None,
    ) -> Explained:
        """Say whether an assembly is activated, and what that gives a memory."""
        self._must_explain()
        asked = {"assembly_id": id_, "memory_id": memory_id}
        assembly, memory = self._reader.get(id_), self._reader.get(memory_id)
        if assembly is None or assembly.kind != KIND:
            return asked | {"notes": f"Assembly {id_} not found"}
        if memory is None:
            return asked | {"notes": f"Memory {memory_id} not found"}
        policy, told = self._spine.policy.assemblies, self._told(assembly)
        cosine, is_member = self._cosine(id_, memory, query), memory_id in told.memory_ids
        passed = cosine is not None and cosine >= policy.activation
        if cosine is None:
            notes = "there is no vector to compare"
        elif not told.is_synchronized:
            drift = "its members changed" if told.drift_reason == REVISION else told.drift_reason
            notes = f"it lifts nothing while it is drifted: {drift}"
        elif not passed:
            notes = "it is less like the question than the threshold"
        else:
            is_no = "it is activated, but the memory is no member of it"
            notes = "it lifts this member" if is_member else is_no
        return asked | {
            "check_timestamp": self._spine.now(),
            "trigger_context": "the memory itself" if query is None else "a question",
            "assembly_state_before_check": {
                "memory_count": len(told.memory_ids),
                "last_activation_time": told.last_activation,
                "is_synchronized": told.is_synchronized,
                "drift_reason": told.drift_reason,
            },
            "calculated_similarity": cosine,
            "activation_threshold": policy.activation,
            "passed_threshold": passed,
            "is_member": is_member,
            "boost": assembling.boost(cosine or 0.0, 0.0, policy) * (is_member and told.is_synchronized),
            "notes": notes,
        }

    def merge(self, id_: AssemblyId) -> Explained:
        """Say which merge made an assembly, of what, and how alike they were."""
        self._must_explain()
        asked = {"target_assembly_id": id_}
        if self._known(id_) is None:
            return asked | {"notes": f"Assembly {id_} not found"}
        version, first = self._spine.state.history(id_)[0]
        if not first.linked(MERGED_FROM):
            return asked | {"notes": "Assembly was not formed by a merge."}
        event = self._event(version, first)
        sources = [self._known(source) for source in first.linked(MERGED_FROM)]
        return asked | {
            "merge_event_id": event["merge_event_id"],
            "merge_timestamp": event["creation_timestamp"],
            "source_assembly_ids": event["source_assembly_ids"],
            "source_assembly_names": [source.name if source else "" for source in sources],
            "similarity_at_merge": event["similarity_at_merge"],
            "threshold_at_merge": event["merge_threshold"],
            "reconciled_cleanup_status": event["final_cleanup_status"],
            "cleanup_details": {"timestamp": event["cleanup_timestamp"], "error": None},
            "notes": "the sources ended in the commit that made it; `unmerge` brings them back",
        }

    def log(
        self, limit: Annotated[int, Meta(ge=1, le=LONGEST_LOG), OPTION, "At most so many."] = 50
    ) -> Explained:
        """List the merges there were, newest first: a view of the ledger, which forgets none."""
        self._must_explain()
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LONGEST_LOG:
            raise BadInput(f"limit {limit!r} is not between 1 and {LONGEST_LOG}")
        self._spine.head()
        made = self._spine.state.firsts_by("merge *", "approve *", "import*")
        merged = ((v, m) for v, m in made if m.kind == KIND and m.linked(MERGED_FROM))
        seen = ((version, memory) for version, memory in merged if self._reader.sees(memory.scope))
        events = [self._event(version, memory) for version, memory in islice(seen, limit)]
        return {"reconciled_log_entries": events, "count": len(events)}

    def _event(self, version: int, whole: Memory) -> Explained:
        """One merge; sources end in the commit that makes the target, so it is always completed."""
        commit, formed = self._spine.ledger.read(version).header, _formed(whole)
        return {
            "merge_event_id": commit.commit,
            "creation_timestamp": commit.at,
            "source_assembly_ids": list(whole.linked(MERGED_FROM)),
            "target_assembly_id": whole.id,
            "similarity_at_merge": formed.get("similarity"),
            "merge_threshold": formed.get("threshold"),
            "final_cleanup_status": "completed",
            "cleanup_timestamp": commit.at,
            "cleanup_error": None,
        }

    def stats(self) -> AssemblyStats:
        """Counts of what the handle sees."""
        whole = self._reader.memories(kind=KIND)
        if not whole:
            return AssemblyStats()
        reasons = list(self._drift(whole).values())
        sizes = [len(members_of(m)) for m in whole]
        lag = self._indexing.lag()
        return AssemblyStats(
            count=len(whole),
            members=sum(sizes),
            mean_size=round(sum(sizes) / len(sizes), 2),
            largest=max(sizes),
            fresh=len(whole) - len(reasons),
            drifted=len(reasons) - reasons.count(NO_VECTOR),
            without_vector=reasons.count(NO_VECTOR),
            waiting=lag.waiting,
            dead=lag.dead,
            activations=sum(self._reader.uses(*(m.id for m in whole)).values()),
            merged=sum(bool(m.linked(MERGED_FROM)) for m in whole),
            at_limit=self._spine.head().count(KIND) >= self._spine.policy.assemblies.max_assemblies,
        )

    def vectors(self, ids: Sequence[str]) -> dict[str, list[float]]:
        """The vectors of memories that the handle sees, of those that have one."""
        memories = [m for id_ in ids if (m := self._reader.get(id_))]
        made = self._composing.vectors_of(memories) if self._composing and memories else {}
        return {id_: vector.tolist() for id_, vector in made.items()}

    def composite(self, id_: str) -> list[float]:
        """An assembly's composite, or the one that it came with; empty if there is none."""
        memory, held = self.found(id_), self._held
        if held is not None and (row := held.row(id_)) and row.used:
            return [float(v) for v in held.floats[held.places[id_]]]
        told = memory.data.get("vector")
        return list(told["values"]) if isinstance(told, Mapping) else []

    def quickrecal(self, id_: str, mode: str = "hpc_qr") -> tuple[dict[str, float], float]:
        """Seed 003's factors of a memory, and what they add up to."""
        memory = self._reader.get(id_)
        if memory is None:
            raise NotFound(f"there is no memory {id_!r} to look at")
        near = self._composing.nearness(memory) if self._composing else {}
        alike = self._spine.head().alike(memory.kind, memory.scope, memory.text)
        same = max((likeness(memory.text, o.text) for o in alike if o.id != id_), default=0.0)
        factors = quickrecal.factors(memory, now=self._spine.now(), duplicate=same, **near)
        return factors, quickrecal.score(factors, mode)

    def contradictions(self) -> list[Explained]:
        """Pairs that contrast: those that say so by a link, and alike ones with opposite words."""
        pairs: dict[frozenset[str], Explained] = {}
        view = self._spine.head()
        for memory in self._reader.memories(kind=("fact", "register", "canon")):
            for other in view.alike(memory.kind, memory.scope, memory.text):
                cosine = likeness(memory.text, other.text)
                if other.id != memory.id and quickrecal.contradict(memory.text, other.text, cosine):
                    pair = {"memory_ids": sorted((memory.id, other.id)), "reason": "opposite words"}
                    pairs.setdefault(frozenset((memory.id, other.id)), pair)
            for old in memory.linked("contrasts"):
                if self._reader.get(old) is not None:
                    pair = {"memory_ids": [memory.id, old], "reason": "contrasts"}
                    pairs[frozenset((memory.id, old))] = pair
        return list(pairs.values())

    def freshness(self, memory: Memory) -> Freshness:
        """Whether the index holds an assembly's composite, of the members as they are now."""
        told, held = self._told(memory), self._held
        row = held.row(memory.id) if held else None
        return Freshness(
            memory=memory.id,
            rev=memory.rev,
            indexed_rev=row.rev if row else None,
            vector_index_updated_at=told.vector_index_updated_at,
            verified_at=moment_of(held.manifest.verified) if held and held.manifest.verified else None,
            age_seconds=told.drift_seconds,
            is_drifted=not told.is_synchronized,
            drift_reason=told.drift_reason,
        )

    @property
    def _composing(self) -> Composing | None:
        return self._indexing.composing

    @property
    def _held(self) -> Composites | None:
        return self._composing.held() if self._composing else None

    def _told(self, memory: Memory, members: Sequence[Memory] = ()) -> Assembly:
        state, versions = self._spine.state, [v for v, _ in self._spine.state.history(memory.id)]
        reason = self._drift([memory]).get(memory.id)
        indexed, age = self._composing.since(memory.id) if self._composing else (None, None)
        uses = self._spine.head().uses([memory.id]).get(memory.id, (0, 0.0))[0]
        last = state.others("use", ref=memory.id, newest=1)[0][0] if uses else None
        return Assembly(
            assembly_id=memory.id,
            name=memory.text,
            scope=memory.scope,
            topics=tuple(memory.data.get("topics", ())),
            tags=memory.tags,
            memory_ids=members_of(memory),
            members=tuple(members),
            keywords=assembling.keywords(members),
            emotion_profile=assembling.emotion_profile(members),
            merged_from=memory.linked(MERGED_FROM),
            formed=_formed(memory),
            created_at=state.commit(versions[0]).at,
            updated_at=state.commit(versions[-1]).at,
            activation_count=uses,
            last_activation=None if last is None else state.commit(last).at,
            vector_index_updated_at=indexed,
            is_synchronized=reason is None,
            drift_seconds=age,
            drift_reason=reason,
        )

    def _drift(self, memories: Sequence[Memory]) -> dict[str, str]:
        if self._composing is None:
            return dict.fromkeys((m.id for m in memories), NO_VECTOR)
        asked = {m.id: m.rev for m in memories}
        return self._composing.drift(self._composing.held(), self._spine.head(), asked)

    def _known(self, id_: str) -> Ancestor | None:
        """What history says of an assembly: its last live revision, whether or not it has ended."""
        history = [(v, m) for v, m in self._spine.state.history(id_) if m.kind == KIND]
        if not history or not self._reader.sees(history[-1][1].scope):
            return None
        (version, first), (_, now) = history[0], history[-1]
        last = next((m for _, m in reversed(history) if not m.gone), now)
        sources = first.linked(MERGED_FROM)
        return Ancestor(
            assembly_id=id_,
            name=last.text or REDACTED,
            status="merged" if sources else "origin",
            created_at=self._spine.state.commit(version).at,
            memory_count=len(members_of(last)),
            ended=now.gone,
            merged_from=sources,
        )

    def _cosine(self, id_: str, memory: Memory, query: str | None) -> float | None:
        composing, embedding = self._composing, self._indexing.embedding
        if composing is None or embedding is None or id_ not in composing.held().places:
            return None
        if query is not None:
            return composing.held().cosine(id_, embedding.embed([query])[0])
        vector = composing.vectors_of([memory]).get(memory.id)
        return None if vector is None else composing.held().cosine(id_, vector)

    def _must_explain(self) -> None:
        if not self._spine.policy.assemblies.explain:
            raise HumanOnly(
                "explaining assemblies is switched off", hint="set [assemblies] explain = true in the policy"
            )


def _formed(assembly: Memory) -> Mapping[str, Any]:
    """How an assembly says it came to be."""
    told = assembly.data.get("formed")
    return told if isinstance(told, Mapping) else {}
