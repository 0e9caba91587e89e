"""The reranker: its model, a caller's own function, a server, a clear word when its extra is missing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import numpy as np
import pytest

from octavo.errors import BadInput, ModelFailed
from octavo.models import rerank
from octavo.models.rerank import EndpointReranker, gains, is_rerank_installed, offline_reranker


def test_a_missing_extra_is_named_with_what_to_do(monkeypatch):
    monkeypatch.setattr(rerank, "find_spec", lambda name: None)
    assert not is_rerank_installed()
    with pytest.raises(ModelFailed, match="onnxruntime") as caught:
        offline_reranker()
    assert 'pip install "octavo[rerank]"' in caught.value.advice


def test_the_model_gives_every_token_a_short_vector_of_length_one():
    model = offline_reranker()
    (ids, vectors), (none, nothing) = model.encode(["Our puppy is called Bruno.", ""])
    assert len(ids) == len(vectors) > 4
    assert vectors.shape[1] == model.dimension <= 96
    assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-3)
    assert len(none) == len(nothing) == 0


def test_all_accounts_of_a_process_share_one_model():
    assert offline_reranker().encode == offline_reranker().encode


def test_the_model_finds_the_text_that_answers():
    model = offline_reranker()
    (_, asked), (_, bill), (_, dog) = model.encode(
        ["What is the name of the dog?", "The invoice was paid on Friday.", "Our puppy is called Bruno."]
    )
    assert (asked @ dog.T).max(axis=1).mean() > (asked @ bill.T).max(axis=1).mean()


@pytest.mark.parametrize(
    ("text", "is_read"),
    [
        ("Where does she live?", True),
        ("Wo wohnt Zoë jetzt, Straße 7?", True),
        ("เธออยู่ที่ไหน", False),
        ("where is บ้าน?", False),
        ("Где она живёт?", False),
        ("42!", True),
    ],
)
def test_the_model_says_which_scripts_it_reads(text, is_read):
    assert offline_reranker().reads(text) is is_read


def test_a_callers_own_scores_are_brought_to_one_scale():
    small = gains(lambda question, texts: [0.1, 0.2, 0.3], "q", ["a", "b", "c"])
    large = gains(lambda question, texts: [100, 200, 300], "q", ["a", "b", "c"])
    assert small == pytest.approx(large)
    assert sum(small) == pytest.approx(0)
    assert small[2] > small[1] > small[0]
    assert gains(lambda question, texts: [5, 5], "q", ["a", "b"]) == [0, 0]


@pytest.mark.parametrize("scores", [[1.0], [1.0, float("nan")], []])
def test_a_callers_own_scores_must_be_one_number_a_text(scores):
    with pytest.raises(ModelFailed, match="scores for 2 texts"):
        gains(lambda question, texts: scores, "q", ["a", "b"])


class Server(BaseHTTPRequestHandler):
    """A rerank server that counts shared words and answers in an order of its own."""

    def do_POST(self):
        """Answer, or say what the test asked for."""
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = set(body["query"].split())
        scored = [
            {"index": n, "relevance_score": len(asked & set(text.split()))}
            for n, text in enumerate(body["documents"])
        ]
        answer = {"results": scored[::-1]} if body["model"] == "counts" else {"oops": 1}
        self.server.seen.append((self.path, self.headers.get("Authorization")))
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps(answer).encode())

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def server() -> Iterator[HTTPServer]:
    found = HTTPServer(("127.0.0.1", 0), Server)
    found.seen = []
    thread = threading.Thread(target=found.serve_forever)
    thread.start()
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def test_a_server_gives_one_score_a_text_in_their_order(server):
    url = f"http://127.0.0.1:{server.server_port}/v1"
    reranker = EndpointReranker(url=url, model="counts", key="k-1")
    assert reranker("green tea", ["coffee", "green tea", "tea"]) == [0, 2, 1]
    assert server.seen == [("/v1/rerank", "Bearer k-1")]
    assert "k-1" not in repr(reranker)


def test_a_server_that_answers_something_else_is_an_error(server):
    reranker = EndpointReranker(url=f"http://127.0.0.1:{server.server_port}", model="other", attempts=1)
    with pytest.raises(ModelFailed, match="not a rerank answer"):
        reranker("tea", ["tea"])
    with pytest.raises(BadInput, match="no http or https"):
        EndpointReranker(url="ftp://there", model="m")
