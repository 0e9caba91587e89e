"""Loading and saving a master state: an account as one document, and a document as one commit.

What a document holds besides its values, its frame, is kept as it came, in a register of its own.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.msp import forms, stores
from octavo.documents.msp.forms import (
    CORE,
    EPISODIC,
    FILE,
    GKS,
    LISTS,
    SEMANTIC,
    STATES,
    MasterState,
    canonical,
)
from octavo.documents.msp.stores import Entry
from octavo.documents.transfer import ACCEPTED
from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.episodes import SPELLING, iso
from octavo.domain.memory import SHARED, Memory
from octavo.domain.verdicts import Verdict
from octavo.engine.account import Account
from octavo.engine.intake import Finished
from octavo.engine.reading import Reader
from octavo.errors import BadInput, Busy, Immutable, VersionConflict

# One thing that a new master state asks for: where, and the candidate (None: it can never change).
Step = tuple[str, Finished | None]

MASTER = "master"  # the file that holds the frame
_ATTEMPTS = 20
_AGAIN = "load the master state again and make the change on that"
_COUNTED = ("total_episodes", "total_sessions", "last_consolidation")


def master_state(account: Account, version: int | None = None) -> MasterState:
    """A version of an account as the seed's document."""
    number = account.version if version is None else version
    entries = shown(account.at(number))
    document = _document(entries)
    sessions = [s for s in account.sessions(scope=SHARED) if s.version <= number]
    time = _time_of(account, number)
    metadata = {
        **document.pop("metadata", {}),
        "total_episodes": sum(e.section == EPISODIC and e.memory.category != "event" for e in entries),
        "total_sessions": len(sessions),
        "last_consolidation": iso(sessions[-1].at) if sessions else time,
    }
    counted = {"version": number, "timestamp": time, "user_id": account.name}
    return MasterState.on(number, {**counted, **document, "metadata": metadata})


def save(account: Account, state: Mapping[str, Any], *, at: datetime) -> int:
    """Commit what differs from the version that the state was made on; returns the version it became."""
    document = forms.master_named(state)
    check_shape(document)
    head = account.version
    _check_base(account, document, getattr(state, "base", None), head)
    view = account.at(head)
    now = shown(view)
    new = _linked(stores.entries(document, at=at), now)
    steps = _difference(view, now, new, at=at, ends=lambda entry: _is_in(document, entry))
    immutable = [label for label, candidate in steps if candidate is None]
    if immutable:
        raise Immutable(
            f"saving the master state of {account.name!r} would change or drop {', '.join(immutable[:5])}",
            hint="episodes and sensory records are only appended; forget one by its id instead",
        )
    candidates = [candidate for _, candidate in steps if candidate is not None]
    before, after = _frame(_document(now)), _frame(document)
    if changed := {name: held for name, held in after.items() if held != before.get(name, ...)}:
        frame, folder = frame_of(now)
        candidates.append(Wrote(memory=master_file({**frame, **changed}, folder, at=at)))
    closes = _session_of(account, candidates)
    if candidates:
        account.intake.write_many(candidates, cause="save master state", base=head, whole=True, closes=closes)
    version = account.version
    if closes is not None and account.policy.compression.mode != "manual":
        account.compress()
    return version


def bring_up(
    account: Account, document: Mapping[str, Any], *, at: datetime, files: Sequence[Memory] = ()
) -> tuple[list[Step], list[Verdict], int]:
    """Bring an account up to a master state from elsewhere: steps, verdicts, how many values are there.

    Somebody else's commit in between means looking again. What was accepted there is not weighed here again.
    """
    for _ in range(_ATTEMPTS):
        head = account.version
        view = account.at(head)
        now = shown(view)
        new = _linked(stores.entries(document, at=at, keep_ids=True), now)
        steps = _difference(view, now, new, at=at, doubles=True)
        unchanged = len(new) - len(steps)
        steps += [(place_of(memory), Wrote(memory=memory)) for memory in files]
        candidates = [candidate for _, candidate in steps if candidate is not None]
        try:
            verdicts = account.intake.write_many(candidates, cause="import msp", base=head, skip=ACCEPTED)
            return steps, verdicts, unchanged
        except VersionConflict:
            continue
    raise Busy(f"{_ATTEMPTS} attempts to import into {account.name!r} all lost to other writers")


def shown(reader: Reader) -> list[Entry]:
    """Everything of an account that the documents can show, in their order: what all agents share."""
    entries = (stores.entry_of(memory) for memory in reader.memories(scope=SHARED))
    known = (entry for entry in entries if entry is not None)
    return sorted(known, key=lambda entry: (entry.place, entry.memory.at, entry.memory.id))


def files_of(entries: Iterable[Entry]) -> dict[str, Any]:
    """What the documents held besides their values, by name."""
    return {str(entry.key): entry.value for entry in entries if entry.section == FILE}


