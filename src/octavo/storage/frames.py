"""The rows around the candidates of one recall, as arrays, and the recipe's formulas over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from octavo.domain.dates import Interval
from octavo.domain.ranking import Recipe, frequency, passage_prior, reach, saturated
from octavo.storage.frequencies import matches
from octavo.storage.libraries import Array, np
from octavo.storage.units import NO_POSITION, Units, distinct, ranges
from octavo.storage.vectors import Vectors

_WINDOW = 8  # how many rows to either side of a candidate are its context
_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """Units that no index holds yet, in the form of the columns; `vectors` has a row for each, or is None."""

    first: int  # the row number its first row has
    records: Array
    codes: list[list[int]]
    vectors: Array | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """Rows in the order of their conversations; `starts` are the rows where units begin."""

    rows: Array
    records: Array
    starts: Array
    heads: Array  # the first record of every unit
    segments: Array  # per unit: which conversation it belongs to
    counts: Array  # per row and term of the question

    def best(self, values: Array) -> Array:
        """The greatest value among the passages of each unit."""
        if len(self.starts) == len(self.rows):
            return values
        found: Array = np.maximum.reduceat(values, self.starts, axis=0)
        return found

    def spread(self, values: Array) -> Array:
        """A value of each unit, for each of its passages."""
        if len(self.starts) == len(self.rows):
            return values
        return np.repeat(values, np.diff([*self.starts, len(self.rows)]), axis=0)


def gather(
    units: Units, candidates: Array, overlay: Overlay, visible: Any, codes: Array, forced: Array
) -> Frame:
    """Collect the candidates' conversations as far as they are visible, with the question's terms in them.

    `forced` are sessions to collect besides, those of the overlay.
    """
    rows = _with_context(units, candidates, forced)
    records = units.take(rows)
    seen = visible(rows, records)
    rows, records = rows[seen], records[seen] if not seen.all() else records
    counts = _counts(units, records, codes)
    if len(overlay.records):
        records = np.concatenate([records, overlay.records])
        rows = np.concatenate([rows, overlay.first + np.arange(len(overlay.records))])
        counts = np.concatenate([counts, _overlay_counts(overlay, codes)])
    order = _conversation_order(records)
    if order is not None:
        rows, records, counts = rows[order], records[order], counts[order]
    starts = np.flatnonzero(records["passage"] == 0)
    heads = records if len(starts) == len(rows) else records[starts]
    alone, session = heads["position"] == NO_POSITION, heads["session"]
    fresh = np.ones(len(starts), dtype=bool)
    fresh[1:] = (session[1:] != session[:-1]) | alone[1:] | alone[:-1]
    segments = np.cumsum(fresh) - 1
    return Frame(rows=rows, records=records, starts=starts, heads=heads, segments=segments, counts=counts)


def words_part(frame: Frame, weights: Array, average: float, recipe: Recipe) -> Array:
    """How much of the question's terms each unit covers, its neighbours' terms counted in part."""
    if len(weights) == 0 or len(frame.rows) == 0:
        return np.zeros(len(frame.starts), dtype=np.float32)
    own = frequency(frame.counts, frame.records["length"][:, None].astype(np.float32), average, recipe)
    full = _fullness(frame, recipe)[:, None]
    best = frame.best(own)
    around = _from_neighbours(full * best, frame.segments, recipe.neighbours)
    around += np.float32(recipe.session) * _session_best(np.where(best > 0, full, 0), frame.segments)
    total = own + frame.spread(around)
    if len(frame.starts) < len(frame.rows):
        unit_of_row = frame.spread(np.arange(len(frame.starts)))
        total += np.float32(recipe.passages) * _from_passages(own > 0, unit_of_row)
    return frame.best(saturated(total, recipe) @ (weights / weights.sum()).astype(np.float32))


def meaning_part(
    frame: Frame, scored: Array, vectors: Vectors, query: Array, overlay: Overlay, first: int, recipe: Recipe
) -> Array:
    """How near each unit's text is to the question's, neighbours counted in part; 0 where not asked for."""
    wanted = scored.copy()
    for distance in range(1, len(recipe.meaning_neighbours) + 1):
        wanted = _spread(scored, wanted, frame.segments, distance)
    asked = frame.spread(wanted)
    shift = float(vectors.mean(first) @ query)
    cosines = np.full(len(frame.rows), shift, dtype=np.float32)
    stored = asked & (frame.rows < vectors.manifest.rows)
    if len(vectors.lacking):
        stored &= ~np.isin(frame.rows, vectors.lacking)
    cosines[stored] = vectors.cosines(query, frame.rows[stored])
    if overlay.vectors is not None:
        fresh = asked & (frame.rows >= overlay.first)
        cosines[fresh] = overlay.vectors[frame.rows[fresh] - overlay.first] @ query
    near = np.where(wanted, frame.best(cosines) - shift, 0)
    faded = _fullness(frame, recipe) * near
    found: Array = near + _from_neighbours(faded[:, None], frame.segments, recipe.meaning_neighbours)[:, 0]
    return found


def presence(overlay: Overlay, codes: Array) -> Array:
    """In how many rows of the overlay each term occurs."""
    found: Array = (_overlay_counts(overlay, codes) > 0).sum(axis=0)
    return found


def holding(overlay: Overlay, codes: Array) -> Array:
    """Which rows of the overlay hold any of the terms."""
    return np.asarray(_overlay_counts(overlay, codes).any(axis=1))


def time_part(frame: Frame, intervals: Sequence[Interval], recipe: Recipe) -> Array:
    """How near each unit lies to one of the times asked about."""
    days = frame.heads["at"] // _DAY_SECONDS
    best = np.zeros(len(frame.starts), dtype=np.float32)
    for interval in intervals:
        first, last = (day.toordinal() - _EPOCH for day in (interval.first, interval.last))
        gap = np.maximum(0, np.maximum(first - days, days - last))
        best = np.maximum(best, np.exp(-gap / reach(interval.days, recipe)))
    return best


def priors(frame: Frame, recipe: Recipe) -> tuple[Array, Array]:
    """What the number of passages costs, and what being said by a person adds."""
    heads = frame.heads
    return (
        passage_prior(heads["passages"].astype(np.float32), np.log, recipe),
        recipe.person * heads["person"].astype(np.float32),
    )


def near_candidates(frame: Frame, candidates: Array, distance: int) -> Array:
    """Which units hold a candidate row, or are at most `distance` turns away from one."""
    hit = frame.best(_among(frame.rows, candidates))
    found = hit.copy()
    for step in range(1, distance + 1):
        found = _spread(hit, found, frame.segments, step)
    return found


_EPOCH = 719_163  # the ordinal of 1970-01-01


def _with_context(units: Units, candidates: Array, forced: Array) -> Array:
    """The candidates' whole units, and the turns around them."""
    sessions, first, last = units.runs()
    records = units.take(candidates)
    turns = records["position"] != NO_POSITION
    low = np.searchsorted(sessions, records["session"], "left")
    high = np.where(turns, np.searchsorted(sessions, records["session"], "right"), low)
    one = high - low == 1
    around, run = candidates[one], low[one]
    parts = [
        _whole_units(
            units, np.maximum(around - _WINDOW, first[run]), np.minimum(around + _WINDOW + 1, last[run])
        ),
        _whole_units(units, candidates[~one], candidates[~one] + 1),
    ]
    # A session in several runs (restored, or continued) is taken whole: its turns interleave.
    scattered = distinct(np.concatenate([records["session"][high - low > 1], forced]))
    runs = ranges(np.searchsorted(sessions, scattered, "left"), np.searchsorted(sessions, scattered, "right"))
    parts.append(ranges(first[runs], last[runs]))
    return distinct(np.concatenate(parts))


