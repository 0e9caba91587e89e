"""Assembling: memories that are alike are grouped beside the conversation, and groups that are alike merge.

It is never part of a commit that somebody waits for: a pass looks at what got its vectors since the last one
and commits what it found, all or nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from typing import Any

from msgspec.structs import replace

from octavo.domain import assembling, gate
from octavo.domain.assembling import KIND, LEAST, MERGED_FROM, PART, begun, grown, live_members, members_of
from octavo.domain.filters import Filter
from octavo.domain.memory import Link, Memory, Proposal, is_human
from octavo.domain.ranking import Recipe, idf
from octavo.domain.rules import tombstone
from octavo.domain.text import runs, terms_of_run
from octavo.engine.composing import Composing
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.errors import BadInput, HumanOnly, NotFound
from octavo.libraries import Array, np
from octavo.storage import frequencies
from octavo.storage.batches import code_of
from octavo.storage.composites import Composites
from octavo.storage.rows import Units
from octavo.storage.state_view import DbView

GATHERED = 64  # passages that wait before a pass makes a version of its own in the background
_PASS = 2_048  # passages a pass looks at,
_CHANGES = 512  # and assemblies it may change
_NEAR, _BLOCK = 8, 1_024
_FEW, _COMMON = 8, 1 / 3  # what more passages, and a larger share of them, have tells nothing
_RECIPE = Recipe()
Pair = tuple[str, str]


class _Pass:
    """One look at memories that are new: whose groups they join, and with whom they begin one."""

    def __init__(self, spine: Spine, composing: Composing, units: Units) -> None:
        self.policy, self.telling = spine.policy.assemblies, rarity(units)
        self.changed: dict[str, Memory] = {}  # the assemblies that grow or are new, with all their members
        self._view, self._new_id, self._composing = spine.head(), spine.new_id, composing
        self._units, self._rows = units, units.column("rows")
        self._free = self.policy.max_assemblies - self._view.count(KIND)
        self._groups: dict[str, list[Memory]] = {}

    def look(self, first: int, stop: int, must_stop: Callable[[], bool]) -> int:
        """Group the memories of some rows; returns the row behind the last one looked at."""
        rows: dict[str, int] = {}
        for row in range(first, stop):
            rows.setdefault(self._units.memory_of(self._rows[row]), row)
        memories = live_members(self._view, rows)
        vectors = self._composing.vectors_of(memories)
        for memory in memories:
            if len(self.changed) >= _CHANGES or must_stop():
                return rows[memory.id]
            if memory.id in vectors and not self._groups_of(memory.id):
                self._place(memory, self._near(memory, vectors[memory.id]))
        return stop

    def _place(self, memory: Memory, near: Sequence[tuple[Memory, float]]) -> None:
        """Let a memory join the groups of those it is like if it speaks of their topics, or begin one.

        The topic holds a group together: by likeness alone a few of them swallow whatever is said.
        """
        rules = self.policy
        for whole in {whole.id: whole for other, _ in near for whole in self._groups_of(other.id)}.values():
            has_room = len(members_of(whole)) < rules.max_members and whole.scope == memory.scope
            is_able = has_room and len(self._groups_of(memory.id)) < rules.max_per_memory
            if is_able and assembling.mentions(memory, whole.data.get("topics", ())):
                self._join(whole, memory)
        if self._groups_of(memory.id) or self._free <= 0:
            return
        for other, likeness in near:
            is_able = len(self._groups_of(other.id)) < rules.max_per_memory
            if is_able and (topics := assembling.topics_of((other, memory), self.telling)):
                formed = {"threshold": rules.likeness, "similarity": likeness}
                id_, self._free = f"asm_{self._new_id()}", self._free - 1
                new = begun(id_, "likeness", memory, topics, embedder=self._composing.name, **formed)
                self._join(self._join(new, other), memory)
                return

    def _near(self, memory: Memory, vector: Array) -> list[tuple[Memory, float]]:
        """The memories of its scope that are nearest to one and like it, with how alike they are."""
        ids = self._composing.nearest(memory, vector, _NEAR)
        near = live_members(self._view, ids)
        vectors = self._composing.vectors_of(near)
        alike = [(other, float(vectors[other.id] @ vector)) for other in near if other.id in vectors]
        return [one for one in alike if one[1] >= self.policy.likeness]

    def _groups_of(self, id_: str) -> list[Memory]:
        """The assemblies that a memory belongs to, as they are by now."""
        if id_ not in self._groups:
            wholes = [whole for whole, *_ in self._view.wholes_of([id_], (KIND,))]
            self._groups[id_] = [memory for _, memory in self._view.many(wholes).values()]
        return [self.changed.get(whole.id, whole) for whole in self._groups[id_]]

    def _join(self, whole: Memory, memory: Memory) -> Memory:
        joined = replace(whole, links=(*whole.links, Link(name=PART, to=memory.id)))
        self._groups[memory.id].append(joined)
        self.changed[whole.id] = joined
        return joined


def assemble(
    spine: Spine, indexing: Indexing, least: int = 1, must_stop: Callable[[], bool] = lambda: False
) -> list[str]:
    """Group what got its vectors since the last time, if that is enough; returns the assemblies changed."""
    changed: dict[str, None] = {}
    if indexing.composing is None or spine.read_only or spine.policy.assemblies.mode == "off":
        return []
    indexing.compose()
    first = indexing.composing.assembled()
    while not must_stop():
        units = indexing.units_now()
        vectors = indexing.embedded().up_to(units.manifest.rows)
        if vectors.manifest.rows - first < least:
            break
        composing = indexing.composing  # of the index as it is now: another may have taken its place
        look, least = _Pass(spine, composing, units), 1
        first = look.look(first, min(first + _PASS, vectors.manifest.rows), must_stop)
        changes = partial(_changes, spine, look)
        cause = f"assemble {units.manifest.watermark.version}"
        if new := spine.change(changes, cause=cause, actor="system"):
            changed |= dict.fromkeys(m.id for m in new)
            indexing.add_words()
            indexing.compose()
        composing.note(assembled=first)
    return list(changed)


def _changes(spine: Spine, look: _Pass, view: DbView) -> list[Memory]:
    """The assemblies as a pass found them; what changed meanwhile is left as it is."""
    changes, old = list[Memory](), view.many(look.changed)
    every = {id_ for whole in look.changed.values() for id_ in members_of(whole)}
    grouped = {part for *_, part in view.wholes_of(every, (KIND,))}
    for id_, whole in look.changed.items():
        known = old[id_][1] if id_ in old else None
        has = members_of(known) if known else members_of(whole)[:1]
        # Who joins was in no group yet: another pass may have looked at the same.
        new = [one for one in members_of(whole) if one not in has and one not in grouped]
        members = live_members(view, (*has, *new))
        if live_members(view, new) and len(members) >= LEAST and not (known and known.gone):
            changes.append(checked(spine, grown(known or replace(whole, links=()), members, look.telling)))
    return changes


def by_hand(
    spine: Spine, indexing: Indexing, actor: str, named: Mapping[str, Memory | None], **fields: Any
) -> Memory:
    """An assembly that somebody puts together; a person's own is not changed by an agent alone."""
    for id_, member in named.items():
        if member is None:
            raise NotFound(f"there is no memory {id_!r} to group")
        if not assembling.may_belong(member):
            raise BadInput(f"{id_} cannot be a member", hint="group episodes of conversations, and facts")
    new = f"asm_{spine.new_id()}"
    whole = _whole(spine, indexing, [m for m in named.values() if m], new, "hand", **fields)
    memory = checked(spine, replace(whole, actor=actor, approved=actor if is_human(actor) else None))
    return spine.change(lambda _: [memory], cause=f"assemble {new}", actor=actor, scope=memory.scope)[0]


