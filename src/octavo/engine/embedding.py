"""Embedding: the vectors of one embedder follow the indexed passages; what fails waits and is tried again."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octavo.domain.memory import Memory
from octavo.domain.units import Unit, units_of
from octavo.engine.spine import Spine
from octavo.errors import BadVector, Damaged, ModelFailed
from octavo.storage import letters
from octavo.storage.codec import REDACTED
from octavo.storage.index import passages_of
from octavo.storage.ledger import GENESIS
from octavo.storage.units import Units, open_units, writing
from octavo.storage.vectors import (
    Vectors,
    append_vectors,
    checked_vectors,
    fill_vectors,
    keep_letters,
    open_vectors,
    stamp_vectors,
)

if TYPE_CHECKING:
    from octavo.models.embedders import Embedder

_log = logging.getLogger("octavo.embedding")
BATCH = 128  # passages embedded before they are published
VECTOR = "vector"
_PROBE = "hello"  # what every embedder can embed, to tell a text it cannot from a model that is out
_NAMED = 5

Progress = Callable[[int, int], None]
Passage = tuple[str, int, int | None, int]  # memory, revision, turn, and the passage's number within it


class Embedding:
    """The vectors of one embedder for one account's index."""

    def __init__(self, spine: Spine, folder: Path, embedder: Embedder) -> None:
        self._spine = spine
        self._lock = threading.RLock()
        self._held: tuple[object, Vectors] | None = None
        self._index = folder
        self.embedder = embedder
        self.folder = folder / f"vectors-{re.sub(r'[^A-Za-z0-9._-]', '_', embedder.name)[:80]}"
        self._manifest = self.folder / "manifest.json"

    def vectors(self) -> Vectors:
        """The vectors as they are published now; none if they are damaged, they are made anew."""
        with self._lock:
            stamp = self._stamp()
            if self._held is None or self._held[0] != stamp:
                self._held = (stamp, self._healed())
            return self._held[1]

    def forget(self) -> None:
        """Look at the files again."""
        self._held = None

    def missing(self, rows: int) -> int:
        """How many of the indexed passages have no vector."""
        vectors = self.vectors()
        return rows - vectors.manifest.rows + len(vectors.lacking)

    def has_work(self, rows: int) -> bool:
        """Whether some of the indexed passages could be embedded now, as far as is published."""
        return any(self._work(self.vectors(), rows))

    def add(self, progress: Progress | None = None, *, limit: int | None = None) -> int:
        """Embed passages that have no vector yet; returns how many could be tried still.

        A passage that cannot be embedded holds up nobody: it gets a letter and is tried again later. When
        the model itself is out, that is noted, `ModelFailed` is raised, and nothing is tried for a while.
        """
        done = 0
        while True:
            with writing(self._index):
                vectors = self._healed()
                total = open_units(self._index).manifest.rows
                again, new = self._work(vectors, total)
                if not (again or new) or (limit is not None and done >= limit):
                    return len(again) + len(new)
                rows = (again or new)[: BATCH if limit is None else min(BATCH, limit - done)]
                vectors = self._extended(vectors, rows)
            done += len(rows)
            if progress:
                progress(vectors.manifest.rows, total)

    def embed(self, texts: Sequence[str]) -> Any:
        """Texts as vectors of length one; `ModelFailed` if the embedder does not give one for each."""
        name = self.embedder.name
        try:
            found = checked_vectors(self.embedder.embed(texts), self.embedder.dimension)
        except BadVector as error:
            raise ModelFailed(f"the embedder {name} gave no usable vectors: {error.message}") from error
        if len(found) != len(texts):
            raise ModelFailed(f"the embedder {name} gave {len(found)} vectors for {len(texts)} texts")
        return found

    def embed_units(self, units: Sequence[Unit], memories: Iterable[Memory]) -> Any:
        """One vector a passage, in the order of `passages_of`; those that callers gave stay as they are."""
        own = self._own(memories)
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

    def updated(self, rows: Sequence[int]) -> datetime | None:
        """When the last of some rows got its vector, None if one has none."""
        vectors = self.vectors()
        if not rows or max(rows) >= vectors.manifest.rows:
            return None
        times = vectors.times[list(rows)]
        return letters.moment(int(times.max())) if times.all() else None

    def verified(self) -> datetime | None:
        """When all the vectors were last verified."""
        at = self.vectors().manifest.verified
        return letters.moment(at) if at else None

    def stamp(self) -> None:
        """Note that the vectors were verified just now; the caller holds the write lock."""
        vectors = self._open()
        if vectors.manifest.rows:
            stamp_vectors(vectors, letters.micros(self._spine.now()))

    def verify(self, rows: int) -> None:
        """Raise `Damaged` unless the vectors are what was written, for passages that are indexed."""
        vectors = self._open()
        vectors.verify()
        if vectors.manifest.rows > rows:
            raise Damaged(f"{self.folder.name} holds vectors of passages that are not indexed")

    def notes(self) -> list[str]:
        """What a person should know of passages without vectors; nothing while they are damaged."""
        try:
            vectors, units = self._open(), open_units(self._index)
        except Damaged:
            return []  # `verify` names it
        kept = letters.without_model(vectors.manifest.letters)
        dead = [letter.row for letter in kept if letter.is_dead]
        waiting = [letter.row for letter in kept if not letter.is_dead]
        found = [] if (out := self.outage()) is None else [out]
        if waiting:
            found.append(f"{_told(units, waiting)}; tried again later")
        if dead:
            found.append(f"{_told(units, dead)}; given up, `octavo reindex` tries again")
        return found

    def outage(self) -> str | None:
        """What there is to say while the model is out and not to be asked."""
        out = letters.outage(self.vectors().manifest.letters, self._spine.now())
        if out is None or out.next_at is None:
            return None
        return (
            f"the embedder {self.embedder.name} failed {out.attempts} times in a row ({out.error}); "
            f"tried again after {letters.moment(out.next_at):%Y-%m-%d %H:%M:%S} UTC"
        )

    def _work(self, vectors: Vectors, total: int) -> tuple[list[int], range]:
        """The rows to try again now, and those never tried; none while the model is out."""
        manifest, now = vectors.manifest, self._spine.now()
        if letters.outage(manifest.letters, now):
            return [], range(0)
        return letters.due(manifest.letters, now), range(manifest.rows, total)

    def _extended(self, vectors: Vectors, rows: Sequence[int]) -> Vectors:
        """The vectors after an attempt on some rows, all of them old or all of them new."""
        old, now = vectors.manifest.letters, self._spine.now()
        try:
            found, failed = self._tried(rows)
        except ModelFailed as error:
            keep_letters(vectors, letters.settled(old, [], {letters.MODEL: type(error).__name__}, now))
            _log.warning("embedding stopped rows=%d error=%s", len(rows), type(error).__name__)
            raise
        if failed:
            _log.warning("embedding failed rows=%d of=%d", len(failed), len(rows))
        kept, at = letters.settled(old, rows, failed, now), letters.micros(now)
        if rows[0] >= vectors.manifest.rows:
            return append_vectors(vectors, found, at=at, letters=kept)
        try:
            return fill_vectors(vectors, rows, found, at=at, letters=kept)
        except Damaged as error:
            return self._dropped(error)

    def _tried(self, rows: Sequence[int]) -> tuple[Any, dict[int, str]]:
        """The vectors of some rows, and the class of the error for each that has none.

        What fails together is tried in halves, down to the single text; `ModelFailed` if the model is out.
        """
        import numpy as np  # when something is embedded, not at start-up

        try:
            return self._embedded(rows), {}
        except (ModelFailed, BadVector) as error:
            self.embed([_PROBE])
            if len(rows) == 1:
                return np.zeros((1, self.embedder.dimension)), {rows[0]: type(error).__name__}
        half = len(rows) // 2
        first, failed = self._tried(rows[:half])
        second, more = self._tried(rows[half:])
        return np.concatenate([first, second]), failed | more

    def _embedded(self, rows: Sequence[int]) -> Any:
        """The vectors of some rows, from the texts that the state holds for them."""
        names = names_of(open_units(self._index), rows)
        units: list[Unit] = []
        memories: dict[tuple[str, int], Memory] = {}
        for memory_id, rev, turn in dict.fromkeys((m, r, t) for m, r, t, _ in names):
            memory = memories.get((memory_id, rev)) or self._spine.state.revision(memory_id, rev)
            memories[memory_id, rev] = memory
            units += [u for u in units_of(memory, valid_from=0) if u.turn == turn]
        passages = {(u.memory, u.rev, u.turn, n): t for u in units for n, t in enumerate(passages_of([u]))}
        own = self._own(memories.values())
        found = self.embed([passages.get(name, REDACTED) for name in names])
        for place, (memory_id, rev, _, _) in enumerate(names):
            if (memory_id, rev) in own:
                found[place] = checked_vectors(own[memory_id, rev], found.shape[1])[0]
        return found

    def _own(self, memories: Iterable[Memory]) -> dict[tuple[str, int], Any]:
        """Vectors that callers handed in for this embedder, by revision."""
        name = self.embedder.name
        given = ((m, m.data.get(VECTOR)) for m in memories)
        return {
            (m.id, m.rev): v["values"] for m, v in given if isinstance(v, dict) and v.get("embedder") == name
        }

    def _open(self, folder: Path | None = None) -> Vectors:
        ledger = self._spine.ledger
        return open_vectors(
            folder or self.folder,
            embedder=self.embedder.name,
            dimension=self.embedder.dimension,
            history=ledger.hash_of(1) if ledger.exists(1) else GENESIS,
        )

    def _healed(self) -> Vectors:
        try:
            return self._open()
        except Damaged as error:
            return self._dropped(error)

    def _dropped(self, error: Damaged) -> Vectors:
        """No vectors, because they are damaged."""
        _log.warning("vectors discarded reason=%s", type(error).__name__)
        if self._spine.read_only:
            return self._open(self.folder / "nothing")
        for path in self.folder.glob("*"):
            path.unlink(missing_ok=True)
        return self._open()

    def _stamp(self) -> object:
        try:
            status = self._manifest.stat()
        except FileNotFoundError:
            return None
        return (status.st_ino, status.st_mtime_ns)


@dataclass(frozen=True, slots=True, kw_only=True)
class Meaning:
    """The question as a vector, and whose vectors it can be compared with."""

    query: Any
    source: Embedding | None


def names_of(units: Units, rows: Sequence[int]) -> list[Passage]:
    """Which passage each row is."""
    import numpy as np  # likewise

    found: list[Passage] = []
    for record in units.take(np.array(rows, dtype=np.int64)):
        turn = int(record["turn"])
        name = (units.name_of(record).memory, int(record["rev"]), None if turn < 0 else turn)
        found.append((*name, int(record["passage"])))
    return found


def _told(units: Units, rows: Sequence[int]) -> str:
    """How many passages have no vector, and whose they are."""
    ids = list(dict.fromkeys(memory for memory, *_ in names_of(units, rows)))
    named = ", ".join(ids[:_NAMED]) + (" …" if len(ids) > _NAMED else "")
    return f"{len(rows)} {'passage has' if len(rows) == 1 else 'passages have'} no vector: {named}"
