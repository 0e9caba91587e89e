"""The rows around the candidates of one recall, as arrays, and the recipe's formulas over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

from octavo.domain.dates import Interval
from octavo.domain.ranking import Recipe, frequency, passage_prior, reach, saturated
from octavo.storage.frequencies import matches
from octavo.storage.libraries import Array, np
from octavo.storage.units import NO_POSITION, Units, distinct, picked, ranges, tallied

if TYPE_CHECKING:
    from octavo.storage.vectors import Vectors

_WINDOW = 8  # how many rows to either side of a candidate are its context
_DAY_SECONDS = 86_400
_EPOCH = 719_163  # the ordinal of 1970-01-01


@dataclass(frozen=True, slots=True, kw_only=True)
class Occurrences:
    """Where the question's terms stand: the row and the term of each occurrence."""

    row: Array
    term: Array

    def rows_with(self, terms: int) -> Array:
        """In how many rows each term occurs."""
        pairs = distinct(self.row * terms + self.term)
        return np.bincount(pairs % terms, minlength=terms) if terms else pairs


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """Units that no index holds yet, in the form of the columns; `vectors` has a row for each, or is None."""

    first: int  # the row number its first row has
    records: Array
    found: Occurrences
    vectors: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Rows in the order of their conversations; `starts` are the rows where units begin.

    Units stand at `places`: one beside the other within a conversation, and so far from the next one that
    no neighbour counted is of another. `span` is the end of all places.
    """

    rows: Array
    records: Array
    starts: Array
    heads: Array  # the first record of every unit
    segments: Array  # per unit: which conversation it belongs to
    places: Array
    span: int
    found: Occurrences

    def rows_of(self, units: Array) -> tuple[Array, Array]:
        """The rows of some units in order, and where each unit's begin among them."""
        if len(self.starts) == len(self.rows):
            return units, units
        counts = self.heads["passages"][units].astype(np.int64)
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
        length = np.maximum(self.heads["unit_length"][units], 1).astype(np.float32)
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


def gather(
    units: Units,
    candidates: Array,
    overlay: Overlay,
    visible: Any,
    codes: Array,
    forced: Array,
    *,
    gap: int,
) -> Frame:
    """Collect the candidates' conversations as far as they are visible, with the question's terms in them.

    `forced` are sessions to collect besides, those of the overlay; `gap` is how far neighbours count.
    """
    rows = _with_context(units, candidates, forced)
    records = units.take(rows)
    found = _occurrences(units, rows, records, codes)
    seen = visible(rows)
    if not seen.all():
        place, kept = np.cumsum(seen) - 1, seen[found.row]
        found = Occurrences(row=place[found.row[kept]], term=found.term[kept])
        rows, records = rows[seen], picked(records, np.flatnonzero(seen))
    if len(overlay.records):
        row = np.concatenate([found.row, overlay.found.row + len(rows)])
        found = Occurrences(row=row, term=np.concatenate([found.term, overlay.found.term]))
        records = np.concatenate([records, overlay.records])
        rows = np.concatenate([rows, overlay.first + np.arange(len(overlay.records))])
    order = _conversation_order(records)
    if order is not None:
        place = np.empty(len(order), dtype=np.int64)
        place[order] = np.arange(len(order))
        found = Occurrences(row=place[found.row], term=found.term)
        rows, records = rows[order], picked(records, order)
    return _framed(rows, records, found, gap)


def _framed(rows: Array, records: Array, found: Occurrences, gap: int) -> Frame:
    starts = np.flatnonzero(records["passage"] == 0)
    heads = records if len(starts) == len(rows) else picked(records, starts)
    segments = np.cumsum(_changes(heads)) - 1
    places = np.arange(len(starts)) + gap * (segments + 1)
    return Frame(
        rows=rows,
        records=records,
        starts=starts,
        heads=heads,
        segments=segments,
        places=places,
        span=int(places[-1]) + gap + 1 if len(places) else 0,
        found=found,
    )


def words_part(frame: Frame, units: Array, weights: Array, average: float, recipe: Recipe) -> Array:
    """How much of the question's terms some units cover, their neighbours' terms counted in part."""
    terms = len(weights)
    if terms == 0 or len(units) == 0:
        return np.zeros(len(units), dtype=np.float32)
    held = _held(frame, terms, average, recipe)
    total = _from_around(frame, units, held, terms, recipe)
    rows, starts = frame.rows_of(units)
    seat = np.full(len(frame.rows), -1)
    seat[rows] = np.arange(len(rows))
    if rows is not units:
        total = np.repeat(total, np.diff(starts, append=len(rows)), axis=0)
        total += _from_beside(frame, held, seat, total.shape, recipe)
    kept = seat[held.row] >= 0
    total[seat[held.row[kept]], held.term[kept]] += held.own[kept]
    return frame.best(saturated(total, recipe) @ (weights / weights.sum()).astype(np.float32), starts)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """Each term that a row holds, with its frequency there, and the row's unit."""

    row: Array
    term: Array
    own: Array
    unit: Array


