"""Consolidation on documents alone: what the rules would do to a buffer, and the master state it leads to.

The same rules as a real consolidation, run on a master state in memory; saving runs them again, binding.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from octavo.domain import gate, rules
from octavo.domain.buffer import SetState, Wrote
from octavo.domain.episodes import SPELLING, iso, to_document
from octavo.domain.memory import SHARED, Merge
from octavo.domain.outcomes import Setting
from octavo.domain.policy import Policy
from octavo.domain.state import State, fold
from octavo.domain.verdicts import Verdict
from octavo.interfaces.documents.msp import session_buffer, stores
from octavo.interfaces.documents.msp.forms import (
    ConsolidatedData,
    MasterState,
    Semantic,
    buffer_named,
    master_named,
)
from octavo.interfaces.documents.msp.stores import (
    CORE,
    EPISODIC,
    GKS,
    PROFILE,
    SEMANTIC,
    SENSORY,
    STATES,
    Entry,
)


def rehearse(
    buffer: Mapping[str, Any], master: Mapping[str, Any], *, policy: Policy, actor: str, now: datetime
) -> ConsolidatedData:
    """What the gate and the rules let through of a buffer on top of a master state."""
    document = buffer_named(buffer)
    wanted = [_episode(value, document, now) for value in document.get("new_episodes", ())]
    wanted += [_with_id(entry) for entry in session_buffer.entries(document, at=now)]
    setting = Setting(
        policy=policy, actor=actor, at=now, new_id=_new_id, keyed=lambda text: text, scope=SHARED
    )
    stopped = {e.memory.id: gate.check_text(e.memory, policy) for e in wanted}
    ready = [e for e in wanted if not isinstance(stopped[e.memory.id], gate.Stop)]
    states = document.get("state_deltas") or {}
    changes = [SetState(id=_new_id(), name=name, data=data, at=now) for name, data in states.items()]
    state, verdicts = rules.consolidate(
        _state_of(master, now), [*(Wrote(memory=e.memory, alias=e.alias) for e in ready), *changes], setting
    )
    settled = list(zip(ready, verdicts, strict=False))
    refused = [
        _refused(e, s.check, s.detail) for e in wanted if isinstance(s := stopped[e.memory.id], gate.Stop)
    ]
    refused += [_refused(e, v.check or "approval", v.detail) for e, v in settled if not v]
    return _consolidated(settled, state, copy.deepcopy(dict(states)), refused)


def merge(master: Mapping[str, Any], consolidated: ConsolidatedData, *, now: datetime) -> MasterState:
    """The next master state, one version on."""
    document = master_named(master)
    version = int(document.get("version", 0))
    document |= {
        EPISODIC: [*document.get(EPISODIC, []), *copy.deepcopy(consolidated.episodes)],
        SEMANTIC: Semantic(document.get(SEMANTIC, {})) + consolidated.knowledge,
        SENSORY: [*document.get(SENSORY, []), *copy.deepcopy(consolidated.sensory)],
        CORE: update_core(document.get(CORE, {}), consolidated.core_updates),
        PROFILE: {**document.get(PROFILE, {}), **copy.deepcopy(consolidated.profile_updates)},
        GKS: _merge_gks(document.get(GKS, {}), copy.deepcopy(consolidated.gks_updates)),
        STATES: {**document.get(STATES, {}), **copy.deepcopy(consolidated.state_changes)},
        "version": version + 1,
        "timestamp": iso(now),
    }
    base = getattr(master, "base", None)
    return MasterState.on(version if base is None else base, document)


def update_core(core: Mapping[str, Any], updates: Mapping[str, Any]) -> dict[str, Any]:
    """The core with updates laid over it: named values replaced, lists added to, everything else kept."""
    updated = copy.deepcopy(dict(core))
    for part, given in copy.deepcopy(dict(updates)).items():
        before = updated.get(part)
        if isinstance(given, Mapping) and isinstance(before, Mapping):
            updated[part] = {**before, **given}
        elif isinstance(given, list) and isinstance(before, list):
            updated[part] = [*before, *(value for value in given if value not in before)]
        else:
            updated[part] = given
    return updated


def _consolidated(
    settled: list[tuple[Entry, Verdict]], state: State, states: dict[str, Any], refused: list[dict[str, Any]]
) -> ConsolidatedData:
    merges = {change.id: change for change in state.changes if isinstance(change, Merge)}
    taken = [
        (entry, verdict)
        for entry, verdict in settled
        if verdict and not _restates(entry, verdict, merges.get(entry.memory.id))
    ]
    shown: dict[str, Any] = {"core_updates": {}, PROFILE: {}, GKS: {}, "semantic_candidates": []}
    for entry, _ in taken:
        session_buffer.show(shown, entry)
    return ConsolidatedData(
        episodes=[to_document(v.memory) for e, v in taken if e.section == EPISODIC and v.memory],
        knowledge=shown["semantic_candidates"],
        sensory=shown.get("sensory_candidates", []),
        core_updates=shown["core_updates"],
        profile_updates=shown[PROFILE],
        gks_updates=shown[GKS],
        state_changes=states,
        refused=tuple(refused),
        merged=tuple(
            {"into": merge.into, "text": merge.text, "confidence": merge.confidence}
            for merge in merges.values()
        ),
    )


def _restates(entry: Entry, verdict: Verdict, merge: Merge | None) -> bool:
    """Whether an entry says only what is there, and not more surely."""
    if verdict.outcome == "unchanged":
        return True
    if verdict.outcome != "merged":
        return False
    return merge is None or merge.confidence >= entry.memory.confidence


def _state_of(master: Mapping[str, Any], now: datetime) -> State:
    found = stores.entries(master_named(master), at=now, keep_ids=True)
    return fold(_with_id(entry).memory for entry in found)


def _episode(value: Any, document: Mapping[str, Any], now: datetime) -> Entry:
    entry = _with_id(stores.episode(value, at=now), prefix="ep_")
    data = dict(entry.memory.data)
    spelling = {k: v for k, v in data.pop(SPELLING, {}).items() if k != "absent"}
    session = entry.memory.session or document.get("sandbox_id")
    kept = {**data, SPELLING: spelling} if spelling else data
    return replace(entry, memory=replace(entry.memory, session=session, data=kept))


def _with_id(entry: Entry, prefix: str = "") -> Entry:
    memory = entry.memory
    return entry if memory.id else replace(entry, memory=replace(memory, id=f"{prefix}{_new_id()}"))


def _refused(entry: Entry, check: str, detail: str) -> dict[str, Any]:
    return {"check": check, "detail": detail, "value": copy.deepcopy(entry.value)}


def _merge_gks(before: Any, added: Any) -> Any:
    if not added:
        return before
    if isinstance(before, list) and isinstance(added, list):
        return [*before, *added]
    if not isinstance(before, Mapping) or not isinstance(added, Mapping):
        return before if not isinstance(added, Mapping | list) else _joined(before, added)
    merged = dict(before)
    for part, value in added.items():
        both = isinstance(merged.get(part), list) and isinstance(value, list)
        merged[part] = [*merged[part], *value] if both else value
    return merged


def _joined(before: Any, added: Any) -> Any:
    """A list and an object of the knowledge system: the list stands in the object under `facts`."""
    objects, lists = (before, added) if isinstance(before, Mapping) else (added, before)
    return {**objects, "facts": [*objects.get("facts", []), *lists]}


def _new_id() -> str:
    return secrets.token_hex(10)
