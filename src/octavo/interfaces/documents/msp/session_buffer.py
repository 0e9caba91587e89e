"""The session buffer as the seed's document: written into a sandbox, and read from one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from octavo.domain.buffer import SessionBuffer, SetState, Spoke, Wrote, candidates, patch
from octavo.domain.episodes import SPELLING, iso, to_document
from octavo.domain.verdicts import Verdict
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput
from octavo.interfaces.documents.msp import items, stores
from octavo.interfaces.documents.msp.forms import buffer_named
from octavo.interfaces.documents.msp.stores import FILE, GKS, PROFILE, Entry

_PARTS = {"fact": "facts", "concept": "concepts", "relationship": "relationships"}
_CORE_TYPES = {"identity": "identity", "value": "values", "values": "values", "worldview": "worldview"}


def write(sandbox: Sandbox, given: Mapping[str, Any], *, now: datetime) -> list[Verdict]:
    """Put a buffer document's content into a sandbox; verdicts for what is no episode, in order."""
    document = buffer_named(given)
    for state in (document.get("state_deltas") or {}).values():
        if not isinstance(state, Mapping):
            raise BadInput(f"a state is {type(state).__name__}, not an object")
    found = list(entries(document, at=now))
    for episode in document.get("new_episodes", ()):
        sandbox.write_episode(episode)
    verdicts = [_remember(sandbox, entry) for entry in found]
    for name, data in (document.get("state_deltas") or {}).items():
        verdicts.append(sandbox.update_state(name, data))
    return verdicts


def entries(document: Mapping[str, Any], *, at: datetime) -> Iterable[Entry]:
    """What a buffer document asks for besides episodes and states."""
    for value in document.get("semantic_candidates", ()):
        yield _candidate(value, at)
    for value in document.get("sensory_candidates", ()):
        yield stores.sensory(value, at=at)
    updates = document.get("core_updates", {})
    if isinstance(updates, Mapping):
        yield from stores.core(updates, at=at)
    else:
        yield from (_candidate(value, at) for value in updates)
    for key, value in (document.get("user_profile") or {}).items():
        yield stores.profile(key, value, at=at)
    yield from stores.gks(document.get("gks_data"), at=at)


