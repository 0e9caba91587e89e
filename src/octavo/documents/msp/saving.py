"""Loading and saving a master state: an account as one document, and a document as one commit."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from octavo.documents.msp import stores
from octavo.documents.msp.forms import MasterState, master_named
from octavo.documents.msp.items import ORIGINAL, canonical
from octavo.documents.msp.stores import (
    CORE,
    EPISODIC,
    FILE,
    GKS,
    LISTS,
    PROFILE,
    SEMANTIC,
    SENSORY,
    STATES,
    Entry,
)
from octavo.documents.transfer import ACCEPTED
from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.episodes import SPELLING, iso
from octavo.domain.memory import SHARED
from octavo.domain.verdicts import Verdict
from octavo.engine.account import Account
from octavo.engine.intake import Finished
from octavo.engine.reading import Reader
from octavo.errors import BadInput, Busy, Immutable, VersionConflict

# One thing that a new master state asks for: where, and the candidate (None: it can never change).
Step = tuple[str, Finished | None]

_ATTEMPTS = 20
_AGAIN = "load the master state again and make the change on that"
_MASTER = "master"
_DERIVED = ("version", "timestamp", "user_id", "metadata", *stores.SECTIONS)
_COUNTED = ("total_episodes", "total_sessions", "last_consolidation")


def master_state(account: Account, version: int | None = None) -> MasterState:
    """A version of an account as the seed's document."""
    number = account.version if version is None else version
    entries = shown(account.at(number))
    more: dict[str, Any] = files_of(entries).get(_MASTER, {})
    sessions = [s for s in account.sessions(scope=SHARED) if s.version <= number]
    time = _time_of(account, number)
    document = {
        **more.get("fields", {}),
        "version": number,
        "timestamp": time,
        "user_id": account.name,
        **assemble(entries),
        "metadata": {
            **more.get("metadata", {}),
            "total_episodes": sum(e.section == EPISODIC and e.memory.category != "event" for e in entries),
            "total_sessions": len(sessions),
            "last_consolidation": iso(sessions[-1].at) if sessions else time,
        },
    }
    return MasterState.on(number, document)


def save(account: Account, state: Mapping[str, Any], *, at: datetime) -> int:
    """Commit what differs from the version that the state was made on; returns the version it became."""
    document = master_named(state)
    _check_shape(document)
    head = account.version
    _check_base(account, document, getattr(state, "base", None), head)
    view = account.at(head)
    now = shown(view)
    new = stores.link_edges(list(stores.entries(document, at=at)), now)
    new += leftovers(document, _kept_frames(document, _frames_of(now)), at=at)
    steps = _difference(view, now, new, at=at, ends=lambda entry: _is_in(document, entry))
    immutable = [label for label, candidate in steps if candidate is None]
    if immutable:
        raise Immutable(
            f"saving the master state of {account.name!r} would change or drop {', '.join(immutable[:5])}",
            hint="episodes and sensory records are only appended; forget one by its id instead",
        )
    candidates = [candidate for _, candidate in steps if candidate is not None]
    closes = _session_of(account, candidates)
    if candidates:
        account.intake.write_many(candidates, cause="save master state", base=head, whole=True, closes=closes)
    version = account.version
    if closes is not None and account.policy.compression.mode != "manual":
        account.compress()
    return version


def bring_up(
    account: Account,
    document: Mapping[str, Any],
    extra: Sequence[Entry] = (),
    *,
    at: datetime,
    cause: str = "import",
) -> tuple[list[Step], list[Verdict], int]:
    """Bring an account up to a master state from elsewhere: steps, verdicts, how many entries it has.

    Somebody else's commit in between means looking again. What was accepted there is not weighed here again.
    """
    for _ in range(_ATTEMPTS):
        head = account.version
        view = account.at(head)
        now = shown(view)
        new = stores.link_edges(list(stores.entries(document, at=at, keep_ids=True)), now)
        steps = _difference(view, now, [*new, *extra], at=at, doubles=True)
        candidates = [candidate for _, candidate in steps if candidate is not None]
        try:
            verdicts = account.intake.write_many(candidates, cause=cause, base=head, skip=ACCEPTED)
            return steps, verdicts, len(new) + len(extra)
        except VersionConflict:
            continue
    raise Busy(f"{_ATTEMPTS} attempts to import into {account.name!r} all lost to other writers")


def shown(reader: Reader) -> list[Entry]:
    """Everything of an account that the documents can show, in their order: what all agents share."""
    entries = (stores.entry_of(memory) for memory in reader.memories(scope=SHARED))
    known = (entry for entry in entries if entry is not None)
    return sorted(known, key=lambda entry: (entry.place, entry.memory.at, entry.memory.id))


