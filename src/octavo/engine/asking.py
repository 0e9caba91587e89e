"""What the user asked for once and for all: the orders that hold, and which of them apply to a question.

Words find most orders the moment they are written (`domain.orders`). What is said in other words is found
by its meaning, when its passage has a vector. The vectors of such sentences, and of their conditions, lie
beside the others; the file holds no text and is made anew when it is lost.
"""

from __future__ import annotations

import hashlib
import logging
import threading
from collections.abc import Callable, Iterable, Sequence

import msgspec

from octavo.domain import orders as told
from octavo.domain.filters import Filter
from octavo.domain.memory import Memory
from octavo.domain.orders import Order, Reading, by_words, condition_of, orders_of, said_by_user, sentences_of
from octavo.engine.embedding import Embedding, names_of
from octavo.engine.spine import Spine
from octavo.errors import ModelFailed
from octavo.libraries import Array, np, product
from octavo.models.applying import Applying, share_words
from octavo.models.embedders import OFFLINE_NAME
from octavo.models.leanings import leanings, may_hold
from octavo.storage.columns import replace_file
from octavo.storage.rows import Units
from octavo.storage.state_view import ORDERS, DbView
from octavo.storage.stores.disk import Disk

_log = logging.getLogger("octavo.asking")
_FILE = "orders.bin"
_AT_ONCE, _EMBEDDED = 512, 16  # rows looked at, sentences embedded
_NOTED = 4_096  # so many rows looked at without finding anything are noted only then
_MOST, _WISHES = 2_000, 300  # of the newest turns and memories that hold orders or wishes; and of wishes,
# those that are certain before the others
_DOUBT, _ABOUT_ANSWERS = 3.5, 1.0  # how far from certain an order may be, and where it counts as certain
_FITTED = -0.2  # what an order must reach to apply, by what was fitted for the offline model
_OTHER_MODEL = 0.45  # the same for models that nobody has measured: few lines rather than idle ones
_SAME_TOPIC = 0.2  # and what a topic in common counts there
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
        self._rows, self.turns, self._vectors = _read_file(embedding)
        self._noted, self._is_new = self._rows, False
        # Which orders were asked about last, their vectors, and what is known of them whatever is asked.
        self._asked_of: tuple[list[Order], Array, Applying | None] = ([], np.empty((0, 0)), None)
        self._known = {
            key: np.frombuffer(data, "<f2").astype(np.float32) for key, data in self._vectors.items()
        }

    def behind(self, rows: int) -> int:
        """How many of the embedded passages nobody looked at yet."""
        embedded = min(rows, self.embedding.now().manifest.rows)
        return abs(embedded - self._rows) if self.is_fitted else 0

    def follow(self, units: Units, limit: int | None = None) -> None:
        """Look at what was embedded since, or at some of it; nobody who asks waits for it."""
        with self._following:
            vectors, before = self.embedding.now().up_to(units.manifest.rows), len(self.turns)
            total = vectors.manifest.rows
            if self._rows > total:  # they were made anew
                self._rows, self.turns = 0, []
            last = total if limit is None else min(total, self._rows + limit)
            for first in range(self._rows, last, _AT_ONCE):
                some = vectors.floats[first : min(last, first + _AT_ONCE)].astype(np.float32)
                self._look(units, first + np.flatnonzero(may_hold(some)), some, first)
            with self._lock:
                self._rows, self.turns = last, self.turns[-_MOST:]
                self._known = {key: self._known[key] for key in self._vectors}
                self._is_new |= len(self.turns) != before
                if (self._is_new and last == total) or last - self._noted >= _NOTED:
                    self._write()

    def _look(self, units: Units, rows: Array, vectors: Array, first: int) -> None:
        """Note the turns of some rows that hold an order or a wish."""
        said: dict[Turn, list[str]] = {}
        for row, (memory, rev, turn, _) in zip(rows.tolist(), names_of(units, rows.tolist()), strict=True):
            if (memory, rev, turn) in said:
                continue
            turns = said_by_user(self._spine.state.revision(memory, rev))
            said[memory, rev, turn] = [s for t, text, _ in turns if t == turn for s in sentences_of(text)]
            if len(said[memory, rev, turn]) == 1:  # its passage is the sentence
                self._known.setdefault(_key(said[memory, rev, turn][0]), vectors[row - first])
        self._embed([sentence for sentences in said.values() for sentence in sentences])
        for name, sentences in said.items():
            held = [sentence for sentence in sentences if self.read(sentence) is not None]
            if held:
                self._keep(held)
                self.turns.append(name)

    def read(self, sentence: str) -> Reading | None:
        """Whether a sentence is a wish, and about everything, and how certain that is; None if it is neither.

        What tells how to answer by its words is certain sooner.
        """
        reading, vector = by_words(sentence), self._known.get(_key(sentence))
        if vector is None or not self.is_fitted or told.is_once(sentence):
            return reading
        order, wish, general = leanings(vector[None, :], [told.shape_of(sentence)])[0].tolist()
        if reading is None:
            is_about, doubt = told.is_about_answers(sentence), max(0.0, -order if order > wish else -wish)
            doubt = 0.0 if is_about and doubt <= _ABOUT_ANSWERS else doubt
            if told.is_quoting(sentence) or doubt > _DOUBT:
                return None
            reading = (wish > order, is_about and order >= wish, doubt)
        is_wish, is_general, doubt = reading
        leans = general > (_WISH_GENERAL if is_wish else 0) and condition_of(sentence) is None
        return is_wish, not doubt and (is_general or leans), doubt

    def fits(self, question: str, orders: Sequence[Order], query: Array) -> list[float]:
        """How well each order applies to a question by the meaning of its sentence and its condition."""
        with self._lock:
            if self._asked_of[0] != orders:
                texts = [text for order in orders for text in (order.text, order.condition or order.text)]
                if self._keep(texts):
                    self._write()
                near = np.array([self._known[_key(text)] for text in texts])
                kinds = np.array([(order.is_wish, order.condition is None) for order in orders])
                made = Applying(near[::2], near[1::2], *kinds.T) if self.is_fitted else None
                self._asked_of = (list(orders), near, made)
            _, near, made = self._asked_of
        asked = query / (float((query @ query) ** 0.5) or 1.0)
        if made is not None:
            shared = np.array([share_words(question, order.text) for order in orders])
            found = made.fits(asked, question, shared)
        else:
            less = told.less_a_wish(question) * np.array([order.is_wish for order in orders])
            same = _SAME_TOPIC * np.array([told.share_topic(question, order) for order in orders])
            found = np.maximum(product(near[::2], asked), product(near[1::2], asked)) + same - less
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
            kept = (self._rows, self.turns, self._vectors)
            try:
                replace_file(self.embedding.folder / _FILE, msgspec.msgpack.encode(kept))
            except OSError as error:  # it can be made anew: no question fails for it
                _log.warning("orders not kept error=%s", type(error).__name__)


