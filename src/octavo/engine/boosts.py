"""Boosts: what changes the order of hits after the search, each a function from hits to hits.

A boost is called as `boost(recalled, hits)`. `hits` are in order, best first: one for each memory, or with
`recalled.query.unit == "turn"` one for each turn; every hit names the parts of its score. It returns the hits
that stand from then on, in any order, lifted (`lifted`), lowered, marked by a note, more or fewer; the
recaller orders them again and cuts to k after the last one. `Recalled` says what was asked and what there is
to look at. A boost reads; it writes nothing, and it looks only at the hits, never at a whole account.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import assembling
from octavo.domain.corrections import REPLACES, Fact, arrange, is_about_now
from octavo.domain.filters import passes
from octavo.domain.hits import EQUAL, Hit, Query
from octavo.domain.moods import in_mood
from octavo.domain.orders import Order, is_request
from octavo.domain.policy import EmotionPolicy
from octavo.domain.ranking import Recipe
from octavo.domain.replacing import probability
from octavo.domain.state import Pending, View
from octavo.domain.text import passages
from octavo.domain.units import ONLY_ASKS, USERS, substance
from octavo.engine.composing import AGE
from octavo.engine.embedding import Embedding
from octavo.engine.indexing import Indexing, is_indexed
from octavo.engine.spine import Spine
from octavo.errors import ModelFailed
from octavo.libraries import Array
from octavo.models.embedders import OFFLINE_NAME
from octavo.models.replacing import Scorer as PairScorer
from octavo.models.rerank import TOP, Scorer, gains
from octavo.storage.search import ScoredUnit
from octavo.storage.state_view import DbView

ABSTRACT = ("core", "sphere")
COMPARED = ("fact", "register")
_WISH = 0.2
_STEP = 2 * EQUAL
_ABSTRACT_MARGIN = 0.3  # by how much an abstraction must fit better than all evidence to stand beside it
_COMING = 10  # facts near the best one that are looked at though the question alone did not bring them
_TALK = 6  # of so many hits what a user said is compared with the best of it
_AS_NEAR = 0.5  # of the earlier one's relevance that the later one needs
_LONGEST = 300  # characters of what a user says that can be compared
_LINKED_FROM, _LINKED_MOST, _LINK_SHARE = 5, 16, 0.3  # of so many hits so many each


class Recalled(Struct, frozen=True, kw_only=True):
    """One recall under way, as a boost sees it.

    `vector` is the question's, of length one, comparable with the vectors of `embedding`; both are None when
    it is found by words alone. `vectors` are those of the facts and of the best turns that were found, by
    `key_of`. `view` is what is read: `base`, the committed version, or a sandbox's own writes over it. `mark`
    is the version that the index has reached. `orders` are all that hold. `apart` are cores and spheres that
    fit and are no hits, `others` facts that the question alone would not bring; `hits_of` makes hits of some
    of them. `notes` reach whoever asked: a boost adds what they should know.
    """

    query: Query
    view: View
    base: DbView
    mark: int
    recipe: Recipe
    notes: list[str]
    hits_of: Callable[[Sequence[ScoredUnit]], list[Hit]]
    orders: Sequence[Order] = ()
    apart: Sequence[ScoredUnit] = ()
    others: Sequence[ScoredUnit] = ()
    vector: Any = None
    embedding: Embedding | None = None
    vectors: Mapping[str, Array] = {}


Boost = Callable[[Recalled, list[Hit]], list[Hit]]


def lifted(hit: Hit, part: str, lift: float) -> Hit:
    """A hit with one part more in its score."""
    if not lift:
        return hit
    return replace(hit, score=hit.score + lift, parts={**hit.parts, part: lift})


def relevance(found: Hit | ScoredUnit) -> float:
    """What a hit owes to the question itself."""
    return found.parts.get("words", 0.0) + found.parts.get("meaning", 0.0)


def key_of(memory: str, turn: int | None) -> str:
    """What the vector of a fact or a turn is known by."""
    return memory if turn is None else f"{memory}#{turn}"


def abstractions(recalled: Recalled, hits: list[Hit]) -> list[Hit]:
    """Cores and spheres lift their sources; one stands among the hits when nothing concrete fits nearly."""
    asked_for = [hit for hit in hits if hit.memory.kind in ABSTRACT]
    concrete = [hit for hit in hits if hit.memory.kind not in ABSTRACT] if asked_for else hits
    fitting = {unit.memory: max(relevance(unit), 0.0) for unit in recalled.apart}
    fitting |= {hit.memory.id: max(relevance(hit), 0.0) for hit in asked_for}
    if not fitting or not recalled.query.uses("abstractions"):
        return concrete
    share = recalled.recipe.abstraction
    lift: dict[str, float] = {}
    for source, _, _, part in recalled.base.wholes_of([hit.memory.id for hit in concrete], ABSTRACT):
        if source in fitting:
            lift[part] = max(lift.get(part, 0.0), share * min(fitting[source], 1.0))
    concrete = [lifted(hit, "abstraction", lift.get(hit.memory.id, 0.0)) for hit in concrete]
    if recalled.query.filter.kinds is not None:
        return concrete + asked_for
    if recalled.query.unit == "turn":
        return concrete
    floor = max((relevance(hit) for hit in concrete), default=0.0) + _ABSTRACT_MARGIN
    return concrete + recalled.hits_of([unit for unit in recalled.apart if relevance(unit) > floor])


def links(recalled: Recalled, hits: list[Hit]) -> list[Hit]:
    """What the best hits point to, and what points to them, comes in with a share of their score."""
    query, view = recalled.query, recalled.view
    if query.unit == "turn" or not query.uses("links"):
        return hits
    best = [hit for hit in hits[:_LINKED_FROM] if hit.memory.kind not in ABSTRACT]
    referred = view.referred([hit.memory.id for hit in best]) if best else set()
    source: dict[str, Hit] = {}
    for hit in best:
        near = [link.to for link in hit.memory.links[:_LINKED_MOST]]
        if hit.memory.id in referred:
            near += [m.id for m in view.referring(hit.memory.id, parts=False, newest=_LINKED_MOST)]
        for id_ in near:
            source.setdefault(id_, hit)
    for hit in hits:
        source.pop(hit.memory.id, None)
    linked = []
    for id_, (version, memory) in (view.many(source) if source else {}).items():
        if memory.kind not in ABSTRACT and is_indexed(memory) and passes(memory, query.filter):
            score = _LINK_SHARE * source[id_].score
            linked.append(
                Hit(
                    memory=memory,
                    turn=None,
                    score=score,
                    parts={"links": score},
                    version=version,
                    is_fresh=0 < version <= recalled.mark,
                    notes=(f"linked with {source[id_].memory.id}",),
                )
            )
    return hits + linked


def current(recalled: Recalled, hits: list[Hit]) -> list[Hit]:
    """Facts change places among themselves: of those about the same thing the newer stands first.

    The older says what took its place. With the offline model's vectors meaning counts too, and a fact near
    the best one comes in if it takes that one's place, though the question alone would not have brought it.
    """
    first: dict[str, int] = {}
    for place, hit in enumerate(hits):
        if hit.memory.kind in COMPARED and hit.memory.text:
            first.setdefault(hit.memory.id, place)
    if not first or recalled.query.streams is not None:
        return hits
    known = {id_: hits[place] for id_, place in first.items()}
    coming: dict[str, Hit] = {}
    others = {unit.memory: unit for unit in recalled.others if unit.memory not in known}
    meaning = _meaning(recalled, [*known, *others])
    if meaning is not None:
        near = meaning.nearest(next(iter(known)), [*others])[:_COMING]
        found = recalled.hits_of([others[id_] for id_ in near])
        coming = {hit.memory.id: hit for hit in found if hit.memory.text}
    facts = [
        Fact(id=id_, text=hit.memory.text, at=hit.memory.at, version=hit.version, relevance=relevance(hit))
        for id_, hit in (known | coming).items()
    ]
    order, replacements = arrange(recalled.query.text, facts, meaning)
    known |= coming
    # What the question did not bring comes in only before what it did.
    order = [id_ for place, id_ in enumerate(order) if id_ not in coming or place < order.index(facts[0].id)]
    replaced = {replacement.older: replacement for replacement in replacements}
    places = [*first.values(), *range(len(hits), len(hits) + len(order) - len(first))]
    result, score = [*hits, *coming.values()][: len(hits) + len(order) - len(first)], math.inf
    for place, id_ in zip(places, order, strict=True):
        score = min(result[place].score, score - _STEP)  # equals would be put in another order
        hit = lifted(known[id_], "current", score - known[id_].score)
        if (newer := replaced.get(id_)) is not None:
            told = "" if newer.is_certain else "perhaps "
            note = f"{told}replaced by {newer.newer} on {newer.at.date().isoformat()}"
            hit = replace(hit, replaced=newer, notes=(*hit.notes, note))
        result[place] = replace(hit, score=score)
    return result


def _meaning(recalled: Recalled, keys: Sequence[str]) -> PairScorer | None:
    """What the offline model's vectors tell of pairs, if it is in use."""
    is_known = recalled.embedding is not None and recalled.embedding.embedder.name == OFFLINE_NAME
    if not is_known or recalled.vector is None:
        return None
    return PairScorer(
        recalled.vector, {key: recalled.vectors[key] for key in keys if key in recalled.vectors}
    )


