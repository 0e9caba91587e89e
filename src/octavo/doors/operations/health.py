"""Operations of health, copies and other systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from octavo.documents.formats import EXPORTS, IMPORTS
from octavo.doors.operations.table import EXISTS, Count, Progress, one_of, operation
from octavo.engine.account import Account
from octavo.engine.counts import Stats
from octavo.engine.health import Report
from octavo.engine.keeper import Upkeep
from octavo.engine.reading import Snapshot


@operation("octavo stats --at 41")
def stats(reader: Account | Snapshot) -> Stats:
    """Count what there is."""
    return reader.stats()


@operation("octavo check", long=True)
def check(account: Account, *, progress: Progress | None = None) -> Report:
    """Prove that every byte is what was written."""
    return account.check(progress=progress)


@operation("octavo repair", writes=True, long=True)
def repair(
    account: Account,
    *,
    accept: Annotated[bool, "Accept that the end of the ledger is lost."] = False,
    progress: Progress | None = None,
) -> Report:
    """Make everything derived anew from the ledger."""
    return account.repair(accept=accept, progress=progress)


@operation("octavo upkeep", writes=True)
def upkeep(account: Account) -> Upkeep:
    """Do the work that no conversation waits for, and say what was done."""
    return account.upkeep()


@operation("octavo backup /mnt/backups/monday", local=True, long=True, result="path")
def backup(
    account: Account,
    path: Annotated[str, "The folder or the URL to copy it to."],
    *,
    progress: Progress | None = None,
) -> str:
    """Copy the account to another place, ready to open."""
    return account.backup(path, progress=progress)


@operation("octavo export tree --format msp", local=True, long=True)
def export(
    account: Account,
    path: Annotated[Path, "The file or folder to write."],
    *,
    format: Annotated[str, one_of(sorted(EXPORTS)), "Which files to write."] = "msp",  # noqa: A002  # the glossary's word
    success: Annotated[bool, "Of a robot's episodes (rlds, minari), those that reached the goal."] = False,
    max_denials: Annotated[Count | None, "Of these, those denied at most so often."] = None,
    min_reward: Annotated[float | None, "Of these, those that earned at least this."] = None,
    tag: Annotated[list[str] | None, "Of these, those with this tag; may be repeated."] = None,
) -> dict[str, Any]:
    """Write the account in another system's files."""
    done = account.export(
        path,
        format=format,
        success=success or None,
        max_denials=max_denials,
        min_reward=min_reward,
        tags=tag,
    )
    return {"path": path, "format": format, "result": done}


@operation("octavo import tree --format msp", writes=True, begins=True, local=True, long=True)
def import_(
    account: Account,
    path: Annotated[Path, EXISTS, "The file or folder to read."],
    *,
    format: Annotated[str, one_of(sorted(IMPORTS)), "Which files they are."] = "msp",  # noqa: A002  # likewise
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Read another system's files through the gate."""
    done = account.import_(path, format=format, progress=progress)
    return {"path": path, "format": format, "version": account.version, "result": done}
