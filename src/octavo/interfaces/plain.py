"""Values as plain JSON, the same for every door: times in ISO 8601 with a Z, durations in seconds."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import fields, is_dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any


def plain(value: Any) -> Any:
    """A value as JSON can say it; every field of a record is there, also the empty ones."""
    match value:
        case None | bool() | int() | float() | str():
            return value
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return round(value.total_seconds(), 3)
        case Path():
            return str(value)
        case Mapping():
            return {str(key): plain(item) for key, item in value.items()}
        case list() | tuple() | Set():
            return [plain(item) for item in value]
        case _ if is_dataclass(value):
            return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
        case _:
            return str(value)


def document(value: Any) -> str:
    """One JSON document, indented for people, its letters as they are."""
    return json.dumps(plain(value), ensure_ascii=False, indent=2)
