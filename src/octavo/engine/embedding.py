"""What models make of the indexed passages: vectors, and token vectors for a second look.

They follow the passages; what an embedder fails on waits and is tried again.
"""

from __future__ import annotations

import hashlib
import logging
import re
import threading
from collections.abc import Callable, Iterable, Sequence, Set
from datetime import datetime
from pathlib import Path
from typing import Any, Generic, TypeVar

from octavo.domain.memory import Memory
from octavo.domain.query import Question
from octavo.domain.units import Unit, units_of
from octavo.engine.spine import Spine
from octavo.errors import BadVector, Damaged, ModelFailed
from octavo.libraries import Array, np
from octavo.models.embedders import Embedder
from octavo.models.rerank import TokenReranker
from octavo.storage import retries
from octavo.storage.codec import REDACTED, micros, moment_of
from octavo.storage.columns import Columns, Latest, writing
from octavo.storage.index import passages_of
from octavo.storage.ledger import GENESIS
from octavo.storage.rows import Units, open_units
from octavo.storage.tokens import Encoded, Tokens, append_tokens
from octavo.storage.vectors import (
    ModelManifest,
    Vectors,
    append_vectors,
    checked_vectors,
    fill_vectors,
    held_vectors,
)

_log = logging.getLogger("octavo.embedding")
BATCH = 128  # passages that a model is given before what it made is published
VECTOR = "vector"
_PROBE = "hello"  # what every embedder can embed, to tell a text it cannot from a model that is out
_NAMED = 5
_KEPT = 1_024

Progress = Callable[[int, int], None]
Passage = tuple[str, int, int | None, int]  # memory, revision, turn, and the passage's number within it


V = TypeVar("V", bound=Columns[Any])


class Following(Generic[V]):
    """What one model makes of the indexed passages, as it is published now; damaged columns are made anew."""

    columns: type[V]

    def __init__(self, spine: Spine, index: Path, model: Embedder | TokenReranker) -> None:
        self._spine, self._model = spine, model
        self._lock, self._adding = threading.RLock(), threading.Lock()
        self.index = index
        name = re.sub(r"[^A-Za-z0-9._-]", "_", model.name)[:80]
        self.folder = index / f"{self.columns.__name__.lower()}-{name}"
        self.now = Latest(self.folder / "manifest.json", self._healed)

    def verify(self, rows: int) -> None:
        """Raise `Damaged` unless every byte is what was written, for passages that are indexed."""
        published = self._open(self.folder)
        published.verify()
        if published.manifest.rows > rows:
            raise Damaged(f"{self.folder.name} is about passages that are not indexed")

    def add(self, progress: Progress | None = None, *, limit: int | None = None) -> int:
        """Make what is missing for passages that are indexed; returns how many could be tried still.

        The model works outside the write lock: nobody who indexes waits for it, and no two threads ask it
        the same. Whichever process was quicker wins; what belongs to an index that is no more is thrown away.
        """
        done = 0
        while True:
            with self._adding:
                before, total = self._healed(), open_units(self.index).manifest.rows
                again, new = self._work(before, total)
                if not (again or new) or (limit is not None and done >= limit):
                    return len(again) + len(new)
                rows = (again or new)[: BATCH if limit is None else min(BATCH, limit - done)]
                made = self._made(rows)
                with writing(self.index):
                    now = self._healed()
                    if now.manifest == before.manifest and open_units(self.index).manifest.rows >= total:
                        self._keep(now, rows, made)
            done += len(rows)
            if progress:
                progress(rows[-1] + 1, total)

    def missing(self, rows: int) -> int:
        """How many of the indexed passages nobody looked at yet."""
        return max(0, rows - int(self.now().manifest.rows))

    def _made(self, rows: Sequence[int]) -> Any:
        raise NotImplementedError

    def _keep(self, columns: V, rows: Sequence[int], made: Any) -> None:
        raise NotImplementedError

    def _work(self, columns: V, total: int) -> tuple[list[int], range]:
        """The rows to try again now, and those never tried."""
        return [], range(columns.manifest.rows, total)

    def _open(self, folder: Path) -> V:
        """What is published in a folder by this model, of this ledger and no other."""
        model, ledger = self._model, self._spine.ledger
        history = ledger.hash_of(1) if ledger.exists(1) else GENESIS
        fresh = ModelManifest(model=model.name, dimension=model.dimension, history=history)
        return self.columns.open(folder, fresh)

    def _healed(self) -> V:
        try:
            return self._open(self.folder)
        except Damaged as error:
            return self._dropped(error)

    def _dropped(self, error: Damaged) -> V:
        """Nothing, because it is damaged."""
        _log.warning("discarded %s reason=%s", self.folder.name, type(error).__name__)
        if self._spine.read_only:
            return self._open(self.folder / "nothing")
        for path in self.folder.glob("*"):
            path.unlink(missing_ok=True)
        return self._open(self.folder)


