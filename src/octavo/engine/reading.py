"""Reading: the same questions at the head, at an older version, and on top of a sandbox's own writes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, TypedDict, Unpack

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import brief as briefs
from octavo.domain import gate
from octavo.domain import hits as hit_values
from octavo.domain import memory as records
from octavo.domain.brief import BUDGET, Brief
from octavo.domain.brief_page import FORMATS, Counter, count_tokens
from octavo.domain.filters import Filter, behind
from octavo.domain.hits import STREAM_NAMES, Hit, Hits, Query
from octavo.domain.memory import KINDS, LAYERS, SHARED, Memory, check_id, check_scope, check_time
from octavo.domain.orders import Order
from octavo.domain.profile import profile
from octavo.domain.state import View
from octavo.domain.themselves import TOPICS, holding, is_past, quotes_of
from octavo.engine import indexing
from octavo.engine.fields import Count, Feeling, MemoryId, as_tags, feeling, one_of
from octavo.engine.recall import Recaller
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.errors import OutOfScope
from octavo.storage.state_view import DbView

Many = str | Sequence[str] | None
Streams = str | Sequence[str] | Mapping[str, float] | None
Strategy = Annotated[str, one_of(("mixed", "layered"))]
Question = Annotated[str, "The question, in any words and any language."]
_EXPLAINED = 200
_STANDING, _NEWEST = ("canon", "register"), 500  # of so many facts the profile is chosen
_MORE = 4
_TELLING = 16  # memories of each topic in which the user tells of themselves, the newest
DRIFTED = "its vectors were last verified longer ago than the policy allows"


class Narrowing(TypedDict, total=False):
    """What a list and a recall can be narrowed by."""

    scope: Many
    category: Annotated[str | None, "Only this category."]
    tags: Annotated[Many, "Only with this tag; may be repeated."]
    from_sandbox: Annotated[str | None, "Only what came from this sandbox, by its id."]
    since: Annotated[datetime | None, "Not before this time."]
    until: Annotated[datetime | None, "Not after this time."]


class Revision(Struct, frozen=True, kw_only=True):
    """One revision of a memory and the version it came in."""

    version: int
    memory: Memory


class Stats(Struct, frozen=True, kw_only=True):
    """How much there is, counted without looking at every memory; `damage`: what was seen of it."""

    account: str
    version: int
    memories: int
    episodes: int
    by_kind: Mapping[str, int]
    by_scope: Mapping[str, int]
    by_category: Mapping[str, int]
    sessions: Mapping[str, int]
    proposals: int
    damage: tuple[str, ...] = ()
    assemblies: Mapping[str, Any] | None = None


@public
class Reader:
    """What can be asked of an account, at one version or at the head, within the scopes a handle sees."""

    def __init__(
        self, spine: Spine, scope: str | None, recaller: Callable[[], Recaller], version: int | None = None
    ) -> None:
        """Read what stands at a version, or at the head as it moves on."""
        self._spine, self._recaller, self._version = spine, recaller, version
        self.scope = None if scope is None else check_scope(scope)

    @property
    def version(self) -> int:
        """The version that is being read."""
        return self._base().version

    def get(self, id_: str) -> Memory | None:
        """A live memory, or None."""
        memory = self._view().live(check_id(id_))
        return memory if memory and self.sees(memory.scope) else None

    def history(self, id_: str) -> list[Revision]:
        """Every revision of a memory up to this version, oldest first, tombstones included."""
        limit = self._base().version
        found = self._spine.state.history(check_id(id_))
        return [Revision(version=v, memory=m) for v, m in found if v <= limit and self.sees(m.scope)]

    def referring(self, id_: str, *, newest: int = 50) -> list[Memory]:
        """Live memories with a link to a memory, the newest first: what was made of it."""
        return [m for m in self._view().referring(check_id(id_), newest=newest) if self.sees(m.scope)]

    def grouped(self, *ids: str) -> dict[str, str]:
        """Which of some memories belong together: of each, the name of an assembly with two of them."""
        base = self._base()
        wholes: dict[str, set[str]] = {}
        for id_, _, scope, member in base.wholes_of(ids, ("assembly",)) if ids else ():
            if self.sees(scope):
                wholes.setdefault(id_, set()).add(member)
        names = {id_: memory.text for id_, (_, memory) in base.many(wholes).items()} if wholes else {}
        grouped: dict[str, str] = {}
        for id_ in sorted(wholes, key=lambda id_: (-len(wholes[id_]), id_)):
            if names[id_] and len(own := wholes[id_] - grouped.keys()) > 1:
                grouped |= dict.fromkeys(own, names[id_])
        return grouped

    def uses(self, *ids: str) -> dict[str, int]:
        """How often live memories were used, of those that ever were."""
        if not self._base().is_used():
            return {}
        seen = [id_ for id_ in ids if self.get(id_) is not None]
        counted = self._base().uses(seen) if seen else {}
        return {id_: count for id_, (count, _) in counted.items()}

    def memories(
        self,
        *,
        kind: Annotated[Many, one_of(KINDS), "Only this kind; may be repeated."] = None,
        layer: Annotated[Many, one_of(LAYERS), "Only this layer; may be repeated."] = None,
        topic: Annotated[str | None, "Only this topic."] = None,
        limit: Count | None = None,
        after: Annotated[str | None, "Continue behind this memory's id."] = None,
        newest: Annotated[bool, "Newest first."] = False,
        **narrowing: Unpack[Narrowing],
    ) -> list[Memory]:
        """Live memories in the order of their events; `after` continues behind a memory's id."""
        view, chosen = self._view(), self._filter(kind, layer, **narrowing)
        place = None if after is None else behind(view.get(check_id(after, "after")), after, self.sees)
        return list(view.memories(replace(chosen, topic=topic, limit=limit, after=place, newest=newest)))

    def revisions(self, *, after: int = 0) -> list[Revision]:
        """Every revision that came in after a version, in the order they came, tombstones included."""
        found = self._spine.state.revisions_since(after, self._base().version)
        return [Revision(version=version, memory=m) for version, m in found if self.sees(m.scope)]

    def brief(
        self,
        query: Annotated[str | None, "The question; none for what stands alone."] = None,
        *,
        scope: str | None = None,
        k: Annotated[Count, "At most so many relevant lines."] = 60,
        budget: Annotated[Count | None, "At most so many tokens."] = BUDGET,
        format: Annotated[str, one_of(FORMATS), "How to write it."] = "markdown",  # noqa: A002  # the glossary's word
        count: Counter | None = None,
        standing: bool = True,
        newest: Sequence[Memory] = (),
    ) -> Brief:
        """Write the text for a prompt: what stands and what is relevant, fenced and within the budget.

        A scope sees `shared` and its own. Without a query what stands is told, and then the `newest`
        memories; `standing=False` leaves out what stands, for who has told it already.
        """
        scopes = None if scope is None else tuple(dict.fromkeys((SHARED, check_scope(scope))))
        stands = self.memories(kind=_STANDING, scope=scopes) if standing else []
        facts = self.memories(kind="fact", scope=scopes, limit=_NEWEST, newest=True) if standing else []
        hits = Hits()
        if query is not None and query.strip() and k:
            # What stands already does not count against k, so more are asked for; a few times k is enough.
            most = k + min(len(stands), _MORE * k)
            hits = self.recall(query, k=most, scope=scopes, unit="turn")
        elif standing:
            hits = Hits(orders=briefs.lasting(self.orders(scope=scopes)))
        relevant = [
            *filter(briefs.is_telling, newest),
            *briefs.told(h for h in hits if scopes is None or h.memory.scope in scopes),
        ]
        quotes, today = self.quotes(scope=scopes) if standing else (), self._spine.now().date()
        statements = (m for m in (*stands, *facts, *newest, *(hit.memory for hit in hits)) if not m.turns)
        over = {m.id: day for m in statements if (day := briefs.over(m, today))}
        ended = {h.memory.id: h.replaced.at.date() for h in hits if h.replaced and h.replaced.is_certain}
        facts = [fact for fact in facts if fact.id not in over and not is_past(fact, today)]
        used = self.uses(*(m.id for m in facts)) if facts else {}
        return briefs.render(
            stands,
            relevant,
            facts=[*profile(facts, used), *quotes],
            until=over | ended,
            grouped=self.grouped(*(i.id for i in relevant if isinstance(i, Memory) and i.kind == "fact")),
            orders=hits.orders,
            k=k,
            budget=budget,
            format=format,
            count=count,
        )

    def recall(
        self,
        query: Question,
        *,
        k: Annotated[Count | None, "At most so many hits; else ten, or what fits the budget."] = None,
        unit: Annotated[str, one_of(("episode", "turn")), "What a hit is."] = "episode",
        kinds: Annotated[Many, one_of(KINDS), "Only this kind; may be repeated."] = None,
        layers: Annotated[Many, one_of(LAYERS), "Only this layer; may be repeated."] = None,
        budget: Annotated[Count | None, "At most so many tokens of text."] = None,
        count: Counter | None = None,
        streams: Annotated[
            Streams, one_of(STREAM_NAMES), "Only this way of finding; may be repeated."
        ] = None,
        strategy: Annotated[Strategy, "How to look."] = "mixed",
        emotion: Annotated[str | None, "Prefer what felt like this."] = None,
        mood: Feeling = None,
        vector: Sequence[float] | None = None,
        rerank: bool = True,
        **narrowing: Unpack[Narrowing],
    ) -> Hits:
        """The memories that answer a query, best first, each with the parts of its score.

        `unit="turn"` lets two turns of one episode be two hits; `strategy="layered"` asks spheres, then
        cores, then episodes; `k` and `budget` (in tokens) are upper bounds, and unless said `k` is ten, or as
        many as fit the budget: twenty short turns cost what four long ones do; `mood` is how who asks feels.
        `rerank=False` leaves out the second look, where there is one.
        """
        weights, of_layers = hit_values.streams_of(streams)
        narrowing["scope"] = self._seen(narrowing.get("scope"))
        filter_ = self._filter(_both(kinds, of_layers), layers, **narrowing)
        most = hit_values.K if budget is None else hit_values.most_within(budget)
        hits = self._answer(
            strategy,
            text=query,
            k=most if k is None else k,
            unit=unit,
            filter=filter_,
            streams=weights,
            emotion=emotion,
            mood=feeling(mood),
            vector=vector,
            rerank=rerank,
        )
        if budget is not None:
            within = hit_values.within(hits, budget, count or count_tokens)
            hits = Hits(within, notes=hits.notes, trail=hits.trail, orders=hits.orders)
        self._note_uses(hits)
        return hits

    def orders(self, *, scope: Many = None) -> list[Order]:
        """List what the user asked for once and for all, the later first."""
        return [order for order in self._orders(scope) if not order.doubt]

    def _orders(self, scope: Many = None) -> list[Order]:
        """These, and what may be one."""
        base = self._base()
        return self._recaller().orders(base, self._view(base), self._seen(scope))

    def quotes(self, *, scope: Many = None) -> list[Memory]:
        """What the user said of themselves that still holds, in their own words, the most telling first."""
        base, view = self._base(), self._view()
        rows = base.telling(TOPICS, self._seen(scope), _TELLING)
        told = [quote for _, _, memory in base.at_rows(rows) for quote in quotes_of(memory)]
        gone = {id_ for id_ in {quote.id for quote in told} if view.live(id_) is None}
        keyed, today = self._spine.keyed, self._spine.now().date()
        return holding(
            quote
            for quote in told
            if quote.id not in gone
            and not is_past(quote, today)
            and not (view.has_refused() and gate.is_rejected(view, quote.text, quote.scope, keyed))
        )

    def explain(
        self,
        query: Question,
        id_: MemoryId,
        *,
        kinds: Annotated[Many, one_of(KINDS)] = None,
        layers: Annotated[Many, one_of(LAYERS)] = None,
        strategy: Strategy = "mixed",
        **narrowing: Unpack[Narrowing],
    ) -> str:
        """Say why a memory comes for a question, or why it does not; that is no use of it."""
        memory = self.get(id_)
        if memory is None:
            return f"{id_} is not among the live memories that this handle sees at version {self.version}."
        narrowing["scope"] = self._seen(narrowing.get("scope"))
        filter_ = self._filter(kinds, layers, **narrowing)
        hits = self._answer(strategy, text=query, k=_EXPLAINED, filter=filter_)
        for rank, hit in enumerate(hits, start=1):
            if hit.memory.id == id_:
                drift = f"; drifted: {DRIFTED}" if self.drifted([hit]) else ""
                return f"{id_} is hit {rank} of {len(hits)} with {hit.score:.3f}: {hit.why}{drift}."
        if not indexing.is_indexed(memory):
            return f"{id_} is not searched: it holds no text, or only raw state."
        return (
            f"{id_} did not come: {len(hits)} memories fit better. It shares too few words with the query, "
            "and neither its meaning, its time, its speaker nor its links bring it closer."
        )

    def drifted(self, hits: Sequence[Hit]) -> set[str]:
        """The ids of hits whose vectors were last verified longer ago than the policy allows."""
        return self._recaller().drifted([hit.memory for hit in hits])

    def stats(self) -> Stats:
        """Counts by kind, scope and category."""
        view = self._base()
        rows = [row for row in view.tallies() if self.sees(row[1])]
        sessions = {scope: view.sessions(scope) for _, scope, _, _ in rows}
        counted = [row for row in rows if row[0] == "episode" and row[2] not in records.UNCOUNTED]
        return Stats(
            account=self._spine.identity.account,
            version=view.version,
            memories=sum(n for *_, n in rows),
            episodes=sum(n for *_, n in counted),
            by_kind=_sums((kind, n) for kind, _, _, n in rows),
            by_scope=_sums((scope, n) for _, scope, _, n in rows),
            by_category=_sums((category, n) for _, _, category, n in rows if category),
            sessions={scope: n for scope, n in sorted(sessions.items()) if n},
            proposals=sum(1 for p in view.proposals() if self.sees(p.memory.scope)),
        )

    def _filter(self, kind: Many, layer: Many, **narrowing: Unpack[Narrowing]) -> Filter:
        """A filter with every value checked; the scopes are always a set of names this handle sees."""
        kinds, layers = _many(kind), _many(layer)
        since, until = narrowing.get("since"), narrowing.get("until")
        return Filter(
            kinds=kinds,
            layers=layers,
            scopes=self._scopes(narrowing.get("scope")),
            category=narrowing.get("category"),
            tags=as_tags(_many(narrowing.get("tags")) or ()) or None,
            sandbox=narrowing.get("from_sandbox"),
            since=None if since is None else check_time(since, "since"),
            until=None if until is None else check_time(until, "until"),
        )

    def _answer(self, strategy: str, *, k: int, unit: str = "episode", **asked: Any) -> Hits:
        """What a recall finds, which notes no use of it."""
        base = self._base()
        query = Query(k=k, unit=unit, version=base.version, now=self._spine.now(), **asked)
        if not query.text.strip() or query.k == 0:
            return Hits()
        recaller = self._recaller()
        way = recaller.layered if strategy == "layered" else recaller.recall
        return way(base, self._view(base), query)

    def _note_uses(self, hits: Hits) -> None:
        """Note what was recalled; only who may write and is asked in a conversation does so."""

    def _base(self) -> DbView:
        """The committed version below everything."""
        return self._spine.head() if self._version is None else self._spine.state.at(self._version)

    def _view(self, base: DbView | None = None) -> View:
        """What is read: the committed version (`base`, if that is known), or a layer over it."""
        return self._base() if base is None else base

    def sees(self, scope: str) -> bool:
        """Whether this handle sees a scope: its own and `shared`, or all of them."""
        return self.scope is None or scope in (SHARED, self.scope)

    def _seen(self, scope: Many) -> tuple[str, ...] | None:
        """The scopes a recall looks into: `shared` and the one named, or exactly those listed."""
        return self._scopes(tuple(dict.fromkeys((SHARED, scope))) if isinstance(scope, str) else scope)

    def _scopes(self, wanted: Many) -> tuple[str, ...] | None:
        """The scopes to filter by: always a set of names, never a wildcard."""
        names = _many(wanted)
        if names is None:
            return None if self.scope is None else tuple({SHARED, self.scope})
        for name in names:
            if not self.sees(check_scope(name)):
                raise OutOfScope(f"a handle bound to {self.scope!r} asked for scope {name!r}")
        return names


class Snapshot(Reader):
    """An older version, read like the account itself."""


def _many(value: Many) -> tuple[str, ...] | None:
    if value is None:
        return None
    return (value,) if isinstance(value, str) else tuple(value)


def _both(kinds: Many, of_layers: tuple[str, ...] | None) -> Many:
    """The kinds asked for, as far as the layers that streams name hold them."""
    asked = _many(kinds)
    return asked if of_layers is None else tuple(k for k in of_layers if asked is None or k in asked)


def _sums(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    totals: dict[str, int] = {}
    for name, n in sorted(pairs):
        totals[name] = totals.get(name, 0) + n
    return totals
