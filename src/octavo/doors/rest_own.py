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
from octavo.doors.rest_routes import ACCOUNT, add_route
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import HumanOnly, OutOfScope

_SECTION = "server"


def add(made: Any, pool: Pool, visitors: Visitors, metrics: Metrics) -> None:
    """Add the routes that are no operation on one account."""
    from fastapi import Response

    def page(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Counts in Prometheus' text form."""
        return Response(metrics.text(), media_type="text/plain; version=0.0.4")

    def session(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Say for whom a request is done; without a token also what a write must bring."""
        told = {"account": who.account, "actor": who.actor, "scope": who.scope}
        if visitors.is_person_here(request):
            told["same_origin"] = visitors.same_origin
        return answer(told)

    def accounts(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """List the accounts: a token's own, or on this machine all of them."""
        known = accounts_in(who.root)
        is_here = visitors.is_person_here(request)
        return answer({"accounts": known if is_here else [name for name in known if name == who.account]})

    def begin(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Begin an account."""
        _must_own(who, "begin an account")
        is_new = not exists(who)
        if is_new:
            python.open(who.root, who.account, actor=who.actor, cache=who.cache).close()
        return answer({"account": who.account, "is_new": is_new}, 201 if is_new else 200)

    def delete(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Delete an account whole, with its history."""
        _must_own(who, "delete an account")
        return answer(pool.perform(delete_account, who, {"name": who.account}))

    for path, open_ in (("/health", _health), (f"{problems.PATH}/{{name}}", _described)):
        made.add_api_route(path, open_, summary=inspect.getdoc(open_), description="", tags=[_SECTION])
    for method, path, act, more in (
        ("GET", "/metrics", page, {"media": "text/plain"}),
        ("GET", "/session", session, {}),
        ("GET", "/accounts", accounts, {}),
        ("PUT", ACCOUNT, begin, {"codes": (200, 201)}),
        ("DELETE", ACCOUNT, delete, {}),
    ):
        told: dict[str, Any] = {
            "section": _SECTION,
            "summary": inspect.getdoc(act) or "",
            "is_narrowed": False,
            **more,
        }
        add_route(made, visitors, method, path, act, **told)


def _health() -> Any:
    """Say that the server is there."""
    return answer({"status": "ok", "version": metadata.version("octavo")})


def _described(name: str) -> Any:
    """Say what a kind of problem is."""
    return answer(problems.described(name))


def _must_own(who: Settings, what: str) -> None:
    if not is_human(who.actor):
        raise HumanOnly(f"{who.actor} tried to {what}")
    if who.scope is not None:
        raise OutOfScope(f"a token bound to {who.scope!r} tried to {what}")
