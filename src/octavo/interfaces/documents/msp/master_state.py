"""The master state as one document: put together from memories, and taken apart into what differs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Literal

from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.episodes import SPELLING
from octavo.domain.memory import SHARED
from octavo.engine.bulk import Finished
from octavo.engine.reading import Reader
from octavo.interfaces.documents.msp import stores
from octavo.interfaces.documents.msp.items import canonical
from octavo.interfaces.documents.msp.stores import (
    CORE,
    EMPTY,
    EPISODIC,
    FILE,
    GKS,
    SECTIONS,
    SEMANTIC,
    SENSORY,
    Entry,
)

MASTER = "master"
DERIVED = ("version", "timestamp", "user_id", "metadata", *SECTIONS)
COUNTED = ("total_episodes", "total_sessions", "last_consolidation")
_LISTS = (EPISODIC, SENSORY)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One thing that a new master state asks for: what, where, and the candidate for the engine."""

    action: Literal["add", "change", "end", "immutable"]
    label: str
    candidate: Finished | None = None


def shown(reader: Reader) -> list[Entry]:
    """Everything of an account that the documents can show, in their order: what all agents share."""
    found = (stores.entry_of(memory) for memory in reader.memories(scope=SHARED))
    return sorted((entry for entry in found if entry is not None), key=_order)


def assemble(found: Iterable[Entry], *, exact: bool = False) -> dict[str, Any]:
    """The seven sections; `exact` leaves out empty parts that an imported file did not have."""
    document: dict[str, Any] = {
        EPISODIC: [],
        SEMANTIC: {part: [] for part in EMPTY[SEMANTIC]},
        SENSORY: [],
        CORE: {part: type(empty)() for part, empty in EMPTY[CORE].items()},
        stores.PROFILE: {},
        GKS: {},
        stores.STATES: {},
    }
    entries = sorted(found, key=_order)
    for entry in entries:
        if entry.section == FILE and entry.identity[1] in document:
            _lay_out(document, entry.identity[1], entry.value)
    for entry in entries:
        if entry.section != FILE:
            _place(document, entry)
    if exact:
        _without_absent(document, entries)
    return document


def leftovers(
    document: Mapping[str, Any], noted: Mapping[str, Mapping[str, Any]], *, at: datetime
) -> list[Entry]:
    """What a master state holds besides its stores, one entry a section; `noted` is how its files stood."""
    found = []
    for section in SECTIONS:
        if section not in document:
            continue
        value = {**_besides(section, document[section]), **noted.get(section, {})}
        if value:
            found.append(stores.file(section, value, at=at))
    more = {key: value for key, value in document.items() if key not in DERIVED}
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    extra = {key: value for key, value in metadata.items() if key not in COUNTED}
    if more or extra:
        found.append(stores.file(MASTER, {"fields": more, "metadata": extra}, at=at))
    return found


def absent_parts(section: str, given: Any) -> list[str]:
    """The usual parts of a section that a file does not have."""
    return [part for part in EMPTY.get(section, {}) if part not in given]


def difference(
    now: Sequence[Entry],
    wanted: Sequence[Entry],
    *,
    at: datetime,
    is_taken: Callable[[str], bool],
    ends: Callable[[Entry], bool] = lambda entry: False,
    doubles: bool = False,
) -> list[Step]:
    """What leads from one set of entries to another.

    `ends` says which missing ones are to end; `doubles` keeps entries of one name apart (import).
    """
    held = _numbered(now)
    placed = {(e.section, e.part): True for e in now}
    for entry in now:
        placed[entry.section, entry.part] &= entry.place != float("inf")
    steps, met, counts = [], set(), Counter[tuple[str, str | None]]()
    for key, entry in _numbered(wanted).items():
        store = (entry.section, entry.part)
        old = held.get(key)
        if old is None:
            kept = _placed(entry, counts[store]) if placed.get(store, True) else entry
            candidate = _adding(kept, key[-1] if doubles else 0, at, is_taken)
            steps.append(Step(action="add", label=entry.label, candidate=candidate))
        else:
            met.add(key)
            steps += _changing(old, entry, at)
        counts[store] += 1
    for key, entry in held.items():
        if key not in met and ends(entry):
            steps.append(_ending(entry, at))
    return steps


def _order(entry: Entry) -> tuple[float, datetime, str]:
    return entry.place, entry.memory.at, entry.memory.id


