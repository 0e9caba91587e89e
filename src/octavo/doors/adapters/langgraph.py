"""LangGraph's long-term store over an account: `OctavoStore(account)` wherever a `BaseStore` goes.

An item is a fact with a history: it is versioned, recalled and undone like every other memory.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from octavo.documents.imports.langgraph_rows import FORMAT, item_memory, tag_of, topic_of, words_of
from octavo.documents.transfer import ACCEPTED
from octavo.domain.buffer import Forgot, Revised, Wrote
from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.errors import Unavailable

try:
    from langgraph.store.base import (
        BaseStore,
        GetOp,
        Item,
        ListNamespacesOp,
        MatchCondition,
        Op,
        PutOp,
        Result,
        SearchItem,
        SearchOp,
        TTLConfig,
        get_text_at_path,
        validate_op_namespace,
    )
except ImportError as error:
    raise Unavailable(
        "the LangGraph store needs langgraph-checkpoint", hint="pip install 'octavo[langgraph]'"
    ) from error

_MANY = 1000  # hits looked at when a filter on values thins them out


class OctavoStore(BaseStore):
    """An account as LangGraph's store; items lie in one scope, and other memories are never among them.

    `index` says which fields of a value its text is made of (`{"fields": ["text"]}`; all if not said).
    """

    supports_ttl = True

    def __init__(
        self,
        account: Account,
        *,
        index: Mapping[str, Any] | None = None,
        ttl: TTLConfig | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.account = account
        self.ttl_config = ttl
        self._fields: Sequence[str] | None = (index or {}).get("fields")
        self._scope = account.scope or SHARED
        self._now = clock or (lambda: datetime.now(UTC))

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Do operations together: reads see what was, writes are one version, a key's last one wins."""
        asked = list(ops)
        for op in asked:
            validate_op_namespace(op)
        puts: dict[str, PutOp] = {}
        read: dict[str, Memory] = {}
        results: list[Result] = []
        for op in asked:
            match op:
                case GetOp():
                    memory = self._find(op.namespace, op.key)
                    results.append(None if memory is None else Item(**_fields(memory)))
                    read |= {memory.id: memory} if memory and op.refresh_ttl else {}
                case SearchOp():
                    hits = self._search(op)
                    results.append([SearchItem(**_fields(memory), score=score) for memory, score in hits])
                    read |= {memory.id: memory for memory, _ in hits} if op.refresh_ttl else {}
                case ListNamespacesOp():
                    results.append(self._namespaces(op))
                case PutOp():
                    puts[topic_of(op.namespace, op.key)] = op
                    results.append(None)
        self._apply(puts, read)
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """The same in a thread of its own."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """End items whose time is over; returns how many. Reads leave them out in any case."""
        over = [memory for memory in self._all() if not self._lives(memory)]
        if over:
            self.account.forget(*[memory.id for memory in over])
        return len(over)

    def _all(self, namespace: Sequence[str] = (), limit: int | None = None) -> list[Memory]:
        tags = [tag_of(namespace)] if namespace else None
        return self.account.memories(
            kind="fact", category=FORMAT, scope=[self._scope], tags=tags, limit=limit
        )

    def _find(self, namespace: Sequence[str], key: str) -> Memory | None:
        topic = topic_of(namespace, key)
        held = self.account.memories(kind="fact", category=FORMAT, scope=[self._scope], topic=topic)
        return held[0] if held and self._lives(held[0]) else None

    def _lives(self, memory: Memory) -> bool:
        expires = memory.data[FORMAT].get("expires")
        return expires is None or datetime.fromisoformat(expires) > self._now()

    def _search(self, op: SearchOp) -> list[tuple[Memory, float | None]]:
        """A page of what fits; a namespace is read whole only where the best or the first do not fill it."""
        most = op.offset + op.limit
        ranked: list[tuple[Memory, float | None]] = []
        if op.query and op.query.strip():
            hits = self.account.recall(
                op.query,
                k=_MANY if op.filter else most,
                kinds="fact",
                category=FORMAT,
                scope=[self._scope],
                tags=[tag_of(op.namespace_prefix)] if op.namespace_prefix else None,
            )
            ranked = [(hit.memory, hit.score) for hit in hits if self._fits(hit.memory, op)]
        elif not op.filter:
            first = self._all(op.namespace_prefix, limit=most)
            ranked = [(memory, None) for memory in first if self._fits(memory, op)]
        if len(ranked) < most:
            known = {memory.id for memory, _ in ranked}
            others = [m for m in self._all(op.namespace_prefix) if m.id not in known and self._fits(m, op)]
            # What has words and did not come fits with 0; what was put without an index has no score at all.
            ranked += [(m, 0.0 if op.query else None) for m in others if m.text or not op.query]
            ranked += [(m, None) for m in others if op.query and not m.text]
        return ranked[op.offset : most]

    def _fits(self, memory: Memory, op: SearchOp) -> bool:
        value = memory.data[FORMAT]["value"]
        return self._lives(memory) and all(_agrees(value.get(k), v) for k, v in (op.filter or {}).items())

    def _namespaces(self, op: ListNamespacesOp) -> list[tuple[str, ...]]:
        names = {tuple(m.data[FORMAT]["namespace"]) for m in self._all() if self._lives(m)}
        conditions = op.match_conditions or ()
        names = {name for name in names if all(_matches(name, condition) for condition in conditions)}
        shown = sorted({name if op.max_depth is None else name[: op.max_depth] for name in names})
        return shown[op.offset : op.offset + op.limit]

    def _apply(self, puts: Mapping[str, PutOp], read: Mapping[str, Memory]) -> None:
        """Write what was put, deleted and refreshed in one version, or nothing at all."""
        now = self._now()
        writes: list[Wrote | Revised | Forgot] = []
        for op in puts.values():
            held = self._find(op.namespace, op.key)
            if op.value is not None:
                writes.append(Wrote(memory=self._put(op, op.value, held)))
            elif held is not None:
                writes.append(Forgot(memory=held.id, at=now))
        for memory in read.values():  # what was read has its time begun anew, unless it is written anyway
            own = memory.data[FORMAT]
            if own.get("ttl") is not None and memory.topic not in puts:
                fresh = {**own, "expires": iso(now + timedelta(minutes=own["ttl"]))}
                wanted = replace(memory, data={**memory.data, FORMAT: fresh})
                writes.append(Revised(wanted=wanted, fields=("data",), at=now))
        if writes:
            verdicts = self.account.intake.write_many(
                writes, cause=FORMAT, skip=ACCEPTED, whole=True, scope=self._scope
            )
            for verdict in verdicts:
                verdict.or_raise()

    def _put(self, op: PutOp, value: Mapping[str, Any], held: Memory | None) -> Memory:
        now = self._now()
        return item_memory(
            op.namespace,
            op.key,
            value,
            text=self._text(value, op.index),
            at=now,
            scope=self._scope,
            created=datetime.fromisoformat(held.data[FORMAT]["created"]) if held else now,
            ttl=op.ttl,
            expires=None if op.ttl is None else now + timedelta(minutes=op.ttl),
        )

    def _text(self, value: Mapping[str, Any], index: Sequence[str] | bool | None) -> str:
        """What recall finds an item by, within a fact's length; without an index it has no words."""
        if index is False:
            return ""
        paths = self._fields if index is None or index is True else index
        if paths is None:
            texts = list(words_of(value))
        else:
            texts = [text for path in paths for text in get_text_at_path(value, path)]
        return "\n".join(texts)[: self.account.policy.kinds.fact.max_length]


