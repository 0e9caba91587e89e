"""Operations on accounts, sandboxes and memories: what is written, what comes back, what people decide."""

# ruff: noqa: A002  # a memory's id is `id`, a brief's format `format`, in every door
from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import asdict, replace

from octavo.domain import buffer as buffers
from octavo.domain.memory import Memory
from octavo.domain.verdicts import Verdict
from octavo.doors import python
from octavo.doors.operations.performing import accounts_in, exists, missing, policy_name, store_of, taken
from octavo.doors.settings import Settings
from octavo.engine import copies, opening
from octavo.engine.account import Account
from octavo.engine.fields import Count, MemoryId
from octavo.engine.reading import Reader, Revision, Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, NotFound
from octavo.storage import codec
from octavo.storage.stores.places import place_of

# Of a hit, with what it derives from its fields: the text that matched, and why it did.
_TOLD = ("memory", "turn", "text", "score", "parts", "why", "version", "is_fresh", "notes", "replaced")


def init(
    settings: Settings, *, policy: Annotated[Path | None, "A TOML file to begin with as policy.toml."] = None
) -> dict[str, Any]:
    """Begin an account, with its policy if one is given."""
    is_new = not exists(settings)
    if policy is not None and not is_new:
        raise BadInput(f"account {settings.account!r} is there already", hint=f"edit {policy_name(settings)}")
    rules = None if policy is None else _usable(policy)
    with python.open(settings.root, settings.account, actor=settings.actor, cache=settings.cache) as account:
        if rules is not None:
            store_of(settings).replace("policy.toml", rules)
        return {
            "account": account.name,
            "root": place_of(settings.root).name,
            "version": account.version,
            "is_new": is_new,
        }


def accounts(settings: Settings) -> list[str]:
    """List the accounts there are."""
    return accounts_in(settings.root)


def delete_account(settings: Settings, name: Annotated[str, "The account to delete."]) -> str:
    """Delete an account whole, with its history."""
    if not exists(replace(settings, account=name)):
        raise missing(settings, name)
    opening.delete_account(settings.root, name)
    return name


def salvage(settings: Settings, path: Annotated[Path, "The folder to make the new account in."]) -> str:
    """Copy what lies before the first damage of an account's ledger into a new account."""
    with python.open(settings.root, settings.account, read_only=True, accept_loss=True) as account:
        return account.salvage(path)


def move(
    settings: Settings,
    name: Annotated[str, "The account to move."],
    to: Annotated[str, "The folder or the URL it goes to."],
) -> str:
    """Move an account with its history to another place; nobody may be writing to it."""
    if not exists(replace(settings, account=name)):
        raise missing(settings, name)
    return copies.move(settings.root, name, to)


def _usable(path: Path) -> bytes:
    """A policy file that can be used, so that a bad one begins no account."""
    if not path.is_file():
        raise NotFound(f"there is no policy file {path}", hint="name a TOML file")
    rules = path.read_bytes()
    codec.decode_policy(rules, str(path))
    return rules


def sandbox(account: Account, **said: Any) -> dict[str, Any]:
    """Open a sandbox on the newest version; prints its id."""
    scope = account.scope or "shared"
    # It is let go at once, for others to take up.
    with closing(account.sandbox(scope=scope, **said)) as held:
        return {"id": held.id, "name": held.name, "scope": scope, "parent_version": held.parent_version}


def buffer(
    account: Account, sandbox: Annotated[str, "The sandbox's id, or its name if only one has it."]
) -> dict[str, Any]:
    """Show what a sandbox has written so far."""
    read = taken(account, sandbox, account.buffer)  # its owner is not disturbed
    return {
        "sandbox": read.opened,
        "entries": [{"t": buffers.TAGS[type(entry)], "entry": entry} for entry in read.entries],
        "torn_bytes": read.torn,
    }


def forget(
    target: Account | Sandbox, ids: Annotated[list[str], "The memories' ids."], **said: Any
) -> list[Verdict]:
    """End memories; their history stays."""
    if isinstance(target, Account):
        return target.forget(*ids, **said)
    if "rev" in said:
        raise BadInput("rev has no use inside a sandbox", hint="leave out --rev or --sandbox")
    return [target.forget(id_) for id_ in ids]


def get(reader: Reader, id: MemoryId) -> Memory:
    """Show one memory."""
    return live(reader, id)


def memories(
    reader: Reader, *, limit: Annotated[Count, "At most so many."] = 50, **said: Any
) -> dict[str, Any]:
    """List memories in the order of their events."""
    page = reader.memories(limit=limit + 1, **said)
    more = len(page) > limit
    return {"memories": page[:limit], "next": page[limit - 1].id if more and limit else None}


def history(reader: Account | Snapshot, id: MemoryId) -> list[Revision]:
    """Show every revision of a memory."""
    revisions = reader.history(id)
    if not revisions:
        raise NotFound(f"there never was a memory {id!r}", hint="`octavo memories` lists those there are")
    return revisions


def live(reader: Reader, id: str) -> Memory:
    """A live memory; here a missing one is an error."""
    memory = reader.get(id)
    if memory is None:
        raise NotFound(
            f"there is no live memory {id!r} in version {reader.version}",
            hint=f"`octavo memories` lists those there are, `octavo history {id}` shows one that ended",
        )
    return memory


def recall(
    reader: Reader,
    *,
    why: Annotated[bool, "Show the parts of every score and where it comes from."] = False,
    once: Annotated[bool, "Take no second look, where the extra `rerank` would."] = False,
    **said: Any,
) -> dict[str, Any]:
    """Find the memories that answer a question, best first."""
    hits = reader.recall(**said, rerank=not once)
    # To find out what has drifted takes as long as the recall itself, so it is told with the reasons alone.
    drifted = reader.drifted(hits) if why else None
    told = [{name: getattr(hit, name) for name in _TOLD} for hit in hits]
    for one, hit in zip(told, hits, strict=True):
        one["reasons"] = [{"part": words, "value": value} for value, words in hit.reasons]
        one["is_drifted"] = None if drifted is None else hit.memory.id in drifted
    more = {name: getattr(hits, name) for name in ("notes", "trail", "orders")}
    return {"hits": told, **more, "explained": why}


def freshness(
    account: Account, id: Annotated[str | None, "The memory's id; none for the whole index."] = None
) -> dict[str, Any]:
    """Show what the index holds of a memory; without an id, how far it is behind."""
    if id is None:
        return {"version": account.version, **asdict(account.lag())}
    held = account.freshness(id)
    derived = {name: getattr(held, name) for name in ("is_fresh", "has_words", "has_vector")}
    return {**asdict(held), **derived}
