"""A loopback server that speaks chat completions and misbehaves on demand, for tests of summarisers.

Only the loopback interface is used and nothing is recorded but what the test itself sends.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any

from msgspec import Struct, field

Request = Mapping[str, Any]


class Reply(Struct, frozen=True, kw_only=True):
    """One answer: the model's text in its envelope, or `raw` bytes as they are.

    `hang_seconds` waits before answering; `cut` promises more bytes than it sends.
    """

    text: str = ""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    hang_seconds: float = 0.0
    cut: bool = False


Behaviour = Reply | Callable[[Request], Reply]


class LlmServer(Struct, kw_only=True):
    """A running server: where it listens, what it was asked, and how it behaves (the last one repeats)."""

    base_url: str
    behaviours: list[Behaviour]
    requests: list[Request] = field(default_factory=list)
    keys: list[str | None] = field(default_factory=list)
    stopping: Event = field(default_factory=Event)

    def reply(self, request: Request, authorization: str | None) -> Reply:
        """Note the request and choose how to behave."""
        self.requests.append(request)
        self.keys.append(authorization)
        chosen = self.behaviours[min(len(self.requests), len(self.behaviours)) - 1]
        return chosen if isinstance(chosen, Reply) else chosen(request)


def says(answer: Any) -> Reply:
    """A well-behaved answer with this JSON."""
    return Reply(text=json.dumps(answer, ensure_ascii=False))


def speaks_no_json() -> Reply:
    """The model chats instead of answering with JSON."""
    return Reply(text="Sure! Here is your summary: they talked, and it was nice.")


def breaks_off() -> Reply:
    """The model's JSON ends in the middle."""
    return Reply(text='{"summary": [{"sentence": "They talked", "sources": ["ep')


def misses_the_schema() -> Reply:
    """Valid JSON of another shape."""
    return says({"summary": "one string", "key_events": 7})


def hangs(seconds: float) -> Reply:
    """No byte until that many seconds have passed (or the server stops)."""
    return Reply(text="{}", hang_seconds=seconds)


def is_busy(retry_after: int | None = None) -> Reply:
    """429, with how long to wait if given."""
    return Reply(
        status=429, headers={} if retry_after is None else {"Retry-After": str(retry_after)}, raw=b"{}"
    )


def fails() -> Reply:
    """500 with a page instead of JSON."""
    return Reply(status=500, raw=b"<html>Internal Server Error</html>")


def refuses() -> Reply:
    """401 that echoes the key, as some services do."""
    return Reply(status=401, raw=b'{"error": {"message": "Incorrect API key provided"}}')


def cuts() -> Reply:
    """The connection closes before the promised bytes are sent."""
    return Reply(text="{}", cut=True)


def sends_rubbish() -> Reply:
    """200 whose body is no JSON at all."""
    return Reply(raw=b"\x00\xff not json")


@contextmanager
def llm_server(*behaviours: Behaviour) -> Iterator[LlmServer]:
    """Run a server that behaves so, one behaviour a request, the last one from then on."""
    listening = ThreadingHTTPServer(("127.0.0.1", 0), _Handler)
    port = listening.server_address[1]
    server = LlmServer(base_url=f"http://127.0.0.1:{port}/v1", behaviours=list(behaviours))
    listening.llm = server  # type: ignore[attr-defined]  # the handler finds its server by this name
    thread = Thread(target=listening.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        listening.shutdown()
        listening.server_close()
        thread.join()


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server: LlmServer = self.server.llm  # type: ignore[attr-defined]  # set by llm_server
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = server.reply(request, self.headers.get("Authorization"))
        if self.path != "/v1/chat/completions":
            reply = Reply(status=404, raw=b"{}")
        if reply.hang_seconds and server.stopping.wait(reply.hang_seconds):
            return
        self._send(reply)

    def _send(self, reply: Reply) -> None:
        body = reply.raw
        if body is None:
            envelope = {"choices": [{"index": 0, "message": {"role": "assistant", "content": reply.text}}]}
            body = json.dumps(envelope, ensure_ascii=False).encode()
        try:
            self.send_response(reply.status)
            self.send_header("Content-Length", str(len(body) + (100 if reply.cut else 0)))
            for name, value in reply.headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)
        except (BrokenPipeError, ConnectionResetError):
            # The client has given up waiting, which is what a hanging answer is for.
            self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name of the overridden parameter
        """Say nothing on standard error."""