def _whole(
    spine: Spine, indexing: Indexing, members: list[Memory], new: str, by: str, **fields: Any
) -> Memory:
    """A new assembly of members of one scope, neither too few nor too many, and how it was `formed`."""
    most, formed = spine.policy.assemblies.max_members, fields.pop("formed", {})
    if not LEAST <= len(members) <= most:
        told = f"{len(members)} memories make no assembly, {LEAST} to {most} are allowed"
        raise BadInput(told, hint="name fewer or more, each once")
    if other := next((m for m in members if m.scope != members[0].scope), None):
        raise BadInput(f"{members[0].id} and {other.id} lie in two scopes", hint="group one scope's")
    whole = replace(begun(new, by, members[0], **formed), **fields)
    return grown(whole, members, rarity(indexing.units_now()))


def end_small(spine: Spine) -> list[str]:
    """End assemblies that have fewer than two live members left; returns their ids."""

    def changes(view: DbView) -> list[Memory]:
        whole = view.memories(Filter(kinds=(KIND,)))
        live = {m.id for m in live_members(view, {id_ for m in whole for id_ in members_of(m)})}
        return [tombstone(m, "system") for m in whole if len(live.intersection(members_of(m))) < LEAST]

    has_any = spine.head().count(KIND)
    return [m.id for m in spine.change(changes, cause="end assemblies", actor="system")] if has_any else []


