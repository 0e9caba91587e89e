"""The server's own routes: health, metrics, who one is, accounts, and what a problem means."""

from __future__ import annotations

import inspect
from importlib import metadata
from typing import Any

from octavo.domain.memory import is_human
from octavo.doors import problems, python
from octavo.doors.operations.accounts import delete_account
from octavo.doors.operations.performing import accounts_in, exists
from octavo.doors.pool import Pool
from octavo.doors.rest_answers import answer
from octavo.doors.rest_guard import Metrics
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import HumanOnly, OutOfScope

_ACCOUNT = "/accounts/{account}"


def add(made: Any, pool: Pool, visitors: Visitors, metrics: Metrics) -> None:
    """Add the routes that are no operation on one account."""
    _add_about(made, visitors, metrics)
    _add_accounts(made, pool, visitors)


def _add_about(made: Any, visitors: Visitors, metrics: Metrics) -> None:
    from fastapi import Response

    def health() -> Any:
        """Say that the server is there."""
        return answer({"status": "ok", "version": metadata.version("octavo")})

    def page(request: Any) -> Any:
        """Counts in Prometheus' text form."""
        visitors.of(request)
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    def session(request: Any) -> Any:
        """Say for whom a request is done; without a token also what a write must bring."""
        who = visitors.of(request)
        told = {"account": who.account, "actor": who.actor, "scope": who.scope}
        if visitors.is_person_here(request):
            told["same_origin"] = visitors.same_origin
        return answer(told)

    def described(name: str) -> Any:
        """Say what a kind of problem is."""
        return answer(problems.described(name))

    _route(made, "GET", "/health", health)
    _route(made, "GET", "/metrics", page, "text/plain")
    _route(made, "GET", "/session", session)
    _route(made, "GET", f"{problems.PATH}/{{name}}", described)


def _add_accounts(made: Any, pool: Pool, visitors: Visitors) -> None:
    def accounts(request: Any) -> Any:
        """List the accounts: a token's own, or on this machine all of them."""
        who = visitors.of(request)
        known = accounts_in(who.root)
        is_here = visitors.is_person_here(request)
        return answer({"accounts": known if is_here else [name for name in known if name == who.account]})

    def begin(request: Any, account: str) -> Any:
        """Begin an account."""
        who = _owner(visitors.of(request, account), "begin an account")
        is_new = not exists(who)
        if is_new:
            python.open(who.root, account, actor=who.actor, cache=who.cache).close()
        return answer({"account": account, "is_new": is_new}, 201 if is_new else 200)

    def delete(request: Any, account: str) -> Any:
        """Delete an account whole, with its history."""
        who = _owner(visitors.of(request, account), "delete an account")
        return answer(pool.perform(delete_account, who, {"name": account}))

    _route(made, "GET", "/accounts", accounts)
    _route(made, "PUT", _ACCOUNT, begin)
    _route(made, "DELETE", _ACCOUNT, delete)


def _route(made: Any, method: str, path: str, act: Any, media: str = "application/json") -> None:
    from fastapi import Request

    names = inspect.signature(act).parameters
    act.__annotations__ = {name: Request if name == "request" else str for name in names}
    schema = {"type": "string" if media == "text/plain" else "object"}
    codes = (200, 201) if method == "PUT" else (200,)
    made.add_api_route(
        path,
        act,
        methods=[method],
        summary=inspect.getdoc(act),
        description="",
        response_model=None,
        responses={code: {"content": {media: {"schema": schema}}} for code in codes},
        tags=["server"],
    )


def _owner(who: Settings, what: str) -> Settings:
    if not is_human(who.actor):
        raise HumanOnly(f"{who.actor} tried to {what}")
    if who.scope is not None:
        raise OutOfScope(f"a token bound to {who.scope!r} tried to {what}")
    return who
