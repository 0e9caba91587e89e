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
        # A wall: an assembly speaks for its own scope alone.
        scopes = {hit.memory.id: hit.memory.scope for hit in hits}
        own = [row for row in recalled.base.assemblies_of(scopes) if row[2] == scopes[row[3]]]
        active = _active(composing, recalled, {id_: rev for id_, rev, *_ in own}, policy.activation)
        best: dict[str, tuple[float, str]] = {}
        for id_, _, _, member in own if active else ():
            if id_ in active:
                best[member] = max(best.get(member, (0.0, "")), (active[id_], id_))
        whole = 1 + recalled.recipe.meaning  # what words and meaning add up to when both fit wholly
        raised = list(hits)
        for place, hit in enumerate(hits) if best else ():
            cosine, id_ = best.get(hit.memory.id, (0.0, ""))
            if lift := assembling.boost(cosine, relevance(hit) / whole, policy):
                raised[place] = replace(lifted(hit, "assembly", lift), assembly=id_)
        return raised

    return boost


def _active(
    composing: Composing, recalled: Recalled, asked: dict[str, int], threshold: float
) -> dict[str, float]:
    """The assemblies that fit the question and may be gone by, each with its cosine."""
    held = composing.held()
    ids = [id_ for id_ in asked if id_ in held.places]
    cosines = held.floats[[held.places[id_] for id_ in ids]] @ unit(recalled.vector)
    near = {id_: cosine for id_, cosine in zip(ids, cosines.tolist(), strict=True) if cosine >= threshold}
    own = set(recalled.view.own) if isinstance(recalled.view, Pending) else set()
    is_still = held.manifest.watermark.version == recalled.base.version and not own
    known = {} if is_still or not near else recalled.base.many(near)
    members = {id_: members_of(known[id_][1]) if id_ in known else () for id_ in near}
    asking = {id_: (asked[id_], members[id_]) for id_ in near}
    stale = composing.drift(held, recalled.base.version, asking, own) if near else {}
    if stale:
        reasons = ", ".join(sorted(set(stale.values())))
        recalled.notes.append(f"{len(stale)} assemblies that fit lift nothing: drifted ({reasons})")
    return {id_: cosine for id_, cosine in near.items() if id_ not in stale}


def unit(vector: object) -> Array:
    """A vector made as long as one."""
    array = np.asarray(vector, dtype=np.float32)
    return array / (float(np.linalg.norm(array)) or 1.0)
