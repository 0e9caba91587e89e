"""Merging: two assemblies that are nearly the same become one, in one commit that can be taken back."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from msgspec.structs import replace

from octavo.domain import assembling
from octavo.domain.assembling import LEAST, MERGED_FROM, formed, may_belong, members_of
from octavo.domain.memory import Memory, Proposal, is_human
from octavo.domain.rules import tombstone
from octavo.domain.state import Pending
from octavo.engine.assemble import checked, live, rarity
from octavo.engine.composing import Composing
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine
from octavo.errors import BadInput, HumanOnly, NotFound
from octavo.libraries import np
from octavo.storage.state_view import DbView

_log = logging.getLogger("octavo.merging")
_BLOCK = 1_024


def merge(spine: Spine, indexing: Indexing, actor: str, first: Memory, second: Memory) -> Memory:
    """One assembly in place of two, in one commit."""
    if first.id == second.id:
        raise BadInput(f"{first.id} cannot be merged with itself", hint="name two assemblies")
    if first.scope != second.scope:
        raise BadInput(f"{first.id} and {second.id} lie in two scopes, which stay apart")
    if not is_human(actor) and (first.approved or second.approved):
        raise HumanOnly(f"{actor} tried to merge an assembly that a person made", hint="ask that person")
    made: list[Memory] = []

    id_ = f"asm_{spine.new_id()}"

    def act(pending: Pending, view: DbView) -> None:
        made[:] = _merged(spine, view, indexing, id_, (first.id, second.id), None)
        pending.extend(made)

    spine.commit(act, cause=f"merge {id_}", actor=actor, scope=first.scope)
    return made[0]


def merge_alike(spine: Spine, indexing: Indexing) -> list[str]:
    """Merge assemblies that are nearly the same, best first, as the policy says; returns those made."""
    policy, composing = spine.policy.assemblies, indexing.composing
    if composing is None or policy.merging == "off" or policy.mode == "off" or spine.read_only:
        return []
    done: list[str] = []
    asks = "propose merge" if policy.merging == "propose" else "merge"
    for cosine, scope, *pair in _alike(spine, composing):
        id_ = f"asm_{spine.new_id()}"
        act = partial(_merge_or_ask, spine, indexing, id_, pair, cosine)
        try:
            version = spine.commit(act, cause=f"{asks} {id_}", actor="system", scope=scope)
            done += [id_] if version and asks == "merge" else []
        except (BadInput, NotFound) as error:  # one of them changed meanwhile
            _log.info("merge left out reason=%s", type(error).__name__)
    if done:
        indexing.follow_composites()
    return done


def _merge_or_ask(
    spine: Spine,
    indexing: Indexing,
    id_: str,
    pair: Sequence[str],
    cosine: float,
    pending: Pending,
    view: DbView,
) -> None:
    merging = spine.policy.assemblies.merging
    if merging == "auto" and any(live(view, one).approved for one in pair):
        return  # what a person put together is not taken apart by itself
    changes = _merged(spine, view, indexing, id_, pair, cosine)
    pending.extend(changes if merging == "auto" else _proposed(spine, view, changes[0], pair))


def unmerge(spine: Spine, actor: str, id_: str) -> list[str]:
    """End an assembly that a merge made; those it was made of live again. Returns their ids."""
    revived: list[str] = []

    def act(pending: Pending, view: DbView) -> None:
        whole = live(view, id_)
        sources = whole.linked(MERGED_FROM)
        if not sources:
            raise BadInput(
                f"{id_} was not formed by a merge", hint="`octavo merge-log` lists those that were"
            )
        changes = [tombstone(whole, actor)]
        for source in sources:
            now = view.get(source)
            before = [m for _, m in spine.state.history(source) if not m.gone]
            if now is not None and now.gone and before and before[-1].text:
                known = view.many(members_of(before[-1]))
                links = tuple(
                    link
                    for link in before[-1].links
                    if link.name != assembling.PART or may_belong(known.get(link.to, (0, None))[1])
                )
                changes.append(replace(before[-1], rev=now.rev + 1, links=links))
        revived[:] = [m.id for m in changes[1:]]
        pending.extend(changes)

    scope = live(spine.head(), id_).scope
    spine.commit(act, cause=f"unmerge {id_}", actor=actor, scope=scope)
    return revived


def finish(spine: Spine, actor: str, id_: str) -> list[str]:
    """End the live sources of a merge that was begun elsewhere and not finished; returns their ids."""
    ended: list[str] = []

    def act(pending: Pending, view: DbView) -> None:
        whole = view.get(id_)
        sources = whole.linked(MERGED_FROM) if whole and not whole.gone else ()
        live_ones = [m for source in sources if (m := view.get(source)) and not m.gone and m.id != id_]
        ended[:] = [m.id for m in live_ones]
        pending.extend(replace(tombstone(m, actor), data={assembling.MERGED_INTO: id_}) for m in live_ones)

    spine.commit(act, cause=f"finish merge {id_}", actor=actor)
    return ended


def _merged(
    spine: Spine, view: DbView, indexing: Indexing, id_: str, pair: Sequence[str], cosine: float | None
) -> list[Memory]:
    policy = spine.policy.assemblies
    first, second = (live(view, id_) for id_ in pair)
    ids = tuple(dict.fromkeys((*members_of(first), *members_of(second))))
    if len(ids) > policy.max_members:
        raise BadInput(
            f"{first.id} and {second.id} have {len(ids)} members, {policy.max_members} are allowed"
        )
    known = view.many(ids)
    members = [m for id_ in ids if (m := known.get(id_, (0, None))[1]) is not None and may_belong(m)]
    if len(members) < LEAST:
        raise BadInput(f"{first.id} and {second.id} have no two live members")
    threshold = None if cosine is None else policy.merge_likeness  # who merges by hand needs none
    if cosine is None and indexing.composing is not None:
        held = indexing.composing.held()
        places = [held.places.get(id_) for id_ in pair]
        if None not in places:
            cosine = float(held.floats[places[0]] @ held.floats[places[1]])
    came_by = formed("merge", similarity=cosine, threshold=threshold)
    telling = rarity(indexing.units_now())
    whole, *ended = assembling.merged(first, second, members, came_by, id_, telling)
    return [checked(spine, whole), *ended]


def _proposed(spine: Spine, view: DbView, whole: Memory, pair: Sequence[str]) -> list[Proposal]:
    asked = [p.memory for p in view.proposals() if p.action == "merge"]
    if any(set(pair) & set(memory.linked(MERGED_FROM)) for memory in asked):
        return []
    proposal = Proposal(
        id=spine.new_id(),
        action="merge",
        memory=whole,
        reason=f"the assemblies {pair[0]} and {pair[1]} are nearly the same",
        at=spine.now(),
    )
    return [proposal]


def _alike(spine: Spine, composing: Composing) -> list[tuple[float, str, str, str]]:
    """Pairs of fresh assemblies of one scope, best first, each assembly once, as many as one pass merges."""
    policy, held = spine.policy.assemblies, composing.held()
    scopes: dict[str, list[int]] = {}
    for place, row in enumerate(held.manifest.rows):
        if row.used >= LEAST:
            scopes.setdefault(row.scope, []).append(place)
    pairs: list[tuple[float, str, str, str]] = []
    for scope, places in scopes.items():
        own = held.floats[places]
        for start in range(0, len(places), _BLOCK):
            cosines = own[start : start + _BLOCK] @ own[start:].T
            ones, others = np.nonzero(np.triu(cosines >= policy.merge_likeness, k=1))
            for one, other in zip(ones.tolist(), others.tolist(), strict=True):
                first, second = (held.manifest.rows[places[start + n]] for n in (one, other))
                cosine = float(cosines[one, other])
                # What grows together stays about one thing: members are as alike as those that join.
                mean = cosine * first.length * second.length / (first.used * second.used)
                if first.members + second.members <= policy.max_members and mean >= policy.likeness:
                    pairs.append((cosine, scope, first.id, second.id))
    taken: set[str] = set()
    best = []
    for pair in sorted(pairs, key=lambda p: (-p[0], *p[2:])):
        if not taken.intersection(pair[2:]):
            best.append(pair)
            taken.update(pair[2:])
    return best[: policy.merges_per_pass]
