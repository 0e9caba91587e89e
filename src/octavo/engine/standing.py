"""Standing orders: what the user asked for once and for all, matched with each question beside the hits."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from octavo.domain.memory import Memory
from octavo.domain.orders import APPLIES, Order, applying, distinct, is_request, orders_of
from octavo.engine.embedding import Embedding
from octavo.errors import ModelFailed
from octavo.models.embedders import OFFLINE_NAME
from octavo.storage.standing import has_vectors, key_of_text, read_vectors, write_vectors
from octavo.storage.state_view import DbView

_MOST = 500  # of the newest memories that hold orders or wishes
_OTHER_MODEL = 0.45  # a floor for models whose cosines nobody has measured: few lines rather than idle ones


class Standing:
    """The orders of one account: read once a version, their vectors made once and kept."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._read: tuple[int, tuple[Order, ...]] = (-1, ())
        self._vectors: dict[str, dict[bytes, Any]] = {}

    def orders(
        self, base: DbView, own: Sequence[Memory] = (), scopes: Sequence[str] | None = None
    ) -> list[Order]:
        """The orders that hold at a version and in a sandbox's own writes, as some scopes see them."""
        if self._read[0] != base.version:
            held = [order for since, memory in base.with_orders(_MOST) for order in orders_of(memory, since)]
            self._read = (base.version, tuple(distinct(held)))
        changed = {memory.id for memory in own}
        held = [order for order in self._read[1] if order.memory not in changed]
        held += [order for memory in own for order in orders_of(memory)]
        return [order for order in held if scopes is None or order.scope in scopes]

    def applying(
        self, question: str, orders: Sequence[Order], query: Any, source: Embedding | None, *, keep: bool
    ) -> list[Order]:
        """The few orders that apply to a question, by meaning if there is a vector of it, else by words."""
        if not orders:
            return []
        asks = is_request(question)
        fit = [order for order in orders if asks or not order.is_wish]
        cosines = None
        floor = APPLIES
        if query is not None and source is not None:
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
        near = [float(known[key_of_text(text)] @ query) / length for text in texts]
        return list(zip(near[::2], near[1::2], strict=True))

    def _known(self, texts: Sequence[str], source: Embedding, *, keep: bool) -> dict[bytes, Any]:
        """The vectors of texts; those that nobody made yet are made now, and kept where one may write."""
        with self._lock:
            name, dimension = source.embedder.name, source.embedder.dimension
            known = self._vectors.setdefault(name, {})
            if not known:
                known.update(read_vectors(source.folder, dimension))
            new = [text for text in dict.fromkeys(texts) if key_of_text(text) not in known]
            if new:
                known.update(zip(map(key_of_text, new), source.embed(new), strict=True))
            # An index made anew begins without them; one that is not there yet has no place for them.
            if keep and source.folder.exists() and (new or not has_vectors(source.folder)):
                write_vectors(source.folder, known, map(key_of_text, dict.fromkeys(texts)))
            return known
