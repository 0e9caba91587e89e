"""Assembling: memories that are alike are grouped beside the conversation, and groups that are alike merge.

It is never part of a commit that somebody waits for: a pass looks at what got its vectors since the last one
and commits what it found, all or nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from typing import Any

from msgspec.structs import replace

from octavo.domain import assembling, gate
from octavo.domain.assembling import KIND, LEAST, formed, may_belong, members_of
from octavo.domain.filters import Filter
from octavo.domain.memory import KINDS, UNCOUNTED, Change, Memory, is_human
from octavo.domain.ranking import Recipe, idf
from octavo.domain.rules import tombstone
from octavo.domain.state import Pending
from octavo.domain.text import runs, terms_of_run
from octavo.engine.composing import Composing
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.errors import BadInput, NotFound
from octavo.libraries import Array, np
from octavo.storage import frequencies
from octavo.storage.batches import code_of
from octavo.storage.rows import OPEN, Units
from octavo.storage.state_view import DbView
from octavo.storage.vectors import Vectors

_log = logging.getLogger("octavo.assemble")
GATHERED = 64  # passages that wait before a pass makes a version of its own in the background
_PASS = 2_048  # passages a pass looks at,
_CHANGES = 512  # and assemblies it may change
_NEAR = 8
_BLOCK = 1_024
_RECIPE = Recipe()


class _Pass:
    """One look at memories that are new: the groups of each scope as they grow."""

    def __init__(self, spine: Spine, composing: Composing, units: Units, vectors: Vectors) -> None:
        self.policy = spine.policy.assemblies
        self._spine, self._units, self._vectors = spine, units, vectors
        self._kinds = [KINDS.index(kind) for kind in assembling.GROUPED]
        self._ends, self._rows = units.valid_to(), units.column("rows")
        self._lacking = set(vectors.lacking.tolist())
        held = composing.held()
        self.count = len(held.manifest.rows)
        self._ids: dict[str, list[str]] = {}
        self._sums: dict[str, list[Array]] = {}
        self._sizes: dict[str, list[int]] = {}
        self._stacked: dict[str, Array] = {}
        for place, row in enumerate(held.manifest.rows):
            if row.used >= LEAST:
                total = held.floats[place] * (row.length * row.members / row.used)
                self._add(row.scope, row.id, total, row.members)
        self.members: dict[str, list[str]] = {}  # of each memory that was asked about: its assemblies
        self.more: dict[str, list[str]] = {}  # of each assembly that grows or is new: its new members
        self.similarity: dict[str, float] = {}

    def look(self, first: int, stop: int) -> int:
        """Group the memories of some rows; returns the row behind the last one looked at."""
        row, view = first, self._spine.head()
        while row < stop and len(self.more) < _CHANGES:
            behind = self._behind(row)
            id_, scope, vector = self._candidate(row, behind)
            if vector is not None and not self._memberships(view, id_):
                self._place(view, id_, scope, vector, row)
            row = behind
        return row

    def _candidate(self, first: int, behind: int) -> tuple[str, str, Array | None]:
        """The memory of some rows, its scope, and its vector if it may be grouped."""
        record = self._rows[first]
        name = self._units.name_of(record)
        scope = self._units.manifest.scopes[int(record["scope"])]
        rows = range(first, behind)
        is_out = (
            int(record["kind"]) not in self._kinds
            or name.category in UNCOUNTED
            or self._ends[first] != OPEN
            or not self._lacking.isdisjoint(rows)
        )
        return name.memory, scope, None if is_out else self._mean(rows)

    def _mean(self, rows: range) -> Array | None:
        mean = self._vectors.floats[rows.start : rows.stop].astype(np.float32).mean(axis=0)
        length = float(np.linalg.norm(mean))
        return mean / length if length else None

    def _place(self, view: DbView, id_: str, scope: str, vector: Array, row: int) -> None:
        """Let a memory join what it is like, or begin a group with the one it is most like."""
        likenesses = self._stack(scope) @ vector if self._ids.get(scope) else np.empty(0)
        able = [int(n) for n in np.argsort(-likenesses, kind="stable")[: 4 * self.policy.max_per_memory]]
        fits = [
            n
            for n in able
            if likenesses[n] >= self.policy.likeness and self._sizes[scope][n] < self.policy.max_members
        ]
        for n in fits[: self.policy.max_per_memory]:
            self._grow(scope, n, vector)
            self.more.setdefault(self._ids[scope][n], []).append(id_)
            self.members[id_].append(self._ids[scope][n])
        if not fits and self.count < self.policy.max_assemblies:
            self._begin(view, id_, scope, vector, row)

    def _begin(self, view: DbView, id_: str, scope: str, vector: Array, row: int) -> None:
        for other, near, likeness in self._near(id_, scope, vector, row):
            if len(self._memberships(view, other)) < self.policy.max_per_memory:
                new = f"asm_{self._spine.new_id()}"
                self._add(scope, new, vector + near, LEAST)
                self.count += 1
                self.more[new], self.similarity[new] = [other, id_], likeness
                self.members[id_].append(new)
                self.members[other].append(new)
                return

    def _near(self, id_: str, scope: str, vector: Array, row: int) -> Iterable[tuple[str, Array, float]]:
        code = self._units.manifest.scopes.index(scope)

        def visible(rows: Array) -> Array:
            records = self._rows[rows]
            seen: Array = (self._ends[rows] == OPEN) & (records["scope"] == code)
            seen &= np.isin(records["kind"], self._kinds) & (records["key"] != self._rows[row]["key"])
            return seen

        rows, _ = self._vectors.nearest(vector, visible, limit=_NEAR)
        for near in dict.fromkeys(self._first(int(n)) for n in rows):
            other, _, mean = self._candidate(near, self._behind(near))
            likeness = 0.0 if mean is None else float(mean @ vector)
            if mean is not None and likeness >= self.policy.likeness:
                yield other, mean, likeness

    def _memberships(self, view: DbView, id_: str) -> list[str]:
        if id_ not in self.members:
            self.members[id_] = [whole for whole, *_ in view.assemblies_of([id_])]
        return self.members[id_]

    def _behind(self, row: int) -> int:
        """The row behind the last one of a row's memory."""
        stop = row + 1
        while stop < self._vectors.manifest.rows and self._is_one(row, stop):
            stop += 1
        return stop

    def _first(self, row: int) -> int:
        while row and self._is_one(row, row - 1):
            row -= 1
        return row

    def _is_one(self, row: int, other: int) -> bool:
        """Whether two rows are of one revision."""
        one, two = self._rows[row], self._rows[other]
        return bool(one["key"] == two["key"] and one["rev"] == two["rev"])

    def _add(self, scope: str, id_: str, total: Array, size: int) -> None:
        self._ids.setdefault(scope, []).append(id_)
        self._sums.setdefault(scope, []).append(np.asarray(total, dtype=np.float32))
        self._sizes.setdefault(scope, []).append(size)
        stacked, n = self._stacked.get(scope), len(self._ids[scope])
        if stacked is None or len(stacked) < n:
            grown = np.zeros((max(64, 2 * n), len(total)), dtype=np.float32)
            if stacked is not None:
                grown[: len(stacked)] = stacked
            self._stacked[scope] = grown
        self._renew(scope, n - 1)

    def _grow(self, scope: str, n: int, vector: Array) -> None:
        self._sums[scope][n] = self._sums[scope][n] + vector
        self._sizes[scope][n] += 1
        self._renew(scope, n)

    def _renew(self, scope: str, n: int) -> None:
        # The product with this is the mean cosine with the members. The cosine with their composite grows
        # with the group until a few of them swallow whatever is said.
        self._stacked[scope][n] = self._sums[scope][n] / self._sizes[scope][n]

    def _stack(self, scope: str) -> Array:
        stacked: Array = self._stacked[scope][: len(self._ids[scope])]
        return stacked


