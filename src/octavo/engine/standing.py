"""Standing orders: what the user asked for once and for all, matched with each question beside the hits."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from octavo.domain.filters import Filter
from octavo.domain.memory import Memory
from octavo.domain.orders import (
    ENDED,
    Order,
    applying,
    distinct,
    ended_in,
    orders_of,
)
from octavo.engine.asking import Asking, Turn
from octavo.engine.indexing import Indexing
from octavo.engine.recent import ORDERS, Recent
from octavo.errors import ModelFailed
from octavo.libraries import Array
from octavo.storage.state_view import DbView

_MOST, _WISHES = 2_000, 300  # of the newest memories that hold orders or wishes; and of wishes
_FITTED = 0.35  # what an order must reach to apply, by the domains fitted for the offline model
_OTHER_MODEL = 0.45  # the same for models that nobody has measured: few lines rather than idle ones


class Standing:
    """The orders of one account, each memory's read once: by its words, and by its meaning once indexed."""

    def __init__(self, recent: Recent, indexing: Indexing) -> None:
        self._recent, self._indexing = recent, indexing
        self._lock = threading.Lock()
        self._held: tuple[object, list[Order]] = (None, [])
        self._by_row: dict[int, list[Order]] = {}
        self._by_turn: dict[Turn, list[Order]] = {}
        self._ends: list[Memory] = []

    def orders(
        self, base: DbView, own: Sequence[Memory] = (), scopes: Sequence[str] | None = None
    ) -> list[Order]:
        """The orders that hold at a version and in a sandbox's own writes, as some scopes see them."""
        held = self._all(base)
        if not held and not own:
            return []
        changed = {memory.id for memory in own}
        held = [order for order in held if order.memory not in changed]
        held += [order for memory in own for order in orders_of(memory)]
        known = [memory for memory in (*self._ends, *own) if scopes is None or memory.scope in scopes]
        ended = ended_in(memory for memory in known if memory in own or memory.id not in changed)
        seen = distinct((order for order in held if scopes is None or order.scope in scopes), ended)
        wishes = {order.key for order in [order for order in seen if order.is_wish][_WISHES:]}
        return [order for order in seen if order.key not in wishes] if wishes else seen

    def applying(
        self, question: str, orders: Sequence[Order], query: Array | None, asking: Asking | None
    ) -> list[Order]:
        """The few orders that apply to a question, by meaning if there is a vector of it, else by words."""
        if orders and query is not None and asking is not None:
            try:
                floor = _FITTED if asking.is_fitted else _OTHER_MODEL
                return applying(question, orders, asking.fits(orders, query), floor=floor)
            except ModelFailed:
                pass  # words alone decide, as they do for the hits
        return applying(question, orders, None)

    def _all(self, base: DbView) -> list[Order]:
        """Every order at a version, read again only where that may have changed."""
        asking = self._indexing.asking
        turns = asking.turns() if asking is not None else ()
        with self._lock:
            since = self._recent.unchanged_since(ORDERS, base.version)
            key = (since, id(asking), len(turns), turns[-1] if turns else None)
            if self._held[0] != key:
                told = [*self._of_rows(base), *(self._of_turns(base, turns, asking) if asking else ())]
                self._ends = base.memories(Filter(kinds=("register",), category=ENDED)) if told else []
                self._held = (key, list({(o.memory, o.turn, o.text): o for o in told}.values()))
            return self._held[1]

    def _of_rows(self, base: DbView) -> list[Order]:
        """Those that the state knows by their words."""
        rows = base.with_orders(_MOST)
        new = [row for row in rows if row not in self._by_row]
        read = {row: orders_of(memory, since) for row, since, memory in base.at_rows(new)}
        self._by_row = {row: self._by_row[row] if row in self._by_row else read[row] for row in rows}
        return [order for orders in self._by_row.values() for order in orders]

    def _of_turns(self, base: DbView, turns: Sequence[Turn], asking: Asking) -> list[Order]:
        """Those that the index knows by their meaning, as far as they are valid."""
        live = base.many({memory for memory, *_ in turns})
        kept: dict[Turn, list[Order]] = {}
        for turn in turns:
            since, memory = live.get(turn[0], (0, None))
            if memory is not None and memory.rev == turn[1]:
                if turn not in self._by_turn:
                    told = orders_of(memory, since, asking.read)
                    self._by_turn[turn] = [order for order in told if order.turn == turn[2]]
                kept[turn] = self._by_turn[turn]
        self._by_turn = kept
        return [order for orders in kept.values() for order in orders]
