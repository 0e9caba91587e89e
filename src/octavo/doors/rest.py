"""The REST door: a FastAPI app whose routes are read from the table of operations, and the server's own."""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from importlib import metadata
from typing import Any

import msgspec

from octavo.domain.memory import is_human
from octavo.doors import problems, python
from octavo.doors.operations import OPERATIONS, Parameter
from octavo.doors.operations.accounts import delete_account
from octavo.doors.operations.performing import accounts_in, exists
from octavo.doors.plain import plain
from octavo.doors.pool import Pool
from octavo.doors.rest_guard import Guard, Limits, Metrics
from octavo.doors.rest_routes import ACCOUNT, add_operation, add_route, answer
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import BadInput, Busy, HumanOnly, OutOfScope

# The resources, each an operation; every other one that names no file answers below /operations.
ROUTES: tuple[tuple[str, str, str], ...] = (
    ("GET", "/memories", "memories"),
    ("POST", "/memories", "remember"),
    ("POST", "/memories/batch", "remember_many"),
    ("GET", "/memories/search", "recall"),
    ("POST", "/memories/search", "recall"),
    ("GET", "/memories/{id}", "get"),
    ("PATCH", "/memories/{id}", "revise"),
    ("DELETE", "/memories/{id}", "forget"),
    ("GET", "/memories/{id}/history", "history"),
    ("POST", "/memories/{id}/promote", "promote"),
    ("POST", "/memories/{id}/redact", "redact"),
    ("GET", "/versions", "versions"),
    ("POST", "/versions/{version}/restore", "restore"),
    ("POST", "/versions/{version}/revert", "revert"),
    ("GET", "/diff", "diff"),
    ("GET", "/sandboxes", "sandboxes"),
    ("POST", "/sandboxes", "sandbox"),
    ("GET", "/sandboxes/{sandbox}", "buffer"),
    ("DELETE", "/sandboxes/{sandbox}", "discard"),
    ("POST", "/sandboxes/{sandbox}/turns", "turn"),
    ("POST", "/sandboxes/{sandbox}/consolidate", "consolidate"),
    ("GET", "/proposals", "proposals"),
    ("GET", "/proposals/{id}", "proposal"),
    ("POST", "/proposals/{id}/approve", "approve"),
    ("POST", "/proposals/{id}/decline", "decline"),
    ("POST", "/proposals/{id}/reopen", "reopen"),
    ("GET", "/assemblies", "assemblies"),
    ("POST", "/assemblies", "assemble"),
    ("GET", "/assemblies/{id}", "assembly"),
    ("GET", "/assemblies/{id}/lineage", "lineage"),
    ("GET", "/health", "check"),
    ("GET", "/brief", "brief"),
    ("GET", "/stats", "stats"),
)
BY_NAME = {operation.name: operation for operation in OPERATIONS}
REMOTE = tuple(o for o in OPERATIONS if not o.local and o.subjects != (Settings,))
_PROBLEM: dict[str, Any] = {
    "description": "What went wrong, as an RFC 9457 problem.",
    "content": {problems.MEDIA_TYPE: {"schema": problems.SCHEMA}},
}
_POLL_SECONDS, _ALIVE_SECONDS, _PAGE = 0.25, 15.0, 100
_AFTER = Parameter(name="after", type=int, least=0, summary="Begin behind this version.")


def app(
    pool: Pool,
    settings: Settings,
    *,
    visitors: Visitors | None = None,
    limits: Limits | None = None,
    mounts: Iterable[Callable[[Any, Pool, Visitors], None]] = (),
) -> Any:
    """The FastAPI app of a folder of accounts; each of `mounts` adds its own routes to it."""
    from fastapi import FastAPI

    visitors, limits = visitors or Visitors(settings), limits or Limits()

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        yield
        pool.close()

    made = FastAPI(
        title="Octavo",
        version=metadata.version("octavo"),
        description="Long-term memory for AI agents. Errors are RFC 9457 problems.",
        lifespan=lifespan,
        redoc_url=None,
        docs_url=None,
        responses={"default": _PROBLEM},
        separate_input_output_schemas=False,
    )
    made.state.visitors, made.state.is_ending = visitors, lambda: False
    metrics = Metrics(pool)
    problems.answer_errors(made)
    _add_own(made, pool, visitors, metrics)
    for method, path, name in ROUTES:
        add_operation(made, pool, visitors, BY_NAME[name], method, ACCOUNT + path)
    for operation in REMOTE:
        add_operation(made, pool, visitors, operation, "POST", f"{ACCOUNT}/operations/{operation.name}")
    _add_events(made, pool, visitors, limits.streams)
    for mount in mounts:
        mount(made, pool, visitors)
    made.add_middleware(Guard, visitors=visitors, limits=limits, metrics=metrics)
    return made


def _add_own(made: Any, pool: Pool, visitors: Visitors, metrics: Metrics) -> None:
    """Add the routes that are no operation on one account: health, counts, who one is, accounts, problems."""
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
        made.add_api_route(path, open_, summary=inspect.getdoc(open_), description="", tags=["server"])
    own: tuple[tuple[str, str, Any, dict[str, Any]], ...] = (
        ("GET", "/metrics", page, {"media": "text/plain"}),
        ("GET", "/session", session, {}),
        ("GET", "/accounts", accounts, {}),
        ("PUT", ACCOUNT, begin, {"codes": (200, 201)}),
        ("DELETE", ACCOUNT, delete, {}),
    )
    for method, path, act, more in own:
        told = {"section": "server", "summary": inspect.getdoc(act) or "", "is_narrowed": False, **more}
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


def _add_events(made: Any, pool: Pool, visitors: Visitors, most: int) -> None:
    """Add the stream of server-sent events: every new version as it comes, and those missed meanwhile.

    At most so many clients listen at once.
    """
    from anyio import sleep, to_thread
    from fastapi.responses import StreamingResponse

    listening = 0

    def page(who: Settings, after: int) -> list[Any]:
        with pool.account(who) as account:
            return account.versions(after=after, limit=_PAGE)

    async def stream(who: Settings, seen: int) -> AsyncIterator[str]:
        nonlocal listening
        listening += 1
        spoke = time.monotonic()
        try:
            yield "retry: 1000\n\n"
            while not made.state.is_ending():
                for commit in await to_thread.run_sync(page, who, seen):
                    seen, spoke = commit.version, time.monotonic()
                    data = msgspec.json.encode(plain(commit)).decode()
                    yield f"id: {seen}\nevent: version\ndata: {data}\n\n"
                if time.monotonic() - spoke > _ALIVE_SECONDS:
                    spoke = time.monotonic()
                    yield ": alive\n\n"
                await sleep(_POLL_SECONDS)
        finally:
            listening -= 1

    def listen(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        if listening >= most:
            raise Busy(f"{most} clients listen already")
        with pool.account(who) as account:
            newest = account.version
        seen = _last_seen(request.headers.get("last-event-id"), said.get("after", newest))
        headers = {"Cache-Control": "no-store"}
        return StreamingResponse(stream(who, seen), media_type="text/event-stream", headers=headers)

    told: dict[str, Any] = {
        "section": "versions",
        "summary": "Stream new versions.",
        "media": "text/event-stream",
    }
    add_route(made, visitors, "GET", f"{ACCOUNT}/events", listen, [_AFTER], **told)


def _last_seen(header: str | None, after: int) -> int:
    """Behind which version to begin: the last event seen, else what is said or only what is new."""
    if header is None:
        return after
    if not header.isdecimal() or len(header) > 12:
        raise BadInput(f"Last-Event-ID {header[:40]!r} is no version")
    return int(header)
