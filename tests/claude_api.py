"""A loopback Messages API, the outside party of a coding agent: it answers by a script and notes requests."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from threading import Thread
from typing import Any

_NUMBERS = count()

Block = dict[str, Any]
Script = Callable[[Mapping[str, Any]], list[Block]]


def says(text: str) -> Block:
    return {"type": "text", "text": text}


def calls(tool: str, **arguments: Any) -> Block:
    return {
        "type": "tool_use",
        "id": f"toolu_{tool[-12:]}_{next(_NUMBERS)}",
        "name": tool,
        "input": arguments,
    }


class Api(ThreadingHTTPServer):
    """The running server: what it was asked, and the script by which it answers."""

    daemon_threads = True

    def __init__(self, script: Script) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self.requests: list[Mapping[str, Any]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"


@contextmanager
def messages_api(script: Script) -> Iterator[Api]:
    """Serve the Messages API on the loopback interface."""
    api = Api(script)
    thread = Thread(target=api.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield api
    finally:
        api.shutdown()
        api.server_close()
        thread.join()


def _events(model: str, blocks: list[Block]) -> Iterator[tuple[str, dict[str, Any]]]:
    usage = {"input_tokens": 1, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": []}
    yield (
        "message_start",
        {"message": {**message, "stop_reason": None, "stop_sequence": None, "usage": usage}},
    )
    for index, block in enumerate(blocks):
        if block["type"] == "text":
            start, delta = {**block, "text": ""}, {"type": "text_delta", "text": block["text"]}
        else:
            start = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield "content_block_start", {"index": index, "content_block": start}
        yield "content_block_delta", {"index": index, "delta": delta}
        yield "content_block_stop", {"index": index}
    reason = "tool_use" if any(block["type"] == "tool_use" for block in blocks) else "end_turn"
    yield "message_delta", {"delta": {"stop_reason": reason, "stop_sequence": None}, "usage": usage}
    yield "message_stop", {}


class _Handler(BaseHTTPRequestHandler):
    server: Api

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"{}")
        if not self.path.startswith("/v1/messages") or "count_tokens" in self.path:
            return self._send("application/json", b'{"input_tokens": 1}')
        self.server.requests.append(request)
        blocks = self.server.script(request)
        if not request.get("stream"):
            whole = {"id": "msg_1", "type": "message", "role": "assistant", "model": request["model"]}
            more = {
                "content": blocks,
                "stop_reason": "end_turn",
                "usage": {"input_tokens": 1, "output_tokens": 1},
            }
            return self._send("application/json", json.dumps({**whole, **more}).encode())
        parts = [
            f"event: {name}\ndata: {json.dumps({'type': name, **event})}\n\n"
            for name, event in _events(request["model"], blocks)
        ]
        return self._send("text/event-stream", "".join(parts).encode())

    def do_GET(self) -> None:
        self._send("application/json", b"{}")

    def do_HEAD(self) -> None:
        self._send("application/json", b"")

    def _send(self, type_: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Type", type_)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the overridden name
        """Say nothing on standard error."""
