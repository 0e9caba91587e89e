"""LangGraph's long-term store over an account: `OctavoStore(account)` wherever a `BaseStore` goes.

An item is a fact with a history: it is versioned, recalled and undone like every other memory.
"""

from __future__ import annotations

import asyncio
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

from msgspec.structs import replace

from octavo.documents.imports.records import FORMAT, item_memory, tag_of, topic_of, words_of
from octavo.documents.transfer import ACCEPTED
from octavo.domain.buffer import Forgot, Revised, Wrote
from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.engine.intake import Finished
from octavo.errors import Unavailable

try:
    from langgraph.store import base
except ImportError as error:
    hint = "pip install 'octavo[langgraph]'"
    raise Unavailable("the LangGraph store needs langgraph-checkpoint", hint=hint) from error

_MANY = 1000  # hits looked at when a filter on values thins them out
_ORDERS = {"$gt": operator.gt, "$gte": operator.ge, "$lt": operator.lt, "$lte": operator.le}


class OctavoStore(base.BaseStore):
    """An account as LangGraph's store; items lie in one scope, and other memories are never among them.

    `index` says which fields of a value its text is made of (`{"fields": ["text"]}`; all if not said).
    """

    supports_ttl = True

    def __init__(
        self,
        account: Account,
        *,
        index: Mapping[str, Any] | None = None,
        ttl: base.TTLConfig | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self.account = account
        self.ttl_config = ttl
        self._fields: Sequence[str] | None = (index or {}).get("fields")
        self._scope = account.scope or SHARED
        self._now = clock or (lambda: datetime.now(UTC))

    def batch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """Do operations together: reads see what was, writes are one version, a key's last one wins."""
        puts: dict[str, base.PutOp] = {}
        read: dict[str, Memory] = {}
        results: list[base.Result] = []
        for op in ops:
            base.validate_op_namespace(op)
            match op:
                case base.GetOp():
                    memory = self._find(op.namespace, op.key)
                    results.append(None if memory is None else _item(base.Item, memory))
                    read |= {memory.id: memory} if memory and op.refresh_ttl else {}
                case base.SearchOp():
                    hits = self._search(op)
                    results.append([_item(base.SearchItem, memory, score=score) for memory, score in hits])
                    read |= {memory.id: memory for memory, _ in hits} if op.refresh_ttl else {}
                case base.ListNamespacesOp():
                    results.append(self._namespaces(op))
                case base.PutOp():
                    puts[topic_of(op.namespace, op.key)] = op
                    results.append(None)
        self._apply(puts, read)
        return results

    async def abatch(self, ops: Iterable[base.Op]) -> list[base.Result]:
        """The same in a thread of its own."""
        return await asyncio.to_thread(self.batch, list(ops))

    def sweep_ttl(self) -> int:
        """End items whose time is over; returns how many. Reads leave them out in any case."""
        over = [memory.id for memory in self._items() if not self._lives(memory)]
        return len(self.account.forget(*over)) if over else 0

    def _items(self, namespace: Sequence[str] = (), **more: Any) -> list[Memory]:
        tags = [tag_of(namespace)] if namespace else None
        return self.account.memories(kind="fact", category=FORMAT, scope=[self._scope], tags=tags, **more)

    def _find(self, namespace: Sequence[str], key: str) -> Memory | None:
        return next(filter(self._lives, self._items(topic=topic_of(namespace, key))), None)

    def _lives(self, memory: Memory) -> bool:
        expires = memory.data[FORMAT].get("expires")
        return expires is None or datetime.fromisoformat(expires) > self._now()

    def _search(self, op: base.SearchOp) -> list[tuple[Memory, float | None]]:
        """A page of what fits; a namespace is read whole only where the best or the first do not fill it."""
        namespace, most = op.namespace_prefix, op.offset + op.limit
        query = op.query if op.query and op.query.strip() else None
        ranked: list[tuple[Memory, float | None]] = []
        if query:
            k, scope = _MANY if op.filter else most, [self._scope]
            tags = [tag_of(namespace)] if namespace else None
            hits = self.account.recall(query, k=k, kinds="fact", category=FORMAT, scope=scope, tags=tags)
            ranked = [(hit.memory, hit.score) for hit in hits if self._fits(hit.memory, op)]
        elif not op.filter:
            ranked = [(memory, None) for memory in filter(self._lives, self._items(namespace, limit=most))]
        if len(ranked) < most:
            known = {memory.id for memory, _ in ranked}
            others = [m for m in self._items(namespace) if m.id not in known and self._fits(m, op)]
            # What has words and did not come fits with 0; what was put without an index has no score at all.
            scored = [(memory, 0.0 if op.query and memory.text else None) for memory in others]
            ranked += sorted(scored, key=lambda item: item[1] is None)
        return ranked[op.offset : most]

    def _fits(self, memory: Memory, op: base.SearchOp) -> bool:
        value = memory.data[FORMAT]["value"]
        return self._lives(memory) and all(_agrees(value.get(k), v) for k, v in (op.filter or {}).items())

    def _namespaces(self, op: base.ListNamespacesOp) -> list[tuple[str, ...]]:
        names = {tuple(m.data[FORMAT]["namespace"]) for m in self._items() if self._lives(m)}
        conditions = op.match_conditions or ()
        shown = {name[: op.max_depth] for name in names if all(_matches(name, one) for one in conditions)}
        return sorted(shown)[op.offset : op.offset + op.limit]

    def _apply(self, puts: Mapping[str, base.PutOp], read: Mapping[str, Memory]) -> None:
        """Write what was put, deleted and refreshed in one version, or nothing at all."""
        now = self._now()
        writes: list[Finished] = []
        for op in puts.values():
            held = self._find(op.namespace, op.key)
            if op.value is not None:
                writes.append(Wrote(memory=self._put(op, op.value, held, now)))
            elif held is not None:
                writes.append(Forgot(memory=held.id, at=now))
        for memory in read.values():  # what was read has its time begun anew, unless it is written anyway
            own = memory.data[FORMAT]
            if own.get("ttl") is not None and memory.topic not in puts:
                fresh = {**own, "expires": iso(now + timedelta(minutes=own["ttl"]))}
                wanted = replace(memory, data={**memory.data, FORMAT: fresh})
                writes.append(Revised(wanted=wanted, fields=("data",), at=now))
        write = partial(self.account.intake.write_many, cause=FORMAT, skip=ACCEPTED, whole=True)
        for verdict in write(writes, scope=self._scope) if writes else ():
            verdict.or_raise()

    def _put(self, op: base.PutOp, value: Mapping[str, Any], held: Memory | None, now: datetime) -> Memory:
        """The item to write: found by its words, within a fact's length; without an index it has none."""
        paths = self._fields if op.index is None else op.index
        texts = list(words_of(value)) if paths is None else []
        texts += [text for path in paths or () for text in base.get_text_at_path(value, path)]
        text = "\n".join(texts)[: self.account.policy.kinds.fact.max_length]
        created = datetime.fromisoformat(held.data[FORMAT]["created"]) if held else now
        expires = None if op.ttl is None else now + timedelta(minutes=op.ttl)
        return item_memory(op.namespace, op.key, value, text, now, created, op.ttl, expires)


def _item(kind: Callable[..., Any], memory: Memory, **more: Any) -> Any:
    own = memory.data[FORMAT]
    names = {"namespace": tuple(own["namespace"]), "key": own["key"], "value": own["value"]}
    return kind(**names, created_at=datetime.fromisoformat(own["created"]), updated_at=memory.at, **more)


def _matches(namespace: Sequence[str], condition: base.MatchCondition) -> bool:
    step = 1 if condition.match_type == "prefix" else -1
    pairs = zip(namespace[::step], condition.path[::step], strict=False)
    return len(namespace) >= len(condition.path) and all(asked in ("*", label) for label, asked in pairs)


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


def _compares(value: Any, name: str, bound: Any) -> bool:
    if name in ("$eq", "$ne"):
        return (value == bound) is (name == "$eq")
    if name not in _ORDERS:
        raise ValueError(f"Unsupported operator: {name}")
    try:
        return bool(_ORDERS[name](float(value), float(bound)))
    except (TypeError, ValueError):
        return False
