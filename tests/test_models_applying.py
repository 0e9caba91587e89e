"""Which orders apply: what the nets tell of orders made into numbers once, and of how a question is put."""

from __future__ import annotations

import numpy as np
import pytest

from octavo.models.applying import Applying, put, share_words
from octavo.models.embedders import offline_embedder

ORDERS = ("I don't eat meat.", "แพ้ถั่ว กินแล้วหายใจไม่ออก", "Commit messages in the imperative, one line.")
WISHES = np.array([True, True, False])


def vectors(*texts: str) -> np.ndarray:
    found = np.asarray(offline_embedder().embed(list(texts)), dtype=np.float32)
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def made(*places: int) -> Applying:
    said = vectors(*(ORDERS[place] for place in places))
    return Applying(said, said, WISHES[[*places]], np.array([True] * len(places)))


def fits(orders: Applying, question: str, *places: int) -> list[float]:
    shared = np.array([share_words(question, ORDERS[place]) for place in places])
    return [float(fit) for fit in orders.fits(vectors(question)[0], question, shared)]


@pytest.mark.parametrize(
    ("question", "applies"),
    [
        ("what shall I cook tonight?", 0),
        ("สั่งขนมอะไรไปงานวันเกิดดี", 1),
        ("write the message for this commit", 2),
    ],
)
def test_what_applies_fits_better_than_what_is_about_something_else(question, applies):
    found = fits(made(0, 1, 2), question, 0, 1, 2)
    assert found[applies] > 0
    assert found[2 if applies < 2 else 0] < 0


def test_an_order_fits_as_well_among_others_as_alone():
    question = "ไปกินข้าวที่ไหนดี"
    together = fits(made(0, 1, 2), question, 0, 1, 2)
    for place in range(3):
        assert fits(made(place), question, place) == pytest.approx([together[place]], abs=1e-3)


def test_a_question_is_seen_by_the_words_that_it_is_put_with():
    cues = {"who wrote": 0, "ไหนดี": 1}
    assert put("Who wrote Emma?", cues)[-2:].tolist() == [1, 0]
    assert put("ไปกินที่ไหนดี", cues)[-2:].tolist() == [0, 1]
