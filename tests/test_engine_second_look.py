"""The second look: on by itself, made when indexing, never at recall; off in four ways; a caller's own."""

from __future__ import annotations

import numpy as np
import pytest

from octavo.domain.policy import IndexPolicy, Policy
from octavo.engine import opening
from octavo.errors import ModelFailed
from octavo.models import rerank
from octavo.models.rerank import TokenReranker

DIMENSION = 64


class Letters:
    """An encoder whose tokens are words, each its own direction; it notes what it was asked for."""

    def __init__(self):
        self.seen = []
        self.places = {}

    def __call__(self, texts):
        self.seen.extend(texts)
        return [self._tokens(text.lower().strip("?.!").split()) for text in texts]

    def _tokens(self, words):
        ids = [self.places.setdefault(word, len(self.places) % DIMENSION) for word in words]
        return np.array(ids, dtype=np.int64), np.eye(DIMENSION, dtype=np.float32)[ids].reshape(-1, DIMENSION)


@pytest.fixture
def letters():
    return Letters()


@pytest.fixture
def reranker(letters):
    return TokenReranker(
        name="letters", dimension=DIMENSION, encode=letters, reads=lambda text: "ช" not in text
    )


def told(account):
    with account.sandbox() as sandbox:
        sandbox.turn("user", "The mango was sweet.")
        sandbox.turn("assistant", "We sat at the harbour.")
        sandbox.turn("user", "A mango a day keeps worries away.")
        sandbox.turn("assistant", "ชาเขียวกับ mango")
    account.catch_up()


def test_tokens_are_made_when_indexing_and_nothing_of_a_memory_at_recall(opened, letters, reranker):
    account = opened(embedder=False, reranker=reranker)
    told(account)
    assert {"The mango was sweet.", "We sat at the harbour."} <= set(letters.seen)
    letters.seen.clear()
    hits = account.recall("mango harbour", unit="turn")
    assert letters.seen == ["mango harbour"]
    assert any(hit.parts["rerank"] > 0 for hit in hits)
    assert abs(sum(hit.parts["rerank"] for hit in hits)) < 1e-5


def test_a_neighbour_supplies_a_missing_token_in_part(opened, reranker):
    account = opened(embedder=False, reranker=reranker)
    told(account)
    sweet, far = (
        next(h for h in account.recall("mango harbour", unit="turn") if h.text.startswith(start))
        for start in ("The mango", "A mango")
    )
    alone = opened(embedder=False, account="other", reranker=reranker)
    for text in ("The mango was sweet.", "A mango a day keeps worries away.", "We sat at the harbour."):
        alone.remember(text, kind="episode")
    alone.catch_up()
    bare = next(h for h in alone.recall("mango harbour") if h.text.startswith("The mango"))
    assert sweet.parts["rerank"] > bare.parts["rerank"]
    assert far.parts["rerank"] != 0


def test_what_the_model_does_not_read_is_neither_lifted_nor_lowered(opened, letters, reranker):
    account = opened(embedder=False, reranker=reranker)
    told(account)
    thai = next(h for h in account.recall("mango harbour", unit="turn") if "ชา" in h.text)
    assert thai.parts["rerank"] == 0
    letters.seen.clear()
    hits = account.recall("ชาเขียว mango", unit="turn")
    assert hits
    assert letters.seen == []
    assert not any("rerank" in hit.parts for hit in hits)


def test_what_is_new_keeps_its_place_until_it_is_indexed(opened, letters, reranker):
    account = opened(embedder=False, reranker=reranker)
    told(account)
    letters.seen.clear()
    with account.sandbox() as sandbox:
        sandbox.turn("user", "Mango again at the harbour.")
        hit = next(h for h in sandbox.recall("mango harbour", unit="turn") if "again" in h.text)
        assert hit.parts["rerank"] == 0
        assert set(letters.seen) == {"mango harbour"}
    account.catch_up()
    hit = next(h for h in account.recall("mango harbour", unit="turn") if "again" in h.text)
    assert hit.parts["rerank"] > 0


def test_the_passage_that_matched_is_looked_at(opened, reranker):
    account = opened(embedder=False, reranker=reranker)
    filler = " ".join(f"Nothing number{n} happened then." for n in range(60))
    account.remember(f"{filler} The harbour had a mango tree. {filler}", kind="episode")
    account.remember("The harbour is old.", kind="episode")
    account.catch_up()
    long = next(h for h in account.recall("mango harbour") if len(h.text) > 1000)
    assert long.passage > 0
    assert long.parts["rerank"] > 0


