"""Operations on what grows of memories: cores, assemblies, versions, files, levels, and their health."""

# ruff: noqa: A002  # a memory's id is `id`, a format `format`, in every door
from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import closing, suppress
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
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
from octavo.doors.operations.table import EXISTS, Progress, operation
from octavo.engine.account import Account
from octavo.engine.explain import Explainer
from octavo.engine.fields import Count, MemoryId, one_of
from octavo.engine.reading import Reader, Snapshot, Stats
from octavo.engine.syncing import Take
from octavo.engine.versions import Diff
from octavo.errors import BadInput

_compression, _assemblies, _versions, _files, _levels, _health = (
    partial(operation, section=name)
    for name in ("compression", "assemblies", "versions", "files", "levels", "health")
)


compress = _compression("octavo compress", writes=True, result="made")(Account.compress)
uncompress = _compression("octavo uncompress core_000_001", writes=True, result="removed")(Account.uncompress)


@_compression("octavo cores", result="cores")
def cores(reader: Account | Snapshot) -> list[Memory]:
    """List the cores: eight sessions each."""
    return reader.memories(kind="core")


@_compression("octavo spheres", result="spheres")
def spheres(reader: Account | Snapshot) -> list[Memory]:
    """List the spheres: eight cores each."""
    return reader.memories(kind="sphere")


@_compression("octavo show core_000_001")
def show(reader: Reader, id: MemoryId) -> Memory:
    """Show a core or sphere as a page to read; any other memory as `get` does."""
    return live(reader, id)


@_compression("octavo counters --scope orion", result="counters")
def counters(account: Account) -> dict[str, Any]:
    """Show where the odometer of sessions, cores and spheres stands."""
    return account.counters(account.scope or "shared")


sessions = _compression("octavo sessions --scope orion", result="sessions")(Account.sessions)


_explained = attrgetter("explained")
_A, _B = "asm_01kajx2f6w9m4d8c7t5s", "asm_01kajx2f6w9m4d8c7t5t"
_M, _N = _A.removeprefix("asm_"), _B.removeprefix("asm_")

assemblies = _assemblies("octavo assemblies", part=_explained, result="assemblies")(Explainer.assemblies)
assembly = _assemblies(f"octavo assembly {_A}", part=_explained)(Explainer.assembly)


assemble = _assemblies(f"octavo assemble {_M} {_N} --name pottery", writes=True, result="assemblies")(
    Account.assemble
)
merge_assemblies = _assemblies(f"octavo merge-assemblies {_A} {_B}", writes=True)(Account.merge_assemblies)
unmerge = _assemblies(f"octavo unmerge {_A}", writes=True, result="revived")(Account.unmerge)
lineage = _assemblies(f"octavo lineage {_A}", part=_explained)(Explainer.lineage)
explain_activation = _assemblies(f"octavo explain-activation {_A} {_M}")(explaining.activation)
explain_merge = _assemblies(f"octavo explain-merge {_A}")(explaining.merge)
merge_log = _assemblies("octavo merge-log --limit 10")(explaining.log)


@_versions("octavo versions --limit 5")
def versions(
    account: Account,
    *,
    after: Annotated[Count | None, "Begin behind this version instead."] = None,
    limit: Annotated[Count, "At most so many."] = 20,
) -> dict[str, Any]:
    """List the newest versions: when, why, by whom."""
    begin = max(account.version - limit, 0) if after is None else after
    page = account.versions(after=begin, limit=limit)
    last = page[-1].version if page else begin
    return {"versions": page, "next": last if last < account.version else None}


@_versions("octavo diff 41 42")
def diff(
    account: Account,
    before: Annotated[int | datetime | None, "A version or time."] = None,
    after: Annotated[int | datetime | None, "Another; the newest if not said."] = None,
) -> Diff:
    """Show what differs between two versions (the last two if not said)."""
    return account.diff(max(account.version - 1, 0) if before is None else before, after)


restore = _versions("octavo restore 41", writes=True, human=True, result="version")(Account.restore)
revert = _versions("octavo revert 41", writes=True, human=True, result="version")(Account.revert)


_LOOK_SECONDS = 1.0
_log = logging.getLogger("octavo.sync")


mirror = _files("octavo mirror notes", writes=True, local=True, long=True)(Account.mirror)


@_files("octavo sync --yes", writes=True, local=True)
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


@_levels("octavo patterns", result="patterns")
def patterns(account: Account) -> list[Pattern]:
    """List what repeats in recent episodes, how often, and where it was seen."""
    return found.find(account, datetime.now(UTC), account.policy.patterns)


@_levels("octavo learn --promote", writes=True)
def learn(
    account: Account,
    *,
    promote: Annotated[bool, "Also ask a person about knowledge that has stood for long."] = False,
) -> Consolidated:
    """Make knowledge of what repeats; running again revises and never doubles."""
    return found.consolidate(account, datetime.now(UTC), account.policy.patterns, promote=promote)


@_levels("octavo retention", writes=True, result="aged")
def retention(
    account: Account, *, apply: Annotated[bool, "Move them to the archive."] = False
) -> list[dict[str, Any]]:
    """List the episodes that are past the limits of the policy; nothing goes unless asked."""
    old = {name: [m.id for m in some] for name, some in account.aged().items()} if not apply else {}
    aged = account.retire_aged() if apply else old
    return [{"group": name, "episodes": ids, "is_done": apply} for name, ids in aged.items()]


@_levels('octavo teach "teach dance"', writes=True, begins=True)
def teach(
    account: Account, line: Annotated[str, "What is said (teach dance, forward, left, done, cancel)."]
) -> Reply:
    """Say one line to a robot that is taught by showing; a recording goes on with the next line."""
    with closing(Teaching(FilesystemMemory(account))) as teaching:
        return teaching.say(line)


@_levels("octavo invoke dance", writes=True)
def invoke(account: Account, name: Annotated[str, "The behaviour."]) -> Reply:
    """Do a behaviour: its actions in order, each checked against guardrails and sandbox rules."""
    with closing(Teaching(FilesystemMemory(account))) as teaching:
        return teaching.invoke(name)


@_levels("octavo behaviors", result="behaviors")
def behaviors(account: Account) -> list[dict[str, Any]]:
    """List the behaviours that were taught."""
    return list(behaviors_of(account).values())


@_health("octavo stats --at 41")
def stats(reader: Account | Snapshot) -> Stats:
    """Count what there is."""
    return reader.stats()


check = _health("octavo check", long=True)(Account.check)
repair = _health("octavo repair", writes=True, long=True)(Account.repair)
upkeep = _health("octavo upkeep", writes=True)(Account.upkeep)
backup = _health("octavo backup /mnt/backups/monday", local=True, long=True, result="path")(Account.backup)


@_health("octavo export tree --format msp", local=True, long=True, like=Account.export)
def export(
    account: Account,
    *,
    format: Annotated[str, one_of(sorted(EXPORTS)), "Which files to write."] = "msp",  # the glossary's word
    **said: Any,
) -> dict[str, Any]:
    """Write the account in another system's files."""
    return {"path": said["path"], "format": format, "result": account.export(format=format, **said)}


@_health("octavo import tree --format msp", writes=True, begins=True, local=True, long=True)
def import_(
    account: Account,
    path: Annotated[Path, EXISTS, "The file or folder to read."],
    *,
    format: Annotated[str, one_of(sorted(IMPORTS)), "Which files they are."] = "msp",  # likewise
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Read another system's files through the gate."""
    done = account.import_(path, format=format, progress=progress)
    return {"path": path, "format": format, "version": account.version, "result": done}
