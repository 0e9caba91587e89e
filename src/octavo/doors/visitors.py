"""Who may come in by HTTP: a token's account, actor and scope, or on this machine alone the person at it.

Every request passes the guard first: the Host check, the limits of size and rate; and it is counted.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterable, MutableMapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from octavo import errors
from octavo.domain.memory import check_actor, check_scope, is_human
from octavo.domain.records import shape_of
from octavo.doors import problems
from octavo.doors.settings import Settings
from octavo.errors import OctavoError
from octavo.storage.stores.places import place_of

SAME_ORIGIN = "X-Octavo-Origin"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_PLACE, _FILE = ".tokens", "tokens.json"  # beside the accounts, in whatever holds them
_WAIT_SECONDS = 10.0
_FORWARDED = ("forwarded", "via", "x-forwarded-for", "x-forwarded-host", "x-real-ip")
_METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
_HEADERS = ((b"x-content-type-options", b"nosniff"), (b"referrer-policy", b"same-origin"))
Counts = Counter[tuple[str, str, int]]  # how many requests there were of each method, path and status


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
        self._store = place_of(root).open(_PLACE)

    def add(self, account: str, actor: str, scope: str | None, *, by: str) -> tuple[Token, str]:
        """Make a token and return it with its text, which is told this once."""
        if not is_human(check_actor(actor)) and scope is None:
            raise errors.BadInput(
                f"{actor} cannot see every scope", hint="bind its token to one; a person's may"
            )
        bound = None if scope is None else check_scope(scope)
        id_ = secrets.token_hex(4)
        text = f"octavo_{id_}_{secrets.token_urlsafe(32)}"
        whose: dict[str, Any] = {"account": account, "actor": actor, "scope": bound}
        token = Token(id=id_, hash=_hash(text), created=datetime.now(UTC), by=by, **whose)
        self._change(lambda tokens: [*tokens, token], by)
        return token, text

    def revoke(self, id_: str, *, by: str) -> Token:
        """Take a token back; who holds it is a stranger from now on."""
        gone = next((token for token in self.all() if token.id == id_), None)
        if gone is None:
            raise errors.NotFound(f"there is no token {id_!r}", hint="`octavo token list` shows their ids")
        self._change(lambda tokens: [token for token in tokens if token.id != id_], by)
        return gone

    def all(self) -> list[Token]:
        """Every token, oldest first, as they are kept now."""
        try:
            return msgspec.json.decode(self._store.read(_FILE) or b"[]", type=shape_of(list[Token]))
        except msgspec.DecodeError as error:
            hint = "restore the file, or remove it and give new ones"
            raise errors.Damaged(f"{_FILE} cannot be read: {error}", hint=hint) from error

    def of(self, text: str) -> Token | None:
        """The token of a text, None if there is none."""
        hashed = _hash(text)
        return next((token for token in self.all() if hmac.compare_digest(token.hash, hashed)), None)

    def _change(self, change: Callable[[list[Token]], list[Token]], by: str) -> None:
        if not is_human(by):
            raise errors.HumanOnly(f"{by} tried to say who may come in")
        with self._store.lock(_WAIT_SECONDS) as is_ours:
            if not is_ours:
                raise errors.Busy("the tokens are being changed by somebody else")
            written = msgspec.json.encode(change(self.all()))
            self._store.replace(_FILE, msgspec.json.format(written) + b"\n")


def _hash(text: str) -> str:
    """A token has 256 random bits, so that one round of a fast hash keeps it."""
    return hashlib.sha256(text.encode()).hexdigest()


class Visitors:
    """Decides for whom a request is done; nothing that a request says can widen what its token allows."""

    def __init__(self, settings: Settings, *, host: str = "127.0.0.1", hosts: Iterable[str] = ()) -> None:
        self.settings = settings
        self.tokens = Tokens(settings.root)
        self.same_origin = secrets.token_urlsafe(32)
        self._is_local = host in LOOPBACK
        self._hosts = LOOPBACK | {name.lower() for name in (host, *hosts)}

    def must_know_host(self, host: str) -> None:
        """Raise if a request was meant for a name that is not ours: a page elsewhere may have led it here."""
        if re.sub(r":\d*$", "", host).strip("[]").lower() not in self._hosts:
            raise errors.NotAllowed(
                f"this server is not {host!r}", hint="start it with --allow-host if it is"
            )

    def of(
        self, request: Any, account: str | None = None, scope: str | None = None, proof: str | None = None
    ) -> Settings:
        """The settings a request is done with; `account` is what its path names, `scope` may only narrow.

        `proof` is what a form of our own page carries: forms cannot send headers, as a script would.
        """
        is_here = self.is_person_here(request)
        who = self._person(request, proof) if is_here else self._holder(request.headers["authorization"])
        if account is not None and account != who.account:
            if not is_here:
                raise errors.OutOfScope(f"this token is for another account than {account!r}")
            who = replace(who, account=account)
        if scope is not None and scope != who.scope:
            if who.scope is not None:
                raise errors.OutOfScope(f"a token bound to {who.scope!r} asked for scope {scope!r}")
            who = replace(who, scope=scope)
        return who

    def is_person_here(self, request: Any) -> bool:
        """Whether the request comes without a token, as only the person at this machine may."""
        return "authorization" not in request.headers

    def _holder(self, bearer: str) -> Settings:
        kind, _, text = bearer.partition(" ")
        token = self.tokens.of(text.strip()) if kind.lower() == "bearer" else None
        if token is None:
            raise errors.Stranger("nobody is known by this token")
        whose: dict[str, Any] = {"account": token.account, "actor": token.actor, "scope": token.scope}
        return replace(self.settings, **whose, is_alone=True)

    def _person(self, request: Any, proof: str | None) -> Settings:
        client, headers = request.client.host if request.client else "", request.headers
        is_near = client in LOOPBACK and not any(name in headers for name in _FORWARDED)
        if not (self._is_local and is_near):
            raise errors.Stranger("without a token only this machine is served")
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != headers.get("host"):
            raise errors.NotAllowed(f"a page of {origin} may not ask here", hint="use a token")
        sent = headers.get(SAME_ORIGIN, "") if proof is None else proof
        is_read = request.method in ("GET", "HEAD", "OPTIONS")
        if not is_read and not hmac.compare_digest(sent.encode(), self.same_origin.encode()):
            hint = f"send the header {SAME_ORIGIN} with what GET /session gives, or use a token"
            raise errors.NotAllowed("a write without a token must come from our own page", hint=hint)
        return self.settings


class Guard:
    """The ASGI layer around the whole server: so many bytes a request, so many requests a client and time."""

    def __init__(
        self,
        app: Any,
        visitors: Visitors,
        counts: Counts,
        max_bytes: int = 4_000_000,
        requests: int = 5_000,
        seconds: float = 10.0,
    ) -> None:
        self._app, self._visitors, self._counts = app, visitors, counts
        self._max_bytes, self._requests, self._seconds = max_bytes, requests, seconds
        self._asked, self._since = Counter[str](), time.monotonic()

    async def __call__(self, scope: MutableMapping[str, Any], receive: Any, send: Any) -> None:
        """Let a request in, or answer with a problem."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        from anyio import CancelScope

        status, left, method, rest = 500, self._max_bytes, scope["method"], CancelScope()
        if method == "HEAD":  # it is a GET of which the beginning alone is told
            scope = {**scope, "method": "GET"}

        async def received() -> Any:
            nonlocal left
            message = await receive()
            left -= len(message.get("body", b""))
            if left < 0:
                raise errors.TooLarge(f"a request may carry {self._max_bytes:,} bytes")
            return message

        async def sent(message: Any) -> None:
            nonlocal status
            if rest.cancel_called:
                return
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), *_HEADERS]
            await send(message)
            if method == "HEAD":
                await send({"type": "http.response.body"})
                rest.cancel()

        try:
            self._must_pass(scope)
            with rest:
                await self._app(scope, received, sent)
        except OctavoError as error:
            await problems.response(error, str(scope["path"]))(scope, receive, sent)
        finally:
            self._counts[
                method if method in _METHODS else "other",
                str(getattr(scope.get("route"), "path", "other")),
                status,
            ] += 1

    def _must_pass(self, scope: MutableMapping[str, Any]) -> None:
        headers, now = dict(scope["headers"]), time.monotonic()
        self._visitors.must_know_host(headers.get(b"host", b"").decode("latin-1"))
        if now - self._since > self._seconds:
            self._asked, self._since = Counter(), now
        client = scope["client"][0] if scope.get("client") else ""
        self._asked[client] += 1
        if self._asked[client] > self._requests:
            raise errors.TooOften(
                f"{client} asks more than {self._requests:,} times in {self._seconds:g} seconds"
            )