def _held(frame: Frame, terms: int, average: float, recipe: Recipe) -> _Held:
    seats, counts = tallied(frame.found.row * terms + frame.found.term)
    row, term = np.divmod(seats, terms)
    own = frequency(counts, frame.records["length"][row].astype(np.float32), average, recipe)
    return _Held(row=row, term=term, own=own, unit=frame.unit_of(row))


def _from_around(frame: Frame, units: Array, held: _Held, terms: int, recipe: Recipe) -> Array:
    """What the neighbours and the session of some units add to the frequency of each term."""
    full = frame.fullness(held.unit, recipe)
    session = np.zeros((int(frame.segments[-1]) + 1) * terms, dtype=np.float32)
    np.maximum.at(session, frame.segments[held.unit] * terms + held.term, full)
    found = np.zeros((len(units) + 1, terms), dtype=np.float32)  # the last is for units that are not asked
    found[:-1] = np.float32(recipe.session) * np.take(
        session.reshape(-1, terms), frame.segments[units], axis=0
    )
    seat = np.full(frame.span, len(units) * terms)
    seat[frame.places[units]] = np.arange(len(units)) * terms
    unit, term, value = _best_of_each(held.unit, held.term, full * held.own, terms)
    place, flat = frame.places[unit], found.reshape(-1)
    for distance, share in enumerate(recipe.neighbours, 1):
        gain = np.float32(share) * value
        flat[seat[place - distance] + term] += gain
        flat[seat[place + distance] + term] += gain
    return found[:-1]


def _from_beside(frame: Frame, held: _Held, seat: Array, shape: tuple[int, ...], recipe: Recipe) -> Array:
    """What the passages beside a passage of the same text add."""
    found = np.zeros(shape, dtype=np.float32)
    for step in (-1, 1):
        row = np.clip(held.row + step, 0, len(frame.rows) - 1)
        kept = (frame.unit_of(row) == held.unit) & (row != held.row) & (seat[row] >= 0)
        found[seat[row[kept]], held.term[kept]] = recipe.passages
    return found


def meaning_part(
    frame: Frame, units: Array, vectors: Vectors, query: Array, overlay: Overlay, first: int, recipe: Recipe
) -> Array:
    """How near the texts of some units are to the question's, neighbours counted in part."""
    wanted = frame.around(units, len(recipe.meaning_neighbours))
    places, starts = frame.rows_of(wanted)
    rows = frame.rows[places]
    shift = float(vectors.mean(first) @ query)
    cosines = np.full(len(rows), shift, dtype=np.float32)
    stored = rows < vectors.manifest.rows
    if len(vectors.lacking):
        stored &= ~np.isin(rows, vectors.lacking)
    cosines[stored] = vectors.cosines(query, rows[stored])
    if overlay.vectors is not None:
        fresh = rows >= overlay.first
        cosines[fresh] = overlay.vectors[rows[fresh] - overlay.first] @ query
    near, faded = np.zeros(frame.span, dtype=np.float32), np.zeros(frame.span, dtype=np.float32)
    values = frame.best(cosines, starts) - np.float32(shift)
    near[frame.places[wanted]] = values
    faded[frame.places[wanted]] = values * frame.fullness(wanted, recipe)
    at = frame.places[units]
    found: Array = near[at]
    for distance, share in enumerate(recipe.meaning_neighbours, 1):
        found += np.float32(share) * (faded[at - distance] + faded[at + distance])
    return found


def time_part(frame: Frame, units: Array, intervals: Sequence[Interval], recipe: Recipe) -> Array:
    """How near some units lie to one of the times asked about."""
    days = frame.heads["at"][units] // _DAY_SECONDS
    best = np.zeros(len(units), dtype=np.float32)
    for interval in intervals:
        first, last = (day.toordinal() - _EPOCH for day in (interval.first, interval.last))
        gap = np.maximum(0, np.maximum(first - days, days - last))
        best = np.maximum(best, np.exp(-gap / reach(interval.days, recipe)))
    return best


def priors(frame: Frame, units: Array, recipe: Recipe) -> tuple[Array, Array]:
    """What the number of passages costs, and what being said by a person adds."""
    return (
        passage_prior(frame.heads["passages"][units].astype(np.float32), np.log, recipe),
        recipe.person * frame.heads["person"][units].astype(np.float32),
    )


