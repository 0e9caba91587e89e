"""The parts of a score, each the recipe's formula over the surroundings of what was found."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from octavo.domain.dates import Interval
from octavo.domain.memory import LAYERS
from octavo.domain.ranking import (
    Ages,
    Recipe,
    frequency,
    importance,
    reach,
    retention,
    saturated,
    substance,
)
from octavo.libraries import Array, np, product
from octavo.storage.rows import NO_POSITION, distinct, picked, ranges, tallied
from octavo.storage.surroundings import Sources, Surroundings, cosines_of, counts_of
from octavo.storage.tokens import Encoded, Tokens

_DAY_SECONDS = 86_400
_TERM_FIT = 0.1  # what a term of the question in a passage is worth beside its cosine
_EPOCH = 719_163  # the ordinal of 1970-01-01
_OPENING = 20  # turns; who has news tells it early
_ONLY_ASKS, _SAME = 16 | 128, 0.5  # of `marks`; how near a question is that asks the same in other words
_MOST = 100  # of the best whose substance is compared


def words_part(nearby: Surroundings, units: Array, shares: Array, average: float, recipe: Recipe) -> Array:
    """How much of the question's terms some units cover, their neighbours' terms counted in part."""
    terms = len(shares)
    if terms == 0 or len(units) == 0:
        return np.zeros(len(units), dtype=np.float32)
    # Each term that a row holds: the row, the term, and its frequency there.
    ordinals, counts = tallied(nearby.found.row * terms + nearby.found.term)
    row, term = np.divmod(ordinals, terms)
    own = frequency(counts, nearby.records["length"][row].astype(np.float32), average, recipe)
    unit = nearby.unit_of(row)
    total = _from_around(nearby, units, unit, term, own, terms, recipe)
    rows, starts = nearby.rows_of(units)
    ordinal = np.full(len(nearby.rows), -1)
    ordinal[rows] = np.arange(len(rows))
    if rows is not units:
        total = np.repeat(total, np.diff(starts, append=len(rows)), axis=0)
        beside = np.zeros_like(total)  # what the passages beside a passage of the same text add
        for step in (-1, 1):
            near = np.clip(row + step, 0, len(nearby.rows) - 1)
            kept = (nearby.unit_of(near) == unit) & (near != row) & (ordinal[near] >= 0)
            beside[ordinal[near[kept]], term[kept]] = recipe.passages
        total += beside
    kept = ordinal[row] >= 0
    total[ordinal[row[kept]], term[kept]] += own[kept]
    return nearby.best(product(saturated(total, recipe), shares), starts)


def _from_around(
    nearby: Surroundings, units: Array, unit: Array, term: Array, own: Array, terms: int, recipe: Recipe
) -> Array:
    """What the neighbours and the session of some units add to the frequency of each term."""
    full = nearby.fullness(unit, recipe)
    session = np.zeros((int(nearby.segments[-1]) + 1, terms), dtype=np.float32)
    np.maximum.at(session.reshape(-1), nearby.segments[unit] * terms + term, full)
    found = np.zeros((len(units) + 1, terms), dtype=np.float32)  # the last is for units that are not asked
    found[:-1] = np.float32(recipe.session) * np.take(session, nearby.segments[units], axis=0)
    ordinal = np.full(nearby.span, len(units) * terms)
    ordinal[nearby.places[units]] = np.arange(len(units)) * terms
    value, keys = full * own, unit * terms + term
    if not (keys[1:] > keys[:-1]).all():  # of several passages of a unit the one that holds a term best
        order = np.argsort(keys, kind="stable")
        firsts = np.flatnonzero(np.diff(keys[order], prepend=-1))
        unit, term = unit[order[firsts]], term[order[firsts]]
        value = np.maximum.reduceat(value[order], firsts)
    place, flat = nearby.places[unit], found.reshape(-1)
    for distance, share in enumerate(recipe.neighbours, 1):
        gain = np.float32(share) * value
        flat[ordinal[place - distance] + term] += gain
        flat[ordinal[place + distance] + term] += gain
    return np.asarray(found[:-1] * nearby.says(units)[:, None])


def meaning_part(
    nearby: Surroundings, units: Array, sources: Sources, query: Array, shift: float, recipe: Recipe
) -> Array:
    """How near the texts of some units are to the question's, neighbours counted in part.

    `shift` is how near a text is on the average; one without a vector counts as such.
    """
    wanted = nearby.around(units, len(recipe.meaning_neighbours))
    places, starts = nearby.rows_of(wanted)
    cosines = cosines_of(sources, query, nearby.rows[places], shift)
    near, faded = np.zeros(nearby.span, dtype=np.float32), np.zeros(nearby.span, dtype=np.float32)
    values = nearby.best(cosines, starts) - np.float32(shift)
    near[nearby.places[wanted]] = values
    faded[nearby.places[wanted]] = values * nearby.fullness(wanted, recipe)
    at = nearby.places[units]
    found: Array = near[at]
    says = nearby.says(units)
    for distance, share in enumerate(recipe.meaning_neighbours, 1):
        found += np.float32(share) * says * (faded[at - distance] + faded[at + distance])
    return found


def matched(nearby: Surroundings, units: Array, sources: Sources, query: Any) -> Array:
    """Where the passage of each unit stands that fits best: by meaning, and by how many terms it holds."""
    places, starts = nearby.rows_of(units)
    if places is units or len(units) == 0:
        return nearby.starts[units]
    fits = np.bincount(nearby.found.row, minlength=len(nearby.rows))[places].astype(np.float32)
    if query is not None:
        fits *= np.float32(_TERM_FIT)
        fits += cosines_of(sources, query, nearby.rows[places], 0.0)
    owner = np.repeat(np.arange(len(units)), np.diff(starts, append=len(places)))
    order = np.lexsort((-np.arange(len(places)), fits, owner))  # of equals the first
    return np.asarray(places[order[np.append(starts[1:], len(places)) - 1]])


def time_part(nearby: Surroundings, units: Array, intervals: Sequence[Interval], recipe: Recipe) -> Array:
    """How near some units lie to one of the times asked about."""
    days = nearby.firsts["at"][units] // _DAY_SECONDS
    best = np.zeros(len(units), dtype=np.float32)
    for interval in intervals:
        first, last = (day.toordinal() - _EPOCH for day in (interval.first, interval.last))
        gap = np.maximum(0, np.maximum(first - days, days - last))
        best = np.maximum(best, np.exp(-gap / reach(interval.days, recipe)))
    return best


def own_parts(nearby: Surroundings, units: Array, ages: Ages, recipe: Recipe) -> dict[str, Array]:
    """What the salience, the age and the layer of some units add, whatever the question is."""
    firsts, (now, factors) = picked(nearby.firsts, units), ages
    days = (now - firsts["at"]) / _DAY_SECONDS
    return importance(
        salience=firsts["salience"].astype(float),
        retained=retention(np.array(factors)[firsts["kind"]], days, np.maximum),
        layer=np.array([recipe.layers[layer] for layer in LAYERS])[firsts["layer"]],
        recipe=recipe,
    )


def substance_part(
    nearby: Surroundings,
    units: Array,
    parts: dict[str, Array],
    score: Array,
    sources: Sources,
    recipe: Recipe,
    *,
    is_list: bool,
) -> Array:
    """What the best turns tell; the others are given the least of that, so that none overtakes them.

    Names, numbers and rare words count against others of the same speaker. What is no turn has none: facts
    are short, and a document has something of everything.
    """
    is_turn = nearby.firsts["position"][units] != NO_POSITION
    gain = np.zeros(len(units), dtype=np.float32)
    best = np.argsort(-score, kind="stable")[:_MOST]
    best = best[is_turn[best]]
    if len(best) < 2:
        return gain
    turns = units[best]
    marks, position = (nearby.firsts[name][turns] for name in ("marks", "position"))
    speaker = np.unique(nearby.firsts["speaker"][turns], return_inverse=True)[1]

    def beside(values: Array) -> Array:
        return np.asarray(values - (np.bincount(speaker, weights=values) / np.bincount(speaker))[speaker])

    told = substance(
        only_asks=(marks & 16) / 16,
        names=beside((marks & 6) / 6),
        number=beside((marks & 8) / 8),
        dated=beside((marks & 32) / 32),
        past=beside((marks & 64) / 64),
        asks=beside((marks & 128) / 128),
        late=np.minimum(position / _OPENING, 1),
        rarity=beside(_rarity(nearby, turns, sources)),
        fullness=nearby.fullness(turns, recipe),
        meaning=parts["meaning"][best] / np.float32(recipe.meaning) if "meaning" in parts else 0.0,
        words=parts["words"][best],
        is_list=is_list,
    )
    gain[is_turn] = told.min()
    gain[best] = told
    return gain


def asked_part(
    nearby: Surroundings,
    units: Array,
    parts: dict[str, Array],
    roles: Sequence[int],
    terms: int,
    recipe: Recipe,
) -> Array:
    """What turns lose that ask again what is asked, or do not know it, and what a machine answered these.

    The one is no answer, the other an echo of what is told elsewhere, as it was then. `roles` are those who
    talk as user or machine: who has a name asks among people. A turn whose terms are not mostly the
    question's, the first `terms`, nor its meaning near, asks something else.
    """
    firsts = picked(nearby.firsts, units)
    is_role, marks = np.isin(firsts["speaker"], roles), firsts["marks"]
    asks = (marks & _ONLY_ASKS == _ONLY_ASKS) & is_role
    if not asks.any():
        return np.zeros(len(units), dtype=np.float32)
    is_own = nearby.found.term < terms
    shared = np.bincount(nearby.unit_of(nearby.found.row[is_own]), minlength=len(nearby.starts))[units]
    near = parts.get("meaning", np.zeros(len(units), dtype=np.float32))
    asks &= (2 * shared >= firsts["unit_length"]) | (near >= _SAME * recipe.meaning)
    places, answered = nearby.places[units], np.zeros(nearby.span, dtype=bool)
    answered[places[asks] + 1] = True
    echoes = answered[places] & is_role & (marks & 1 == 0)
    share = np.where(asks, recipe.asked, np.where(echoes, recipe.echo, 0.0)).astype(np.float32)
    return np.asarray(-share * np.maximum(parts["words"] + near, 0))


def _rarity(nearby: Surroundings, turns: Array, sources: Sources) -> Array:
    """How rare the terms of some turns are on average, between 0 and 1."""
    places, _ = nearby.rows_of(turns)
    unit = np.repeat(np.arange(len(turns), dtype=np.uint64), nearby.firsts["passages"][turns])
    pairs = []  # a turn and a term of it
    for source in sources:
        own = source.holds(nearby.rows[places])
        records = nearby.records[places[own]]
        low, lengths = records["terms"].astype(np.int64), records["length"].astype(np.int64)
        terms = source.units.column("terms")[ranges(low, low + lengths)]
        pairs.append((np.repeat(unit[own], lengths) << np.uint64(32)) | terms)
    each = distinct(np.concatenate(pairs))
    owner, codes = each >> np.uint64(32), each & np.uint64(0xFFFFFFFF)
    known, which = np.unique(codes.astype(np.uint32), return_inverse=True)
    total = max(2, sum(source.rows for source in sources))
    idf = np.log(total / np.maximum(counts_of(sources, known), 1))[which] / math.log(total)
    owner = owner.astype(np.int64)
    sums, number = (np.bincount(owner, weights=w, minlength=len(turns)) for w in (idf, None))
    return np.asarray(sums / (1 + number))


def second_look(nearby: Surroundings, places: Array, tokens: Tokens, asked: Encoded, recipe: Recipe) -> Array:
    """What a second look adds to the passages at some places, zero on average.

    Every token of the question counts as its nearest in the passage or, for less, in those beside it. What
    has no tokens, because it is new or in another script, is neither lifted nor lowered.
    """
    conversation = nearby.segments[nearby.unit_of(places)]
    around = [places]
    for step in (-1, 1):
        near = np.clip(places + step, 0, len(nearby.rows) - 1)
        around.append(np.where(nearby.segments[nearby.unit_of(near)] == conversation, near, places))
    some, which = np.unique(np.concatenate(around), return_inverse=True)
    near, is_there, weights = tokens.best(asked, nearby.rows[some])
    own, before, behind = which.reshape(3, -1)
    best = np.maximum(near[own], np.float32(recipe.rerank_neighbour) * np.maximum(near[before], near[behind]))
    fits, judged = product(best, weights), is_there[own]
    if not judged.any():
        return np.zeros(len(places), dtype=np.float32)
    return np.where(judged, np.float32(recipe.rerank) * (fits - fits[judged].mean()), np.float32(0))