def assemble(
    spine: Spine, indexing: Indexing, *, least: int = 1, is_stopping: Callable[[], bool] = lambda: False
) -> list[str]:
    """Group what got its vectors since the last time, if that is enough; returns the assemblies changed."""
    changed: list[str] = []
    if indexing.composing is None or spine.read_only or spine.policy.assemblies.mode == "off":
        return changed
    indexing.follow_composites()
    first, total = indexing.composing.assembled(), _reach(indexing)
    if total - first < least:
        return changed
    while first < total and not is_stopping():
        units = indexing.units_now()
        vectors = indexing.embedded().up_to(units.manifest.rows)
        composing = indexing.composing  # of the index as it is now: another may have taken its place
        look = _Pass(spine, composing, units, vectors)
        first = look.look(first, min(first + _PASS, vectors.manifest.rows))
        if new := _commit(spine, look, rarity(units), indexing):
            changed += new
            indexing.follow_composites()
        composing.note_assembled(first)
        total = _reach(indexing)
    return list(dict.fromkeys(changed))


def by_hand(
    spine: Spine,
    indexing: Indexing,
    actor: str,
    members: Sequence[Memory],
    name: str | None,
    tags: Sequence[str],
) -> Memory:
    """An assembly that somebody puts together; a person's own is not changed by an agent alone."""
    most = spine.policy.assemblies.max_members
    if not LEAST <= len(members) <= most:
        raise BadInput(
            f"an assembly of {len(members)} memories", hint=f"name {LEAST} to {most} different ones"
        )
    for member in members:
        if not may_belong(member):
            raise BadInput(
                f"{member.id} cannot be a member", hint="group episodes of conversations, and facts"
            )
        if member.scope != members[0].scope:
            raise BadInput(f"{members[0].id} and {member.id} lie in two scopes", hint="group one scope's")
    new = assembling.made(
        f"asm_{spine.new_id()}",
        members,
        formed("hand"),
        rarity=rarity(indexing.units_now()),
        name=name,
        tags=tags,
        approved=actor if is_human(actor) else None,
    )
    memory = checked(spine, replace(new, actor=actor))
    spine.commit(
        lambda pending, _: pending.apply(memory),
        cause=f"assemble {memory.id}",
        actor=actor,
        scope=memory.scope,
    )
    return memory


