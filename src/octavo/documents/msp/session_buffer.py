"""The session buffer as the seed's document: written into a sandbox, read from one, and consolidated.

Consolidation on documents alone runs the rules for real, on an account of a moment; saving runs them again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from tempfile import TemporaryDirectory
from typing import Any, TypeGuard

from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.msp import forms, saving, stores
from octavo.documents.msp.forms import CORE, EPISODIC, GKS, PROFILE, SEMANTIC, SENSORY, STATES, Semantic
from octavo.documents.msp.stores import Entry
from octavo.documents.transfer import Tally, is_kept
from octavo.domain.buffer import SessionBuffer, SetState, Spoke, Wrote, candidates, patch
from octavo.domain.episodes import iso, to_document
from octavo.domain.memory import is_id
from octavo.domain.policy import Policy
from octavo.domain.verdicts import Verdict
from octavo.engine.fields import plain_json
from octavo.engine.opening import open as open_account
from octavo.engine.sandbox import Sandbox
from octavo.errors import Refused

_CORE_TYPES = {"identity": "identity", "value": "values", "values": "values", "worldview": "worldview"}
# Where the buffer keeps what has the same form in the master state.
_FIELDS = {section: forms.FIELDS[section] for section in (SENSORY, CORE, PROFILE, GKS)}
_CANDIDATE = "candidate"  # the field of a memory's data that holds an update of the core as it was asked for


def write(
    sandbox: Sandbox,
    buffer: Mapping[str, Any],
    *,
    now: datetime,
    say: Callable[[Mapping[str, Any]], object] | None = None,
) -> list[tuple[Any, Verdict]]:
    """Put a buffer document's content into a sandbox: what is no episode with its verdict, in order.

    `say` writes an episode, if not as the sandbox does.
    """
    document = forms.buffer_named(buffer)
    states = document.get("state_deltas") or {}
    for state in states.values():
        trees.must_be("a state", state, Mapping)
    new = _entries(document, at=now)
    for episode in document.get("new_episodes", ()):
        (say or sandbox.write_episode)(episode)
    told = list(zip((entry.value for entry in new), _remember_all(sandbox, new), strict=True))
    return [*told, *((data, sandbox.update_state(name, data)) for name, data in states.items())]


def _entries(document: Mapping[str, Any], *, at: datetime) -> list[Entry]:
    """What a buffer document asks for besides episodes and states."""
    listed = [*document.get("semantic_candidates", ())]
    master = {section: document[field] for section, field in _FIELDS.items() if document.get(field)}
    if isinstance(master.get(CORE), list):
        listed += master.pop(CORE)
    return [*(_candidate(value, at) for value in listed), *stores.entries(master, at=at)]


def _candidate(value: Any, at: datetime) -> Entry:
    """An element of the semantic store, or an update of the core: {type, key, content, confidence}."""
    kind = value.get("type") if isinstance(value, Mapping) else None
    if not isinstance(kind, str) or kind not in _CORE_TYPES:
        return stores.element(SEMANTIC, forms.LIST_OF.get(str(kind), "facts"), None, value, at=at)
    key, content = value.get("key"), value.get("content", value.get("value"))
    entry = stores.element(CORE, _CORE_TYPES[kind], key if isinstance(key, str) else None, content, at=at)
    return replace(entry, memory=replace(entry.memory, data={**entry.memory.data, _CANDIDATE: dict(value)}))


def _remember_all(sandbox: Sandbox, new: list[Entry]) -> list[Verdict]:
    """Remember entries with the links of their graph, those from nodes that are there already too."""
    nodes: dict[str, str | None] = {}  # those that the sandbox sees, by what edges call them
    if any(entry.section == GKS for entry in new):
        for memory in sandbox.memories(kind="fact", category="gks"):
            there = stores.entry_of(memory)
            if there and (name := stores.node_name(there)):
                nodes[name] = memory.id

    def known(end: str) -> str | None:
        if end not in nodes:
            concepts = sandbox.memories(kind="fact", topic=trees.topic_of("concept", end), limit=1)
            nodes[end] = concepts[0].id if concepts else None
        return nodes[end]

    linked, leads = stores.link(new, known)
    verdicts = [_remember(sandbox, entry) for entry in linked]
    for name, links in leads.items():
        node = sandbox.get(known(name) or "none")
        if node is not None:
            sandbox.revise(node.id, links=(*node.links, *links))
    return verdicts


def _remember(sandbox: Sandbox, entry: Entry) -> Verdict:
    memory = entry.memory
    told = memory.data.get(_CANDIDATE, entry.value if entry.key is None else None)
    sure = forms.confidence_of(told)  # None leaves it to who writes it
    fields = {name: getattr(memory, name) for name in ("kind", "topic", "category", "at", "data", "links")}
    return sandbox.remember(forms.said(memory), confidence=sure, id=memory.id or None, **fields)


def document(buffer: SessionBuffer) -> dict[str, Any]:
    """A session buffer in the schema's words, with what an imported one said besides."""
    opened, last = buffer.opened, buffer.opened.at
    parts = dict(forms.create_empty_buffer(opened.sandbox, iso(opened.at), opened.parent))
    metadata = {**parts.pop("metadata"), "turn_count": 0}
    spoken = {entry.episode for entry in buffer.entries if isinstance(entry, Spoke)}
    shown: list[Entry] = []
    for candidate in candidates(buffer):
        if isinstance(candidate, SetState):
            before, last = parts["state_deltas"].get(candidate.name, {}), max(last, candidate.at)
            parts["state_deltas"][candidate.name] = (
                patch(before, candidate.data) if candidate.patch else dict(candidate.data)
            )
        elif isinstance(candidate, Wrote):
            memory = candidate.memory
            last = max([last, memory.at, *(turn.at for turn in memory.turns if turn.at)])
            entry = stores.entry_of(memory)
            if memory.kind == "episode" and memory.category != "sensory":
                named = {"episode_id": candidate.alias} if candidate.alias else {}
                parts["new_episodes"].append({**to_document(memory, bare=memory.id not in spoken), **named})
                metadata["turn_count"] += len(memory.turns)
            elif _CANDIDATE in memory.data:
                parts["semantic_candidates"].append(memory.data[_CANDIDATE])
            elif entry is not None and entry.section == SEMANTIC:
                parts["semantic_candidates"].append(entry.value)
            elif entry is not None:  # skills have no place in the document
                shown.append(entry)
    laid = stores.lay({}, shown)
    parts |= {field: laid[section] for section, field in _FIELDS.items() if laid[section]}
    seconds = (last - opened.at).total_seconds()
    metadata["duration_seconds"] = int(seconds) if seconds.is_integer() else seconds
    return _noted({**parts, "metadata": metadata}, buffer)


