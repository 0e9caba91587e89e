"""Where a search finds its rows, and the conversations around its candidates, as arrays.

Rows lie in the index, and behind it in columns of the same shape that are held in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from octavo.domain.ranking import Recipe
from octavo.libraries import Array, np
from octavo.storage.frequencies import Occurrences, containing, occurrences_in
from octavo.storage.rows import NO_POSITION, Units, distinct, joined, picked, ranges
from octavo.storage.vectors import Vectors

_TELLING, _EMPTY = 0b1111, 0b10000  # of `marks`: a person, names, a number; and what only asks or thanks
_BARE = 3  # so many terms are a courtesy
_WINDOW = 5  # how many rows to either side of a candidate are its context: neighbours of its neighbours


class Source(NamedTuple):
    """Rows that are searched: those of the index, or behind them those that are held in memory."""

    first: int  # the number of its first row
    units: Units
    vectors: Vectors | None
    scopes: Array  # the codes of those that may be seen
    rows: int  # how many there are at the version asked for
    found: Occurrences  # where the question's terms stand, of what is held in memory

    def holds(self, rows: Array) -> Array:
        """Which rows are among its own."""
        return np.asarray((rows >= self.first) & (rows < self.first + self.units.manifest.rows))


Sources = Sequence[Source]


def counts_of(sources: Sources, codes: Array) -> Array:
    """In how many passages of all sources each term occurs."""
    return np.asarray(sum(containing(s.units, codes, s.scopes, s.rows) for s in sources))


def cosines_of(sources: Sources, query: Array, rows: Array, otherwise: float) -> Array:
    """How near some rows are to the question, or a number for those that have no vector."""
    found = np.full(len(rows), otherwise, dtype=np.float32)
    for source in sources:
        if (vectors := source.vectors) is not None:
            stored = (rows >= source.first) & (rows < source.first + vectors.manifest.rows)
            if len(vectors.lacking):
                stored &= ~np.isin(rows - source.first, vectors.lacking)
            found[stored] = vectors.cosines(query, rows[stored] - source.first)
    return found


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

    def says(self, units: Array) -> Array:
        """Which units say something: of what a machine answers in a word or two, without a name or a number,
        nothing is asked, whatever stands beside it."""
        firsts = picked(self.firsts, units)
        is_bare = (firsts["unit_length"] <= _BARE) | (firsts["marks"] & _EMPTY != 0)
        return np.asarray(~is_bare | (firsts["marks"] & _TELLING != 0) | (firsts["position"] == NO_POSITION))

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
    sources: Sources,
    candidates: Array,
    visible: Callable[[Source, Array], Array],
    codes: Array,
    *,
    gap: int,
) -> Surroundings:
    """Collect the candidates' conversations as far as they are visible, with the question's terms in them.

    What is held in memory is collected whole, with what came before it; `gap` is how far neighbours count.
    """
    index, *others = sources
    begun = [held.units.column("rows")["session"] for held in others]
    low, high = _with_context(index.units, candidates, begun)
    taken = [_seen(index, *_read(index.units, low, high, codes), visible)]
    for held in others:
        records = held.units.column("rows")
        taken.append(_seen(held, np.arange(len(records)), records, held.found, visible))
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
    starts = np.flatnonzero(records["passage"] == 0)
    segments = np.cumsum(changes[starts]) - 1
    places = np.arange(len(starts)) + gap * (segments + 1)
    return Surroundings(
        rows=rows,
        records=records,
        starts=starts,
        firsts=records if len(starts) == len(rows) else picked(records, starts),
        segments=segments,
        places=places,
        span=int(places[-1]) + gap + 1 if len(places) else 0,
        found=found,
    )


_Taken = tuple[Array, Array, Occurrences]  # rows, their records, and the question's terms in them


def _read(units: Units, low: Array, high: Array, codes: Array) -> _Taken:
    """What some ranges of rows hold."""
    rows = ranges(low, high)
    records = units.take(rows)
    terms = np.empty(0, dtype="<u4")
    if len(records):  # the terms of consecutive rows are consecutive too
        ends = np.cumsum(high - low)
        last = picked(records, ends - 1)
        begin = records["terms"][np.concatenate(([0], ends[:-1]))].tolist()
        end = (last["terms"] + last["length"]).tolist()
        data = units.column("terms").data  # bytes are joined in half the time that arrays are
        joined = b"".join([data[a:b] for a, b in zip(begin, end, strict=True)])
        terms = np.frombuffer(joined, dtype="<u4")
    return rows, records, occurrences_in(terms, records["length"], codes)


def _seen(
    source: Source,
    rows: Array,
    records: Array,
    found: Occurrences,
    visible: Callable[[Source, Array], Array],
) -> _Taken:
    """What some rows of a source hold, as far as it is visible."""
    seen = visible(source, rows)
    if not seen.all():
        found = found.among(seen)
        rows, records = rows[seen], picked(records, np.flatnonzero(seen))
    return source.first + rows, records, found


def _joined(taken: Sequence[_Taken]) -> _Taken:
    """What several sources hold, one behind the other."""
    rows, records, found = zip(*taken, strict=True)
    before = np.cumsum([0, *(len(some) for some in rows)]).tolist()
    row = np.concatenate([some.row + count for some, count in zip(found, before, strict=False)])
    occurrences = Occurrences(row=row, term=np.concatenate([some.term for some in found]))
    return np.concatenate(rows), joined(records), occurrences


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
