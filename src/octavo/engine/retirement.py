"""Retirement: routine originals of a verified core go to the archive, by policy only, and come back."""

from __future__ import annotations

from msgspec.structs import replace

from octavo.domain import compression, cores
from octavo.domain.filters import Filter
from octavo.domain.memory import STATE, Change, Memory, Proposal
from octavo.domain.review import RETIRE, RETIRED
from octavo.domain.rules import counts_as_episode, tombstone
from octavo.engine.spine import Spine
from octavo.storage import codec
from octavo.storage.state_view import DbView

LOST = "forgotten_sources"
_ALWAYS, _SHARE = 50, 0.1


def retire(spine: Spine) -> list[str]:
    """Move routine originals of verified cores to the archive, if the policy says so; returns their ids.

    More than a tenth of the live memories (and more than fifty) do not go without a person's yes.
    """
    if not spine.policy.compression.retire:
        return []
    view = spine.head()
    doomed = {core.id: _routine(view, core, spine) for core in _verified(view)}
    total = sum(map(len, doomed.values()))
    what = "routine originals of {} would leave the live memory"
    return [id_ for core, some in doomed.items() for id_ in _let_go(spine, core, some, total, what)]


def age(spine: Spine, rule: str, episodes: list[Memory]) -> list[str]:
    """Move episodes past their limit to the archive under a rule's name; returns the ids that went.

    As above, many at once wait for a person; asked once, the answer is waited for.
    """
    what = "episodes are past the limit of {}"
    return _let_go(spine, f"retention_{rule}", episodes, len(episodes), what)


def _let_go(spine: Spine, name: str, episodes: list[Memory], total: int, what: str) -> list[str]:
    """Write episodes where people can read them, then end them, or ask a person, once for each name."""
    if not episodes:
        return []
    live = sum(count for *_, count in spine.head().tallies())
    asked = f"{len(episodes)} {what.format(name)}" if total > max(_ALWAYS, _SHARE * live) else None
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


def _verified(view: DbView) -> list[Memory]:
    """The cores whose sources are all accounted for, but those a person was asked about."""
    asked = {p.memory.id for p in view.proposals() if p.action == "retire"}
    return [
        core
        for core in view.memories(Filter(kinds=("core",)))
        if core.id not in asked
        and not view.was_declined("retire", core.id)
        and not core.data.get(LOST)
        and cores.is_intact(cores.read(cores.Core, core.data))
    ]


def revived(spine: Spine, view: DbView, core: Memory, actor: str) -> list[Memory]:
    """Originals that were retired for a core, live again."""
    alive: list[Memory] = []
    for id_ in core.linked("part"):
        now = view.get(id_)
        if now is not None and now.gone and now.data.get(RETIRED) == core.id:
            before = [m for _, m in spine.state.history(id_) if not m.gone][-1]
            alive.append(replace(before, rev=now.rev + 1))
    return alive


def _routine(view: DbView, core: Memory, spine: Spine) -> list[Memory]:
    """The originals of a core that its policy lets go."""
    content = cores.read(cores.Core, core.data)
    originals = []
    for session in content.source_sessions:
        there = view.memories(Filter(kinds=("episode",), sandbox=session))
        episodes = [memory for memory in there if counts_as_episode(memory)]
        allowed = set(compression.retirable(episodes, spine.policy.compression))
        originals += [m for m in episodes if m.id in allowed.intersection(content.source_episodes)]
    return originals