def later(recalled: Recalled, hits: list[Hit]) -> list[Hit]:
    """Of what a user said of one thing the later stands first, where the question is how it is.

    People say much in passing: words and vectors must both tell that it took the other's place, and nothing
    counts as ended by it.
    """
    asked = recalled.query.text
    told = {place: said for place, hit in enumerate(hits[:_TALK]) if (said := _said(hit)) is not None}
    if len(told) < 2 or recalled.query.streams is not None or not is_about_now(asked):
        return hits
    first, *others = told
    key, text, at = told[first]
    found = [
        (place, other, said)
        for place in others
        for other, said, when in [told[place]]
        if key != other and at < when and hits[place].shares_words and _is_users(hits[place])
        if relevance(hits[place]) >= _AS_NEAR * relevance(hits[first])
        if probability(asked, text, said) >= REPLACES
    ]
    meaning = _meaning(recalled, [key, *(other for _, other, _ in found)]) if found else None
    if meaning is None:
        return hits
    pairs = [
        (place, (key, text, other, said)) for place, other, said in found if meaning.is_known(key, other)
    ]
    sure = meaning.probabilities(asked, [pair for _, pair in pairs]) if pairs else ()
    result, score = list(hits), hits[first].score
    for _, place in sorted((p, place) for p, (place, _) in zip(sure, pairs, strict=True) if p >= REPLACES):
        score += _STEP
        hit = lifted(hits[place], "current", score - hits[place].score)
        result[place] = replace(hit, notes=(*hit.notes, f"said later than {hits[first].memory.id}"))
    return result


