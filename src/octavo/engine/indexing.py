"""Indexing: words and vectors follow the ledger by watermark; what is not there yet is searched exactly."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from octavo.domain.memory import STATE, Memory
from octavo.domain.units import End, Spoken, Unit, Watermark, units_of
from octavo.engine import collector
from octavo.engine.spine import Spine
from octavo.errors import Damaged, ModelFailed
from octavo.later import Later
from octavo.storage.codec import REDACTED
from octavo.storage.index import Index, clear, extend
from octavo.storage.units import Units, open_units, writing

if TYPE_CHECKING:
    from octavo.engine import embedding as embeddings
    from octavo.engine import freshness as freshnesses
    from octavo.engine.embedding import Embedding, Progress
    from octavo.engine.freshness import Freshness, Lag
    from octavo.models import embedders
    from octavo.models.embedders import Embedder
    from octavo.storage import letters
else:
    # Words alone need no embedder, and few ask how fresh they are.
    embeddings = Later("octavo.engine.embedding")
    freshnesses = Later("octavo.engine.freshness")
    embedders = Later("octavo.models.embedders")
    letters = Later("octavo.storage.letters")

_log = logging.getLogger("octavo.indexing")
_PASS = 50_000  # revisions an indexing pass takes at a time: fewer passes, fewer parts to search
_PROVED_ROWS = 200_000
_UNINDEXED = (STATE, "file")
_NAMED = 5


class Indexing:
    """One account's index, followed by any number of readers and written by one at a time."""

    def __init__(self, spine: Spine, folder: Path, embedder: Embedder | None) -> None:
        self._spine = spine
        self._lock = threading.RLock()
        self.folder = folder
        self.embedding = None if embedder is None else embeddings.Embedding(spine, folder, embedder)
        self._elder: Embedding | None = None
        self.index = Index(folder)
        self._is_proved = False
        self._known: Watermark | None = None  # the last watermark found to be of this ledger
        self.is_used = False  # nothing is embedded in the background before somebody recalls

    def watermark(self) -> Watermark:
        """The version the words have reached, made sure to be of this very ledger."""
        return self.units_now().manifest.watermark

    def units_now(self) -> Units:
        """What is indexed now, made sure to be of this very ledger."""
        with self._lock:
            try:
                units = self.index.units()
                mark = units.manifest.watermark
                self._prove(units)
                if mark.version == 0 or mark == self._known or self._is_ours(mark):
                    self._known = mark
                    return units
                _log.warning("index discarded reason=other-history version=%d", mark.version)
            except Damaged as error:
                _log.warning("index discarded reason=%s", type(error).__name__)
            self.discard()
            return self.index.units()

    def _prove(self, units: Units) -> None:
        """Verify every byte once a process, unless that would take long: then `check` and upkeep do."""
        if not self._is_proved and units.manifest.rows <= _PROVED_ROWS:
            units.verify()
        self._is_proved = True

    def discard(self) -> None:
        """Throw the index away; everything in it comes from the ledger."""
        with self._lock:
            if self._spine.read_only:
                self.index = Index(self.folder / "nothing")  # read as if there were none
            else:
                clear(self.folder)
                self.index = Index(self.folder)
            for embedding in (self.embedding, self._elder):
                if embedding is not None:
                    embedding.forget()
            self._is_proved = False

    def lag(self) -> Lag:
        """How far behind the index is."""
        mark = self.watermark()
        behind = self._spine.head().version - mark.version
        if self.embedding is None:
            return freshnesses.Lag(versions=behind, passages=self.index.units().manifest.rows)
        kept = letters.without_model(self.embedding.vectors().manifest.letters)
        dead = sum(letter.is_dead for letter in kept)
        return freshnesses.Lag(
            versions=behind,
            passages=self.missing(),
            waiting=len(kept) - dead,
            dead=dead,
            verified_at=self.embedding.verified(),
        )

    def missing(self) -> int:
        """How many indexed passages have no vector of the embedder in use."""
        return self.embedding.missing(self.index.units().manifest.rows) if self.embedding else 0

    def freshness(self, *memories: Memory) -> list[Freshness]:
        """What the index holds of some memories."""
        self.watermark()
        revisions = [(memory.id, rev) for memory in memories for rev in range(1, memory.rev + 1)]
        held: dict[str, list[tuple[int, int]]] = {}
        for row, (id_, rev) in self.index.units().rows_of(revisions):
            held.setdefault(id_, []).append((rev, row))
        return [self._freshness(memory, held.get(memory.id, [])) for memory in memories]

    def _freshness(self, memory: Memory, held: Sequence[tuple[int, int]]) -> Freshness:
        newest = max((rev for rev, _ in held), default=None)
        rows = [row for rev, row in held if rev == newest]
        updated = self.embedding.updated(rows) if self.embedding else None
        verified = self.embedding.verified() if self.embedding else None
        age = None
        if updated is not None:
            age = (self._spine.now() - max(updated, verified or updated)).total_seconds()
        longest = self._spine.policy.index.max_allowed_drift_seconds
        return freshnesses.Freshness(
            memory=memory.id,
            rev=memory.rev,
            indexed_rev=newest,
            vector_index_updated_at=updated,
            verified_at=verified,
            age_seconds=age,
            is_drifted=age is not None and longest is not None and age > longest,
        )

    def serving(self) -> Embedding | None:
        """Who compares by meaning: the embedder in use, or the offline default while that has more vectors.

        After a change of the embedder the default's vectors serve until the new ones are made.
        """
        own = self.embedding
        if own is None or own.embedder.name == embedders.OFFLINE_NAME or not self.missing():
            return own
        if self._elder is None and embedders.is_offline_installed():
            self._elder = embeddings.Embedding(self._spine, self.folder, embedders.offline_embedder())
        rows = self.index.units().manifest.rows
        return self._elder if self._elder and self._elder.missing(rows) < own.missing(rows) else own

    def catch_up(self, progress: Progress | None = None) -> None:
        """Bring words and vectors up to the ledger; `ModelFailed` while the model is out."""
        self.add_words(progress)
        self.add_vectors(progress)
        if self.embedding is not None and (out := self.embedding.outage()):
            raise ModelFailed(out)

    def rebuild(self, progress: Progress | None = None) -> None:
        """Throw the index away and make it anew; a model that is out leaves its vectors for later."""
        self.discard()
        self.add_words(progress)
        try:
            self.add_vectors(progress)
        except ModelFailed as error:
            _log.warning("rebuilt without vectors error=%s", type(error).__name__)

    def add_words(self, progress: Progress | None = None) -> None:
        """Index the words of everything above the watermark, a bounded pass at a time."""
        head = self._spine.head().version
        while True:
            mark = self.watermark()
            if mark.version >= head:
                return
            upto = self._spine.state.version_after(mark.version, _PASS, head)
            self._add_words(mark, upto)
            if progress:
                progress(upto, head)

    @collector.held()
    def _add_words(self, mark: Watermark, upto: int) -> None:
        """One pass: words and ends of the versions behind the watermark up to one of them."""
        new = self.units(mark.version, upto)
        ends = [End(memory=m, rev=r, valid_to=v) for m, r, v in self._spine.state.ended(mark.version, upto)]
        reached = Watermark(version=upto, header=self._spine.ledger.hash_of(upto))
        extend(self.folder, new, ends, reached, since=mark)

    def add_vectors(self, progress: Progress | None = None, *, limit: int | None = None) -> int:
        """Embed passages that have no vector yet; returns how many could be tried still."""
        if self.embedding is None or self._spine.read_only:
            return 0
        self.is_used = True
        if limit is not None and not self.embedding.has_work(self.index.units().manifest.rows):
            return 0  # most recalls find nothing to do, and need no lock to know it
        return self.embedding.add(progress, limit=limit)

    def units(self, after: int, upto: int) -> Iterator[Unit]:
        """The units of every revision that became valid in (after, upto]."""
        places: dict[str, int] = {}
        for version, memory in self._spine.state.spoken_since(after, upto):
            yield from self.units_of(memory, version, places, after)

    def units_of(
        self, memory: Memory | Spoken, version: int, places: dict[str, int], after: int
    ) -> Iterator[Unit]:
        """The units of one revision; `places` counts the turns of each session so far."""
        if not is_indexed(memory):
            return
        position = 0
        if memory.turns and memory.session is not None:
            if memory.session not in places:
                places[memory.session] = self._spine.state.turns_of(memory.session, after)
            position = places[memory.session]
            places[memory.session] += len(memory.turns)
        yield from units_of(memory, valid_from=version, position=position)

    def verify(self, *, stamp: bool = False) -> list[str]:
        """What is wrong with the index: bytes, or revisions it should not hold or lacks.

        That changes nothing, unless `stamp` is asked for: then vectors that are right are noted as verified.
        """
        is_alone = self._spine.read_only or not self.folder.exists()
        still: AbstractContextManager[None] = nullcontext() if is_alone else writing(self.folder)
        try:
            with still:
                problems = self._problems()
                if stamp and not problems and not is_alone and self.embedding is not None:
                    self.embedding.stamp()
                return problems
        except Damaged as error:
            return [f"index/recall: {error.message}"]

    def notes(self) -> list[str]:
        """What a person should know of passages that have no vector."""
        return self.embedding.notes() if self.embedding else []

    def _problems(self) -> list[str]:
        units = open_units(self.folder)
        units.verify()
        mark = units.manifest.watermark
        if mark.version and not self._is_ours(mark):
            return [f"index/recall was made from another version {mark.version}"]
        Index(self.folder).words()
        if self.embedding is not None:
            self.embedding.verify(units.manifest.rows)
        held = {(m, r) for m, r, _, _ in embeddings.names_of(units, range(units.manifest.rows))}
        wanted = {
            (memory.id, memory.rev)
            for _, memory in self._spine.state.spoken_since(0, mark.version)
            if is_indexed(memory)
        }
        lacks, ghosts = sorted(wanted - held), sorted(held - wanted)
        found = [f"index/recall lacks revision {r} of {m}" for m, r in lacks[:_NAMED]]
        found += [f"index/recall holds revision {r} of {m}, which is none" for m, r in ghosts[:_NAMED]]
        more = sum(max(0, len(some) - _NAMED) for some in (lacks, ghosts))
        return [*found, f"index/recall differs in {more} revisions more"] if more else found

    def _is_ours(self, mark: Watermark) -> bool:
        return (
            self._spine.ledger.exists(mark.version)
            and self._spine.ledger.hash_of(mark.version) == mark.header
        )


def is_indexed(memory: Memory | Spoken) -> bool:
    """Whether recall can find a memory: it is alive, it says something, and it is no raw state."""
    return (
        not memory.gone
        and bool(memory.text or memory.turns)
        and memory.text != REDACTED
        and memory.category not in _UNINDEXED
    )
