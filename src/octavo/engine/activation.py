"""Activation: an assembly that fits the question lifts those of its members that are hits already."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from octavo.domain import assembling
from octavo.domain.assembling import members_of
from octavo.domain.hits import Hit, Query
from octavo.domain.policy import AssemblyPolicy
from octavo.domain.state import Pending
from octavo.engine.boosts import Boost, Recalled, lifted, relevance
from octavo.engine.composing import AGE, Composing
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.libraries import Array, np


def assemblies(spine: Spine, indexing: Indexing, wake: Callable[[], None]) -> Boost:
    """The boost by assemblies: it looks only at those that a hit belongs to.

    One that nobody verified for too long wakes whoever does that.
    """
    policy = spine.policy.assemblies

    def boost(recalled: Recalled, hits: list[Hit]) -> list[Hit]:
        composing = indexing.composing
        is_off = policy.mode == "off" or not policy.boost or not recalled.query.uses("meaning")
        if is_off or composing is None or not hits or not composing.held().manifest.rows:
            return hits
        if recalled.vector is None or recalled.embedding is not indexing.embedding:
            recalled.notes.append("no assembly lifts its members: their embedder is not in use")
            return hits
        if recalled.view is recalled.base and recalled.base.version < spine.state.watermark()[0]:
            recalled.notes.append("no assembly lifts its members at an older version")
            return hits
        # A wall: an assembly speaks for its own scope alone.
        scopes = {hit.memory.id: hit.memory.scope for hit in in_reach(recalled.query, hits, policy.boost)}
        own = [row for row in recalled.base.assemblies_of(scopes) if row[2] == scopes[row[3]]]
        near, stale = _near(composing, recalled, {id_: rev for id_, rev, *_ in own}, policy.activation)
        if stale:
            reasons = ", ".join(sorted(set(stale.values())))
            recalled.notes.append(f"{len(stale)} assemblies that fit lift nothing: drifted ({reasons})")
            if AGE in stale.values() and not spine.read_only:
                wake()
        best: dict[str, tuple[float, str]] = {}
        for id_, _, _, member in own:
            if id_ in near and id_ not in stale:
                best[member] = max(best.get(member, (0.0, "")), (near[id_], id_))
        return [_raised(recalled, hit, policy, *best.get(hit.memory.id, (0.0, ""))) for hit in hits]

    return boost


def in_reach(query: Query, hits: list[Hit], most: float) -> list[Hit]:
    """The hits, in order, that so much can still bring among those that are returned."""
    if query.diverse or query.mood is not None or len(hits) <= query.k:
        return hits
    last = hits[max(query.k, 1) - 1].score
    return [hit for hit in hits if hit.score + most >= last]


def _raised(recalled: Recalled, hit: Hit, policy: AssemblyPolicy, cosine: float, id_: str) -> Hit:
    """A hit with what the best of its assemblies gives it."""
    whole = 1 + recalled.recipe.meaning  # what words and meaning add up to when both fit wholly
    lift = assembling.boost(cosine, relevance(hit) / whole, policy) if id_ else 0.0
    return replace(lifted(hit, "assembly", lift), assembly=id_) if lift else hit


def _near(
    composing: Composing, recalled: Recalled, asked: dict[str, int], threshold: float
) -> tuple[dict[str, float], dict[str, str]]:
    """The assemblies that fit the question, each with its cosine; and why some may not be gone by."""
    held = composing.held()
    ids = [id_ for id_ in asked if id_ in held.places]
    cosines = held.floats[[held.places[id_] for id_ in ids]] @ unit(recalled.vector)
    near = {id_: cosine for id_, cosine in zip(ids, cosines.tolist(), strict=True) if cosine >= threshold}
    if not near:
        return {}, {}
    own = set(recalled.view.own) if isinstance(recalled.view, Pending) else set()
    is_still = held.manifest.watermark.version == recalled.base.version and not own
    known = {} if is_still else recalled.base.many(near)
    members = {id_: members_of(known[id_][1]) if id_ in known else () for id_ in near}
    revisions = {id_: (asked[id_], members[id_]) for id_ in near}
    return near, composing.drift(held, recalled.base.version, revisions, own)


def unit(vector: object) -> Array:
    """A vector made as long as one."""
    array = np.asarray(vector, dtype=np.float32)
    return array / (float(np.linalg.norm(array)) or 1.0)