def merge(spine: Spine, indexing: Indexing, actor: str, first: Memory, second: Memory) -> Memory:
    """One assembly in place of two, in one commit; who merges by hand needs no threshold."""
    if first.id == second.id:
        raise BadInput(f"{first.id} cannot be merged with itself", hint="name two assemblies")
    _must_be_allowed(actor, "merge", first, second)
    new = f"asm_{spine.new_id()}"
    changes = partial(_merged, spine, indexing, (first.id, second.id), new, by=actor)
    return spine.change(changes, cause=f"merge {new}", actor=actor, scope=first.scope)[0]


def merge_alike(spine: Spine, indexing: Indexing) -> list[str]:
    """Merge assemblies that are nearly the same, best first, as the policy says; returns those made."""
    policy, composing, done = spine.policy.assemblies, indexing.composing, list[str]()
    is_asked = policy.merging == "propose"
    if composing is None or policy.merging == "off" or policy.mode == "off" or spine.read_only:
        return []

    def changes(pair: Pair, new: str, view: DbView) -> list[Any]:
        whole, *ended = _merged(spine, indexing, pair, new, view, policy.merge_likeness)
        if not is_asked:  # what a person put together is not taken apart by itself
            return [] if whole.approved else [whole, *ended]
        if any(p.action == "merge" and {*pair} & {*p.memory.linked(MERGED_FROM)} for p in view.proposals()):
            return []
        why = f"the assemblies {pair[0]} and {pair[1]} are nearly the same"
        return [Proposal(id=spine.new_id(), action="merge", memory=whole, reason=why, at=spine.now())]

    for scope, pair in _alike(spine, composing.held()):
        new = f"asm_{spine.new_id()}"
        cause = f"{'propose merge' if is_asked else 'merge'} {new}"
        with suppress(BadInput, NotFound):  # one of them changed meanwhile
            made = spine.change(partial(changes, pair, new), cause=cause, actor="system", scope=scope)
            done += [new] if made and not is_asked else []
    if done:
        indexing.add_words()
        indexing.compose()
    return done


def _alike(spine: Spine, held: Composites) -> list[tuple[str, Pair]]:
    """Pairs of assemblies of one scope, best first, each assembly once, as many as one pass merges."""
    policy, able = spine.policy.assemblies, list[tuple[float, str, Pair]]()
    rows = sorted((row for row in held.rows if row.used >= LEAST), key=lambda row: row.scope)
    own = held.floats[[held.places[row.id] for row in rows]]
    for start in range(0, len(rows), _BLOCK):
        cosines = own[start : start + _BLOCK] @ own[start:].T
        for one, other in np.argwhere(np.triu(cosines >= policy.merge_likeness, k=1)).tolist():
            first, second = rows[start + one], rows[start + other]
            if first.scope == second.scope and first.members + second.members <= policy.max_members:
                able.append((float(cosines[one, other]), first.scope, (first.id, second.id)))
    taken, best = set[str](), list[tuple[str, Pair]]()
    for _, scope, pair in sorted(able, key=lambda one: (-one[0], one[1:])):
        if taken.isdisjoint(pair) and len(best) < policy.merges_per_pass:
            best.append((scope, pair))
            taken.update(pair)
    return best


