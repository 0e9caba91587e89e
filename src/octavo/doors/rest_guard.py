"""What every request passes first: the Host check, limits of size and rate; and what is counted of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from importlib import metadata
from typing import Any

from octavo.doors import problems
from octavo.doors.visitors import Visitors
from octavo.errors import OctavoError, TooLarge, TooOften

_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
Counts = Counter[tuple[str, str, int]]  # how many requests there were of each method, path and status
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"same-origin"))


class Guard:
    """The ASGI layer around the whole server.

    It limits how many bytes one request may carry, and how often one client may ask in some seconds.
    """

    def __init__(
        self,
        app: Any,
        *,
        visitors: Visitors,
        counts: Counts,
        max_bytes: int = 4_000_000,
        requests: int = 5_000,
        seconds: float = 10.0,
    ) -> None:
        self._app, self._visitors, self._counts = app, visitors, counts
        self._max_bytes, self._requests, self._seconds = max_bytes, requests, seconds
        self._asked: Counter[str] = Counter()
        self._since = time.monotonic()

    async def __call__(self, scope: _Message, receive: _Receive, send: _Send) -> None:
        """Let a request in, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from starlette.exceptions import HTTPException

        status, left = 500, self._max_bytes

        async def received() -> _Message:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:  # its length need not have been said beforehand
                # The framework takes any other error for a body that is no JSON.
                raise HTTPException(TooLarge.http_status, self._too_large)
            return message

        async def sent(message: _Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)

        try:
            self._must_pass(scope)
            await self._app(scope, received, sent)
        except OctavoError as error:
            await problems.response(error, str(scope["path"]))(scope, receive, sent)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._counts[method, str(getattr(scope.get("route"), "path", "other")), status] += 1

    @property
    def _too_large(self) -> str:
        return f"a request may carry {self._max_bytes:,} bytes"

    def _must_pass(self, scope: _Message) -> None:
        headers, now = dict(scope["headers"]), time.monotonic()
        self._visitors.must_know_host(headers.get(b"host", b"").decode("latin-1"))
        if now - self._since > self._seconds:
            self._asked, self._since = Counter(), now
        client = scope["client"][0] if scope.get("client") else ""
        self._asked[client] += 1
        if self._asked[client] > self._requests:
            raise TooOften(f"{client} asks more than {self._requests:,} times in {self._seconds:g} seconds")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._max_bytes:
            raise TooLarge(self._too_large)


def metrics(counts: Counts, pool: Mapping[str, int]) -> Iterator[str]:
    """The lines that a collector reads, in Prometheus' text form."""
    yield from ("# TYPE octavo_info gauge", f'octavo_info{{version="{metadata.version("octavo")}"}} 1')
    yield "# TYPE octavo_requests_total counter"
    for (method, path, status), many in sorted(counts.items()):
        yield f'octavo_requests_total{{method="{method}",path="{path}",status="{status}"}} {many}'
    for name, number in pool.items():
        is_total = name in ("opened", "closed")
        full = f"octavo_pool_{name}_total" if is_total else f"octavo_pool_{name}"
        yield from (f"# TYPE {full} {'counter' if is_total else 'gauge'}", f"{full} {number}")
