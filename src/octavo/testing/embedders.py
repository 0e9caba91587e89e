"""The suite that every embedder passes, and vectors for fakes.

An embedder proves itself by subclassing `EmbedderSuite` in a test file and giving `embedder`.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence

from octavo.models.embedders import Embedder

TEXTS = (
    "I moved to Chiang Mai last week.",
    "ฉันย้ายไปเชียงใหม่เมื่อสัปดาห์ที่แล้ว",
    "The deployment failed because the disk was full.",
    "🙂",
    "",
    " \n ",
    "long " * 2000,
)
TOLERANCE = 1e-3


class EmbedderSuite:
    """What recall needs of an embedder; subclass it and give `embedder`.

    `understands` says that texts of like meaning lie nearer than others; a test double need not.
    """

    understands = True

    def embedder(self) -> Embedder:
        """A new embedder of the kind under test."""
        raise NotImplementedError

    def test_it_has_a_name_and_a_dimension(self) -> None:
        embedder = self.embedder()
        assert embedder.name
        assert embedder.dimension > 0

    def test_it_returns_one_finite_vector_of_its_dimension_a_text(self) -> None:
        embedder = self.embedder()
        vectors = _rows(embedder, TEXTS)
        assert len(vectors) == len(TEXTS)
        assert all(len(vector) == embedder.dimension for vector in vectors)
        assert all(math.isfinite(x) for vector in vectors for x in vector)

    def test_no_texts_are_no_vectors(self) -> None:
        assert len(self.embedder().embed([])) == 0

    def test_the_same_text_has_the_same_vector_alone_and_among_others(self) -> None:
        embedder = self.embedder()
        together = _rows(embedder, TEXTS[:3])
        for text, vector in zip(TEXTS[:3], together, strict=True):
            (alone,) = _rows(embedder, [text])
            assert _far(alone, vector) < TOLERANCE

    def test_two_embedders_of_one_name_agree(self) -> None:
        one, two = self.embedder(), self.embedder()
        assert one.name == two.name
        assert _far(_rows(one, TEXTS[:1])[0], _rows(two, TEXTS[:1])[0]) < TOLERANCE

    def test_different_texts_have_different_vectors(self) -> None:
        one, two = _rows(self.embedder(), [TEXTS[0], TEXTS[2]])
        assert _far(one, two) > TOLERANCE

    def test_like_meanings_lie_nearer_than_unlike_ones(self) -> None:
        if not self.understands:
            return
        texts = ["Where does she live?", "She has an apartment in Bangkok.", "The printer is out of paper."]
        question, like, unlike = _rows(self.embedder(), texts)
        assert _cosine(question, like) > _cosine(question, unlike)


def seeded_vector(text: str, dimension: int) -> list[float]:
    """A vector that follows from the text alone."""
    vector: list[float] = []
    while len(vector) < dimension:
        digest = hashlib.sha256(f"{len(vector)} {text}".encode()).digest()
        vector.extend((byte - 127.5) / 127.5 for byte in digest)
    return vector[:dimension]


def _rows(embedder: Embedder, texts: Sequence[str]) -> list[list[float]]:
    return [[float(x) for x in row] for row in embedder.embed(list(texts))]


def _far(one: Sequence[float], two: Sequence[float]) -> float:
    return max(abs(a - b) for a, b in zip(one, two, strict=True))


def _cosine(one: Sequence[float], two: Sequence[float]) -> float:
    product = sum(a * b for a, b in zip(one, two, strict=True))
    return product / (math.hypot(*one) * math.hypot(*two))