def occurrences_in(tokens: Sequence[Sequence[int]], codes: Array) -> Occurrences:
    """Where a question's terms stand in some lists of terms."""
    if not tokens or len(codes) == 0:
        return Occurrences(row=np.empty(0, dtype=np.int64), term=np.empty(0, dtype=np.int64))
    ends = np.cumsum([len(some) for some in tokens])
    places, term = matches(np.fromiter(chain.from_iterable(tokens), np.uint32, int(ends[-1])), codes)
    return Occurrences(row=np.searchsorted(ends, places, "right"), term=term)


def _occurrences(units: Units, rows: Array, records: Array, codes: Array) -> Occurrences:
    """Where a question's terms stand in some rows, which are in order."""
    if len(rows) == 0 or len(codes) == 0:
        return occurrences_in((), codes)
    first, lengths = records["terms"].astype(np.int64), records["length"].astype(np.int64)
    # The terms of consecutive rows are consecutive too.
    ends = np.append(np.flatnonzero(rows[1:] - rows[:-1] != 1), len(rows) - 1)
    low = first[np.concatenate(([0], ends[:-1] + 1))].tolist()
    high = (first[ends] + lengths[ends]).tolist()
    terms = units.column("terms")
    places, term = matches(np.concatenate([terms[a:b] for a, b in zip(low, high, strict=True)]), codes)
    return Occurrences(row=np.searchsorted(np.cumsum(lengths), places, "right"), term=term)


def _with_context(units: Units, candidates: Array, forced: Array) -> Array:
    """The rows of the candidates' whole units and of the turns around them, in order."""
    records, turns = units.column("rows"), units.turns()
    passage, passages = records["passage"], records["passages"]
    is_turn = records["position"][candidates] != NO_POSITION
    alone, said = candidates[~is_turn], candidates[is_turn]
    start = alone - passage[alone]
    run = turns.run_of(said)
    # A session whose turns are not in order (restored, or continued) is taken whole.
    whole = distinct(np.concatenate([turns.session[run[turns.tangled[run]]], forced]))
    run, said = run[~turns.tangled[run]], said[~turns.tangled[run]]
    seat = said - turns.shift[run]
    low = np.maximum(seat - _WINDOW, turns.first[run])
    high = np.minimum(seat + _WINDOW, turns.end[run] - 1)
    before, behind = turns.row_of(low), turns.row_of(high)
    seats = _merged(low - passage[before], high + passages[behind].astype(np.int64) - passage[behind])
    parts = (turns.row_of(seats), ranges(start, start + passages[alone]), turns.of(whole))
    return distinct(np.concatenate(parts))


def _merged(low: Array, high: Array) -> Array:
    """What lies in any of some ranges, in order."""
    order = np.argsort(low, kind="stable")
    low, high = low[order], np.maximum.accumulate(high[order])
    low[1:] = np.maximum(low[1:], high[:-1])
    return ranges(low, high)


def _changes(records: Array) -> Array:
    """Where another conversation begins; what is no turn is a conversation of its own."""
    session, alone = np.ascontiguousarray(records["session"]), records["position"] == NO_POSITION
    fresh = np.ones(len(records), dtype=bool)
    fresh[1:] = (session[1:] != session[:-1]) | alone[1:] | alone[:-1]
    return fresh


def _conversation_order(records: Array) -> Array | None:
    """The order in which sessions stand together and turns follow each other; None if they do already."""
    session, position = (np.ascontiguousarray(records[name]) for name in ("session", "position"))
    alone = np.flatnonzero(position == NO_POSITION)
    turns = np.flatnonzero(position != NO_POSITION) if len(alone) else np.arange(len(records))
    if len(alone):
        session, position = session[turns], position[turns]
    fresh = np.ones(len(turns), dtype=bool)
    fresh[1:] = session[1:] != session[:-1]
    block, named = np.cumsum(fresh), session[fresh]
    sessions = distinct(named)
    if len(sessions) < len(named):  # a session stands in several places
        block = np.searchsorted(sessions, session)
    key = (block << 32) + position
    is_ordered = bool((key[1:] >= key[:-1]).all())
    if is_ordered and len(alone) == 0:
        return None
    return np.concatenate([turns if is_ordered else turns[np.argsort(key, kind="stable")], alone])


def _best_of_each(unit: Array, term: Array, values: Array, terms: int) -> tuple[Array, Array, Array]:
    """Units and terms, each pair once, and the greatest value of each pair."""
    keys = unit * terms + term
    if (keys[1:] > keys[:-1]).all():
        return unit, term, values
    order = np.argsort(keys, kind="stable")
    firsts = np.flatnonzero(np.diff(keys[order], prepend=-1))
    first = order[firsts]
    return unit[first], term[first], np.maximum.reduceat(values[order], firsts)
