"""Retirement, by policy only: what may go leaves the live memory for the archive, and comes back.

That is routine originals of a verified core, and episodes past their age, number or size.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta

from msgspec.structs import replace

from octavo.domain import compression, cores
from octavo.domain.filters import Filter
from octavo.domain.memory import STATE, Change, Memory, Proposal
from octavo.domain.policy import RetentionPolicy
from octavo.domain.review import RETIRE, RETIRED
from octavo.domain.rules import counts_as_episode, tombstone
from octavo.engine.spine import Spine
from octavo.storage import codec
from octavo.storage.state_view import DbView

LOST = "forgotten_sources"
_TALKS = "conversations"
_GROUPS = {None: _TALKS, "event": "events", "game_event": "events", "rlds": "rlds_episodes"}
_ALWAYS, _SHARE = 50, 0.1


def retire(spine: Spine) -> list[str]:
    """Move routine originals of verified cores to the archive, if the policy says so; returns their ids."""
    if not spine.policy.compression.retire:
        return []
    view, doomed = spine.head(), dict[str, list[Memory]]()
    asked = {proposal.memory.id for proposal in view.proposals() if proposal.action == "retire"}
    for core in view.memories(Filter(kinds=("core",))):
        content = cores.read(cores.Core, core.data)
        is_decided = core.id in asked or view.was_declined("retire", core.id)
        if is_decided or core.data.get(LOST) or not cores.is_intact(content):
            continue
        for session in content.source_sessions:
            there = view.memories(Filter(kinds=("episode",), sandbox=session))
            episodes = [memory for memory in there if counts_as_episode(memory)]
            routine = {*compression.retirable(episodes, spine.policy.compression)} & {
                *content.source_episodes
            }
            doomed.setdefault(core.id, []).extend(m for m in episodes if m.id in routine)
    total = sum(map(len, doomed.values()))
    return [id_ for core, some in doomed.items() for id_ in let_go(spine, core, some, total)]


def limits_of(policy: RetentionPolicy) -> dict[str, dict[str, float]]:
    """The limits of each group that a policy sets."""
    return {group: getattr(policy, group) for group in _GROUPS.values()}


def overdue(spine: Spine, episodes: Sequence[Memory], held: frozenset[str]) -> dict[str, list[Memory]]:
    """Episodes that a limit lets go, by group, the newest counted first; `held` are summarised by a core.

    A conversation goes whole or not at all, and only if a core holds all of it; a milestone never goes.
    """
    gone: dict[str, list[Memory]] = {}
    for group, limits in limits_of(spine.policy.retention).items():
        units, size = dict[str, list[Memory]](), 0
        gone[group] = []
        for memory in (memory for memory in episodes if _GROUPS.get(memory.category) == group):
            units.setdefault((group == _TALKS and memory.sandbox) or memory.id, []).append(memory)
        newest = sorted(units.values(), key=lambda some: max(m.at for m in some), reverse=True)
        for count, some in enumerate(newest, start=1):
            size += sum(len(memory.text.encode()) + len(str(memory.data)) for memory in some)
            days = (spine.now() - max(m.at for m in some)) / timedelta(days=1)
            reached = {"max_files": count, "max_age_days": days, "max_size_mb": size / 1_000_000}
            is_free = group != _TALKS or held.issuperset(memory.id for memory in some)
            if is_free and any(reached[name] > most for name, most in limits.items()):
                gone[group] += [] if any(map(compression.is_milestone, some)) else some
    return gone


def let_go(spine: Spine, name: str, episodes: list[Memory], total: int) -> list[str]:
    """Write episodes where people can read them, then end them under a name; returns the ids that went.

    If a `total` of more than fifty, and more than a tenth of the live memories, would go, a person is asked.
    """
    if not episodes:
        return []
    live = sum(count for *_, count in spine.head().tallies())
    asked = f"{len(episodes)} episodes would go: {name}" if total > max(_ALWAYS, _SHARE * live) else None
    key = f"archive/{name}.jsonl"
    before, ids = spine.store.read(key) or b"", [episode.id for episode in episodes]
    lines = [codec.encode_json(m) + b"\n" for m in episodes]
    spine.store.replace(key, before + b"".join(line for line in lines if line not in before))

    def changes(view: DbView) -> list[Change]:
        if asked is None:
            live = [m for id_ in ids if (m := view.live(id_))]
            return [replace(tombstone(m, "system"), data={RETIRED: name}) for m in live]
        if any(p.action == "retire" and p.memory.id == name for p in view.proposals()):
            return []
        at, core = spine.now(), view.get(name)
        told = core or Memory(id=name, kind="register", category=STATE, at=at)
        told, base = replace(told, text="", data={RETIRE: ids}, links=()), core.rev if core else 0
        new = spine.new_id()
        return [Proposal(id=new, action="retire", memory=told, base_rev=base, reason=asked, at=at)]

    spine.change(
        changes, cause=f"{'retire' if asked is None else 'propose retirement'} {name}", actor="system"
    )
    return [] if asked else ids


def revived(spine: Spine, view: DbView, core: Memory, actor: str) -> list[Memory]:
    """Originals that were retired for a core, live again."""
    alive: list[Memory] = []
    for id_ in core.linked("part"):
        now = view.get(id_)
        if now is not None and now.gone and now.data.get(RETIRED) == core.id:
            before = [m for _, m in spine.state.history(id_) if not m.gone][-1]
            alive.append(replace(before, rev=now.rev + 1))
    return alive
