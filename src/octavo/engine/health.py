"""Proof and repair: what `check` finds, what `repair` makes anew, and a backup that opens as it is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from octavo.engine import redaction
from octavo.engine.spine import Spine
from octavo.errors import BadInput, Damaged, IndexDamaged, LedgerDamaged, OctavoError
from octavo.storage import buffers
from octavo.storage.ledger import GENESIS, key_of, listed
from octavo.storage.stores.local import LocalStore
from octavo.storage.stores.names import folder_of

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a check found; `problems` name file and line, and it is true when there are none."""

    versions: int
    lines: int
    sandboxes: int
    state_version: int
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return not self.problems


def check(spine: Spine, progress: Progress | None = None) -> Report:
    """Read every version and buffer, verify every hash, and compare the state with the ledger."""
    problems: list[str] = []
    notes: list[str] = []
    mark = spine.state.watermark()  # before the ledger is listed: others may commit meanwhile
    head = _listed_head(spine, problems)
    lines = _check_versions(spine, head, problems, progress)
    open_ = _check_buffers(spine, problems, notes)
    reached = 0
    try:
        reached = _check_state(spine, mark, head, problems)
        problems += _check_redactions(spine)
    except IndexDamaged as error:
        problems.append(error.message)
    if isinstance(spine.store, LocalStore) and (left := len(spine.store.leftovers())):
        notes.append(f"{left} temporary files of a killed writer; `octavo repair` removes them")
    return Report(
        versions=head,
        lines=lines,
        sandboxes=open_,
        state_version=reached,
        problems=tuple(problems),
        notes=tuple(notes),
    )


def repair(spine: Spine, *, accept: bool = False, progress: Progress | None = None) -> Report:
    """Derive the state again from the ledger; a ledger that lost its end needs `accept`."""
    if not accept and not spine.state.is_damaged():
        spine.state.must_not_be_ahead_of(spine.ledger)
    spine.state.rebuild(spine.ledger, progress)
    redaction.sweep(spine)
    if isinstance(spine.store, LocalStore):
        spine.store.clear_leftovers()
    return check(spine)


def backup(spine: Spine, path: Path, progress: Progress | None = None) -> Path:
    """Copy what is true (account file, policy, ledger, buffers) into a new folder."""
    target = path / folder_of(spine.identity.account)
    if target.exists():
        raise BadInput(f"{target} exists already", hint="name a folder that holds no account of this name")
    head = spine.head().version
    copy = LocalStore(target)
    for key in ("account.json", "policy.toml", "refusals.jsonl"):
        data = spine.store.read(key)
        if data is not None:
            copy.create(key, data)
    for version in range(1, head + 1):
        data = spine.store.read(key_of(version))
        if data is None:
            raise LedgerDamaged(f"{key_of(version)} is missing; the backup in {target} ends before it")
        copy.create(key_of(version), data)
        if progress:
            progress(version, head)
    for key in spine.store.list("buffers/"):
        found = spine.store.lines(key)
        if found is not None:
            copy.create(key, b"".join(found[0]))
    return target


def _check_redactions(spine: Spine) -> list[str]:
    """Redactions that are not finished, and the files beside the account that they wait for."""
    pending = redaction.unswept(spine)
    found = [f"the redaction of {r.memory} is not swept yet" for r in pending]
    return found + (redaction.unclean(spine, pending) if pending else [])


def _listed_head(spine: Spine, problems: list[str]) -> int:
    """The newest version there is a file for; a gap below it is damage."""
    versions, strays = listed(spine.store)
    head = max(versions, default=0)
    problems += [f"{key_of(v)} is missing" for v in range(1, head + 1) if v not in versions]
    problems += [f"{name} is no version of the ledger" for name in strays]
    return head


def _check_versions(spine: Spine, head: int, problems: list[str], progress: Progress | None) -> int:
    lines = 0
    before: str | None = GENESIS
    for version in range(1, head + 1):
        try:
            found = spine.ledger.read(version)
            for _ in found.changes():
                lines += 1
        except OctavoError as error:
            problems.append(error.message)
            before = None
            continue
        if before is not None and found.header.parent_hash != before:
            problems.append(f"{key_of(version)}, line 1: it does not stand on version {version - 1} as found")
        before = found.hash
        if progress:
            progress(version, head)
    return lines


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


def _check_state(spine: Spine, mark: tuple[int, str], head: int, problems: list[str]) -> int:
    reached, hash_ = mark
    problems += [f"index/state.db: {what}" for what in spine.state.check()]
    if reached > head:
        problems.append(f"index/state.db is at version {reached}, the ledger ends at {head}")
    elif reached:
        try:
            if spine.ledger.hash_of(reached) != hash_:
                problems.append(f"index/state.db was derived from another version {reached}")
            problems += _compare(spine, reached)
        except OctavoError:
            pass  # the version itself is damaged and already named
    return reached


def _compare(spine: Spine, reached: int) -> list[str]:
    """Whether the state holds exactly the revisions of the ledger, byte by byte."""
    found = []
    for version in range(1, reached + 1):
        lines = [line for line in spine.ledger.read(version).lines if line.t == "memory"]
        if spine.state.lines_in(version) != [(bytes(line.envelope), line.body_bytes()) for line in lines]:
            found.append(f"index/state.db does not hold the memories of version {version} as they are")
    return found
