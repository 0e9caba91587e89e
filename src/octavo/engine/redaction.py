"""Redaction: a text is erased from every version and every derived file, and its hash stays.

Committing the redaction masks reads at once; the sweep then erases the bytes and can be resumed at any point.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import erasure as erasing
from octavo.domain.erasure import Erasure, masked_episode, speaks_of
from octavo.domain.memory import SHARED, Change, Decision, Memory, Merge, Proposal, Redaction, Refusal
from octavo.domain.ports import Projection
from octavo.domain.rules import tombstone
from octavo.domain.screening import strings
from octavo.domain.state import Pending
from octavo.domain.text import key_of
from octavo.engine import copies, mirror
from octavo.engine.attachments import KEY, Attachments, erasure_of, unswept
from octavo.engine.indexing import Indexing
from octavo.engine.reading import Reader
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.errors import Damaged, NotFound, SandboxBusy, Unavailable
from octavo.storage import buffers, checkpoints, segments
from octavo.storage.codec import REDACTED
from octavo.storage.ledger import Version
from octavo.storage.logs import REFUSALS
from octavo.storage.state_view import DbView
from octavo.storage.stores.entries import every

_DERIVED = ("core", "sphere", "assembly")


class Redacted(Struct, frozen=True, kw_only=True):
    """What a redaction did: versions rewritten, derived memories ended, and what still holds the text.

    `waiting` names sandboxes whose owners hold their buffers; the sweep ends when they are done.
    `unreached` says which files beside the account could not be cleaned, and why; it begins when they can.
    `turns` names episodes in which turns that say just this were erased, the others left.
    `also_in` names other memories, proposals, refusals and sandboxes that say it too or contain it: a person
    decides, `everywhere` erases them. `cleaned` names the exports and backups of this account that held it
    and do no longer, `copies` those that still do, and why: their owner decides.
    """

    memory: str
    versions: tuple[int, ...]
    derived: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    unreached: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    also_in: tuple[str, ...] = ()
    cleaned: tuple[str, ...] = ()
    copies: tuple[str, ...] = ()


def redact(
    spine: Spine, reader: Reader, writer: Writer, id_: str, reason: str, *, everywhere: bool = False
) -> Redacted:
    """Erase a memory, dead or alive, what is derived from it, and the turns that say just the same."""
    spine.head()
    history = [memory for _, memory in spine.state.history(id_)]
    asked = history or [memory for name, memory, _ in _loose(spine, reader) if name == id_ and memory.text]
    if not asked or not reader.sees(asked[0].scope):
        raise NotFound(f"there is no memory {id_!r} to redact")
    writer = replace(writer, scope=asked[0].scope)
    texts = _texts(asked)
    if erasing.holding([reason], set(map(key_of, texts))):
        reason = REDACTED
    if everywhere and not texts and any(memory.text == REDACTED for memory in asked):
        hint = "redact by their ids the memories that `also_in` named when it was erased"
        raise NotFound(f"the text of {id_} is erased, so nobody can tell what else contains it", hint=hint)

    def act(pending: Pending, view: DbView) -> _Elsewhere:
        elsewhere = _elsewhere(spine, reader, view, writer.scope, id_, texts, everywhere=everywhere)
        derived, also, wordings, masked = elsewhere
        gone = [id_, *(also if everywhere else ()), *derived]
        changes: list[Change] = [tombstone(m, writer.actor) for g in gone if (m := view.live(g))]
        changes += [replace(m, rev=m.rev + 1, actor=writer.actor) for m in masked.values() if m]
        changes += _closed(view, {*gone, *masked}, texts | wordings, writer)
        keys = sorted(spine.keyed(key_of(text)) for text in texts | wordings)
        changes += [_line(id_, key, reason, writer) for key in keys or [spine.keyed(f"id {id_}")]]
        others = [*gone[1:], *masked]
        changes += [_line(other, spine.keyed(f"id {other}"), reason, writer) for other in others]
        pending.extend(changes)
        return elsewhere

    found, _ = spine.commit(act, cause=f"redact {id_}", actor=writer.actor, scope=writer.scope)
    derived, also, _, masked = found
    try:
        versions, waiting, unreached, held = sweep(spine)
    except (Damaged, Unavailable) as error:  # it is committed, so reads mask the text; it goes on when it can
        versions, waiting, unreached, held = [], [], [error.message], {}
    if reader.scope:
        held = {}  # they are of the whole account, and their places its owner's
    return Redacted(
        memory=id_,
        versions=tuple(versions),
        derived=tuple(derived),
        waiting=tuple(waiting),
        unreached=tuple(unreached),
        turns=tuple(masked),
        also_in=() if everywhere else tuple(also),
        cleaned=tuple(place for place, why in held.items() if not why),
        copies=tuple(f"{place}: {why}" for place, why in held.items() if why),
    )


# Where else an erased text stands: what derives from it, what a person decides about or `everywhere` ends,
# its wordings there, and episodes with what is left of those that live.
_Elsewhere = tuple[list[str], list[str], set[str], dict[str, Memory | None]]


def _elsewhere(
    spine: Spine, reader: Reader, view: DbView, scope: str, id_: str, texts: set[str], *, everywhere: bool
) -> _Elsewhere:
    """Look at every revision there ever was that the reader sees, and at what is said outside of memories."""
    keys = {key_of(text) for text in texts}
    exact: set[str] = set()
    holding: set[str] = set()
    episodes: set[str] = set()
    made: set[str] = set()
    wordings: set[str] = set()
    for _, memory in spine.state.revisions_since(0, view.version) if keys else ():
        is_seen = memory.id != id_ and reader.sees(memory.scope)
        held = erasing.holding(strings(memory), keys) if is_seen else set()
        if not held:
            continue
        if memory.kind in _DERIVED:
            made.add(memory.id)
            continue
        holding.add(memory.id)
        if memory.kind == "episode":
            episodes.add(memory.id)
            if scope in (SHARED, memory.scope) and any(key_of(text) in keys for text in held):
                exact.add(memory.id)
        elif everywhere:
            wordings |= _texts([memory])
    erased = episodes if everywhere else exact
    masked = {
        e: masked_episode(m, keys, REDACTED, whole=everywhere) if (m := view.live(e)) else None
        for e in sorted(erased)
    }
    ended = {id_, *erased, *(holding if everywhere else ())}
    derived = {d for e in ended for d in _derived(spine, e)} | (made if everywhere else set())
    for name, _, said in _loose(spine, reader):
        # What says just this is recognised by its text wherever it stands; the rest is a person's choice.
        if more := {text for text in erasing.holding(said, keys) if key_of(text) not in keys}:
            holding.add(name)
            wordings |= more if everywhere else set()
    still = {e for e, m in masked.items() if m and erasing.holding(strings(m), keys)}
    rest = (holding | made) - derived - set(masked) | still
    ends = {name for name in holding - episodes if view.get(name) is not None}
    return sorted(derived), sorted(ends if everywhere else rest), wordings, masked


def _loose(spine: Spine, reader: Reader) -> Iterator[tuple[str, Memory, list[str]]]:
    """What is said outside of memories, by the id it is known by: proposals, refusals, merges, sandboxes.

    With each what it would have been as a memory, which for a sandbox and a reason says nothing.
    """
    for version, _, change in spine.state.spoken():
        match change:
            case Proposal():
                name, memory = change.id, change.memory
            case Refusal():
                name, memory = change.id, _refused(change)
            case Merge() if into := spine.state.history(change.into):
                name, memory = change.into, replace(into[0][1], text=change.text)
            case _:  # the reason of a decision, which its own scope sees
                name, scope = f"version {version}", getattr(change, "scope", None) or SHARED
                memory = Memory(id=name, kind="fact", at=spine.now(), scope=scope)
        if reader.sees(memory.scope):
            yield name, memory, [*strings(change)]
    for refusal in REFUSALS.read(spine.store):
        if reader.sees(refusal.scope):
            yield refusal.id, _refused(refusal), [*strings(refusal)]
    for name in buffers.names(spine.store):
        with suppress(NotFound, Damaged):  # closed meanwhile, or nobody can read it: the sweep waits for it
            buffer = buffers.read(spine.store, name)
            memory = Memory(id=name, kind="episode", at=spine.now(), scope=buffer.opened.scope)
            if reader.sees(memory.scope):
                yield name, memory, [*strings(buffer.opened), *strings(buffer.entries)]


def _refused(refusal: Refusal) -> Memory:
    return Memory(id=refusal.id, kind="fact", text=refusal.text or "", scope=refusal.scope, at=refusal.at)


def sweep(spine: Spine) -> tuple[list[int], list[str], list[str], dict[str, str]]:
    """Erase what the redactions name, wherever it is; what cannot be done now is left for the next time.

    Says which versions were rewritten, which sandboxes others hold, which files could not be cleaned, and of
    each copy that held it why it still does.
    """
    spine.head()  # a full disk may have left the state behind the redaction
    pending = unswept(spine)
    if not pending:
        return [], [], [], {}
    erasure = erasure_of(spine, pending)
    # A core may be made anew under its id before the sweep ends: only what was there is erased.
    upto = {redaction.memory: version for redaction, version in pending.items()}
    versions = _versions(spine, upto, erasure)
    # A piece of a text in a file outside is known only while the ledger still has the text.
    told = (change for number in versions for change in spine.ledger.read(number).changes())
    said = [change for change in told if isinstance(change, Memory) and change.id in erasure.ids]
    besides = {text for memory in said for text in strings(memory)}
    beyond = replace(erasure, wordings=_texts(said), besides=besides)
    held = copies.follow(spine, beyond, pending, sweep)
    if unreached := [why for p in outside(spine) for why in p.erase(beyond)]:
        return [], [], unreached, held
    _sweep_ledger(spine, versions, erasure, upto)
    waiting = _sweep_buffers(spine, pending)
    _sweep_notes(spine, erasure)
    spine.store.clear_leftovers()
    spine.state.erase(erasure)
    Indexing(spine, spine.index, None).erase(erasure)
    if not waiting:
        done = [replace(redaction, swept=True) for redaction in pending]
        spine.commit(lambda pending, _: pending.extend(done), cause="swept", actor="system")
    return versions, waiting, [], held


def outside(spine: Spine) -> list[Projection]:
    """What lies in the open, readable for other programs; erased first, while the ledger has the wordings."""
    if spine.store.read(KEY, first=1) is None:
        return list(spine.followers)
    # The trees first: what is then left in one is a person's, and holds the sweep up.
    return [*spine.followers, *mirror.listed(spine), Attachments(spine)]


def projections(spine: Spine, index: Indexing) -> Iterator[Projection]:
    """All of them; the last two are made from the ledger alone, so they are erased behind it."""
    yield from outside(spine)
    yield spine.state
    yield index


def _sweep_ledger(spine: Spine, versions: Collection[int], erasure: Erasure, upto: Mapping[str, int]) -> None:
    """Erase the text from the versions, from segments others may have made of them, and from checkpoints."""
    for is_marked in (False, True):
        if is_marked:
            # From here on nothing is packed of what was read before; what was by now is looked at again.
            segments.leave_mark(spine.store)
        spine.ledger.forget()
        for number in sorted(versions):
            _erase_lines(spine, spine.ledger.read(number), erasure, upto)
    checkpoints.remove(spine.store)


def _versions(spine: Spine, upto: Mapping[str, int], erasure: Erasure) -> list[int]:
    """The versions whose files hold something to erase."""
    versions = {v for id_, last in upto.items() for v, _ in spine.state.history(id_) if v <= last}
    versions |= {v for id_ in upto for tag in ("merge", "clash") for v, _ in spine.state.others(tag, ref=id_)}
    return sorted(versions | {v for v, _, change in spine.state.spoken() if erasure.holds(change)})


def _sweep_notes(spine: Spine, erasure: Erasure) -> None:
    """Take the text out of the log of refusals and out of the archive."""
    REFUSALS.keep_only(spine.store, lambda refusal: not erasure.holds(refusal))
    for key in every(spine.store, "archive/"):
        data = spine.store.read(key) or b""
        clean = erasure.without(data)  # line by line, and one that nobody can read by what it holds
        if clean != data:
            spine.store.replace(key, clean)


def _texts(memories: Iterable[Memory]) -> set[str]:
    """Every wording the memory ever had, turn by turn for an episode."""
    said = {text for m in memories for text in (m.text, *(turn.text for turn in m.turns))}
    return {text for text in said if key_of(text) and text != REDACTED}


def _line(id_: str, key: str, reason: str, writer: Writer) -> Redaction:
    now = writer.spine.now()
    return Redaction(memory=id_, key=key, by=writer.actor, at=now, reason=reason, scope=writer.scope)


def _derived(spine: Spine, id_: str) -> list[str]:
    """Every core, sphere, assembly and belief that was ever made from a memory, and from those in turn."""
    found = [id_]
    for source in found:  # it grows
        made = spine.state.made_from(source, _DERIVED)
        made += [m.id for m in spine.head().referring(source) if m.category == "worldview"]
        found += [d for d in dict.fromkeys(made) if d not in found]
    return sorted(found[1:])


def _closed(view: DbView, ids: Collection[str], texts: set[str], writer: Writer) -> list[Change]:
    """Waiting proposals that would bring the text back lapse."""
    folded = {key_of(text) for text in texts}
    return [
        Decision(proposal=p.id, outcome="expired", by=writer.actor, at=writer.spine.now())
        for p in view.proposals()
        if speaks_of(p.memory, ids) or any(key_of(text) in folded for text in strings(p))
    ]


def _erase_lines(spine: Spine, version: Version, erasure: Erasure, upto: Mapping[str, int]) -> None:
    lines = list(version.lines)
    for position, line in enumerate(lines):
        change = version.change(position)
        if line.body_bytes() is None or not erasure.holds(change):
            continue
        # What the redaction's own version says in the place of an erased text stays.
        if isinstance(change, Memory) and not change.gone and version.header.version >= upto[change.id]:
            continue
        lines[position] = line.erased()
    if lines != version.lines:
        spine.ledger.rewrite(version.header.version, lines)


def _sweep_buffers(spine: Spine, pending: Iterable[Redaction]) -> list[str]:
    """Mask the text in open sandboxes; returns those whose owners hold them."""
    waiting = []
    for name in buffers.names(spine.store):
        with suppress(NotFound):  # its owner closed it meanwhile
            try:
                buffer = buffers.read(spine.store, name)
            except Damaged:  # `check` names it; the redaction waits until it is put right or discarded
                waiting.append(name)
                continue
            seen = (None, SHARED, buffer.opened.scope)
            erasure = erasure_of(spine, [r for r in pending if r.scope in seen])
            entries = [buffer.opened, *buffer.entries]
            if [erasure.masked(entry) for entry in entries] == entries:
                continue
            try:
                buffers.rewrite(spine.store, name, erasure.masked)
            except SandboxBusy:
                waiting.append(name)
    return waiting
