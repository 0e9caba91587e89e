"""Bearer tokens: who may come in, kept as hashes, each bound to an account, an actor and a scope."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from datetime import UTC, datetime
from pathlib import Path

import msgspec
from msgspec import Struct

from octavo.domain.memory import check_actor, check_scope, is_human
from octavo.domain.records import shape_of
from octavo.errors import BadInput, Busy, Damaged, HumanOnly, NotFound
from octavo.storage.stores.places import place_of

PLACE, FILE = ".tokens", "tokens.json"  # beside the accounts, in whatever holds them
PREFIX = "octavo"
_WAIT_SECONDS = 10.0


class Token(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What is kept of a token: never its secret; scope None is the owner's, which only a person's may be."""

    id: str
    hash: str
    account: str
    actor: str
    scope: str | None = None
    created: datetime
    by: str


class Tokens:
    """The tokens of a place of accounts; one that is revoked in another process is refused at once."""

    def __init__(self, root: Path | str) -> None:
        self._store = place_of(root).open(PLACE)
        self._read: tuple[bytes, list[Token]] = (b"", [])

    def add(self, account: str, actor: str, scope: str | None, *, by: str) -> tuple[Token, str]:
        """Make a token and return it with its text, which is told this once."""
        _must_be_human(by, "give somebody a token")
        if scope is None and not is_human(check_actor(actor)):
            raise BadInput(f"{actor} cannot see every scope", hint="bind its token to one; a person's may")
        id_, secret = secrets.token_hex(4), secrets.token_urlsafe(32)
        text = f"{PREFIX}_{id_}_{secret}"
        token = Token(
            id=id_,
            hash=_hash(text),
            account=account,
            actor=actor,
            scope=None if scope is None else check_scope(scope),
            created=datetime.now(UTC),
            by=by,
        )
        with self._store.lock(_WAIT_SECONDS) as is_ours:
            self._write([*self.all(), token], is_ours)
        return token, text

    def revoke(self, id_: str, *, by: str) -> Token:
        """Take a token back; who holds it is a stranger from now on."""
        _must_be_human(by, "revoke a token")
        with self._store.lock(_WAIT_SECONDS) as is_ours:
            tokens = self.all()
            gone = next((token for token in tokens if token.id == id_), None)
            if gone is None:
                raise NotFound(f"there is no token {id_!r}", hint="`octavo token list` shows their ids")
            self._write([token for token in tokens if token.id != id_], is_ours)
        return gone

    def all(self) -> list[Token]:
        """Every token, oldest first, as they are kept now."""
        data = self._store.read(FILE) or b"[]"
        if data != self._read[0]:
            try:
                self._read = data, msgspec.json.decode(data, type=shape_of(list[Token]))
            except msgspec.DecodeError as error:
                hint = "restore the file, or remove it and give new ones"
                raise Damaged(f"{FILE} cannot be read: {error}", hint=hint) from error
        return self._read[1]

    def of(self, text: str) -> Token | None:
        """The token of a text, None if there is none."""
        hashed = _hash(text)
        return next((token for token in self.all() if hmac.compare_digest(token.hash, hashed)), None)

    def _write(self, tokens: list[Token], is_ours: bool) -> None:
        if not is_ours:
            raise Busy("the tokens are being changed by somebody else")
        self._store.replace(FILE, msgspec.json.format(msgspec.json.encode(tokens)) + b"\n")


def _hash(text: str) -> str:
    """A token has 256 random bits, so that one round of a fast hash keeps it."""
    return hashlib.sha256(text.encode()).hexdigest()


def _must_be_human(actor: str, what: str) -> None:
    if not is_human(actor):
        raise HumanOnly(f"{actor} tried to {what}")
