"""The chat-completions protocol, for any OpenAI-compatible endpoint."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar

from octavo.models.endpoints import JsonEndpoint

Message = Mapping[str, str]


class Endpoint(JsonEndpoint, frozen=True, kw_only=True):
    """Where a model answers, and how long and how often it is asked; `prompt_tokens` bounds the input."""

    HINT: ClassVar[str | None] = (
        "check the endpoint's address, key and model name; the deterministic summariser needs none"
    )

    timeout_seconds: float = 60.0
    wait_seconds: float = 1.0
    prompt_tokens: int = 24_000
    answer_tokens: int = 2_000


def chat(
    endpoint: Endpoint, messages: Sequence[Message], *, sleep: Callable[[float], None] = time.sleep
) -> str:
    """The text the model answers, after bounded attempts, or `ModelFailed`."""
    asked = {
        "model": endpoint.model,
        "messages": [dict(message) for message in messages],
        "temperature": 0,
        "max_tokens": endpoint.answer_tokens,
        "stream": False,
        "response_format": {"type": "json_object"},
    }
    match endpoint.ask("chat/completions", asked, optional="response_format", sleep=sleep):
        case {"choices": [{"message": {"content": str(text)}}, *_]}:
            return text
    raise endpoint.failed("its answer holds no message")


def tokens(text: str) -> int:
    """About how many tokens a text takes: four ASCII characters make one, of other scripts one and a half."""
    plain = sum(character.isascii() for character in text)
    return round(plain / 4 + (len(text) - plain) / 1.5)
