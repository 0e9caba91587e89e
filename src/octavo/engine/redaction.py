"""Redaction: a text is erased from every version and every derived file, and its hash stays.

Committing the redaction masks reads at once; the sweep then erases the bytes and can be resumed at any point.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace

from octavo.domain import buffer as entries
from octavo.domain.memory import Change, Clash, Decision, Memory, Merge, Proposal, Redaction, Refusal
from octavo.domain.review import REVIEWED
from octavo.domain.rules import tombstone
from octavo.domain.text import key_of
from octavo.engine.attachments import Attachments
from octavo.engine.reading import Reader
from octavo.engine.spine import Plan, Spine
from octavo.engine.writing import Writer
from octavo.errors import NotFound, SandboxBusy
from octavo.storage import attached, buffers, codec, refusals
from octavo.storage.codec import REDACTED
from octavo.storage.index import clear
from octavo.storage.ledger import Version
from octavo.storage.state_view import DbView
from octavo.storage.stores.local import LocalStore

_SPOKEN = ("proposal", "refusal", "merge", "clash")
_DERIVED = ("core", "sphere", "assembly")


@dataclass(frozen=True, slots=True, kw_only=True)
class Redacted:
    """What a redaction did: versions rewritten, derived memories ended, and what still holds the text.

    `waiting` names sandboxes whose owners hold their buffers; the sweep ends when they are done.
    `unreached` says which files beside the account could not be cleaned, and why; it begins when they can.
    `also_in` names other live memories that say it too: they are not derived, so a person decides.
    """

    memory: str
    versions: tuple[int, ...]
    derived: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    also_in: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Swept:
    """What a sweep did: versions rewritten, sandboxes that others hold, files that could not be cleaned."""

    versions: tuple[int, ...] = ()
    waiting: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()


def redact(spine: Spine, reader: Reader, writer: Writer, id_: str, reason: str) -> Redacted:
    """Erase a memory, dead or alive, and everything derived from it that repeats it."""
    spine.head()
    history = spine.state.history(id_)
    if not history or not reader.sees(history[0][1].scope):
        raise NotFound(f"there is no memory {id_!r} to redact")
    texts = _texts([memory for _, memory in history])
    derived: list[str] = []
    also: list[str] = []

    def decide(view: DbView) -> Plan:
        changes: list[Change] = []
        current = view.get(id_)
        if current is not None and not current.gone:
            changes.append(tombstone(current, writer.actor))
        derived[:], also[:] = _derived(spine, id_), _repeated(view, id_, texts)
        live = [m for d in derived if (m := view.get(d)) and not m.gone]
        changes += [tombstone(memory, writer.actor) for memory in live]
        changes += _closed(view, {id_, *derived}, texts, writer)
        keys = sorted(spine.keyed(key_of(text)) for text in texts) or [spine.keyed(f"id {id_}")]
        changes += [_line(id_, key, reason, writer) for key in keys]
        changes += [_line(d, spine.keyed(f"id {d}"), reason, writer) for d in derived]
        return Plan(changes=changes, cause=f"redact {id_}", actor=writer.actor)

    spine.commit(decide)
    done = sweep(spine)
    return Redacted(
        memory=id_,
        versions=done.versions,
        derived=tuple(derived),
        waiting=done.waiting,
        unreached=done.unreached,
        also_in=tuple(also),
    )


def unswept(spine: Spine) -> dict[Redaction, int]:
    """Redactions whose bytes may still be somewhere, and the version each came in."""
    latest: dict[tuple[str, str], tuple[Redaction, int]] = {}
    for version, change in reversed(spine.state.others("redaction")):
        if isinstance(change, Redaction):
            latest[change.memory, change.key] = (change, version)
    return {redaction: version for redaction, version in latest.values() if not redaction.swept}


def unclean(spine: Spine, pending: Collection[Redaction]) -> list[str]:
    """The files beside the account that still hold what was erased, or that cannot be looked into."""
    return Attachments(spine).unclean(pending) if spine.store.exists(attached.KEY) else []


def sweep(spine: Spine) -> Swept:
    """Erase what the redactions name, wherever it is; what cannot be done now is left for the next time."""
    pending = unswept(spine)
    if not pending:
        return Swept()
    # A core may be made anew under its id before the sweep ends: only what was there is erased.
    upto = {redaction.memory: version for redaction, version in pending.items()}
    keys = {redaction.key for redaction in pending}

    def is_erased(text: str) -> bool:
        return spine.keyed(key_of(text)) in keys

    def holds(change: Change) -> bool:
        return _holds(change, upto.keys(), is_erased)

    versions = {v for id_, last in upto.items() for v in spine.state.versions_of(id_) if v <= last}
    versions |= {v for id_ in upto for v in spine.state.mentions_of(id_)}
    spoken = [(v, line) for v, line, change in spine.state.spoken(_SPOKEN) if holds(change)]
    versions |= {version for version, _ in spoken}
    # First, because a piece of a text in a torn line is known only while the ledger still has the text.
    unreached = _sweep_attached(spine, pending, versions)
    if unreached:
        return Swept(unreached=tuple(unreached))
    for number in sorted(versions):
        _erase_lines(spine, spine.ledger.read(number), holds)
    for version, line in spoken:  # behind the ledger: by them an interrupted sweep finds its versions again
        spine.state.erase_other(version, line)
    waiting = _sweep_buffers(spine, upto.keys(), is_erased)
    _sweep_notes(spine, upto.keys(), holds)
    if isinstance(spine.store, LocalStore):
        spine.store.clear_leftovers()
    spine.state.scrub()
    if spine.index.exists():
        clear(spine.index)  # made anew from the ledger by the next recall
    if not waiting:
        done = [replace(redaction, swept=True) for redaction in pending]
        spine.commit(lambda view: Plan(changes=done, cause="swept", actor="system"))
    return Swept(versions=tuple(sorted(versions)), waiting=tuple(waiting))


def _sweep_attached(spine: Spine, pending: Collection[Redaction], versions: Collection[int]) -> list[str]:
    """Take the text out of the files beside the account; returns what could not be cleaned, and why."""
    if not spine.store.exists(attached.KEY):
        return []
    ids = {redaction.memory for redaction in pending}
    texts: set[str] = set()
    for number in sorted(versions):
        changes = spine.ledger.read(number).changes()
        texts |= _texts([change for change in changes if isinstance(change, Memory) and change.id in ids])
    return Attachments(spine).sweep(pending, texts)


def _sweep_notes(spine: Spine, ids: Collection[str], holds: Callable[[Change], bool]) -> None:
    """Take the text out of the log of refusals and out of the archive."""
    noted = refusals.read(spine.store)
    kept = [refusal for refusal in noted if not holds(refusal)]
    if len(kept) < len(noted):
        refusals.replace(spine.store, kept)
    for key in spine.store.list("archive/"):
        lines = (spine.store.read(key) or b"").splitlines(keepends=True)
        clean = [line for line in lines if codec.decode_json(line)["id"] not in ids]
        if len(clean) < len(lines):
            spine.store.replace(key, b"".join(clean))


def _texts(memories: list[Memory]) -> set[str]:
    """Every wording the memory ever had, turn by turn for an episode."""
    found = {text for m in memories for text in (m.text, *(t.text for t in m.turns))}
    return {text for text in found if key_of(text) and text != REDACTED}


def _line(id_: str, key: str, reason: str, writer: Writer) -> Redaction:
    return Redaction(memory=id_, key=key, by=writer.actor, at=writer.spine.now(), reason=reason)


def _derived(spine: Spine, id_: str) -> list[str]:
    """Every core, sphere, assembly and belief that was ever made from a memory, and from those in turn."""
    found: list[str] = []
    queue = [id_]
    while queue:
        source = queue.pop()
        made = spine.state.made_from(source, _DERIVED)
        made += [m.id for m in spine.head().referring(source) if m.category == "worldview"]
        fresh = [d for d in dict.fromkeys(made) if d not in found]
        found += fresh
        queue += fresh
    return sorted(found)


def _repeated(view: DbView, id_: str, texts: set[str]) -> list[str]:
    """Other live memories that say exactly the same."""
    folded = {key_of(text) for text in texts}
    found: set[str] = set()
    for text in texts:
        for kind in REVIEWED:
            for scope in view.scopes():
                alike = view.alike(kind, scope, text)
                found |= {m.id for m in alike if key_of(m.text) in folded and m.id != id_}
    return sorted(found)


def _closed(view: DbView, ids: Collection[str], texts: set[str], writer: Writer) -> list[Change]:
    """Waiting proposals that would bring the text back lapse."""
    folded = {key_of(text) for text in texts}
    return [
        Decision(proposal=p.id, outcome="expired", by=writer.actor, at=writer.spine.now())
        for p in view.proposals()
        if _speaks_of(p.memory, ids) or key_of(p.memory.text) in folded
    ]


def _speaks_of(memory: Memory, ids: Collection[str]) -> bool:
    """Whether a proposed memory is one of these, or a belief that rests on one."""
    return memory.id in ids or any(id_ in ids for id_ in memory.linked("evidence"))


def _holds(change: Change, ids: Collection[str], is_erased: Callable[[str], bool]) -> bool:
    """Whether a change must lose its body."""
    match change:
        case Memory():
            return change.id in ids
        case Merge():
            return change.into in ids or change.id in ids or is_erased(change.text)
        case Refusal():
            return change.id in ids or is_erased(change.text or "")
        case Proposal():
            return _speaks_of(change.memory, ids) or is_erased(change.memory.text)
        case Clash():
            return change.memory in ids
        case _:
            return False


def _erase_lines(spine: Spine, version: Version, holds: Callable[[Change], bool]) -> None:
    lines = list(version.lines)
    for position, line in enumerate(lines):
        if line.body_bytes() is not None and holds(version.change(position)):
            lines[position] = line.erased()
    if lines != version.lines:
        spine.ledger.rewrite(version.header.version, lines)


def _sweep_buffers(spine: Spine, ids: Collection[str], is_erased: Callable[[str], bool]) -> list[str]:
    """Mask the text in open sandboxes; returns those whose owners hold them."""
    waiting = []
    for name in buffers.names(spine.store):
        try:
            found = buffers.read(spine.store, name)
        except NotFound:
            continue  # its owner closed it meanwhile
        masked = [_masked(entry, ids, is_erased) for entry in found.entries]
        if masked == list(found.entries):
            continue
        try:
            buffers.rewrite(spine.store, name, lambda entry: _masked(entry, ids, is_erased))
        except SandboxBusy:
            waiting.append(name)
        except NotFound:
            continue  # likewise
    return waiting


def _masked(entry: entries.Entry, ids: Collection[str], is_erased: Callable[[str], bool]) -> entries.Entry:
    match entry:
        case entries.Spoke() if is_erased(entry.turn.text):
            return replace(entry, turn=replace(entry.turn, text=REDACTED, data={}))
        case entries.Wrote() if is_erased(entry.memory.text) or any(
            is_erased(turn.text) for turn in entry.memory.turns
        ):
            bare = replace(entry.memory, text=REDACTED, turns=(), data={}, topic=None, tags=())
            return replace(entry, memory=bare)
        case entries.Revised() if entry.wanted.id in ids or is_erased(entry.wanted.text):
            bare = replace(entry.wanted, text=REDACTED, turns=(), data={}, topic=None, tags=())
            return replace(entry, wanted=bare)
        case _:
            return entry
