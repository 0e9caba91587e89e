"""The files of seed 003 in and out: `.mem.json`, `.asm.json` and what lies beside; one bad file costs one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from msgspec import to_builtins
from msgspec.structs import asdict

from octavo.documents import trees
from octavo.documents.synthians import explaining
from octavo.documents.synthians.explaining import vectors_of
from octavo.documents.synthians.records import MemoryAssembly, MemoryEntry, spelt, vector_problem
from octavo.documents.transfer import Exported, Imported, Tally
from octavo.domain.assembling import LEAST, may_belong
from octavo.domain.buffer import Wrote
from octavo.domain.hits import salience_of
from octavo.domain.memory import SHARED, Emotion, Link, Memory, Turn, check_id, is_id, transcript
from octavo.engine.account import Account
from octavo.errors import BadFile, BadInput, OctavoError

FORMAT = "synthians"
_ENTRIES, _ASSEMBLIES = "memories", "assemblies"
_OWN = ("id", "content", "embedding", "timestamp", "quick_recal_score", "tags")
_LABELS = ("label", "dominant_emotion", "emotion")


def import_(account: Account, path: Path) -> Imported:
    """Read a Synthians store: entries become facts, assemblies keep their ids, members and lineage."""
    if not path.is_dir():
        raise BadFile(
            f"there is no folder {path}", hint="name the folder that holds memories/ and assemblies/"
        )
    names, links = trees.files_below(path)
    tally = Tally(left_out=links)
    _write(account, _read(account, path, names, tally, _entry_memory), tally)
    made = _read(account, path, names, tally, _assembly_memory)
    _write(account, made, tally)
    for place, memory in made:
        if account.get(memory.id) and (ended := account.intake.finish_merge(memory.id)):
            tally.say(place, f"its merge was finished: {', '.join(ended)} ended")
    return tally.imported(account, FORMAT)


def export(account: Account, path: Path) -> Exported:
    """Write entries and assemblies as the origin's files, and its index, statistics and merge log."""
    memories = [m for m in account.memories(kind=("fact", "episode")) if m.text]
    vectors = vectors_of(account, *memories)
    files: dict[str, bytes] = {}
    index: dict[str, Any] = {}
    for memory in memories:
        entry = entry_of(account, memory, vectors.get(memory.id))
        name = f"{_ENTRIES}/{_file_name(memory.id)}.mem.json"
        files[name] = trees.json_bytes(entry.to_dict())
        index[memory.id] = {"path": name, "type": "memory", "timestamp": entry.timestamp}
    groups = [assembly_of(account, one.assembly_id) for one in account.explained.assemblies()]
    for group in groups:
        name = f"{_ASSEMBLIES}/{_file_name(group.id)}.asm.json"
        files[name] = trees.json_bytes(group.to_dict())
        index[group.id] = {"path": name, "type": "assembly", "timestamp": group.updated_at}
    files["memory_index.json"] = trees.json_bytes(index)
    files["stats/assembly_activation_stats.json"] = trees.json_bytes(
        {"activation_counts": {g.id: g.activation_count for g in groups if g.activation_count}}
    )
    files["logs/merge_log.jsonl"] = _log(account)
    others = {k: n for k, n in account.stats().by_kind.items() if k not in ("fact", "episode", "assembly")}
    counts = {"memory": len(memories), "assembly": len(groups)}
    return trees.export(account, FORMAT, path, files, counts=counts, left_out=others)


def entry_of(account: Account, memory: Memory, vector: Sequence[float] | None = None) -> MemoryEntry:
    """A memory as an entry; what came from a file of theirs and is not ours to know comes back with it."""
    original = memory.data.get("original")
    told = dict(original) if isinstance(original, Mapping) else {}
    used = account.uses(memory.id).get(memory.id)
    emotion = to_builtins(memory.emotion) if memory.emotion else {}
    entry = MemoryEntry(
        id=memory.id,
        content=memory.turns[0].text if len(memory.turns) == 1 else memory.text,
        embedding=_came_with(memory) or vector,
        timestamp=spelt(memory.at),
        memory_type=str(told.get("memory_type", memory.category or "general")),
        metadata=told.get("metadata") or {},
        quick_recal_score=salience_of(memory, (used, 0.0)) if used else memory.salience,
        tags=memory.tags,
        emotion_metadata=told.get("emotion_metadata") or emotion,
    )
    entry.extra = {name: value for name, value in told.items() if name not in entry.to_dict()}
    return entry


def assembly_of(account: Account, id_: str) -> MemoryAssembly:
    """A live assembly as the seed has it."""
    told, memory = account.explained.assembly(id_), account.explained.found(id_)
    composite = vectors_of(account, memory).get(id_) or _came_with(memory)
    group = MemoryAssembly.from_dict({**asdict(told), "composite_embedding": composite or []})
    group.extra = dict(memory.data.get("foreign") or {})
    return group


def _came_with(memory: Memory) -> Sequence[float] | None:
    """The vector that came with a memory."""
    own = memory.data.get("vector")
    return own.get("values") if isinstance(own, Mapping) else None


def _read(
    account: Account,
    path: Path,
    names: Sequence[str],
    tally: Tally,
    made: Callable[[Account, Mapping[str, Any], str, Tally], Memory | None],
) -> list[tuple[str, Memory]]:
    """What the files of one folder hold, by their places; one that cannot be read costs itself alone."""
    folder, read = _ENTRIES if made is _entry_memory else _ASSEMBLIES, []
    for name in names:
        if not name.startswith(f"{folder}/") or not name.endswith(".json"):
            continue
        try:
            if memory := made(account, trees.read_json(path / name, odd=True), name, tally):
                read.append((name, memory))
        except OctavoError as error:
            tally.leave_out(name, error.message)
        except (TypeError, ValueError) as error:
            tally.leave_out(name, str(error))
    return read