def test_tokens_live_on_in_another_handle_and_come_again_when_damaged(opened, root, letters, reranker):
    account = opened(embedder=False, reranker=reranker)
    told(account)
    account.close()
    letters.seen.clear()
    again = opened(embedder=False, reranker=reranker)
    assert "rerank" in again.recall("mango harbour", unit="turn")[0].parts
    assert letters.seen == ["mango harbour"]
    (vectors,) = root.rglob("tokens-letters/vectors.bin")
    vectors.write_bytes(bytes(vectors.stat().st_size))
    assert any("checksum" in problem for problem in again.check().problems)
    vectors.write_bytes(b"")
    hits = opened(embedder=False, reranker=reranker).recall("mango harbour", unit="turn")
    assert all(hit.parts["rerank"] == 0 for hit in hits)
    again.reindex()
    assert any(hit.parts["rerank"] > 0 for hit in again.recall("mango harbour", unit="turn"))
    assert again.check().problems == ()


def test_a_redacted_text_leaves_no_tokens(opened, root, letters, reranker):
    account = opened(embedder=False, reranker=reranker)
    secret = account.remember("the hidden orchard", kind="episode").memory
    account.remember("the open harbour", kind="episode")
    account.catch_up()
    account.redact(secret.id, reason="asked for")
    letters.seen.clear()
    account.catch_up()
    assert "the open harbour" in letters.seen
    assert not any("orchard" in text for text in letters.seen)


@pytest.mark.parametrize("off", ["call", "open", "policy", "environment", "words"])
def test_it_is_off_in_five_ways(opened, monkeypatch, letters, reranker, off):
    monkeypatch.setattr(rerank, "offline_reranker", lambda: reranker)
    monkeypatch.setattr(rerank, "is_rerank_installed", lambda: True)
    monkeypatch.setenv("OCTAVO_RERANKER", "none" if off == "environment" else "")
    how = {
        "call": {"reranker": reranker},
        "open": {"reranker": False},
        "policy": {"reranker": reranker, "policy": Policy(index=IndexPolicy(rerank=False))},
        "environment": {},
        "words": {"embedder": False},
    }[off]
    account = opened(**how)
    account.remember("the harbour", kind="episode")
    account.remember("the mango", kind="episode")
    account.catch_up()
    hits = account.recall("harbour mango", rerank=off != "call")
    assert len(hits) == 2
    assert not any("rerank" in hit.parts for hit in hits)


def test_it_is_on_by_itself_when_the_extra_is_installed(opened, monkeypatch, reranker):
    monkeypatch.setenv("OCTAVO_RERANKER", "")
    monkeypatch.setattr(rerank, "offline_reranker", lambda: reranker)
    monkeypatch.setattr(rerank, "is_rerank_installed", lambda: True)
    account = opened()
    told(account)
    assert "rerank" in account.recall("mango harbour", unit="turn")[0].parts
    monkeypatch.setattr(rerank, "is_rerank_installed", lambda: False)
    assert opening._reranker(None, Policy(), has_models=True) is None


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), None])
def test_token_vectors_that_are_none_change_nothing_and_are_told_of(opened, bad):
    def encode(texts):
        wide = DIMENSION if bad is not None else 3
        return [(np.arange(2), np.full((2, wide), bad or 0.0)) for _ in texts]

    account = opened(embedder=False)
    told(account)
    before = [hit.score for hit in account.recall("mango")]
    account = opened(
        embedder=False, reranker=TokenReranker(name="a/../b", dimension=DIMENSION, encode=encode)
    )
    hits = account.recall("mango")
    assert [hit.score for hit in hits] == pytest.approx(before, abs=1e-6)
    assert "gave no usable vectors for the tokens" in hits.notes[-1]


def test_a_callers_own_function_takes_the_second_look(opened):
    asked = []

    def longest(question, texts):
        asked.append((question, list(texts)))
        return [len(text) for text in texts]

    account = opened(embedder=False, reranker=longest)
    told(account)
    hits = account.recall("mango", unit="turn")
    ((question, texts),) = asked
    assert question == "mango"
    assert set(texts) == {hit.text for hit in hits}
    assert max(hits, key=lambda hit: hit.parts["rerank"]).text == max((h.text for h in hits), key=len)
    assert "is nearer to the question than most of what came" in hits[0].why


def test_the_second_look_claims_no_fit_where_nothing_fits(opened):
    account = opened(embedder=False, reranker=lambda question, texts: [len(text) for text in texts])
    told(account)
    hits = account.recall("mango", unit="turn")
    for hit in hits:
        said = {words: value for value, words in hit.reasons}
        nearer = said.get("is nearer to the question than most of what came", 0)
        further = said.get("is further from the question than most of what came", 0)
        assert (nearer > 0) is (hit.parts["rerank"] >= 0.005)
        assert (further < 0) is (hit.parts["rerank"] <= -0.005)
        assert not any("fit" in words for words in said)


def test_a_reranker_that_fails_leaves_the_hits_as_they_were_and_says_so(opened):
    def broken(question, texts):
        raise ModelFailed("the server is out")

    account = opened(embedder=False, reranker=broken)
    told(account)
    hits = account.recall("mango", unit="turn")
    assert hits
    assert any("the server is out" in note for note in hits.notes)
    assert not any("rerank" in hit.parts for hit in hits)
