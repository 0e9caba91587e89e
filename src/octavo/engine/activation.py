"""Activation: an assembly that fits the question lifts those of its members that are hits already."""

from __future__ import annotations

from msgspec.structs import replace

from octavo.domain import assembling
from octavo.domain.assembling import members_of
from octavo.domain.hits import Hit
from octavo.domain.state import Pending
from octavo.engine.boosts import Boost, Recalled, lifted, relevance
from octavo.engine.composing import Composing
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.libraries import Array, np


def assemblies(spine: Spine, indexing: Indexing) -> Boost:
    """The boost by assemblies: it looks only at those that a hit belongs to."""
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
        return _lifted(spine, composing, recalled, hits)

    return boost


def _lifted(spine: Spine, composing: Composing, recalled: Recalled, hits: list[Hit]) -> list[Hit]:
    policy = spine.policy.assemblies
    scope_of = {hit.memory.id: hit.memory.scope for hit in hits}
    found: dict[str, int] = {}
    wholes: dict[str, list[str]] = {}
    for id_, rev, scope, member in recalled.base.assemblies_of(list(scope_of)):
        if scope == scope_of[member]:  # a wall: an assembly speaks for its own scope alone
            found[id_] = rev
            wholes.setdefault(member, []).append(id_)
    active = _active(composing, recalled, found, policy.activation)
    if not active:
        return hits
    whole = 1 + recalled.recipe.meaning  # what words and meaning add up to when both fit wholly
    raised = []
    for hit in hits:
        best = max(((active[w], w) for w in wholes.get(hit.memory.id, ()) if w in active), default=None)
        lift = 0.0 if best is None else assembling.boost(best[0], relevance(hit) / whole, policy)
        raised.append(replace(lifted(hit, "assembly", lift), assembly=best[1]) if best and lift else hit)
    return raised


def _active(
    composing: Composing, recalled: Recalled, found: dict[str, int], threshold: float
) -> dict[str, float]:
    """The assemblies that fit the question and may be gone by, each with its cosine."""
    if not found:
        return {}
    held, asked = composing.held(), unit(recalled.vector)
    near = {id_: held.cosine(id_, asked) for id_ in found if id_ in held.places}
    near = {id_: cosine for id_, cosine in near.items() if cosine >= threshold}
    if not near:
        return {}
    own = set(recalled.view.own) if isinstance(recalled.view, Pending) else set()
    is_still = held.manifest.watermark.version == recalled.base.version and not own
    members = {} if is_still else recalled.base.many(near)
    stale = composing.drift(
        recalled.base.version,
        {id_: (found[id_], members_of(members[id_][1]) if id_ in members else ()) for id_ in near},
        own,
    )
    if stale:
        reasons = ", ".join(sorted(set(stale.values())))
        recalled.notes.append(f"{len(stale)} assemblies that fit lift nothing: drifted ({reasons})")
    return {id_: cosine for id_, cosine in near.items() if id_ not in stale}


def unit(vector: object) -> Array:
    """A vector made as long as one."""
    array = np.asarray(vector, dtype=np.float32)
    return array / (float(np.linalg.norm(array)) or 1.0)
