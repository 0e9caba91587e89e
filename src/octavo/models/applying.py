"""Which orders and wishes apply to a question, by their vectors and by how the question is put.

"I don't eat meat" bears on "what shall we have tonight?" though they share no word, and not on "who sold the
first sausage?". A few small nets were fitted once, on orders and questions of our own (`bench.applying`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from importlib.resources import files
from itertools import accumulate

from octavo.domain.orders import shape_of, terms
from octavo.domain.wording import phrases_of
from octavo.libraries import Array, np, product
from octavo.models.leanings import DIMENSION, SHAPE, SHAPES, advice, domains, means, without

AXES, RANK, HIDDEN = 128, 48, 96  # what the nets see of a vector; products and units of them all
TOLD = 24
_ASKING = 0.5  # where asking for advice or work begins


class Applying:
    """Some orders as numbers, made once, for every question that is put to them."""

    def __init__(
        self,
        sentences: Array,
        conditions: Array,
        is_wish: Array,
        is_alone: Array,
        nets: Sequence[Array] | None = None,
    ) -> None:
        """`is_alone` tells which have no condition beside their sentence."""
        orders, wishes, subjects, self._questions = means()
        self._nets, self._is_wish = nets, is_wish.astype(int)
        self._sentences = np.concatenate([sentences, conditions])
        self._said = without(sentences, np.where(is_wish[:, None], wishes, orders))
        self._when = np.where(is_alone[:, None], self._said, without(conditions, subjects))
        self._about = (domains(self._said) + domains(self._when)) / 2

    @cached_property
    def _by_order(self) -> tuple[Sequence[Array], Array, Array]:
        """The nets, and what they make of the orders: products and units."""
        nets = read(_numbers(), len(_cues())) if self._nets is None else self._nets
        seen = np.hstack(np.split(product(self._sentences, nets[0]), 2))
        return nets, product(seen, nets[2]), product(seen, nets[4])

    def fits(
        self, question: Array, text: str, shares_words: Array, cues: Mapping[str, int] | None = None
    ) -> Array:
        """How far each applies to a question (its vector is of length one), above zero where it does."""
        (axes, of_question, _, asked, _, told, out, line, lean), products, lit = self._by_order
        meant = product(question, axes)
        seen = np.concatenate([meant, put(text, _cues() if cues is None else cues)])
        row = self.told(question, text, shares_words)
        lit = np.maximum(product(row, told) + product(seen, asked) + lit, 0)
        near = product(products, product(meant, of_question))
        found: Array = product(lit, out) + product(row, line) + near + product(seen, lean)[self._is_wish]
        return found

    def told(self, question: Array, text: str, shares_words: Array) -> Array:
        """A row for each order: how near it comes to a question, whether domains and words are shared.

        Each of these counts otherwise for wishes, and by how much the question asks for advice or work: what
        asks about the world or about what was is nobody's wish, however near it comes.
        """
        asked = without(question[None, :], self._questions)[0]
        near = np.maximum(product(self._said, asked), product(self._when, asked))
        shared = product(self._about, domains(asked[None, :])[0])
        asking = advice(question, shape_of(text))
        asks = np.array([1.0, np.tanh(asking), np.log1p(np.exp(_ASKING - asking))])
        ones = np.ones(len(near))
        fit = np.stack([ones, near, shared, shares_words], 1)
        kind = np.stack([ones, self._is_wish], 1)
        found: Array = np.einsum("na,b,nc->nabc", fit, asks, kind).reshape(-1, TOLD).astype(np.float32)
        return found


def put(question: str, cues: Mapping[str, int]) -> Array:
    """How a question is put: its shape, and which words and phrases it has."""
    found = np.zeros(SHAPES + len(cues), dtype=np.float32)
    found[:SHAPES] = shape_of(question)
    found[[SHAPES + cues[phrase] for phrase in cues.keys() & phrases_of(question)]] = 1
    found[:SHAPES] *= SHAPE
    return found


def share_words(question: str, sentence: str) -> bool:
    """Whether a question and an order have a word in common."""
    return not terms(question).isdisjoint(terms(sentence))


def read(numbers: Array, cues: int) -> Sequence[Array]:
    """The axes; products by question and by order; units by question, by order, by what is told and their
    weights; beside them what is told counts, and what a question is for orders and for wishes.
    """
    seen = AXES + SHAPES + cues
    shapes = (
        (DIMENSION, AXES), (AXES, RANK), (2 * AXES, RANK), (seen, HIDDEN), (2 * AXES, HIDDEN),
        (TOLD, HIDDEN), (HIDDEN,), (TOLD,), (seen, 2),
    )  # fmt: skip
    ends = accumulate(int(np.prod(shape)) for shape in shapes)
    parts = np.split(numbers, list(ends)[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


@cache
def _cues() -> Mapping[str, int]:
    lines = (files("octavo.models") / "applying.txt").read_text("utf-8").splitlines()
    return {cue: place for place, cue in enumerate(lines)}


@cache
def _numbers() -> Array:
    data = (files("octavo.models") / "applying.bin").read_bytes()
    return np.frombuffer(data, dtype="<f2").astype(np.float32)
