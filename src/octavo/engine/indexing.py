"""Indexing: words and vectors follow the ledger by watermark; what is not there yet is searched exactly."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from octavo.domain.memory import Memory
from octavo.domain.rules import STATE
from octavo.domain.units import End, Unit, Watermark, units_of
from octavo.engine.spine import Spine
from octavo.errors import Damaged, ModelFailed
from octavo.models.embedders import Embedder
from octavo.storage.codec import REDACTED
from octavo.storage.index import Index, clear, extend, passages_of
from octavo.storage.ledger import GENESIS
from octavo.storage.units import EMPTY, Units, open_units, writing
from octavo.storage.vectors import Vectors, append_vectors, checked_vectors, open_vectors

_log = logging.getLogger("octavo.indexing")
_PASS = 2_000  # revisions an indexing pass takes at a time
BATCH = 128  # passages embedded before they are published
_PROVED_ROWS = 200_000
_LONGEST = 4_000  # no text has more passages: a turn's length is bounded by the policy
_UNINDEXED = (STATE, "file")
VECTOR = "vector"

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lag:
    """How far the index is behind: versions without words, passages without a vector."""

    versions: int
    passages: int


class Indexing:
    """One account's index, followed by any number of readers and written by one at a time."""

    def __init__(self, spine: Spine, folder: Path, embedder: Embedder | None) -> None:
        self._spine = spine
        self._lock = threading.RLock()
        self._vectors: tuple[object, Vectors] | None = None
        self.folder = folder
        self.embedder = embedder
        self.index = Index(folder)
        self._is_proved = False
        self._known: Watermark | None = None  # the last watermark found to be of this ledger
        self.is_used = False  # nothing is embedded in the background before somebody recalls

    def watermark(self) -> Watermark:
        """The version the words have reached, made sure to be of this very ledger."""
        with self._lock:
            try:
                units = self.index.units()
                mark = units.manifest.watermark
                self._prove(units)
                if mark.version == 0 or mark == self._known or self._is_ours(mark):
                    self._known = mark
                    return mark
                _log.warning("index discarded reason=other-history version=%d", mark.version)
            except Damaged as error:
                _log.warning("index discarded reason=%s", type(error).__name__)
            self.discard()
            return EMPTY.watermark

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
            self._vectors = None
            self._is_proved = False

    def lag(self) -> Lag:
        """How far behind the index is."""
        mark = self.watermark()
        behind = self._spine.head().version - mark.version
        vectors = self.vectors()
        rows = self.index.units().manifest.rows
        return Lag(versions=behind, passages=rows - vectors.manifest.rows if vectors else rows)

    def catch_up(self, progress: Progress | None = None) -> None:
        """Bring words and vectors up to the ledger."""
        self.add_words(progress)
        self.add_vectors(progress)

    def add_words(self, progress: Progress | None = None) -> None:
        """Index the words of everything above the watermark, a bounded pass at a time."""
        head = self._spine.head().version
        while True:
            mark = self.watermark()
            if mark.version >= head:
                return
            upto = self._spine.state.version_after(mark.version, _PASS, head)
            new = list(self.units(mark.version, upto))
            ends = [
                End(memory=m, rev=r, valid_to=v) for m, r, v in self._spine.state.ended(mark.version, upto)
            ]
            reached = Watermark(version=upto, header=self._spine.ledger.hash_of(upto))
            extend(self.folder, new, ends, reached, since=mark)
            if progress:
                progress(upto, head)

    def add_vectors(self, progress: Progress | None = None, *, limit: int | None = None) -> int:
        """Embed passages that have no vector yet; returns how many are still missing."""
        if self.embedder is None or self._spine.read_only:
            return 0
        self.is_used = True
        done = 0
        while True:
            with writing(self.folder):
                vectors = self._open(self.embedder)
                rows = open_units(self.folder).manifest.rows
                first = vectors.manifest.rows
                if first >= rows or (limit is not None and done >= limit):
                    return rows - first
                count = min(BATCH, rows - first, BATCH if limit is None else limit - done)
                append_vectors(vectors, self._embedded(first, first + count))
            done += count
            if progress:
                progress(first + count, rows)

    def vectors(self) -> Vectors | None:
        """The vectors of the embedder in use, None without one."""
        if self.embedder is None:
            return None
        with self._lock:
            stamp = self._stamp(self.embedder)
            if self._vectors is None or self._vectors[0] != stamp:
                try:
                    self._vectors = (stamp, self._open(self.embedder))
                except Damaged as error:
                    _log.warning("vectors discarded reason=%s", type(error).__name__)
                    self._drop_vectors(self.embedder)
                    self._vectors = (self._stamp(self.embedder), self._open(self.embedder))
            return self._vectors[1]

    def embed(self, texts: Sequence[str]) -> Any:
        """Texts as vectors of length one; ModelFailed without an embedder."""
        if self.embedder is None:
            raise ModelFailed("there is no embedder", hint="recall goes on with words alone")
        return checked_vectors(self.embedder.embed(texts), self.embedder.dimension)

    def embed_units(self, units: Sequence[Unit], own: dict[tuple[str, int], Any]) -> Any:
        """One vector a passage, in the order of `passages_of`; those that callers gave stay as they are."""
        texts: list[str] = []
        given: list[tuple[int, Any]] = []
        for unit in units:
            passages = passages_of([unit])
            if (unit.memory, unit.rev) in own:
                given += [(len(texts) + n, own[unit.memory, unit.rev]) for n in range(len(passages))]
            texts += passages
        found = self.embed(texts)
        for place, vector in given:
            found[place] = checked_vectors(vector, found.shape[1])[0]
        return found

    def units(self, after: int, upto: int) -> Iterator[Unit]:
        """The units of every revision that became valid in (after, upto]."""
        places: dict[str, int] = {}
        for version, memory in self._spine.state.revisions_since(after, upto):
            yield from self.units_of(memory, version, places, after)

    def units_of(self, memory: Memory, version: int, places: dict[str, int], after: int) -> Iterator[Unit]:
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

    def own_vectors(self, memories: Iterable[Memory]) -> dict[tuple[str, int], Any]:
        """Vectors that callers handed in for this embedder, by revision."""
        name = self.embedder.name if self.embedder else None
        given = ((m, m.data.get(VECTOR)) for m in memories)
        return {
            (m.id, m.rev): v["values"] for m, v in given if isinstance(v, dict) and v.get("embedder") == name
        }

    def verify(self) -> list[str]:
        """What is wrong with the index: bytes, or revisions it should not hold or lacks."""
        problems: list[str] = []
        try:
            units = open_units(self.folder)
            units.verify()
            if (vectors := self.vectors()) is not None:
                vectors.verify()
            held = {(m, r) for m, r, _, _ in _names(units, 0, units.manifest.rows)}
        except Damaged as error:
            return [error.message]
        mark = units.manifest.watermark
        wanted = {
            (memory.id, memory.rev)
            for _, memory in self._spine.state.revisions_since(0, mark.version)
            if is_indexed(memory)
        }
        problems += [f"index/recall lacks revision {r} of {m}" for m, r in sorted(wanted - held)[:5]]
        problems += [f"index/recall holds revision {r} of {m}" for m, r in sorted(held - wanted)[:5]]
        return problems

    def _is_ours(self, mark: Watermark) -> bool:
        return (
            self._spine.ledger.exists(mark.version)
            and self._spine.ledger.hash_of(mark.version) == mark.header
        )

    def _embedded(self, first: int, last: int) -> Any:
        """The vectors of some rows, from the texts that the state holds for them."""
        names = _names(open_units(self.folder), first, last)
        units: list[Unit] = []
        memories: dict[tuple[str, int], Memory] = {}
        for memory_id, rev, turn in dict.fromkeys((m, r, t) for m, r, t, _ in names):
            memory = memories.get((memory_id, rev)) or self._spine.state.revision(memory_id, rev)
            memories[memory_id, rev] = memory
            units += [u for u in units_of(memory, valid_from=0) if u.turn == turn]
        passages = {(u.memory, u.rev, u.turn, n): t for u in units for n, t in enumerate(passages_of([u]))}
        own = self.own_vectors(memories.values())
        found = self.embed([passages.get(name, REDACTED) for name in names])
        for place, (memory_id, rev, _, _) in enumerate(names):
            if (memory_id, rev) in own:
                found[place] = checked_vectors(own[memory_id, rev], found.shape[1])[0]
        return found

    def _open(self, embedder: Embedder) -> Vectors:
        history = self._spine.ledger.hash_of(1) if self._spine.ledger.exists(1) else GENESIS
        return open_vectors(
            self._vector_folder(embedder),
            embedder=embedder.name,
            dimension=embedder.dimension,
            history=history,
        )

    def _vector_folder(self, embedder: Embedder) -> Path:
        return self.folder / f"vectors-{re.sub(r'[^A-Za-z0-9._-]', '_', embedder.name)[:80]}"

    def _stamp(self, embedder: Embedder) -> object:
        try:
            status = (self._vector_folder(embedder) / "manifest.json").stat()
        except FileNotFoundError:
            return None
        return (status.st_ino, status.st_mtime_ns)

    def _drop_vectors(self, embedder: Embedder) -> None:
        for path in self._vector_folder(embedder).glob("*"):
            path.unlink(missing_ok=True)


def is_indexed(memory: Memory) -> bool:
    """Whether recall can find a memory: it is alive, it says something, and it is no raw state."""
    return (
        not memory.gone
        and bool(memory.text)
        and memory.text != REDACTED
        and memory.category not in _UNINDEXED
    )


def _names(units: Units, first: int, last: int) -> list[tuple[str, int, int | None, int]]:
    """Which passage each row is: memory, revision, turn and the passage's number within it."""
    # Here and not at the top: numpy loads when something is indexed.
    import numpy as np

    start = max(0, first - _LONGEST)
    records = units.take(np.arange(start, last))
    found: list[tuple[str, int, int | None, int]] = []
    for record in records:
        turn = int(record["turn"])
        name = (units.name_of(record).memory, int(record["rev"]), None if turn < 0 else turn)
        before = found[-1] if found else None
        found.append((*name, before[3] + 1 if before and before[:3] == name else 0))
    return found[first - start :]
