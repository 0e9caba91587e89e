"""Indexing: words and vectors follow the ledger by watermark; what is not there yet is searched exactly."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from pathlib import Path
from typing import TypeVar

import msgspec

from octavo.domain.erasure import Erasure
from octavo.domain.memory import STATE, Memory
from octavo.domain.units import Unit, Watermark, units_of
from octavo.engine import embedding as embeddings
from octavo.engine.asking import Asking
from octavo.engine.composing import Composing
from octavo.engine.embedding import Embedding, Progress, SecondLook
from octavo.engine.freshness import Freshness, Lag
from octavo.engine.spine import Spine, without_gc
from octavo.errors import Damaged, LedgerDamaged, ModelFailed
from octavo.models import embedders
from octavo.models.embedders import Embedder
from octavo.models.rerank import TokenReranker
from octavo.storage import retries
from octavo.storage.codec import REDACTED
from octavo.storage.columns import damaged, writing
from octavo.storage.index import Index, beside, current, extend, swap
from octavo.storage.index import clear as clear_index
from octavo.storage.rows import Units, open_units
from octavo.storage.vectors import Vectors

T = TypeVar("T")
_log = logging.getLogger("octavo.indexing")
_ATTEMPTS = 8  # at an index that somebody puts another one in the place of
_PASS = 50_000  # revisions an indexing pass takes at a time: fewer passes, fewer parts to search
_PROVED_ROWS = 200_000
_FEW = 64  # passages whose vectors questions do not see later than their words
_UNINDEXED = (STATE, "file")
_NAMED = 5
_NOTHING = "nothing"


class Indexing:
    """One account's words and vectors, followed by any number of readers and written by one at a time."""

    name = "index/recall"

    def __init__(
        self,
        spine: Spine,
        folder: Path,
        embedder: Embedder | None,
        reranker: TokenReranker | None = None,
    ) -> None:
        self._spine = spine
        self._reranker = reranker
        self._lock = threading.RLock()
        self._root = folder
        self._embedder = embedder
        self._known: Watermark | None = None  # the last watermark found to be of this ledger
        self.is_used = False  # nothing is embedded in the background before somebody recalls
        self._begin(current(folder))

    def _begin(self, folder: Path) -> None:
        """Look at an index that was not looked at before."""
        spine, embedder, again = self._spine, self._embedder, self._reranker
        self.folder, self.index = folder, Index(folder)
        own = self.embedding = None if embedder is None else Embedding(spine, folder, embedder)
        self.asking = None if own is None else Asking(spine, own)
        self.composing = None if own is None else Composing(spine, own, self.units_now)
        self.second_look = None if again is None else SecondLook(spine, folder, again)
        self._elder: Embedding | None = None
        self._is_proved = False

    def has_moved(self) -> bool:
        """Look at another index if that has taken the place of ours; files that are gone were of the old."""
        with self._lock:
            folder = current(self._root)
            if folder == self.folder or self.folder.name == _NOTHING:
                return False
            self._begin(folder)
            return True

    def watermark(self) -> Watermark:
        """The version the words have reached, made sure to be of this very ledger."""
        return self.units_now().manifest.watermark

    def units_now(self) -> Units:
        """What is indexed now, made sure to be of this very ledger."""
        with self._lock:
            self.has_moved()
            while True:
                try:
                    units = self.index.units()
                    mark = units.manifest.watermark
                    self._prove(units)
                    if (
                        mark.version == 0
                        or mark == self._known
                        or self._spine.ledger.holds(mark.version, mark.header)
                    ):
                        self._known = mark
                        return units
                    _log.warning("index discarded reason=other-history version=%d", mark.version)
                except (Damaged, FileNotFoundError) as error:
                    if self.has_moved():
                        continue
                    _log.warning("index discarded reason=%s", type(error).__name__)
                self.clear()
                return self.index.units()

    def _prove(self, units: Units) -> None:
        """Verify every byte once a process, unless that would take long: then `check` and upkeep do."""
        if not self._is_proved and units.manifest.rows <= _PROVED_ROWS:
            units.verify()
        self._is_proved = True

    def clear(self) -> None:
        """Throw the index away; everything in it comes from the ledger."""
        with self._lock:
            if self._spine.read_only:
                self._begin(self._root / _NOTHING)  # read as if there were none
                return
            clear_index(self._root)
            self._begin(current(self._root))

    def lag(self) -> Lag:
        """How far behind the index is."""
        behind = self._spine.head().version - self.watermark().version
        if self.embedding is None:
            return Lag(versions=behind, passages=self.index.units().manifest.rows)
        kept = retries.without_model(self.embedding.now().manifest.retries)
        dead = sum(retry.is_dead for retry in kept)
        return Lag(
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
        held: dict[str, dict[int, list[int]]] = {}
        for row, (id_, rev) in self.index.units().rows_of(revisions):
            held.setdefault(id_, {}).setdefault(rev, []).append(row)
        verified = self.embedding.verified() if self.embedding else None
        longest, found = self._spine.policy.index.max_allowed_drift_seconds, []
        for memory in memories:
            newest, rows = max(held.get(memory.id, {}).items(), default=(None, []))
            updated, age = self.embedding.updated(rows) if self.embedding else None, None
            if updated is not None:
                age = (self._spine.now() - max(updated, verified or updated)).total_seconds()
            found.append(
                Freshness(
                    memory=memory.id,
                    rev=memory.rev,
                    indexed_rev=newest,
                    vector_index_updated_at=updated,
                    verified_at=verified,
                    age_seconds=age,
                    is_drifted=age is not None and longest is not None and age > longest,
                )
            )
        return found

    def serving(self) -> Embedding | None:
        """Who compares by meaning: the embedder in use, or the offline default while that has more vectors.

        After a change of the embedder the default's vectors serve until the new ones are made.
        """
        own = self.embedding
        if own is None or own.embedder.name == embedders.OFFLINE_NAME or not self.missing():
            return own
        if self._elder is None and embedders.is_offline_installed():
            self._elder = Embedding(self._spine, self.folder, embedders.offline_embedder())
        rows = self.index.units().manifest.rows
        return self._elder if self._elder and self._elder.missing(rows) < own.missing(rows) else own

    def catch_up(self, progress: Progress | None = None, *, force: bool = False) -> None:
        """Bring everything up to the ledger; `ModelFailed` while the model is out."""
        self.add_words(progress)
        if force and self.embedding is not None:
            self._on_current(lambda: self.embedding.make_due() if self.embedding else None)
        self.add_vectors(progress)
        self.add_orders()
        self.add_tokens()
        self.compose()
        if self.embedding is not None and (out := self.embedding.outage()):
            raise ModelFailed(out)

    def follow(self, progress: Progress | None = None) -> None:
        """Bring everything up to the ledger; a model that is out leaves its vectors for later."""
        try:
            self.catch_up(progress)
        except ModelFailed as error:
            _log.warning("followed without vectors error=%s", type(error).__name__)

    def erase(self, erasure: Erasure) -> list[str]:
        """Throw the index away, for words and vectors cannot be unsaid; the next recall makes it anew."""
        if self._root.exists():
            self.clear()
        return []

    def rebuild(self, progress: Progress | None = None) -> None:
        """Make the index anew beside the old one, which answers meanwhile, and put it in its place.

        A model that is out leaves its vectors for later.
        """
        self._root.mkdir(parents=True, exist_ok=True)
        with writing(self._root, "making"):
            while not self._rebuilt(progress):  # a redaction swept away what was made: it may hold the text
                _log.info("index begun again reason=swept-away")
        self.has_moved()

    def _rebuilt(self, progress: Progress | None) -> bool:
        before, made = current(self._root), beside(self._root)
        new = Indexing(self._spine, made, self._embedder, self._reranker)
        try:
            new.follow(progress)
        except (FileNotFoundError, Damaged):
            with writing(self._root, "swapping"):  # who sweeps it away is done by then
                if current(self._root) == before:
                    raise
            return False
        return swap(self._root, made)

    def add_words(self, progress: Progress | None = None) -> None:
        """Index the words of everything above the watermark, a bounded pass at a time."""
        head = self._spine.head().version
        while (mark := self.watermark()).version < head:
            upto = self._spine.state.version_after(mark.version, _PASS, head)
            if self._on_current(partial(self._add_words, mark, upto)) and progress:
                progress(upto, head)

    @without_gc()
    def _add_words(self, mark: Watermark, upto: int) -> bool:
        """One pass from the watermark up to a version: words and ends; False if it stands elsewhere now.

        Who asks meanwhile goes on with what was there.
        """
        with self.index.units.staying(self._ready):
            new, ends = self.units(mark.version, upto), self._spine.state.ended(mark.version, upto)
            reached = Watermark(version=upto, header=self._spine.ledger.hash_of(upto))
            return extend(self.folder, new, ends, reached, since=mark)

    def _ready(self, units: Units) -> None:
        """Open what was published, and embed it if it is little: else the next question would, and wait."""
        self.index.warm(units)
        own, asking, rows = self.embedding, self.asking, units.manifest.rows
        if own is not None and asking is not None and self.is_used and own.missing(rows) <= _FEW:
            with suppress(ModelFailed):  # it is noted with the vectors, and tried again
                own.add(limit=_FEW)
                if 0 < asking.behind(rows) <= _FEW:
                    asking.follow(units)

    def add_vectors(self, progress: Progress | None = None, *, limit: int | None = None) -> int:
        """Embed passages that have no vector yet; returns how many could be tried still."""
        if self.embedding is None or self._spine.read_only:
            return 0
        self.is_used = True
        if limit is not None and not self.embedding.has_work(self.index.units().manifest.rows):
            return 0  # most recalls find nothing to do, and need no lock to know it
        return self._on_current(lambda: self.embedding.add(progress, limit=limit) if self.embedding else 0)

    def add_orders(self, limit: int | None = None) -> int:
        """Look for orders among passages that have a vector; returns how many nobody looked at yet."""
        if self.asking is None or self._spine.read_only:
            return 0
        if self.asking.behind(rows := self.index.units().manifest.rows):
            self._on_current(lambda: self.asking.follow(self.index.units(), limit) if self.asking else None)
        return self.asking.behind(rows)

    def add_tokens(self, limit: int | None = None) -> int:
        """Encode passages for the second look; returns how many are left."""
        if self.second_look is None or self._spine.read_only:
            return 0
        return self._on_current(lambda: self.second_look.add(limit=limit) if self.second_look else 0)

    def compose(self) -> None:
        """Bring the composites of assemblies up to what is indexed."""
        self._on_current(lambda: self.composing.follow() if self.composing else None)

    def healed(self, act: Callable[[], T], *, clears: bool = True) -> T:
        """Do something with the index that counts, again where another one takes its place meanwhile.

        A damaged one is thrown away, or is an error if that is not asked for.
        """
        failed: object = None
        for _ in range(_ATTEMPTS):
            folder = self.folder
            try:
                return act()
            except LedgerDamaged:
                raise
            except (Damaged, FileNotFoundError, msgspec.DecodeError) as error:
                if not self.has_moved() and self.folder == folder:  # another thread may have noticed first
                    if not clears:
                        raise error if isinstance(error, Damaged) else damaged(folder, "gone") from error
                    if failed == folder:  # once may be a writer who published and swept meanwhile
                        self.clear()
                failed = folder
        return act()

    def _on_current(self, act: Callable[[], T]) -> T:
        return self.healed(act, clears=False)

    def embedded(self) -> Vectors:
        """The vectors of the embedder in use."""
        assert self.embedding is not None
        return self.embedding.now()

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
        if memory.turns and memory.sandbox is not None:
            if memory.sandbox not in places:
                places[memory.sandbox] = self._spine.state.turns_of(memory.sandbox, after)
            position = places[memory.sandbox]
            places[memory.sandbox] += len(memory.turns)
        yield from units_of(memory, valid_from=version, position=position)

    def verify(self, *, stamp: bool = False) -> list[str]:
        """What is wrong with the index: bytes, or revisions it should not hold or lacks.

        That changes nothing, unless `stamp` is asked for: then vectors that are right are noted as verified.
        """
        try:
            if problems := self._on_current(lambda: self._verified(stamp)):
                return problems
            if stamp:
                self.compose()  # only what is compared counts as verified
            return self._on_current(lambda: self.composing.verify(stamp=stamp) if self.composing else [])
        except Damaged as error:
            if self.has_moved():  # it was made anew meanwhile
                return self.verify(stamp=stamp)
            return [f"index/recall: {error.message}"]

    def _verified(self, stamp: bool) -> list[str]:
        is_alone = self._spine.read_only or not self.folder.exists()
        still: AbstractContextManager[None] = nullcontext() if is_alone else writing(self.folder)
        with still:
            units = open_units(self.folder)
            units.verify()
            mark = units.manifest.watermark
            if mark.version and not self._spine.ledger.holds(mark.version, mark.header):
                return [f"index/recall was made from another version {mark.version}"]
            Index(self.folder).words()
            for following in (self.embedding, self.second_look):
                if following is not None:
                    following.verify(units.manifest.rows)
            problems = self._differences(units)
            if stamp and not problems and not is_alone and self.embedding is not None:
                self.embedding.stamp()
        return problems

    def _differences(self, units: Units) -> list[str]:
        """Which revisions the rows hold that the state does not, and the other way round."""
        held = {(m, r) for m, r, _, _ in embeddings.names_of(units, range(units.manifest.rows))}
        revisions = self._spine.state.revisions_since(0, units.manifest.watermark.version)
        known = {(memory.id, memory.rev) for _, memory in revisions if is_indexed(memory)}
        lacks, ghosts = sorted(known - held), sorted(held - known)
        found = [f"index/recall lacks revision {r} of {m}" for m, r in lacks[:_NAMED]]
        found += [f"index/recall holds revision {r} of {m}, which is none" for m, r in ghosts[:_NAMED]]
        more = sum(max(0, len(some) - _NAMED) for some in (lacks, ghosts))
        return [*found, f"index/recall differs in {more} revisions more"] if more else found

    def notes(self) -> list[str]:
        """What a person should know of passages that have no vector."""
        return self.embedding.notes() if self.embedding else []


def is_indexed(memory: Memory) -> bool:
    """Whether recall can find a memory: it is alive, it says something, it is no raw state."""
    return (
        not memory.gone
        and memory.kind != "assembly"  # it lifts its members and is no answer itself
        and bool(memory.text or memory.turns)
        and memory.text != REDACTED
        and memory.category not in _UNINDEXED
    )