def marker(buffer: SessionBuffer) -> dict[str, Any]:
    """What an import noted about the sandbox, nothing if it was opened here."""
    noted = (entry.memory.data for entry in reversed(buffer.entries) if _is_marker(entry))
    return dict(next(noted, {}))


def _noted(parts: dict[str, Any], buffer: SessionBuffer) -> dict[str, Any]:
    """The document with what an imported file said besides; its counts hold until something is added."""
    note = marker(buffer)
    if not note:
        return parts
    fields, is_same = dict(note["fields"]), _is_marker(buffer.entries[-1])
    if not is_same and isinstance(fields.get("metadata"), Mapping):
        fields["metadata"] = {**fields["metadata"], **parts["metadata"]}
    said = {key: value for key, value in parts.items() if key in note["keys"] or (value and not is_same)}
    return {**said, **fields}


def _is_marker(entry: object) -> TypeGuard[Wrote]:
    return isinstance(entry, Wrote) and is_kept(entry.memory)


def rehearse(
    buffer: Mapping[str, Any],
    master: Mapping[str, Any],
    *,
    policy: Policy,
    actor: str,
    clock: Callable[[], datetime],
) -> forms.ConsolidatedData:
    """What the gate and the rules let through of a buffer on top of a master state."""
    given = forms.buffer_named(buffer)
    id_ = given.get("sandbox_id") or forms.text_under(given.get("metadata"), "sandbox_id")
    refused = []

    def say(episode: Mapping[str, Any]) -> None:
        try:
            sandbox.write_episode(forms.Episode.of(episode))
        except Refused as error:
            refused.append(("gate", error.message, episode))

    with (
        TemporaryDirectory(prefix="octavo-") as folder,
        open_account(folder, actor=actor, policy=policy, clock=clock, embedder=False) as account,
    ):
        saving.bring_up(account, forms.master_named(master), Tally(), at=clock())
        before = {entry.memory.id: forms.canonical(entry.value) for entry in saving.shown(account)}
        sandbox = account.sandbox(id=id_ if is_id(id_) else None)
        judged = write(sandbox, given, now=clock(), say=say)
        result = sandbox.consolidate()
        after = saving.shown(account)
    refused += [(v.check or "approval", v.detail, value) for value, v in judged if not v]
    through = stores.lay({}, [e for e in after if before.get(e.memory.id) != forms.canonical(e.value)])
    return forms.ConsolidatedData(
        **{field: through[section] for section, field in forms.THROUGH.items()},
        knowledge=[value for values in through[SEMANTIC].values() for value in values],
        refused=tuple({"check": c, "detail": d, "value": plain_json(value)} for c, d, value in refused),
        merged=tuple({"into": m.into, "text": m.text, "confidence": m.confidence} for m in result.merged),
    )


