"""What every request passes first: the Host check, limits of size and rate; and what is counted of it."""

from __future__ import annotations

import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Iterator, MutableMapping
from importlib import metadata
from typing import Any

import msgspec
from msgspec import Struct

from octavo.doors import problems
from octavo.doors.pool import Pool
from octavo.doors.visitors import Visitors
from octavo.errors import OctavoError, TooLarge, TooOften

_Scope = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
_Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_CLIENTS = 10_000


class Limits(Struct, frozen=True, kw_only=True):
    """How much one request may carry, and how often one client may ask."""

    max_bytes: int = 4_000_000
    per_second: float = 500.0
    burst: int = 1_000
    streams: int = 100


class Metrics:
    """Counts of requests and of the time they took, in Prometheus' text form."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: Counter[str] = Counter()

    def note(self, method: str, path: str, status: int, seconds: float) -> None:
        """Count one answered request."""
        with self._lock:
            self._requests[method if method in _METHODS else "other", path, status] += 1
            self._seconds[path] += seconds  # type: ignore[assignment]  # a Counter of seconds

    def text(self) -> str:
        """The page that a collector reads."""
        return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        with self._lock:
            requests, seconds = dict(self._requests), dict(self._seconds)
        yield "# TYPE octavo_info gauge"
        yield f'octavo_info{{version="{metadata.version("octavo")}"}} 1'
        yield "# TYPE octavo_requests_total counter"
        for (method, path, status), count in sorted(requests.items()):
            yield f'octavo_requests_total{{method="{method}",path="{path}",status="{status}"}} {count}'
        yield "# TYPE octavo_request_seconds summary"
        for path, total in sorted(seconds.items()):
            count = sum(n for (_, other, _), n in requests.items() if other == path)
            yield f'octavo_request_seconds_sum{{path="{path}"}} {total:.6f}'
            yield f'octavo_request_seconds_count{{path="{path}"}} {count}'
        for name, number in self._pool.counts.items():
            kind = "counter" if name in ("opened", "closed") else "gauge"
            full = f"octavo_pool_{name}_total" if kind == "counter" else f"octavo_pool_{name}"
            yield f"# TYPE {full} {kind}"
            yield f"{full} {number}"


class Guard:
    """The ASGI layer around the whole server."""

    def __init__(self, app: Any, *, visitors: Visitors, limits: Limits, metrics: Metrics) -> None:
        self._app, self._visitors, self._limits, self._metrics = app, visitors, limits, metrics
        self._buckets: OrderedDict[str, tuple[float, float]] = OrderedDict()

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
                raise self._too_large()
            return message

        async def sent(message: MutableMapping[str, Any]) -> None:
            nonlocal status
            if left < 0 and message["type"] == "http.response.start":
                status = await _answer(self._too_large(), str(scope["path"]), send)
            if left < 0:  # the app's own answer takes it for a body that cannot be read
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [
                    *message.get("headers", ()),
                    (b"x-content-type-options", b"nosniff"),
                    (b"referrer-policy", b"same-origin"),
                ]
            await send(message)

        try:
            self._must_pass(scope)
            await self._app(scope, received, sent)
        except OctavoError as error:
            await _answer(error, str(scope["path"]), sent)
        finally:
            route = scope.get("route")
            path = str(getattr(route, "path", "other"))
            self._metrics.note(str(scope["method"]), path, status, time.perf_counter() - began)

    def _too_large(self) -> TooLarge:
        return TooLarge(f"a request may carry {self._limits.max_bytes:,} bytes")

    def _must_pass(self, scope: _Scope) -> None:
        headers = dict(scope["headers"])
        self._visitors.must_know_host(headers.get(b"host", b"").decode("latin-1"))
        client = scope["client"][0] if scope.get("client") else ""
        now = time.monotonic()
        left, before = self._buckets.pop(client, (float(self._limits.burst), now))
        left = min(float(self._limits.burst), left + (now - before) * self._limits.per_second)
        self._buckets[client] = (max(left - 1, 0.0), now)
        if len(self._buckets) > _CLIENTS:
            self._buckets.popitem(last=False)
        if left < 1:
            raise TooOften(f"{client} asks more than {self._limits.per_second:g} times a second")
        length = headers.get(b"content-length", b"0")
        if not length.isdigit() or int(length) > self._limits.max_bytes:
            raise self._too_large()


async def _answer(error: OctavoError, path: str, send: _Send) -> int:
    body = msgspec.json.encode(problems.problem(error, instance=path))
    headers = [
        (b"content-type", problems.MEDIA_TYPE.encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    if isinstance(error, TooOften):
        headers.append((b"retry-after", b"1"))
    await send({"type": "http.response.start", "status": error.http_status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
    return error.http_status