def _is_users(hit: Hit) -> bool:
    """Whether what matched was said by the user."""
    return hit.turn is not None and hit.memory.turns[hit.turn].speaker.casefold() in USERS


def _said(hit: Hit) -> tuple[str, str, datetime] | None:
    """What the user says in the exchange that a hit stands in: its key, its text and when."""
    turns = hit.memory.turns if hit.turn is not None else ()
    for place in range(hit.turn or 0, -1, -1) if turns else ():
        turn = turns[place]
        if turn.speaker.casefold() in USERS:
            asks = turn.text.rstrip().endswith("?") or substance(turn.text, turn.speaker) & ONLY_ASKS
            is_told = len(turn.text) <= _LONGEST and not asks
            at = turn.at or hit.memory.at
            return (key_of(hit.memory.id, place), turn.text, at) if is_told else None
    return None


def wished(recalled: Recalled, hits: list[Hit]) -> list[Hit]:
    """What holds a wish of the user's stands a little higher when something is asked for."""
    wishes = {(order.memory, order.turn) for order in recalled.orders if order.is_wish}
    if not wishes or not is_request(recalled.query.text):
        return hits
    return [lifted(hit, "wish", _WISH * ((hit.memory.id, hit.turn) in wishes)) for hit in hits]


def assemblies(spine: Spine, indexing: Indexing, wake: Callable[[], object]) -> Boost:
    """An assembly that fits the question lifts those of its members that are hits already.

    It looks only at those that a hit belongs to; one that nobody verified for too long wakes who does that.
    """
    policy = spine.policy.assemblies

    def boost(recalled: Recalled, hits: list[Hit]) -> list[Hit]:
        composing = indexing.composing
        is_off = policy.mode == "off" or not policy.boost or not recalled.query.uses("meaning")
        if is_off or composing is None or not hits or not (held := composing.held()).places:
            return hits
        if recalled.vector is None or recalled.embedding is not indexing.embedding:
            recalled.notes.append("no assembly lifts its members: their embedder is not in use")
            return hits
        if recalled.view is recalled.base and recalled.base.version < spine.state.watermark()[0]:
            recalled.notes.append("no assembly lifts its members at an older version")
            return hits
        # A wall: an assembly speaks for its own scope alone.
        scopes = {hit.memory.id: hit.memory.scope for hit in in_reach(recalled.query, hits, policy.boost)}
        belong = [
            row for row in recalled.base.wholes_of(scopes, (assembling.KIND,)) if row[2] == scopes[row[3]]
        ]
        revisions = {id_: rev for id_, rev, *_ in belong if id_ in held.places}
        cosines = held.floats[[held.places[id_] for id_ in revisions]] @ recalled.vector
        fits = dict(zip(revisions, cosines.tolist(), strict=True))
        near = {id_: rev for id_, rev in revisions.items() if fits[id_] >= policy.activation}
        own = recalled.view.own if isinstance(recalled.view, Pending) else ()
        stale = composing.drift(held, recalled.base, near, own)
        if stale:
            reasons = ", ".join(sorted(set(stale.values())))
            recalled.notes.append(f"{len(stale)} assemblies that fit lift nothing: drifted ({reasons})")
            if AGE in stale.values() and not spine.read_only:
                wake()
        best: dict[str, tuple[float, str]] = {}
        for id_, _, _, member in belong:
            if id_ in near and id_ not in stale:
                best[member] = max(best.get(member, (0.0, "")), (fits[id_], id_))
        whole = 1 + recalled.recipe.meaning  # what words and meaning add up to when both fit wholly

        def raised(hit: Hit) -> Hit:
            cosine, id_ = best.get(hit.memory.id, (0.0, ""))
            lift = assembling.boost(cosine, relevance(hit) / whole, policy) if id_ else 0.0
            parts = {**hit.parts, "assembly": lift}
            return replace(hit, score=hit.score + lift, parts=parts, assembly=id_) if lift else hit

        return [raised(hit) for hit in hits]

    return boost


