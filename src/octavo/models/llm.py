"""The chat-completions protocol, for any OpenAI-compatible endpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from octavo.errors import BadInput, ModelFailed
from octavo.models.endpoints import post

Message = Mapping[str, str]

_LONGEST_WAIT = 30.0


class Endpoint(Struct, frozen=True, kw_only=True):
    """Where a model answers, and how long and how often it is asked; `prompt_tokens` bounds the input."""

    base_url: str
    model: str
    api_key: str | None = None
    timeout_seconds: float = 60.0
    attempts: int = 3
    backoff_seconds: float = 1.0
    prompt_tokens: int = 24_000
    answer_tokens: int = 2_000

    def __repr__(self) -> str:
        return f"Endpoint({self.model!r})"  # neither a key nor an address with one reaches a log

    def __post_init__(self) -> None:
        parts = urlsplit(self.base_url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise BadInput(
                f"model endpoint {parts.scheme}://{parts.hostname or ''} cannot be used",
                hint="set the base URL of an OpenAI-compatible service, for instance http://localhost:11434/v1",
            )


def chat(
    endpoint: Endpoint, messages: Sequence[Message], *, sleep: Callable[[float], None] = time.sleep
) -> str:
    """The text the model answers, after bounded attempts, or `ModelFailed`."""
    trouble, strict = "", True
    for attempt in range(endpoint.attempts):
        status, body, wait = post(
            endpoint.base_url,
            "chat/completions",
            _body(endpoint, messages, strict=strict),
            key=endpoint.api_key,
            seconds=endpoint.timeout_seconds,
        )
        text, trouble = _text(status, body)
        if text is not None:
            return text
        if strict and status == HTTPStatus.BAD_REQUEST:
            strict = False  # some servers know no response_format; ask once more without it
        elif status and status < 500 and status not in (200, 408, 429):
            break
        elif attempt + 1 < endpoint.attempts:
            sleep(min(_LONGEST_WAIT, wait or endpoint.backoff_seconds * 2**attempt))
    raise ModelFailed(
        f"model {endpoint.model!r} at {urlsplit(endpoint.base_url).hostname} gave no answer: {trouble}",
        hint="check the endpoint's address, key and model name; the deterministic summariser needs none",
    )


def tokens(text: str) -> int:
    """About how many tokens a text takes: four ASCII characters make one, of other scripts one and a half."""
    plain = sum(character.isascii() for character in text)
    return round(plain / 4 + (len(text) - plain) / 1.5)


def _body(endpoint: Endpoint, messages: Sequence[Message], *, strict: bool) -> bytes:
    asked: dict[str, Any] = {
        "model": endpoint.model,
        "messages": [dict(message) for message in messages],
        "temperature": 0,
        "max_tokens": endpoint.answer_tokens,
        "stream": False,
    }
    if strict:
        asked["response_format"] = {"type": "json_object"}
    return json.dumps(asked, ensure_ascii=False).encode()


def _text(status: int, body: bytes | str) -> tuple[str | None, str]:
    """What the model said, or why that cannot be told."""
    if isinstance(body, str):
        return None, body
    if status != HTTPStatus.OK:
        return None, f"HTTP {status}"
    try:
        match json.loads(body):
            case {"choices": [{"message": {"content": str(text)}}, *_]}:
                return text, ""
    except ValueError:
        return None, "the answer is no JSON"
    return None, "the answer holds no message"
