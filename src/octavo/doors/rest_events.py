"""Server-sent events: every new version of an account as it comes, and those missed meanwhile."""

from __future__ import annotations

import inspect
import time
from collections.abc import AsyncIterator, Callable
from typing import Annotated, Any

import msgspec

from octavo.doors.plain import plain
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import BadInput, Busy

_POLL_SECONDS = 0.25
_ALIVE_SECONDS = 15.0
_PAGE = 100


def events(app: Any, pool: Pool, visitors: Visitors, most: int) -> Callable[..., Any]:
    """The route that streams versions; at most so many clients listen at once."""
    from anyio import sleep, to_thread
    from fastapi import Query, Request
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
            while not app.state.is_ending():
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

    async def route(request: Any, account: str, after: int | None, scope: str | None) -> Any:
        who = visitors.of(request, account, scope)
        if listening >= most:
            raise Busy(f"{most} clients listen already")
        newest = await to_thread.run_sync(_newest, pool, who)
        seen = _last_seen(request.headers.get("last-event-id"), after, newest)
        return StreamingResponse(
            stream(who, seen), media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    after = Annotated[int | None, Query(ge=0, le=2**31 - 1, description="Begin behind this version.")]
    scope = Annotated[str | None, Query(description="See only `shared` and this scope.")]
    kinds = {"request": Request, "account": str, "after": after, "scope": scope}
    route.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(
                name,
                inspect.Parameter.KEYWORD_ONLY,
                annotation=kind,
                default=None if name in ("after", "scope") else inspect.Parameter.empty,
            )
            for name, kind in kinds.items()
        ]
    )
    return route


def _newest(pool: Pool, who: Settings) -> int:
    with pool.account(who) as account:
        return account.version


def _last_seen(header: str | None, after: int | None, newest: int) -> int:
    """Behind which version to begin: the last event seen, else what is said, else only what is new."""
    if header is None:
        return newest if after is None else after
    if not header.isdecimal() or len(header) > 12:
        raise BadInput(f"Last-Event-ID {header[:40]!r} is no version")
    return int(header)
