"""Models behind an address: one small client, and an endpoint that is asked by POST with JSON.

It follows no redirect, reads no environment and never puts the key or an answer's text into a message.
"""

from __future__ import annotations

import http.client
import json
import time
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from octavo.errors import BadInput, ModelFailed

_LARGEST = 64_000_000  # bytes of an answer
_CHUNK = 65_536
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class JsonEndpoint(Struct, frozen=True, kw_only=True):
    """A model behind an address, asked by POST with JSON; each question is tried a few times."""

    url: str
    model: str
    key: str | None = None
    timeout_seconds: float = 30.0
    attempts: int = 3
    wait_seconds: float = 0.5

    def __repr__(self) -> str:
        # Neither a key nor an address with one reaches a log.
        return f"{type(self).__name__}({getattr(self, 'name', self.model)!r})"

    def __post_init__(self) -> None:
        if not self.url.startswith(("http://", "https://")):
            raise BadInput(f"the endpoint of {self.model} is no http or https address")

    def ask(self, path: str, body: dict[str, Any]) -> Any:
        """What the server answers, decoded; `ModelFailed` if it does not, or not with JSON."""
        reason, data = "no attempt was made", json.dumps(body).encode()
        for attempt in range(self.attempts):
            if attempt:
                time.sleep(self.wait_seconds * 2 ** (attempt - 1))
            status, answer, _ = post(self.url, path, data, key=self.key, seconds=self.timeout_seconds)
            if isinstance(answer, str):
                reason = f"it did not answer ({answer})"
            elif status != HTTPStatus.OK:
                reason = f"it answered with status {status}"
                if status not in _RETRIED:
                    break
            else:
                try:
                    return json.loads(answer)
                except ValueError:
                    reason = "its answer is not JSON"
                    break
        raise self.failed(reason)

    def failed(self, why: str) -> ModelFailed:
        """The error of this model, to be raised."""
        return ModelFailed(f"the model {self.model} at {urlsplit(self.url).hostname} failed: {why}")


def post(
    url: str, path: str, body: bytes, *, key: str | None, seconds: float
) -> tuple[int, bytes | str, float | None]:
    """The status, the answer and how long the server asks to wait; status 0 and why, if there is none."""
    parts = urlsplit(url)
    kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
    headers = {"Content-Type": "application/json", "Accept": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    connection = kind(parts.hostname or "", parts.port, timeout=seconds)
    try:
        connection.request("POST", f"{parts.path.rstrip('/')}/{path}", body, headers)
        response = connection.getresponse()
        answer = _received(response, seconds)
        asked = response.getheader("Retry-After") or ""
        return response.status, answer, float(asked) if asked.isdigit() else None
    except TimeoutError:
        return 0, f"nothing within {seconds:g} seconds", None
    except http.client.HTTPException as error:
        return 0, f"the answer broke off ({type(error).__name__})", None
    except OSError as error:
        return 0, f"no connection ({type(error).__name__})", None
    finally:
        connection.close()


def _received(response: http.client.HTTPResponse, seconds: float) -> bytes | str:
    """The whole answer, or why it is none; a server that drips bytes has no more time than one that hangs."""
    until = time.monotonic() + seconds
    expected = response.length
    body = b""
    while chunk := response.read1(_CHUNK):
        body += chunk
        if time.monotonic() > until:
            raise TimeoutError
        if len(body) > _LARGEST:
            return "the answer is too long"
    if expected is not None and len(body) < expected:
        raise http.client.IncompleteRead(b"", expected - len(body))
    return body
