"""Leanings: whether a sentence is an order's or a wish's by its vector and its shape, and what it is about.

"Mornings work best for me" is a wish without any word that says so, and it applies to "find a time for the
dentist" though they share no word. The directions in which orders and wishes lie, and some forty domains that
people ask about, were fitted once, on sentences of our own (`bench.leanings`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from octavo.libraries import Array, np, product

DIMENSION, SHAPES = 512, 27  # of a vector, and of a shape
SHAPE = 0.35  # what each feature of a shape counts beside a vector of length one
_LEAST = (1.2, 1.6, 0.3)  # how far a sentence must lean
_PASSAGE = 4.2  # and how much less the vector of a passage that may hold such a sentence among others
_CLASS = 0.75  # how much of what a class has in common says nothing about what a text of it is about
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


def advice(question: Array, shape: Sequence[bool]) -> float:
    """How far a question asks for advice or work, rather than about the world or what was."""
    line = _rows()[3]
    return float(question @ line[:DIMENSION]) + SHAPE * float(line[DIMENSION:-1] @ shape) + float(line[-1])


def means() -> Array:
    """What orders, wishes, conditions and questions have in common."""
    found: Array = _rows()[4:8, :DIMENSION]
    return found


def without(vectors: Array, mean: Array) -> Array:
    """Vectors of length one without most of what their class has in common."""
    rest = vectors - _CLASS * mean
    found: Array = rest / np.maximum(np.linalg.norm(rest, axis=1, keepdims=True), 1e-9)
    return found.astype(np.float32)


def domains(vectors: Array) -> Array:
    """How much vectors are about each domain, so that those about the same have a product near one."""
    lines = _rows()[8:]
    shares = 1 / (1 + np.exp(-(product(vectors, lines[:, :DIMENSION].T) + lines[:, -1])))
    found: Array = shares / np.maximum(np.linalg.norm(shares, axis=1, keepdims=True), _UNCLEAR)
    return found


@cache
def _rows() -> Array:
    """Three directions, that of asking for advice; four means; a line for each domain.

    The means are those of orders, wishes, conditions and questions.
    A row has a column for each of a vector, of a shape (which only the directions use), and an offset.
    """
    data = (files("octavo.models") / "leanings.bin").read_bytes()
    return np.frombuffer(data, dtype="<f2").reshape(-1, DIMENSION + SHAPES + 1).astype(np.float32)
