"""Operations that write, list and show memories."""

# ruff: noqa: A002  # a memory's id is `id`, in every door
from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, TypedDict, Unpack

from octavo.domain.memory import Kind, Layer, Memory, Refusal, Source
from octavo.domain.verdicts import Verdict
from octavo.doors.operations.table import Count, Progress, Unit, operation
from octavo.doors.operations.values import time_of
from octavo.engine.account import Account
from octavo.engine.reading import Reader, Revision, Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, NotFound

Id = Annotated[str, "The memory's id."]
Rev = Annotated[Count | None, "Only if this is still its revision."]


class Fields(TypedDict, total=False):
    """What may be said of a memory besides its text."""

    topic: Annotated[str, "Its topic; a register or canon has one memory a topic."]
    category: Annotated[str, "A word of your own to filter by."]
    tags: Annotated[list[str], "A tag; may be repeated."]
    at: Annotated[datetime, "When it happened (now if not said)."]
    salience: Annotated[Unit, "How much it matters, 0 to 1."]
    confidence: Annotated[Unit, "How sure it is, 0 to 1."]
    emotion: Annotated[str, "How it felt, in a word."]
    links: Annotated[dict[str, list[str]], "An edge to another memory, name=id; may be repeated."]
    data: Annotated[dict[str, Any], "What it carries besides text, a JSON object."]
    override: Annotated[str, "Pass a check of the gate, with this reason (humans only)."]


class NewFields(Fields, total=False):
    """What may be said of a new memory."""

    source: Annotated[Source, "Where it comes from."]
    id: Annotated[str, "An id of your own."]
    supersedes: Annotated[str, "The id or the text of the memory it replaces."]


class Filters(TypedDict, total=False):
    """What narrows a list of memories or a recall."""

    category: Annotated[str, "Only this category."]
    tags: Annotated[list[str], "Only with this tag; may be repeated."]
    from_sandbox: Annotated[str, "Only what came from this sandbox, by its id."]
    since: Annotated[datetime, "Not before this time."]
    until: Annotated[datetime, "Not after this time."]


@operation('octavo remember "lives in Chiang Mai" --confidence 0.9', writes=True, begins=True)
def remember(
    target: Account | Sandbox,
    text: Annotated[str, "What to remember; - reads standard input."],
    *,
    kind: Annotated[Kind, "Which kind it is."] = "fact",
    key: Annotated[str | None, "Makes a retry safe: the same key never writes twice."] = None,
    **fields: Unpack[NewFields],
) -> Verdict:
    """Write one memory: a version of its own, or into a sandbox."""
    if isinstance(target, Account):
        return target.remember(text, kind=kind, key=key, **fields)
    if key is not None:
        raise BadInput("a key has no use inside a sandbox", hint="leave out --key or --sandbox")
    return target.remember(text, kind=kind, **fields)


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
    id: Id,
    *,
    text: Annotated[str | None, "Its new text."] = None,
    rev: Rev = None,
    **changes: Unpack[Fields],
) -> Verdict:
    """Give a memory a new revision; the old one stays in its history."""
    said: dict[str, Any] = {**changes} if text is None else {**changes, "text": text}
    if rev is not None:
        said["rev"] = _rev_outside(target, rev)
    return target.revise(id, **said)


@operation("octavo forget 01kajx2f6w9m4d8c7t5s", writes=True, result="verdicts")
def forget(
    target: Account | Sandbox, ids: Annotated[list[str], "The memories' ids."], *, rev: Rev = None
) -> list[Verdict]:
    """End memories; their history stays."""
    if isinstance(target, Account):
        return target.forget(*ids, rev=rev)
    if rev is not None:
        _rev_outside(target, rev)
    return [target.forget(id_) for id_ in ids]


@operation("octavo get 01kajx2f6w9m4d8c7t5s --at 41")
def get(reader: Reader, id: Id) -> Memory:
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
    **filters: Unpack[Filters],
) -> dict[str, Any]:
    """List memories in the order of their events."""
    page = reader.memories(
        kind=kind, layer=layer, topic=topic, newest=newest, limit=limit + 1, after=after, **filters
    )
    more = len(page) > limit
    return {"memories": page[:limit], "next": page[limit - 1].id if more and limit else None}


@operation("octavo history 01kajx2f6w9m4d8c7t5s", result="revisions")
def history(reader: Account | Snapshot, id: Id) -> list[Revision]:
    """Show every revision of a memory."""
    revisions = reader.history(id)
    if not revisions:
        raise NotFound(f"there never was a memory {id!r}", hint="`octavo memories` lists those there are")
    return revisions


@operation("octavo refusals", result="refusals")
def refusals(account: Account) -> list[Refusal]:
    """List what the gate kept out, and why."""
    return account.refusals()


def _rev_outside(target: Account | Sandbox, rev: int) -> int:
    if isinstance(target, Sandbox):
        raise BadInput("a sandbox has its own revisions", hint="leave out --rev or --sandbox")
    return rev


def live(reader: Reader, id: str) -> Memory:
    """A live memory; here a missing one is an error."""
    memory = reader.get(id)
    if memory is None:
        raise NotFound(
            f"there is no live memory {id!r} in version {reader.version}",
            hint=f"`octavo memories` lists those there are, `octavo history {id}` shows one that ended",
        )
    return memory
