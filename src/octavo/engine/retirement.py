"""Retirement: routine originals of a verified core go to the archive, by policy only, and come back."""

from __future__ import annotations

from dataclasses import replace

from octavo.domain import compression, cores
from octavo.domain.cores import Core
from octavo.domain.filters import Filter
from octavo.domain.memory import Change, Memory
from octavo.domain.rules import counts_as_episode, tombstone
from octavo.engine.spine import Plan, Spine
from octavo.storage import codec
from octavo.storage.state_view import DbView

RETIRED, LOST = "retired", "forgotten_sources"


def retire(spine: Spine) -> list[str]:
    """Move routine originals of verified cores to the archive, if the policy says so; returns their ids."""
    policy = spine.policy.compression
    if not policy.retire:
        return []
    retired: list[str] = []
    view = spine.head()
    for core in view.memories(Filter(kinds=("core",))):
        content = cores.core_from_json(core.data)
        if not cores.is_intact(content) or core.data.get(LOST):
            continue
        doomed = _routine(view, content, spine)
        if doomed:
            _archive(spine, core.id, doomed)
            _commit_retired(spine, core.id, [m.id for m in doomed])
            retired += [m.id for m in doomed]
    return retired


def revived(spine: Spine, view: DbView, core: Memory, actor: str) -> list[Change]:
    """Originals that were retired for a core, live again."""
    found: list[Change] = []
    for id_ in core.linked("part"):
        now = view.get(id_)
        if now is not None and now.gone and now.data.get(RETIRED) == core.id:
            before = [m for _, m in spine.state.history(id_) if not m.gone][-1]
            found.append(replace(before, rev=now.rev + 1))
    return found


def _routine(view: DbView, content: Core, spine: Spine) -> list[Memory]:
    """The originals of a core that its policy lets go."""
    found = []
    for session in content.source_sessions:
        episodes = [
            m for m in view.memories(Filter(kinds=("episode",), session=session)) if counts_as_episode(m)
        ]
        allowed = set(compression.retirable(episodes, spine.policy.compression)) & set(
            content.source_episodes
        )
        found += [m for m in episodes if m.id in allowed]
    return found


def _archive(spine: Spine, core: str, episodes: list[Memory]) -> None:
    """Write the originals where people can read them before they leave the live memory."""
    before = spine.store.read(f"archive/{core}.jsonl") or b""
    lines = [codec.encode_json(codec.plain(m)) + b"\n" for m in episodes]
    spine.store.replace(f"archive/{core}.jsonl", before + b"".join(n for n in lines if n not in before))


def _commit_retired(spine: Spine, core: str, ids: list[str]) -> None:
    def decide(view: DbView) -> Plan:
        live = [m for id_ in ids if (m := view.get(id_)) and not m.gone]
        changes = [replace(tombstone(m, "system"), data={RETIRED: core}) for m in live]
        return Plan(changes=changes, cause=f"retire {core}", actor="system")

    spine.commit(decide)
