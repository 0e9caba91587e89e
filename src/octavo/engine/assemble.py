"""Assembling: memories that are alike are grouped beside the conversation, and groups that are alike merge.

It is never part of a commit that somebody waits for: a pass looks at what got its vectors since the last one
and commits what it found, all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

from msgspec.structs import replace

from octavo.domain import assembling, gate
from octavo.domain.assembling import KIND, LEAST, Rarity, live_members, may_belong, members_of
from octavo.domain.filters import Filter
from octavo.domain.memory import KINDS, Memory, is_human
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
from octavo.storage.rows import OPEN, Units, key_code
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
        self._view, self._new_id, self._composing = spine.head(), spine.new_id, composing
        self._units, self._vectors, self._rows = units, vectors, units.column("rows")
        self._codes = {scope: code for code, scope in enumerate(units.manifest.scopes)}
        held = composing.held()
        self._count = len(held.manifest.rows)
        usable = [row for row in held.manifest.rows if row.used >= LEAST]
        self._ids, count = [row.id for row in usable], len(usable)
        self._sums = np.zeros((count + _CHANGES, vectors.manifest.dimension), dtype=np.float32)
        self._sizes, self._scopes = np.ones(count + _CHANGES, dtype=np.float32), np.zeros(count + _CHANGES)
        self._scopes[:count] = [self._codes[row.scope] for row in usable]
        self._sizes[:count] = [row.members for row in usable]
        lengths = np.array([row.length * row.members / row.used for row in usable], dtype=np.float32)
        self._sums[:count] = held.floats[[held.places[id_] for id_ in self._ids]] * lengths[:, None]
        self._groups_of: dict[str, list[str]] = {}  # of each memory that was asked about
        self.more: dict[str, list[str]] = {}  # of each assembly that grows or is new: its new members
        self.similarity: dict[str, float] = {}

    def look(self, first: int, stop: int) -> int:
        """Group the memories of some rows; returns the row behind the last one looked at."""
        rows: dict[str, int] = {}
        for row in range(first, stop):
            rows.setdefault(self._memory_at(row), row)
        memories = live_members(self._view, rows)
        vectors = self._composing.vectors_of(memories)
        for memory in memories:
            if len(self.more) >= _CHANGES:
                return rows[memory.id]
            if memory.id in vectors and not self._memberships(memory.id):
                self._place(memory, vectors[memory.id].astype(np.float32))
        return stop

    def _place(self, memory: Memory, vector: Array) -> None:
        """Let a memory join what it is like, or begin a group with the one it is most like."""
        count, most = len(self._ids), self.policy.max_per_memory
        # That is the mean cosine with the members. The cosine with their composite grows with the group
        # until a few of them swallow whatever is said.
        likenesses = (self._sums[:count] @ vector) / self._sizes[:count]
        fits = (likenesses >= self.policy.likeness) & (self._sizes[:count] < self.policy.max_members)
        able = np.flatnonzero(fits & (self._scopes[:count] == self._codes[memory.scope]))
        for n in able[np.argsort(-likenesses[able], kind="stable")[:most]].tolist():
            self._sums[n] += vector
            self._sizes[n] += 1
            self.more.setdefault(self._ids[n], []).append(memory.id)
            self._groups_of[memory.id].append(self._ids[n])
        if not len(able) and self._count < self.policy.max_assemblies:
            self._begin(memory, vector)

    def _begin(self, memory: Memory, vector: Array) -> None:
        """Begin a group with the nearest memory that is like it and does not belong to enough of them."""
        scope, key, ends = self._codes[memory.scope], key_code(memory.id), self._units.valid_to
        kinds = [KINDS.index(kind) for kind in assembling.GROUPED]

        def is_able(rows: Array) -> Array:
            records = self._rows[rows]
            able: Array = (ends[rows] == OPEN) & (records["scope"] == scope) & (records["key"] != key)
            return able & np.isin(records["kind"], kinds)

        rows, _ = self._vectors.nearest(vector, is_able, limit=_NEAR)
        near = live_members(self._view, dict.fromkeys(map(self._memory_at, rows.tolist())))
        vectors = self._composing.vectors_of(near)
        for id_, theirs in [(other.id, vectors[other.id]) for other in near if other.id in vectors]:
            likeness = float(theirs @ vector)
            is_free = len(self._memberships(id_)) < self.policy.max_per_memory
            if is_free and likeness >= self.policy.likeness:
                new, count = f"asm_{self._new_id()}", len(self._ids)
                self._ids.append(new)
                self._sums[count], self._sizes[count], self._scopes[count] = vector + theirs, LEAST, scope
                self._count += 1
                self.more[new], self.similarity[new] = [id_, memory.id], likeness
                self._groups_of[memory.id].append(new)
                self._groups_of[id_].append(new)
                return

    def _memory_at(self, row: int) -> str:
        return self._units.memory_of(self._rows[row])

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
    embedder = indexing.embedding.embedder.name if indexing.embedding else None
    telling, changes = rarity(indexing.units_now()), list[Memory]()

    def act(pending: Pending, view: DbView) -> None:
        changes.clear()
        others = (m for m in view.memories(Filter(kinds=(KIND,))) if m.id not in look.more)
        names = {m.text: m.data.get("topics", ()) for m in others}
        old = view.many(look.more)
        for id_, more in look.more.items():
            known = old[id_][1] if id_ in old else None
            has, new = members_of(known) if known else (), live_members(view, more)
            new = [m for m in new if m.id not in has and (known is None or m.scope == known.scope)]
            members = live_members(view, has) + new
            if not new or len(members) < LEAST or (known and known.gone):
                continue
            if known:
                memory = assembling.joined(known, members, [m.id for m in new], telling)
            else:
                memory = assembling.made(
                    id_,
                    members,
                    telling,
                    "likeness",
                    embedder=embedder,
                    threshold=look.policy.likeness,
                    similarity=look.similarity[id_],
                )
                if not memory.data["topics"]:
                    continue  # alike without a topic are above all pleasantries, which nobody looks for
            memory = checked(spine, assembling.told_apart(memory, names))
            names[memory.text] = memory.data["topics"]
            changes.append(memory)
        pending.extend(changes)

    spine.commit(act, cause=f"assemble {indexing.watermark().version}", actor="system")
    return [m.id for m in changes]


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
    id_, approved = f"asm_{spine.new_id()}", actor if is_human(actor) else None
    telling = rarity(indexing.units_now())
    new = assembling.made(id_, members, telling, "hand", name=name, tags=tags, approved=approved)
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


def must_live(memory: Memory | None, id_: str) -> Memory:
    """A live assembly, or NotFound."""
    if memory is None or memory.gone or memory.kind != KIND:
        raise NotFound(f"there is no assembly {id_!r}", hint="`octavo assemblies` lists them")
    return memory


def checked(spine: Spine, memory: Memory) -> Memory:
    """The assembly past the gate's text checks: its name may be made of what must be masked."""
    outcome = gate.check_text(memory, spine.policy)
    return outcome if isinstance(outcome, Memory) else replace(memory, text=memory.id)
