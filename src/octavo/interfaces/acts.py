"""Operations that are more than one call of the engine, and what every one of them opens first."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import octavo
from octavo.errors import BadInput, NotFound, Unavailable
from octavo.interfaces.parameters import time_of
from octavo.interfaces.settings import Settings
from octavo.later import Later
from octavo.storage.stores.names import folder_of

if TYPE_CHECKING:
    from octavo.domain.brief import Brief
    from octavo.domain.memory import Memory
    from octavo.domain.policy import Policy
    from octavo.domain.recall import Hit
    from octavo.domain.verdicts import Verdict
    from octavo.engine.account import Account
    from octavo.engine.differences import Diff
    from octavo.engine.reading import Reader, Revision
    from octavo.engine.sandbox import Sandbox
    from octavo.models.rerank import Reranker

formats = Later("octavo.interfaces.formats")
buffers = Later("octavo.domain.buffer")
codec = Later("octavo.storage.codec")
models = Later("octavo.interfaces.models")
policies = Later("octavo.domain.policy")

Progress = Callable[[int, int], None]
_Found = TypeVar("_Found")

_MOST_NAMED = 12


@dataclass(frozen=True, slots=True, kw_only=True)
class Way:
    """How an account is opened: what may happen to it, and which models may be used for recall."""

    writes: bool = False
    indexes: bool = False
    begins: bool = False
    accept_loss: bool = False
    words: bool = False
    rerank: bool = False


@contextmanager
def opened(settings: Settings, way: Way | None = None) -> Iterator[Account]:
    """The account, which must be there, unless it is the first of its folder and this may begin it."""
    way = way or Way()
    if not _exists(settings.root, settings.account) and not (way.begins and not _known(settings.root)):
        raise _missing(settings.root, settings.account)
    with _open(settings, way) as account:
        yield account


def _open(settings: Settings, way: Way) -> Account:
    """Open as the way says; recall also works, from the index as it is, where nothing may be written."""
    rules = _rules(settings) if way.writes and settings.models else None
    given: dict[str, Any] = {
        "actor": settings.actor,
        "scope": settings.scope,
        "embedder": False if way.words else models.embedder(settings.models) if settings.models else None,
        "reranker": _reranker(settings, way),
        "policy": rules,
        "summariser": models.summariser(settings.models, policy=rules.compression) if rules else None,
        "accept_loss": way.accept_loss,
    }
    if way.indexes and not way.writes:
        try:
            return octavo.open(settings.root, settings.account, **given)
        except Unavailable:
            return octavo.open(settings.root, settings.account, read_only=True, **given)
    return octavo.open(settings.root, settings.account, read_only=not way.writes, **given)


def _reranker(settings: Settings, way: Way) -> Reranker | None:
    """Who takes a second look at what recall finds; words alone load no model, whatever the settings say."""
    if way.words and way.rerank:
        raise BadInput("--words loads no model, and --rerank needs one", hint="say one of them")
    if way.words or not way.indexes or not (way.rerank or settings.models):
        return None
    found: Reranker | None = models.reranker(settings.models, wanted=way.rerank)
    return found


def _rules(settings: Settings) -> Policy:
    """The account's policy, which a summariser must know before the account is open."""
    own = settings.root / folder_of(settings.account) / "policy.toml"
    found: Policy = codec.decode_policy(own.read_bytes(), str(own)) if own.exists() else policies.Policy()
    return found


@contextmanager
def target(account: Account, sandbox: str | None, when: int | datetime | None) -> Iterator[Any]:
    """What is meant: the account itself, an open sandbox of it, or an older version."""
    if sandbox is not None and when is not None:
        raise BadInput("a sandbox has no older versions", hint="say --sandbox or --at, not both")
    if sandbox is not None:
        with closing(_taken(account, sandbox, account.resume)) as held:
            yield held
    else:
        yield account if when is None else account.at(when)


