"""A server that speaks the embeddings protocol on the loopback interface, and fails when told to."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from msgspec import Struct, field

from octavo.testing.embedders import seeded_vector


class EmbeddingServer(Struct):
    """A running server: where it listens, what it was asked, and the statuses it answers with first."""

    url: str
    dimension: int
    failures: list[int] = field(default_factory=list)
    raw: bytes | None = None
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)


@contextmanager
def embedding_server(dimension: int = 16) -> Iterator[EmbeddingServer]:
    """Run a server of seeded vectors on the loopback interface."""
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    server = EmbeddingServer(f"http://127.0.0.1:{listening.server_address[1]}/v1", dimension)
    listening.embedding = server  # type: ignore[attr-defined]  # the handler finds its server by this name
    thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        listening.shutdown()
        listening.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: EmbeddingServer = self.server.embedding  # type: ignore[attr-defined]
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        server.requests.append(request)
        server.keys.append(self.headers.get("Authorization"))
        if self.path != "/v1/embeddings":
            self._send(404, b"{}")
        elif server.failures:
            self._send(server.failures.pop(0), b'{"error": {"message": "not now"}}')
        else:
            self._send(200, server.raw if server.raw is not None else _answer(request, server.dimension))

    def _send(self, status: int, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the overridden parameter
        """Say nothing on standard error."""


def _answer(request: dict[str, Any], dimension: int) -> bytes:
    entries = [
        {"object": "embedding", "index": index, "embedding": seeded_vector(text, dimension)}
        for index, text in enumerate(request["input"])
    ]
    # In no order: the protocol gives an index, and clients have to use it.
    return json.dumps({"object": "list", "model": request["model"], "data": entries[::-1]}).encode()
