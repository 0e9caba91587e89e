"""Leanings: how far a vector of the offline embedder leans towards a standing order or a wish.

"Mornings work best for me" is a wish without any word that says so. The directions in which orders and wishes
lie were fitted once, on sentences of our own (`bench.leanings`); Thai leans the same way without being asked.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from octavo.libraries import Array, np, product

_LEAST = (0.0, 1.0, -0.4)  # how far a sentence must lean
_PASSAGE = 3.5  # and how much less a passage that may hold such a sentence among others
_CLASS = 0.75  # how much of what a class has in common says nothing about what a text of it is about


def leanings(vectors: Array) -> Array:
    """How far vectors lean towards orders, wishes and orders about everything; above zero they are such."""
    lines = _rows()[:3]
    found: Array = product(vectors, lines[:, :-1].T) + (lines[:, -1] - np.array(_LEAST, dtype=np.float32))
    return found


def may_hold(vectors: Array) -> Array:
    """Which passages may hold an order or a wish among other sentences."""
    found: Array = leanings(vectors)[:, :2].max(axis=1) > -_PASSAGE
    return found


def fits(question: Array, sentences: Array, conditions: Array, is_wish: Array, is_alone: Array) -> Array:
    """How near orders come to a question in what they are about: cosines of what no class has in common.

    Two columns: by the sentence and by its condition; where `is_alone`, that is the sentence again.
    """
    orders, wishes, subjects, questions = _CLASS * _rows()[3:, :-1]
    said = _of_length_one(sentences - np.where(is_wish[:, None], wishes, orders))
    when = np.where(is_alone[:, None], said, _of_length_one(conditions - subjects))
    asked = _of_length_one(_of_length_one(question[None, :]) - questions)[0]
    return np.stack([product(said, asked), product(when, asked)], axis=1)


def _of_length_one(vectors: Array) -> Array:
    found: Array = vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-9)
    return found.astype(np.float32)


@cache
def _rows() -> Array:
    """Three directions, each with its offset, then the means of orders, wishes, conditions and questions."""
    data = (files("octavo.models") / "leanings.bin").read_bytes()
    return np.frombuffer(data, dtype="<f2").reshape(7, -1).astype(np.float32)
