"""The rows around the candidates of one recall, as arrays, and the recipe's formulas over them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from octavo.domain.dates import Interval
from octavo.domain.hits import OWN
from octavo.domain.memory import LAYERS
from octavo.domain.ranking import (
    Ages,
    Recipe,
    frequency,
    importance,
    passage_prior,
    reach,
    retention,
    saturated,
)
from octavo.libraries import Array, np, product
from octavo.storage.frequencies import Occurrences, occurrences_in
from octavo.storage.rows import NO_POSITION, Units, distinct, picked, ranges, tallied
from octavo.storage.sources import Source, Sources, cosines_of

_WINDOW = 5  # how many rows to either side of a candidate are its context: neighbours of its neighbours
_DAY_SECONDS = 86_400
_TERM_FIT = 0.1  # what a term of the question in a passage is worth beside its cosine
_EPOCH = 719_163  # the ordinal of 1970-01-01


class Surroundings(NamedTuple):
    """Rows in the order of their conversations; `starts` are the rows where units begin.

    Units stand at `places`: one beside the other within a conversation, and so far from the next one that
    no neighbour counted is of another. `span` is the end of all places.
    """

    rows: Array
    records: Array
    starts: Array
    firsts: Array  # the first record of every unit
    segments: Array  # per unit: which conversation it belongs to
    places: Array
    span: int
    found: Occurrences

    def rows_of(self, units: Array) -> tuple[Array, Array]:
        """The rows of some units in order, and where each unit's begin among them."""
        if len(self.starts) == len(self.rows):
            return units, units
        counts = self.firsts["passages"][units].astype(np.int64)
        first = self.starts[units]
        return ranges(first, first + counts), np.cumsum(counts) - counts

    def best(self, values: Array, starts: Array) -> Array:
        """The greatest among the values of each unit's rows, which begin at `starts`."""
        if len(self.starts) == len(self.rows) or len(starts) == 0:
            return values
        found: Array = np.maximum.reduceat(values, starts)
        return found

    def unit_of(self, rows: Array) -> Array:
        """Which unit each of some rows belongs to."""
        if len(self.starts) == len(self.rows):
            return rows
        found: Array = np.searchsorted(self.starts, rows, "right") - 1
        return found

    def fullness(self, units: Array, recipe: Recipe) -> Array:
        """What some units count as neighbours: long ones less, there is something of everything in them."""
        length = np.maximum(self.firsts["unit_length"][units], 1).astype(np.float32)
        return np.asarray(np.minimum(np.float32(1), np.float32(recipe.full_length) / length))

    def holding(self, rows: Array) -> Array:
        """The units that hold any of some rows."""
        order = np.argsort(self.rows, kind="stable")  # they mostly are in order
        place = order[np.minimum(np.searchsorted(self.rows, rows, sorter=order), len(order) - 1)]
        return self.unit_of(place[self.rows[place] == rows])

    def around(self, units: Array, distance: int) -> Array:
        """Some units and those at most so many turns away from them."""
        near = np.zeros(self.span, dtype=bool)
        near[self.places[units][:, None] + np.arange(-distance, distance + 1)] = True
        return np.flatnonzero(near[self.places])


def gather(sources: Sources, candidates: Array, visible: Any, codes: Array, *, gap: int) -> Surroundings:
    """Collect the candidates' conversations as far as they are visible, with the question's terms in them.

    What is held in memory is collected whole, with what came before it; `gap` is how far neighbours count.
    """
    index, *others = sources
    begun = [held.units.column("rows")["session"] for held in others]
    taken = [_taken(index, *_with_context(index.units, candidates, begun), visible, codes)]
    for held in others:
        everything = np.zeros(1, dtype=np.int64), np.array([held.units.manifest.rows])
        taken.append(_taken(held, *everything, visible, codes))
    rows, records, found = taken[0] if len(taken) == 1 else _joined(taken)
    session, position = (np.ascontiguousarray(records[name]) for name in ("session", "position"))
    changes = _changes(session, position)
    if others or ((position[1:] < position[:-1]) & ~changes[1:]).any():
        order = np.lexsort((position, session, position == NO_POSITION))
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        found = Occurrences(row=place[found.row], term=found.term)
        rows, records = rows[order], picked(records, order)
        changes = _changes(session[order], position[order])
    return _surroundings_of(rows, records, changes, found, gap)


_Taken = tuple[Array, Array, Occurrences]  # rows, their records, and the question's terms in them


def _taken(source: Source, low: Array, high: Array, visible: Any, codes: Array) -> _Taken:
    """What some ranges of a source's rows hold, as far as it is visible."""
    rows = ranges(low, high)
    records = source.units.take(rows)
    found = _occurrences(source.units, records, np.cumsum(high - low), codes)
    seen = visible(source, rows)
    if not seen.all():
        found = found.among(seen)
        rows, records = rows[seen], picked(records, np.flatnonzero(seen))
    return source.first + rows, records, found


