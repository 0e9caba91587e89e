"""One search of the index: candidates from every stream, their surroundings, one score."""

from __future__ import annotations

from collections.abc import Set
from datetime import UTC, date, datetime
from functools import reduce
from typing import Any, NamedTuple

from msgspec.structs import replace

from octavo.domain.filters import Filter
from octavo.domain.memory import KINDS
from octavo.domain.query import Question
from octavo.domain.ranking import Ages, Recipe, passage_prior, reach, term_weights
from octavo.domain.units import ROLES
from octavo.libraries import Array, np
from octavo.storage import parts as formulas
from octavo.storage.batches import code_of
from octavo.storage.frequencies import occurrences_in
from octavo.storage.rows import Units, distinct, key_code, picked
from octavo.storage.surroundings import Source, Surroundings, counts_of, gather
from octavo.storage.tokens import Encoded, Tokens
from octavo.storage.vectors import Vectors, checked_vectors
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
    row: int  # of that passage; those that are held in memory come behind the index's


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
        held: tuple[Units, Vectors | None] | None = None,
        ends: Set[tuple[str, int]] = frozenset(),
        vectors: Vectors | None = None,
        query: Any = None,
        each: str = "turn",
        ages: Ages | None = None,
        apart: tuple[str, ...] = (),
        look: tuple[Tokens, Encoded] | None = None,
    ) -> None:
        """Prepare a search; each turn or each memory counts once.

        What is not in the index yet (above the watermark, or in a buffer) is `held` in columns of the same
        shape and searched as the index is; `ends` are the revisions that ended there.
        Kinds that are found `apart` come behind the others, a few of them, and take nobody's place.
        With `ages` salience, age and layer count in the order too; they are no part of the scores.
        With tokens to `look` at and the question's own, a second look at what was found is one of its parts.
        """
        self.each, self.ages, self.look = each, ages, look
        self.recipe, self.wider, self.version = recipe, 1, version
        self.question, self.filter, self.words, self.ends = question, filter_, words, ends
        self.ended = np.array(sorted({key_code(memory) for memory, _ in ends}), dtype=np.uint64)
        self.query: Any = None
        if query is not None and vectors is not None:
            self.query = checked_vectors(query, vectors.manifest.dimension)[0]
            vectors = vectors.up_to(units.manifest.rows)  # a writer may have added to both meanwhile
        terms = (*question.terms, *question.retold)
        self.codes = np.array([code_of(term) for term in terms], dtype=np.uint32)
        none = self.codes[:0]
        self.sources = [self._source(0, units, vectors if self.query is not None else None, none)]
        if held is not None:
            self.sources.append(self._source(units.manifest.rows, *held, self.codes))
        self.is_apart = np.array([kind in apart for kind in KINDS])
        self.apart = apart if apart and len(words.of_kinds(apart, version)) else ()
        self.allowed: Array | None = None
        if filter_.is_narrow:
            behind = [source.first + source.units.fitting(filter_) for source in self.sources[1:]]
            indexed = np.array(words.all(filter_, version), dtype=np.int64)
            self.allowed = np.sort(np.concatenate([indexed, *behind]))
        # The seconds around each interval in which a match still counts for something.
        self.spans: list[tuple[int, int]] = []
        for interval in question.intervals[:12]:
            slack = int(1.2 * reach(interval.days, recipe)) * _DAY_SECONDS
            last = _seconds(interval.last) + _DAY_SECONDS - 1
            self.spans.append((_seconds(interval.first) - slack, last + slack))

    def _source(self, first: int, units: Units, vectors: Vectors | None, codes: Array) -> Source:
        scopes, rows = units.scope_codes(self.filter.scopes), units.rows_until(self.version)
        found = occurrences_in(units.column("terms"), units.column("rows")["length"], codes)
        return Source(first=first, units=units, vectors=vectors, scopes=scopes, rows=rows, found=found)

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
        recipe, sources = self.recipe, self.sources
        near = self._near(limit)
        candidates = distinct(np.concatenate([self._candidates(limit), near]))
        gap = max(len(recipe.neighbours), len(recipe.meaning_neighbours), _NEIGHBOURS)
        indexed = candidates[sources[0].holds(candidates)]
        nearby = gather(sources, indexed, self._in_sight, self.codes, gap=gap)
        if len(nearby.rows) == 0:
            return [], []
        chosen = nearby.around(nearby.holding(candidates), _NEIGHBOURS)
        if self.allowed is not None:
            chosen = chosen[np.isin(nearby.rows[nearby.starts[chosen]], self.allowed)]
        parts = self._parts(nearby, chosen)
        if self.query is not None:
            kept = self._best(nearby, chosen, parts, near, limit)
            chosen, parts = chosen[kept], {name: values[kept] for name, values in parts.items()}
            stored = sources[0].vectors  # how near to the question a text is on the average
            shift = 0.0 if stored is None else float(stored.mean(sources[0].rows) @ self.query)
            meaning = formulas.meaning_part(nearby, chosen, sources, self.query, shift, recipe)
            parts["meaning"] = recipe.meaning * meaning
        roles = [] if self.question.is_of_asking else self._roles()
        asked = formulas.asked_part(nearby, chosen, parts, roles, len(self.question.terms), recipe)
        parts["asked"] = asked
        if recipe.substance and not self.question.is_request:
            scale = recipe.substance_listed if self.question.is_list else recipe.substance
            scale = scale if self.look is None else recipe.substance_reranked
            parts["substance"] = np.float32(scale) * formulas.substance_part(
                nearby, chosen, parts, _sum(parts), sources, recipe, is_list=self.question.is_list
            )
        score = _sum(parts)
        if self.ages is not None:
            parts |= formulas.own_parts(nearby, chosen, self.ages, self.recipe)
        first, beside = self._order(nearby, chosen, _sum(parts), limit)
        best = np.concatenate([first, beside])
        chosen, score, parts = chosen[best], score[best], {name: part[best] for name, part in parts.items()}
        matched = formulas.matched(nearby, chosen, sources, self.query)
        if self.look is not None:
            looked = formulas.second_look(nearby, matched[: len(first)], *self.look, self.recipe)
            looked = np.where(parts["asked"][: len(first)] < 0, np.minimum(looked, 0), looked)
            parts["rerank"] = np.pad(looked, (0, len(beside)))
        found = self._scored(nearby, chosen, score, parts, matched)
        return found[: len(first)], found[len(first) :]

    def _candidates(self, limit: int) -> Array:
        """The rows that share words with the question, or lie in the time it names."""
        words, filter_, version, codes = self.words, self.filter, self.version, self.codes.tolist()
        extra = 4 * len(self.ends)
        most = max(self.wider * _WORDS, limit) + extra
        found = words.search(codes, filter_, version, limit=most)
        self.is_cut |= len(found) == most
        if (speaker := self.question.speaker) is not None:
            found += words.search(codes, filter_, version, limit=_SPEAKER + extra, speaker=speaker)
        for first, last in self.spans:
            found += words.between(first, last, filter_, version, limit=_TIME)
            since, until = datetime.fromtimestamp(first, UTC), datetime.fromtimestamp(last, UTC)
            since, until = max(since, filter_.since or since), min(until, filter_.until or until)
            found += words.search(codes, replace(filter_, since=since, until=until), version, limit=_SPEAKER)
        if self.apart:
            aside = replace(filter_, kinds=self.apart)
            found += words.search(codes, aside, version, limit=_APART)
            for first, last in self.spans:
                found += words.between(first, last, aside, version, limit=_APART)
        rows = [np.array(found, dtype=np.int64)]
        for source in self.sources[1:]:  # what is held in memory is looked at row by row
            records = source.units.column("rows")
            fits = self.is_apart[records["kind"]]
            fits[source.found.row] = True
            for first, last in self.spans:
                fits |= (records["at"] >= first) & (records["at"] <= last)
            rows.append(source.first + np.flatnonzero(fits))
        return np.concatenate(rows)

    def _near(self, limit: int) -> Array:
        """The rows nearest by meaning, and those of the index's that are found apart."""
        if self.query is None:
            return np.empty(0, dtype=np.int64)
        most = max(self.wider * _MEANING, limit) + 4 * len(self.ends)
        near = [self._nearest(source, most, *self._allowed_in(source)) for source in self.sources]
        rows, cosines = (np.concatenate(some) for some in zip(*near, strict=True))
        self.is_cut |= len(rows) >= most
        best = rows[np.argsort(-cosines, kind="stable")[:most]]
        if self.apart:
            among = self.words.of_kinds(self.apart, self.version)
            best = np.concatenate([best, self._nearest(self.sources[0], _APART, among, 0.0)[0]])
        return distinct(best)

    def _nearest(self, source: Source, limit: int, among: Array | None, share: float) -> tuple[Array, Array]:
        """The findable rows of a source that are nearest to the question, and their cosines."""
        if source.vectors is None:
            return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.float32)

        def findable(rows: Array) -> Array:
            seen = self._in_sight(source, rows)
            return seen if self.allowed is None else seen & np.isin(source.first + rows, self.allowed)

        rows, cosines = source.vectors.nearest(self.query, findable, limit=limit, share=share, among=among)
        return source.first + rows, cosines

    def _allowed_in(self, source: Source) -> tuple[Array | None, float]:
        """Which of a source's rows the filter lets through, None for all, and what share may be seen."""
        known = source.units.manifest
        if self.allowed is not None:
            own = self.allowed[source.holds(self.allowed)] - source.first
            return own, len(own) / max(1, known.rows)
        if len(source.scopes) == len(known.scopes):
            return None, 1.0
        sample = source.units.column("rows")["scope"][:: max(1, known.rows // 1000)]
        return None, float(np.isin(sample, source.scopes).mean()) if len(sample) else 1.0

    def _in_sight(self, source: Source, rows: Array) -> Array:
        """Which of a source's rows are valid at the version, in scope, and not ended since the watermark."""
        seen = source.units.visible(rows, self.version, source.scopes)
        if len(self.ended):
            records = source.units.column("rows")
            for place in np.flatnonzero(np.isin(records["key"][rows], self.ended)):
                record = records[rows[place]]
                seen[place] &= (source.units.memory_of(record), int(record["rev"])) not in self.ends
        return seen

    def _parts(self, nearby: Surroundings, chosen: Array) -> dict[str, Array]:
        """What every part but the meaning gives the chosen units."""
        recipe, question, firsts = self.recipe, self.question, nearby.firsts
        parts = {"words": formulas.words_part(nearby, chosen, *self._weights(), recipe)}
        if question.speaker is not None:
            speakers = self.sources[-1].units.manifest.speakers
            code = speakers.index(question.speaker) + 1 if question.speaker in speakers else -1
            parts["speaker"] = recipe.speaker * (firsts["speaker"][chosen] == code).astype(np.float32)
            # Who is asked about tells of themselves; "you" is about somebody else.
            parts["address"] = firsts["address"][chosen] * np.float32(-recipe.address / 255)
        if question.intervals:
            parts["time"] = recipe.time * formulas.time_part(nearby, chosen, question.intervals, recipe)
        parts["length"] = passage_prior(firsts["passages"][chosen].astype(np.float32), np.log, recipe)
        parts["person"] = recipe.person * (firsts["marks"][chosen] & 1).astype(np.float32)
        return parts

    def _roles(self) -> list[int]:
        """The codes of those who talk as user or machine."""
        speakers = self.sources[-1].units.manifest.speakers
        return [code for code, name in enumerate(speakers, 1) if name.casefold() in ROLES]

    def _weights(self) -> tuple[Array, float]:
        """The share of each term in all of the question's, and how many terms a passage has on average.

        A term in which the answer may be told counts as one of the question's does on average.
        """
        length, total, question = 0, sum(source.rows for source in self.sources), self.question
        for source in self.sources:
            last = source.units.column("rows")[source.rows - 1 : source.rows]
            length += int((last["terms"] + last["length"]).sum())
        counts = counts_of(self.sources, self.codes[: len(question.terms)])
        known = dict(zip(question.terms, counts.tolist(), strict=True))
        weights = np.array(term_weights(question.terms, question.previous, known, total, self.recipe))
        retold = [share / max(1, len(weights)) for share in question.retold.values()]
        shares = np.append(weights / max(float(weights.sum()), 1e-9), retold)
        return shares.astype(np.float32), max(1.0, length / max(1, total))

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
        kept |= self.is_apart[nearby.firsts["kind"]]
        return np.flatnonzero(kept[chosen])

    def _order(self, nearby: Surroundings, chosen: Array, score: Array, limit: int) -> tuple[Array, Array]:
        """Where the best of the chosen stand, of equals the oldest row, and the best found apart."""
        order = np.lexsort((nearby.rows[nearby.starts[chosen]], -score))
        is_apart = self.is_apart[nearby.firsts["kind"][chosen[order]]]
        order, beside = order[~is_apart], order[is_apart][:_APART]
        if self.each == "memory":
            first: dict[int, int] = {}
            for key, place in zip(nearby.firsts["key"][chosen[order]].tolist(), order.tolist(), strict=True):
                first.setdefault(key, place)
            order = np.array(list(first.values()), dtype=np.int64)
        return order[:limit], beside

    def _scored(
        self, nearby: Surroundings, units: Array, score: Array, parts: dict[str, Array], matched: Array
    ) -> list[ScoredUnit]:
        firsts = picked(nearby.firsts, units)
        sharing = np.zeros(len(nearby.starts), dtype=bool)
        shared = nearby.found.term < len(self.question.terms)
        sharing[nearby.unit_of(nearby.found.row[shared])] = True
        columns = (
            *(firsts["name"], firsts["name_length"], firsts["rev"], firsts["turn"], firsts["kind"]),
            *(score, sharing[units], matched - nearby.starts[units], nearby.rows[matched]),
        )
        given = zip(*(values.tolist() for values in parts.values()), strict=True)
        index, held = self.sources[0], self.sources[-1]
        found = []
        for name, size, rev, turn, kind, value, shares, passage, row, own in zip(
            *(column.tolist() for column in columns), given, strict=True
        ):
            source = index if row < index.units.manifest.rows else held
            memory = source.units.words_at(name, size)[0] or ""
            where = (memory, rev, None if turn < 0 else turn, KINDS[kind])
            told = dict(zip(parts, own, strict=True))
            found.append(ScoredUnit(*where, value, told, shares, passage, row))
        return found


def _sum(parts: dict[str, Array]) -> Array:
    return reduce(np.add, parts.values())


def _seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())