def assemble(entries: Sequence[Entry], *, exact: bool = False) -> dict[str, Any]:
    """The seven sections of entries in order; `exact` omits empty parts that an imported file had not."""
    frames = _frames_of(entries)
    document: dict[str, Any] = {
        EPISODIC: [],
        SENSORY: [],
        PROFILE: {},
        STATES: {},
    }
    for section in (SEMANTIC, CORE, GKS):
        held = copy.deepcopy(frames.get(section, {}))
        usual = {} if exact and section in frames else copy.deepcopy(stores.EMPTY.get(section, {}))
        document[section] = {**usual, **held} if isinstance(held, dict) else held
    for entry in entries:
        if entry.section != FILE:
            put(document, entry.section, entry)
    return document


def put(document: dict[str, Any], section: str, entry: Entry) -> None:
    """Put a value where a section of a document keeps it."""
    part, holder = entry.part, document[section]
    if entry.key is not None:
        if part is not None:
            holder[part] = holder.get(part) or {}
            holder = holder[part]
        if isinstance(holder, dict):
            holder[entry.key] = entry.value
        else:
            holder.append(entry.value)
    elif isinstance(holder, list):
        holder.append(entry.value)
    elif part is None and not holder:
        document[section] = [entry.value]
    else:
        name = "facts" if part is None else part
        if not isinstance(holder.get(name) or [], list | dict):
            name = f"more {name}"  # the document holds something else there, which stays
        holder[name] = values = holder.get(name) or []
        if isinstance(values, dict):
            values[entry.memory.id] = entry.value
        else:
            values.append(entry.value)


def files_of(entries: Iterable[Entry]) -> dict[str, Any]:
    """What the documents held besides their stores, by name."""
    return {str(entry.key): entry.value for entry in entries if entry.section == FILE}


def leftovers(document: Mapping[str, Any], frames: Mapping[str, Any], *, at: datetime) -> list[Entry]:
    """What a master state holds besides its stores: a frame a section, and the fields nobody knows."""
    kept = [stores.file(section, {ORIGINAL: value}, at=at) for section, value in frames.items()]
    more = {key: value for key, value in document.items() if key not in _DERIVED}
    metadata = document.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    extra = {key: value for key, value in metadata.items() if key not in _COUNTED}
    if more or extra:
        kept.append(stores.file(_MASTER, {"fields": more, "metadata": extra}, at=at))
    return kept


def _frames_of(entries: Iterable[Entry]) -> dict[str, Any]:
    """The frames of sections whose documents held more than their stores, or stood otherwise."""
    files = files_of(entries)
    return {name: files[name][ORIGINAL] for name in stores.SECTIONS if ORIGINAL in files.get(name, {})}


