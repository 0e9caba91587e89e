"""The pages as routes: addresses, forms that only our own pages can send, headers, and errors in words."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import cache, partial
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qsl, quote

from msgspec.structs import replace

from octavo.doors.settings import Settings
from octavo.doors.web import acts, telling, views
from octavo.doors.web.visits import Answer, Download, Page, Redirect, Visit, link
from octavo.engine.account import Account
from octavo.errors import NotAllowed, OctavoError

Who = Callable[[Any, str], Settings]  # as whom a request looks, by what it and its form's token prove
_HERE = Path(__file__).parent
_LONGEST = 64_000  # bytes of a form
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
_PAGES: Mapping[str, Callable[[Visit], Answer]] = {
    "ask": views.ask,
    "timeline": views.timeline,
    "undo/{version}": views.undo,
    "restore/{version}": views.restore,
    "review": views.review,
    "memory/{id}": views.memory,
    "reading": views.reading,
    "health": views.health,
}
_ACTS: Mapping[str, Callable[[Visit], Answer]] = {
    "remember": acts.remember,
    "review/{id}": acts.decide,
    "undo/{version}": acts.undo,
    "restore/{version}": acts.restore,
    "memory/{id}/correct": acts.correct,
    "memory/{id}/forget": acts.forget,
    "memory/{id}/erase": acts.erase,
    "copy": acts.copy,
}


class Accounts(Protocol):
    """What the pages need of a pool."""

    def account(self, who: Settings) -> AbstractContextManager[Account]:
        """An open account for as long as the block lasts."""
        ...


def pages(pool: Accounts, who: Who, token: str) -> list[Any]:
    """The routes of all accounts' pages, below `/@account/`; `token` is what every form of ours sends."""
    from starlette.responses import RedirectResponse
    from starlette.routing import Mount, Route
    from starlette.staticfiles import StaticFiles

    def home(request: Any) -> Any:
        named = request.path_params.get("account") or who(request, "").account
        return RedirectResponse(f"{_root(request)}/@{quote(named, safe='')}/ask")

    def routes(table: Mapping[str, Callable[[Visit], Answer]], method: str) -> list[Any]:
        each = ((f"/@{{account}}/{path}", _endpoint(pool, who, token, page)) for path, page in table.items())
        return [Route(path, endpoint, methods=[method], include_in_schema=False) for path, endpoint in each]

    return [
        *(Route(path, home, include_in_schema=False) for path in ("/", "/@{account}", "/@{account}/")),
        *routes(_PAGES, "GET"),
        *routes(_ACTS, "POST"),
        Route("/@{account}/theme/{theme}", _theme, include_in_schema=False),
        Mount("/static", StaticFiles(directory=_HERE / "static")),
    ]


def _endpoint(pool: Accounts, who: Who, token: str, page: Callable[[Visit], Answer]) -> Callable[..., Any]:
    """A page or act as an endpoint: the form is read and proved, the account leased, every error told."""
    from starlette.concurrency import run_in_threadpool

    def answered(request: Any, form: Mapping[str, str]) -> Any:
        frame = _frame(request, token)
        try:
            if request.method == "POST":
                _must_be_ours(request, form, token)
            settings = who(request, form.get("token", ""))
            settings = replace(settings, account=request.path_params["account"])
            frame["me"] = settings.actor.partition(":")[2].capitalize()
            with pool.account(settings) as account:
                at, query = request.path_params, dict(request.query_params)
                visit = Visit(account=account, base=frame["base"], at=at, query=query, form=form)
                return _response(visit, frame, page(visit))
        except OctavoError as error:
            kinds = (telling.words("trouble").get(kind.__name__) for kind in type(error).__mro__)
            title = next(words for words in kinds if words)
            values = {**frame, "title": title, "error": error, "name": type(error).__name__}
            return _html("error.html", values, error.http_status)

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


def _frame(request: Any, token: str) -> dict[str, Any]:
    """What every page shows, whatever becomes of it."""
    base = f"{_root(request)}/@{quote(request.path_params['account'], safe='')}"
    undo = request.query_params.get("undo", "")
    return {
        "static": f"{_root(request)}/static",
        "base": base,
        "token": token,
        "page": request.url.path.partition("/@")[2].partition("/")[2].partition("/")[0],
        "theme": request.cookies.get("theme", "auto"),
        "url": partial(link, base),
        "done": telling.words("done").get(request.query_params.get("done", "")),
        "undo": int(undo) if undo.isdecimal() and len(undo) < 18 else None,
    }


def _response(visit: Visit, frame: Mapping[str, Any], answer: Answer) -> Any:
    from starlette.responses import RedirectResponse, Response

    match answer:
        case Redirect():
            return RedirectResponse(answer.address(visit.base), status_code=303, headers=HEADERS)
        case Download():
            disposition = {"Content-Disposition": f'attachment; filename="{answer.name}"'}
            return Response(answer.data, media_type="application/zip", headers={**HEADERS, **disposition})
        case Page():
            standing = {"waiting": len(visit.account.proposals()), "version": visit.account.version}
            return _html(answer.template, {**frame, **standing, **answer.values}, answer.status)


def _html(template: str, values: Mapping[str, Any], status: int) -> Any:
    from starlette.responses import HTMLResponse

    written = _templates().get_template(template).render(values)
    return HTMLResponse(written, status_code=status, headers=HEADERS)


@cache
def _templates() -> Any:
    """The templates, every value in them escaped."""
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(_HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    names = ("speech", "change", "when", "day", "gist", "wording", "label", "sure", "name_of")
    made.filters.update({name: getattr(telling, name) for name in names})
    made.globals.update({"KINDS": telling.words("kinds"), "LINKS": telling.words("links")})
    return made


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


def _root(request: Any) -> str:
    return str(request.scope.get("root_path", ""))
