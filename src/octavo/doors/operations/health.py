"""Operations of health, copies and other systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from octavo.documents.formats import EXPORTS, IMPORTS
from octavo.doors.operations.table import EXISTS, Progress, operation
from octavo.engine.account import Account
from octavo.engine.counts import Stats
from octavo.engine.fields import Count, one_of
from octavo.engine.reading import Snapshot


@operation("octavo stats --at 41")
def stats(reader: Account | Snapshot) -> Stats:
    """Count what there is."""
    return reader.stats()


check = operation("octavo check", long=True)(Account.check)
repair = operation("octavo repair", writes=True, long=True)(Account.repair)
upkeep = operation("octavo upkeep", writes=True)(Account.upkeep)
backup = operation("octavo backup /mnt/backups/monday", local=True, long=True, result="path")(Account.backup)


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