def _kept_frames(document: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """The frames of a document that is saved: as they stood, with what it holds besides its stores."""
    frames = {section: before[section] for section in (*LISTS, PROFILE) if section in before}
    for section in (SEMANTIC, CORE, GKS):
        value, old = document.get(section), before.get(section)
        if isinstance(value, list):
            frames |= {section: []} if value == [] or old == [] else {}
        elif value is not None:
            made, usual = stores.split(section, value)[0], stores.EMPTY.get(section, {})
            extra = {p for p in made if made[p] == value[p] and (p not in usual or made[p] != usual[p])}
            known = old if isinstance(old, Mapping) else {}
            if extra or old is not None:
                frames[section] = {p: v for p, v in made.items() if p in known or p in extra}
    return frames


def _difference(
    reader: Reader,
    now: Sequence[Entry],
    new: Sequence[Entry],
    *,
    at: datetime,
    ends: Callable[[Entry], bool] = lambda entry: False,
    doubles: bool = False,
) -> list[Step]:
    """What leads from one set of entries to another.

    `ends` says which missing ones are to end; `doubles` keeps entries of one name apart (import).
    """
    held = _numbered(now)
    unplaced = {(entry.section, entry.part) for entry in now if entry.place == float("inf")}
    steps: list[Step] = []
    counts = Counter[tuple[str, str | None]]()
    for key, entry in _numbered(new).items():
        store = (entry.section, entry.part)
        old = held.pop(key, None)
        if old is None:
            kept = entry if store in unplaced else _placed(entry, counts[store])
            steps.append((entry.label, _adding(reader, kept, key[-1] if doubles else 0, at)))
        elif canonical(old.value) != canonical(entry.value) or (
            entry.section == GKS and not set(entry.memory.links) <= set(old.memory.links)
        ):  # it says something else, or a node of the graph got a link that it had not
            steps.append((old.label, _changing(old, entry, at)))
        counts[store] += 1
    for entry in held.values():
        if ends(entry):
            forgot = None if entry.section in LISTS else Forgot(memory=entry.memory.id, at=at)
            steps.append((entry.label, forgot))
    return steps


def _numbered(entries: Iterable[Entry]) -> dict[tuple[Any, ...], Entry]:
    """Entries by what they are known by; equal ones are told apart by their order."""
    seen: Counter[tuple[Any, ...]] = Counter()
    numbered = {}
    for entry in entries:
        key = (entry.section, entry.part, *entry.identity)
        numbered[*key, seen[key]] = entry
        seen[key] += 1
    return numbered


def _adding(reader: Reader, entry: Entry, ordinal: int, at: datetime) -> Finished:
    memory = entry.memory
    if entry.section == STATES:
        return SetState(id="", name=str(entry.key), data=memory.data, at=at)
    if ordinal and memory.topic is not None:
        memory = replace(memory, topic=None)  # one memory holds a topic; its double stands beside it
    holder = reader.get(memory.id) if memory.id and not ordinal else None
    is_taken = holder is not None and (holder.kind != "episode" or holder.scope != SHARED)
    if memory.id and (ordinal or is_taken):
        memory = replace(memory, id="", data={"episode_id": memory.id, **memory.data})
    return Wrote(memory=memory, alias=entry.alias)


def _changing(old: Entry, new: Entry, at: datetime) -> Finished | None:
    if old.section in LISTS:
        return None
    if old.section == STATES:
        return SetState(id="", name=str(new.key), data=new.memory.data, at=at)
    fields = ("text", "data", "confidence", *(("links",) if new.memory.links else ()))
    kept = _placed(new, old.place) if old.place != float("inf") else new
    revised = replace(old.memory, **{name: getattr(kept.memory, name) for name in fields})
    return Revised(wanted=revised, fields=fields, at=at)


def _placed(entry: Entry, place: float) -> Entry:
    if entry.key is not None:
        return entry
    data = dict(entry.memory.data)
    data[SPELLING] = {**data.get(SPELLING, {}), "place": place}
    return replace(entry, memory=replace(entry.memory, data=data))


def _session_of(account: Account, candidates: Sequence[Finished]) -> str | None:
    """The open sandbox whose episodes are saved by hand, as step 4 of the seed does; it is a session then."""
    written = [c.memory for c in candidates if isinstance(c, Wrote) and c.memory.category != "sensory"]
    named = {memory.sandbox for memory in written if memory.kind == "episode"}
    held = {info.id for info in account.sandboxes() if info.scope == SHARED} & named if named else set()
    held -= {session.sandbox for session in account.sessions(scope=SHARED)} if held else set()
    return held.pop() if len(held) == 1 else None


def _check_base(account: Account, document: Mapping[str, Any], base: int | None, head: int) -> None:
    """Whether the state was made on the newest version; a plain dict is known by version and timestamp."""
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise BadInput(f"a master state's version is {version!r}, not a number", hint=_AGAIN)
    if head == 0 and base in (None, 0, version - 1):
        return  # the first state of an account; the document may come from elsewhere
    if base is None:
        is_loaded = version == head and document.get("timestamp") == _time_of(account, head)
        base = head if is_loaded or version == head + 1 else version
        if version == head and not is_loaded:
            raise VersionConflict(
                f"this is not the version {head} of {account.name!r} as it was loaded", hint=_AGAIN
            )
    if base != head:
        raise VersionConflict(
            f"the master state of {account.name!r} was made on version {base}, the account is at {head}",
            hint=_AGAIN,
        )


def _check_shape(document: Mapping[str, Any]) -> None:
    for section, shapes in stores.SECTIONS.items():
        if section in document and not isinstance(document[section], shapes):
            right = " or ".join("a list" if shape is list else "an object" for shape in shapes)
            raise BadInput(f"{section} is {type(document[section]).__name__}, not {right}")
    for name, value in document.get(STATES, {}).items():
        if not isinstance(value, Mapping):
            raise BadInput(f"state {name!r} is {type(value).__name__}, not an object")


def _is_in(document: Mapping[str, Any], entry: Entry) -> bool:
    """Whether the document speaks of the place where an entry stands; what it leaves out stays."""
    if entry.section == FILE:
        return entry.key in stores.SECTIONS and entry.key in document
    section = document.get(entry.section)
    if entry.section in (SEMANTIC, CORE):
        return isinstance(section, Mapping) and entry.part in section
    return section is not None


def _time_of(account: Account, version: int) -> str | None:
    if version == 0:
        return None
    return iso(account.versions(after=version - 1, limit=1)[0].at)
