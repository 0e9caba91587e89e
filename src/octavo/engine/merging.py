"""Merging: two assemblies that are nearly the same become one, in one commit that can be taken back."""

from __future__ import annotations

import logging
from functools import partial

from msgspec.structs import replace

from octavo.domain import assembling
from octavo.domain.assembling import LEAST, MERGED_FROM, PART, live_members, members_of
from octavo.domain.memory import Memory, Proposal, is_human
from octavo.domain.rules import tombstone
from octavo.domain.state import Pending
from octavo.engine.assemble import checked, must_live, rarity
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.errors import BadInput, HumanOnly, NotFound
from octavo.libraries import np
from octavo.storage.composites import Composites
from octavo.storage.state_view import DbView

_log = logging.getLogger("octavo.merging")
_BLOCK = 1_024

Pair = tuple[str, str]


def merge(spine: Spine, indexing: Indexing, actor: str, first: Memory, second: Memory) -> Memory:
    """One assembly in place of two, in one commit; who merges by hand needs no threshold."""
    if first.id == second.id:
        raise BadInput(f"{first.id} cannot be merged with itself", hint="name two assemblies")
    if first.scope != second.scope:
        raise BadInput(f"{first.id} and {second.id} lie in two scopes, which stay apart")
    if not is_human(actor) and (first.approved or second.approved):
        raise HumanOnly(f"{actor} tried to merge an assembly that a person made", hint="ask that person")
    pair, cosine = (first.id, second.id), None
    held = indexing.composing.held() if indexing.composing else None
    if held is not None and set(pair) <= held.places.keys():
        cosine = held.cosine(first.id, held.floats[held.places[second.id]])
    done, new = list[Memory](), f"asm_{spine.new_id()}"

    def act(pending: Pending, view: DbView) -> None:
        done[:] = _merged(spine, view, indexing, new, pair, similarity=cosine)
        pending.extend(done)

    spine.commit(act, cause=f"merge {new}", actor=actor, scope=first.scope)
    return done[0]


def merge_alike(spine: Spine, indexing: Indexing) -> list[str]:
    """Merge assemblies that are nearly the same, best first, as the policy says; returns those made."""
    policy, composing = spine.policy.assemblies, indexing.composing
    if composing is None or policy.merging == "off" or policy.mode == "off" or spine.read_only:
        return []
    asks, done = policy.merging == "propose", list[str]()

    def act(pair: Pair, cosine: float, new: str, pending: Pending, view: DbView) -> None:
        if not asks and any(_live(view, id_).approved for id_ in pair):
            return  # what a person put together is not taken apart by itself
        least = policy.merge_likeness
        changes = _merged(spine, view, indexing, new, pair, similarity=cosine, threshold=least)
        pending.extend(_proposed(spine, view, changes[0], pair) if asks else changes)

    for cosine, scope, pair in _alike(spine, composing.held()):
        new = f"asm_{spine.new_id()}"
        cause = f"{'propose merge' if asks else 'merge'} {new}"
        try:
            made = spine.commit(partial(act, pair, cosine, new), cause=cause, actor="system", scope=scope)
            done += [new] if made and not asks else []
        except (BadInput, NotFound) as error:  # one of them changed meanwhile
            _log.info("merge left out reason=%s", type(error).__name__)
    if done:
        indexing.follow_composites()
    return done


def unmerge(spine: Spine, actor: str, id_: str) -> list[str]:
    """End an assembly that a merge made; those it was made of live again. Returns their ids."""
    revived: list[Memory] = []

    def act(pending: Pending, view: DbView) -> None:
        whole = _live(view, id_)
        if not whole.linked(MERGED_FROM):
            hint = "`octavo merge-log` lists those that were"
            raise BadInput(f"{id_} was not formed by a merge", hint=hint)
        back = (_revived(spine, view, source) for source in whole.linked(MERGED_FROM))
        revived[:] = [memory for memory in back if memory]
        pending.extend([tombstone(whole, actor), *revived])

    spine.commit(act, cause=f"unmerge {id_}", actor=actor, scope=_live(spine.head(), id_).scope)
    return [m.id for m in revived]


