"""Server-sent events: every new version of an account as it comes, and those missed meanwhile."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from octavo.doors.operations import Parameter
from octavo.doors.plain import plain
from octavo.doors.pool import Pool
from octavo.doors.rest_routes import ACCOUNT, add_route
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import BadInput, Busy

_POLL_SECONDS = 0.25
_ALIVE_SECONDS = 15.0
_PAGE = 100
_AFTER = Parameter(name="after", type=int, least=0, summary="Begin behind this version.")


def add(app: Any, pool: Pool, visitors: Visitors, most: int) -> None:
    """Add the route that streams versions; at most so many clients listen at once."""
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
    add_route(app, visitors, "GET", f"{ACCOUNT}/events", listen, [_AFTER], **told)


def _last_seen(header: str | None, after: int) -> int:
    """Behind which version to begin: the last event seen, else what is said or only what is new."""
    if header is None:
        return after
    if not header.isdecimal() or len(header) > 12:
        raise BadInput(f"Last-Event-ID {header[:40]!r} is no version")
    return int(header)
