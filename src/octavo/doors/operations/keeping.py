"""Operations on what grows of memories: cores, assemblies, versions, files, levels, and their health."""

# ruff: noqa: A002  # a memory's id is `id`, a format `format`, in every door
from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any

from octavo.documents.brain import FilesystemMemory
from octavo.documents.brain import patterns as found
from octavo.documents.brain.patterns import Consolidated, Pattern
from octavo.documents.brain.teaching import Reply, Teaching, behaviors_of
from octavo.documents.formats import EXPORTS, IMPORTS
from octavo.documents.synthians import explaining
from octavo.domain.memory import Memory
from octavo.domain.mirror import Synced
from octavo.doors.operations.remembering import live
from octavo.doors.operations.table import EXISTS, Progress
from octavo.engine.account import Account
from octavo.engine.fields import Count, MemoryId, one_of
from octavo.engine.reading import Reader, Snapshot, Stats
from octavo.engine.syncing import Take
from octavo.engine.versions import Diff
from octavo.errors import BadInput


def cores(reader: Account | Snapshot) -> list[Memory]:
    """List the cores: eight sessions each."""
    return reader.memories(kind="core")


def spheres(reader: Account | Snapshot) -> list[Memory]:
    """List the spheres: eight cores each."""
    return reader.memories(kind="sphere")


def show(reader: Reader, id: MemoryId) -> Memory:
    """Show a core or sphere as a page to read; any other memory as `get` does."""
    return live(reader, id)


def counters(account: Account) -> dict[str, Any]:
    """Show where the odometer of sessions, cores and spheres stands."""
    return account.counters(account.scope or "shared")


def versions(
    account: Account,
    *,
    after: Annotated[Count | None, "Begin behind this version instead."] = None,
    limit: Annotated[Count, "At most so many."] = 20,
) -> dict[str, Any]:
    """List the newest versions: when, why, by whom."""
    begin = max(account.version - limit, 0) if after is None else after
    if begin > account.version:
        hint = "begin again without `after`, or behind a version there is"
        raise BadInput(f"the newest version is {account.version}, none is behind {begin}", hint=hint)
    page = account.versions(after=begin, limit=limit)
    last = page[-1].version if page else begin
    return {"versions": page, "next": last if limit and last < account.version else None}


def diff(
    account: Account,
    before: Annotated[int | datetime | None, "A version or time."] = None,
    after: Annotated[int | datetime | None, "Another; the newest if not said."] = None,
) -> Diff:
    """Show what differs between two versions (the last two if not said)."""
    return account.diff(max(account.version - 1, 0) if before is None else before, after)


explain_activation, explain_merge, merge_log = explaining.activation, explaining.merge, explaining.log
_LOOK_SECONDS = 1.0
_log = logging.getLogger("octavo.sync")


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


def patterns(account: Account) -> list[Pattern]:
    """List what repeats in recent episodes, how often, and where it was seen."""
    return found.find(account, datetime.now(UTC), account.policy.patterns)


def learn(
    account: Account,
    *,
    promote: Annotated[bool, "Also ask a person about knowledge that has stood for long."] = False,
) -> Consolidated:
    """Make knowledge of what repeats; running again revises and never doubles."""
    return found.consolidate(account, datetime.now(UTC), account.policy.patterns, promote=promote)


def retention(
    account: Account, *, apply: Annotated[bool, "Move them to the archive."] = False
) -> list[dict[str, Any]]:
    """List the episodes that are past the limits of the policy; nothing goes unless asked."""
    old = {name: [m.id for m in some] for name, some in account.aged().items()} if not apply else {}
    aged = account.retire_aged() if apply else old
    return [{"group": name, "episodes": ids, "is_done": apply} for name, ids in aged.items()]


def teach(
    account: Account, line: Annotated[str, "What is said (teach dance, forward, left, done, cancel)."]
) -> Reply:
    """Say one line to a robot that is taught by showing; a recording goes on with the next line."""
    with closing(Teaching(FilesystemMemory(account))) as teaching:
        return teaching.say(line)


def invoke(account: Account, name: Annotated[str, "The behaviour."]) -> Reply:
    """Do a behaviour: its actions in order, each checked against guardrails and sandbox rules."""
    with closing(Teaching(FilesystemMemory(account))) as teaching:
        return teaching.invoke(name)


def behaviors(account: Account) -> list[dict[str, Any]]:
    """List the behaviours that were taught."""
    return list(behaviors_of(account).values())


def stats(reader: Account | Snapshot) -> Stats:
    """Count what there is."""
    return reader.stats()


def export(
    account: Account,
    *,
    format: Annotated[str, one_of(sorted(EXPORTS)), "Which files to write."] = "msp",  # the glossary's word
    **said: Any,
) -> dict[str, Any]:
    """Write the account in another system's files."""
    return {"path": said["path"], "format": format, "result": account.export(format=format, **said)}


def import_(
    account: Account,
    path: Annotated[Path, EXISTS, "The file or folder to read."],
    *,
    format: Annotated[  # likewise
        str | None, one_of(sorted(IMPORTS)), "Which files they are; else it is told by their shape."
    ] = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Read another system's files through the gate."""
    done = account.import_(path, format=format, progress=progress)
    return {"path": path, "format": done.format, "version": account.version, "result": done}
