"""Operations on accounts, sandboxes and memories: what is written, what comes back, what people decide."""

# ruff: noqa: A002  # a memory's id is `id`, a brief's format `format`, in every door
from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import asdict, replace

from octavo.domain import buffer as buffers
from octavo.domain.hits import Hit
from octavo.domain.memory import Memory
from octavo.domain.verdicts import Verdict
from octavo.doors import python
from octavo.doors.operations.performing import accounts_in, exists, missing, policy_name, store_of, taken
from octavo.doors.operations.table import Progress, operation
from octavo.doors.operations.values import time_of
from octavo.doors.settings import Settings
from octavo.engine import opening
from octavo.engine.account import Account
from octavo.engine.fields import Count, MemoryId
from octavo.engine.reading import Reader, Revision, Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, NotFound
from octavo.storage import codec
from octavo.storage.stores.places import place_of

_ID = "01kajx2f6w9m4d8c7t5s"  # in examples
_accounts, _sandboxes, _memories, _recall, _review = (
    partial(operation, section=name) for name in ("accounts", "sandboxes", "memories", "recall", "review")
)


@_accounts('octavo init --account "User01"', writes=True, local=True)
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


@_accounts("octavo accounts", result="accounts")
def accounts(settings: Settings) -> list[str]:
    """List the accounts there are."""
    return accounts_in(settings.root)


@_accounts(
    "octavo delete-account User01 --yes",
    writes=True,
    asks="Delete account {name} with its whole history? Nothing can bring it back.",
    result="deleted",
)
def delete_account(settings: Settings, name: Annotated[str, "The account to delete."]) -> str:
    """Delete an account whole, with its history."""
    if not exists(replace(settings, account=name)):
        raise missing(settings.root, name)
    opening.delete_account(settings.root, name)
    return name


@_accounts("octavo salvage /mnt/rescued", local=True, result="path")
def salvage(settings: Settings, path: Annotated[Path, "The folder to make the new account in."]) -> str:
    """Copy what lies before the first damage of an account's ledger into a new account."""
    with python.open(settings.root, settings.account, read_only=True, accept_loss=True) as account:
        return account.salvage(path)


def _usable(path: Path) -> bytes:
    """A policy file that can be used, so that a bad one begins no account."""
    if not path.is_file():
        raise NotFound(f"there is no policy file {path}", hint="name a TOML file")
    rules = path.read_bytes()
    codec.decode_policy(rules, str(path))
    return rules


@_sandboxes('octavo sandbox "Sandbox 09:30"', writes=True, begins=True, like=Account.sandbox)
def sandbox(account: Account, **said: Any) -> dict[str, Any]:
    """Open a sandbox on the newest version; prints its id."""
    scope = account.scope or "shared"
    # It is let go at once, for others to take up.
    with closing(account.sandbox(scope=scope, **said)) as held:
        return {"id": held.id, "name": held.name, "scope": scope, "parent_version": held.parent_version}


sandboxes = _sandboxes("octavo sandboxes", result="sandboxes")(Account.sandboxes)
turn = _sandboxes('octavo turn "Sandbox 09:30" user "I moved to Chiang Mai."', writes=True, result="episode")(
    Sandbox.turn
)
write_episode = _sandboxes(
    'octavo write-episode "Sandbox 09:30" episode.json', writes=True, result="episode"
)(Sandbox.write_episode)
update_state = _sandboxes("""octavo update-state "Sandbox 09:30" ire_state '{"calm": 0.8}'""", writes=True)(
    Sandbox.update_state
)
use = _sandboxes(f'octavo use "Sandbox 09:30" {_ID} --feedback 0.5', writes=True, result="used")(Sandbox.use)


@_sandboxes('octavo buffer "Sandbox 09:30"')
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


consolidate = _sandboxes('octavo consolidate "Sandbox 09:30"', writes=True)(Sandbox.consolidate)


@_sandboxes('octavo discard "Sandbox 09:30"', writes=True, result="discarded")
def discard(sandbox: Sandbox) -> str:
    """Throw a sandbox away; the account stays as it is."""
    sandbox.discard()
    return sandbox.id


@_memories(
    'octavo remember "lives in Chiang Mai" --confidence 0.9', writes=True, begins=True, like=Account.remember
)
def remember(target: Account | Sandbox, **said: Any) -> Verdict:
    """Write one memory: a version of its own, or into a sandbox."""
    _must_fit(target, said, "key", "a key has no use inside a sandbox")
    return target.remember(**said)


@_memories("octavo remember-many facts.jsonl", writes=True, begins=True, long=True, result="verdicts")
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


@_memories(f'octavo revise {_ID} --text "lives in Lampang"', writes=True, like=Account.revise)
def revise(target: Account | Sandbox, **said: Any) -> Verdict:
    """Give a memory a new revision; the old one stays in its history."""
    _must_fit(target, said, "rev", "a sandbox has its own revisions")
    return target.revise(**said)


@_memories(f"octavo forget {_ID}", writes=True, like=Account.forget, result="verdicts")
def forget(
    target: Account | Sandbox, ids: Annotated[list[str], "The memories' ids."], **said: Any
) -> list[Verdict]:
    """End memories; their history stays."""
    _must_fit(target, said, "rev", "a sandbox has its own revisions")
    return target.forget(*ids, **said) if isinstance(target, Account) else [target.forget(i) for i in ids]


def _must_fit(target: Account | Sandbox, said: dict[str, Any], name: str, why: str) -> None:
    if isinstance(target, Sandbox) and name in said:
        raise BadInput(why, hint=f"leave out --{name} or --sandbox")


@_memories(f"octavo get {_ID} --at 41")
def get(reader: Reader, id: MemoryId) -> Memory:
    """Show one memory."""
    return live(reader, id)


