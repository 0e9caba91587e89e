"""Assembling: memories that are alike are grouped beside the conversation, and groups that are alike merge.

It is never part of a commit that somebody waits for: a pass looks at what got its vectors since the last one
and commits what it found, all or nothing.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping
from functools import cache, partial
from typing import Any, TypeVar

from msgspec.structs import replace

from octavo.domain import assembling, gate
from octavo.domain.assembling import KIND, LEAST, MERGED_FROM, Rarity, begun, grown, live_members, members_of
from octavo.domain.filters import Filter
from octavo.domain.memory import KINDS, Change, Link, Memory, Proposal, is_human
from octavo.domain.ranking import Recipe, idf
from octavo.domain.rules import tombstone
from octavo.domain.state import Pending
from octavo.domain.text import runs, terms_of_run
from octavo.engine.composing import Composing
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.errors import BadInput, HumanOnly, NotFound
from octavo.libraries import Array, np
from octavo.storage import frequencies
from octavo.storage.batches import code_of
from octavo.storage.composites import Composites
from octavo.storage.rows import OPEN, Units, key_code
from octavo.storage.state_view import DbView
from octavo.storage.vectors import Vectors

_log = logging.getLogger("octavo.assemble")
GATHERED = 64  # passages that wait before a pass makes a version of its own in the background
_PASS = 2_048  # passages a pass looks at,
_CHANGES = 512  # and assemblies it may change
_NEAR, _BLOCK = 8, 1_024
_RECIPE = Recipe()
Pair = tuple[str, str]
C = TypeVar("C", bound=Change)


class _Pass:
    """One look at memories that are new: the groups as they grow, each the mean of its members' vectors."""

    def __init__(self, spine: Spine, composing: Composing, units: Units, vectors: Vectors) -> None:
        self.policy = spine.policy.assemblies
        self._view, self._new_id, self._composing = spine.head(), spine.new_id, composing
        self._units, self._vectors, self._rows = units, vectors, units.column("rows")
        self._codes = {scope: code for code, scope in enumerate(units.manifest.scopes)}
        held = composing.held()
        usable = [row for row in held.manifest.rows if row.used >= LEAST]
        self._ids, count = [row.id for row in usable], len(usable)
        self._free = self.policy.max_assemblies - len(held.manifest.rows)
        self._means = np.zeros((count + _CHANGES, vectors.manifest.dimension), dtype=np.float32)
        self._sizes, self._scopes = np.zeros((2, count + _CHANGES), dtype=np.float32)
        self._sizes[:count] = [row.members for row in usable]
        self._scopes[:count] = [self._codes[row.scope] for row in usable]
        lengths = np.array([row.length / row.used for row in usable], dtype=np.float32)
        self._means[:count] = held.floats[[held.places[id_] for id_ in self._ids]] * lengths[:, None]
        self.more: dict[str, list[str]] = {}  # of each assembly that grows or is new: its new members
        self.similarity: dict[str, float] = {}
        self._joined = Counter[str]()

    def look(self, first: int, stop: int) -> int:
        """Group the memories of some rows; returns the row behind the last one looked at."""
        rows: dict[str, int] = {}
        for row in range(first, stop):
            rows.setdefault(self._units.memory_of(self._rows[row]), row)
        memories = live_members(self._view, rows)
        vectors = self._composing.vectors_of(memories)
        for memory in memories:
            if len(self.more) >= _CHANGES:
                return rows[memory.id]
            if memory.id in vectors and not self._groups(memory.id):
                self._place(memory, vectors[memory.id].astype(np.float32))
        return stop

    def _place(self, memory: Memory, vector: Array) -> None:
        """Let a memory join what it is like, or begin a group with the one it is most like."""
        count, scope = len(self._ids), self._codes[memory.scope]
        # That is the mean cosine with the members. The cosine with their composite grows with the group
        # until a few of them swallow whatever is said.
        likenesses = self._means[:count] @ vector
        fits = (likenesses >= self.policy.likeness) & (self._sizes[:count] < self.policy.max_members)
        able = np.flatnonzero(fits & (self._scopes[:count] == scope))
        for n in able[np.argsort(-likenesses[able], kind="stable")[: self.policy.max_per_memory]].tolist():
            self._join(n, memory.id, vector)
        if len(able) or self._free <= 0:
            return
        near = self._near(memory.id, scope, vector)
        vectors = self._composing.vectors_of(near)
        for id_, theirs in [(other.id, vectors[other.id]) for other in near if other.id in vectors]:
            likeness = float(theirs @ vector)
            if likeness >= self.policy.likeness and self._groups(id_) < self.policy.max_per_memory:
                self._ids.append(f"asm_{self._new_id()}")
                self._free, self._scopes[count] = self._free - 1, scope
                self.similarity[self._ids[count]] = likeness
                self._join(count, id_, theirs)
                self._join(count, memory.id, vector)
                return

    def _near(self, id_: str, scope: int, vector: Array) -> list[Memory]:
        """The memories of a scope that are nearest to one."""
        ends, key = self._units.valid_to, key_code(id_)
        kinds = [KINDS.index(kind) for kind in assembling.GROUPED]

        def is_able(rows: Array) -> Array:
            records = self._rows[rows]
            able: Array = (ends[rows] == OPEN) & (records["scope"] == scope) & (records["key"] != key)
            return able & np.isin(records["kind"], kinds)

        rows, _ = self._vectors.nearest(vector, is_able, limit=_NEAR)
        return live_members(self._view, dict.fromkeys(map(self._units.memory_of, self._rows[rows])))

    def _join(self, n: int, id_: str, vector: Array) -> None:
        self._sizes[n] += 1
        self._means[n] += (vector - self._means[n]) / self._sizes[n]
        self._joined[id_] += 1
        self.more.setdefault(self._ids[n], []).append(id_)

    def _groups(self, id_: str) -> int:
        """How many assemblies a memory belongs to."""
        return len(self._view.wholes_of([id_], (KIND,))) + self._joined[id_]


