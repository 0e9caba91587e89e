"""Every embedder passes the shipped suite; an endpoint that misbehaves fails with a reason."""

from __future__ import annotations

import pytest

from embedding_server import embedding_server
from octavo.errors import BadInput, ModelFailed
from octavo.models import embedders
from octavo.models.embedders import (
    CallableEmbedder,
    EndpointEmbedder,
    OfflineEmbedder,
    is_offline_installed,
    offline_embedder,
)
from octavo.testing.embedders import EmbedderSuite, seeded_vector


class TestOffline(EmbedderSuite):
    """The default."""

    _shared = offline_embedder()

    def embedder(self):
        return self._shared


class TestCallable(EmbedderSuite):
    """A function of the caller's own."""

    understands = False

    def embedder(self):
        return CallableEmbedder(
            name="seeded", dimension=16, function=lambda texts: [seeded_vector(text, 16) for text in texts]
        )


class TestEndpoint(EmbedderSuite):
    """A server that speaks the protocol."""

    understands = False

    @pytest.fixture(autouse=True)
    def _server(self):
        with embedding_server(16) as server:
            self.server = server
            yield

    def embedder(self):
        return EndpointEmbedder(url=self.server.url, model="seeded", dimension=16, batch=2)


def _endpoint(server, **fields):
    return EndpointEmbedder(url=server.url, model="m", dimension=16, wait_seconds=0.001, **fields)


def test_the_offline_model_loads_with_the_first_text_and_once_for_all_accounts():
    assert is_offline_installed()
    embedders._load_offline.cache_clear()
    one, two = OfflineEmbedder(), OfflineEmbedder()
    assert embedders._load_offline.cache_info().currsize == 0
    assert (one.embed(["สวัสดี"]) == two.embed(["สวัสดี"])).all()
    assert embedders._load_offline.cache_info().misses == 1


def test_the_offline_model_knows_that_a_thai_and_an_english_sentence_say_the_same():
    english, thai, other = offline_embedder().embed(
        ["I live in Chiang Mai", "ฉันอาศัยอยู่ที่เชียงใหม่", "the disk of the server is full"]
    )
    assert english @ thai > english @ other


def test_many_texts_are_sent_in_batches_and_come_back_in_order():
    with embedding_server(16) as server:
        texts = [f"ข้อความ {number}" for number in range(7)]
        vectors = _endpoint(server, batch=3, key="k").embed(texts)
        assert [len(request["input"]) for request in server.requests] == [3, 3, 1]
        assert set(server.keys) == {"Bearer k"}
        for text, vector in zip(texts, vectors, strict=True):
            assert vector == pytest.approx(seeded_vector(text, 16))


def test_a_busy_endpoint_is_asked_again():
    with embedding_server(16) as server:
        server.failures = [503, 429]
        assert len(_endpoint(server).embed(["hello"])) == 1
        assert len(server.requests) == 3


def test_an_endpoint_that_stays_busy_fails_with_the_reason():
    with embedding_server(16) as server:
        server.failures = [503] * 9
        with pytest.raises(ModelFailed, match="503"):
            _endpoint(server).embed(["hello"])
        assert len(server.requests) == 3


def test_a_refusal_is_not_repeated_and_does_not_show_the_key():
    with embedding_server(16) as server:
        server.failures = [401] * 3
        with pytest.raises(ModelFailed, match="401") as caught:
            _endpoint(server, key="top-secret").embed(["hello"])
        assert len(server.requests) == 1
        assert "top-secret" not in str(caught.value)
    assert "top-secret" not in repr(_endpoint(server, key="top-secret"))


@pytest.mark.parametrize(
    "raw",
    [b"not json", b"{}", b'{"data": []}', b'{"data": [{"index": 0, "embedding": [1, 2]}]}', b'{"data": 3}'],
)
def test_an_answer_of_another_shape_is_a_failure(raw):
    with embedding_server(16) as server:
        server.raw = raw
        with pytest.raises(ModelFailed):
            _endpoint(server).embed(["hello"])


def test_nobody_listening_is_a_failure():
    with embedding_server(16) as server:
        pass
    with pytest.raises(ModelFailed, match="did not answer"):
        _endpoint(server, timeout_seconds=0.5).embed(["hello"])


def test_an_address_that_is_no_web_address_is_refused():
    with pytest.raises(BadInput):
        EndpointEmbedder(url="file:///etc/passwd", model="m", dimension=2)
