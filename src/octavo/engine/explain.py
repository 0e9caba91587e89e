"""Explaining: what an assembly is, why it was activated or merged, and where it comes from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any

from msgspec import Meta, Struct

from octavo.domain import assembling
from octavo.domain.assembling import DEEPEST, KIND, MERGED_FROM, Ancestor, Lineage, live_members, members_of
from octavo.domain.likeness import likeness
from octavo.domain.memory import Memory
from octavo.engine.assemble import must_live
from octavo.engine.composing import NO_VECTOR
from octavo.engine.fields import OPTION, Count
from octavo.engine.freshness import Freshness
from octavo.engine.indexing import Indexing
from octavo.engine.reading import Reader
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.errors import BadInput, HumanOnly
from octavo.libraries import Array, np
from octavo.storage.codec import REDACTED
from octavo.storage.rows import OPEN

LONGEST_LOG = 1_000
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
        return self._told(memory, live_members(self._spine.head(), members_of(memory)))

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

    def merges(self, limit: int = 50, into: str | None = None) -> list[tuple[str, datetime, Memory]]:
        """The merges there were, newest first, or the one that made an assembly.

        Each is the commit's id and time and what it made: a view of the ledger, which forgets none.
        """
        self.must_explain()
        if not 1 <= limit <= LONGEST_LOG:
            raise BadInput(f"limit {limit!r} is not between 1 and {LONGEST_LOG}")
        self._spine.head()
        state, ledger = self._spine.state, self._spine.ledger
        made = state.history(into)[:1] if into else state.merges()
        seen = [(v, m) for v, m in made if m.linked(MERGED_FROM) and self._reader.sees(m.scope)][:limit]
        headers = [(ledger.header(version)[0], memory) for version, memory in seen]
        return [(header.commit, header.at, memory) for header, memory in headers]

    def stats(self) -> dict[str, Any]:
        """How many assemblies the handle sees, how large, and how many may lift their members."""
        whole, lag = self._reader.memories(kind=KIND), self._indexing.lag()
        sizes, asked = [len(members_of(m)) for m in whole], {m.id: m.rev for m in whole}
        reasons = [NO_VECTOR] * len(whole)
        if self._composing is not None:
            held = self._composing.held()
            reasons = list(self._composing.drift(held, self._spine.head(), asked).values())
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
            "activations": sum(self._reader.uses(*asked).values()),
            "merged": sum(bool(m.linked(MERGED_FROM)) for m in whole),
            "at_limit": self._spine.head().count(KIND) >= self._spine.policy.assemblies.max_assemblies,
        }

    def vectors(self, ids: Sequence[str]) -> dict[str, list[float]]:
        """The vectors of memories that the handle sees, of those that have one."""
        memories = [m for id_ in ids if (m := self._reader.get(id_))]
        made = self._composing.vectors_of(memories) if self._composing and memories else {}
        return {id_: vector.tolist() for id_, vector in made.items()}

    def vector(self, text: str) -> list[float]:
        """The vector of a text, as questions have one; empty without an embedder."""
        own = self._indexing.embedding
        return [] if own is None else [float(value) for value in own.embed([text])[0]]

    def composite(self, id_: str) -> list[float]:
        """An assembly's composite, or the one that it came with; empty if there is none."""
        told = self.found(id_).data.get("vector")
        vector = self._composing.held().vector(id_) if self._composing else None
        if vector is None:
            return list(told["values"]) if isinstance(told, Mapping) else []
        return [float(value) for value in vector]

    def alike(self, id_: str) -> list[tuple[Memory, float]]:
        """Other memories of its kind and scope that may say the same as one, and how alike each is."""
        memory = self._reader.get(id_)
        others = self._spine.head().alike(memory.kind, memory.scope, memory.text) if memory else ()
        return [(other, likeness(memory.text, other.text)) for other in others if memory and other.id != id_]

    def nearness(self, id_: str) -> dict[str, float]:
        """A memory's cosine with the mean vector, its best with an older one of its scope and a composite."""
        memory, vectors = self._reader.get(id_), self.vectors([id_])
        if memory is None or self._composing is None or not vectors:
            return {}
        units, own, held = self._indexing.units_now(), self._indexing.embedded(), self._composing.held()
        asked, ends = np.array(vectors[id_], dtype=np.float32), units.valid_to
        first = min(row for row, _ in units.rows_of([(id_, memory.rev)]))
        scopes, (scope,) = units.column("rows")["scope"], units.scope_codes((memory.scope,))

        def is_older(rows: Array) -> Array:
            older: Array = (rows < first) & (ends[rows] == OPEN) & (scopes[rows] == scope)
            return older

        mean = own.mean(units.manifest.rows)
        _, older = own.up_to(units.manifest.rows).nearest(asked, is_older, limit=1)
        groups = [place for place, row in enumerate(held.manifest.rows) if row.scope == memory.scope]
        return {
            "mean": float(mean @ asked) / (float(np.linalg.norm(mean)) or 1.0),
            "older": max(older.tolist(), default=0.0),
            "composite": max((held.floats[groups] @ asked).tolist(), default=0.0),
        }

    def now(self) -> datetime:
        """The moment by the account's clock."""
        return self._spine.now()

    def freshness(self, memory: Memory) -> Freshness:
        """Whether the index holds an assembly's composite, of the members as they are now."""
        if self._composing is not None:
            return self._composing.freshness(memory)
        return Freshness(memory=memory.id, rev=memory.rev, is_drifted=True, drift_reason=NO_VECTOR)

    def must_explain(self) -> None:
        """Raise HumanOnly where the policy lets nothing be explained."""
        if not self._spine.policy.assemblies.explain:
            hint = "set [assemblies] explain = true in the policy"
            raise HumanOnly("explaining assemblies is switched off", hint=hint)

    def _told(self, memory: Memory, members: Sequence[Memory] = ()) -> Assembly:
        state, fresh = self._spine.state, self.freshness(memory)
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
