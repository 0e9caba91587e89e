"""Hits in the order of what holds now, a newer fact before the one it replaces; and what the user wishes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from msgspec.structs import replace

from octavo.domain.corrections import Fact, Replacement, arrange
from octavo.domain.hits import Hit
from octavo.domain.orders import Order, is_request

COMPARED = ("fact", "register")
_WISH = 0.2
_STEP = 1e-9


def arranged(query: str, hits: Sequence[Hit]) -> list[Hit]:
    """The same hits, with facts in the places of facts, the current one first; others stay where they are."""
    first: dict[str, int] = {}
    for place, hit in enumerate(hits):
        if hit.memory.kind in COMPARED and hit.memory.text:
            first.setdefault(hit.memory.id, place)
    if len(first) < 2:
        return list(hits)
    known = {id_: hits[place] for id_, place in first.items()}
    facts = [
        Fact(
            id=hit.memory.id,
            text=hit.memory.text,
            at=hit.memory.at,
            version=hit.version,
            relevance=relevance(hit),
        )
        for hit in known.values()
    ]
    order, replacements = arrange(query, facts)
    replaced = {replacement.older: replacement for replacement in replacements}
    result = list(hits)
    score = math.inf
    for place, id_ in zip(first.values(), order, strict=True):
        score = min(hits[place].score, score - _STEP)  # equals would be put in another order
        result[place] = _placed(known[id_], score, replaced.get(id_))
    return result


def wished(query: str, hits: Sequence[Hit], orders: Sequence[Order]) -> list[Hit]:
    """The same hits, those that hold a wish of the user's a little higher when something is asked for."""
    wishes = {(order.memory, order.turn) for order in orders if order.is_wish}
    if not wishes or not is_request(query):
        return list(hits)
    return [
        replace(hit, score=hit.score + _WISH, parts={**hit.parts, "wish": _WISH})
        if (hit.memory.id, hit.turn) in wishes
        else hit
        for hit in hits
    ]


def relevance(hit: Hit) -> float:
    """What a hit owes to the question: its words and its meaning."""
    return hit.parts.get("words", 0.0) + hit.parts.get("meaning", 0.0)


def _placed(hit: Hit, score: float, replacement: Replacement | None) -> Hit:
    """The hit with the score of its place, and with what took its own place."""
    moved = score - hit.score
    if moved:
        hit = replace(hit, score=score, parts={**hit.parts, "current": moved})
    if replacement is None:
        return hit
    told = "" if replacement.is_certain else "perhaps "
    note = f"{told}replaced by {replacement.newer} on {replacement.at.date().isoformat()}"
    return replace(hit, replaced=replacement, notes=(*hit.notes, note))