def merge(master: Mapping[str, Any], consolidated: Mapping[str, Any], *, now: datetime) -> forms.MasterState:
    """The next master state, one version on."""
    document, more = forms.master_named(master), plain_json(consolidated)
    saving.check_shape(document)
    added: dict[str, Any] = {section: more.get(field) or {} for section, field in forms.THROUGH.items()}
    saving.check_shape({section: value for section, value in added.items() if value})
    trees.must_be("knowledge", knowledge := more.get("knowledge") or [], list)
    version = int(document.get("version", 0))
    document |= {
        EPISODIC: [*document.get(EPISODIC, []), *added[EPISODIC]],
        SEMANTIC: Semantic(document.get(SEMANTIC, {})) + knowledge,
        SENSORY: [*document.get(SENSORY, []), *added[SENSORY]],
        CORE: update_core(document.get(CORE, {}), added[CORE]),
        PROFILE: {**document.get(PROFILE, {}), **added[PROFILE]},
        GKS: _merge_gks(document.get(GKS, {}), added[GKS]),
        STATES: {**document.get(STATES, {}), **added[STATES]},
        "version": version + 1,
        "timestamp": iso(now),
    }
    base = getattr(master, "base", None)
    return forms.MasterState.on(version if base is None else base, document)


def update_core(core: Mapping[str, Any], updates: Mapping[str, Any]) -> dict[str, Any]:
    """The core with updates laid over it: named values replaced, lists added to, everything else kept."""
    updated: dict[str, Any] = plain_json(core)
    for part, update in plain_json(updates).items():
        before = updated.get(part)
        if isinstance(update, Mapping) and isinstance(before, Mapping):
            updated[part] = {**before, **update}
        elif isinstance(update, list) and isinstance(before, list):
            updated[part] = [*before, *(value for value in update if value not in before)]
        else:
            updated[part] = update
    return updated


def _merge_gks(before: Any, added: Any) -> Any:
    """The knowledge system with more: lists grow, names are replaced, a bare list stands under `facts`."""
    if not added or (isinstance(before, list) and isinstance(added, list)):
        return [*before, *added] if added else before
    merged, more = ({"facts": part} if isinstance(part, list) else dict(part) for part in (before, added))
    for part, value in more.items():
        is_list = isinstance(merged.get(part), list) and isinstance(value, list)
        merged[part] = [*merged[part], *value] if is_list else value
    return merged