def _whole_units(units: Units, low: Array, high: Array) -> Array:
    """The rows of some ranges, widened so that no unit is cut."""
    if len(low) == 0:
        return low
    ends = units.take(high - 1)
    return ranges(
        low - units.take(low)["passage"],
        high - 1 - ends["passage"].astype(np.int64) + ends["passages"].astype(np.int64),
    )


def _conversation_order(records: Array) -> Array | None:
    """The order in which sessions stand together and turns follow each other; None if they do already."""
    if len(records) < 2:
        return None
    session, alone = records["session"], records["position"] == NO_POSITION
    fresh = np.ones(len(records), dtype=bool)
    fresh[1:] = (session[1:] != session[:-1]) | alone[1:] | alone[:-1]
    fresh &= ~alone | (records["passage"] == 0)
    block = np.cumsum(fresh) - 1
    firsts = np.flatnonzero(fresh)
    rank = np.searchsorted(distinct(session[firsts]), session[firsts])
    rank = np.where(alone[firsts], len(firsts) + np.arange(len(firsts)), rank)
    place = np.where(alone, records["passage"], records["position"]).astype(np.int64)
    key = (rank[block].astype(np.int64) << 32) + place
    if not alone.any() and len(distinct(rank)) == len(firsts):
        key = (block.astype(np.int64) << 32) + place
    return None if (key[1:] >= key[:-1]).all() else np.argsort(key, kind="stable")


