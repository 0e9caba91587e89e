"""Recall: the index, what is above its watermark and the sandbox's own buffer, under one ranking."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from msgspec.structs import replace

from octavo.domain.filters import Filter, passes
from octavo.domain.hits import Hit, Hits, LayerTried, Query, chosen, ordered, per_memory, weighed
from octavo.domain.memory import KINDS, Memory
from octavo.domain.names import ALIAS, agreed, aliases_in
from octavo.domain.orders import Order
from octavo.domain.query import LONGEST, Question
from octavo.domain.state import Pending, View
from octavo.engine import boosts
from octavo.engine.asking import Standing
from octavo.engine.boosts import ABSTRACT, Boost, Recalled
from octavo.engine.embedding import Embedding
from octavo.engine.indexing import Indexing, is_indexed
from octavo.engine.recent import NAMES, ORDERS, Recent, Tail
from octavo.engine.spine import Spine
from octavo.errors import BadVector, ModelFailed
from octavo.libraries import Array
from octavo.models.rerank import TOP, Scorer
from octavo.storage.columns import is_writing
from octavo.storage.rows import Units
from octavo.storage.search import ScoredUnit
from octavo.storage.state_view import DbView
from octavo.storage.tokens import Encoded, Tokens
from octavo.storage.vectors import Vectors, checked_vectors

_INLINE = 512  # revisions above the watermark that are searched exactly; more are indexed first
_EMBED_INLINE = 64  # passages embedded while a question waits
_LOOK_INLINE = 16  # passages in which orders are looked for meanwhile
_ASKED = ("words", "meaning", "speaker", "time")
_CONCRETE = ("episode", "fact", "register", "canon", "skill")
_SUFFICIENT = 0.9
_FEW = 15  # so many at least, or half as many again as are asked for: uses and links move some
_POOL = 30  # where it is known by meaning: what replaces the best fact may hardly fit the question
_MANY = 60  # under other weights than those the index orders by, more may move


class Recaller:
    """Asks one account's index, and whatever is not in it yet; `more` boosts come behind cores and links."""

    def __init__(
        self,
        spine: Spine,
        indexing: Indexing,
        wake: Callable[[], bool],
        scorer: Scorer | None = None,
        more: Sequence[Boost] = (),
    ) -> None:
        self._spine = spine
        self._indexing = indexing
        self._wake = wake
        again = () if scorer is None else (boosts.judged(scorer),)
        self._looks_twice = scorer is not None or indexing.second_look is not None
        self.boosts: tuple[Boost, ...] = (
            boosts.abstractions,
            boosts.links,
            boosts.wished,
            *more,
            *again,
            boosts.moods(spine.policy.emotion),
            boosts.current,
            boosts.later,
        )
        self._factors = tuple(spine.policy.kinds.of(kind).decay for kind in KINDS)
        self._recent = Recent(spine, indexing)
        changed = partial(self._recent.unchanged_since, ORDERS)
        self._standing = Standing(changed, lambda: indexing.asking)
        self._named: tuple[object, dict[str, str], dict[str, str]] = (None, {}, {})

    def recall(self, base: DbView, view: View, query: Query) -> Hits:
        """The best hits among what the view holds."""
        return self._indexing.healed(partial(self._recall, base, view, query))

    def _recall(self, base: DbView, view: View, query: Query) -> Hits:
        notes: list[str] = []
        if len(query.text) > LONGEST:
            notes.append(f"only the first {LONGEST} of the question's {len(query.text)} characters count")
        units = self._units(base)
        mark = units.manifest.watermark.version
        tail, ends = self._recent.tail(units, base, _own(view))
        held = tail.units if tail.units.manifest.rows else None
        question = self._indexing.index.read(
            query.text[:LONGEST],
            now=query.now.date(),
            version=query.version,
            scopes=query.filter.scopes,
            units=units,
            held=held,
            **self._names(base, view, query.filter.scopes),
        )
        vector, source = self._meaning(question, query, notes)
        vectors = self._vectors_of(tail, ends, source, notes) if source is not None and held else None
        index = self._indexing.index
        if {self._indexing.folder, source.index if source else units.folder} != {units.folder}:
            return self._recall(base, view, query)  # another index took the place of this one
        look = self._second_look(question, query, notes)
        # So many are looked at closely that none of the best is missed.
        is_usual = query.streams is None and query.emotion is None
        few = TOP if self._looks_twice and query.rerank else _FEW if is_usual else _MANY
        most = max(query.k + query.k // 2, few)
        scored = index.search(
            question,
            query.filter,
            units=units,
            version=query.version,
            limit=most if vector is None else max(most, _POOL),
            least=query.k,
            apart=ABSTRACT if query.filter.kinds is None else (),
            each="turn" if query.unit == "turn" else "memory",
            ages=(query.now.timestamp(), self._factors),
            vectors=source.now() if source else None,
            query=vector,
            held=None if held is None else (held, vectors),
            ends=ends,
            look=look,
        )
        # The question itself must have brought it, and not only what every memory has.
        asked_for = [
            u
            for place, u in enumerate(scored)
            if (place < most or u.kind in ABSTRACT)
            and u.score > 0
            and any(u.parts.get(part, 0.0) > 0 for part in _ASKED)
        ]
        others = [u for u in scored if u.kind in boosts.COMPARED and u not in asked_for]
        orders = self.orders(base, view, query.filter.scopes) if query.streams is None else []
        recalled = Recalled(
            query=query,
            view=view,
            base=base,
            mark=mark,
            recipe=self._indexing.index.recipe,
            notes=notes,
            orders=orders,
            hits_of=partial(self._hits, view, base, query, mark),
            apart=[u for u in asked_for if u.kind in ABSTRACT] if query.filter.kinds is None else (),
            others=others,
            vector=vector,
            embedding=source,
            vectors={} if source is None else _vectors(scored, source.now(), units.manifest.rows, vectors),
        )
        concrete = asked_for if query.filter.kinds else [u for u in asked_for if u.kind not in ABSTRACT]
        hits = self._hits(view, base, query, mark, concrete)
        hits = ordered(hits if query.unit == "turn" else per_memory(hits))
        for boost in self.boosts:
            hits = ordered(boost(recalled, hits))
        # What the user asked for stands beside the hits and takes no place.
        asking = self._indexing.asking if source is self._indexing.embedding else None
        applying = self._standing.applying(query.text, orders, vector, asking)
        return Hits(hits[: query.k], notes=notes, orders=applying)

    def orders(self, base: DbView, view: View, scopes: Sequence[str] | None) -> list[Order]:
        """The standing orders and wishes that hold, the later first."""
        return self._standing.orders(base, _own(view), scopes)

    def _names(self, base: DbView, view: View, scopes: tuple[str, ...] | None) -> dict[str, dict[str, str]]:
        """The names that people go by: those they were given, and those they are called by in the talk."""
        key = (self._recent.unchanged_since(NAMES, base.version), scopes)
        if self._named[0] != key:
            given = base.memories(Filter(kinds=("register",), category=ALIAS, scopes=scopes))
            self._named = (key, aliases_in(given), agreed(base.called(scopes)))
        own = [memory for memory in _own(view) if scopes is None or memory.scope in scopes]
        return {"aliases": {**self._named[1], **aliases_in(own)}, "called": self._named[2]}

    def drifted(self, memories: Sequence[Memory]) -> set[str]:
        """Which of some memories have vectors that nobody verified for longer than the policy allows."""
        found = self._indexing.freshness(*memories) if memories else []
        return {freshness.memory for freshness in found if freshness.is_drifted}

    def layered(self, base: DbView, view: View, query: Query) -> Hits:
        """Seed 001's way: spheres, then cores, then episodes, stopping when one suffices."""
        trail: list[LayerTried] = []
        hits, asked = Hits(), query.filter.kinds
        for layer, kinds in (("sphere", ("sphere",)), ("core", ("core",)), ("episode", _CONCRETE)):
            only = replace(query.filter, kinds=tuple(k for k in kinds if asked is None or k in asked))
            in_layer = self.recall(base, view, replace(query, filter=only))
            best = max((boosts.relevance(hit) for hit in in_layer), default=0.0)
            sufficed = layer == "episode" or best >= _SUFFICIENT
            trail.append(LayerTried(layer=layer, best=round(best, 3), sufficed=sufficed))
            hits = Hits([*hits, *in_layer], notes=in_layer.notes, orders=in_layer.orders)
            if sufficed:
                break
        return Hits(ordered(hits)[: query.k], notes=hits.notes, trail=trail, orders=hits.orders)

    def _units(self, base: DbView) -> Units:
        """What is indexed, after what would be too much to search exactly was indexed too.

        Who is at that already, or about to be, is not waited for: what is not too much is searched meanwhile.
        """
        units = self._indexing.units_now()
        mark = units.manifest.watermark.version
        if mark >= base.version or self._spine.read_only:
            return units
        is_coming = self._wake()
        # What is compared by meaning must be embedded while the question waits, so fewer may be new.
        most = _INLINE if self._indexing.embedding is None else _EMBED_INLINE
        is_pile = partial(self._spine.state.has_more_than, after=mark, upto=base.version)
        if is_pile(most) and (is_pile(_INLINE) or not (is_coming or is_writing(units.folder))):
            self._indexing.add_words()
            units = self._indexing.units_now()
        return units

    def _meaning(
        self, question: Question, query: Query, notes: list[str]
    ) -> tuple[Array | None, Embedding | None]:
        """The question as a vector, and whose vectors it can be compared with."""
        own = self._indexing.embedding
        if query.vector is not None and own is not None:
            return checked_vectors(query.vector, own.embedder.dimension)[0], own
        if own is None or not query.uses("meaning"):
            notes.append("found by words alone; no embedder is in use")
            return None, None
        failure = self._embed_some()
        source = self._indexing.serving() or own
        if missing := self._indexing.missing():
            told = "they are found by words" if source is own else f"{source.embedder.name} serves meanwhile"
            notes.append(f"{missing} passages have no vector yet; {told}")
        try:
            if failure and source is own:
                raise failure  # it is not asked again at once
            return source.embed(list(question.phrasings)).sum(axis=0), source
        except ModelFailed as error:
            notes.append(f"found by words alone: {error.message}")
            return None, None

    def _second_look(
        self, question: Question, query: Query, notes: list[str]
    ) -> tuple[Tokens, Encoded] | None:
        """Token vectors and the question's own; none where it is not wanted or the model cannot read it.

        No memory is encoded while a question waits: what has no tokens yet keeps its place meanwhile.
        """
        look = self._indexing.second_look
        self._indexing.is_used |= look is not None
        if look is None or not query.rerank or query.streams is not None:
            return None
        try:
            asked = look.ask(question)
        except ModelFailed as error:
            notes.append(f"looked at once: {error.message}")
            return None
        if asked is None:
            return None
        if look.missing(self._indexing.index.units().manifest.rows):
            self._wake()
        return look.now(), asked

    def _embed_some(self) -> ModelFailed | None:
        """Embed what is missing while the question waits, if it is little; else that is the worker's."""
        if self._indexing.missing() > _EMBED_INLINE:
            self._indexing.is_used = True
            self._wake()
            return None
        try:
            left = self._indexing.add_vectors(limit=_EMBED_INLINE)
            if left or self._indexing.add_orders(limit=_LOOK_INLINE):
                self._wake()
        except ModelFailed as error:
            return error
        return None

    def _vectors_of(
        self, tail: Tail, ends: set[tuple[str, int]], source: Embedding, notes: list[str]
    ) -> Vectors | None:
        """Vectors for what is not indexed yet, so that it competes on equal terms."""
        count = sum((memory.id, memory.rev) not in ends for memory, _ in tail.told)
        if count > _EMBED_INLINE:
            notes.append(f"{count} new memories are compared by words only")
            return None
        try:
            return tail.vectors(source, ends)
        except (ModelFailed, BadVector) as error:
            notes.append(f"new memories are compared by words only: {error.message}")
            return None

    def _hits(
        self, view: View, base: DbView, query: Query, mark: int, scored: Sequence[ScoredUnit]
    ) -> list[Hit]:
        """Units as hits, with the parts that come from the memory itself."""
        ids, recipe = {unit.memory for unit in scored}, self._indexing.index.recipe
        used = base.uses(sorted(ids)) if ids and base.is_used() else {}
        known = view.many(ids) if ids else {}
        hits = []
        for unit in scored:
            version, memory = known.get(unit.memory, (0, None))
            if memory is None or memory.rev != unit.rev:
                continue
            if not is_indexed(memory) or not passes(memory, query.filter):
                continue
            parts = weighed(
                unit.parts, memory, recipe=recipe, used=used.get(memory.id), emotion=query.emotion
            )
            parts = parts if query.streams is None else chosen(parts, query.streams)
            hits.append(
                Hit(
                    memory=memory,
                    turn=unit.turn,
                    score=sum(parts.values()),
                    parts=parts,
                    version=version,
                    is_fresh=0 < version <= mark,
                    shares_words=unit.shares_words,
                    passage=unit.passage,
                )
            )
        return hits


def _own(view: View) -> list[Memory]:
    """What a sandbox has written itself."""
    return list(view.own.values()) if isinstance(view, Pending) else []


def _vectors(
    scored: Sequence[ScoredUnit], stored: Vectors, indexed: int, held: Vectors | None
) -> dict[str, Array]:
    """The vectors of facts and of the best turns; `held` are those behind the indexed rows."""
    made = {}
    for place, unit in enumerate(scored):
        vectors, row = (stored, unit.row) if unit.row < indexed else (held, unit.row - indexed)
        has_one = vectors is not None and row < vectors.manifest.rows and row not in vectors.lacking
        if (unit.turn is None or place < _FEW) and vectors is not None and has_one:
            made[boosts.key_of(unit.memory, unit.turn)] = vectors.floats[row]
    return made