def _joined(taken: Sequence[_Taken]) -> _Taken:
    """What several sources hold, one behind the other."""
    rows, records, found = zip(*taken, strict=True)
    before = np.cumsum([0, *(len(some) for some in rows)]).tolist()
    places = [some.row + count for some, count in zip(found, before, strict=False)]
    terms = np.concatenate([some.term for some in found])
    occurrences = Occurrences(row=np.concatenate(places), term=terms)
    return np.concatenate(rows), np.concatenate(records), occurrences


def _surroundings_of(
    rows: Array, records: Array, changes: Array, found: Occurrences, gap: int
) -> Surroundings:
    starts = np.flatnonzero(records["passage"] == 0)
    firsts = records if len(starts) == len(rows) else picked(records, starts)
    segments = np.cumsum(changes[starts]) - 1
    places = np.arange(len(starts)) + gap * (segments + 1)
    return Surroundings(
        rows=rows,
        records=records,
        starts=starts,
        firsts=firsts,
        segments=segments,
        places=places,
        span=int(places[-1]) + gap + 1 if len(places) else 0,
        found=found,
    )


def words_part(nearby: Surroundings, units: Array, weights: Array, average: float, recipe: Recipe) -> Array:
    """How much of the question's terms some units cover, their neighbours' terms counted in part."""
    terms = len(weights)
    if terms == 0 or len(units) == 0:
        return np.zeros(len(units), dtype=np.float32)
    held = _held(nearby, terms, average, recipe)
    total = _from_around(nearby, units, held, terms, recipe)
    rows, starts = nearby.rows_of(units)
    ordinal = np.full(len(nearby.rows), -1)
    ordinal[rows] = np.arange(len(rows))
    if rows is not units:
        total = np.repeat(total, np.diff(starts, append=len(rows)), axis=0)
        total += _from_beside(nearby, held, ordinal, total.shape, recipe)
    row, term, own, _ = held
    kept = ordinal[row] >= 0
    total[ordinal[row[kept]], term[kept]] += own[kept]
    shares = (weights / weights.sum()).astype(np.float32)
    return nearby.best(product(saturated(total, recipe), shares), starts)


# Each term that a row holds: the row, the term, its frequency there, and the row's unit.
_Held = tuple[Array, Array, Array, Array]


def _held(nearby: Surroundings, terms: int, average: float, recipe: Recipe) -> _Held:
    ordinals, counts = tallied(nearby.found.row * terms + nearby.found.term)
    row, term = np.divmod(ordinals, terms)
    own = frequency(counts, nearby.records["length"][row].astype(np.float32), average, recipe)
    return row, term, own, nearby.unit_of(row)


def _from_around(nearby: Surroundings, units: Array, held: _Held, terms: int, recipe: Recipe) -> Array:
    """What the neighbours and the session of some units add to the frequency of each term."""
    _, term, own, unit = held
    full = nearby.fullness(unit, recipe)
    session = np.zeros((int(nearby.segments[-1]) + 1) * terms, dtype=np.float32)
    np.maximum.at(session, nearby.segments[unit] * terms + term, full)
    found = np.zeros((len(units) + 1, terms), dtype=np.float32)  # the last is for units that are not asked
    found[:-1] = np.float32(recipe.session) * np.take(
        session.reshape(-1, terms), nearby.segments[units], axis=0
    )
    ordinal = np.full(nearby.span, len(units) * terms)
    ordinal[nearby.places[units]] = np.arange(len(units)) * terms
    unit, term, value = _best_of_each(unit, term, full * own, terms)
    place, flat = nearby.places[unit], found.reshape(-1)
    for distance, share in enumerate(recipe.neighbours, 1):
        gain = np.float32(share) * value
        flat[ordinal[place - distance] + term] += gain
        flat[ordinal[place + distance] + term] += gain
    return found[:-1]


def _from_beside(
    nearby: Surroundings, held: _Held, ordinal: Array, shape: tuple[int, ...], recipe: Recipe
) -> Array:
    """What the passages beside a passage of the same text add."""
    holding, term, _, unit = held
    found = np.zeros(shape, dtype=np.float32)
    for step in (-1, 1):
        row = np.clip(holding + step, 0, len(nearby.rows) - 1)
        kept = (nearby.unit_of(row) == unit) & (row != holding) & (ordinal[row] >= 0)
        found[ordinal[row[kept]], term[kept]] = recipe.passages
    return found


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
    for distance, share in enumerate(recipe.meaning_neighbours, 1):
        found += np.float32(share) * (faded[at - distance] + faded[at + distance])
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
    last: Array = order[np.append(starts[1:], len(places)) - 1]
    return np.asarray(places[last])


def time_part(nearby: Surroundings, units: Array, intervals: Sequence[Interval], recipe: Recipe) -> Array:
    """How near some units lie to one of the times asked about."""
    days = nearby.firsts["at"][units] // _DAY_SECONDS
    best = np.zeros(len(units), dtype=np.float32)
    for interval in intervals:
        first, last = (day.toordinal() - _EPOCH for day in (interval.first, interval.last))
        gap = np.maximum(0, np.maximum(first - days, days - last))
        best = np.maximum(best, np.exp(-gap / reach(interval.days, recipe)))
    return best


