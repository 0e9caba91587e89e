"""One search of the index: candidates from every stream, their surroundings, one score."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from datetime import UTC, date, datetime
from functools import reduce
from typing import Any, NamedTuple

from msgspec.structs import replace

from octavo.domain.filters import Filter
from octavo.domain.memory import KINDS
from octavo.domain.query import Question
from octavo.domain.ranking import Aging, Recipe, reach, term_weights
from octavo.libraries import Array, np
from octavo.storage import frequencies, surroundings
from octavo.storage.batches import Batch, UnindexedRows, batch_of, code_of
from octavo.storage.rows import Units, distinct, key_code, picked
from octavo.storage.substance import substance_part
from octavo.storage.surroundings import Surroundings
from octavo.storage.tokens import Encoded, Tokens, second_look
from octavo.storage.vectors import Vectors
from octavo.storage.words import Words

_DAY_SECONDS = 86_400
_WIDER = 4


# How many candidates each stream may hand in; words and meaning never fewer than are asked for, and more
# when a first look found turns of too few memories.
_WORDS, _SPEAKER, _MEANING, _TIME = 60, 80, 60, 200
_RANKED = 60  # how many at least, by everything but meaning, are compared by meaning too
_APART = 8  # of the kinds that are found apart from the others
_NEIGHBOURS = 2


class ScoredUnit(NamedTuple):
    """A unit that fits a question: the score is what the question gives, `parts` hold the unit's own too."""

    memory: str
    rev: int
    turn: int | None
    kind: str
    score: float
    parts: dict[str, float]
    shares_words: bool  # whether its own text does, and not only its neighbours'
    passage: int  # which of its passages matches best
    row: int  # of that passage; those of the tail come behind the indexed ones


