"""What every request passes first: the Host check, limits of size and rate; and what is counted of it."""

from __future__ import annotations

import threading
import time
from collections import Counter, defaultdict
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from importlib import metadata
from typing import Any

from msgspec import Struct

from octavo.doors import problems
from octavo.doors.pool import Pool
from octavo.doors.visitors import Visitors
from octavo.errors import OctavoError, TooLarge, TooOften

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"same-origin"))


class Limits(Struct, frozen=True, kw_only=True):
    """How much one request may carry, how often one client may ask in some seconds, how many may listen."""

    max_bytes: int = 4_000_000
    requests: int = 5_000
    seconds: float = 10.0
    streams: int = 100


class Guard:
    """The ASGI layer around the whole server."""

    def __init__(self, app: Any, *, visitors: Visitors, limits: Limits, metrics: Metrics) -> None:
        self._app, self._visitors, self._limits, self._metrics = app, visitors, limits, metrics
        self._asked: Counter[str] = Counter()
        self._since = time.monotonic()

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Let a request in, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, left = time.perf_counter(), 500, self._limits.max_bytes

        async def received() -> MutableMapping[str, Any]:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:  # its length need not have been said beforehand
                raise problems.too_large(self._limits.max_bytes)
            return message

        async def sent(message: MutableMapping[str, Any]) -> None:
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
            path = str(getattr(scope.get("route"), "path", "other"))
            self._metrics.note(str(scope["method"]), path, status, time.perf_counter() - began)

    def _must_pass(self, scope: _Scope) -> None:
        headers, limits, now = dict(scope["headers"]), self._limits, time.monotonic()
        self._visitors.must_know_host(headers.get(b"host", b"").decode("latin-1"))
        if now - self._since > limits.seconds:
            self._asked, self._since = Counter(), now
        client = scope["client"][0] if scope.get("client") else ""
        self._asked[client] += 1
        if self._asked[client] > limits.requests:
            raise TooOften(f"{client} asks more than {limits.requests:,} times in {limits.seconds:g} seconds")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > limits.max_bytes:
            raise TooLarge(f"a request may carry {limits.max_bytes:,} bytes")


class Metrics:
    """Counts of requests and of the time they took, in Prometheus' text form."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._times: defaultdict[str, list[float]] = defaultdict(lambda: [0, 0.0])  # how many, seconds

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        with self._lock:
            self._requests[method if method in _METHODS else "other", path, status] += 1
            self._times[path][0] += 1
            self._times[path][1] += seconds

    def text(self) -> str:
        """The page that a collector reads."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        yield "# TYPE octavo_info gauge"
        yield f'octavo_info{{version="{metadata.version("octavo")}"}} 1'
        yield "# TYPE octavo_requests_total counter"
        for (method, path, status), count in sorted(self._requests.items()):
            yield f'octavo_requests_total{{method="{method}",path="{path}",status="{status}"}} {count}'
        yield "# TYPE octavo_request_seconds summary"
        for path, (many, total) in sorted(self._times.items()):
            yield f'octavo_request_seconds_sum{{path="{path}"}} {total:.6f}'
            yield f'octavo_request_seconds_count{{path="{path}"}} {many:g}'
        for name, number in self._pool.counts.items():
            kind = "counter" if name in ("opened", "closed") else "gauge"
            full = f"octavo_pool_{name}_total" if kind == "counter" else f"octavo_pool_{name}"
            yield f"# TYPE {full} {kind}"
            yield f"{full} {number}"
