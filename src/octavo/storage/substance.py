"""How much the turns that may answer tell: names, numbers, rare words, against others of the same speaker."""

from __future__ import annotations

import math

from octavo.domain.query import Question
from octavo.domain.ranking import Recipe, substance
from octavo.libraries import Array, np
from octavo.storage.rows import NO_POSITION, ranges
from octavo.storage.sources import Sources, counts_of
from octavo.storage.surroundings import Surroundings

_MOST = 100  # of the best


def substance_part(
    nearby: Surroundings,
    chosen: Array,
    parts: dict[str, Array],
    score: Array,
    question: Question,
    sources: Sources,
    recipe: Recipe,
) -> Array:
    """What the best turns tell; the others are given the least of that, so that none overtakes them.

    What is no turn has none: facts are short, and a document has something of everything.
    """
    gain = np.zeros(len(chosen), dtype=np.float32)
    best = np.argsort(-score, kind="stable")[:_MOST]
    best = best[nearby.firsts["position"][chosen[best]] != NO_POSITION]
    if len(best) < 2 or question.is_request:
        return gain
    turns = chosen[best]
    firsts = nearby.firsts[turns]
    marks, nothing = firsts["marks"] >> 1, np.zeros(len(best), dtype=np.float32)
    speaker = np.unique(firsts["speaker"], return_inverse=True)[1]
    meaning = parts["meaning"][best] / np.float32(recipe.meaning) if "meaning" in parts else nothing
    told = substance(
        only_asks=(marks & 8) / 8,
        names=_beside(speaker, (marks & 3) / 3),
        number=_beside(speaker, (marks & 4) / 4),
        rarity=_beside(speaker, _rarity(nearby, turns, sources)),
        fullness=nearby.fullness(turns, recipe),
        meaning=meaning,
        words=parts["words"][best],
        is_list=question.is_list,
    )
    is_turn = nearby.firsts["position"][chosen] != NO_POSITION
    gain[is_turn] = told.min()
    gain[best] = told
    return gain


def _beside(speaker: Array, values: Array) -> Array:
    """Values less the mean of their speaker's."""
    counts = np.bincount(speaker)
    return np.asarray(values - (np.bincount(speaker, weights=values) / counts)[speaker])


def _rarity(nearby: Surroundings, turns: Array, sources: Sources) -> Array:
    """How rare the terms of some turns are on average, between 0 and 1."""
    places, _ = nearby.rows_of(turns)
    unit = np.repeat(np.arange(len(turns)), nearby.firsts["passages"][turns])
    owners, terms = [], []
    for source in sources:
        own = source.holds(nearby.rows[places])
        records = nearby.records[places[own]]
        low, lengths = records["terms"].astype(np.int64), records["length"].astype(np.int64)
        terms.append(source.units.column("terms")[ranges(low, low + lengths)])
        owners.append(np.repeat(unit[own], lengths))
    owner, codes = np.concatenate(owners), np.concatenate(terms)
    pairs = np.unique((owner.astype(np.uint64) << np.uint64(32)) | codes)
    owner, codes = (
        (pairs >> np.uint64(32)).astype(np.int64),
        (pairs & np.uint64(0xFFFFFFFF)).astype(np.uint32),
    )
    known, which = np.unique(codes, return_inverse=True)
    total = max(2, sum(source.rows for source in sources))
    idf = np.log(total / np.maximum(counts_of(sources, known), 1))[which] / math.log(total)
    sums, number = (np.bincount(owner, weights=w, minlength=len(turns)) for w in (idf, None))
    return np.asarray(sums / (1 + number))
