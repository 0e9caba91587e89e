"""The spine of an open account: its store, ledger, state and policy, and the one way to commit."""

from __future__ import annotations

import gc
import hashlib
import hmac
import logging
import re
import secrets
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import msgspec
from msgspec.structs import replace

from octavo.domain import screening
from octavo.domain.memory import Change, Memory, Refusal
from octavo.domain.policy import Policy
from octavo.domain.ports import Projection, Store
from octavo.domain.records import shape_of
from octavo.domain.state import Pending
from octavo.errors import (
    Busy,
    Damaged,
    IndexDamaged,
    LedgerDamaged,
    NewerFormat,
    NotFound,
    ReadOnly,
    Unavailable,
)
from octavo.storage import codec
from octavo.storage.codec import Header
from octavo.storage.ledger import GENESIS, Ledger, Version, key_of
from octavo.storage.logs import REFUSALS
from octavo.storage.state_db import StateDb
from octavo.storage.state_view import DbView

_log = logging.getLogger(__name__)
_LETTERS = "0123456789abcdefghjkmnpqrstvwxyz"
_PAIRS = [first + second for first in _LETTERS for second in _LETTERS]
_KEY = re.compile("[0-9a-f]{64}")
_BACKOFF_SECONDS = 0.002
_TOLD = 1200  # characters of a refused text that its log keeps


class Identity(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True):
    """The account's own file: who it is, and the key that rejections and redactions are hashed with."""

    format: int
    account: str
    key: str
    created: datetime


C = TypeVar("C", bound=Change)
T = TypeVar("T")


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
        self.ledger, self.state = state.ledger, state
        self.identity = identity
        self.policy = policy
        self.clock = clock
        self.read_only = read_only
        self.index = (index or state.folder) / "recall"
        self.dimensions: dict[str, int] = {}  # of the embedders in use, to check vectors handed in
        self.followers: list[Projection] = []  # of documents that are open beside the account
        self._naming = threading.Lock()
        self._last_name = (0, "", 0)
        self._key = bytes.fromhex(identity.key)
        self._proved = 0  # the version whose file this process has read whole, or written
        self._durable = 0  # the newest version that this process knows to be durable

    @cached_property
    def _policy_hash(self) -> str:
        return codec.policy_hash(self.policy)  # who only reads needs none

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
        return self.state.at(self.state.catch_up())

    def commit(
        self,
        act: Callable[[Pending, DbView], T],
        *,
        cause: str,
        actor: str,
        scope: str | None = None,
        sandbox: str | None = None,
        last_line: int | None = None,
    ) -> tuple[T, Version | None]:
        """Make what `act` puts on top of the newest version the next one, whole; None if it is nothing.

        It runs again whenever another writer was first; what it gives the last time is given back. Refusals
        go to their log and make no version, but those of a sandbox, taken in up to the `last_line` of its
        buffer, are part of its result.
        """
        self.must_write()
        commit_id = secrets.token_hex(16)
        for attempt in range(self.policy.commit.attempts):
            with self.store.lock(self.policy.commit.wait_seconds):
                view = self.head()
                pending = Pending(view)
                done = act(pending, view)
                refused = [c for c in pending.changes if last_line is None and isinstance(c, Refusal)]
                changes = [c for c in pending.changes if not (refused and isinstance(c, Refusal))]
                draft = Header(
                    format=codec.FORMAT,
                    parent=view.version,
                    at=self.now(),
                    cause=cause,
                    actor=actor,
                    commit=commit_id,
                    policy=self._policy_hash,
                    key=fingerprint(self.identity.key),
                    scope=scope,
                    session=pending.session,
                    sandbox=sandbox,
                    last_line=last_line,
                )
                version = self._write(draft, changes) if changes else None
                if version is not None:
                    self._durable = self._proved = version.header.version
                    self._follow(version)
                elif not changes:
                    self.make_durable(view.version)
            if version is not None or not changes:
                for refusal in refused:
                    self.note(refusal)
                return done, version
            time.sleep(_BACKOFF_SECONDS * secrets.randbelow(2 ** min(attempt + 1, 8)))
        raise Busy(f"{self.policy.commit.attempts} attempts to commit all lost to other writers")

    def change(
        self, changes: Callable[[DbView], Iterable[C]], *, cause: str, actor: str, scope: str | None = None
    ) -> list[C]:
        """Commit the changes that are to be made to the newest version, if there are any; returns them."""

        def act(pending: Pending, view: DbView) -> list[C]:
            return pending.extend(changes(view))

        return self.commit(act, cause=cause, actor=actor, scope=scope)[0]

    def note(self, refusal: Refusal) -> None:
        """Log a refusal for people, without a secret; nobody fails because the log is full or damaged."""
        with suppress(Damaged, Unavailable):
            clean = screening.screened(refusal, self.policy.privacy)
            clean = replace(clean, text=clean.text and clean.text[:_TOLD])
            REFUSALS.add(self.store, clean, keep=self.policy.gate.refusals_kept)

    def _follow(self, version: Version) -> None:
        """Bring the state up to a version that is committed, whatever becomes of what is derived from it."""
        try:
            self.state.apply(version)
        except (IndexDamaged, Unavailable) as error:  # who reads next follows, or is told why not
            _log.warning(
                "state left behind version=%d reason=%s", version.header.version, type(error).__name__
            )

    def make_durable(self, version: int) -> None:
        """Make a version durable before its presence is acknowledged or a buffer goes because of it."""
        if version > self._durable:
            self.ledger.make_durable(version)
            self._durable = version

    def must_write(self) -> None:
        """Raise if the account was opened to read."""
        if self.read_only:
            raise ReadOnly(f"account {self.identity.account!r} was opened read-only")

    def _write(self, draft: Header, changes: Sequence[Change]) -> Version | None:
        """Write a version without secrets in it, whoever made its header and changes."""
        number, rules = draft.parent, self.policy.privacy
        draft = screening.screened(draft, rules)
        # Memories went through the gate.
        changes = [c if isinstance(c, Memory) else screening.screened(c, rules) for c in changes]
        parent = self.state.commit(number) if number else None
        if parent is not None and number != self._proved:
            # Once in a process: nothing is built on damage.
            if self.ledger.read(number).hash != parent.hash:
                raise LedgerDamaged(f"{key_of(number)} is not the version that the state was derived from")
            self._proved = number
        files: dict[int, bytes] = {}
        for version, envelope, body in self.state.bases_of(changes):  # a state file may have lost a bit
            if version not in files:
                files[version] = self.ledger.bytes_of(version)
            if envelope not in files[version] or (body is not None and body not in files[version]):
                raise IndexDamaged(f"the state file does not say what version {version} of the ledger says")
        parent_hash, parent_at = (parent.hash, parent.at) if parent else (GENESIS, None)
        return self.ledger.commit(draft, changes, parent_hash, parent_at)