def assemble(
    spine: Spine, indexing: Indexing, least: int = 1, is_stopping: Callable[[], bool] = lambda: False
) -> list[str]:
    """Group what got its vectors since the last time, if that is enough; returns the assemblies changed."""
    changed: dict[str, None] = {}
    if indexing.composing is None or spine.read_only or spine.policy.assemblies.mode == "off":
        return []
    indexing.compose()
    first = indexing.composing.assembled()
    while not is_stopping():
        units = indexing.units_now()
        vectors = indexing.embedded().up_to(units.manifest.rows)
        if vectors.manifest.rows - first < least:
            break
        composing = indexing.composing  # of the index as it is now: another may have taken its place
        look, least = _Pass(spine, composing, units, vectors), 1
        first = look.look(first, min(first + _PASS, vectors.manifest.rows))
        changes = partial(_changes, spine, look, vectors.manifest.embedder, rarity(units))
        if new := commit(spine, changes, f"assemble {units.manifest.watermark.version}", "system"):
            changed |= dict.fromkeys(m.id for m in new)
            indexing.add_words()
            indexing.compose()
        composing.note(assembled=first)
    return list(changed)


def _changes(spine: Spine, look: _Pass, embedder: str, telling: Rarity, view: DbView) -> list[Memory]:
    """The assemblies as a pass found them; what changed meanwhile is left as it is."""
    changes, old = list[Memory](), view.many(look.more)
    every = {id_ for more in look.more.values() for id_ in more}
    grouped = {part for *_, part in view.wholes_of(every, (KIND,))}
    for id_, more in look.more.items():
        known = old[id_][1] if id_ in old else None
        # Who joins was in no group yet: another pass may have looked at the same. A new one's first may be.
        able = [one for n, one in enumerate(more) if one not in grouped or (known is None and n == 0)]
        new = [m for m in live_members(view, able) if known is None or m.scope == known.scope]
        has = members_of(known) if known else ()
        members = live_members(view, has) + new
        if not new or len(members) < LEAST or (known and known.gone):
            continue
        formed = {"threshold": look.policy.likeness, "similarity": look.similarity.get(id_)}
        memory = grown(known or begun(id_, "likeness", new[0], embedder=embedder, **formed), members, telling)
        if known or memory.data["topics"]:  # without a topic they are above all pleasantries
            changes.append(checked(spine, memory))
    return changes


def by_hand(
    spine: Spine, indexing: Indexing, actor: str, named: Mapping[str, Memory | None], **fields: Any
) -> Memory:
    """An assembly that somebody puts together; a person's own is not changed by an agent alone."""
    most, members = spine.policy.assemblies.max_members, [m for m in named.values() if m]
    if missing := [id_ for id_, member in named.items() if member is None]:
        raise NotFound(f"there is no memory {missing[0]!r} to group")
    if not LEAST <= len(members) <= most:
        hint = f"name {LEAST} to {most} different ones"
        raise BadInput(f"an assembly of {len(members)} memories", hint=hint)
    for member in members:
        if not assembling.may_belong(member):
            hint = "group episodes of conversations, and facts"
            raise BadInput(f"{member.id} cannot be a member", hint=hint)
        if member.scope != members[0].scope:
            raise BadInput(f"{members[0].id} and {member.id} lie in two scopes", hint="group one scope's")
    new = replace(begun(f"asm_{spine.new_id()}", "hand", members[0]), **fields)
    new = grown(new, members, rarity(indexing.units_now()))
    memory = checked(spine, replace(new, actor=actor, approved=actor if is_human(actor) else None))
    return commit(spine, lambda _: [memory], f"assemble {memory.id}", actor, memory.scope)[0]


