"""Exports that are lists of records: what mem0's `get_all` returns, and rows of LangGraph's table `store`.

A LangGraph item is a fact whose topic is its namespace and key; every prefix of the namespace is a tag, so
that a search below a namespace is a filter and never a pattern.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from octavo.documents.imports import taking
from octavo.documents.imports.taking import Group, Item, id_of, objects_in, read_export, time_of
from octavo.domain import strict_json
from octavo.domain.episodes import iso, moment
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.engine.fields import plain_json
from octavo.errors import BadFile

FORMAT = "langgraph"
_MOST_LABEL = 180


def mem0(account: Account, path: Path) -> list[Group]:
    """The entries of `get_all`, an array or an object with `results`; each is a fact with its own times."""
    [(value, place)] = read_export(path)
    entries = enumerate(objects_in(value, place, "results", "memories"), start=1)
    items: list[Item] = [(f"entry {number}", _entry(account, entry, number)) for number, entry in entries]
    graph = value.get("relations") if isinstance(value, Mapping) else None
    items += [("relations", f"{len(graph)} edges of a graph, which are not taken in")] if graph else []
    return taking.batches(items)


def _entry(account: Account, entry: Mapping[str, Any], number: int) -> Memory | str:
    told = (entry.get(name) for name in ("memory", "data", "text"))
    text = next((text for text in told if isinstance(text, str) and text.strip()), None)
    if text is None:
        return "there is no text in it"
    labels, at = entry.get("categories"), time_of(entry.get("updated_at") or entry.get("created_at"))
    tags = tuple(label for label in labels if isinstance(label, str)) if isinstance(labels, list) else ()
    id_ = id_of(account, "mem0", str(entry.get("id") or f"{number} {text}"))
    return taking.fact_of(account, id_, text, at, {"mem0": plain_json(entry)}, tags=tags, source="tool")


def langgraph(account: Account, path: Path) -> list[Group]:
    """The rows of a file (prefix, key, value, times), an array or a row a line; those not newer here."""
    whole = (row for value, place in read_export(path) for row in objects_in(value, place, "rows", "store"))
    return taking.batches((f"row {number}", _row(account, row)) for number, row in enumerate(whole, start=1))


def _row(account: Account, row: Mapping[str, Any]) -> Memory | str | None:
    prefix, key, value = row.get("prefix", row.get("namespace")), row.get("key"), row.get("value")
    try:
        value = strict_json.value_of(value.encode(), "its value") if isinstance(value, str) else value
    except BadFile as error:  # SQLite has no JSON of its own, a text may be none
        return error.message
    namespace: Any = prefix.split(".") if isinstance(prefix, str) else prefix
    is_named = isinstance(namespace, list) and namespace and all(n and isinstance(n, str) for n in namespace)
    if not is_named or not isinstance(key, str) or not isinstance(value, Mapping):
        return "it has no prefix, key and object value"
    expires = moment(row.get("expires_at"), lenient=True)
    if expires is not None and expires <= datetime.now(UTC):
        return "its time is over"
    created, ttl = time_of(row.get("created_at")), row.get("ttl_minutes")
    at, minutes = time_of(row.get("updated_at"), created), ttl if isinstance(ttl, int | float) else None
    there = account.memories(kind="fact", topic=topic_of(namespace, key), scope=[account.scope or SHARED])
    is_timed = moment(row.get("updated_at") or row.get("created_at"), lenient=True) is not None
    if there and (there[0].at >= at or (not is_timed and there[0].data[FORMAT]["value"] == value)):
        return None
    text = "\n".join(words_of(value))[: account.policy.kinds.fact.max_length]
    return item_memory(namespace, key, value, text, at, created, minutes, expires)


def item_memory(
    namespace: Sequence[str],
    key: str,
    value: Mapping[str, Any],
    text: str,
    at: datetime,
    created: datetime,
    ttl: float | None = None,
    expires: datetime | None = None,
) -> Memory:
    """An item as the memory to write; its topic makes the next write of it the next revision."""
    own = plain_json({"namespace": namespace, "key": key, "value": value, "created": iso(created)})
    if ttl is not None and expires is not None:
        own |= {"ttl": ttl, "expires": iso(expires)}
    tags = tuple(tag_of(namespace[:depth]) for depth in range(1, len(namespace) + 1))
    topic, data = topic_of(namespace, key), {FORMAT: own}
    return Memory(id="", kind="fact", text=text, topic=topic, category=FORMAT, tags=tags, at=at, data=data)


def topic_of(namespace: Sequence[str], key: str) -> str:
    """The topic of an item; two items never share one, whatever stands in their names."""
    return _label("langgraph", [*namespace, key])


def tag_of(namespace: Sequence[str]) -> str:
    """The tag of everything in or below a namespace."""
    return _label("ns", namespace)


def _label(kind: str, names: Sequence[str]) -> str:
    plain = json.dumps(list(names), ensure_ascii=False)
    fits = len(plain) <= _MOST_LABEL and plain.isprintable()
    return f"{kind}:{plain if fits else hashlib.sha256(plain.encode('utf-8', 'replace')).hexdigest()}"


def words_of(value: Any) -> Iterator[str]:
    """Every text in a value, in its order: what recall finds an item by."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list | tuple):
        for part in value.values() if isinstance(value, Mapping) else value:
            yield from words_of(part)
