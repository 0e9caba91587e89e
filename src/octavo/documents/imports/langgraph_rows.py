"""LangGraph store items as memories: how one is kept here, and rows of its table taken in.

An item is a fact whose topic is its namespace and key; every prefix of the namespace is a tag, so that a
search below a namespace is a filter and never a pattern.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from octavo.documents import trees
from octavo.documents.imports.taking import (
    MOST_BYTES,
    batches,
    objects_in,
    read_export,
    take,
    time_of,
)
from octavo.documents.transfer import Imported
from octavo.domain.buffer import Wrote
from octavo.domain.episodes import iso, moment
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.engine.fields import plain_json
from octavo.errors import BadFile
from octavo.storage.projections import Progress

FORMAT = "langgraph"
_MOST_LABEL = 180


def item_memory(
    namespace: Sequence[str],
    key: str,
    value: Mapping[str, Any],
    *,
    text: str,
    at: datetime,
    scope: str,
    created: datetime | None = None,
    ttl: float | None = None,
    expires: datetime | None = None,
) -> Memory:
    """An item as the memory to write; its topic makes the next write of it the next revision."""
    own: dict[str, Any] = {"namespace": list(namespace), "key": key, "value": plain_json(value)}
    own["created"] = iso(created or at)
    if ttl is not None and expires is not None:
        own |= {"ttl": ttl, "expires": iso(expires)}
    return Memory(
        id="",
        kind="fact",
        text=text,
        scope=scope,
        topic=topic_of(namespace, key),
        category=FORMAT,
        tags=tuple(tag_of(namespace[:depth]) for depth in range(1, len(namespace) + 1)),
        at=at,
        data={FORMAT: own},
    )


def topic_of(namespace: Sequence[str], key: str) -> str:
    """The topic of an item; two items never share one, whatever stands in their names."""
    return _label("langgraph", [*namespace, key])


def tag_of(namespace: Sequence[str]) -> str:
    """The tag of everything in or below a namespace."""
    return _label("ns", namespace)


def words_of(value: Any) -> Iterator[str]:
    """Every text in a value, in its order: what recall finds an item by."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for part in value.values():
            yield from words_of(part)
    elif isinstance(value, list | tuple):
        for part in value:
            yield from words_of(part)


def import_(account: Account, path: Path, progress: Progress | None = None) -> Imported:
    """Take in rows of LangGraph's table `store` (prefix, key, value, times), an array or a row a line."""
    scope, limit = account.scope or SHARED, account.policy.kinds.fact.max_length
    rows = enumerate(_rows(path), start=1)
    items = [(f"row {number}", _memory(row, scope, limit)) for number, row in rows]
    return take(account, FORMAT, batches(items), progress, _by_topic)


def _by_topic(account: Account, memory: Memory) -> Wrote | None:
    """An item that is not here, or newer than it is here."""
    there = account.memories(kind="fact", topic=memory.topic, scope=[memory.scope])
    return None if there and there[0].at >= memory.at else Wrote(memory=memory)


def _memory(row: Mapping[str, Any], scope: str, limit: int | None) -> Memory | str:
    prefix, key, value = row.get("prefix", row.get("namespace")), row.get("key"), row.get("value")
    try:
        value = trees.parse_json(value.encode(), "its value") if isinstance(value, str) else value
    except BadFile as error:  # SQLite has no JSON of its own, a text may be none
        return error.message
    namespace: Any = prefix.split(".") if isinstance(prefix, str) else prefix
    is_named = isinstance(namespace, list) and namespace and all(n and isinstance(n, str) for n in namespace)
    if not is_named or not isinstance(key, str) or not isinstance(value, Mapping):
        return "it has no prefix, key and object value"
    expires, now = moment(row.get("expires_at"), lenient=True), datetime.now(UTC)
    if expires is not None and expires <= now:
        return "its time is over"
    created, ttl = time_of(row.get("created_at")), row.get("ttl_minutes")
    return item_memory(
        namespace,
        key,
        value,
        text="\n".join(words_of(value))[:limit],
        at=time_of(row.get("updated_at"), created),
        scope=scope,
        created=created,
        ttl=ttl if isinstance(ttl, int | float) else None,
        expires=expires,
    )


def _rows(path: Path) -> list[Mapping[str, Any]]:
    if path.suffix != ".jsonl":
        return read_export(path, "", "rows", "store")
    rows = [row for _, row in trees.json_lines(trees.read_bytes(path, MOST_BYTES))]
    if bad := next((row for row in rows if isinstance(row, BadFile)), None):
        raise BadFile(f"{path}, {bad.message}")
    return objects_in(rows, str(path))


def _label(kind: str, names: Sequence[str]) -> str:
    plain = json.dumps(list(names), ensure_ascii=False)
    fits = len(plain) <= _MOST_LABEL and plain.isprintable()
    return f"{kind}:{plain if fits else hashlib.sha256(plain.encode('utf-8', 'replace')).hexdigest()}"
