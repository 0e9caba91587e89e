"""Models behind an address: one small client, and an endpoint that is asked by POST with JSON.

It follows no redirect, reads no environment and never puts the key or an answer's text into a message.
"""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, ClassVar
from urllib.parse import urlsplit

from msgspec import Struct

from octavo.errors import BadInput, ModelFailed

_LARGEST = 64_000_000  # bytes of an answer
_CHUNK = 65_536
_LONGEST_WAIT = 30.0  # seconds, whatever a server asks for
_RETRIED = frozenset({408, 409, 425, 429, 500, 502, 503, 504})


class JsonEndpoint(Struct, frozen=True, kw_only=True):
    """A model behind an address, asked by POST with JSON; each question is tried a few times."""

    HINT: ClassVar[str | None] = None

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
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(
                f"{parts.scheme}://{parts.hostname or ''} cannot be used: it is no http or https address",
                hint="set the base URL of a service, for instance http://localhost:11434/v1",
            )

    def ask(
        self,
        path: str,
        body: dict[str, Any],
        *,
        optional: str = "",
        sleep: Callable[[float], None] = time.sleep,
    ) -> Any:
        """What the server answers, decoded; `ModelFailed` if it does not, or not with JSON.

        `optional` names a field that some servers do not know: who refuses it is asked again without it.
        """
        reason = "no attempt was made"
        for attempt in range(self.attempts):
            data = json.dumps(body).encode()
            status, answer, wait = post(self.url, path, data, key=self.key, seconds=self.timeout_seconds)
            if isinstance(answer, str):
                reason = f"it did not answer ({answer})"
            elif status == HTTPStatus.OK:
                try:
                    return json.loads(answer)
                except ValueError:
                    reason = "its answer is no JSON"
            else:
                reason = f"it answered with HTTP {status}"
                if status == HTTPStatus.BAD_REQUEST and body.pop(optional, None) is not None:
                    continue
                if status not in _RETRIED:
                    break
            if attempt + 1 < self.attempts:
                sleep(min(_LONGEST_WAIT, wait or self.wait_seconds * 2**attempt))
        raise self.failed(reason)

    def failed(self, why: str) -> ModelFailed:
        """The error of this model, to be raised."""
        where = urlsplit(self.url).hostname
        return ModelFailed(f"the model {self.model} at {where} failed: {why}", hint=self.HINT)


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