def file(name: str, value: Mapping[str, Any], *, at: datetime) -> Memory:
    """What documents hold besides their values: a register of category `file` without a text."""
    return stores.element(FILE, None, name, value, at=at).memory


def kept_file(home: str, place: str, data: bytes, *, at: datetime) -> Memory:
    """A file nobody knows, with its place in parts: a whole path can look like a token to the gate."""
    name = f"{home}{hashlib.sha256(place.encode()).hexdigest()[:32]}"
    return file(name, {"path": place.split("/"), **trees.kept_bytes(data)}, at=at)


def kept_files(home: str, files: Mapping[str, Any]) -> dict[str, bytes]:
    """The files nobody knows that were kept, by their places."""
    kept = [value for name, value in files.items() if name.startswith(home) and "path" in value]
    return {"/".join(map(str, value["path"])): trees.bytes_of(value) for value in kept}


def place_of(memory: Memory) -> str:
    """Where a file that is kept stood, for people."""
    return "/".join(memory.data.get("path") or [memory.data["name"]])


def master_file(frame: Mapping[str, Any], folder: str | None, *, at: datetime) -> Memory:
    """The frame as a file, with the folder that its tree stood in if it came as one."""
    return file(MASTER, {forms.ORIGINAL: frame, **({"folder": folder} if folder else {})}, at=at)


def frame_of(entries: Iterable[Entry]) -> tuple[dict[str, Any], str | None]:
    """The frame that is kept, and the folder of its tree."""
    master = files_of(entries).get(MASTER, {})
    return dict(master.get(forms.ORIGINAL, {})), master.get("folder")


def _document(entries: Sequence[Entry]) -> dict[str, Any]:
    """The master state of entries in their order, without what the account counts."""
    frame, _ = frame_of(entries)
    usual = {
        section: {**parts, **frame.get(section, {})}
        for section, parts in forms.EMPTY.items()
        if isinstance(frame.get(section, {}), Mapping)
    }
    return {**frame, **stores.lay({**frame, **usual}, entries)}


def _frame(document: Mapping[str, Any]) -> dict[str, Any]:
    """What a master state holds besides its values and what the account counts."""
    frame = stores.lift(document)[0]
    metadata = frame.setdefault("metadata", {})
    if isinstance(metadata, Mapping):
        frame["metadata"] = {key: value for key, value in metadata.items() if key not in _COUNTED}
    return {key: held for key, held in frame.items() if key not in ("version", "timestamp", "user_id")}


def _linked(new: Iterable[Entry], now: Iterable[Entry]) -> list[Entry]:
    """Entries with links to the concepts, nodes and memories at the ends of edges."""
    ends: dict[str, str] = {}
    for entry in now:
        ends[entry.memory.id] = entry.memory.id
        if name := stores.node_name(entry):
            ends[name] = entry.memory.id
    return stores.link(list(new), ends.get)[0]


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
    """Entries of values by what they are known by; equal ones are told apart by their order."""
    seen: Counter[tuple[Any, ...]] = Counter()
    numbered = {}
    for entry in entries:
        if entry.section != FILE:
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
    if entry.section == EPISODIC and memory.id:
        holder = reader.get(memory.id)
        if ordinal or (holder is not None and (holder.kind != "episode" or holder.scope != SHARED)):
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
    """Raise unless the state was made on the newest version, or is the first one of an account.

    A plain object says nothing of that: it is known by its version and timestamp, or by the next version.
    """
    version = document.get("version")
    if isinstance(version, bool) or not isinstance(version, int):
        raise BadInput(f"a master state's version is {version!r}, not a number", hint=_AGAIN)
    if base is None:
        is_loaded = version == head and document.get("timestamp") == _time_of(account, head)
        base = head if is_loaded or version == head + 1 else version - 1
    if head and base != head:
        raise VersionConflict(
            f"the master state of {account.name!r} was made on version {base}, the account is at {head}",
            hint=_AGAIN,
        )


def check_shape(document: Mapping[str, Any]) -> None:
    """Raise if a section of a master state has another shape than it has in the document."""
    for section, shapes in forms.SECTIONS.items():
        if section in document and not isinstance(document[section], shapes):
            right = " or ".join("a list" if shape is list else "an object" for shape in shapes)
            raise BadInput(f"{section} is {type(document[section]).__name__}, not {right}")
    for name, value in document.get(STATES, {}).items():
        if not isinstance(value, Mapping):
            raise BadInput(f"state {name!r} is {type(value).__name__}, not an object")


def _is_in(document: Mapping[str, Any], entry: Entry) -> bool:
    """Whether the document speaks of the place where an entry stands; what it leaves out stays."""
    section = document.get(entry.section)
    if entry.section in (SEMANTIC, CORE):
        return isinstance(section, Mapping) and entry.part in section
    return section is not None


def _time_of(account: Account, version: int) -> str | None:
    if version == 0:
        return None
    return iso(account.versions(after=version - 1, limit=1)[0].at)