def _numbered(found: Iterable[Entry]) -> dict[tuple[Any, ...], Entry]:
    """Entries by what they are known by; equal ones are told apart by their order."""
    seen: Counter[tuple[Any, ...]] = Counter()
    numbered = {}
    for entry in found:
        key = (entry.section, entry.part, *entry.identity)
        numbered[*key, seen[key]] = entry
        seen[key] += 1
    return numbered


def _adding(entry: Entry, ordinal: int, at: datetime, is_taken: Callable[[str], bool]) -> Finished:
    memory = entry.memory
    if entry.section == stores.STATES:
        return SetState(id="", name=entry.identity[1], data=memory.data, at=at)
    if ordinal and memory.topic is not None:
        memory = replace(memory, topic=None)  # one memory holds a topic; its double stands beside it
    if memory.id and (ordinal or is_taken(memory.id)):
        memory = replace(memory, id="", data={"episode_id": memory.id, **memory.data})
    return Wrote(memory=memory, alias=entry.alias)


def _changing(old: Entry, new: Entry, at: datetime) -> list[Step]:
    if canonical(old.value) == canonical(new.value):
        return []
    if old.section in _LISTS:
        return [Step(action="immutable", label=old.label)]
    if old.section == stores.STATES:
        candidate: Finished = SetState(id="", name=new.identity[1], data=new.memory.data, at=at)
        return [Step(action="change", label=old.label, candidate=candidate)]
    fields = ("text", "data", "confidence", *(("links",) if new.memory.links else ()))
    kept = _placed(new, old.place) if old.place != float("inf") else new
    changed = {name: getattr(kept.memory, name) for name in fields}
    wanted = replace(old.memory, **changed)
    return [Step(action="change", label=old.label, candidate=Revised(wanted=wanted, fields=fields, at=at))]


def _ending(entry: Entry, at: datetime) -> Step:
    if entry.section in _LISTS:
        return Step(action="immutable", label=entry.label)
    return Step(action="end", label=entry.label, candidate=Forgot(memory=entry.memory.id, at=at))


def _placed(entry: Entry, place: float) -> Entry:
    if entry.section in (stores.STATES, FILE) or entry.identity[0] == "key":
        return entry
    data = dict(entry.memory.data)
    data[SPELLING] = {**data.get(SPELLING, {}), "place": place}
    return replace(entry, memory=replace(entry.memory, data=data))


def _place(document: dict[str, Any], entry: Entry) -> None:
    """Put a value where its store keeps it."""
    section, part = entry.section, entry.part
    if section in _LISTS:
        document[section].append(entry.value)
    elif entry.identity[0] == "key":
        holder = document[section]
        if part is not None:
            holder[part] = holder = holder.get(part) or {}
        if isinstance(holder, dict):
            holder[entry.identity[1]] = entry.value
        else:
            holder.append(entry.value)
    elif isinstance(document[section], list) or (part is None and not document[section]):
        document[section] = [*document[section], entry.value]
    else:
        name = "facts" if part is None else part
        holder = document[section].get(name) or []
        if isinstance(holder, dict):
            holder[entry.memory.id] = entry.value
        else:
            holder = [*holder, entry.value]
        document[section][name] = holder


def _lay_out(document: dict[str, Any], section: str, value: Mapping[str, Any]) -> None:
    fields = value.get("fields")
    if isinstance(fields, Mapping) and isinstance(document[section], dict):
        document[section] |= fields
    elif isinstance(fields, list):
        document[section] = list(fields)


def _without_absent(document: dict[str, Any], entries: Iterable[Entry]) -> None:
    for entry in entries:
        if entry.section == FILE and entry.identity[1] in document:
            for part in entry.value.get("absent", ()):
                if not document[entry.identity[1]].get(part):
                    document[entry.identity[1]].pop(part, None)


def _besides(section: str, given: Any) -> dict[str, Any]:
    """The fields of a section that become no memory."""
    if section not in (SEMANTIC, CORE, GKS):
        return {}
    if not isinstance(given, Mapping):
        return {"fields": []} if given == [] else {}
    fields = {part: value for part, value in given.items() if not _is_kept(section, part, value)}
    return {"fields": fields} if fields else {}


def _is_kept(section: str, part: str, value: Any) -> bool:
    if part in EMPTY.get(section, {}) and value == EMPTY[section][part]:
        return True
    if section == SEMANTIC:
        return part in stores.KNOWLEDGE and isinstance(value, list) and bool(value)
    usual = section == GKS or part in stores.CANON
    return usual and isinstance(value, list | Mapping) and bool(value)
