"""Leanings: whether a sentence is an order's or a wish's by its vector and its shape, and what it is about.

"Mornings work best for me" is a wish without any word that says so, and it applies to "find a time for the
dentist" though they share no word. The directions in which orders and wishes lie, and some forty domains that
people ask about, were fitted once, on sentences of our own (`bench.leanings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from octavo.domain.orders import terms
from octavo.libraries import Array, np, product

_DIMENSION, SHAPES = 512, 27  # of a vector, and of a shape
SHAPE = 0.35  # what each feature of a shape counts beside a vector of length one
_LEAST = (1.2, 1.6, 0.3)  # how far a sentence must lean
_PASSAGE = 4.2  # and how much less the vector of a passage that may hold such a sentence among others
_CLASS = 0.75  # how much of what a class has in common says nothing about what a text of it is about
_ASKING = 0.5  # where asking for advice or work begins
_UNCLEAR = 0.25  # what is about nothing in particular shares no domain with anything


def leanings(vectors: Array, shapes: Sequence[Sequence[bool]]) -> Array:
    """How far sentences lean towards orders, wishes and orders about everything; above zero they are such."""
    seen = np.concatenate([vectors, SHAPE * np.array(shapes, dtype=np.float32)], axis=1)
    return _lean(seen) - np.array(_LEAST, dtype=np.float32)


def may_hold(vectors: Array) -> Array:
    """Which passages may hold an order or a wish among other sentences."""
    found: Array = _lean(vectors)[:, :2].max(axis=1) > -_PASSAGE
    return found


def _lean(seen: Array) -> Array:
    lines = _rows()[:3]
    found: Array = product(seen, lines[:, : seen.shape[1]].T) + lines[:, -1]
    return found


def fits(
    question: Array,
    shape: Sequence[bool],
    sentences: Array,
    conditions: Array,
    is_wish: Array,
    is_alone: Array,
    shares_words: Array,
) -> Array:
    """How far orders apply to a question (of length one), above zero where they do.

    What is told by `features_of` counts, what kind of question it is for an order or for a wish, and how the
    question and the order lie on some axes of their own.
    """
    seen = features_of(question, shape, sentences, conditions, is_wish, is_alone, shares_words)
    lines, width = _applying(), (len(_applying()) - 3) // 3
    ask, said, when = (lines[3 + place * width :][:width, :_DIMENSION] for place in range(3))
    lean = product(lines[1:3], np.concatenate([question, np.array(shape, dtype=np.float32)]))
    near = product(ask, question)
    found: Array = product(seen, lines[0, : seen.shape[1]]) + lean[is_wish.astype(int)]
    return found + product(sentences, product(said.T, near)) + product(conditions, product(when.T, near))


def features_of(
    question: Array,
    shape: Sequence[bool],
    sentences: Array,
    conditions: Array,
    is_wish: Array,
    is_alone: Array,
    shares_words: Array,
) -> Array:
    """A row for each order: how near it comes to a question, whether domains and words are shared.

    Each of these counts otherwise for wishes, and by how much the question asks for advice or work: what asks
    about the world or about what was is nobody's wish, however near it comes. Where `is_alone`, an order
    has no condition beside its sentence.
    """
    orders, wishes, subjects, questions = _rows()[4:8, :_DIMENSION]
    said = without(sentences, np.where(is_wish[:, None], wishes, orders))
    asked = without(question[None, :], questions)[0]
    about = _domains(asked[None, :])[0]
    near, shared = product(said, asked), product(_domains(said), about)
    rest = np.flatnonzero(~is_alone)
    when = without(conditions[rest], subjects)
    near[rest] = np.maximum(near[rest], product(when, asked))
    shared[rest] = (shared[rest] + product(_domains(when), about)) / 2
    line = _rows()[3]
    advice = float(question @ line[:_DIMENSION]) + SHAPE * float(line[_DIMENSION:-1] @ shape) + line[-1]
    asks = np.array([1.0, np.tanh(advice), np.log1p(np.exp(_ASKING - advice))])
    ones = np.ones(len(said))
    fit, kind = np.stack([ones, near, shared, shares_words], 1), np.stack([ones, is_wish], 1)
    found: Array = np.einsum("na,b,nc->nabc", fit, asks, kind).reshape(len(said), -1).astype(np.float32)
    return found


def share_words(question: str, sentence: str) -> bool:
    """Whether a question and an order have a word in common."""
    return not terms(question).isdisjoint(terms(sentence))


def without(vectors: Array, mean: Array) -> Array:
    """Vectors of length one without most of what their class has in common."""
    rest = vectors - _CLASS * mean
    found: Array = rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-9)
    return found.astype(np.float32)


def _domains(vectors: Array) -> Array:
    """How much vectors are about each domain, so that those about the same have a product near one."""
    lines = _rows()[8:]
    shares = 1 / (1 + np.exp(-(product(vectors, lines[:, :_DIMENSION].T) + lines[:, -1])))
    found: Array = shares / np.maximum(np.linalg.norm(shares, axis=1, keepdims=True), _UNCLEAR)
    return found


@cache
def _rows() -> Array:
    """Three directions, that of asking for advice; four means; a line for each domain.

    The means are those of orders, wishes, conditions and questions.
    A row has a column for each of a vector, of a shape (which only the directions use), and an offset.
    """
    data = (files("octavo.models") / "leanings.bin").read_bytes()
    return np.frombuffer(data, dtype="<f2").reshape(-1, _DIMENSION + SHAPES + 1).astype(np.float32)


@cache
def _applying() -> Array:
    """What each feature counts, a line for what is asked of orders and of wishes; then axes.

    As many axes are there for questions as for sentences and for conditions.
    """
    data = (files("octavo.models") / "applying.bin").read_bytes()
    return np.frombuffer(data, dtype="<f2").reshape(-1, _DIMENSION + SHAPES).astype(np.float32)
