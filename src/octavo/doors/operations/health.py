"""Operations of health, copies and other systems."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

from octavo.documents.formats import EXPORTS, IMPORTS
from octavo.doors.operations.table import EXISTS, Progress, operation
from octavo.engine.account import Account
from octavo.engine.fields import one_of
from octavo.engine.reading import Snapshot, Stats


@operation("octavo stats --at 41")
def stats(reader: Account | Snapshot) -> Stats:
    """Count what there is."""
    return reader.stats()


check = operation("octavo check", long=True)(Account.check)
repair = operation("octavo repair", writes=True, long=True)(Account.repair)
upkeep = operation("octavo upkeep", writes=True)(Account.upkeep)
backup = operation("octavo backup /mnt/backups/monday", local=True, long=True, result="path")(Account.backup)


@operation("octavo export tree --format msp", local=True, long=True, like=Account.export)
def export(
    account: Account,
    *,
    format: Annotated[str, one_of(sorted(EXPORTS)), "Which files to write."] = "msp",  # noqa: A002  # the glossary's word
    **said: Any,
) -> dict[str, Any]:
    """Write the account in another system's files."""
    return {"path": said["path"], "format": format, "result": account.export(format=format, **said)}


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