def priors(nearby: Surroundings, units: Array, recipe: Recipe) -> tuple[Array, Array]:
    """What the number of passages costs, and what being said by a person adds."""
    return (
        passage_prior(nearby.firsts["passages"][units].astype(np.float32), np.log, recipe),
        recipe.person * (nearby.firsts["marks"][units] & 1).astype(np.float32),
    )


def own_parts(nearby: Surroundings, units: Array, ages: Ages, recipe: Recipe) -> dict[str, Array]:
    """What the salience, the age and the layer of some units add, whatever the question is."""
    firsts = picked(nearby.firsts, units)
    now, factors = ages
    days = (now - firsts["at"]) / _DAY_SECONDS
    layers = np.array([recipe.layers[layer] for layer in LAYERS])
    own = importance(
        salience=firsts["salience"].astype(float),
        retained=retention(np.array(factors)[firsts["kind"]], days, np.maximum),
        layer=layers[firsts["layer"]],
        recipe=recipe,
    )
    return {name: own[name] for name in OWN}


def _occurrences(units: Units, records: Array, ends: Array, codes: Array) -> Occurrences:
    """Where a question's terms stand in some records, which are consecutive rows up to each of the ends."""
    if len(records) == 0:
        return occurrences_in(records["terms"], records["length"], codes)
    # The terms of consecutive rows are consecutive too.
    first, last = records["terms"], picked(records, ends - 1)
    low = first[np.concatenate(([0], ends[:-1]))].tolist()
    high = (last["terms"] + last["length"]).tolist()
    terms = units.column("terms").data  # bytes are joined in half the time that arrays are
    joined = b"".join([terms[a:b] for a, b in zip(low, high, strict=True)])
    return occurrences_in(np.frombuffer(joined, dtype="<u4"), records["length"], codes)


def _with_context(units: Units, candidates: Array, begun: Sequence[Array]) -> tuple[Array, Array]:
    """The ranges of rows that hold the candidates' whole units and the turns around them.

    They stand as conversations go: turns in the order of their ordinals, then what is no turn. Of sessions
    that were `begun` here and go on elsewhere the last turns are held, too.
    """
    records, turns = units.column("rows"), units.turns
    is_turn = records["position"][candidates] != NO_POSITION
    said, alone = candidates[is_turn], candidates[~is_turn]
    stretch = turns.stretch_of(said)
    ordinal = said - turns.shift[stretch]
    for sessions in begun:
        going_on = turns.of(distinct(sessions))
        stretch = np.concatenate([stretch, going_on])
        ordinal = np.concatenate([ordinal, turns.end[going_on] - 1])
    # Rows that stand elsewhere (restored, or continued) or have ended would make the window a smaller one.
    reach = np.where(turns.whole[stretch], len(records), _WINDOW)
    low = np.maximum(ordinal - reach, turns.first[stretch])
    high = np.minimum(ordinal + reach + 1, turns.end[stretch])
    low, high = _rows_of(units, *_merged(low, high))
    start = distinct(alone - records["passage"][alone])
    return np.concatenate([low, start]), np.concatenate([high, start + records["passages"][start]])


def _rows_of(units: Units, low: Array, high: Array) -> tuple[Array, Array]:
    """The ranges of rows that some ranges of ordinals stand for, with whole units at both ends."""
    turns, records = units.turns, units.column("rows")
    one, two = turns.stretch_at(low), turns.stretch_at(high - 1)
    before, behind = low + turns.shift[one], high - 1 + turns.shift[two]
    low = low - records["passage"][before]
    high = high - 1 + records["passages"][behind] - records["passage"][behind]
    low[1:] = np.maximum(low[1:], high[:-1])
    if (one < two).any():  # other rows stand between two runs
        owner, one = np.repeat(np.arange(len(low)), two + 1 - one), ranges(one, two + 1)
        low, high = np.maximum(low[owner], turns.ordinal[one]), np.minimum(high[owner], turns.behind[one])
    kept, shift = low < high, turns.shift[one]
    return (low + shift)[kept], (high + shift)[kept]


def _merged(low: Array, high: Array) -> tuple[Array, Array]:
    """What lies in any of some ranges, as ranges that are apart, in order."""
    order = np.argsort(low, kind="stable")
    low, high = low[order], np.maximum.accumulate(high[order])
    fresh = np.ones(len(low) + 1, dtype=bool)
    fresh[1:-1] = low[1:] > high[:-1]
    return low[fresh[:-1]], high[fresh[1:]]


def _changes(session: Array, position: Array) -> Array:
    """Where another conversation begins; what is no turn is a conversation of its own."""
    alone = position == NO_POSITION
    fresh = np.ones(len(session), dtype=bool)
    fresh[1:] = (session[1:] != session[:-1]) | alone[1:] | alone[:-1]
    return fresh


def _best_of_each(unit: Array, term: Array, values: Array, terms: int) -> tuple[Array, Array, Array]:
    """Units and terms, each pair once, and the greatest value of each pair."""
    keys = unit * terms + term
    if (keys[1:] > keys[:-1]).all():
        return unit, term, values
    order = np.argsort(keys, kind="stable")
    firsts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    first = order[firsts]
    return unit[first], term[first], np.maximum.reduceat(values[order], firsts)
