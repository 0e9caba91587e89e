"""Operations on the mirror: the account as files that people read and edit."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from octavo.domain.mirror import Synced
from octavo.doors.operations.table import operation
from octavo.engine.account import Account
from octavo.engine.syncing import Take
from octavo.errors import BadInput

_LOOK_SECONDS = 1.0
_log = logging.getLogger("octavo.sync")


mirror = operation("octavo mirror notes", writes=True, local=True, long=True)(Account.mirror)


@operation("octavo sync --yes", writes=True, local=True)
def sync(
    account: Account,
    path: Annotated[Path | None, "Which mirror; the only one if not said."] = None,
    *,
    yes: Annotated[bool, "Take the edits in as one version; else they are only listed."] = False,
    watch: Annotated[bool, "Go on: take edits in as they are saved, but never an ending."] = False,
    ours: Annotated[bool, "Decide conflicts for the account."] = False,
    theirs: Annotated[bool, "Decide conflicts for the files."] = False,
    delete: Annotated[bool, "Allow that many memories end at once."] = False,
) -> Synced:
    """List what people changed in the mirror, or take it in through the gate."""
    if ours and theirs:
        raise BadInput("a conflict cannot be decided both ways", hint="say --ours or --theirs")
    take: Take | None = "ours" if ours else "theirs" if theirs else None
    if not watch:
        return account.sync(path, commit=yes, take=take, delete=delete)
    last = account.sync(path, commit=True, take=take, endings=False)
    _log.warning("watching folder=%s", last.folder)
    with suppress(KeyboardInterrupt):
        _tell(last)
        for _ in rested(Path(last.folder)):
            before, last = last, account.sync(path, commit=True, take=take, endings=False)
            _tell(last, before)
    return last


def _tell(now: Synced, before: Synced | None = None) -> None:
    """Say at once what a watch took in, and what it cannot; nobody reads its report before it ends."""
    for edit in now.edits:
        _log.warning("edit taken in action=%s path=%s line=%d", edit.action, edit.path, edit.line)
    told = (*before.conflicts, *before.refused) if before else ()
    for held in (*now.conflicts, *now.refused):
        if held not in told:
            _log.warning("edit waits path=%s line=%d reason=%s", held.path, held.line, held.reason)


def rested(folder: Path) -> Iterator[None]:
    """Tell every time that files below a folder have changed and then been left alone for a second."""
    known = before = stamps(folder)
    while True:
        time.sleep(_LOOK_SECONDS)
        now = stamps(folder)
        if now == before != known:
            yield
            now = known = stamps(folder)
        before = now


def stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """When every file of a mirror was last changed, and how long it is."""
    found = {}
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):  # editors save by a rename
            if ".octavo" not in path.parts and not path.is_symlink() and path.is_file():
                status = path.stat()
                found[str(path)] = (status.st_mtime_ns, status.st_size)
    return found
