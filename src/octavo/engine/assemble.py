"""Assembling: memories that are alike are grouped beside the conversation, and groups that are alike merge.

It is never part of a commit that somebody waits for: a pass looks at what got its vectors since the last one
and commits what it found, all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from msgspec.structs import replace

from octavo.domain import assembling, gate
from octavo.domain.assembling import KIND, LEAST, Rarity, formed, live_members, may_belong, members_of
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

GATHERED = 64  # passages that wait before a pass makes a version of its own in the background
_PASS = 2_048  # passages a pass looks at,
_CHANGES = 512  # and assemblies it may change
_NEAR = 8
_RECIPE = Recipe()


class _Pass:
    """One look at memories that are new: the groups as they grow, each the sum of its members' vectors."""

    def __init__(self, spine: Spine, composing: Composing, units: Units, vectors: Vectors) -> None:
        self.policy = spine.policy.assemblies
        self._view, self._new_id, self._units, self._vectors = spine.head(), spine.new_id, units, vectors
        self._kinds = [KINDS.index(kind) for kind in assembling.GROUPED]
        self._ends, self._rows = units.valid_to(), units.column("rows")[: vectors.manifest.rows]
        self._lacking = set(vectors.lacking.tolist())
        keys, revs = self._rows["key"], self._rows["rev"]
        is_next = (keys[1:] != keys[:-1]) | (revs[1:] != revs[:-1])
        self._starts = np.concatenate(([0], np.flatnonzero(is_next) + 1, [len(keys)]))
        held = composing.held()
        self._count = len(held.manifest.rows)
        usable = [row for row in held.manifest.rows if row.used >= LEAST]
        self._ids, count = [row.id for row in usable], len(usable)
        self._sums = np.zeros((count + _CHANGES, vectors.manifest.dimension), dtype=np.float32)
        self._sizes, self._scopes = np.ones(count + _CHANGES, dtype=np.float32), np.zeros(count + _CHANGES)
        codes = {scope: code for code, scope in enumerate(units.manifest.scopes)}
        self._scopes[:count] = [codes[row.scope] for row in usable]
        self._sizes[:count] = [row.members for row in usable]
        lengths = np.array([row.length * row.members / row.used for row in usable], dtype=np.float32)
        self._sums[:count] = held.floats[[held.places[id_] for id_ in self._ids]] * lengths[:, None]
        self._groups_of: dict[str, list[str]] = {}  # of each memory that was asked about
        self.more: dict[str, list[str]] = {}  # of each assembly that grows or is new: its new members
        self.similarity: dict[str, float] = {}

    def look(self, first: int, stop: int) -> int:
        """Group the memories of some rows; returns the row behind the last one looked at."""
        while first < stop and len(self.more) < _CHANGES:
            rows = self._revision(first)
            candidate = self._candidate(rows)
            if candidate and not self._memberships(candidate[0]):
                self._place(*candidate, rows.start)
            first = rows.stop
        return first

    def _revision(self, row: int) -> range:
        """All the rows of a row's memory."""
        n = int(np.searchsorted(self._starts, row, "right"))
        return range(int(self._starts[n - 1]), int(self._starts[n]))

    def _candidate(self, rows: range) -> tuple[str, Array] | None:
        """The memory of some rows and its vector, if it may be grouped."""
        record = self._rows[rows.start]
        name = self._units.name_of(record)
        is_out = int(record["kind"]) not in self._kinds or name.category in UNCOUNTED
        if is_out or self._ends[rows.start] != OPEN or not self._lacking.isdisjoint(rows):
            return None
        mean = self._vectors.floats[rows.start : rows.stop].astype(np.float32).mean(axis=0)
        length = float(np.linalg.norm(mean))
        return (name.memory, mean / length) if length else None

    def _place(self, id_: str, vector: Array, row: int) -> None:
        """Let a memory join what it is like, or begin a group with the one it is most like."""
        count, most = len(self._ids), self.policy.max_per_memory
        # That is the mean cosine with the members. The cosine with their composite grows with the group
        # until a few of them swallow whatever is said.
        likenesses = (self._sums[:count] @ vector) / self._sizes[:count]
        fits = (likenesses >= self.policy.likeness) & (self._sizes[:count] < self.policy.max_members)
        able = np.flatnonzero(fits & (self._scopes[:count] == self._rows[row]["scope"]))
        for n in able[np.argsort(-likenesses[able], kind="stable")[:most]].tolist():
            self._sums[n] += vector
            self._sizes[n] += 1
            self.more.setdefault(self._ids[n], []).append(id_)
            self._groups_of[id_].append(self._ids[n])
        if not len(able) and self._count < self.policy.max_assemblies:
            self._begin(id_, vector, row)

    def _begin(self, id_: str, vector: Array, row: int) -> None:
        """Begin a group with the nearest memory that is like it and does not belong to enough of them."""
        scope, key = self._rows[row]["scope"], self._rows[row]["key"]

        def is_able(rows: Array) -> Array:
            records = self._rows[rows]
            able: Array = (self._ends[rows] == OPEN) & (records["scope"] == scope) & (records["key"] != key)
            return able & np.isin(records["kind"], self._kinds)

        rows, _ = self._vectors.nearest(vector, is_able, limit=_NEAR)
        for near in dict.fromkeys(self._revision(int(n)) for n in rows):
            other, theirs = self._candidate(near) or (id_, vector)
            likeness, count = float(theirs @ vector), len(self._ids)
            is_free = other != id_ and len(self._memberships(other)) < self.policy.max_per_memory
            if is_free and likeness >= self.policy.likeness:
                new = f"asm_{self._new_id()}"
                self._ids.append(new)
                self._sums[count], self._sizes[count], self._scopes[count] = vector + theirs, LEAST, scope
                self._count += 1
                self.more[new], self.similarity[new] = [other, id_], likeness
                self._groups_of[id_].append(new)
                self._groups_of[other].append(new)
                return

    def _memberships(self, id_: str) -> list[str]:
        if id_ not in self._groups_of:
            self._groups_of[id_] = [whole for whole, *_ in self._view.assemblies_of([id_])]
        return self._groups_of[id_]


