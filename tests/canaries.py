"""A reader of everything that lies in a folder, for tests that look for a text that must be nowhere."""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import tantivy

from indexes import terms

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


def indexing(path: Path, text: str) -> bool:
    """Whether a file of the index can be asked for every term of a text: its column, or its segments."""
    codes = [zlib.crc32(term.encode()) for term in terms(text)]
    if path.name == "terms.bin":
        data = path.read_bytes()
        return bool(codes) and all(code.to_bytes(4, "little") in data for code in codes)
    if path.name != "meta.json" or path.parent.name != "words":
        return False
    index = tantivy.Index.open(str(path.parent))
    asked = [tantivy.Query.term_query(index.schema, "terms", f"{code:08x}") for code in codes]
    every = tantivy.Query.boolean_query([(tantivy.Occur.Must, one) for one in asked])
    return bool(codes) and bool(index.searcher().search(every, 1).hits)


def holding(root: Path, text: str) -> list[str]:
    """The names of the files below a folder in which a text can be read, or by which it is found."""
    files = [path for path in sorted(root.rglob("*")) if path.is_file()]
    return [path.name for path in files if text in readable(path) or indexing(path, text)]