@_memories("octavo memories --kind fact --since 2026-05-01 --limit 20", like=Reader.memories)
def memories(
    reader: Reader, *, limit: Annotated[Count, "At most so many."] = 50, **said: Any
) -> dict[str, Any]:
    """List memories in the order of their events."""
    page = reader.memories(limit=limit + 1, **said)
    more = len(page) > limit
    return {"memories": page[:limit], "next": page[limit - 1].id if more and limit else None}


@_memories(f"octavo history {_ID}", result="revisions")
def history(reader: Account | Snapshot, id: MemoryId) -> list[Revision]:
    """Show every revision of a memory."""
    revisions = reader.history(id)
    if not revisions:
        raise NotFound(f"there never was a memory {id!r}", hint="`octavo memories` lists those there are")
    return revisions


refusals = _memories("octavo refusals", result="refusals")(Account.refusals)


def live(reader: Reader, id: str) -> Memory:
    """A live memory; here a missing one is an error."""
    memory = reader.get(id)
    if memory is None:
        raise NotFound(
            f"there is no live memory {id!r} in version {reader.version}",
            hint=f"`octavo memories` lists those there are, `octavo history {id}` shows one that ended",
        )
    return memory


@_recall('octavo recall "where does she live?" --why', indexes=True, like=Reader.recall)
def recall(
    reader: Reader,
    *,
    why: Annotated[bool, "Show the parts of every score and where it comes from."] = False,
    once: Annotated[bool, "Take no second look, where the extra `rerank` would."] = False,
    **said: Any,
) -> dict[str, Any]:
    """Find the memories that answer a question, best first."""
    hits = reader.recall(**said, rerank=not once)
    drifted = reader.drifted(hits) if why else None
    return {
        "hits": [_told(hit, drifted) for hit in hits],
        "notes": hits.notes,
        "trail": hits.trail,
        "orders": hits.orders,
        "explained": why,
    }


def _told(hit: Hit, drifted: Collection[str] | None) -> dict[str, Any]:
    """A hit with what it derives from its fields: the text that matched, and the reasons in words.

    To find out what has drifted takes as long as the recall itself, so it is told with the reasons alone.
    """
    return {
        "memory": hit.memory,
        "turn": hit.turn,
        "text": hit.text,
        "score": hit.score,
        "parts": hit.parts,
        "why": hit.why,
        "reasons": [{"part": words, "value": value} for value, words in hit.reasons],
        "version": hit.version,
        "is_fresh": hit.is_fresh,
        "is_drifted": None if drifted is None else hit.memory.id in drifted,
        "notes": hit.notes,
        "replaced": hit.replaced,
    }


explain = _recall(f'octavo explain "where does she live?" {_ID}', indexes=True, result="explanation")(
    Reader.explain
)


brief = _recall('octavo brief "travel plans" --budget 800', indexes=True)(Reader.brief)
orders = _recall("octavo orders", result="orders")(Reader.orders)
end_order = _recall(f"octavo end-order {_ID} --turn 2", writes=True, result="verdicts")(Account.end_order)
alias = _recall("octavo alias Kate Emi", writes=True)(Account.alias)


@_recall(f"octavo freshness {_ID}")
def freshness(
    account: Account, id: Annotated[str | None, "The memory's id; none for the whole index."] = None
) -> dict[str, Any]:
    """Show what the index holds of a memory; without an id, how far it is behind."""
    if id is None:
        return {"version": account.version, **asdict(account.lag())}
    held = account.freshness(id)
    derived = {name: getattr(held, name) for name in ("is_fresh", "has_words", "has_vector")}
    return {**asdict(held), **derived}


@_recall("octavo catch-up", writes=True, indexes=True, long=True, like=Account.catch_up, result="version")
def catch_up(account: Account, **said: Any) -> int:
    """Bring the index up to the newest version."""
    account.catch_up(**said)
    return account.version


@_recall("octavo reindex", writes=True, indexes=True, long=True, like=Account.reindex, result="version")
def reindex(account: Account, **said: Any) -> int:
    """Throw the index away and make it anew from the ledger."""
    account.reindex(**said)
    return account.version


proposals = _review("octavo proposals", result="proposals")(Account.proposals)
proposal = _review(f"octavo proposal {_ID}")(Account.proposal)
approve = _review(f"octavo approve {_ID}", writes=True, human=True, result="approved")(Account.approve)
decline = _review(f'octavo decline {_ID} --reason "a guess"', writes=True, human=True, result="declined")(
    Account.decline
)
reopen = _review(f"octavo reopen {_ID}", writes=True, human=True, result="proposal")(Account.reopen)
reject = _review(
    'octavo reject "allergic to peanuts" --reason "never true"', writes=True, human=True, result="ended"
)(Account.reject)
unreject = _review('octavo unreject "allergic to peanuts"', writes=True, human=True, result="lifted")(
    Account.unreject
)
rejections = _review("octavo rejections", result="rejections")(Account.rejections)
redact = _review(
    f'octavo redact {_ID} --reason "asked to" --yes',
    writes=True,
    human=True,
    asks="Erase the text of {id} from every version? Nothing can bring it back.",
)(Account.redact)
promote = _review(f"octavo promote {_ID}", writes=True)(Account.promote)
merge_candidates = _review("octavo merge-candidates --floor 0.8", result="pairs")(Account.merge_candidates)
propose_merge = _review(f"octavo propose-merge {_ID} 01kajx3k9q2n5e7v8w4d", writes=True, result="proposal")(
    Account.propose_merge
)
deletion_candidates = _review("octavo deletion-candidates", result="doubts")(Account.deletion_candidates)
propose_deletions = _review("octavo propose-deletions", writes=True, result="asked")(
    Account.propose_deletions
)