def _fields(memory: Memory) -> dict[str, Any]:
    own = memory.data[FORMAT]
    return {
        "namespace": tuple(own["namespace"]),
        "key": own["key"],
        "value": own["value"],
        "created_at": datetime.fromisoformat(own["created"]),
        "updated_at": memory.at,
    }


def _matches(namespace: Sequence[str], condition: MatchCondition) -> bool:
    path = condition.path
    if len(namespace) < len(path):
        return False
    end = (
        namespace[: len(path)]
        if condition.match_type == "prefix"
        else namespace[len(namespace) - len(path) :]
    )
    return all(wildcard in ("*", label) for label, wildcard in zip(end, path, strict=True))


def _agrees(value: Any, condition: Any) -> bool:
    """Whether a value fits a condition: equal, part by part, or by an operator."""
    if isinstance(condition, Mapping):
        if any(name.startswith("$") for name in condition):
            return all(_compares(value, name, bound) for name, bound in condition.items())
        return isinstance(value, Mapping) and all(_agrees(value.get(k), v) for k, v in condition.items())
    if isinstance(condition, list | tuple):
        same = isinstance(value, list | tuple) and len(value) == len(condition)
        return same and all(_agrees(part, bound) for part, bound in zip(value, condition, strict=True))
    return bool(value == condition)


def _compares(value: Any, operator: str, bound: Any) -> bool:
    if operator in ("$eq", "$ne"):
        return (value == bound) is (operator == "$eq")
    orders = {"$gt": (1,), "$gte": (0, 1), "$lt": (-1,), "$lte": (-1, 0)}
    if operator not in orders:
        raise ValueError(f"Unsupported operator: {operator}")
    try:
        number, limit = float(value), float(bound)
    except (TypeError, ValueError):
        return False
    return (number > limit) - (number < limit) in orders[operator]
