"""Seed 000's tree of files: `account/<user>/core/…` and `sandboxes/<id>/…`, in and out without loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from octavo.domain.buffer import Revised, SetState, Wrote
from octavo.domain.memory import SHARED
from octavo.domain.verdicts import Verdict
from octavo.engine.account import Account
from octavo.errors import Busy, VersionConflict
from octavo.interfaces.documents.msp import saving, stores
from octavo.interfaces.documents.msp.master_state import Step, assemble, difference, leftovers, shown
from octavo.interfaces.documents.msp.stores import FILE, Entry
from octavo.interfaces.formats import msp_sandboxes, msp_tree, trees
from octavo.interfaces.formats.msp_tree import ROOT, Tree

_SKIP = frozenset({"duplicate", "capacity", "confidence"})
_ATTEMPTS = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """Something that an import did not take as it was: where it stands, and why."""

    where: str
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Imported:
    """What an import did; `refused`, `masked` and `notes` are everything that is not as the tree has it."""

    version: int
    user: str
    added: int = 0
    changed: int = 0
    unchanged: int = 0
    refused: tuple[Left, ...] = ()
    masked: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    sandboxes: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    """What an export wrote; `left_out` counts what the documents have no place for, by kind or scope."""

    version: int
    user: str
    files: tuple[str, ...]
    sandboxes: tuple[str, ...]
    left_out: Mapping[str, int]


def import_(account: Account, path: Path) -> Imported:
    """Read a tree in one commit, then open its sandboxes; what is there already stays as it is."""
    tree = msp_tree.read(path, account.name)
    found = msp_sandboxes.read(tree)
    at = datetime.now(UTC)
    steps, verdicts, total = _commit(account, tree, at)
    opened, refused, notes = msp_sandboxes.open_all(account, found, at)
    settled = list(zip((s for s in steps if s.candidate), verdicts, strict=True))
    left = [
        Left(where=s.label, why="it is there already and never changes") for s in steps if not s.candidate
    ]
    left += [Left(where=s.label, why=f"{v.check}: {v.detail}") for s, v in settled if not v]
    return Imported(
        version=account.version,
        user=tree.user,
        added=sum(1 for s, v in settled if v and s.action == "add" and v.outcome != "unchanged"),
        changed=sum(1 for s, v in settled if v and s.action == "change" and v.outcome != "unchanged"),
        unchanged=total - len(steps),
        refused=(*left, *(Left(where=where, why=why) for where, why in refused)),
        masked=tuple(s.label for s, v in settled if _is_masked(s, v)),
        files=tuple(sorted(tree.files)),
        sandboxes=tuple(opened),
        notes=(*tree.notes, *notes),
    )


def export(account: Account, path: Path) -> Exported:
    """Write the account as a tree; every file is replaced whole, others are left alone."""
    version = account.version
    everything = account.at(version).memories()
    found = shown(account.at(version))
    layout = {entry.identity[1]: entry.value for entry in found if entry.section == FILE}
    files = msp_tree.files_of(account.name, assemble(found, exact=True), layout)
    open_ = msp_sandboxes.files_of(account)
    for relative, data in {**files, **open_}.items():
        trees.write_bytes(trees.inside(path, relative), data)
    return Exported(
        version=version,
        user=account.name,
        files=tuple(sorted({**files, **open_})),
        sandboxes=tuple(sorted({name.split("/")[1] for name in open_})),
        left_out=dict(
            Counter(_place(m) for m in everything if m.scope != SHARED or stores.entry_of(m) is None)
        ),
    )


def _commit(account: Account, tree: Tree, at: datetime) -> tuple[list[Step], list[Verdict], int]:
    """Bring the account up to the tree; somebody else's commit in between means looking again."""
    for _ in range(_ATTEMPTS):
        head = account.version
        now = shown(account.at(head))
        wanted = _wanted(tree, now, at)
        steps = difference(now, wanted, at=at, is_taken=saving.taken_ids(account.at(head)), doubles=True)
        candidates = [step.candidate for step in steps if step.candidate is not None]
        try:
            verdicts = account.write_many(candidates, cause="import msp", base=head, skip=_SKIP)
        except VersionConflict:
            continue
        return steps, verdicts, len(wanted)
    raise Busy(f"{_ATTEMPTS} attempts to import into {account.name!r} all lost to other writers")


def _wanted(tree: Tree, now: list[Entry], at: datetime) -> list[Entry]:
    found = list(stores.entries(tree.document, at=at, keep_ids=True))
    found = stores.link_relationships(found, saving.known_ends(now))
    found += leftovers(tree.document, tree.noted, at=at)
    found.append(stores.file(ROOT, tree.root, at=at))
    return found + [stores.file(f"files/{name}", value, at=at) for name, value in sorted(tree.files.items())]


def _is_masked(step: Step, verdict: Verdict) -> bool:
    """Whether the gate put something else in place of a secret."""
    kept = verdict.memory
    if kept is None or verdict.outcome in ("unchanged", "merged"):
        return False
    match step.candidate:
        case Wrote(memory=wanted) | Revised(wanted=wanted):
            return (kept.text, kept.turns, kept.data) != (wanted.text, wanted.turns, wanted.data)
        case SetState(data=data):
            return kept.data != data
        case _:
            return False


def _place(memory: Any) -> str:
    return f"scope {memory.scope}" if memory.scope != SHARED else f"kind {memory.kind}"
