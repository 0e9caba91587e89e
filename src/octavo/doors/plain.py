"""Values as plain JSON, texts that cannot steer a terminal, and advice in the words of a door."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping, Set
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import NoneType
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from octavo.domain.brief import Brief
from octavo.errors import OctavoError

# What would move a cursor, change colours, turn the reading direction or stay unseen; tabs and line ends may
# stand. Marks, joiners and selectors that writing needs are none of these.
_STEERING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\U000e0000-\U000e007f]"
)


def clean(text: str) -> str:
    """The text with every steering character shown as its number."""
    return _STEERING.sub(lambda steering: _escaped(ord(steering[0])), text)


def _escaped(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_ATOMS = frozenset({str, int, float, bool, NoneType})


def plain(value: Any) -> Any:
    """A value as JSON can say it, times in ISO 8601 with a Z, durations in seconds; empty fields too."""
    if type(value) in _ATOMS:
        return value
    match value:
        case Struct():
            return _plain_values(asdict(value))
        case Mapping():
            return _plain_values(value)
        case list() | tuple() | Set():
            return [item if type(item) in _ATOMS else plain(item) for item in value]
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return round(value.total_seconds(), 3)
        case bool() | int() | float() | str():
            return value
        case _:
            return str(value)


def _plain_values(items: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(key): item if type(item) in _ATOMS else plain(item) for key, item in items.items()}


CALLED = re.compile(r"`octavo ([a-z-]+)[^`]*`")  # how an advice names an operation
_ADVICE = tomllib.loads(Path(__file__).with_name("advice.toml").read_text("utf-8"))


def advised(error: OctavoError, door: str) -> str:
    """What to do about an error, in the words of a door unless it brings its own."""
    return (
        str(_ADVICE[door].get(type(error).__name__, error.advice))
        if error.advice == error.hint
        else error.advice
    )


def unsaid(brief: Brief) -> str:
    """Why a brief says nothing."""
    return "nothing fits so small a budget" if brief.left_out else "nothing to say"


def document(value: Any) -> str:
    """One JSON document, indented for people: letters as they are, steering characters escaped."""
    text = json.dumps(plain(value), ensure_ascii=False, indent=2)
    return _STEERING.sub(lambda steering: json.dumps(steering[0])[1:-1], text)