class Search:
    """One question put to one published state of the index."""

    def __init__(
        self,
        units: Units,
        words: Words,
        question: Question,
        filter_: Filter,
        *,
        version: int,
        recipe: Recipe,
        new: Batch | None = None,
        new_vectors: Any = None,
        hidden: Sequence[int] = (),
        ends: Set[tuple[str, int]] = frozenset(),
        vectors: Vectors | None = None,
        query: Any = None,
        each: str = "turn",
        aging: Aging | None = None,
        apart: tuple[str, ...] = (),
        tokens: Tokens | None = None,
        asked: Encoded | None = None,
    ) -> None:
        """Prepare a search; each turn or each memory counts once.

        `new` are units that are not in the index (above the watermark, or in a buffer), `ends` what ended
        there. Those that are `hidden`, by their places, may not be found but count in the statistics, as they
        will once they are indexed; `new_vectors` has one row a passage of the others.
        Kinds that are found `apart` come behind the others, a few of them, and take nobody's place.
        With `aging` salience, age and layer count in the order too; they are no part of the scores.
        With `tokens` and the question's own, `asked`, a second look at what was found is one of its parts.
        """
        self.each, self.aging, self.apart = each, aging, apart
        self.tokens, self.asked = tokens, asked
        self.units, self.words, self.recipe, self.wider = units, words, recipe, 1
        self.question, self.filter = question, filter_
        self.ends = ends
        self.version = min(version, self.units.manifest.watermark.version)
        self.scopes = self.units.scope_codes(filter_.scopes)
        self.rows = self.units.rows_until(self.version)
        # A writer may have added to both the rows and the vectors meanwhile.
        self.vectors = None if vectors is None or query is None else vectors.up_to(units.manifest.rows)
        self.query: Any = None if query is None else _unit_length(query)
        ended = sorted({key_code(memory) for memory, _ in ends})
        self.ended = np.array(ended, dtype=np.uint64)
        self.asked_version = version
        self.allowed: Array | None = None
        if filter_.is_narrow:
            self.allowed = np.sort(np.array(words.all(filter_, version), dtype=np.int64))
        self.codes = np.array([code_of(term) for term in question.terms], dtype=np.uint32)
        self.tail = self._tail(new or batch_of((), units.manifest), hidden, new_vectors)

    def run(self, limit: int, least: int) -> list[ScoredUnit]:
        """The best units, best first; of a memory the best one only, unless each turn counts.

        An episode can have more turns than a stream hands in. Before fewer than the `least` wanted are
        found, the streams hand in more. Kinds that are found apart come last and take nobody's place.
        """
        while True:
            self.is_cut = False
            found, beside = self._found(limit)
            if len(found) >= least or not self.is_cut:
                return found + beside
            self.wider *= _WIDER

    def _found(self, limit: int) -> tuple[list[ScoredUnit], list[ScoredUnit]]:
        recipe, tail = self.recipe, self.tail
        near = self._near(limit)
        candidates = distinct(np.concatenate([self._candidates(limit), near]))
        nearby = surroundings.gather(
            self.units,
            candidates,
            tail,
            self._in_sight,
            self.codes,
            gap=max(len(recipe.neighbours), len(recipe.meaning_neighbours), _NEIGHBOURS),
        )
        if len(nearby.rows) == 0:
            return [], []
        own = np.concatenate([candidates, self._unindexed_candidates()])
        chosen = nearby.around(nearby.holding(own), _NEIGHBOURS)
        if self.allowed is not None:
            firsts = nearby.rows[nearby.starts[chosen]]  # the tail is filtered by whoever hands it in
            chosen = chosen[np.isin(firsts, self.allowed) | (firsts >= self.units.manifest.rows)]
        parts = self._parts(nearby, chosen)
        if self.vectors is not None:
            kept = self._best(nearby, chosen, parts, near, limit)
            chosen, parts = chosen[kept], {name: values[kept] for name, values in parts.items()}
            parts["meaning"] = self.recipe.meaning * surroundings.meaning_part(
                nearby, chosen, self.vectors, self.query, tail, self.rows, self.recipe
            )
        if recipe.substance:
            scale = recipe.substance if self.asked is None else recipe.substance_reranked
            told = (self.question, self.units, tail, self.scopes, recipe, self.rows)
            parts["substance"] = np.float32(scale) * substance_part(nearby, chosen, parts, _sum(parts), *told)
        score = _sum(parts)
        if self.aging is not None:
            parts |= surroundings.own_parts(nearby, chosen, self.aging, self.recipe)
        first, beside = self._order(nearby, chosen, _sum(parts), limit)
        best = np.concatenate([first, beside])
        chosen, score, parts = chosen[best], score[best], {name: part[best] for name, part in parts.items()}
        matched = surroundings.matched(nearby, chosen, self.vectors, self.query)
        if self.tokens is not None and self.asked is not None:
            parts["rerank"] = np.zeros(len(best), dtype=np.float32)
            parts["rerank"][: len(first)] = second_look(
                nearby, matched[: len(first)], self.tokens, self.asked, self.recipe
            )
        found = self._scored(nearby, chosen, score, parts, matched)
        return found[: len(first)], found[len(first) :]

    def _parts(self, nearby: Surroundings, chosen: Array) -> dict[str, Array]:
        """What every part but the meaning gives the chosen units."""
        recipe, question = self.recipe, self.question
        parts = {"words": surroundings.words_part(nearby, chosen, *self._weights(), recipe)}
        if question.speaker is not None:
            said = nearby.firsts["speaker"][chosen] == self.tail.batch.speaker_code(question.speaker)
            parts["speaker"] = recipe.speaker * said.astype(np.float32)
            # Who is asked about tells of themselves; "you" is about somebody else.
            parts["address"] = nearby.firsts["address"][chosen] * np.float32(-recipe.address / 255)
        if question.intervals:
            parts["time"] = recipe.time * surroundings.time_part(nearby, chosen, question.intervals, recipe)
        parts["length"], parts["person"] = surroundings.priors(nearby, chosen, recipe)
        return parts

    def _best(
        self, nearby: Surroundings, chosen: Array, parts: dict[str, Array], near: Array, limit: int
    ) -> Array:
        """Which are worth comparing by meaning: the nearest ones, and the best by everything else."""
        count = max(self.wider * _RANKED, limit)
        if len(chosen) <= count:
            return np.arange(len(chosen))
        self.is_cut = True
        kept = np.zeros(len(nearby.starts), dtype=bool)
        kept[nearby.holding(near)] = True
        kept[chosen[np.argpartition(-_sum(parts), count)[:count]]] = True
        if self.apart:
            kept[chosen[self._is_apart(nearby, chosen)]] = True
        return np.flatnonzero(kept[chosen])

    def _candidates(self, limit: int) -> Array:
        source, version, codes = self.words, self.asked_version, self.codes.tolist()
        extra = 4 * len(self.ends)
        most = max(self.wider * _WORDS, limit) + extra
        found = source.search(codes, self.filter, version, limit=most)
        self.is_cut |= len(found) == most
        if self.question.speaker is not None:
            found += source.search(
                codes, self.filter, version, limit=_SPEAKER + extra, speaker=self.question.speaker
            )
        for first, last in self._spans():
            found += source.between(first, last, self.filter, version, limit=_TIME)
            found += source.search(codes, self._during(first, last), version, limit=_SPEAKER)
        if self.apart:
            aside = replace(self.filter, kinds=self.apart)
            found += source.search(codes, aside, version, limit=_APART)
            for first, last in self._spans():
                found += source.between(first, last, aside, version, limit=_APART)
        return np.array(found, dtype=np.int64)

    def _unindexed_candidates(self) -> Array:
        """The rows of the tail that some stream finds."""
        tail = self.tail
        found = np.zeros(len(tail.records), dtype=bool)
        found[tail.found.row] = True
        if tail.vectors is not None:
            found |= tail.vectors.any(axis=1)
        for first, last in self._spans():
            found |= (tail.records["at"] >= first) & (tail.records["at"] <= last)
        rows: Array = tail.first + np.flatnonzero(found)
        return rows

    def _near(self, limit: int) -> Array:
        if self.vectors is None:
            return np.empty(0, dtype=np.int64)
        most = max(self.wider * _MEANING, limit) + 4 * len(self.ends)
        rows, _ = self.vectors.nearest(
            self.query, self._findable, limit=most, share=self._share(), among=self.allowed
        )
        self.is_cut |= len(rows) == most
        if self.apart:
            among = self.words.of_kinds(self.apart, self.version)
            more, _ = self.vectors.nearest(self.query, self._findable, limit=_APART, share=0.0, among=among)
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

    def _during(self, first: int, last: int) -> Filter:
        since, until = datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
        return replace(
            self.filter,
            since=max(since, self.filter.since or since),
            until=min(until, self.filter.until or until),
        )

    def _in_sight(self, rows: Array) -> Array:
        """Valid at the version, in scope, and not ended since the watermark."""
        seen = self.units.visible(rows, self.version, self.scopes)
        if len(self.ended):
            records = self.units.column("rows")
            for place in np.flatnonzero(np.isin(records["key"][rows], self.ended)):
                record = records[rows[place]]
                name = (self.units.memory_of(record), int(record["rev"]))
                seen[place] &= name not in self.ends
        return seen

    def _findable(self, rows: Array) -> Array:
        seen = self._in_sight(rows)
        return seen if self.allowed is None else seen & np.isin(rows, self.allowed)

    def _share(self) -> float:
        total = max(1, self.units.manifest.rows)
        if self.allowed is not None:
            return len(self.allowed) / total
        if len(self.scopes) == len(self.units.manifest.scopes):
            return 1.0
        sample = self.units.column("rows")["scope"][:: max(1, self.units.manifest.rows // 1000)]
        return float(np.isin(sample, self.scopes).mean()) if len(sample) else 1.0

    def _tail(self, batch: Batch, hidden: Sequence[int], vectors: Any) -> UnindexedRows:
        """What is not indexed, as rows behind those of the index; its terms are counted, too."""
        records, first = batch.records, self.units.manifest.rows
        found = frequencies.occurrences_in(batch.terms, records["length"], self.codes)
        self.unindexed_counts = found.rows_with(len(self.codes))
        rows = np.arange(len(records))
        if (scopes := self.filter.scopes) is not None and len(records):
            names = batch.known.scopes
            seen = np.array([name in scopes for name in names])[records["scope"]]
            self.unindexed_counts = found.among(seen).rows_with(len(self.codes))
        if hidden:
            is_shown = ~np.isin(batch.owners, hidden)
            rows, found = np.flatnonzero(is_shown), found.among(is_shown)
            records = picked(records, rows)
        return UnindexedRows(
            first=first,
            batch=batch,
            rows=rows,
            records=records,
            found=found,
            vectors=None if vectors is None else np.asarray(vectors),
        )

    def _weights(self) -> tuple[Array, float]:
        """The weight of each term, and how many terms a passage has on average."""
        rows, lengths = self.rows, self.tail.batch.records["length"]
        counts = frequencies.containing(self.units, self.codes, self.scopes, rows) + self.unindexed_counts
        last = self.units.column("rows")[rows - 1 : rows]
        terms, total = int((last["terms"] + last["length"]).sum() + lengths.sum()), rows + len(lengths)
        known = dict(zip(self.question.terms, counts.tolist(), strict=True))
        weights = term_weights(self.question.terms, self.question.previous, known, total, self.recipe)
        return np.array(weights, dtype=np.float32), max(1.0, terms / max(1, total))

    def _order(self, nearby: Surroundings, chosen: Array, score: Array, limit: int) -> tuple[Array, Array]:
        """Where the best of the chosen stand, of equals the oldest row, and the best found apart."""
        order = np.lexsort((nearby.rows[nearby.starts[chosen]], -score))
        beside = order[:0]
        if self.apart:
            is_apart = self._is_apart(nearby, chosen[order])
            order, beside = order[~is_apart], order[is_apart][:_APART]
        if self.each == "memory":
            order = order[_first_of_each(nearby.firsts["key"][chosen[order]], limit)]
        return order[:limit], beside

    def _is_apart(self, nearby: Surroundings, units: Array) -> Array:
        return np.asarray(np.array([kind in self.apart for kind in KINDS])[nearby.firsts["kind"][units]])

    def _scored(
        self, nearby: Surroundings, units: Array, score: Array, parts: dict[str, Array], matched: Array
    ) -> list[ScoredUnit]:
        rows, firsts = nearby.rows[nearby.starts[units]], picked(nearby.firsts, units)
        sharing = np.zeros(len(nearby.starts), dtype=bool)
        sharing[nearby.unit_of(nearby.found.row)] = True
        columns = [v.tolist() for v in (firsts["rev"], firsts["turn"], firsts["kind"], score, sharing[units])]
        given = zip(*(values.tolist() for values in parts.values()), strict=True)
        memories, places = self._memories(rows, firsts), (matched - nearby.starts[units]).tolist()
        return [
            ScoredUnit(
                *(memory, rev, None if turn < 0 else turn, KINDS[kind], value),
                *(dict(zip(parts, own, strict=True)), shares, place, row),
            )
            for memory, place, row, rev, turn, kind, value, shares, own in zip(
                memories, places, nearby.rows[matched].tolist(), *columns, given, strict=True
            )
        ]

    def _memories(self, rows: Array, firsts: Array) -> list[str]:
        stored = self.units.manifest.rows
        places = zip(rows.tolist(), firsts["name"].tolist(), firsts["name_length"].tolist(), strict=True)
        return [
            self.units.memory_at(start, length) if row < stored else self.tail.memory_at(row)
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
