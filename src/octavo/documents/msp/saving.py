"""Loading and saving a master state: an account as one document, and a document as one commit.

What a document holds besides its values, its frame, is kept as it came, in a register of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.msp import forms, stores
from octavo.documents.msp.forms import (
    CORE,
    EPISODIC,
    GKS,
    LISTS,
    SEMANTIC,
    STATES,
    MasterState,
    canonical,
)
from octavo.documents.msp.stores import Entry
from octavo.documents.transfer import Tally
from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.episodes import SPELLING, iso
from octavo.domain.memory import SHARED, Memory
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
    view = account.at(number)
    entries = shown(view)
    document = _document(entries, frame_of(view)[0])
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
    now, (frame, folder) = shown(view), frame_of(view)
    steps, _ = _steps(view, now, document, at=at, is_import=False)
    immutable = [label for label, candidate in steps if candidate is None]
    if immutable:
        raise Immutable(
            f"saving the master state of {account.name!r} would change or drop {', '.join(immutable[:5])}",
            hint="episodes and sensory records are only appended; forget one by its id instead",
        )
    candidates = [candidate for _, candidate in steps if candidate is not None]
    before, after = _frame(_document(now, frame)), _frame(document)
    if changed := {name: held for name, held in after.items() if held != before.get(name, ...)}:
        candidates.append(Wrote(memory=master_file({**frame, **changed}, folder, at=at)))
    closes = _session_of(account, candidates)
    if candidates:
        account.intake.write_many(candidates, cause="save master state", base=head, whole=True, closes=closes)
    version = account.version
    if closes is not None and account.policy.compression.mode != "manual":
        account.compress()
    return version


def bring_up(
    account: Account, document: Mapping[str, Any], tally: Tally, *, at: datetime, files: Sequence[Memory] = ()
) -> None:
    """Bring an account up to a master state from elsewhere, in one commit, and tell what became of it.

    Somebody else's commit in between means looking again. What was accepted there is not weighed here again.
    """
    for _ in range(_ATTEMPTS):
        view = account.at(account.version)
        steps, unchanged = _steps(view, shown(view), document, at=at, is_import=True)
        rows = [(label, candidate) for label, candidate in steps if candidate is not None]
        rows += [(trees.place_of(memory), Wrote(memory=memory)) for memory in files]
        try:
            tally.write(account, "msp", rows, base=view.version)
        except VersionConflict:
            continue
        tally.unchanged += unchanged
        for label in [label for label, candidate in steps if candidate is None]:
            tally.leave_out(label, "it is there already and never changes")
        return
    raise Busy(f"{_ATTEMPTS} attempts to import into {account.name!r} all lost to other writers")


def shown(reader: Reader) -> list[Entry]:
    """Everything of an account that the documents can show, in their order: what all agents share."""
    entries = (stores.entry_of(memory) for memory in reader.memories(scope=SHARED))
    known = (entry for entry in entries if entry is not None)
    return sorted(known, key=lambda entry: (entry.place, entry.memory.at, entry.memory.id))


def master_file(frame: Mapping[str, Any], folder: str | None, *, at: datetime) -> Memory:
    """The frame as it is kept, with the folder that its tree stood in if it came as one."""
    return trees.keep(MASTER, {forms.ORIGINAL: frame, **({"folder": folder} if folder else {})}, at=at)


def frame_of(reader: Reader) -> tuple[dict[str, Any], str | None]:
    """The frame that is kept, and the folder of its tree."""
    master = trees.kept(reader).get(MASTER, {})
    return dict(master.get(forms.ORIGINAL, {})), master.get("folder")


def _document(entries: Sequence[Entry], frame: Mapping[str, Any]) -> dict[str, Any]:
    """The master state of entries in their order, without what the account counts."""
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


def _steps(
    reader: Reader,
    now: Sequence[Entry],
    document: Mapping[str, Any],
    *,
    at: datetime,
    is_import: bool = False,
) -> tuple[list[Step], int]:
    """What leads from the entries of a version to a master state, and how many of its values are there.

    An import ends nothing, and keeps entries of one name apart.
    """
    ends = {name: e.memory.id for e in now for name in (e.memory.id, stores.node_name(e)) if name}
    new, _ = stores.link([*stores.entries(document, at=at, keep_ids=is_import)], ends.get)
    held = _numbered(now)
    unplaced = {(entry.section, entry.part) for entry in now if entry.place == float("inf")}
    steps: list[Step] = []
    counts = Counter[tuple[str, str | None]]()
    for key, entry in _numbered(new).items():
        store, old = (entry.section, entry.part), held.pop(key, None)
        # A node of the graph that got a link which it had not is another one, too.
        is_same = old is not None and (
            canonical(old.value) == canonical(entry.value)
            and (entry.section != GKS or set(entry.memory.links) <= set(old.memory.links))
        )
        if not is_same:
            place = old.place if old else float("inf") if store in unplaced else counts[store]
            ordinal = key[-1] if is_import else 0
            steps.append((entry.label, _step(reader, old, _placed(entry, place), ordinal, at)))
        counts[store] += 1
    unchanged = len(new) - len(steps)
    for entry in held.values():
        if not is_import and _is_in(document, entry):
            forgot = None if entry.section in LISTS else Forgot(memory=entry.memory.id, at=at)
            steps.append((entry.label, forgot))
    return steps, unchanged


def _numbered(entries: Iterable[Entry]) -> dict[tuple[Any, ...], Entry]:
    """Entries of values by what they are known by; equal ones are told apart by their order."""
    seen: Counter[tuple[Any, ...]] = Counter()
    numbered = {}
    for entry in entries:
        key = (entry.section, entry.part, *entry.identity)
        numbered[*key, seen[key]] = entry
        seen[key] += 1
    return numbered


def _step(reader: Reader, old: Entry | None, entry: Entry, ordinal: int, at: datetime) -> Finished | None:
    """The candidate that adds an entry, or makes one of an older, if that can change."""
    memory = entry.memory
    if entry.section == STATES:
        return SetState(id="", name=str(entry.key), data=memory.data, at=at)
    if old is not None:
        fields = ("text", "data", "confidence", *(("links",) if memory.links else ()))
        revised = replace(old.memory, **{name: getattr(memory, name) for name in fields})
        return None if entry.section in LISTS else Revised(wanted=revised, fields=fields, at=at)
    if ordinal and memory.topic is not None:
        memory = replace(memory, topic=None)  # one memory holds a topic; its double stands beside it
    if entry.section == EPISODIC and memory.id:
        holder = reader.get(memory.id)
        if ordinal or (holder is not None and (holder.kind != "episode" or holder.scope != SHARED)):
            memory = replace(memory, id="", data={"episode_id": memory.id, **memory.data})
    return Wrote(memory=memory, alias=entry.alias)


def _placed(entry: Entry, place: float) -> Entry:
    if entry.key is not None or place == float("inf"):
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
        if section in document:
            trees.must_be(section, document[section], *shapes)
    for name, value in document.get(STATES, {}).items():
        trees.must_be(f"state {name!r}", value, Mapping)


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