def _write(account: Account, wanted: Sequence[tuple[str, Memory]], tally: Tally) -> None:
    """Write what is not there yet through the gate in one commit; who stayed out is named."""
    new = [(place, Wrote(memory=memory)) for place, memory in wanted if account.get(memory.id) is None]
    tally.write(account, FORMAT, new)
    tally.unchanged += len(wanted) - len(new)


def _entry_memory(account: Account, told: Mapping[str, Any], place: str, tally: Tally) -> Memory:
    entry = MemoryEntry.from_dict(told)
    most = account.policy.kinds.fact.max_length
    is_long = most is not None and len(entry.content) > most
    if is_long:
        tally.say(place, "its text is longer than a fact may be: it is an episode")
    data: dict[str, Any] = {"original": {k: v for k, v in entry.to_dict().items() if k not in _OWN}}
    data |= _vector(account, entry.embedding, entry.metadata, place, "it came without one", tally)
    turns = (Turn(speaker="user", text=entry.content),) if is_long else ()
    return Memory(
        id=check_id(entry.id),
        kind="episode" if is_long else "fact",
        text=transcript(turns) if is_long else entry.content,
        tags=tuple(str(tag) for tag in entry.tags),
        source="operator",
        actor=account.actor,
        at=datetime.fromisoformat(spelt(entry.timestamp)),
        salience=entry.quick_recal_score,
        emotion=_emotion(entry.emotion_metadata),
        turns=turns,
        data=data,
    )


def _assembly_memory(account: Account, told: Mapping[str, Any], place: str, tally: Tally) -> Memory | None:
    group, scope = MemoryAssembly.from_dict(told), account.scope or SHARED
    named = dict.fromkeys(group.memory_ids)
    there = [m for id_ in named if is_id(id_) and (m := account.get(id_))]
    members = [m for m in there if may_belong(m) and m.scope == scope]
    if len(members) < LEAST:
        tally.leave_out(place, f"{len(members)} of its {len(named)} members are here")
        return None
    if len(members) < len(named):
        tally.say(place, f"{len(members)} of its {len(named)} members are here, the others are left out")
    foreign = dict(group.extra)
    if group.is_newer:
        foreign["assembly_schema_version"] = group.assembly_schema_version
        tally.say(place, f"it has the newer schema {group.assembly_schema_version}")
    data: dict[str, Any] = {"topics": group.topics, "schema_version": "1.0", "formed": {"by": "import"}}
    if foreign:
        data["foreign"] = foreign
    otherwise = "its composite is made of its members"
    data |= _vector(account, group.composite_embedding, foreign, place, otherwise, tally)
    links = [Link(name="part", to=m.id) for m in members]
    links += [Link(name="merged_from", to=check_id(id_)) for id_ in group.merged_from]
    return Memory(
        id=check_id(group.id),
        kind="assembly",
        text=group.name or group.id,
        tags=tuple(str(tag) for tag in group.tags),
        source="operator",
        actor=account.actor,
        at=max(m.at for m in members),
        salience=max(m.salience for m in members),
        confidence=1.0,
        links=tuple(links),
        data=data,
    )


def _vector(
    account: Account,
    values: Sequence[Any],
    told: Mapping[str, Any],
    place: str,
    otherwise: str,
    tally: Tally,
) -> dict[str, Any]:
    """The vector that came in a file, as data; one that cannot be used is left out, and that is said."""
    own, named = account.explained.indexing.embedding, str(told.get("embedder") or f"import:{len(values)}")
    problem = vector_problem(values)
    if not problem and own and named == own.embedder.name and len(values) != own.embedder.dimension:
        problem = f"its vector has {len(values)} numbers, those of {named} have {own.embedder.dimension}"
    if problem:
        tally.say(place, f"{problem}; {otherwise}")
        return {}
    return {"vector": {"embedder": named, "values": [float(value) for value in values]}}


def _emotion(told: Mapping[str, Any]) -> Emotion | None:
    label = next((str(told[name]) for name in _LABELS if told.get(name)), None)
    numbers = {
        name: float(told[name])
        for name in ("valence", "intensity")
        if isinstance(told.get(name), int | float) and not isinstance(told.get(name), bool)
    }
    return Emotion(label=label, **numbers) if label or numbers else None


def _log(account: Account) -> bytes:
    """The merges as the origin logs them: first that it was made, then that the sources are gone."""
    lines = []
    for event in reversed(explaining.log(account, 1000)["reconciled_log_entries"]):
        names = ("merge_event_id", "source_assembly_ids", "target_assembly_id", "similarity_at_merge")
        at = spelt(event["creation_timestamp"])
        made = {"event_type": "merge_creation", "timestamp": at, "merge_threshold": event["merge_threshold"]}
        cleaned = {
            "event_type": "cleanup_status_update",
            "update_timestamp": at,
            "target_merge_event_id": event["merge_event_id"],
            "new_status": event["final_cleanup_status"],
            "error": None,
        }
        lines += [json.dumps(made | {name: event[name] for name in names}), json.dumps(cleaned)]
    return "".join(f"{line}\n" for line in lines).encode()


def _file_name(id_: str) -> str:
    name = id_.replace(":", "-")
    if "/" in name:
        raise BadInput(f"{id_!r} cannot name a file")
    return name
