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
    total = sum(map(len, doomed.values()))
    live = sum(count for *_, count in view.tallies())
    is_much = total > max(_ALWAYS, live * _SHARE)
    retired: list[str] = []
    for core, episodes in doomed.items():
        _archive(spine, core, episodes)
        ids = [episode.id for episode in episodes]
        if is_much:
            _propose(spine, core, ids)
        else:
            _commit(spine, core, ids)
            retired += ids
    return retired


def age(spine: Spine, rule: str, episodes: list[Memory]) -> list[str]:
    """Move episodes past their limit to the archive under a rule's name; returns the ids that went.

    As above, many at once wait for a person; asked once, the answer is waited for.
    """
    name = f"retention_{rule}"
    if not episodes:
        return []
    live = sum(count for *_, count in spine.head().tallies())
    ids = [episode.id for episode in episodes]
    if len(ids) > max(_ALWAYS, live * _SHARE):
        _ask(spine, name, ids)
        return []
    _archive(spine, name, episodes)
    _commit(spine, name, ids)
    return ids


def _ask(spine: Spine, name: str, ids: list[str]) -> None:
    def act(pending: Pending, view: DbView) -> None:
        if any(p.action == "retire" and p.memory.id == name for p in view.proposals()):
            return
        memory = Memory(id=name, kind="register", category=STATE, at=spine.now(), data={RETIRE: ids})
        proposal = Proposal(
            id=spine.new_id(),
            action="retire",
            memory=memory,
            reason=f"{len(ids)} episodes are past the limit of {name}",
            at=spine.now(),
        )
        pending.apply(proposal)

    spine.commit(act, cause=f"propose {name}", actor="system")


def _verified(view: DbView) -> list[str]:
    """The cores whose sources are all accounted for, but those a person was asked about."""
    asked = {p.memory.id for p in view.proposals() if p.action == "retire"}
    verified = []
    for core in view.memories(Filter(kinds=("core",))):
        if core.id in asked or view.was_declined("retire", core.id) or core.data.get(LOST):
            continue
        if cores.is_intact(cores.core_from_json(core.data)):
            verified.append(core.id)
    return verified


def _propose(spine: Spine, core: str, ids: list[str]) -> None:
    """Ask a person, once for each core."""

    def act(pending: Pending, view: DbView) -> None:
        memory = view.get(core)
        if memory is None or any(p.action == "retire" and p.memory.id == core for p in view.proposals()):
            return
        proposal = Proposal(
            id=spine.new_id(),
            action="retire",
            memory=replace(memory, text="", data={RETIRE: ids}, links=()),
            base_rev=memory.rev,
            reason=f"{len(ids)} routine originals of {core} would leave the live memory",
            by="system",
            at=spine.now(),
        )
        pending.apply(proposal)

    spine.commit(act, cause=f"propose retirement {core}", actor="system")


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


def _archive(spine: Spine, core: str, episodes: list[Memory]) -> None:
    """Write the originals where people can read them before they leave the live memory."""
    before = spine.store.read(f"archive/{core}.jsonl") or b""
    lines = [codec.encode_json(m) + b"\n" for m in episodes]
    spine.store.replace(f"archive/{core}.jsonl", before + b"".join(n for n in lines if n not in before))


def _commit(spine: Spine, core: str, ids: list[str]) -> None:
    def act(pending: Pending, view: DbView) -> None:
        live = [m for id_ in ids if (m := view.get(id_)) and not m.gone]
        pending.extend(replace(tombstone(m, "system"), data={RETIRED: core}) for m in live)

    spine.commit(act, cause=f"retire {core}", actor="system")