def end_small(spine: Spine) -> list[str]:
    """End assemblies that have fewer than two live members left; returns their ids."""

    def changes(view: DbView) -> list[Memory]:
        whole = view.memories(Filter(kinds=(KIND,)))
        live = {m.id for m in live_members(view, {id_ for m in whole for id_ in members_of(m)})}
        small = [m for m in whole if len(live.intersection(members_of(m))) < LEAST]
        return [tombstone(m, "system") for m in small]

    has_any = spine.head().count(KIND)
    return [m.id for m in commit(spine, changes, "end assemblies", "system")] if has_any else []


def merge(spine: Spine, indexing: Indexing, actor: str, first: Memory, second: Memory) -> Memory:
    """One assembly in place of two, in one commit; who merges by hand needs no threshold."""
    if first.id == second.id:
        raise BadInput(f"{first.id} cannot be merged with itself", hint="name two assemblies")
    if first.scope != second.scope:
        raise BadInput(f"{first.id} and {second.id} lie in two scopes, which stay apart")
    if not is_human(actor) and (first.approved or second.approved):
        raise HumanOnly(f"{actor} tried to merge an assembly that a person made", hint="ask that person")
    pair, new = (first.id, second.id), f"asm_{spine.new_id()}"
    held = indexing.composing.held() if indexing.composing else None
    both = [vector for id_ in pair if held and (vector := held.vector(id_)) is not None]
    cosine = float(np.dot(*both)) if len(both) == 2 else None
    changes = partial(_merged, spine, indexing, pair, new, similarity=cosine)
    return commit(spine, changes, f"merge {new}", actor, first.scope)[0]


def merge_alike(spine: Spine, indexing: Indexing) -> list[str]:
    """Merge assemblies that are nearly the same, best first, as the policy says; returns those made."""
    policy, composing = spine.policy.assemblies, indexing.composing
    if composing is None or policy.merging == "off" or policy.mode == "off" or spine.read_only:
        return []
    cause, done = "propose merge" if policy.merging == "propose" else "merge", list[str]()

    def changes(pair: Pair, cosine: float, new: str, view: DbView) -> list[Any]:
        formed = {"similarity": cosine, "threshold": policy.merge_likeness}
        whole, *ended = _merged(spine, indexing, pair, new, view, **formed)
        if policy.merging != "propose":  # what a person put together is not taken apart by itself
            return [] if whole.approved else [whole, *ended]
        if any(p.action == "merge" and {*pair} & {*p.memory.linked(MERGED_FROM)} for p in view.proposals()):
            return []
        why = f"the assemblies {pair[0]} and {pair[1]} are nearly the same"
        return [Proposal(id=spine.new_id(), action="merge", memory=whole, reason=why, at=spine.now())]

    for cosine, scope, pair in _alike(spine, composing.held()):
        new = f"asm_{spine.new_id()}"
        try:
            made = commit(spine, partial(changes, pair, cosine, new), f"{cause} {new}", "system", scope)
            done += [new] if made and cause == "merge" else []
        except (BadInput, NotFound) as error:  # one of them changed meanwhile
            _log.info("merge left out reason=%s", type(error).__name__)
    if done:
        indexing.add_words()
        indexing.compose()
    return done


def _alike(spine: Spine, held: Composites) -> list[tuple[float, str, Pair]]:
    """Pairs of fresh assemblies of one scope, best first, each assembly once, as many as one pass merges."""
    policy, able = spine.policy.assemblies, list[tuple[float, str, Pair]]()
    rows = sorted((row for row in held.manifest.rows if row.used >= LEAST), key=lambda row: row.scope)
    own = held.floats[[held.places[row.id] for row in rows]]
    for start in range(0, len(rows), _BLOCK):
        cosines = own[start : start + _BLOCK] @ own[start:].T
        for one, other in np.argwhere(np.triu(cosines >= policy.merge_likeness, k=1)).tolist():
            first, second, cosine = rows[start + one], rows[start + other], float(cosines[one, other])
            # What grows together stays about one thing: members are as alike as those that join.
            mean = cosine * first.length * second.length / (first.used * second.used)
            is_small = first.members + second.members <= policy.max_members
            if first.scope == second.scope and is_small and mean >= policy.likeness:
                able.append((cosine, first.scope, (first.id, second.id)))
    taken, best = set[str](), list[tuple[float, str, Pair]]()
    for cosine, scope, pair in sorted(able, key=lambda one: (-one[0], one[1:])):
        if taken.isdisjoint(pair) and len(best) < policy.merges_per_pass:
            best.append((cosine, scope, pair))
            taken.update(pair)
    return best


