"""One search of the index: candidates from every stream, their surroundings, one score."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

from octavo.domain.memory import KINDS
from octavo.domain.query import Question
from octavo.domain.ranking import Aging, Recipe, reach, term_weights
from octavo.domain.units import Unit
from octavo.storage import frames, frequencies
from octavo.storage.batches import Batch, batch_of, code_of
from octavo.storage.frames import Frame, Overlay
from octavo.storage.libraries import Array, np
from octavo.storage.units import Units, distinct, key_code, picked
from octavo.storage.words import Wanted, Words

if TYPE_CHECKING:
    from octavo.storage.vectors import Vectors

_DAY_SECONDS = 86_400
_WIDER = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many candidates each stream may hand in; words and meaning never fewer than are asked for."""

    words: int = 60
    speaker: int = 80
    meaning: int = 60
    time: int = 200
    neighbours: int = 2
    apart: int = 8  # of the kinds that are found apart from the others
    ranked: int = 60  # how many at least, by everything but meaning, are compared by meaning too

    def wider(self) -> Limits:
        """Limits for a second look, after the first found turns of too few memories."""
        return replace(
            self, words=_WIDER * self.words, meaning=_WIDER * self.meaning, ranked=_WIDER * self.ranked
        )


class Match(NamedTuple):
    """A unit that recall found, with the parts of its score."""

    memory: str
    rev: int
    turn: int | None
    score: float
    parts: dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fresh:
    """What is not in the index: units (above the watermark, or in a buffer), ends, and maybe vectors.

    `vectors` has one row a passage, in the order of `passages_of`. `others` are units above the watermark
    that may not be found but count in the statistics, as they will once they are indexed.
    """

    units: tuple[Unit, ...] = ()
    others: tuple[Unit, ...] = ()
    ends: frozenset[tuple[str, int]] = frozenset()
    vectors: Any = None