class Embedding(Following[Vectors]):
    """The vectors of one embedder for one account's index."""

    columns = Vectors

    def __init__(self, spine: Spine, index: Path, embedder: Embedder) -> None:
        super().__init__(spine, index, embedder)
        self.embedder = embedder
        self._kept: dict[bytes, Any] = {}  # vectors of texts that no index holds yet, by the texts' hashes

    def missing(self, rows: int) -> int:
        """How many of the indexed passages have no vector."""
        vectors = self.now()
        return max(0, rows - vectors.manifest.rows) + len(vectors.lacking)

    def has_work(self, rows: int) -> bool:
        """Whether some of the indexed passages could be embedded now, as far as is published."""
        return any(self._work(self.now(), rows))

    def make_due(self) -> None:
        """Let everything that waits, or was given up, be tried at once; the model too."""
        with writing(self.index):
            vectors = self._healed()
            if vectors.manifest.retries:
                vectors.publish(retries=retries.made_due(vectors.manifest.retries, self._spine.now()))

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

    def held(self, told: Iterable[tuple[Memory, Unit]], ends: Set[tuple[str, int]]) -> Vectors:
        """Vectors of what is not indexed, one a passage; none of what ended."""
        passages = [(memory, text) for memory, unit in told for text in passages_of([unit])]
        live = [place for place, (memory, _) in enumerate(passages) if (memory.id, memory.rev) not in ends]
        vectors = np.zeros((len(passages), self.embedder.dimension), dtype=np.float32)
        if live:
            vectors[live] = self._embedded([passages[place] for place in live])
        return held_vectors(self.now(), vectors)

    def _embedded(self, passages: Sequence[tuple[Memory, str]]) -> Array:
        """The vectors of some passages of memories, each embedded once; those that callers gave stay."""
        names = [hashlib.blake2b(text.encode(), digest_size=16).digest() for _, text in passages]
        texts = {name: text for name, (_, text) in zip(names, passages, strict=True)}
        with self._lock:
            if len(self._kept) + len(texts) > _KEPT:
                self._kept.clear()
            if new := [name for name in texts if name not in self._kept]:
                self._kept.update(zip(new, self.embed([texts[name] for name in new]), strict=True))
            vectors = np.array([self._kept[name] for name in names]).reshape(len(names), -1)
        for place, (memory, _) in enumerate(passages):
            given = memory.data.get(VECTOR)
            if isinstance(given, dict) and given.get("embedder") == self.embedder.name:
                vectors[place] = checked_vectors(given["values"], vectors.shape[1])[0]
        return vectors

    def updated(self, rows: Sequence[int]) -> datetime | None:
        """When the last of some rows got its vector, None if one has none."""
        vectors = self.now()
        if not rows or max(rows) >= vectors.manifest.rows:
            return None
        times = vectors.column("times")[list(rows)]
        return moment_of(int(times.max())) if times.all() else None

    def verified(self) -> datetime | None:
        """When all the vectors were last verified."""
        at = self.now().manifest.verified
        return moment_of(at) if at else None

    def stamp(self) -> None:
        """Note that the vectors were verified just now; the caller holds the write lock."""
        vectors = self._open(self.folder)
        if vectors.manifest.rows:
            vectors.publish(verified=micros(self._spine.now()))

    def notes(self) -> list[str]:
        """What a person should know of passages without vectors; nothing while they are damaged."""
        try:
            vectors, units = self._open(self.folder), open_units(self.index)
        except Damaged:
            return []  # `verify` names it
        kept = retries.without_model(vectors.manifest.retries)
        found = [] if (out := self.outage()) is None else [out]
        fates = ("tried again later", "given up, `octavo catch-up --force` tries again")
        for is_dead, then in enumerate(fates):
            if rows := [retry.row for retry in kept if retry.is_dead == is_dead]:
                ids = list(dict.fromkeys(memory for memory, *_ in names_of(units, rows)))
                named = ", ".join(ids[:_NAMED]) + (" …" if len(ids) > _NAMED else "")
                have = "passage has" if len(rows) == 1 else "passages have"
                found.append(f"{len(rows)} {have} no vector: {named}; {then}")
        return found

    def outage(self) -> str | None:
        """What there is to say while the model is out and not to be asked."""
        out = retries.outage(self.now().manifest.retries, self._spine.now())
        if out is None or out.next_at is None:
            return None
        return (
            f"the embedder {self.embedder.name} failed {out.attempts} times in a row ({out.error}); "
            f"tried again after {moment_of(out.next_at):%Y-%m-%d %H:%M:%S} UTC"
        )

    def _work(self, columns: Vectors, total: int) -> tuple[list[int], range]:
        """The rows to try again now, and those never tried; none while the model is out."""
        manifest, now = columns.manifest, self._spine.now()
        if retries.outage(manifest.retries, now):
            return [], range(0)
        return retries.due(manifest.retries, now), range(manifest.rows, total)

    def _made(self, rows: Sequence[int]) -> tuple[Array, dict[int, str]]:
        """The vectors of some rows, and the class of the error for each that has none.

        A passage that cannot be embedded holds up nobody: it gets a retry and is tried again later. When
        the model itself is out, that is noted, `ModelFailed` is raised, and nothing is tried for a while.
        """
        try:
            made, failed = self._tried(texts_of(self._spine, self.index, rows))
        except ModelFailed as error:
            with writing(self.index):
                vectors, failure = self._healed(), {retries.MODEL: type(error).__name__}
                after = retries.after_attempt(vectors.manifest.retries, [], failure, self._spine.now())
                vectors.publish(retries=after)
            _log.warning("embedding stopped rows=%d error=%s", len(rows), type(error).__name__)
            raise
        if failed:
            _log.warning("embedding failed rows=%d of=%d", len(failed), len(rows))
        return made, {rows[place]: error for place, error in failed.items()}

    def _keep(self, columns: Vectors, rows: Sequence[int], made: tuple[Array, dict[int, str]]) -> None:
        """Publish what an attempt on some rows brought, all of them old or all of them new."""
        now = self._spine.now()
        kept = retries.after_attempt(columns.manifest.retries, rows, made[1], now)
        try:
            if rows[0] >= columns.manifest.rows:
                append_vectors(columns, made[0], at=micros(now), retries=kept)
            else:
                fill_vectors(columns, rows, made[0], at=micros(now), retries=kept)
        except Damaged as error:
            self._dropped(error)

    def _tried(self, passages: Sequence[tuple[Memory, str]]) -> tuple[Array, dict[int, str]]:
        """The vectors of some passages, and by its place the class of the error of each that has none.

        What fails together is tried in halves, down to the single text; `ModelFailed` if the model is out.
        """
        try:
            return self._embedded(passages), {}
        except (ModelFailed, BadVector) as error:
            self.embed([_PROBE])
            if len(passages) == 1:
                return np.zeros((1, self.embedder.dimension)), {0: type(error).__name__}
        half = len(passages) // 2
        first, failed = self._tried(passages[:half])
        second, more = self._tried(passages[half:])
        failed |= {half + place: error for place, error in more.items()}
        return np.concatenate([first, second]), failed


