"""Operations that write, list and show memories."""

# ruff: noqa: A002  # a memory's id is `id`, in every door
from __future__ import annotations

from typing import Annotated, Any

from octavo.domain.memory import Memory
from octavo.domain.verdicts import Verdict
from octavo.doors.operations.table import Progress, operation
from octavo.doors.operations.values import time_of
from octavo.engine.account import Account
from octavo.engine.fields import Count, MemoryId
from octavo.engine.reading import Reader, Revision, Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, NotFound


@operation(
    'octavo remember "lives in Chiang Mai" --confidence 0.9', writes=True, begins=True, like=Account.remember
)
def remember(target: Account | Sandbox, **said: Any) -> Verdict:
    """Write one memory: a version of its own, or into a sandbox."""
    _must_fit(target, said, "key", "a key has no use inside a sandbox")
    return target.remember(**said)


@operation("octavo remember-many facts.jsonl", writes=True, begins=True, long=True, result="verdicts")
def remember_many(
    account: Account,
    items: Annotated[
        list[dict[str, Any]], "JSON objects with text, kind …: one a line or an array; a file, or -."
    ],
    *,
    progress: Progress | None = None,
) -> list[Verdict]:
    """Write several memories in one version; a verdict for each."""
    timed = [{**item, "at": time_of(item["at"])} if item.get("at") else item for item in items]
    return account.remember_many(timed, progress=progress)


@operation('octavo revise 01kajx2f6w9m4d8c7t5s --text "lives in Lampang"', writes=True, like=Account.revise)
def revise(target: Account | Sandbox, **said: Any) -> Verdict:
    """Give a memory a new revision; the old one stays in its history."""
    _must_fit(target, said, "rev", "a sandbox has its own revisions")
    return target.revise(**said)


@operation("octavo forget 01kajx2f6w9m4d8c7t5s", writes=True, like=Account.forget, result="verdicts")
def forget(
    target: Account | Sandbox, ids: Annotated[list[str], "The memories' ids."], **said: Any
) -> list[Verdict]:
    """End memories; their history stays."""
    _must_fit(target, said, "rev", "a sandbox has its own revisions")
    return target.forget(*ids, **said) if isinstance(target, Account) else [target.forget(i) for i in ids]


def _must_fit(target: Account | Sandbox, said: dict[str, Any], name: str, why: str) -> None:
    if isinstance(target, Sandbox) and name in said:
        raise BadInput(why, hint=f"leave out --{name} or --sandbox")


@operation("octavo get 01kajx2f6w9m4d8c7t5s --at 41")
def get(reader: Reader, id: MemoryId) -> Memory:
    """Show one memory."""
    return live(reader, id)


@operation("octavo memories --kind fact --since 2026-05-01 --limit 20", like=Reader.memories)
def memories(
    reader: Reader, *, limit: Annotated[Count, "At most so many."] = 50, **said: Any
) -> dict[str, Any]:
    """List memories in the order of their events."""
    page = reader.memories(limit=limit + 1, **said)
    more = len(page) > limit
    return {"memories": page[:limit], "next": page[limit - 1].id if more and limit else None}


@operation("octavo history 01kajx2f6w9m4d8c7t5s", result="revisions")
def history(reader: Account | Snapshot, id: MemoryId) -> list[Revision]:
    """Show every revision of a memory."""
    revisions = reader.history(id)
    if not revisions:
        raise NotFound(f"there never was a memory {id!r}", hint="`octavo memories` lists those there are")
    return revisions


refusals = operation("octavo refusals", result="refusals")(Account.refusals)


def live(reader: Reader, id: str) -> Memory:
    """A live memory; here a missing one is an error."""
    memory = reader.get(id)
    if memory is None:
        raise NotFound(
            f"there is no live memory {id!r} in version {reader.version}",
            hint=f"`octavo memories` lists those there are, `octavo history {id}` shows one that ended",
        )
    return memory