def assemble(
    spine: Spine, indexing: Indexing, *, least: int = 1, is_stopping: Callable[[], bool] = lambda: False
) -> list[str]:
    """Group what got its vectors since the last time, if that is enough; returns the assemblies changed."""
    changed: dict[str, None] = {}
    if indexing.composing is None or spine.read_only or spine.policy.assemblies.mode == "off":
        return []
    indexing.compose()
    first, total = indexing.composing.assembled(), _reach(indexing)
    if total - first < least:
        return []
    while first < total and not is_stopping():
        units = indexing.units_now()
        vectors = indexing.embedded().up_to(units.manifest.rows)
        composing = indexing.composing  # of the index as it is now: another may have taken its place
        look = _Pass(spine, composing, units, vectors)
        first = look.look(first, min(first + _PASS, vectors.manifest.rows))
        if new := _commit(spine, look, indexing):
            changed |= dict.fromkeys(new)
            indexing.follow_composites()
        composing.note(assembled=first)
        total = _reach(indexing)
    return list(changed)


def _reach(indexing: Indexing) -> int:
    return min(indexing.units_now().manifest.rows, indexing.embedded().manifest.rows)


def _commit(spine: Spine, look: _Pass, indexing: Indexing) -> list[str]:
    """Commit what a pass found; what changed meanwhile is left as it is."""
    if not look.more:
        return []
    name = indexing.embedding.embedder.name if indexing.embedding else None
    mark, telling = indexing.watermark().version, rarity(indexing.units_now())
    changes: list[Change] = []

    def act(pending: Pending, view: DbView) -> None:
        changes.clear()
        others = (m for m in view.memories(Filter(kinds=(KIND,))) if m.id not in look.more)
        names = {m.text: m.data.get("topics", ()) for m in others}
        old = view.many(look.more)
        for id_, more in look.more.items():
            if id_ in old:
                memory = _grown(view, old[id_][1], more, telling)
            else:
                similarity, least = look.similarity[id_], look.policy.likeness
                came_by = formed("likeness", embedder=name, threshold=least, similarity=similarity)
                members = live_members(view, more)
                memory = assembling.made(id_, members, came_by, telling) if len(members) >= LEAST else None
                # Alike without a topic are above all pleasantries, which nobody looks for.
                memory = memory if memory and memory.data["topics"] else None
            if memory is not None:
                memory = checked(spine, assembling.told_apart(memory, names))
                names[memory.text] = memory.data["topics"]
                changes.append(memory)
        pending.extend(changes)

    spine.commit(act, cause=f"assemble {mark}", actor="system")
    return [m.id for m in changes if isinstance(m, Memory)]


def _grown(view: DbView, old: Memory, more: Sequence[str], telling: Rarity) -> Memory | None:
    """An assembly's next revision, None if it has ended or nobody joins."""
    new = [m for m in live_members(view, more) if m.id not in members_of(old) and m.scope == old.scope]
    if old.gone or not new:
        return None
    return assembling.joined(old, live_members(view, members_of(old)) + new, [m.id for m in new], telling)


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
        hint = f"name {LEAST} to {most} different ones"
        raise BadInput(f"an assembly of {len(members)} memories", hint=hint)
    for member in members:
        if not may_belong(member):
            hint = "group episodes of conversations, and facts"
            raise BadInput(f"{member.id} cannot be a member", hint=hint)
        if member.scope != members[0].scope:
            raise BadInput(f"{members[0].id} and {member.id} lie in two scopes", hint="group one scope's")
    approved, telling = actor if is_human(actor) else None, rarity(indexing.units_now())
    id_ = f"asm_{spine.new_id()}"
    new = assembling.made(id_, members, formed("hand"), telling, name=name, tags=tags, approved=approved)
    memory = checked(spine, replace(new, actor=actor))
    cause, scope = f"assemble {id_}", memory.scope
    spine.commit(lambda pending, _: pending.apply(memory), cause=cause, actor=actor, scope=scope)
    return memory


def end_small(spine: Spine) -> list[str]:
    """End assemblies that have fewer than two live members left; returns their ids."""
    small: list[Memory] = []

    def act(pending: Pending, view: DbView) -> None:
        whole = view.memories(Filter(kinds=(KIND,)))
        live = {m.id for m in live_members(view, {id_ for m in whole for id_ in members_of(m)})}
        small[:] = [m for m in whole if len(live.intersection(members_of(m))) < LEAST]
        pending.extend(tombstone(m, "system") for m in small)

    if spine.head().count(KIND):
        spine.commit(act, cause="end assemblies", actor="system")
    return [m.id for m in small]


def rarity(units: Units) -> Rarity:
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


def checked(spine: Spine, memory: Memory) -> Memory:
    """The assembly past the gate's text checks: its name may be made of what must be masked."""
    outcome = gate.check_text(memory, spine.policy)
    return outcome if isinstance(outcome, Memory) else replace(memory, text=memory.id)
