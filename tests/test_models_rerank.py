"""The reranker: token by token, neighbours in part, a clear word when its extra is missing."""

from __future__ import annotations

import numpy as np
import pytest

from octavo.errors import ModelFailed
from octavo.models import rerank
from octavo.models.rerank import Reranker, is_rerank_installed, offline_reranker


class Letters:
    """An encoder whose tokens are words, each its own direction; it counts what it was asked for."""

    def __init__(self):
        self.seen = []
        self.places = {}

    def __call__(self, texts):
        self.seen.extend(texts)
        return [self._tokens(text.split()) for text in texts]

    def _tokens(self, words):
        ids = [self.places.setdefault(word, len(self.places)) for word in words]
        return np.array(ids, dtype=np.int64), np.eye(64, dtype=np.float32)[ids].reshape(-1, 64)


def test_the_text_that_shares_more_tokens_gains():
    gains = Reranker(encode=Letters()).adjust("ชา เขียว", ["ชา เขียว ร้อน", "ชา ดำ", "กาแฟ"], [[], [], []])
    assert gains[0] > gains[1] > gains[2]
    assert sum(gains) == pytest.approx(0)


def test_a_neighbour_supplies_a_missing_token_in_part():
    texts = ["violin", "violin", "piano", "which instrument"]
    alone, beside, other = Reranker(encode=Letters()).adjust("instrument violin", texts, [[], [3], []])
    assert beside > alone > other


def test_a_rare_token_tells_more_than_a_common_one():
    texts = ["the cat", "the dog", "the bird", "cat"]
    gains = Reranker(encode=Letters()).adjust("the dog", texts, [[], [], [], []])
    assert gains.index(max(gains)) == 1


def test_texts_are_encoded_once():
    encoder = Letters()
    reranker = Reranker(encode=encoder)
    for _ in range(2):
        reranker.adjust("tea", ["ชา", "tea", "tea"], [[], [], []])
    assert encoder.seen.count("ชา") == 1


@pytest.mark.parametrize("text", ["", "   "])
def test_empty_texts_and_questions_do_no_harm(text):
    reranker = Reranker(encode=Letters())
    assert len(reranker.adjust("tea", [text, "tea"], [[1], []])) == 2
    assert reranker.adjust(text, ["tea"], [[]]) == [0.0]
    assert reranker.adjust("tea", ["tea"], []) == []


def test_a_missing_extra_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(rerank, "find_spec", lambda name: None)
    assert not is_rerank_installed()
    with pytest.raises(ModelFailed, match="onnxruntime") as caught:
        offline_reranker()
    assert "octavo[rerank]" in caught.value.advice


def test_the_model_itself_lifts_the_text_that_answers():
    texts = ["The invoice was paid on Friday.", "Our puppy is called Bruno."]
    first, second = offline_reranker().adjust("What is the name of the dog?", texts, [[], []])
    assert second > 0 > first
