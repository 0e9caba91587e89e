"""LangGraph store items as memories: how one is kept here, and rows of its table taken in.

An item is a fact whose topic is its namespace and key; every prefix of the namespace is a tag, so that a
search below a namespace is a filter and never a pattern.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from octavo.documents import trees
from octavo.documents.imports.taking import MOST_BYTES, Tally, must_be_bounded, objects_in, time_of
from octavo.documents.transfer import Imported
from octavo.domain.buffer import Wrote
from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.engine.fields import plain_json
from octavo.errors import BadFile
from octavo.storage.projections import Progress

FORMAT = "langgraph"
SKIP = frozenset({"duplicate", "capacity", "confidence"})
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
    rows, tally = _rows(path), Tally()
    scope, limit = account.scope or SHARED, account.policy.kinds.fact.max_length
    for start in range(0, len(rows), 500):
        writes = []
        for number, row in enumerate(rows[start : start + 500], start=start + 1):
            memory = _memory(row, scope, limit)
            if memory is None:
                tally.leave_out(f"row {number}", "it has no prefix, key and object value")
            elif _is_older(account, memory):
                tally.unchanged += 1
            else:
                writes.append((f"row {number}", memory))
        verdicts = account.intake.write_many(
            [Wrote(memory=memory) for _, memory in writes], cause="import langgraph", skip=SKIP, scope=scope
        )
        for (place, memory), verdict in zip(writes, verdicts, strict=True):
            tally.note(place, memory, verdict)
        if progress is not None:
            progress(min(start + 500, len(rows)), len(rows))
    return tally.imported(account, FORMAT)


def _is_older(account: Account, memory: Memory) -> bool:
    """Whether the item is here already, at least as new."""
    there = account.memories(kind="fact", topic=memory.topic, scope=[memory.scope])
    return bool(there) and there[0].at >= memory.at


def _memory(row: Mapping[str, Any], scope: str, limit: int | None) -> Memory | None:
    prefix = row.get("prefix", row.get("namespace"))
    namespace = prefix.split(".") if isinstance(prefix, str) else prefix
    key, value = row.get("key"), row.get("value")
    names = (
        isinstance(namespace, list) and bool(namespace) and all(n and isinstance(n, str) for n in namespace)
    )
    if (
        not names
        or not isinstance(namespace, list)
        or not isinstance(key, str)
        or not isinstance(value, Mapping)
    ):
        return None
    created = time_of(row.get("created_at"))
    return item_memory(
        namespace,
        key,
        value,
        text="\n".join(words_of(value))[:limit],
        at=time_of(row.get("updated_at"), created),
        scope=scope,
        created=created,
    )


def _rows(path: Path) -> list[Mapping[str, Any]]:
    must_be_bounded(path, MOST_BYTES, "name a file of rows, JSON or JSON Lines")
    if path.suffix != ".jsonl":
        return objects_in(trees.read_json(path), path, "rows", "store")
    rows = []
    for number, line in enumerate(trees.read_bytes(path).splitlines(), start=1):
        try:
            rows.append(json.loads(line))
        except ValueError as error:
            raise BadFile(f"{path}, line {number}: no JSON") from error
    return objects_in(rows, path)


def _label(kind: str, names: Sequence[str]) -> str:
    plain = json.dumps(list(names), ensure_ascii=False)
    fits = len(plain) <= _MOST_LABEL and plain.isprintable()
    return f"{kind}:{plain if fits else hashlib.sha256(plain.encode('utf-8', 'replace')).hexdigest()}"
