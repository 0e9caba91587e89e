"""The spine of an open account: its store, ledger, state and policy, and the one way to commit."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import msgspec

from octavo.domain.memory import Change
from octavo.domain.policy import Policy
from octavo.domain.ports import Store
from octavo.errors import Busy, Damaged, NewerFormat, NotFound, ReadOnly
from octavo.storage import codec
from octavo.storage.ledger import Draft, Ledger, Version, key_of
from octavo.storage.state_db import StateDb
from octavo.storage.state_view import DbView

_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]
_KEY = re.compile("[0-9a-f]{64}")
_BACKOFF_SECONDS = 0.002


class Identity(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The account's own file: who it is, and the key that rejections and redactions are hashed with."""

    format: int
    account: str
    key: str
    created: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a commit wants to write on top of the version it has just seen."""

    changes: Sequence[Change]
    cause: str
    actor: str
    scope: str | None = None
    session: int | None = None
    sandbox: str | None = None
    last_line: int | None = None


class Spine:
    """Everything an account's operations share; the only way a version comes to be."""

    def __init__(
        self,
        store: Store,
        state: StateDb,
        identity: Identity,
        *,
        policy: Policy,
        clock: Callable[[], datetime],
        read_only: bool,
        index: Path | None = None,
    ) -> None:
        self.store = store
        self.ledger = Ledger(store)
        self.state = state
        self.identity = identity
        self.policy = policy
        self.clock = clock
        self.read_only = read_only
        self.index = (index or state.folder) / "recall"
        self.dimensions: dict[str, int] = {}  # of the embedders in use, to check vectors handed in
        self._naming = threading.Lock()
        self._last_name = (0, "", 0)
        self._policy_hash = codec.policy_hash(policy)
        self._key = bytes.fromhex(identity.key)
        self._durable = 0  # the newest version that this process knows to be durable

    def now(self) -> datetime:
        """The time, aware and in UTC."""
        moment = self.clock()
        return moment if moment.tzinfo is UTC else moment.astimezone(UTC)

    def new_id(self) -> str:
        """A new id: twenty letters and digits that sort by time, and within a millisecond by order."""
        return self.new_ids(1)[0]

    def new_ids(self, count: int) -> list[str]:
        """Some new ids, in order."""
        with self._naming:
            milliseconds = int(self.now().timestamp() * 1000)
            last, spelt, number = self._last_name
            if milliseconds != last:
                spelt, number = _spelt(milliseconds), secrets.randbits(49) - 1
            self._last_name = (milliseconds, spelt, number + count)
        return [spelt + _spelt(each) for each in range(number + 1, number + 1 + count)]

    def keyed(self, text: str) -> str:
        """The keyed hash by which a text is recognised without being kept."""
        return hmac.new(self._key, text.encode(), hashlib.sha256).hexdigest()

    def head(self) -> DbView:
        """The newest version, after following the ledger to it."""
        return self.state.at(self.state.catch_up(self.ledger))

    def commit(self, decide: Callable[[DbView], Plan | None]) -> Version | None:
        """Run a decision on the newest version and make its plan the next one, all or nothing.

        Losing the race runs the decision again; None means there was nothing to write.
        """
        self.must_write()
        commit_id = secrets.token_hex(16)
        for attempt in range(self.policy.commit.attempts):
            with self.store.lock(self.policy.commit.wait_seconds):
                view = self.head()
                plan = decide(view)
                if plan is None or not plan.changes:
                    self.settle(view.version)
                    return None
                version = self._write(plan, view.version, commit_id)
                if version is not None:
                    self._durable = version.header.version
                    self.state.apply(version)
                    return version
            time.sleep(_BACKOFF_SECONDS * secrets.randbelow(2 ** min(attempt + 1, 8)))
        raise Busy(f"{self.policy.commit.attempts} attempts to commit all lost to other writers")

    def settle(self, version: int) -> None:
        """Make a version durable before its presence is acknowledged or a buffer goes because of it."""
        if version > self._durable:
            self.ledger.settle(version)
            self._durable = version

    def must_write(self) -> None:
        """Raise if the account was opened to read."""
        if self.read_only:
            raise ReadOnly(f"account {self.identity.account!r} was opened read-only")

    def _write(self, plan: Plan, parent: int, commit_id: str) -> Version | None:
        known, parent_hash = self.state.watermark()
        if known != parent:
            return None
        draft = Draft(
            changes=plan.changes,
            salts=_salts(len(plan.changes)),
            cause=plan.cause,
            actor=plan.actor,
            commit=commit_id,
            policy=self._policy_hash,
            at=self.now(),
            scope=plan.scope,
            session=plan.session,
            sandbox=plan.sandbox,
            last_line=plan.last_line,
        )
        parent_at = self.state.commit(parent).at if parent else None
        return self.ledger.commit(draft, parent, parent_hash, parent_at)


def identify(store: Store, account: str, now: datetime, *, create: bool) -> Identity:
    """Read the account's own file, or begin the account."""
    data = store.read("account.json")
    if data is None and store.exists(key_of(1)):
        raise Damaged(f"account.json of {account!r} is missing beside its ledger; its key is in it")
    if data is None and create:
        fresh = Identity(format=codec.FORMAT, account=account, key=secrets.token_hex(32), created=now)
        store.create("account.json", codec.encode_json(fresh) + b"\n")
        data = store.read("account.json")
    if data is None:
        raise NotFound(f"there is no account {account!r}", hint="`octavo accounts` lists those there are")
    try:
        identity = msgspec.json.decode(data, type=Identity)
    except msgspec.ValidationError as error:
        raise NewerFormat(f"account.json holds what this Octavo does not know: {error}") from error
    except msgspec.DecodeError as error:
        raise Damaged(f"account.json of {account!r} is not JSON: {error}") from error
    except UnicodeDecodeError as error:
        raise Damaged(f"account.json of {account!r} is not UTF-8: {error.reason}") from error
    if identity.format > codec.FORMAT:
        raise NewerFormat(f"account.json of {account!r} has format {identity.format}")
    if not _KEY.fullmatch(identity.key):
        raise Damaged(f"account.json of {account!r} holds no key of 64 hexadecimal digits")
    return identity


def _salts(count: int) -> list[str]:
    """Salts of 128 random bits, drawn at once."""
    drawn = secrets.token_hex(16 * count)
    return [drawn[place : place + 32] for place in range(0, 32 * count, 32)]


def _spelt(number: int) -> str:
    """Fifty bits as ten letters, two at a time."""
    return "".join([_PAIRS[number >> place & 1023] for place in (40, 30, 20, 10, 0)])
