"""The fold of changes into a state: what a version's memory is, and a layer of new changes over it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import chain
from typing import Protocol, TypeVar

from msgspec.structs import replace

from octavo.domain.filters import Filter, passes
from octavo.domain.likeness import filed_under, sought_under
from octavo.domain.memory import (
    COMPARED,
    SHARED,
    Change,
    Decision,
    Kind,
    Memory,
    Proposal,
    Redaction,
    Rejection,
)

C = TypeVar("C", bound=Change)
T = TypeVar("T", int, str)  # newer ones are greater

# What every other text is filed under says little: of each number only the newest texts are looked at, so
# that a look-up costs the same among a million texts as among a thousand.
NEWEST = 16
# A text of eight words or more is looked up by more numbers than this. Who shares but one of them has two
# words with it: the larger an account, the more such there are, and comparing them finds nothing.
MANY = 22
CANDIDATES = 5  # of 2,000 restatements among 30,000 facts this finds all


class View(Protocol):
    """What the rules ask of the memory they apply to."""

    def get(self, id_: str) -> Memory | None:
        """The current revision of a memory, a tombstone included."""

    def live(self, id_: str) -> Memory | None:
        """The current revision of a memory that has not ended."""
        memory = self.get(id_)
        return None if memory is None or memory.gone else memory

    def many(self, ids: Collection[str]) -> Mapping[str, tuple[int, Memory]]:
        """The current revisions of several memories and the versions they came in (0: not committed)."""

    def by_topic(self, kind: Kind, scope: str, topic: str) -> Memory | None:
        """The live memory that holds a topic."""

    def alike(
        self, kind: Kind, scope: str, text: str, near: Callable[[str], bool] | None = None
    ) -> Sequence[Memory]:
        """Live memories that may say the same, those that share most first; the newest with the same key are
        among them. With `near` only those whose text passes it."""

    def count(self, kind: Kind) -> int:
        """How many live memories of a kind there are."""

    def is_rejected(self, key: str, scope: str) -> bool:
        """Whether a person refused the value in this scope."""

    def is_redacted(self, key: str, scope: str) -> bool:
        """Whether the text was erased in this scope, or everywhere, and must not return."""

    def has_refused(self) -> bool:
        """Whether a person ever refused or erased anything, so that most accounts need not look closer."""

    def proposals(self) -> Sequence[Proposal]:
        """All proposals that still wait."""

    def memories(self, wanted: Filter) -> Sequence[Memory]:
        """Live memories that pass a filter, in the order of their events."""

    def referring(self, id_: str, *, parts: bool = True, newest: int = -1) -> Sequence[Memory]:
        """Live memories with a link to a memory; without `parts` not those that it is a part of."""

    def referred(self, ids: Collection[str]) -> set[str]:
        """Which of some memories another one has ever linked to, but not as its parts."""


class Pending(View):
    """Changes folded into plain dictionaries, on top of an older view."""

    def __init__(self, parent: View) -> None:
        self.parent = parent
        self.changes: list[Change] = []
        self.session: int | None = None  # the ordinal of the session that they close, if they close one
        self.own: dict[str, Memory] = {}
        self._topics: dict[tuple[str, str, str], str] = {}
        self._rejections: dict[tuple[str, str], bool] = {}
        self._redacted: set[tuple[str, str]] = set()
        self._proposals: dict[str, Proposal] = {}
        self._decided: set[str] = set()
        self._counts: dict[str, int] = {}
        self._filed: dict[int, list[str]] = {}

    def apply(self, change: Change) -> None:
        """Add one change."""
        self.changes.append(change)
        match change:
            case Memory():
                self._remember(change)
            case Proposal():
                self._proposals[change.id] = change
            case Decision():
                self._decided.add(change.proposal)
            case Rejection():
                for key in (change.key, change.look):
                    if key is not None:
                        self._rejections[key, change.scope] = not change.lifted
            case Redaction():
                self._redacted.add((change.key, change.scope or SHARED))

    def extend(self, changes: Iterable[C]) -> list[C]:
        """Add some changes, in order; returns them."""
        added = list(changes)
        for change in added:
            self.apply(change)
        return added

    def get(self, id_: str) -> Memory | None:
        """The current revision of a memory, a tombstone included."""
        return self.own[id_] if id_ in self.own else self.parent.get(id_)

    def many(self, ids: Collection[str]) -> Mapping[str, tuple[int, Memory]]:
        """The current revisions of several memories and the versions they came in (0: not committed)."""
        own = {id_: (0, self.own[id_]) for id_ in ids if id_ in self.own}
        return {**self.parent.many([id_ for id_ in ids if id_ not in own]), **own}

    def by_topic(self, kind: Kind, scope: str, topic: str) -> Memory | None:
        """The live memory that holds a topic."""
        own = self._topics.get((kind, scope, topic))
        found = self.live(own) if own else None
        if found is None:
            older = self.parent.by_topic(kind, scope, topic)
            found = older if older and older.id not in self.own else None
        return found if found and (found.kind, found.scope, found.topic) == (kind, scope, topic) else None

    def alike(
        self, kind: Kind, scope: str, text: str, near: Callable[[str], bool] | None = None
    ) -> Sequence[Memory]:
        """Live memories that may say the same, those that share most first; the newest with the same key are
        among them. With `near` only those whose text passes it."""
        older = self.parent.alike(kind, scope, text, near)
        found = [memory for memory in older if memory.id not in self.own]
        filed = self._filed
        sought = sought_under(kind, scope, text)
        newest = [filed[number][-NEWEST:] for number in sought if number in filed]
        own = (self.own[id_] for id_ in most_shared(newest, len(sought)))
        live = [m for m in own if (m.kind, m.scope, m.gone) == (kind, scope, False)]
        return found + (live if near is None else [m for m in live if near(m.text)])

    def count(self, kind: Kind) -> int:
        """How many live memories of a kind there are."""
        return self._counts.get(kind, 0) + self.parent.count(kind)

    def is_rejected(self, key: str, scope: str) -> bool:
        """Whether a person refused the value in this scope."""
        own = self._rejections.get((key, scope))
        return self.parent.is_rejected(key, scope) if own is None else own

    def is_redacted(self, key: str, scope: str) -> bool:
        """Whether the text was erased in this scope, or everywhere, and must not return."""
        own = not self._redacted.isdisjoint({(key, scope), (key, SHARED)})
        return own or self.parent.is_redacted(key, scope)

    def has_refused(self) -> bool:
        """Whether a person ever refused or erased anything."""
        return bool(self._redacted or self._rejections) or self.parent.has_refused()

    def proposals(self) -> Sequence[Proposal]:
        """All proposals that still wait."""
        return [p for p in (*self.parent.proposals(), *self._proposals.values()) if p.id not in self._decided]

    def memories(self, wanted: Filter) -> Sequence[Memory]:
        """Live memories that pass a filter, in the order of their events."""
        room = None if wanted.limit is None else wanted.limit + len(self.own)
        older = self.parent.memories(replace(wanted, limit=room))
        found = [memory for memory in older if memory.id not in self.own]
        found += [m for m in self.own.values() if not m.gone and passes(m, wanted)]
        found.sort(key=lambda m: (m.at, m.id), reverse=wanted.newest)
        if (edge := wanted.after) is not None:
            found = [m for m in found if ((m.at, m.id) < edge if wanted.newest else (m.at, m.id) > edge)]
        return found[: wanted.limit]

    def referring(self, id_: str, *, parts: bool = True, newest: int = -1) -> Sequence[Memory]:
        """Live memories with a link to a memory; without `parts` not those that it is a part of."""
        older = self.parent.referring(id_, parts=parts, newest=newest)
        found = [memory for memory in older if memory.id not in self.own]
        for memory in self.own.values():
            if not memory.gone and any(k.to == id_ and (parts or k.name != "part") for k in memory.links):
                found.append(memory)
        return sorted(found, key=lambda m: m.id)

    def referred(self, ids: Collection[str]) -> set[str]:
        """Which of some memories another one has ever linked to, but not as its parts."""
        own = {link.to for memory in self.own.values() for link in memory.links if link.name != "part"}
        return own.intersection(ids) | self.parent.referred(ids)

    def _remember(self, memory: Memory) -> None:
        before = self.live(memory.id)
        if before is not None:
            self._counts[before.kind] = self._counts.get(before.kind, 0) - 1
        if not memory.gone:
            self._counts[memory.kind] = self._counts.get(memory.kind, 0) + 1
        self.own[memory.id] = memory
        if memory.kind in COMPARED and memory.text and not memory.gone:
            for number in filed_under(memory.kind, memory.scope, memory.text):
                self._filed.setdefault(number, []).append(memory.id)
        if memory.topic is not None and not memory.gone:
            self._topics[memory.kind, memory.scope, memory.topic] = memory.id


def most_shared(filed: Iterable[Sequence[T]], sought: int) -> list[T]:
    """Who stands in most lists of the numbers that were sought, the most frequent first, then the newest."""
    counts = Counter(chain.from_iterable(filed))
    least = 2 if sought > MANY else 1
    likely = [one for one, count in counts.items() if count >= least]
    return sorted(sorted(likely, reverse=True), key=counts.__getitem__, reverse=True)[:CANDIDATES]