def document(buffer: SessionBuffer, note: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """A session buffer in the schema's words; `note` is what an imported one said besides."""
    found: dict[str, Any] = {
        "sandbox_id": buffer.opened.sandbox,
        "created_at": iso(buffer.opened.at),
        "parent_version": buffer.opened.parent,
        "new_episodes": [],
        "semantic_candidates": [],
        "state_deltas": {},
    }
    spoken = {entry.episode for entry in buffer.entries if isinstance(entry, Spoke)}
    for wanted in candidates(buffer):
        if isinstance(wanted, SetState):
            before = found["state_deltas"].get(wanted.name, {})
            found["state_deltas"][wanted.name] = (
                patch(before, wanted.data) if wanted.patch else dict(wanted.data)
            )
        elif isinstance(wanted, Wrote):
            _show(found, wanted, bare=wanted.memory.id not in spoken)
    found["metadata"] = _metadata(buffer)
    return found if note is None else _noted(found, note, is_last=_is_marker(buffer.entries[-1]))


def marker(buffer: SessionBuffer) -> dict[str, Any] | None:
    """What an import noted about the sandbox, None if it was opened here."""
    noted = [e.memory.data for e in buffer.entries if isinstance(e, Wrote) and _is_marker(e)]
    return dict(noted[-1]) if noted else None


def metadata(buffer: SessionBuffer, user_id: str) -> dict[str, Any]:
    """What the sandbox's own file says."""
    return {
        "sandbox_id": buffer.opened.sandbox,
        "name": buffer.opened.name,
        "user_id": user_id,
        "created_at": iso(buffer.opened.at),
        "parent_version": buffer.opened.parent,
        "status": "active",
    }


def _remember(sandbox: Sandbox, entry: Entry) -> Verdict:
    memory = entry.memory
    return sandbox.remember(
        items.said(memory),
        kind=memory.kind,
        topic=memory.topic,
        category=memory.category,
        at=memory.at,
        confidence=entry.confidence,
        data=memory.data,
        links=_ends(sandbox, entry),
    )


def _ends(sandbox: Sandbox, entry: Entry) -> dict[str, list[str]]:
    """Links from a relationship to the concepts and memories at its ends, if the sandbox knows them."""
    if entry.part != "relationships" or not isinstance(entry.value, Mapping):
        return {}
    found: list[str] = []
    for end in items.ends(entry.value) or ():
        if isinstance(end, str):
            known = sandbox.memories(kind="fact", topic=stores.topic_of("concept", end), limit=1)
            found += [memory.id for memory in known]
    return {"about": list(dict.fromkeys(found))} if found else {}


def _candidate(value: Any, at: datetime) -> Entry:
    kind = value.get("type") if isinstance(value, Mapping) else None
    if isinstance(kind, str) and kind in _CORE_TYPES:
        return stores.core_candidate(value, _CORE_TYPES[kind], at=at)
    part = _PARTS.get(str(kind), "facts")
    return stores.knowledge(value, part, stores.KNOWLEDGE[part], at=at)


def _show(found: dict[str, Any], wanted: Wrote, *, bare: bool) -> None:
    memory = wanted.memory
    if memory.kind == "episode" and memory.category != "sensory":
        shown = to_document(memory, bare=bare)
        found["new_episodes"].append({**shown, "episode_id": wanted.alias} if wanted.alias else shown)
        return
    entry = stores.entry_of(memory)
    if entry is not None:  # skills have no place in the document
        show(found, entry)


def show(found: dict[str, Any], entry: Entry) -> None:
    """Put a value where the buffer's document has it; files are an import's own notes and stay out."""
    match entry:
        case Entry(section="semantic_memory"):
            found["semantic_candidates"].append(entry.value)
        case Entry(section="sensory_memory"):
            found.setdefault("sensory_candidates", []).append(entry.value)
        case Entry(section="core_memory", part=str(part)):
            _show_core(found, entry, part)
        case Entry(section="user_profile"):
            found.setdefault(PROFILE, {})[entry.identity[1]] = entry.value
        case Entry(section="gks_data"):
            _show_gks(found, entry)


def _show_core(found: dict[str, Any], entry: Entry, part: str) -> None:
    noted = entry.memory.data.get(SPELLING, {})
    if "candidate" in noted:
        found["semantic_candidates"].append(noted["candidate"])
        return
    updates = found.setdefault("core_updates", {})
    if entry.identity[0] == "key":
        updates.setdefault(part, {})[entry.identity[1]] = entry.value
    else:
        updates.setdefault(part, []).append(entry.value)


def _show_gks(found: dict[str, Any], entry: Entry) -> None:
    if entry.identity[0] == "key":
        found.setdefault(GKS, {})[entry.identity[1]] = entry.value
    elif entry.part is None:
        found.setdefault(GKS, []).append(entry.value)
    else:
        found.setdefault(GKS, {}).setdefault(entry.part, []).append(entry.value)


def _metadata(buffer: SessionBuffer) -> dict[str, Any]:
    turns, last = 0, buffer.opened.at
    for wanted in candidates(buffer):
        if isinstance(wanted, Wrote):
            turns += len(wanted.memory.turns) if wanted.memory.category != "sensory" else 0
    for entry in buffer.entries:
        at = entry.turn.at if isinstance(entry, Spoke) else getattr(entry, "at", None)
        at = entry.memory.at if isinstance(entry, Wrote) else at
        last = max(last, at) if isinstance(at, datetime) else last
    seconds = (last - buffer.opened.at).total_seconds()
    return {"turn_count": turns, "duration_seconds": int(seconds) if seconds.is_integer() else seconds}


def _noted(found: dict[str, Any], note: Mapping[str, Any], *, is_last: bool) -> dict[str, Any]:
    """The document with what an imported file said besides; its counts hold until something is added."""
    fields = dict(note.get("fields") or {})
    absent = note.get("absent") or ()
    kept = {
        key: value
        for key, value in found.items()
        if key not in absent or (value and not (is_last and key == "metadata"))
    }
    if not is_last and isinstance(fields.get("metadata"), Mapping):
        fields["metadata"] = {**fields["metadata"], **found["metadata"]}
    return {**kept, **fields}


def _is_marker(entry: Any) -> bool:
    return isinstance(entry, Wrote) and (entry.memory.kind, entry.memory.category) == ("register", FILE)
