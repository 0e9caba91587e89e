"""Reranking: an optional second look at the best hits, each in the company of its neighbouring turns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from octavo.domain.filters import Filter
from octavo.domain.recall import Hit, ordered
from octavo.domain.state import View
from octavo.models.rerank import TOP, Reranker

Place = tuple[str, int]  # a memory's id and a turn of it


def rerank(view: View, hits: Sequence[Hit], reranker: Reranker, question: str) -> list[Hit]:
    """The hits with what the reranker adds to the best of them."""
    best, rest = list(hits[:TOP]), list(hits[TOP:])
    if len(best) < 2:
        return best + rest
    texts = [hit.text for hit in best]
    around: list[list[int]] = []
    known: dict[str, dict[Place, list[str]]] = {}
    for hit in best:
        near = _neighbours(view, hit, known)
        around.append(list(range(len(texts), len(texts) + len(near))))
        texts += near
    gains = reranker.adjust(question, texts, around)
    return ordered([_gained(hit, gain) for hit, gain in zip(best, gains, strict=True)]) + rest


def _neighbours(view: View, hit: Hit, known: dict[str, dict[Place, list[str]]]) -> list[str]:
    """What was said just before and just after a hit in its session."""
    session = hit.memory.session
    if hit.turn is None or session is None:
        return []
    if session not in known:
        known[session] = _conversation(view, session)
    return known[session].get((hit.memory.id, hit.turn), [])


def _conversation(view: View, session: str) -> dict[Place, list[str]]:
    said = [
        ((memory.id, number), turn.text)
        for memory in view.memories(Filter(kinds=("episode",), session=session))
        for number, turn in enumerate(memory.turns)
    ]
    texts = [text for _, text in said]
    return {place: texts[max(n - 1, 0) : n] + texts[n + 1 : n + 2] for n, (place, _) in enumerate(said)}


def _gained(hit: Hit, gain: float) -> Hit:
    return replace(hit, score=hit.score + gain, parts={**hit.parts, "rerank": gain})
