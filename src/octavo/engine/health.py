"""Proof and repair: what `check` finds, what `repair` makes anew, what is proved while an account is open."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator

import msgspec
from msgspec import Struct

from octavo.domain.ports import Progress
from octavo.engine import redaction
from octavo.engine.attachments import unswept
from octavo.engine.indexing import Indexing
from octavo.engine.spine import Spine, identify, must_be_its_key
from octavo.errors import Damaged, NotFound, OctavoError
from octavo.storage import buffers, codec
from octavo.storage.ledger import Version, key_of, listed
from octavo.storage.logs import COPIES, REFUSALS
from octavo.storage.stores.entries import every

# All that a handle of one scope is told of damage.
DAMAGED = ("the account is damaged; its owner's `octavo check` says where",)
_LARGEST_CHANGES = 1000  # of a version that is read beside a conversation


class Report(Struct, frozen=True, kw_only=True):
    """What a check found; `problems` name file and line, and it is true when there are none."""

    versions: int
    lines: int
    sandboxes: int
    state_version: int
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.problems


def check(spine: Spine, index: Indexing, progress: Progress | None = None) -> Report:
    """Read every version and buffer, verify every hash, and prove what is derived against the ledger."""
    notes: list[str] = []
    reached = spine.state.watermark()[0]
    versions, strays = listed(spine.store)
    head = max(versions, default=0)
    problems = [f"{key_of(v)} is missing" for v in range(1, head + 1) if v not in versions]
    problems += [f"{name} is no version of the ledger" for name in strays]
    lines = 0
    for number, found in enumerate(spine.ledger.proved(head), start=1):
        if isinstance(found, OctavoError):
            problems.append(found.message)
        else:
            lines += len(found.lines)
        if progress:
            progress(number, head)
    problems += _or_damage(
        lambda: must_be_its_key(spine.ledger, identify(spine.store, spine.identity.account))
    )
    problems += [why for log in (REFUSALS, COPIES) for why in log.damaged(spine.store)]
    problems += [f"{key} is not readable: {why}" for key, why in _check_archive(spine)]
    open_ = _check_buffers(spine, problems, notes)
    # Each is damaged by itself, or what it stands on is; what says which there are may be, too.
    walk = redaction.projections(spine, index)
    problems += _or_damage(lambda: (why for projection in walk for why in _or_damage(projection.verify)))
    problems += _or_damage(lambda: [f"the redaction of {r.memory} is not swept yet" for r in unswept(spine)])
    if left := len(spine.store.leftovers()):
        notes.append(f"{left} temporary files of a killed writer; `octavo repair` removes them")
    return Report(
        versions=head,
        lines=lines,
        sandboxes=open_,
        state_version=reached,
        problems=tuple(dict.fromkeys(problems)),
        notes=tuple(notes),
    )


def repair(spine: Spine, index: Indexing, *, accept: bool = False, progress: Progress | None = None) -> None:
    """Derive again what is wrong, and the state always; a ledger that lost its end needs `accept`.

    An index that is made anew lies elsewhere, so what comes behind it on the walk is asked for then.
    """
    if not accept and not spine.state.is_damaged():
        spine.state.must_not_be_ahead()
    spine.state.rebuild(progress)
    redaction.sweep(spine)
    spine.store.clear_leftovers()
    for projection in redaction.projections(spine, index):
        if projection.verify(stamp=True):
            projection.clear()
            projection.follow(progress)


def _or_damage(look: Callable[[], Iterable[str] | None]) -> Iterator[str]:
    """What somebody finds wrong, or why it cannot be looked at."""
    try:
        yield from look() or ()
    except Damaged as error:
        yield error.message


def _check_archive(spine: Spine) -> Iterator[tuple[str, str]]:
    for key in every(spine.store, "archive/"):
        try:
            lines = (spine.store.read(key) or b"").splitlines()
        except Damaged as error:
            yield key, error.message
            continue
        for number, line in enumerate(lines, start=1):
            try:
                codec.decode_json(line)
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                yield f"{key}, line {number}", str(error)


def _check_buffers(spine: Spine, problems: list[str], notes: list[str]) -> int:
    count = 0
    for name in buffers.names(spine.store):
        try:
            found = buffers.read(spine.store, name)
        except Damaged as error:
            problems.append(error.message)
            continue
        count += 1
        if found.torn:
            notes.append(f"sandbox {name}: a torn last line of {found.torn} bytes, never acknowledged")
    return count


class ChainProof:
    """How far one handle has read the ledger again, beginning anywhere, and what it found damaged."""

    def __init__(self, spine: Spine) -> None:
        self._spine = spine
        self._next = 0
        self._damage: dict[int, str] = {}

    @property
    def problems(self) -> tuple[str, ...]:
        """What was found damaged and not found whole since, by version."""
        return tuple(self._damage[version] for version in sorted(self._damage))

    def go_on(self, count: int, *, small: bool = False) -> tuple[str, ...]:
        """Read so many versions more, only `small` ones if somebody may wait; says what is damaged."""
        head = self._spine.state.watermark()[0]
        for _ in range(min(count, head)):
            self._next = self._next % head + 1 if self._next else secrets.randbelow(head) + 1
            self._prove(self._next, small=small)
        return self.problems

    def _prove(self, version: int, *, small: bool) -> None:
        try:
            known = self._spine.state.commit(version)
            if small and known.changes > _LARGEST_CHANGES:
                return
            found = self._spine.ledger.read(version)
            why = "" if found.hash == known.hash else f"{key_of(version)} is not what the state was made from"
            if not why and not self._is_as_told(found):
                why = (
                    f"the state file does not say what {key_of(version)} says; `octavo repair` makes it anew"
                )
        except NotFound:
            return  # the state begins at a checkpoint, or is made anew just now
        except Damaged as error:
            why = error.message
        self._damage.pop(version, None)
        if why:
            self._damage[version] = why

    def _is_as_told(self, version: Version) -> bool:
        """Whether the state has a version's memories byte by byte, but for bodies that are being erased."""
        told = [line for line in version.lines if line.t == "memory"]
        held = self._spine.state.lines_in(version.header.version)
        return len(told) == len(held) and all(
            bytes(line.envelope) == envelope
            and (None in (body, line.body_bytes()) or body == line.body_bytes())
            for line, (envelope, body) in zip(told, held, strict=True)
        )
