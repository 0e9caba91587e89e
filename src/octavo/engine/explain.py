"""Explaining: what an assembly is, why it was activated or merged, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from octavo.domain import assembling
from octavo.domain.assembling import DEEPEST, KIND, MERGED_FROM, Ancestor, Lineage, live_members, members_of
from octavo.domain.memory import Memory
from octavo.engine.assemble import must_live
from octavo.engine.composing import NO_VECTOR
from octavo.engine.fields import OPTION, Count
from octavo.engine.freshness import Freshness
from octavo.engine.indexing import Indexing
from octavo.engine.reading import Reader
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.errors import HumanOnly
from octavo.storage.codec import REDACTED, moment_of

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
    """Answers for one handle, within its scopes; the rooms above work with its `spine` and `indexing`."""

    def __init__(self, spine: Spine, reader: Reader, indexing: Indexing) -> None:
        self.spine, self.indexing, self._reader = spine, indexing, reader
        self._composing = indexing.composing

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
        members = live_members(self.spine.head(), members_of(memory))
        # A wall: files of others may name members of another scope.
        return self._told(memory, [member for member in members if member.scope == memory.scope])

    def found(self, id_: str) -> Memory:
        """A live assembly that the handle sees, or NotFound."""
        return must_live(self._reader.get(id_), id_)

    def lineage(
        self,
        id_: AssemblyId,
        max_depth: Annotated[int, Meta(ge=1, le=DEEPEST), OPTION, "How many merges back."] = 10,
    ) -> Lineage:
        """Show the assemblies that one was merged from, ended and erased ones too, as a tree."""
        self.must_explain()
        if self._known(id_) is None:
            must_live(None, id_)
        return assembling.lineage(id_, self._known, max_depth)

    def stats(self) -> dict[str, Any]:
        """How many assemblies the handle sees, how large, and how many may lift their members."""
        whole, lag = self._reader.memories(kind=KIND), self.indexing.lag()
        sizes, reasons = [len(members_of(m)) for m in whole], [*self._drift(whole).values()]
        return {
            "count": len(whole),
            "members": sum(sizes),
            "mean_size": round(sum(sizes) / max(1, len(sizes)), 2),
            "largest": max(sizes, default=0),
            "fresh": len(whole) - len(reasons),
            "drifted": len(reasons) - reasons.count(NO_VECTOR),
            "without_vector": reasons.count(NO_VECTOR),
            "waiting": lag.waiting,
            "dead": lag.dead,
            "activations": sum(self._reader.uses(*(m.id for m in whole)).values()),
            "merged": sum(bool(m.linked(MERGED_FROM)) for m in whole),
            "at_limit": self.spine.head().count(KIND) >= self.spine.policy.assemblies.max_assemblies,
        }

    def freshness(self, memory: Memory) -> Freshness:
        """Whether the index holds an assembly's composite, of the members as they are now."""
        held = self._composing.held() if self._composing else None
        row, verified = (held.get(memory.id), held.verified) if held else (None, 0)
        reason = self._drift([memory]).get(memory.id)
        age = self.spine.now() - moment_of(max(row.at, verified)) if row else None
        return Freshness(
            memory=memory.id,
            rev=memory.rev,
            indexed_rev=row.rev if row else None,
            vector_index_updated_at=moment_of(row.at) if row else None,
            verified_at=moment_of(verified) if verified else None,
            age_seconds=age.total_seconds() if age else None,
            is_drifted=reason is not None,
            drift_reason=reason,
        )

    def _drift(self, whole: Sequence[Memory]) -> dict[str, str]:
        """Why some assemblies may lift nothing now; those that may are not in the answer."""
        composing, asked = self._composing, {memory.id: memory.rev for memory in whole}
        if composing is None:
            return dict.fromkeys(asked, NO_VECTOR)
        return composing.drift(composing.held(), self.spine.head(), asked)

    def must_explain(self) -> None:
        """Raise HumanOnly where the policy lets nothing be explained."""
        if not self.spine.policy.assemblies.explain:
            hint = "set [assemblies] explain = true in the policy"
            raise HumanOnly("explaining assemblies is switched off", hint=hint)

    def _told(self, memory: Memory, members: Sequence[Memory] = ()) -> Assembly:
        state, fresh = self.spine.state, self.freshness(memory)
        versions = [version for version, _ in state.history(memory.id)]
        uses = state.others("use", ref=memory.id, newest=1)
        formed = memory.data.get("formed")
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
            formed=formed if isinstance(formed, Mapping) else {},
            created_at=state.commit(versions[0]).at,
            updated_at=state.commit(versions[-1]).at,
            activation_count=self._reader.uses(memory.id).get(memory.id, 0),
            last_activation=state.commit(uses[0][0]).at if uses else None,
            vector_index_updated_at=fresh.vector_index_updated_at,
            is_synchronized=not fresh.is_drifted,
            drift_seconds=fresh.age_seconds,
            drift_reason=fresh.drift_reason,
        )

    def _known(self, id_: str) -> Ancestor | None:
        """What history says of an assembly: its last live revision, whether or not it has ended."""
        history = [(v, m) for v, m in self.spine.state.history(id_) if m.kind == KIND]
        if not history or not self._reader.sees(history[-1][1].scope):
            return None
        (version, first), (_, now) = history[0], history[-1]
        last = next((m for _, m in reversed(history) if not m.gone), now)
        sources = first.linked(MERGED_FROM)
        return Ancestor(
            assembly_id=id_,
            name=last.text or REDACTED,
            status="merged" if sources else "origin",
            created_at=self.spine.state.commit(version).at,
            memory_count=len(members_of(last)),
            ended=now.gone,
            merged_from=sources,
        )
