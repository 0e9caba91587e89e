"""Retirement: routine originals of a verified core go to the archive, by policy only, and come back."""

from __future__ import annotations

from msgspec.structs import replace

from octavo.domain import compression, cores
from octavo.domain.filters import Filter
from octavo.domain.memory import STATE, Change, Memory, Proposal
from octavo.domain.review import RETIRE, RETIRED
from octavo.domain.rules import counts_as_episode, tombstone
from octavo.domain.state import Pending
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
    doomed = {core: originals for core in _verified(view) if (originals := _routine(view, core, spine))}
    total, retired = sum(map(len, doomed.values())), list[str]()
    for core, episodes in doomed.items():
        reason = f"{len(episodes)} routine originals of {core} would leave the live memory"
        retired += _let_go(spine, core, episodes, reason if _is_much(view, total) else None)
    return retired


def age(spine: Spine, rule: str, episodes: list[Memory]) -> list[str]:
    """Move episodes past their limit to the archive under a rule's name; returns the ids that went.

    As above, many at once wait for a person; asked once, the answer is waited for.
    """
    name, total = f"retention_{rule}", len(episodes)
    reason = f"{total} episodes are past the limit of {name}" if _is_much(spine.head(), total) else None
    return _let_go(spine, name, episodes, reason) if episodes else []


def _is_much(view: DbView, total: int) -> bool:
    return total > max(_ALWAYS, _SHARE * sum(count for *_, count in view.tallies()))


def _let_go(spine: Spine, name: str, episodes: list[Memory], asked: str | None) -> list[str]:
    """Write episodes where people can read them, then end them, or ask a person, once for each name."""
    key = f"archive/{name}.jsonl"
    before, ids = spine.store.read(key) or b"", [episode.id for episode in episodes]
    lines = [codec.encode_json(m) + b"\n" for m in episodes]
    spine.store.replace(key, before + b"".join(line for line in lines if line not in before))

    def act(pending: Pending, view: DbView) -> None:
        if asked is None:
            live = [m for id_ in ids if (m := view.get(id_)) and not m.gone]
            pending.extend(replace(tombstone(m, "system"), data={RETIRED: name}) for m in live)
        elif not any(p.action == "retire" and p.memory.id == name for p in view.proposals()):
            at, core = spine.now(), view.get(name)
            told = core or Memory(id=name, kind="register", category=STATE, at=at)
            told = replace(told, text="", data={RETIRE: ids}, links=())
            base = core.rev if core else 0
            pending.apply(
                Proposal(id=spine.new_id(), action="retire", memory=told, base_rev=base, reason=asked, at=at)
            )

    spine.commit(act, cause=f"{'retire' if asked is None else 'propose retirement'} {name}", actor="system")
    return [] if asked else ids


def _verified(view: DbView) -> list[str]:
    """The cores whose sources are all accounted for, but those a person was asked about."""
    asked = {p.memory.id for p in view.proposals() if p.action == "retire"}
    return [
        core.id
        for core in view.memories(Filter(kinds=("core",)))
        if core.id not in asked
        and not view.was_declined("retire", core.id)
        and not core.data.get(LOST)
        and cores.is_intact(cores.core_from_json(core.data))
    ]


def revived(spine: Spine, view: DbView, core: Memory, actor: str) -> list[Change]:
    """Originals that were retired for a core, live again."""
    alive: list[Change] = []
    for id_ in core.linked("part"):
        now = view.get(id_)
        if now is not None and now.gone and now.data.get(RETIRED) == core.id:
            before = [m for _, m in spine.state.history(id_) if not m.gone][-1]
            alive.append(replace(before, rev=now.rev + 1))
    return alive


def _routine(view: DbView, core: str, spine: Spine) -> list[Memory]:
    """The originals of a core that its policy lets go."""
    memory = view.get(core)
    if memory is None:
        return []
    content = cores.core_from_json(memory.data)
    originals = []
    for session in content.source_sessions:
        episodes = [
            m for m in view.memories(Filter(kinds=("episode",), sandbox=session)) if counts_as_episode(m)
        ]
        allowed = set(compression.retirable(episodes, spine.policy.compression)) & set(
            content.source_episodes
        )
        originals += [m for m in episodes if m.id in allowed]
    return originals