def _counts(units: Units, records: Array, codes: Array) -> Array:
    if len(records) == 0 or len(codes) == 0:
        return np.zeros((len(records), len(codes)), dtype=np.float32)
    first = records["terms"].astype(np.int64)
    lengths = records["length"].astype(np.int64)
    tokens = units.column("terms")[ranges(first, first + lengths)]
    places, which = matches(tokens, codes)
    owner = np.searchsorted(np.cumsum(lengths), places, "right")
    return _tally(owner, which, len(records), len(codes))


def _overlay_counts(overlay: Overlay, codes: Array) -> Array:
    known = {int(code): index for index, code in enumerate(codes)}
    counts = np.zeros((len(overlay.codes), len(codes)), dtype=np.float32)
    for row, tokens in enumerate(overlay.codes):
        for token in tokens:
            if token in known:
                counts[row, known[token]] += 1
    return counts


def _tally(owner: Array, which: Array, rows: int, terms: int) -> Array:
    flat = np.bincount(owner * terms + which, minlength=rows * terms)
    return flat.reshape(rows, terms).astype(np.float32)


def _fullness(frame: Frame, recipe: Recipe) -> Array:
    length = np.maximum(frame.heads["unit_length"], 1).astype(np.float32)
    return np.asarray(np.minimum(np.float32(1), np.float32(recipe.full_length) / length))


def _from_neighbours(values: Array, segments: Array, weights: Sequence[float]) -> Array:
    total = np.zeros_like(values)
    for distance, weight in enumerate(weights, 1):
        if len(values) <= distance:
            break
        same = (segments[distance:] == segments[:-distance])[:, None] * np.float32(weight)
        total[distance:] += values[:-distance] * same
        total[:-distance] += values[distance:] * same
    return total


def _session_best(values: Array, segments: Array) -> Array:
    starts = np.flatnonzero(np.diff(segments, prepend=-1))
    best = np.maximum.reduceat(values, starts, axis=0)
    found: Array = best[segments]
    return found


def _from_passages(present: Array, unit_of_row: Array) -> Array:
    total = np.zeros(present.shape, dtype=np.float32)
    if len(present) > 1 and unit_of_row[-1] + 1 < len(present):
        same = (unit_of_row[1:] == unit_of_row[:-1])[:, None]
        total[1:] = np.maximum(total[1:], present[:-1] & same)
        total[:-1] = np.maximum(total[:-1], present[1:] & same)
    return total


def _among(rows: Array, chosen: Array) -> Array:
    """Which rows are among some sorted ones."""
    if len(chosen) == 0:
        return np.zeros(len(rows), dtype=bool)
    place = np.minimum(np.searchsorted(chosen, rows), len(chosen) - 1)
    found: Array = chosen[place] == rows
    return found


def _spread(hit: Array, found: Array, segments: Array, distance: int) -> Array:
    wider = found.copy()
    same = segments[distance:] == segments[:-distance]
    wider[distance:] |= hit[:-distance] & same
    wider[:-distance] |= hit[distance:] & same
    return wider
