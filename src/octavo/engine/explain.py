"""Explaining: what an assembly is, why it was activated or merged, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from octavo.domain import assembling, quickrecal
from octavo.domain import lineage as lineages
from octavo.domain.assembling import KIND, MERGED_FROM, formed_of, may_belong, members_of
from octavo.domain.likeness import likeness
from octavo.domain.lineage import Known, Lineage
from octavo.domain.memory import Memory
from octavo.engine.activation import unit
from octavo.engine.composing import REVISION, Composing
from octavo.engine.counts import AssemblyStats
from octavo.engine.explanations import (
    ActivationExplained,
    Assembly,
    MergeEvent,
    MergeExplained,
    MergeLog,
    StateBefore,
)
from octavo.engine.freshness import Freshness
from octavo.engine.indexing import Indexing
from octavo.engine.reading import Reader
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.errors import BadInput, HumanOnly, NotFound
from octavo.storage.codec import REDACTED

LONGEST_LOG = 1_000
_NOT_FOUND = "{what} {id} not found"
_NO_MERGE = "Assembly was not formed by a merge."


@public
class Explainer:
    """Answers for one handle, within the scopes that it sees."""

    def __init__(self, spine: Spine, reader: Reader, indexing: Indexing) -> None:
        self._spine, self._reader, self._indexing = spine, reader, indexing

    def assemblies(
        self, *, scope: str | None = None, tags: Any = None, limit: int | None = None
    ) -> list[Assembly]:
        """The live assemblies, the largest first."""
        found = self._reader.memories(kind=KIND, scope=scope, tags=tags)
        found.sort(key=lambda m: (-len(members_of(m)), m.id))
        return [self._told(m) for m in found[:limit]]

    def assembly(self, id_: str) -> Assembly:
        """One assembly with its members."""
        memory = self.found(id_)
        known = self._spine.head().many(members_of(memory))
        members = [known[i][1] for i in members_of(memory) if i in known and may_belong(known[i][1])]
        return self._told(memory, members)

    def found(self, id_: str) -> Memory:
        """A live assembly that the handle sees, or NotFound."""
        memory = self._reader.get(id_)
        if memory is None or memory.kind != KIND:
            raise NotFound(f"there is no assembly {id_!r}", hint="`octavo assemblies` lists them")
        return memory

    def lineage(self, id_: str, max_depth: int = 10) -> Lineage:
        """The assemblies that one was merged from, ended and erased ones too."""
        self._must_explain()
        if self._known(id_) is None:
            raise NotFound(f"there is no assembly {id_!r}", hint="`octavo assemblies` lists them")
        return lineages.lineage(id_, self._known, max_depth)

    def activation(self, id_: str, memory_id: str, query: str | None = None) -> ActivationExplained:
        """Whether a question, or else a memory itself, activates an assembly."""
        self._must_explain()
        assembly, memory = self._reader.get(id_), self._reader.get(memory_id)
        for what, asked, one in (("Assembly", id_, assembly), ("Memory", memory_id, memory)):
            if one is None or (what == "Assembly" and one.kind != KIND):
                note = _NOT_FOUND.format(what=what, id=asked)
                return ActivationExplained(assembly_id=id_, memory_id=memory_id, notes=note)
        assert assembly is not None
        assert memory is not None
        policy, told = self._spine.policy.assemblies, self._told(assembly)
        cosine = self._cosine(assembly, memory, query)
        is_member, passed = (
            memory.id in members_of(assembly),
            cosine is not None and cosine >= policy.activation,
        )
        lift = assembling.boost(cosine or 0.0, 0.0, policy) if is_member and told.is_synchronized else 0.0
        return ActivationExplained(
            assembly_id=id_,
            memory_id=memory_id,
            check_timestamp=self._spine.now(),
            trigger_context="the memory itself" if query is None else "a question",
            assembly_state_before_check=StateBefore(
                memory_count=len(told.memory_ids),
                last_activation_time=told.last_activation,
                is_synchronized=told.is_synchronized,
                drift_reason=told.drift_reason,
            ),
            calculated_similarity=cosine,
            activation_threshold=policy.activation,
            passed_threshold=passed,
            is_member=is_member,
            boost=lift if passed else 0.0,
            notes=_reason(told, cosine, passed, is_member),
        )

    def merge(self, id_: str) -> MergeExplained:
        """How an assembly came of a merge, if it did."""
        self._must_explain()
        if self._known(id_) is None:
            note = _NOT_FOUND.format(what="Assembly", id=id_)
            return MergeExplained(target_assembly_id=id_, notes=note)
        version, first = self._spine.state.history(id_)[0]
        sources = first.linked(MERGED_FROM)
        if not sources:
            return MergeExplained(target_assembly_id=id_, notes=_NO_MERGE)
        commit, formed = self._spine.ledger.read(version).header, formed_of(first)
        known = [self._known(source) for source in sources]
        return MergeExplained(
            target_assembly_id=id_,
            merge_event_id=commit.commit,
            merge_timestamp=commit.at,
            source_assembly_ids=sources,
            source_assembly_names=tuple(one.name if one else "" for one in known),
            similarity_at_merge=formed.get("similarity"),
            threshold_at_merge=formed.get("threshold"),
            reconciled_cleanup_status="completed",
            cleanup_details={"timestamp": commit.at, "error": None},
            notes="the sources ended in the commit that made it; `unmerge` brings them back",
        )

    def log(self, limit: int = 50) -> MergeLog:
        """The merges there were, newest first."""
        self._must_explain()
        if isinstance(limit, bool) or not isinstance(limit, int) or not 1 <= limit <= LONGEST_LOG:
            raise BadInput(f"limit {limit!r} is not between 1 and {LONGEST_LOG}")
        self._spine.head()
        events: list[MergeEvent] = []
        for version, memory in self._spine.state.merges(MERGED_FROM):
            if len(events) < limit and self._reader.sees(memory.scope):
                commit, formed = self._spine.ledger.read(version).header, formed_of(memory)
                events.append(
                    MergeEvent(
                        merge_event_id=commit.commit,
                        creation_timestamp=commit.at,
                        source_assembly_ids=memory.linked(MERGED_FROM),
                        target_assembly_id=memory.id,
                        similarity_at_merge=formed.get("similarity"),
                        merge_threshold=formed.get("threshold"),
                        cleanup_timestamp=commit.at,
                    )
                )
        return MergeLog(reconciled_log_entries=tuple(events), count=len(events))

    def stats(self) -> AssemblyStats:
        """Counts of what the handle sees."""
        whole = self._reader.memories(kind=KIND)
        if not whole:
            return AssemblyStats()
        reasons = self._drift(whole)
        sizes = [len(members_of(m)) for m in whole]
        lag = self._indexing.lag()
        uses = self._reader.uses(*(m.id for m in whole))
        without = sum(reason == "no_vector" for reason in reasons.values())
        return AssemblyStats(
            count=len(whole),
            members=sum(sizes),
            mean_size=round(sum(sizes) / len(sizes), 2),
            largest=max(sizes),
            fresh=len(whole) - len(reasons),
            drifted=len(reasons) - without,
            without_vector=without,
            waiting=lag.waiting,
            dead=lag.dead,
            activations=sum(uses.values()),
            merged=sum(bool(m.linked(MERGED_FROM)) for m in whole),
            at_limit=self._spine.head().count(KIND) >= self._spine.policy.assemblies.max_assemblies,
        )

    def vectors(self, ids: Sequence[str]) -> dict[str, list[float]]:
        """The vectors of memories that the handle sees, of those that have one."""
        memories = [m for id_ in ids if (m := self._reader.get(id_))]
        found = self._composing.vector_of(memories) if self._composing and memories else {}
        return {id_: [float(v) for v in vector] for id_, vector in found.items()}

    def composite(self, id_: str) -> list[float]:
        """An assembly's composite, or the one that it came with; empty if there is none."""
        memory = self.found(id_)
        held = self._composing.held() if self._composing else None
        if held is not None and id_ in held.places and held.manifest.rows[held.places[id_]].used:
            return [float(v) for v in held.floats[held.places[id_]]]
        told = memory.data.get("vector")
        return list(told["values"]) if isinstance(told, Mapping) else []

    def quickrecal(self, id_: str, mode: str = "hpc_qr") -> tuple[dict[str, float], float]:
        """Seed 003's factors of a memory, and what they add up to."""
        memory = self._reader.get(id_)
        if memory is None:
            raise NotFound(f"there is no memory {id_!r} to look at")
        near: dict[str, float] = {}
        vector = self._composing.vector_of([memory]).get(id_) if self._composing else None
        if vector is not None and self._composing is not None:
            near = self._composing.nearness(memory, vector)
        alike = self._spine.head().alike(memory.kind, memory.scope, memory.text) if memory.text else ()
        same = max((likeness(memory.text, o.text) for o in alike if o.id != id_), default=0.0)
        found = quickrecal.factors(memory, now=self._spine.now(), duplicate=same, **near)
        return found, quickrecal.score(found, mode)

    def contradictions(self) -> list[dict[str, Any]]:
        """Pairs that contrast: those that say so by a link, and alike ones with opposite words."""
        pairs: dict[frozenset[str], dict[str, Any]] = {}
        view = self._spine.head()
        for memory in self._reader.memories(kind=("fact", "register", "canon")):
            for old in memory.linked("contrasts"):
                if self._reader.get(old) is not None:
                    pairs[frozenset((memory.id, old))] = {
                        "memory_ids": [memory.id, old],
                        "reason": "contrasts",
                    }
            for other in view.alike(memory.kind, memory.scope, memory.text) if memory.text else ():
                cosine = likeness(memory.text, other.text)
                if other.id != memory.id and quickrecal.contradict(memory.text, other.text, cosine):
                    found = {"memory_ids": sorted((memory.id, other.id)), "reason": "opposite words"}
                    pairs.setdefault(frozenset((memory.id, other.id)), found)
        return list(pairs.values())

    def freshness(self, memory: Memory) -> Freshness:
        """Whether the index holds an assembly's composite, of the members as they are now."""
        told, held = self._told(memory), self._composing.held() if self._composing else None
        row = held.row(memory.id) if held else None
        return Freshness(
            memory=memory.id,
            rev=memory.rev,
            indexed_rev=row.rev if row else None,
            vector_index_updated_at=told.vector_index_updated_at,
            verified_at=self._composing.verified() if self._composing else None,
            age_seconds=told.drift_seconds,
            is_drifted=not told.is_synchronized,
            drift_reason=told.drift_reason,
        )

    @property
    def _composing(self) -> Composing | None:
        return self._indexing.composing

    def _told(self, memory: Memory, members: list[Memory] | None = None) -> Assembly:
        history = self._spine.state.history(memory.id)
        reason = self._drift([memory]).get(memory.id)
        updated = self._composing.updated(memory.id) if self._composing else None
        verified = self._composing.verified() if self._composing else None
        uses = self._spine.head().uses([memory.id]).get(memory.id)
        last = self._spine.state.last_use(memory.id) if uses else None
        return Assembly(
            assembly_id=memory.id,
            name=memory.text,
            scope=memory.scope,
            topics=tuple(memory.data.get("topics", ())),
            tags=memory.tags,
            memory_ids=members_of(memory),
            members=tuple(members or ()),
            keywords=tuple(assembling.keywords(members)) if members else (),
            emotion_profile=assembling.emotion_profile(members) if members else {},
            merged_from=memory.linked(MERGED_FROM),
            formed=formed_of(memory),
            created_at=self._spine.state.commit(history[0][0]).at,
            updated_at=self._spine.state.commit(history[-1][0]).at,
            activation_count=uses[0] if uses else 0,
            last_activation=None if last is None else self._spine.state.commit(last).at,
            vector_index_updated_at=updated,
            is_synchronized=reason is None,
            drift_seconds=(
                (self._spine.now() - max(updated, verified or updated)).total_seconds() if updated else None
            ),
            drift_reason=reason,
        )

    def _drift(self, memories: list[Memory]) -> dict[str, str]:
        if self._composing is None:
            return {m.id: "no_vector" for m in memories}
        found = {m.id: (m.rev, members_of(m)) for m in memories}
        return self._composing.drift(self._spine.head().version, found)

    def _known(self, id_: str) -> Known | None:
        """What history says of an assembly: its last live revision, whether or not it has ended."""
        history = [(v, m) for v, m in self._spine.state.history(id_) if m.kind == KIND]
        if not history or not self._reader.sees(history[-1][1].scope):
            return None
        lived = [m for _, m in history if not m.gone]
        last = lived[-1] if lived else history[-1][1]
        return Known(
            name=last.text or REDACTED,
            memory_count=len(members_of(last)),
            created_at=self._spine.state.commit(history[0][0]).at,
            ended=history[-1][1].gone,
            merged_from=history[0][1].linked(MERGED_FROM),
        )

    def _cosine(self, assembly: Memory, memory: Memory, query: str | None) -> float | None:
        composing, embedding = self._composing, self._indexing.embedding
        if composing is None or embedding is None or assembly.id not in composing.held().places:
            return None
        if query is not None:
            return composing.held().cosine(assembly.id, unit(embedding.embed([query])[0]))
        vector = composing.vector_of([memory]).get(memory.id)
        return None if vector is None else composing.held().cosine(assembly.id, vector)

    def _must_explain(self) -> None:
        if not self._spine.policy.assemblies.explain:
            raise HumanOnly(
                "explaining assemblies is switched off", hint="set [assemblies] explain = true in the policy"
            )


def _reason(told: Assembly, cosine: float | None, passed: bool, is_member: bool) -> str:
    if cosine is None:
        return "there is no vector to compare"
    if not told.is_synchronized:
        drift = "its members changed" if told.drift_reason == REVISION else str(told.drift_reason)
        return f"it lifts nothing while it is drifted: {drift}"
    if not passed:
        return "it is less like the question than the threshold"
    return "it lifts this member" if is_member else "it is activated, but the memory is no member of it"
