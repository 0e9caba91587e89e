"""Operations that write, list and show memories."""

# ruff: noqa: A002  # a memory's id is `id`, in every door
from __future__ import annotations

from typing import Annotated, Any, Unpack

from octavo.domain.memory import Kind, Layer, Memory
from octavo.domain.verdicts import Verdict
from octavo.doors.operations.table import Progress, operation
from octavo.doors.operations.values import time_of
from octavo.engine.account import Account
from octavo.engine.fields import Changes, Count, Fields, MemoryId, Override
from octavo.engine.reading import Narrowing, Reader, Revision, Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, NotFound

Rev = Annotated[Count | None, "Only if this is still its revision."]


@operation('octavo remember "lives in Chiang Mai" --confidence 0.9', writes=True, begins=True)
def remember(
    target: Account | Sandbox,
    text: Annotated[str, "What to remember; - reads standard input."],
    *,
    key: Annotated[str | None, "Makes a retry safe: the same key never writes twice."] = None,
    **fields: Unpack[Fields],
) -> Verdict:
    """Write one memory: a version of its own, or into a sandbox."""
    if isinstance(target, Account):
        return target.remember(text, key=key, **fields)
    if key is not None:
        raise BadInput("a key has no use inside a sandbox", hint="leave out --key or --sandbox")
    return target.remember(text, **fields)


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


@operation('octavo revise 01kajx2f6w9m4d8c7t5s --text "lives in Lampang"', writes=True)
def revise(
    target: Account | Sandbox,
    id: MemoryId,
    *,
    rev: Rev = None,
    override: Override = None,
    **changes: Unpack[Changes],
) -> Verdict:
    """Give a memory a new revision; the old one stays in its history."""
    if isinstance(target, Account):
        return target.revise(id, rev=rev, override=override, **changes)
    _must_be_outside(rev)
    return target.revise(id, override=override, **changes)


@operation("octavo forget 01kajx2f6w9m4d8c7t5s", writes=True, result="verdicts")
def forget(
    target: Account | Sandbox, ids: Annotated[list[str], "The memories' ids."], *, rev: Rev = None
) -> list[Verdict]:
    """End memories; their history stays."""
    if isinstance(target, Account):
        return target.forget(*ids, rev=rev)
    _must_be_outside(rev)
    return [target.forget(id_) for id_ in ids]


@operation("octavo get 01kajx2f6w9m4d8c7t5s --at 41")
def get(reader: Reader, id: MemoryId) -> Memory:
    """Show one memory."""
    return live(reader, id)


@operation("octavo memories --kind fact --since 2026-05-01 --limit 20")
def memories(
    reader: Reader,
    *,
    kind: Annotated[list[Kind] | None, "Only this kind; may be repeated."] = None,
    layer: Annotated[list[Layer] | None, "Only this layer; may be repeated."] = None,
    topic: Annotated[str | None, "Only this topic."] = None,
    newest: Annotated[bool, "Newest first."] = False,
    limit: Annotated[Count, "At most so many."] = 50,
    after: Annotated[str | None, "Continue behind this memory's id."] = None,
    **filters: Unpack[Narrowing],
) -> dict[str, Any]:
    """List memories in the order of their events."""
    page = reader.memories(
        kind=kind, layer=layer, topic=topic, newest=newest, limit=limit + 1, after=after, **filters
    )
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


def _must_be_outside(rev: int | None) -> None:
    if rev is not None:
        raise BadInput("a sandbox has its own revisions", hint="leave out --rev or --sandbox")


def live(reader: Reader, id: str) -> Memory:
    """A live memory; here a missing one is an error."""
    memory = reader.get(id)
    if memory is None:
        raise NotFound(
            f"there is no live memory {id!r} in version {reader.version}",
            hint=f"`octavo memories` lists those there are, `octavo history {id}` shows one that ended",
        )
    return memory