def _merged(
    spine: Spine,
    indexing: Indexing,
    pair: Pair,
    new: str,
    view: DbView,
    threshold: float | None = None,
    by: str = "system",
) -> list[Memory]:
    """What a merge changes: the new assembly, and the ends of the two, which say into what."""
    both = [must_live(view.get(id_), id_) for id_ in pair]
    members = live_members(view, dict.fromkeys(id_ for m in both for id_ in members_of(m)))
    named = next((m for m in both if m.approved), None)
    vectors = [*indexing.composing.vectors_of(both).values()] if indexing.composing else []
    similarity = float(np.dot(*vectors)) if len(vectors) == len(pair) else None
    formed = {"similarity": similarity, "threshold": threshold}
    kept = {"text": named.text, "approved": named.approved} if named else {}
    if is_human(by):
        kept["approved"] = by
    tags = tuple(dict.fromkeys(tag for m in both for tag in m.tags))
    links = tuple(Link(name=MERGED_FROM, to=id_) for id_ in pair)
    whole = _whole(spine, indexing, members, new, "merge", formed=formed, tags=tags, links=links, **kept)
    return [checked(spine, whole), *(_ended(m, new, "system") for m in both)]


def _must_be_allowed(actor: str, what: str, *some: Memory) -> None:
    """Raise HumanOnly where somebody else would take apart what a person put together."""
    if not is_human(actor) and any(memory.approved for memory in some):
        raise HumanOnly(f"{actor} tried to {what} an assembly that a person made", hint="ask that person")


def _ended(source: Memory, into: str, actor: str) -> Memory:
    return replace(tombstone(source, actor), data={assembling.MERGED_INTO: into})


def unmerge(spine: Spine, actor: str, whole: Memory) -> list[str]:
    """End an assembly that a merge made; those it was made of live again. Returns their ids."""
    if not whole.linked(MERGED_FROM):
        raise BadInput(f"{whole.id} was not formed by a merge", hint="`octavo merge-log` lists those")
    _must_be_allowed(actor, "unmerge", whole)

    def changes(view: DbView) -> list[Memory]:
        back = [tombstone(must_live(view.get(whole.id), whole.id), actor)]
        for id_ in whole.linked(MERGED_FROM):
            now, history = view.get(id_), [m for _, m in spine.state.history(id_) if not m.gone]
            if now and now.gone and history and history[-1].text:  # without a text it was erased
                kept = {m.id for m in live_members(view, members_of(history[-1]))}
                links = (link for link in history[-1].links if link.name != PART or link.to in kept)
                back.append(replace(history[-1], rev=now.rev + 1, links=tuple(links)))
        return back

    cause = f"unmerge {whole.id}"
    return [m.id for m in spine.change(changes, cause=cause, actor=actor, scope=whole.scope)[1:]]


def finish(spine: Spine, actor: str, whole: Memory) -> list[str]:
    """End the live sources of a merge that was begun elsewhere and not finished; returns their ids."""

    def changes(view: DbView) -> list[Memory]:
        named = [view.get(id_) for id_ in whole.linked(MERGED_FROM) if id_ != whole.id]
        sources = [m for m in named if m and (m.kind, m.scope, m.gone) == (KIND, whole.scope, False)]
        return [_ended(m, whole.id, actor) for m in sources]

    return [m.id for m in spine.change(changes, cause=f"finish merge {whole.id}", actor=actor)]


def rarity(units: Units) -> assembling.Rarity:
    """How telling a phrase is in this account: what its rarest term says; nothing if all have it."""
    scopes, rows = units.scope_codes(None), units.manifest.rows

    @cache
    def telling(phrase: str) -> float:
        codes = [code_of(term) for run in runs(phrase) for term in terms_of_run(run)]
        if not codes or not rows:
            return 1.0
        count = int(min(frequencies.containing(units, np.array(codes, dtype=np.uint32), scopes, rows)))
        return idf(rows, count, _RECIPE) if count <= max(_FEW, rows * _COMMON) else 0.0

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