def _merged(
    spine: Spine, indexing: Indexing, pair: Pair, new: str, view: DbView, **formed: float | None
) -> list[Memory]:
    """What a merge changes: the new assembly, and the ends of the two, which say into what."""
    both = [must_live(view.get(id_), id_) for id_ in pair]
    ids, most = dict.fromkeys(id_ for m in both for id_ in members_of(m)), spine.policy.assemblies.max_members
    members = live_members(view, ids)
    if len(ids) > most or len(members) < LEAST:
        told = f"{len(ids)} members, {len(members)} live; {LEAST} to {most} are allowed"
        raise BadInput(f"{' and '.join(pair)} have {told}")
    named = next((m for m in both if m.approved), None)
    whole = replace(
        begun(new, "merge", members[0], **formed),
        text=named.text if named else "",
        approved=named.approved if named else None,
        tags=tuple(dict.fromkeys(tag for m in both for tag in m.tags)),
        links=tuple(Link(name=MERGED_FROM, to=id_) for id_ in pair),
    )
    whole = checked(spine, grown(whole, members, rarity(indexing.units_now())))
    return [whole, *(_ended(m, new, "system") for m in both)]


def _ended(source: Memory, into: str, actor: str) -> Memory:
    return replace(tombstone(source, actor), data={assembling.MERGED_INTO: into})


def unmerge(spine: Spine, actor: str, whole: Memory) -> list[str]:
    """End an assembly that a merge made; those it was made of live again. Returns their ids."""
    if not whole.linked(MERGED_FROM):
        hint = "`octavo merge-log` lists those that were"
        raise BadInput(f"{whole.id} was not formed by a merge", hint=hint)

    def changes(view: DbView) -> list[Memory]:
        back = [tombstone(must_live(view.get(whole.id), whole.id), actor)]
        for id_ in whole.linked(MERGED_FROM):
            now, history = view.get(id_), [m for _, m in spine.state.history(id_) if not m.gone]
            if now and now.gone and history and history[-1].text:  # without a text it was erased
                kept = {m.id for m in live_members(view, members_of(history[-1]))}
                links = (
                    link for link in history[-1].links if link.name != assembling.PART or link.to in kept
                )
                back.append(replace(history[-1], rev=now.rev + 1, links=tuple(links)))
        return back

    return [m.id for m in commit(spine, changes, f"unmerge {whole.id}", actor, whole.scope)[1:]]


def finish(spine: Spine, actor: str, whole: Memory) -> list[str]:
    """End the live sources of a merge that was begun elsewhere and not finished; returns their ids."""

    def changes(view: DbView) -> list[Memory]:
        named = [view.get(id_) for id_ in whole.linked(MERGED_FROM) if id_ != whole.id]
        sources = [m for m in named if m and (m.kind, m.scope, m.gone) == (KIND, whole.scope, False)]
        return [_ended(m, whole.id, actor) for m in sources]

    return [m.id for m in commit(spine, changes, f"finish merge {whole.id}", actor)]


def commit(
    spine: Spine, changes: Callable[[DbView], list[C]], cause: str, actor: str, scope: str | None = None
) -> list[C]:
    """Commit the changes that are to be made to the newest version, if any; returns them."""
    made: list[C] = []

    def act(pending: Pending, view: DbView) -> None:
        made[:] = changes(view)
        pending.extend(made)

    spine.commit(act, cause=cause, actor=actor, scope=scope)
    return made


def rarity(units: Units) -> Rarity:
    """How telling a phrase is in this account: what its rarest term says."""
    scopes, rows = units.scope_codes(None), units.manifest.rows

    @cache
    def telling(phrase: str) -> float:
        codes = [code_of(term) for run in runs(phrase) for term in terms_of_run(run)]
        if not codes or not rows:
            return 1.0
        counts = frequencies.containing(units, np.array(codes, dtype=np.uint32), scopes, rows)
        return max(idf(rows, int(count), _RECIPE) for count in counts)

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