class SecondLook(Following[Tokens]):
    """The token vectors of one reranker for one account's index; a question is all that recall encodes."""

    columns = Tokens

    def __init__(self, spine: Spine, index: Path, reranker: TokenReranker) -> None:
        super().__init__(spine, index, reranker)
        self.reranker = reranker

    def ask(self, question: Question) -> Encoded | None:
        """The tokens of a question, None if the model does not read its script."""
        if not self.reranker.reads(question.text):
            return None
        return self._encoded([question.phrasings[0]])[0]

    def _made(self, rows: Sequence[int]) -> list[Encoded]:
        return self._encoded([text for _, text in texts_of(self._spine, self.index, rows)])

    def _keep(self, columns: Tokens, rows: Sequence[int], made: list[Encoded]) -> None:
        append_tokens(columns, made)

    def _encoded(self, texts: list[str]) -> list[Encoded]:
        """The tokens of each text, none of one that the model does not read."""
        none = (np.empty(0), np.empty((0, self.reranker.dimension)))
        read = [place for place, text in enumerate(texts) if self.reranker.reads(text)]
        found = dict(zip(read, self.reranker.encode([texts[place] for place in read]), strict=True))
        for ids, vectors in found.values():
            if np.shape(vectors) != (len(ids), self.reranker.dimension) or not np.isfinite(vectors).all():
                raise ModelFailed(f"the reranker {self.reranker.name} gave no usable vectors for the tokens")
        return [found.get(place, none) for place in range(len(texts))]


def texts_of(spine: Spine, index: Path, rows: Sequence[int]) -> list[tuple[Memory, str]]:
    """The texts of some rows as the state holds them, each with the memory it is of."""
    names = names_of(open_units(index), rows)
    revisions = dict.fromkeys((memory, rev) for memory, rev, _, _ in names)
    memories = {(memory, rev): spine.state.revision(memory, rev) for memory, rev in revisions}
    texts = {
        (*revision, unit.turn, number): text
        for revision, memory in memories.items()
        for unit in units_of(memory, valid_from=0)
        for number, text in enumerate(passages_of([unit]))
    }
    return [(memories[name[:2]], texts.get(name, REDACTED)) for name in names]


def names_of(units: Units, rows: Sequence[int]) -> list[Passage]:
    """Which passage each row is."""
    found: list[Passage] = []
    for record in units.take(np.array(rows, dtype=np.int64)):
        turn = int(record["turn"])
        name = (units.memory_of(record), int(record["rev"]), None if turn < 0 else turn)
        found.append((*name, int(record["passage"])))
    return found