def init(settings: Settings, *, policy: str | None = None) -> dict[str, Any]:
    """Begin an account, or find that it is there already."""
    is_new = not _exists(settings.root, settings.account)
    own = settings.root / folder_of(settings.account) / "policy.toml"
    if policy is not None and not is_new:
        raise BadInput(f"account {settings.account!r} is there already", hint=f"edit {own}")
    rules = None if policy is None else _policy(Path(policy))
    with octavo.open(settings.root, settings.account, actor=settings.actor) as account:
        if rules is not None:
            own.write_bytes(rules)
        return {
            "account": account.name,
            "root": str(settings.root),
            "version": account.version,
            "is_new": is_new,
        }


def accounts(settings: Settings) -> list[str]:
    """The accounts in the folder; a folder that is not there holds none."""
    return _known(settings.root)


def delete_account(settings: Settings, *, name: str) -> None:
    """Delete an account whole."""
    if not _exists(settings.root, name):
        raise _missing(settings.root, name)
    octavo.delete_account(settings.root, name)


def sandbox(
    account: Account, *, name: str | None = None, started_at: datetime | None = None, strict: bool = False
) -> dict[str, Any]:
    """Open a sandbox in the handle's scope and let go of it, for others to take up."""
    scope = account.scope or "shared"
    with closing(account.sandbox(name, scope=scope, started_at=started_at, strict=strict)) as held:
        return {"id": held.id, "name": held.name, "scope": scope, "parent_version": held.parent_version}


def buffer(account: Account, *, sandbox: str) -> dict[str, Any]:
    """What a sandbox has written, each entry under its name in the file; its owner is not disturbed."""
    found = _taken(account, sandbox, account.buffer)
    return {
        "sandbox": found.opened,
        "entries": [{"t": buffers.TAGS[type(entry)], "entry": entry} for entry in found.entries],
        "torn_bytes": found.torn,
    }


def discard(sandbox: Sandbox) -> str:
    """Throw a sandbox away and say which one it was."""
    sandbox.discard()
    return sandbox.id


def remember_many(account: Account, *, items: Sequence[Mapping[str, Any]]) -> list[Verdict]:
    """Write several memories in one version."""
    timed = [{**item, "at": time_of(item["at"])} if item.get("at") else item for item in items]
    return account.remember_many(timed)


def forget(target: Account | Sandbox, *, ids: Sequence[str]) -> list[Verdict]:
    """End memories, in the account or in a sandbox."""
    if isinstance(target, octavo.Sandbox):
        return [target.forget(id_) for id_ in ids]
    return target.forget(*ids)


def get(reader: Reader, *, id: str) -> Memory:  # noqa: A002  # the glossary's word
    """A live memory; here a missing one is an error."""
    found = reader.get(id)
    if found is None:
        raise NotFound(
            f"there is no live memory {id!r} in version {reader.version}",
            hint=f"`octavo memories` lists those there are, `octavo history {id}` shows one that ended",
        )
    return found


def recall(
    reader: Reader, *, query: str, why: bool = False, streams: Sequence[str] | None = None, **more: Any
) -> dict[str, Any]:
    """The hits, each with its reasons in words, and what is to be known about how they were found."""
    wanted = "hept" if streams and list(streams) == ["hept"] else streams
    hits = reader.recall(query, streams=wanted, **more)
    drifted = reader.drifted(hits) if why else None
    return {
        "hits": [_told(hit, drifted) for hit in hits],
        "notes": hits.notes,
        "trail": hits.trail,
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
    }


def brief(reader: Reader, *, query: str | None = None, **more: Any) -> Brief:
    """What stands and what is relevant, for a prompt."""
    return reader.brief(query, **more)


def freshness(account: Account, *, id: str | None = None) -> dict[str, Any]:  # noqa: A002  # likewise
    """What the index holds of a memory or, without an id, how far it is behind the account's version."""
    if id is None:
        return {"version": account.version, **asdict(account.lag())}
    found = account.freshness(id)
    told = {name: getattr(found, name) for name in ("is_fresh", "has_words", "has_vector")}
    return {**asdict(found), **told}


def cores(reader: Reader) -> list[Memory]:
    """The cores there are, in the order of their sessions."""
    return reader.memories(kind="core")


def spheres(reader: Reader) -> list[Memory]:
    """The spheres there are, in the order of their sessions."""
    return reader.memories(kind="sphere")


