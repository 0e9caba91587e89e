"""Recall: the index, what is above its watermark and the sandbox's own buffer, under one ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import msgspec

from octavo.domain.filters import Filter, passes
from octavo.domain.memory import KINDS, SHARED, Memory
from octavo.domain.query import Question
from octavo.domain.ranking import Aging
from octavo.domain.recall import Answer, Asked, Hit, Trail, chosen, ordered, per_memory, weighed
from octavo.domain.units import Unit
from octavo.engine.indexing import Indexing, is_indexed
from octavo.engine.spine import Spine
from octavo.errors import BadVector, Damaged, ModelFailed
from octavo.later import Later
from octavo.storage.index import Fresh, Match
from octavo.storage.state_view import DbView
from octavo.storage.units import Units
from octavo.storage.words import Wanted

if TYPE_CHECKING:
    from octavo.domain import state as states
    from octavo.domain.state import View
    from octavo.engine import embedding, reranking
    from octavo.engine.embedding import Meaning
    from octavo.models import rerank
    from octavo.models.rerank import Reranker
else:
    # Words alone need no model, and only a sandbox has a state of its own.
    states = Later("octavo.domain.state")
    embedding = Later("octavo.engine.embedding")
    reranking = Later("octavo.engine.reranking")
    rerank = Later("octavo.models.rerank")

_INLINE = 512  # revisions above the watermark that are searched exactly; more are indexed first
_EMBED_INLINE = 64  # passages embedded while a question waits
_ABSTRACT = ("core", "sphere")
_ASKED = ("words", "meaning", "speaker", "time")
_CONCRETE = ("episode", "fact", "register", "canon", "skill")
_FOUND = frozenset((*_CONCRETE, *_ABSTRACT))
_ABSTRACT_MARGIN = 0.3  # by how much an abstraction must fit better than all evidence to stand beside it
_SUFFICIENT = 0.9
_FEW = 15  # so many at least, or half as many again as are asked for: uses and links move some
_MANY = 60  # under other weights than those the index orders by, more may move
_LINKED_FROM, _LINK_SHARE = 5, 0.3


class Recaller:
    """Asks one account's index, and whatever is not in it yet."""

    def __init__(
        self, spine: Spine, indexing: Indexing, wake: Callable[[], None], reranker: Reranker | None = None
    ) -> None:
        self._spine = spine
        self._reranker = reranker
        self._indexing = indexing
        self._wake = wake
        self._factors = tuple(spine.policy.kinds.of(kind).decay for kind in KINDS)
        self._held = (0, False, False)  # of a version, which never changes: has it abstractions, has it uses

    def recall(self, base: DbView, view: View, asked: Asked) -> Answer:
        """The best hits among what the view holds; a damaged index is thrown away and asked again."""
        try:
            return self._recall(base, view, asked)
        except (Damaged, msgspec.DecodeError):
            self._indexing.discard()
            return self._recall(base, view, asked)

    def _recall(self, base: DbView, view: View, asked: Asked) -> Answer:
        notes: list[str] = []
        units = self._units(base)
        asked = replace(asked, mark=units.manifest.watermark.version)
        fresh = self._fresh(base, view, asked)
        question = self._indexing.index.read(
            asked.query, now=asked.now.date(), version=asked.version, scopes=asked.filter.scopes, units=units
        )
        meaning = self._meaning(question, asked, notes)
        fresh = self._with_vectors(fresh, view, meaning, notes)
        hits = self._boosted(self._search(view, base, asked, question, meaning, fresh), asked)
        found = ordered(hits) if asked.unit == "turn" else self._with_linked(view, per_memory(hits), asked)
        if self._reranker is not None and asked.streams is None:
            found = reranking.rerank(view, found, self._reranker, question.phrasings[0])
        return Answer(hits=tuple(_spread(found, asked)[: asked.k]), notes=tuple(notes))

    def drifted(self, memories: Sequence[Memory]) -> set[str]:
        """Which of some memories have vectors that nobody verified for longer than the policy allows."""
        found = self._indexing.freshness(*memories) if memories else []
        return {freshness.memory for freshness in found if freshness.is_drifted}

    def layered(self, base: DbView, view: View, asked: Asked) -> Answer:
        """Seed 001's way: spheres, then cores, then episodes, stopping when one suffices."""
        trail: list[Trail] = []
        notes: tuple[str, ...] = ()
        hits: list[Hit] = []
        for layer, kinds in (("sphere", ("sphere",)), ("core", ("core",)), ("episode", _CONCRETE)):
            wanted = replace(asked, filter=replace(asked.filter, kinds=_only(asked.filter.kinds, kinds)))
            answer = self.recall(base, view, wanted)
            best = max((_relevance(hit) for hit in answer.hits), default=0.0)
            sufficed = layer == "episode" or best >= _SUFFICIENT
            trail.append(Trail(layer=layer, best=round(best, 3), sufficed=sufficed))
            hits, notes = hits + list(answer.hits), answer.notes
            if sufficed:
                break
        return Answer(hits=tuple(ordered(hits)[: asked.k]), notes=notes, trail=tuple(trail))

    def _units(self, base: DbView) -> Units:
        """What is indexed, after what would be too much to search exactly was indexed too."""
        units = self._indexing.units_now()
        mark = units.manifest.watermark.version
        if mark >= base.version or self._spine.read_only:
            return units
        # What is compared by meaning must be embedded while the question waits, so fewer may be new.
        most = _INLINE if self._indexing.embedding is None else _EMBED_INLINE
        if self._spine.state.has_more_than(most, mark, base.version):
            self._indexing.add_words()
            units = self._indexing.units_now()
        return units

    def _fresh(self, base: DbView, view: View, asked: Asked) -> Fresh:
        """What the index does not hold: versions above its watermark, and the sandbox's own writes."""
        units: list[Unit] = []
        ends: set[tuple[str, int]] = set()
        if asked.mark < base.version:
            units += self._indexing.units(asked.mark, base.version)
            ends |= {(m, r) for m, r, _ in self._spine.state.ended(asked.mark, base.version)}
        if not isinstance(view, DbView) and isinstance(view, states.State):
            places: dict[str, int] = {}
            for memory in view.own.values():
                ends |= {(memory.id, rev) for rev in range(1, memory.rev)}
                units += self._indexing.units_of(memory, base.version, places, base.version)
        kept: list[Unit] = []
        others: list[Unit] = []
        for unit in units:
            is_kept = (unit.memory, unit.rev) not in ends and self._passes(view, unit, asked.filter)
            (kept if is_kept else others).append(unit)
        return Fresh(units=tuple(kept), others=tuple(others), ends=frozenset(ends))

    def _passes(self, view: View, unit: Unit, wanted: Filter) -> bool:
        memory = view.get(unit.memory)
        return memory is not None and memory.rev == unit.rev and is_indexed(memory) and passes(memory, wanted)

    def _meaning(self, question: Question, asked: Asked, notes: list[str]) -> Meaning | None:
        own = self._indexing.embedding
        if asked.vector is not None:
            return embedding.Meaning(query=asked.vector, source=own)
        if own is None or (asked.streams is not None and "meaning" not in asked.streams):
            notes.append("found by words alone; no embedder is in use")
            return None
        failure = self._embed_some()
        source = self._indexing.serving() or own
        if missing := self._indexing.missing():
            told = "they are found by words" if source is own else f"{source.embedder.name} serves meanwhile"
            notes.append(f"{missing} passages have no vector yet; {told}")
        try:
            if failure and source is own:
                raise failure  # it is not asked again at once
            return embedding.Meaning(query=source.embed(list(question.phrasings)).sum(axis=0), source=source)
        except ModelFailed as error:
            notes.append(f"found by words alone: {error.message}")
            return None

    def _embed_some(self) -> ModelFailed | None:
        """Embed what little is missing while the question waits, and leave the rest to the worker."""
        try:
            if self._indexing.add_vectors(limit=_EMBED_INLINE):
                self._wake()
        except ModelFailed as error:
            return error
        return None

    def _with_vectors(self, fresh: Fresh, view: View, meaning: Meaning | None, notes: list[str]) -> Fresh:
        """Vectors for what is above the watermark, so that it competes on equal terms."""
        if meaning is None or not fresh.units or meaning.source is None:
            return fresh
        if len(fresh.units) > _EMBED_INLINE:
            notes.append(f"{len(fresh.units)} new memories are compared by words only")
            return fresh
        memories = [m for m in (view.get(u.memory) for u in fresh.units) if m is not None]
        try:
            return replace(fresh, vectors=meaning.source.embed_units(fresh.units, memories))
        except (ModelFailed, BadVector) as error:
            notes.append(f"new memories are compared by words only: {error.message}")
            return fresh

    def _search(
        self,
        view: View,
        base: DbView,
        asked: Asked,
        question: Question,
        meaning: Meaning | None,
        fresh: Fresh,
    ) -> list[Hit]:
        wanted = asked.filter
        matches = self._indexing.index.search(
            question,
            Wanted(
                version=asked.version,
                scopes=wanted.scopes,
                kinds=wanted.kinds,
                layers=wanted.layers,
                category=wanted.category,
                tags=wanted.tags,
                session=wanted.session,
                since=wanted.since,
                until=wanted.until,
            ),
            limit=self._enough(asked),
            least=asked.k,
            apart=_ABSTRACT if wanted.kinds is None and self._holds(base)[0] else (),
            each="turn" if asked.unit == "turn" else "memory",
            aging=Aging(asked.now.timestamp(), self._factors),
            vectors=meaning.source.vectors() if meaning and meaning.source else None,
            query=meaning.query if meaning else None,
            fresh=fresh,
        )
        return self._hits(view, base, asked, [m for m in matches if _is_asked_for(m)])

    def _enough(self, asked: Asked) -> int:
        """How many matches to look at closely, so that none of the best is missed."""
        is_usual = asked.streams is None and asked.emotion is None
        few = rerank.TOP if self._reranker else _FEW if is_usual else _MANY
        return max(asked.k + asked.k // 2, few)

    def _hits(self, view: View, base: DbView, asked: Asked, matches: Sequence[Match]) -> list[Hit]:
        """Matches as hits, with the parts that come from the memory itself."""
        ids = {match.memory for match in matches}
        used = base.uses(sorted(ids)) if ids and self._holds(base)[1] else {}
        known = view.many(ids)
        hits = []
        for match in matches:
            version, memory = known.get(match.memory, (0, None))
            if memory is None or memory.gone or memory.rev != match.rev or memory.kind not in _FOUND:
                continue
            if not passes(memory, asked.filter):
                continue
            parts = weighed(
                match.parts,
                memory,
                now=asked.now,
                policy=self._spine.policy,
                recipe=self._indexing.index.recipe,
                used=used.get(memory.id, (0, 0.0)),
                emotion=asked.emotion,
            )
            if asked.streams is not None:
                parts = chosen(parts, asked.streams)
            hits.append(
                Hit(
                    memory=memory,
                    turn=match.turn,
                    score=sum(parts.values()),
                    parts=parts,
                    version=version,
                    is_fresh=0 < version <= asked.mark,
                )
            )
        return hits

    def _holds(self, base: DbView) -> tuple[bool, bool]:
        """Whether a version has any abstractions, and any uses; most need not be asked for each memory."""
        if self._held[0] != base.version:
            abstract = any(kind in _ABSTRACT for kind, *_ in base.tallies())
            self._held = (base.version, abstract, base.is_used())
        return self._held[1:]

    def _boosted(self, found: list[Hit], asked: Asked) -> list[Hit]:
        """Abstractions lift their sources; they stand among the hits when nothing concrete fits better."""
        abstract = [hit for hit in found if hit.memory.kind in _ABSTRACT]
        hits = [hit for hit in found if hit.memory.kind not in _ABSTRACT] if abstract else found
        if not abstract or (asked.streams is not None and "abstractions" not in asked.streams):
            return hits
        share = self._indexing.index.recipe.abstraction
        lift: dict[str, float] = {}
        for hit in sorted(abstract, key=_relevance):  # the one that fits best has the last word
            lift |= dict.fromkeys(hit.memory.linked("part"), share * min(max(_relevance(hit), 0.0), 1.0))
        lifted = [_lifted(hit, lift.get(hit.memory.id, 0.0)) for hit in hits]
        if asked.unit == "turn" and asked.filter.kinds is None:
            return lifted
        best = max((_relevance(hit) for hit in lifted), default=0.0)
        asked_for = asked.filter.kinds is not None
        floor = best + _ABSTRACT_MARGIN
        return lifted + [hit for hit in per_memory(abstract) if asked_for or _relevance(hit) > floor]

    def _with_linked(self, view: View, hits: list[Hit], asked: Asked) -> list[Hit]:
        """Hits in order, with what the best of them point to and what points to them."""
        found = ordered(hits)
        if asked.streams is not None and "links" not in asked.streams:
            return found
        linked = self._linked(view, found, asked)
        return ordered(hits + linked) if linked else found

    def _linked(self, view: View, hits: list[Hit], asked: Asked) -> list[Hit]:
        known = {hit.memory.id for hit in hits}
        best = [hit for hit in hits[:_LINKED_FROM] if hit.memory.kind not in _ABSTRACT]
        referred = view.referred([hit.memory.id for hit in best]) if best else set()
        found: dict[str, Hit] = {}
        for hit in best:
            pointed = [view.get(link.to) for link in hit.memory.links]
            referring = view.referring(hit.memory.id) if hit.memory.id in referred else ()
            for memory in (*pointed, *referring):
                if memory is None or memory.gone or memory.id in known or memory.id in found:
                    continue
                if memory.kind in _ABSTRACT or not is_indexed(memory) or not passes(memory, asked.filter):
                    continue
                score = _LINK_SHARE * hit.score
                version, _ = view.many([memory.id])[memory.id]
                found[memory.id] = Hit(
                    memory=memory,
                    turn=None,
                    score=score,
                    parts={"links": score},
                    version=version,
                    is_fresh=0 < version <= asked.mark,
                    notes=(f"linked with {hit.memory.id}",),
                )
        return list(found.values())


def seen_by(scope: str | Sequence[str] | None, own: str | None) -> tuple[str, ...] | None:
    """The scopes a recall looks into: `shared` and the one named, or exactly those listed."""
    if scope is None:
        return None if own is None else (SHARED, own)
    return tuple(dict.fromkeys((SHARED, scope))) if isinstance(scope, str) else tuple(scope)


def _only(asked: tuple[str, ...] | None, kinds: Sequence[str]) -> tuple[str, ...]:
    return tuple(kinds) if asked is None else tuple(kind for kind in kinds if kind in asked)


def _is_asked_for(match: Match) -> bool:
    """Whether the question itself, and not only what every memory has, brought a match."""
    if match.score > 0:
        for name in _ASKED:
            if match.parts.get(name, 0.0) > 0:
                return True
    return False


def _relevance(hit: Hit) -> float:
    """What a hit owes to the question itself."""
    return hit.parts.get("words", 0.0) + hit.parts.get("meaning", 0.0)


def _lifted(hit: Hit, lift: float) -> Hit:
    if not lift:
        return hit
    return replace(hit, score=hit.score + lift, parts={**hit.parts, "abstraction": lift})


def _spread(hits: list[Hit], asked: Asked) -> list[Hit]:
    """With diversity asked for, the best of each session first; it costs recall, so it is off by default."""
    if not asked.diverse:
        return hits
    seen: set[str] = set()
    first: list[Hit] = []
    rest: list[Hit] = []
    for hit in hits:
        session = hit.memory.session or hit.memory.id
        (rest if session in seen else first).append(hit)
        seen.add(session)
    return first + rest