class Standing:
    """The orders of one account, each memory's read once: by its words, and by its meaning once indexed."""

    def __init__(self, changed: Callable[[int], int], asking: Callable[[], Asking | None]) -> None:
        """`changed` tells since which version up to another one no order came or went by its words."""
        self._changed, self._asking = changed, asking
        self._lock = threading.Lock()
        self._held: tuple[object, list[Order]] = (None, [])
        self._by_row: dict[int, list[Order]] = {}
        self._by_turn: dict[Turn, list[Order]] = {}
        self._ends: list[Memory] = []

    def orders(self, base: DbView, own: Sequence[Memory], scopes: Sequence[str] | None) -> list[Order]:
        """The orders that hold at a version and in a sandbox's own writes, as some scopes see them."""
        held = self._all(base)
        if not held and not own:
            return []
        changed = {memory.id for memory in own}
        held = [order for order in held if order.memory not in changed]
        held += [order for memory in own for order in orders_of(memory)]
        known = [memory for memory in (*self._ends, *own) if scopes is None or memory.scope in scopes]
        ended = told.ended_in(memory for memory in known if memory in own or memory.id not in changed)
        seen = told.distinct((order for order in held if scopes is None or order.scope in scopes), ended)
        wishes = sorted((order for order in seen if order.is_wish), key=lambda order: order.doubt > 0)
        left_out = {order.key for order in wishes[_WISHES:]}
        return [order for order in seen if order.key not in left_out] if left_out else seen

    def applying(
        self, question: str, orders: Sequence[Order], query: Array | None, asking: Asking | None
    ) -> list[Order]:
        """The few orders that apply to a question, by meaning if there is a vector of it, else by words."""
        if orders and query is not None and asking is not None:
            try:
                floor = _FITTED if asking.is_fitted else _OTHER_MODEL
                return told.applying(question, orders, asking.fits(question, orders, query), floor=floor)
            except ModelFailed:
                pass  # words alone decide, as they do for the hits
        return told.applying(question, orders, None)

    def _all(self, base: DbView) -> list[Order]:
        """Every order at a version, read again only where that may have changed."""
        asking = self._asking()
        turns = asking.turns if asking is not None else []
        with self._lock:
            key = (self._changed(base.version), id(asking), len(turns), turns[-1:])
            if self._held[0] != key:
                found = self._of_rows(base) + (self._of_turns(base, asking) if asking else [])
                self._ends = base.memories(Filter(kinds=("register",), category=told.ENDED)) if found else []
                self._held = (key, list({(o.memory, o.turn, o.text): o for o in found}.values()))
            return self._held[1]

    def _of_rows(self, base: DbView) -> list[Order]:
        """Those that the state knows by their words."""
        rows = base.telling((ORDERS,), None, _MOST)[::-1]
        new = [row for row in rows if row not in self._by_row]
        read = {row: orders_of(memory, since) for row, since, memory in base.at_rows(new)}
        self._by_row = {row: self._by_row[row] if row in self._by_row else read[row] for row in rows}
        return [order for orders in self._by_row.values() for order in orders]

    def _of_turns(self, base: DbView, asking: Asking) -> list[Order]:
        """Those that the index knows by their meaning, as far as they are valid."""
        live = base.many({memory for memory, *_ in asking.turns})
        kept: dict[Turn, list[Order]] = {}
        for turn in asking.turns:
            since, memory = live.get(turn[0], (0, None))
            if memory is not None and memory.rev == turn[1]:
                if turn not in self._by_turn:
                    read = orders_of(memory, since, asking.read)
                    self._by_turn[turn] = [order for order in read if order.turn == turn[2]]
                kept[turn] = self._by_turn[turn]
        self._by_turn = kept
        return [order for orders in kept.values() for order in orders]


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
