"""The pages as routes: addresses, forms that only our own pages can send, and errors in words."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from urllib.parse import parse_qsl, quote

from msgspec.structs import replace

from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.doors.web import acts, telling, views
from octavo.doors.web.visits import HEADERS, HERE, Visit
from octavo.errors import NotAllowed, OctavoError

Who = Callable[[Any, str], Settings]  # as whom a request looks, by what it and its form's token prove
_LONGEST = 64_000  # bytes of a form
_PAGES: tuple[tuple[str, str, Callable[[Visit], Any]], ...] = (
    ("GET", "ask", views.ask),
    ("GET", "timeline", views.timeline),
    ("GET", "undo/{version}", views.undo),
    ("GET", "restore/{version}", views.restore),
    ("GET", "review", views.review),
    ("GET", "memory/{id}", views.memory),
    ("GET", "graph/{id}", views.graph),
    ("GET", "reading", views.reading),
    ("GET", "health", views.health),
    *(("POST", path, act) for path, act in acts.ACTS.items()),
)


def add(app: Any, pool: Pool, visitors: Visitors) -> None:
    """Add the pages; who looks at them is who the server takes the request for, within that one's account."""

    def who(request: Any, token: str) -> Settings:
        return visitors.of(request, request.path_params.get("account"), proof=token)

    app.router.routes.extend(pages(pool, who, visitors.same_origin))


def pages(pool: Pool, who: Who, token: str) -> list[Any]:
    """The routes of all accounts' pages, below `/@account/`; `token` is what every form of ours sends."""
    from starlette.responses import RedirectResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    def home(request: Any) -> Any:
        named = request.path_params.get("account") or who(request, "").account
        return RedirectResponse(f"{request.scope.get('root_path', '')}/@{quote(named, safe='')}/ask")

    routes = [
        *((path, home, "GET") for path in ("/", "/@{account}", "/@{account}/")),
        *((f"/@{{account}}/{path}", _endpoint(pool, who, token, page), how) for how, path, page in _PAGES),
        ("/@{account}/theme/{theme}", _theme, "GET"),
    ]
    return [
        *(Route(path, act, methods=[method], include_in_schema=False) for path, act, method in routes),
        Mount("/static", StaticFiles(directory=HERE / "static")),
    ]


def _endpoint(pool: Pool, who: Who, token: str, page: Callable[[Visit], Any]) -> Callable[..., Any]:
    """A page or act as an endpoint: the form is read and proved, the account leased, every error told."""
    from starlette.concurrency import run_in_threadpool

    def answered(request: Any, form: Mapping[str, str]) -> Any:
        visit = Visit(request, form, token)
        try:
            if request.method == "POST":
                _must_be_ours(request, form, token)
            visit.settings = replace(who(request, form.get("token", "")), account=visit.at["account"])
            visit.shown["me"] = visit.settings.actor.partition(":")[2].capitalize()
            with pool.account(visit.settings) as visit.account:
                return page(visit)
        except OctavoError as error:
            kinds = (telling.words("trouble").get(kind.__name__) for kind in type(error).__mro__)
            told = {"title": next(words for words in kinds if words), "name": type(error).__name__}
            return visit.html("error.html", error.http_status, **told, error=error, at=datetime.now(UTC))

    async def answer(request: Any) -> Any:
        return await run_in_threadpool(answered, request, await _form(request))

    return answer


async def _form(request: Any) -> dict[str, str]:
    """The fields of a form, within bounds; what is longer is no form of ours, and has no token."""
    body = b""
    async for piece in request.stream():
        body += piece
        if len(body) > _LONGEST:
            return {}
    return dict(parse_qsl(body.decode("utf-8", "replace"), keep_blank_values=True))


def _must_be_ours(request: Any, form: Mapping[str, str], token: str) -> None:
    """Refuse a form that another page sent: it has not our token, or its browser says so."""
    site = request.headers.get("sec-fetch-site", "same-origin")
    sent = form.get("token", "").encode()
    if site not in ("same-origin", "none") or not hmac.compare_digest(sent, token.encode()):
        raise NotAllowed(
            "the form did not come from a page of this server as it runs now",
            hint="nothing was changed; open the page again and send it once more",
        )


def _theme(request: Any) -> Any:
    """The page one came from, in light, in dark or as the device is; it changes nothing but a cookie."""
    from starlette.responses import RedirectResponse

    theme = request.path_params["theme"]
    back = request.headers.get("referer", "").partition(request.headers.get("host", "\n"))[2]
    home = request.url.path.rpartition("/theme/")[0] + "/ask"
    answer = RedirectResponse(back if back.startswith("/@") else home, status_code=303, headers=HEADERS)
    kept = theme if theme in ("light", "dark") else "auto"
    answer.set_cookie("theme", kept, httponly=True, samesite="strict")
    return answer