def end_small(spine: Spine) -> list[str]:
    """End assemblies that have fewer than two live members left; returns their ids."""
    ended: list[str] = []

    def act(pending: Pending, view: DbView) -> None:
        whole = view.memories(Filter(kinds=(KIND,))) if view.count(KIND) else []
        known = view.many({id_ for m in whole for id_ in members_of(m)}) if whole else {}
        small = [
            m for m in whole if sum(may_belong(known.get(i, (0, None))[1]) for i in members_of(m)) < LEAST
        ]
        ended[:] = [m.id for m in small]
        pending.extend(tombstone(m, "system") for m in small)

    if spine.head().count(KIND):
        spine.commit(act, cause="end assemblies", actor="system")
    return ended


def rarity(units: Units) -> Callable[[str], float]:
    """How telling a phrase is in this account: what its rarest term says."""
    scopes = units.scope_codes(None)

    @cache
    def telling(phrase: str) -> float:
        terms = [term for run in runs(phrase) for term in terms_of_run(run)]
        if not terms or not units.manifest.rows:
            return 1.0
        codes = np.array([code_of(term) for term in terms], dtype=np.uint32)
        counts = frequencies.containing(units, codes, scopes, units.manifest.rows)
        return max(idf(units.manifest.rows, int(count), _RECIPE) for count in counts)

    return telling


def live(view: DbView, id_: str) -> Memory:
    """A live assembly, or NotFound."""
    memory = view.get(id_)
    if memory is None or memory.gone or memory.kind != KIND:
        raise NotFound(f"there is no assembly {id_!r}", hint="`octavo assemblies` lists them")
    return memory


def _reach(indexing: Indexing) -> int:
    return min(indexing.units_now().manifest.rows, indexing.embedded().manifest.rows)


def _commit(spine: Spine, look: _Pass, telling: Callable[[str], float], indexing: Indexing) -> list[str]:
    """Commit what a pass found; what changed meanwhile is left as it is."""
    if not look.more:
        return []
    name = indexing.embedding.embedder.name if indexing.embedding else None
    mark = indexing.watermark().version
    changed: list[str] = []

    def act(pending: Pending, view: DbView) -> None:
        old = {id_: m for id_, (_, m) in view.many(look.more).items()}
        ids = {m for more in look.more.values() for m in more}
        ids |= {m for one in old.values() for m in members_of(one)}
        known = {id_: m for id_, (_, m) in view.many(ids).items() if may_belong(m)}
        others = (m for m in view.memories(Filter(kinds=(KIND,))) if m.id not in look.more)
        names = {m.text: m.data.get("topics", ()) for m in others}
        changes: list[Change] = []
        for id_, more in look.more.items():
            came_by = formed(
                "likeness",
                embedder=name,
                threshold=look.policy.likeness,
                similarity=look.similarity.get(id_),
            )
            memory = _next(old.get(id_), id_, [known[m] for m in more if m in known], known, came_by, telling)
            if memory is not None:
                memory = checked(spine, assembling.told_apart(memory, names))
                names[memory.text] = memory.data["topics"]
                changes.append(memory)
        changed[:] = [m.id for m in changes if isinstance(m, Memory)]
        pending.extend(changes)

    spine.commit(act, cause=f"assemble {mark}", actor="system")
    return changed


def _next(
    old: Memory | None,
    id_: str,
    more: Sequence[Memory],
    known: Mapping[str, Memory],
    came_by: Mapping[str, Any],
    telling: Callable[[str], float],
) -> Memory | None:
    """An assembly's next revision, None if there is nothing to say.

    Alike without a topic are above all pleasantries, which nobody looks for: they begin no assembly.
    """
    if old is None:
        new_one = assembling.made(id_, more, came_by, rarity=telling) if len(more) >= LEAST else None
        return new_one if new_one and new_one.data["topics"] else None
    new = [m for m in more if m.id not in members_of(old) and m.scope == old.scope]
    if old.gone or not new:
        return None
    members = [known[m] for m in members_of(old) if m in known] + new
    return assembling.joined(old, members, [m.id for m in new], telling)


def checked(spine: Spine, memory: Memory) -> Memory:
    """The assembly past the gate's text checks: its name may be made of what must be masked."""
    outcome = gate.check_text(memory, spine.policy)
    return outcome if isinstance(outcome, Memory) else replace(memory, text=memory.id)
