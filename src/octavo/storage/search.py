"""One search of the index: candidates from every stream, their surroundings, one score."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from typing import Any

from octavo.domain.query import Question
from octavo.domain.ranking import Recipe, reach, term_weights
from octavo.domain.units import Unit
from octavo.storage import frames, frequencies
from octavo.storage.batches import Batch, code_of
from octavo.storage.frames import Frame, Overlay
from octavo.storage.libraries import Array, np
from octavo.storage.units import Units, distinct, key_code
from octavo.storage.vectors import Vectors
from octavo.storage.words import Wanted, Words

_DAY_SECONDS = 86_400


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How many candidates each stream may hand in."""

    words: int = 120
    speaker: int = 80
    meaning: int = 120
    time: int = 200
    neighbours: int = 2
    ranked: int = 300  # how many, by everything but meaning, are compared by meaning too


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A unit that recall found, with the parts of its score."""

    memory: str
    rev: int
    turn: int | None
    passage: int
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
    ) -> None:
        self.units, self.words, self.recipe, self.limits = units, words, recipe, limits
        self.question, self.wanted, self.fresh = question, wanted, fresh
        self.version = min(wanted.version, self.units.manifest.watermark.version)
        self.scopes = self.units.scope_codes(wanted.scopes)
        self.rows = self.units.rows_until(self.version)
        self.vectors = vectors if query is not None else None
        self.query: Any = None if query is None else _unit_length(query)
        self.ended = np.array(sorted({key_code(memory) for memory, _ in fresh.ends}), dtype=np.uint64)
        self.allowed = np.sort(np.array(self.words.all(wanted))) if wanted.narrowed else None

    def run(self, limit: int) -> list[Match]:
        """The best units, best first."""
        recipe = self.recipe
        overlay, batch = self._overlay()
        codes = np.array([code_of(term) for term in self.question.terms], dtype=np.uint32)
        near = self._near()
        candidates = distinct(np.concatenate([self._candidates(codes.tolist()), near]))
        forced = distinct(overlay.records["session"]).astype(np.uint64)
        frame = frames.gather(self.units, candidates, overlay, self._in_sight, codes, forced)
        if len(frame.rows) == 0:
            return []
        weights, average = self._weights(codes, overlay)
        parts = {"words": frames.words_part(frame, weights, average, recipe)}
        if self.question.speaker is not None:
            parts["speaker"] = recipe.speaker * self._said_by(frame, batch, self.question.speaker)
        if self.question.intervals:
            parts["time"] = recipe.time * frames.time_part(frame, self.question.intervals, recipe)
        parts["length"], parts["person"] = frames.priors(frame, recipe)
        own = np.concatenate([candidates, self._fresh_candidates(overlay, codes)])
        scored = frames.near_candidates(frame, own, self.limits.neighbours) & self._eligible(frame)
        if self.vectors is not None:
            scored = self._best(frame, parts, scored, near)
            parts["meaning"] = recipe.meaning * frames.meaning_part(
                frame, scored, self.vectors, self.query, overlay, self.rows, recipe
            )
        return self._matches(frame, batch, parts, scored, limit)

    def _best(self, frame: Frame, parts: dict[str, Array], scored: Array, near: Array) -> Array:
        """The units worth comparing by meaning: the nearest ones, and the best by everything else."""
        count = self.limits.ranked
        if int(scored.sum()) <= count:
            return scored
        value = np.where(scored, np.sum(list(parts.values()), axis=0), -np.inf)
        kept = frames.near_candidates(frame, near, 0)
        kept[np.argpartition(-value, count)[:count]] = True
        found: Array = kept & scored
        return found

    def _candidates(self, codes: Sequence[int]) -> Array:
        limits, source = self.limits, self.words
        extra = 4 * len(self.fresh.ends)
        found = source.search(codes, self.wanted, limit=limits.words + extra)
        if self.question.speaker is not None:
            found += source.search(
                codes, self.wanted, limit=limits.speaker + extra, speaker=self.question.speaker
            )
        for first, last in self._spans():
            found += source.between(first, last, self.wanted, limit=limits.time)
            found += source.search(codes, self._during(first, last), limit=limits.speaker)
        return np.array(found, dtype=np.int64)

    def _fresh_candidates(self, overlay: Overlay, codes: Array) -> Array:
        """The rows of the overlay that some stream finds."""
        found = frames.holding(overlay, codes)
        if overlay.vectors is not None:
            found |= overlay.vectors.any(axis=1)
        for first, last in self._spans():
            found |= (overlay.records["at"] >= first) & (overlay.records["at"] <= last)
        rows: Array = overlay.first + np.flatnonzero(found)
        return rows

    def _near(self) -> Array:
        if self.vectors is None:
            return np.empty(0, dtype=np.int64)
        limit = self.limits.meaning + 4 * len(self.fresh.ends)
        rows, _ = self.vectors.nearest(self.query, self._findable, limit=limit, share=self._share())
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

    def _in_sight(self, rows: Array, records: Array) -> Array:
        """Valid at the version, in scope, and not ended since the watermark."""
        seen = self.units.visible(rows, records, self.version, self.scopes)
        if len(self.ended):
            for place in np.flatnonzero(np.isin(records["key"], self.ended)):
                name = self.units.name_of(records[place]).memory
                seen[place] &= (name, int(records[place]["rev"])) not in self.fresh.ends
        found: Array = seen
        return found

    def _findable(self, rows: Array) -> Array:
        seen = self._in_sight(rows, self.units.take(rows))
        return seen if self.allowed is None else seen & np.isin(rows, self.allowed)

    def _share(self) -> float:
        total = max(1, self.units.manifest.rows)
        if self.allowed is not None:
            return len(self.allowed) / total
        return 1.0 if len(self.scopes) == len(self.units.manifest.scopes) else self._scope_share()

    def _scope_share(self) -> float:
        sample = self.units.column("rows")["scope"][:: max(1, self.units.manifest.rows // 1000)]
        return float(np.isin(sample, self.scopes).mean()) if len(sample) else 1.0

    def _overlay(self) -> tuple[Overlay, Batch]:
        batch = Batch(manifest=self.units.manifest)
        for unit in self.fresh.units:
            batch.add(unit)
        records = batch.records()
        vectors = None if self.fresh.vectors is None else np.asarray(self.fresh.vectors)
        return frames.Overlay(
            first=self.units.manifest.rows, records=records, codes=batch.codes, vectors=vectors
        ), batch

    def _weights(self, codes: Array, overlay: Overlay) -> tuple[Array, float]:
        others = self._others()
        rows, total = self.rows, self.rows + len(overlay.records) + len(others)
        counts = frequencies.containing(self.units, codes, self.scopes, rows)
        counts = counts + frames.presence(overlay, codes) + self._presence(others, codes)
        known = dict(zip(self.question.terms, counts.tolist(), strict=True))
        weights = term_weights(self.question.terms, self.question.previous, known, total, self.recipe)
        terms = self._terms_until(rows) + sum(map(len, overlay.codes)) + sum(len(c) for _, c in others)
        return np.array(weights, dtype=np.float32), max(1.0, terms / max(1, total))

    def _others(self) -> list[tuple[str, list[int]]]:
        """Scope and terms of every passage that only counts."""
        batch = Batch(manifest=self.units.manifest)
        for unit in self.fresh.others:
            batch.add(unit)
        return [(unit.scope, list(codes)) for unit, codes in zip(batch.units, batch.codes, strict=True)]

    def _presence(self, others: list[tuple[str, list[int]]], codes: Array) -> Array:
        seen = self.wanted.scopes
        sets = [set(terms) for scope, terms in others if seen is None or scope in seen]
        found: Array = np.array([sum(code in s for s in sets) for code in codes.tolist()], dtype=np.int64)
        return found

    def _terms_until(self, rows: int) -> int:
        if rows == 0:
            return 0
        last = self.units.column("rows")[rows - 1]
        return int(last["terms"]) + int(last["length"])

    def _said_by(self, frame: Frame, batch: Batch, speaker: str) -> Array:
        code = batch.speaker_code(speaker)
        return np.asarray(frame.heads["speaker"] == code, dtype=np.float32)

    def _eligible(self, frame: Frame) -> Array:
        """Which units the filters let through; an overlay is filtered by whoever hands it in."""
        if self.allowed is None:
            return np.ones(len(frame.starts), dtype=bool)
        heads = frame.rows[frame.starts]
        return np.isin(heads, self.allowed) | (heads >= self.units.manifest.rows)

    def _matches(
        self, frame: Frame, batch: Batch, parts: dict[str, Array], chosen: Array, limit: int
    ) -> list[Match]:
        score = np.sum(list(parts.values()), axis=0)
        places = np.flatnonzero(chosen)
        order = np.lexsort((frame.rows[frame.starts[places]], -score[places]))[:limit]
        return [self._match(frame, batch, parts, score, int(place)) for place in places[order]]

    def _match(self, frame: Frame, batch: Batch, parts: dict[str, Array], score: Array, place: int) -> Match:
        row = int(frame.rows[frame.starts[place]])
        record = frame.records[frame.starts[place]]
        stored = row < self.units.manifest.rows
        unit = None if stored else batch.units[row - self.units.manifest.rows]
        turn = int(record["turn"])
        return Match(
            memory=self.units.name_of(record).memory if unit is None else unit.memory,
            rev=int(record["rev"]),
            turn=None if turn < 0 else turn,
            passage=0,
            score=float(score[place]),
            parts={name: float(values[place]) for name, values in parts.items()},
        )


def _seconds(day: date) -> int:
    return int(datetime(day.year, day.month, day.day, tzinfo=UTC).timestamp())


def _unit_length(query: Any) -> Any:
    array = np.asarray(query, dtype=np.float32).reshape(-1)
    norm = float(np.linalg.norm(array))
    return array / norm if norm > 0 else array