def counters(account: Account) -> dict[str, Any]:
    """The counters of the handle's scope."""
    return account.counters(account.scope or "shared")


def catch_up(account: Account, *, progress: Progress | None = None) -> int:
    """Bring the index up to the ledger and say up to which version."""
    account.catch_up(progress=progress)
    return account.version


def reindex(account: Account, *, progress: Progress | None = None) -> int:
    """Make the index anew and say up to which version."""
    account.reindex(progress=progress)
    return account.version


def memories(reader: Reader, *, limit: int, **filters: Any) -> dict[str, Any]:
    """A page of memories, and the id behind which the next one begins."""
    found = reader.memories(limit=limit + 1, **filters)
    more = len(found) > limit
    return {"memories": found[:limit], "next": found[limit - 1].id if more and limit else None}


def history(reader: Reader, *, id: str) -> list[Revision]:  # noqa: A002  # the glossary's word
    """Every revision of a memory; one that never was is an error."""
    found = reader.history(id)
    if not found:
        raise NotFound(f"there never was a memory {id!r}", hint="`octavo memories` lists those there are")
    return found


def versions(account: Account, *, limit: int, after: int | None = None) -> dict[str, Any]:
    """A page of versions, oldest first: the newest ones, or those behind a number."""
    begin = max(account.version - limit, 0) if after is None else after
    found = account.versions(after=begin, limit=limit)
    last = found[-1].version if found else begin
    return {"versions": found, "next": last if last < account.version else None}


def diff(
    account: Account, *, before: int | datetime | None = None, after: int | datetime | None = None
) -> Diff:
    """What differs between two versions, by default the last one and the one before it."""
    return account.diff(max(account.version - 1, 0) if before is None else before, after)


def export(account: Account, *, path: str, format: str) -> dict[str, Any]:  # noqa: A002
    """Write the account in another system's files."""
    done = formats.export_account(account, Path(path), format)
    return {"path": path, "format": format, "result": done}


def import_(account: Account, *, path: str, format: str) -> dict[str, Any]:  # noqa: A002
    """Read another system's files through the gate."""
    done = formats.import_account(account, Path(path), format)
    return {"path": path, "format": format, "version": account.version, "result": done}


def _policy(path: Path) -> bytes:
    """A policy file that can be used, so that a bad one begins no account."""
    if not path.is_file():
        raise NotFound(f"there is no policy file {path}", hint="name a TOML file")
    rules = path.read_bytes()
    codec.decode_policy(rules, str(path))
    return rules


def _taken(account: Account, wanted: str, take: Callable[[str], _Found]) -> _Found:
    """Take a sandbox by its id, or by its name when only one open sandbox has it."""
    open_ = account.sandboxes()
    named = [info.id for info in open_ if wanted == info.name]
    if len(named) > 1:
        raise BadInput(f"{len(named)} sandboxes are called {wanted!r}", hint=f"say which: {', '.join(named)}")
    try:
        return take(named[0] if named else wanted)
    except (NotFound, BadInput) as error:
        there = ", ".join(f"{info.id} ({info.name})" for info in open_[:_MOST_NAMED])
        hint = f"open are: {there}" if open_ else "none is open; `octavo sandbox` opens one"
        raise NotFound(f"there is no sandbox {wanted!r}", hint=hint) from error


def _exists(root: Path, account: str) -> bool:
    return (root / folder_of(account) / "account.json").exists()


def _known(root: Path) -> list[str]:
    if root.exists() and not root.is_dir():
        raise BadInput(f"{root} is no folder", hint="name the folder that holds the accounts")
    return octavo.accounts(root) if root.exists() else []


def _missing(root: Path, account: str) -> NotFound:
    known = _known(root)
    more = "" if len(known) <= _MOST_NAMED else f" and {len(known) - _MOST_NAMED} more"
    there = f"there are: {', '.join(known[:_MOST_NAMED])}{more}" if known else "there is none yet"
    return NotFound(
        f"there is no account {account!r} in {root}",
        hint=f"{there}; `octavo init --account {account}` begins it",
    )
