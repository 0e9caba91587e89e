"""Loading and saving a master state: an account as one document, and a document as one commit."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED
from octavo.engine.account import Account
from octavo.engine.reading import Reader
from octavo.errors import BadInput, Immutable, VersionConflict
from octavo.interfaces.documents.msp import stores
from octavo.interfaces.documents.msp.forms import MasterState, master_named
from octavo.interfaces.documents.msp.master_state import MASTER, assemble, difference, leftovers, shown
from octavo.interfaces.documents.msp.stores import CORE, EPISODIC, FILE, SECTIONS, SEMANTIC, SENSORY, Entry

_AGAIN = "load the master state again and make the change on that"


def master_state(account: Account, version: int | None = None) -> MasterState:
    """A version of an account as the seed's document."""
    number = account.version if version is None else version
    found = shown(account.at(number))
    more: dict[str, Any] = next((e.value for e in found if (e.section, e.identity[1]) == (FILE, MASTER)), {})
    document = {
        **more.get("fields", {}),
        "version": number,
        "timestamp": _time_of(account, number),
        "user_id": account.name,
        **assemble(found),
        "metadata": {**more.get("metadata", {}), **_counted(account, found, number)},
    }
    return MasterState.on(number, document)


def save(account: Account, state: Mapping[str, Any], *, at: datetime) -> int:
    """Commit what differs from the version that the state was made on; returns the version it became."""
    document = master_named(state)
    _check_shape(document)
    head = account.version
    _check_base(account, document, getattr(state, "base", None), head)
    now = shown(account.at(head)) if head else []
    wanted = stores.link_relationships(list(stores.entries(document, at=at)), known_ends(now))
    wanted += leftovers(document, _noted(now), at=at)
    steps = difference(
        now, wanted, at=at, ends=lambda entry: _is_in(document, entry), is_taken=taken_ids(account.at(head))
    )
    changed = [step.label for step in steps if step.action == "immutable"]
    if changed:
        raise Immutable(
            f"saving the master state of {account.name!r} would change or drop {', '.join(changed[:5])}",
            hint="episodes and sensory records are only appended; forget one by its id instead",
        )
    candidates = [step.candidate for step in steps if step.candidate is not None]
    if candidates:
        account.write_many(candidates, cause="save master state", base=head, whole=True)
    return account.version


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


def _noted(now: Sequence[Entry]) -> dict[str, dict[str, Any]]:
    """How the files of an import stood, by section; saving a state does not change that."""
    kept = ("frame", "absent")
    noted = {e.identity[1]: {k: e.value[k] for k in kept if k in e.value} for e in now if e.section == FILE}
    return {section: value for section, value in noted.items() if value and section in SECTIONS}


def _check_shape(document: Mapping[str, Any]) -> None:
    shapes = {EPISODIC: list, SENSORY: list, SEMANTIC: Mapping, CORE: Mapping}
    shapes |= {stores.PROFILE: Mapping, stores.STATES: Mapping}
    for section, shape in shapes.items():
        if section in document and not isinstance(document[section], shape):
            wanted = "a list" if shape is list else "an object"
            raise BadInput(f"{section} is {type(document[section]).__name__}, not {wanted}")
    for name, value in document.get(stores.STATES, {}).items():
        if not isinstance(value, Mapping):
            raise BadInput(f"state {name!r} is {type(value).__name__}, not an object")
    gks = document.get(stores.GKS, {})
    if not isinstance(gks, list | Mapping):
        raise BadInput(f"{stores.GKS} is {type(gks).__name__}, not an object or a list")


def _is_in(document: Mapping[str, Any], entry: Entry) -> bool:
    """Whether the document speaks of the place where an entry stands; what it leaves out stays."""
    if entry.section == FILE:
        name = entry.identity[1]
        return name in SECTIONS and name in document
    given = document.get(entry.section)
    if entry.section in (SEMANTIC, CORE):
        return isinstance(given, Mapping) and entry.part in given
    return given is not None


def known_ends(now: Sequence[Entry]) -> Callable[[str], str | None]:
    """Look up the memory of a concept's name, or of an id, among what is there."""
    names = {stores.concept_name(e.value): e.memory.id for e in now if e.part == "concepts"}
    ids = {e.memory.id for e in now}
    return lambda end: names.get(end) or (end if end in ids else None)


def taken_ids(reader: Reader) -> Callable[[str], bool]:
    """Whether an id belongs to a memory that no episode of this name is."""

    def is_taken(id_: str) -> bool:
        memory = reader.get(id_)
        return memory is not None and (memory.kind != "episode" or memory.scope != SHARED)

    return is_taken


def _time_of(account: Account, version: int) -> str | None:
    if version == 0:
        return None
    return iso(account.versions(after=version - 1, limit=1)[0].at)


def _counted(account: Account, found: Sequence[Entry], version: int) -> dict[str, Any]:
    sessions = [s for s in account.sessions(scope=SHARED) if s.version <= version]
    return {
        "total_episodes": sum(1 for e in found if e.section == EPISODIC and e.memory.category != "event"),
        "total_sessions": len(sessions),
        "last_consolidation": iso(sessions[-1].at) if sessions else _time_of(account, version),
    }
