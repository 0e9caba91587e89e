"""Record types as msgspec reads them: each is taken apart once, by one thread."""

from __future__ import annotations

from threading import Lock
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")
_lock = Lock()
_taken_apart: set[Any] = set()


def shape_of(kind: type[T]) -> type[T]:
    """The type, to be decoded or converted to.

    msgspec takes a type apart when it first reads one, and two threads that let it do so at the same moment
    bring the process down: the second meets a description that is half made.
    """
    if kind not in _taken_apart:
        with _lock:
            msgspec.json.Decoder(kind)
            _taken_apart.add(kind)
    return kind