def _revived(spine: Spine, view: DbView, id_: str) -> Memory | None:
    """An assembly that has ended as it last was, without members that are gone; None if it was erased."""
    now, history = view.get(id_), [m for _, m in spine.state.history(id_) if not m.gone]
    if now is None or not now.gone or not history or not history[-1].text:
        return None
    kept = {m.id for m in live_members(view, members_of(history[-1]))}
    links = tuple(link for link in history[-1].links if link.name != PART or link.to in kept)
    return replace(history[-1], rev=now.rev + 1, links=links)


def finish(spine: Spine, actor: str, id_: str) -> list[str]:
    """End the live sources of a merge that was begun elsewhere and not finished; returns their ids."""
    ended: list[Memory] = []

    def act(pending: Pending, view: DbView) -> None:
        sources = [m for source in _live(view, id_).linked(MERGED_FROM) if (m := view.get(source))]
        ended[:] = [assembling.ended_into(m, id_, actor) for m in sources if not m.gone and m.id != id_]
        pending.extend(ended)

    spine.commit(act, cause=f"finish merge {id_}", actor=actor)
    return [m.id for m in ended]


def _merged(
    spine: Spine, view: DbView, indexing: Indexing, new: str, pair: Pair, **formed: float | None
) -> list[Memory]:
    """What a merge changes: the new assembly, and the ends of the two."""
    first, second = (_live(view, id_) for id_ in pair)
    ids, most = dict.fromkeys((*members_of(first), *members_of(second))), spine.policy.assemblies.max_members
    if len(ids) > most:
        raise BadInput(f"{first.id} and {second.id} have {len(ids)} members, {most} are allowed")
    members = live_members(view, ids)
    if len(members) < LEAST:
        raise BadInput(f"{first.id} and {second.id} have no two live members")
    telling = rarity(indexing.units_now())
    whole, *ended = assembling.merged(first, second, members, new, telling, **formed)
    return [checked(spine, whole), *ended]


def _live(view: DbView, id_: str) -> Memory:
    return must_live(view.get(id_), id_)


def _proposed(spine: Spine, view: DbView, whole: Memory, pair: Pair) -> list[Proposal]:
    asked = [p.memory for p in view.proposals() if p.action == "merge"]
    if any(set(pair) & set(memory.linked(MERGED_FROM)) for memory in asked):
        return []
    reason = f"the assemblies {pair[0]} and {pair[1]} are nearly the same"
    return [Proposal(id=spine.new_id(), action="merge", memory=whole, reason=reason, at=spine.now())]


def _alike(spine: Spine, held: Composites) -> list[tuple[float, str, Pair]]:
    """Pairs of fresh assemblies of one scope, best first, each assembly once, as many as one pass merges."""
    policy = spine.policy.assemblies
    scopes: dict[str, list[int]] = {}
    for place, row in enumerate(held.manifest.rows):
        if row.used >= LEAST:
            scopes.setdefault(row.scope, []).append(place)
    able: list[tuple[float, str, Pair]] = []
    for scope, places in scopes.items():
        own = held.floats[places]
        for start in range(0, len(places), _BLOCK):
            cosines = own[start : start + _BLOCK] @ own[start:].T
            for one, other in np.argwhere(np.triu(cosines >= policy.merge_likeness, k=1)).tolist():
                first, second = (held.manifest.rows[places[start + n]] for n in (one, other))
                cosine = float(cosines[one, other])
                # What grows together stays about one thing: members are as alike as those that join.
                mean = cosine * first.length * second.length / (first.used * second.used)
                if first.members + second.members <= policy.max_members and mean >= policy.likeness:
                    able.append((-cosine, scope, (first.id, second.id)))
    taken: set[str] = set()
    best = []
    for cosine, scope, pair in sorted(able):
        if taken.isdisjoint(pair):
            best.append((-cosine, scope, pair))
            taken.update(pair)
    return best[: policy.merges_per_pass]