@contextmanager
def without_gc() -> Iterator[None]:
    """Keep the garbage collector from looking for circles among thousands of new things that all live.

    It would look through them again and again, a seventh of an import's time, and find none.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def fingerprint(key: str) -> str:
    """What stands of the account's key in its first header: enough to know it by, too little to make it."""
    return hashlib.sha256(f"octavo key {key}".encode()).hexdigest()[:32]


def must_be_its_key(ledger: Ledger, identity: Identity) -> None:
    """Raise if the account's file holds another key than the ledger was begun with."""
    try:
        known = ledger.header(1)[0].key
    except Damaged:
        return  # there is none yet, or who reads the ledger tells of it
    if known is not None and known != fingerprint(identity.key):
        hint = "put account.json back from a backup; until then it can be read with read_only=True"
        raise Damaged(f"account.json of {identity.account!r} holds another key than its ledger", hint=hint)


def identify(store: Store, account: str, created: datetime | None = None) -> Identity:
    """Read the account's own file; with a time begin the account if it is not there."""
    data = store.read("account.json")
    if data is None and Ledger(store).exists(1) and (data := store.read("account.json")) is None:
        raise Damaged(f"account.json of {account!r} is missing beside its ledger; its key is in it")
    if data is None and created is not None:
        key = secrets.token_hex(32)
        fresh = Identity(format=codec.FORMAT, account=account, key=key, created=created)
        store.create("account.json", codec.encode_json(fresh) + b"\n")
        data = store.read("account.json")
    if data is None:
        raise NotFound(f"there is no account {account!r}", hint="`octavo accounts` lists those there are")
    try:
        identity = msgspec.json.decode(data, type=shape_of(Identity))
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


def _spelt(number: int) -> str:
    """Fifty bits as ten letters, two at a time."""
    return "".join([_PAIRS[number >> place & 1023] for place in (40, 30, 20, 10, 0)])
