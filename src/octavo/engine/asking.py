"""Asking: what the user asked for once and for all, found by meaning among what is embedded.

Words find most orders the moment they are written (`domain.orders`). What is said in other words is found
here, when its passage has a vector. The vectors of such sentences, and of their conditions, lie beside the
others; the file holds no text and is made anew when it is lost.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Iterable, Sequence

import msgspec

from octavo.domain.orders import (
    Order,
    Reading,
    by_words,
    condition_of,
    is_about_answers,
    is_quoting,
    said_by_user,
    sentences_of,
    shape_of,
)
from octavo.engine.embedding import Embedding, names_of
from octavo.engine.spine import Spine
from octavo.libraries import Array, np, product
from octavo.models.embedders import OFFLINE_NAME
from octavo.models.leanings import fits, leanings, may_hold
from octavo.storage.columns import replace_file
from octavo.storage.rows import Units
from octavo.storage.stores.disk import Disk

_log = logging.getLogger("octavo.asking")
_FILE = "orders.bin"
_AT_ONCE, _EMBEDDED = 512, 16  # rows looked at, sentences embedded
_NOTED = 4_096  # so many rows looked at without finding anything are noted only then
_MOST = 2_000  # turns, the newest
_WISH_GENERAL = 0.7  # so much further a wish must lean to be about every answer

Turn = tuple[str, int, int | None]  # a memory, its revision, and which of its turns
_Kept = tuple[int, list[Turn], dict[bytes, bytes]]
_kept = msgspec.msgpack.Decoder(_Kept)


class Asking:
    """The sentences that one embedder knows to be orders or wishes of an account, and their vectors."""

    def __init__(self, spine: Spine, embedding: Embedding) -> None:
        self._spine, self.embedding = spine, embedding
        self._lock, self._following = threading.RLock(), threading.Lock()
        self.is_fitted = embedding.embedder.name == OFFLINE_NAME
        # Up to which row passages were looked at, the turns that hold something, vectors by their texts.
        self._rows, self._turns, self._vectors = _read_file(embedding)
        self._noted, self._is_new = self._rows, False
        self._known = {
            key: np.frombuffer(data, "<f2").astype(np.float32) for key, data in self._vectors.items()
        }

    def turns(self) -> Sequence[Turn]:
        """The turns that hold an order or a wish by their meaning, oldest first."""
        return self._turns

    def behind(self, rows: int) -> int:
        """How many of the embedded passages nobody looked at yet."""
        embedded = min(rows, self.embedding.now().manifest.rows)
        return abs(embedded - self._rows) if self.is_fitted else 0

    def follow(self, units: Units, limit: int | None = None) -> None:
        """Look at what was embedded since, or at some of it; nobody who asks waits for it."""
        with self._following:
            vectors, before = self.embedding.now().up_to(units.manifest.rows), len(self._turns)
            total = vectors.manifest.rows
            if self._rows > total:  # they were made anew
                self._rows, self._turns = 0, []
            last = total if limit is None else min(total, self._rows + limit)
            for first in range(self._rows, last, _AT_ONCE):
                some = vectors.floats[first : min(last, first + _AT_ONCE)].astype(np.float32)
                self._look(units, first + np.flatnonzero(may_hold(some)), some, first)
            with self._lock:
                self._rows, self._turns = last, self._turns[-_MOST:]
                self._known = {key: self._known[key] for key in self._vectors}
                self._is_new |= len(self._turns) != before
                if (self._is_new and last == total) or last - self._noted >= _NOTED:
                    self._write()

    def _look(self, units: Units, rows: Array, vectors: Array, first: int) -> None:
        """Note the turns of some rows that hold an order or a wish."""
        said: dict[Turn, list[str]] = {}
        for row, (memory, rev, turn, _) in zip(rows.tolist(), names_of(units, rows.tolist()), strict=True):
            if (memory, rev, turn) in said:
                continue
            told = said_by_user(self._spine.state.revision(memory, rev))
            said[memory, rev, turn] = [s for t, text, _ in told if t == turn for s in sentences_of(text)]
            if len(said[memory, rev, turn]) == 1:  # its passage is the sentence
                self._known.setdefault(_key(said[memory, rev, turn][0]), vectors[row - first])
        self._embed([sentence for sentences in said.values() for sentence in sentences])
        for name, sentences in said.items():
            held = [sentence for sentence in sentences if self.read(sentence) is not None]
            if held:
                self._keep(held)
                self._turns.append(name)

    def read(self, sentence: str) -> Reading | None:
        """Whether a sentence is a wish, and whether it is about everything; None if it is no order at all."""
        told, vector = by_words(sentence), self._known.get(_key(sentence))
        if vector is None or not self.is_fitted:
            return told
        order, wish, general = leanings(vector[None, :], [shape_of(sentence)])[0].tolist()
        is_wish = wish > 0 and wish > order
        if told is None and (is_quoting(sentence) or (order <= 0 and not is_wish)):
            return None
        told = told or (is_wish, not is_wish and is_about_answers(sentence))
        is_general = general > (_WISH_GENERAL if told[0] else 0) and condition_of(sentence) is None
        return told[0], told[1] or is_general

    def fits(self, orders: Sequence[Order], query: Array) -> list[float]:
        """How well each order applies to a question by the meaning of its sentence and its condition."""
        texts = [text for order in orders for text in (order.text, order.condition or order.text)]
        with self._lock:
            if self._keep(texts):
                self._write()
            near = np.array([self._known[_key(text)] for text in texts])
        said, when = near[::2], near[1::2]
        asked = query / (float((query @ query) ** 0.5) or 1.0)
        if self.is_fitted:
            kinds = np.array([(order.is_wish, order.condition is None) for order in orders])
            found = fits(asked, said, when, kinds[:, 0], kinds[:, 1])
        else:
            found = np.maximum(product(said, asked), product(when, asked))
        return [float(fit) for fit in found]

    def _keep(self, texts: Iterable[str]) -> bool:
        """Keep the vectors of some sentences and of their conditions; False if all were kept already."""
        wanted = dict.fromkeys(part for text in texts for part in (text, condition_of(text)) if part)
        new = [text for text in wanted if _key(text) not in self._vectors]
        self._embed(new)
        made = {_key(text): self._known[_key(text)].astype("<f2").tobytes() for text in new}
        self._vectors.update(made)
        return bool(new)

    def _embed(self, texts: Sequence[str]) -> None:
        new = [text for text in dict.fromkeys(texts) if _key(text) not in self._known]
        for first in range(0, len(new), _EMBEDDED):  # a question's own text comes between them
            some = new[first : first + _EMBEDDED]
            self._known.update(zip(map(_key, some), self.embedding.embed(some), strict=True))

    def _write(self) -> None:
        """Keep it all beside the vectors; an index that is not there yet has no place for it."""
        if not self._spine.read_only and self.embedding.folder.exists():
            self._noted, self._is_new = self._rows, False
            kept = (self._rows, self._turns, self._vectors)
            try:
                replace_file(self.embedding.folder / _FILE, msgspec.msgpack.encode(kept))
            except OSError as error:  # it can be made anew: no question fails for it
                _log.warning("orders not kept error=%s", type(error).__name__)


def _key(text: str) -> bytes:
    """What the vector of a text is kept under: the file holds no text."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _read_file(embedding: Embedding) -> _Kept:
    """What is kept; nothing if there is nothing, or if it is not what was written."""
    try:
        kept = _kept.decode(Disk().read(embedding.folder / _FILE))
    except (FileNotFoundError, msgspec.DecodeError):
        return 0, [], {}
    size, vectors = 2 * embedding.embedder.dimension, kept[2].values()
    is_whole = all(len(v) == size and np.isfinite(np.frombuffer(v, "<f2")).all() for v in vectors)
    return kept if is_whole else (0, [], {})