def in_reach(query: Query, hits: list[Hit], most: float) -> list[Hit]:
    """The hits, in order, that so much can still bring among those that are returned."""
    if query.mood is not None or len(hits) <= query.k:
        return hits
    last = hits[max(query.k, 1) - 1].score
    return [hit for hit in hits if hit.score + most >= last]


def moods(policy: EmotionPolicy) -> Boost:
    """With a mood, a share of every score is how well its feeling goes with that."""

    def boost(recalled: Recalled, hits: list[Hit]) -> list[Hit]:
        if recalled.query.mood is None:
            return hits
        kept, notes = in_mood(hits, recalled.query.mood, gate=policy.gate)
        recalled.notes.extend(notes)
        return kept

    return boost


def judged(scorer: Scorer) -> Boost:
    """A boost by a caller's own reranker, which sees the passages that matched of the best hits."""

    def boost(recalled: Recalled, hits: list[Hit]) -> list[Hit]:
        best, rest = hits[:TOP], hits[TOP:]
        if not recalled.query.rerank or recalled.query.streams is not None or len(best) < 2:
            return hits
        parts = [passages(hit.text) for hit in best]  # and of these the one that matched
        places = [min(hit.passage, len(some) - 1) for hit, some in zip(best, parts, strict=True)]
        texts = [some[place] for some, place in zip(parts, places, strict=True)]
        try:
            moved = gains(scorer, recalled.query.text, texts)
        except ModelFailed as error:
            recalled.notes.append(f"looked at once: {error.message}")
            return hits
        looked = [lifted(hit, "rerank", gain) for hit, gain in zip(best, moved, strict=True)]
        # The others stay below, by as much as they were.
        drop = min(hit.score for hit in looked) - best[-1].score
        return looked + [lifted(hit, "rerank", min(drop, 0.0)) for hit in rest]

    return boost