class Search:
    """One question put to one published state of the index."""

    def __init__(
        self,
        units: Units,
        words: Words,
        question: Question,
        wanted: Wanted,
        *,
        recipe: Recipe,
        limits: Limits,
        fresh: Fresh,
        vectors: Vectors | None,
        query: Any,
        each: str,
        aging: Aging | None,
        apart: tuple[str, ...],
    ) -> None:
        self.each, self.aging, self.apart = each, aging, apart
        self.units, self.words, self.recipe, self.limits = units, words, recipe, limits
        self.question, self.wanted, self.fresh = question, wanted, fresh
        self.version = min(wanted.version, self.units.manifest.watermark.version)
        self.scopes = self.units.scope_codes(wanted.scopes)
        self.rows = self.units.rows_until(self.version)
        self.vectors = vectors if query is not None else None
        self.query: Any = None if query is None else _unit_length(query)
        self.ended = np.array(sorted({key_code(memory) for memory, _ in fresh.ends}), dtype=np.uint64)
        self.allowed = np.sort(np.array(self.words.all(wanted), dtype=np.int64)) if wanted.narrowed else None

    def run(self, limit: int, least: int) -> list[Match]:
        """The best units, best first; of a memory the best one only, unless each turn counts.

        An episode can have more turns than a stream hands in. Before fewer than the `least` wanted are
        found, the streams hand in more. Kinds that are found apart come last and take nobody's place.
        """
        while True:
            self.is_cut = False
            found, beside = self._found(limit)
            if len(found) >= least or not self.is_cut:
                return found + beside
            self.limits = self.limits.wider()

    def _found(self, limit: int) -> tuple[list[Match], list[Match]]:
        codes = np.array([code_of(term) for term in self.question.terms], dtype=np.uint32)
        overlay, batch = self._overlay(codes)
        near = self._near(limit)
        candidates = distinct(np.concatenate([self._candidates(codes.tolist(), limit), near]))
        frame = self._frame(candidates, overlay, codes)
        if len(frame.rows) == 0:
            return [], []
        own = np.concatenate([candidates, self._fresh_candidates(overlay)])
        chosen = frame.around(frame.holding(own), self.limits.neighbours)
        if self.allowed is not None:
            chosen = chosen[self._eligible(frame, chosen, self.allowed)]
        parts = self._parts(frame, chosen, batch, *self._weights(codes, overlay))
        if self.vectors is not None:
            kept = self._best(frame, chosen, parts, near, limit)
            chosen, parts = chosen[kept], {name: values[kept] for name, values in parts.items()}
            parts["meaning"] = self.recipe.meaning * frames.meaning_part(
                frame, chosen, self.vectors, self.query, overlay, self.rows, self.recipe
            )
        first, beside = self._order(frame, chosen, _sum(parts), limit)
        found = self._matches(frame, chosen, batch, parts, np.concatenate([first, beside]))
        return found[: len(first)], found[len(first) :]

    def _frame(self, candidates: Array, overlay: Overlay, codes: Array) -> Frame:
        recipe = self.recipe
        return frames.gather(
            self.units,
            candidates,
            overlay,
            self._in_sight,
            codes,
            overlay.records["session"],
            gap=max(len(recipe.neighbours), len(recipe.meaning_neighbours), self.limits.neighbours),
        )

    def _parts(
        self, frame: Frame, chosen: Array, batch: Batch, weights: Array, average: float
    ) -> dict[str, Array]:
        """What every part but the meaning gives the chosen units."""
        recipe, question = self.recipe, self.question
        parts = {"words": frames.words_part(frame, chosen, weights, average, recipe)}
        if question.speaker is not None:
            said = frame.heads["speaker"][chosen] == batch.speaker_code(question.speaker)
            parts["speaker"] = recipe.speaker * said.astype(np.float32)
            # Who is asked about tells of themselves; "you" is about somebody else.
            parts["address"] = frame.heads["address"][chosen] * np.float32(-recipe.address / 255)
        if question.intervals:
            parts["time"] = recipe.time * frames.time_part(frame, chosen, question.intervals, recipe)
        parts["length"], parts["person"] = frames.priors(frame, chosen, recipe)
        return parts

    def _best(self, frame: Frame, chosen: Array, parts: dict[str, Array], near: Array, limit: int) -> Array:
        """Which are worth comparing by meaning: the nearest ones, and the best by everything else."""
        count = max(self.limits.ranked, limit)
        if len(chosen) <= count:
            return np.arange(len(chosen))
        self.is_cut = True
        kept = np.zeros(len(frame.starts), dtype=bool)
        kept[frame.holding(near)] = True
        kept[chosen[np.argpartition(-_sum(parts), count)[:count]]] = True
        if self.apart:
            kept[chosen[self._is_apart(frame, chosen)]] = True
        return np.flatnonzero(kept[chosen])

    def _candidates(self, codes: Sequence[int], limit: int) -> Array:
        limits, source = self.limits, self.words
        extra = 4 * len(self.fresh.ends)
        most = max(limits.words, limit) + extra
        found = source.search(codes, self.wanted, limit=most)
        self.is_cut |= len(found) == most
        if self.question.speaker is not None:
            found += source.search(
                codes, self.wanted, limit=limits.speaker + extra, speaker=self.question.speaker
            )
        for first, last in self._spans():
            found += source.between(first, last, self.wanted, limit=limits.time)
            found += source.search(codes, self._during(first, last), limit=limits.speaker)
        if self.apart:
            aside = replace(self.wanted, kinds=self.apart)
            found += source.search(codes, aside, limit=limits.apart)
            for first, last in self._spans():
                found += source.between(first, last, aside, limit=limits.apart)
        return np.array(found, dtype=np.int64)

    def _fresh_candidates(self, overlay: Overlay) -> Array:
        """The rows of the overlay that some stream finds."""
        if not self.fresh.units:
            return np.empty(0, dtype=np.int64)
        found = np.zeros(len(overlay.records), dtype=bool)
        found[overlay.found.row] = True
        if overlay.vectors is not None:
            found |= overlay.vectors.any(axis=1)
        for first, last in self._spans():
            found |= (overlay.records["at"] >= first) & (overlay.records["at"] <= last)
        rows: Array = overlay.first + np.flatnonzero(found)
        return rows

    def _near(self, limit: int) -> Array:
        if self.vectors is None:
            return np.empty(0, dtype=np.int64)
        most = max(self.limits.meaning, limit) + 4 * len(self.fresh.ends)
        rows, _ = self.vectors.nearest(
            self.query, self._findable, limit=most, share=self._share(), among=self.allowed
        )
        self.is_cut |= len(rows) == most
        if self.apart:
            among = self.words.of_kinds(self.apart, self.version)
            more, _ = self.vectors.nearest(
                self.query, self._findable, limit=self.limits.apart, share=0.0, among=among
            )
            rows = np.concatenate([rows, more])
        return distinct(rows)

    def _spans(self) -> list[tuple[int, int]]:
        """The seconds around each interval in which a match still counts for something."""
        spans = []
        for interval in self.question.intervals[:12]:
            slack = int(1.2 * reach(interval.days, self.recipe)) * _DAY_SECONDS
            first, last = _seconds(interval.first), _seconds(interval.last) + _DAY_SECONDS - 1
            spans.append((first - slack, last + slack))
        return spans

    def _during(self, first: int, last: int) -> Wanted:
        since, until = datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
        return replace(
            self.wanted,
            since=max(since, self.wanted.since or since),
            until=min(until, self.wanted.until or until),
        )

    def _in_sight(self, rows: Array) -> Array:
        """Valid at the version, in scope, and not ended since the watermark."""
        seen = self.units.visible(rows, self.version, self.scopes)
        if len(self.ended):
            records = self.units.column("rows")
            for place in np.flatnonzero(np.isin(records["key"][rows], self.ended)):
                record = records[rows[place]]
                seen[place] &= (self.units.name_of(record).memory, int(record["rev"])) not in self.fresh.ends
        return seen

    def _findable(self, rows: Array) -> Array:
        seen = self._in_sight(rows)
        return seen if self.allowed is None else seen & np.isin(rows, self.allowed)

    def _share(self) -> float:
        total = max(1, self.units.manifest.rows)
        if self.allowed is not None:
            return len(self.allowed) / total
        return 1.0 if len(self.scopes) == len(self.units.manifest.scopes) else self._scope_share()

    def _scope_share(self) -> float:
        sample = self.units.column("rows")["scope"][:: max(1, self.units.manifest.rows // 1000)]
        return float(np.isin(sample, self.scopes).mean()) if len(sample) else 1.0

    def _overlay(self, codes: Array) -> tuple[Overlay, Batch]:
        batch = batch_of(self.fresh.units, self.units.manifest)
        return frames.Overlay(
            first=self.units.manifest.rows,
            records=batch.records,
            found=frames.occurrences_in(batch.terms, batch.records["length"], codes),
            vectors=None if self.fresh.vectors is None else np.asarray(self.fresh.vectors),
        ), batch

    def _weights(self, codes: Array, overlay: Overlay) -> tuple[Array, float]:
        """The weight of each term, and how many terms a passage has on average."""
        rows, total = self.rows, self.rows + len(overlay.records)
        counts = frequencies.containing(self.units, codes, self.scopes, rows)
        terms = self._terms_until(rows)
        if self.fresh.units:
            counts = counts + overlay.found.rows_with(len(codes))
            terms += int(overlay.records["length"].sum())
        if self.fresh.others:
            others = batch_of(self.fresh.others, self.units.manifest)
            total, terms = total + len(others.records), terms + len(others.terms)
            seen = np.array([self._sees(unit.scope) for unit in others.units])
            lengths = others.records["length"]
            found = frames.occurrences_in(others.terms[np.repeat(seen, lengths)], lengths[seen], codes)
            counts = counts + found.rows_with(len(codes))
        known = dict(zip(self.question.terms, counts.tolist(), strict=True))
        weights = term_weights(self.question.terms, self.question.previous, known, total, self.recipe)
        return np.array(weights, dtype=np.float32), max(1.0, terms / max(1, total))

    def _sees(self, scope: str) -> bool:
        return self.wanted.scopes is None or scope in self.wanted.scopes

    def _terms_until(self, rows: int) -> int:
        if rows == 0:
            return 0
        last = self.units.column("rows")[rows - 1]
        return int(last["terms"]) + int(last["length"])

    def _eligible(self, frame: Frame, chosen: Array, allowed: Array) -> Array:
        """Which units the filters let through; an overlay is filtered by whoever hands it in."""
        heads = frame.rows[frame.starts[chosen]]
        return np.isin(heads, allowed) | (heads >= self.units.manifest.rows)

    def _order(self, frame: Frame, chosen: Array, score: Array, limit: int) -> tuple[Array, Array]:
        """Where the best of the chosen stand, of equals the oldest row, and the best found apart."""
        own = 0.0 if self.aging is None else frames.own_part(frame, chosen, self.aging, self.recipe)
        order = np.lexsort((frame.rows[frame.starts[chosen]], -score - own))
        beside = order[:0]
        if self.apart:
            is_apart = self._is_apart(frame, chosen[order])
            order, beside = order[~is_apart], order[is_apart][: self.limits.apart]
        if self.each == "memory":
            order = order[_first_of_each(frame.heads["key"][chosen[order]], limit)]
        return order[:limit], beside

    def _is_apart(self, frame: Frame, units: Array) -> Array:
        found: Array = np.array([kind in self.apart for kind in KINDS])[frame.heads["kind"][units]]
        return found

    def _matches(
        self, frame: Frame, chosen: Array, batch: Batch, parts: dict[str, Array], order: Array
    ) -> list[Match]:
        score, rows = _sum(parts), frame.rows[frame.starts[chosen[order]]]
        heads = picked(frame.heads, chosen[order])
        columns = [v.tolist() for v in (heads["rev"], heads["turn"], score[order])]
        given = zip(*(values[order].tolist() for values in parts.values()), strict=True)
        memories = self._memories(rows, heads, batch)
        return [
            Match(memory, rev, None if turn < 0 else turn, value, dict(zip(parts, own, strict=True)))
            for memory, rev, turn, value, own in zip(memories, *columns, given, strict=True)
        ]

    def _memories(self, rows: Array, heads: Array, batch: Batch) -> list[str]:
        stored, fresh = self.units.manifest.rows, batch.units
        places = zip(rows.tolist(), heads["name"].tolist(), heads["name_length"].tolist(), strict=True)
        return [
            self.units.memory_at(start, length) if row < stored else fresh[row - stored].memory
            for row, start, length in places
        ]


def _first_of_each(keys: Array, limit: int) -> list[int]:
    """Where the first few different keys stand."""
    found: dict[int, int] = {}
    for place, key in enumerate(keys.tolist()):
        if len(found) == limit:
            break
        found.setdefault(key, place)
    return list(found.values())


def _sum(parts: dict[str, Array]) -> Array:
    return reduce(np.add, parts.values())


def _seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _unit_length(query: Any) -> Any:
    array = np.asarray(query, dtype=np.float32).reshape(-1)
    norm = math.sqrt(array @ array)
    return array / norm if norm > 0 else array
