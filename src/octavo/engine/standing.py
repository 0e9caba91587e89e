"""Standing orders: what the user asked for once and for all, matched with each question beside the hits.

The vectors of their sentences lie beside an embedder's other vectors, and are made anew when they are lost.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from octavo.domain.filters import Filter
from octavo.domain.memory import Memory
from octavo.domain.orders import APPLIES, ENDED, Order, applying, distinct, ended_in, is_request, orders_of
from octavo.engine.embedding import Embedding
from octavo.engine.recent import ORDERS, Recent
from octavo.errors import ModelFailed
from octavo.libraries import np, product
from octavo.models.embedders import OFFLINE_NAME
from octavo.storage.columns import replace_file
from octavo.storage.state_view import DbView
from octavo.storage.stores.disk import Disk

_MOST, _WISHES = 2_000, 300  # of the newest memories that hold orders or wishes; and of wishes
_OTHER_MODEL = 0.45  # a floor for models whose cosines nobody has measured: few lines rather than idle ones
_FILE = "orders.bin"


class Standing:
    """The orders of one account: each memory's read once, their vectors made once and kept."""

    def __init__(self, recent: Recent) -> None:
        self._recent = recent
        self._lock = threading.Lock()
        self._version = -1
        self._by_row: dict[int, list[Order]] = {}
        self._ends: list[Memory] = []
        self._vectors: dict[str, dict[bytes, Any]] = {}

    def orders(
        self, base: DbView, own: Sequence[Memory] = (), scopes: Sequence[str] | None = None
    ) -> list[Order]:
        """The orders that hold at a version and in a sandbox's own writes, as some scopes see them."""
        held = self._held(base)
        if not held and not own:
            return []
        changed = {memory.id for memory in own}
        held = [order for order in held if order.memory not in changed]
        held += [order for memory in own for order in orders_of(memory)]
        known = [memory for memory in (*self._ends, *own) if scopes is None or memory.scope in scopes]
        ended = ended_in(memory for memory in known if memory in own or memory.id not in changed)
        seen = distinct((order for order in held if scopes is None or order.scope in scopes), ended)
        wishes = [order for order in seen if order.is_wish][_WISHES:]
        return [order for order in seen if order not in wishes] if wishes else seen

    def _held(self, base: DbView) -> list[Order]:
        with self._lock:
            since = self._recent.unchanged_since(ORDERS, base.version)
            if self._version != since:
                rows = base.with_orders(_MOST)
                new = [row for row in rows if row not in self._by_row]
                read = {row: orders_of(memory, since) for row, since, memory in base.at_rows(new)}
                self._ends = base.memories(Filter(kinds=("register",), category=ENDED)) if rows else []
                self._version = since
                self._by_row = {row: self._by_row[row] if row in self._by_row else read[row] for row in rows}
            return [order for orders in self._by_row.values() for order in orders]

    def applying(
        self, question: str, orders: Sequence[Order], query: Any, source: Embedding | None, *, keep: bool
    ) -> list[Order]:
        """The few orders that apply to a question, by meaning if there is a vector of it, else by words."""
        asks = is_request(question) if orders else False
        fit = [order for order in orders if asks or not order.is_wish]
        cosines, floor = None, APPLIES
        if fit and query is not None and source is not None:
            try:
                cosines = self._cosines(fit, query, source, keep=keep)
                floor = APPLIES if source.embedder.name == OFFLINE_NAME else _OTHER_MODEL
            except ModelFailed:
                cosines = None  # words alone decide, as they do for the hits
        return applying(question, fit, cosines, floor=floor)

    def _cosines(
        self, orders: Sequence[Order], query: Any, source: Embedding, *, keep: bool
    ) -> list[tuple[float, float]]:
        texts = [text for order in orders for text in (order.text, order.condition or order.text)]
        known = self._known(texts, source, keep=keep)
        length = float((query @ query) ** 0.5) or 1.0
        near = product(np.array([known[_key(text)] for text in texts]), query / length).tolist()
        return list(zip(near[::2], near[1::2], strict=True))

    def _known(self, texts: Sequence[str], source: Embedding, *, keep: bool) -> dict[bytes, Any]:
        """The vectors of texts; those that nobody made yet are made now, and kept where one may write."""
        with self._lock:
            known = self._vectors.setdefault(source.embedder.name, {})
            if not known:
                known.update(_read(source.folder, source.embedder.dimension))
            new = [text for text in dict.fromkeys(texts) if _key(text) not in known]
            if new:
                known.update(zip(map(_key, new), source.embed(new), strict=True))
            # An index made anew begins without them; one that is not there yet has no place for them.
            if keep and source.folder.exists() and (new or not (source.folder / _FILE).exists()):
                data = {_key(text): known[_key(text)].astype(np.float16).tobytes() for text in texts}
                replace_file(source.folder / _FILE, msgspec.msgpack.encode(data))
            return known


def _key(text: str) -> bytes:
    """What the vector of a text is kept under: the file holds no text."""
    return hashlib.blake2b(text.encode(), digest_size=16).digest()


def _read(folder: Path, dimension: int) -> dict[bytes, Any]:
    """The vectors that are kept; none if there are none, or if they are not what was written."""
    try:
        kept = msgspec.msgpack.decode(Disk().read(folder / _FILE), type=dict[bytes, bytes])
    except (FileNotFoundError, msgspec.DecodeError):
        return {}
    vectors = {key: np.frombuffer(data, np.float16).astype(np.float32) for key, data in kept.items()}
    return {
        key: vector
        for key, vector in vectors.items()
        if len(vector) == dimension and np.isfinite(vector).all()
    }
