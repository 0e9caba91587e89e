"""Who asks by HTTP: a token's account, actor and scope, or on this machine alone the person at it."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from msgspec.structs import replace

from octavo.doors.settings import Settings
from octavo.doors.tokens import Tokens
from octavo.errors import NotAllowed, OutOfScope, Stranger

SAME_ORIGIN = "X-Octavo-Origin"
LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})
_READS = ("GET", "HEAD", "OPTIONS")
_FORWARDED = ("forwarded", "x-forwarded-for", "x-real-ip")


class Visitors:
    """Decides for whom a request is done; nothing that a request says can widen what its token allows."""

    def __init__(self, settings: Settings, *, host: str = "127.0.0.1", hosts: Iterable[str] = ()) -> None:
        self.settings = settings
        self.tokens = Tokens(settings.root)
        self.same_origin = secrets.token_urlsafe(32)
        self._is_local = host in LOOPBACK
        self._hosts = LOOPBACK | {host, *hosts}

    def must_know_host(self, host: str) -> None:
        """Raise if a request was meant for a name that is not ours: a page elsewhere may have led it here."""
        name = urlsplit(f"//{host}").hostname or ""
        if name not in self._hosts:
            raise NotAllowed(f"this server is not {host!r}", hint="start it with --allow-host if it is")

    def of(
        self, request: Any, account: str | None = None, scope: str | None = None, proof: str | None = None
    ) -> Settings:
        """The settings a request is done with; `account` is what its path names, `scope` may only narrow.

        `proof` is what a form of our own page carries: forms cannot send headers, as a script would.
        """
        bearer = request.headers.get("authorization")
        who = self._person(request, proof) if bearer is None else self._holder(bearer)
        is_bound = bearer is not None
        if account is not None and account != who.account:
            if is_bound:
                raise OutOfScope(f"this token is for another account than {account!r}")
            who = replace(who, account=account)
        if scope is not None and scope != who.scope:
            if who.scope is not None:
                raise OutOfScope(f"a token bound to {who.scope!r} asked for scope {scope!r}")
            who = replace(who, scope=scope)
        return who

    def is_person_here(self, request: Any) -> bool:
        """Whether the request comes from this machine without a token."""
        return request.headers.get("authorization") is None

    def _holder(self, bearer: str) -> Settings:
        kind, _, text = bearer.partition(" ")
        token = self.tokens.of(text.strip()) if kind.lower() == "bearer" else None
        if token is None:
            raise Stranger("nobody is known by this token")
        return replace(self.settings, account=token.account, actor=token.actor, scope=token.scope)

    def _person(self, request: Any, proof: str | None) -> Settings:
        client = request.client.host if request.client else ""
        is_near = client in LOOPBACK and not any(name in request.headers for name in _FORWARDED)
        if not (self._is_local and is_near):
            raise Stranger("without a token only this machine is served")
        origin = request.headers.get("origin")
        if origin is not None and urlsplit(origin).netloc != request.headers.get("host"):
            raise NotAllowed(f"a page of {origin} may not ask here", hint="use a token")
        sent = request.headers.get(SAME_ORIGIN, "") if proof is None else proof
        if request.method not in _READS and not hmac.compare_digest(sent.encode(), self.same_origin.encode()):
            hint = f"send the header {SAME_ORIGIN} with what GET /session gives, or use a token"
            raise NotAllowed("a write without a token must come from our own page", hint=hint)
        return self.settings
