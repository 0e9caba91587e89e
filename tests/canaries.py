"""A reader of everything that lies in a folder, for tests that look for a text that must be nowhere."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw

_ESCAPED = re.compile(r"(?:\\u[0-9a-fA-F]{4})+")


def strings(value: Any) -> Iterator[str]:
    """Every text in a JSON value, keys included."""
    match value:
        case str():
            yield value
        case dict():
            for key, item in value.items():
                yield from strings(key)
                yield from strings(item)
        case list():
            for item in value:
                yield from strings(item)


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(lambda m: bytes.fromhex(m[0].replace("\\u", "")).decode("utf-16-be", "replace"), text)


def readable(path: Path) -> str:
    """What a reader who decodes a file could see in it: raw, JSON and its escapes, the values of SQLite."""
    raw = path.read_bytes()
    seen = [raw.decode("utf-8", "replace"), raw.decode("utf-16-le", "replace")]
    seen.append(_unescaped(seen[0]))  # also where a line is torn and no JSON any more
    for line in raw.splitlines() if path.suffix != ".db" else ():
        try:
            seen += strings(json.loads(line))
        except ValueError:
            continue
    if path.suffix == ".db":
        db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        for (table,) in db.execute("SELECT name FROM sqlite_schema WHERE type = 'table'").fetchall():
            for row in db.execute(f'SELECT * FROM "{table}"'):
                seen += [v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in row]
        db.close()
    return "\n".join(seen)


def holding(root: Path, text: str) -> list[str]:
    """The names of the files below a folder in which a text can be read."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return [path.name for path in files if text in readable(path)]
