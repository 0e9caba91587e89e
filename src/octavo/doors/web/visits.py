"""A visit: one request to an account's pages, proved to be ours if it is a form, and what answers it."""

from __future__ import annotations

import hmac
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import cache
from inspect import getmembers, isfunction
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, quote, urlencode

from octavo.domain.episodes import moment
from octavo.doors import problems
from octavo.doors.pool import Pool
from octavo.doors.render.diff import word_steps
from octavo.doors.render.shapes import plural
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.doors.web import telling
from octavo.engine.account import Account
from octavo.errors import BadInput, NotAllowed, OctavoError
from octavo.storage.state_log import Commit

HERE = Path(__file__).parent
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}
_LONGEST = 64_000  # bytes of a form


class Visit:
    """The address without its account, what was said in it or by a form; then whose account it is."""

    account: Account
    settings: Settings

    def __init__(self, request: Any, form: Mapping[str, str], token: str) -> None:
        self.at, self.query, self.form = request.path_params, dict(request.query_params), form
        self.id = str(self.at.get("id", ""))
        root = str(request.scope.get("root_path", ""))
        self.base = f"{root}/@{quote(self.at['account'], safe='')}"
        self.shown = {
            "static": f"{root}/static",
            "token": token,
            "page": request.url.path.partition("/@")[2].split("/")[1],
            "theme": request.cookies.get("theme", "auto"),
            "url": self.link,
            "query": self.query,
        }

    def number(self, name: str, default: int | None = None) -> int:
        """A number of the address, as part of its path or behind the question mark."""
        said = self.at.get(name) or self.query.get(name) or ("" if default is None else str(default))
        if not said.isdecimal() or len(said) > 18:
            raise BadInput(f"{name} {said[:40]!r} is no number", hint="go back and choose one that is shown")
        return int(said)

    def said(self, name: str) -> str:
        """What a field of a form says, which must be something."""
        text = self.form.get(name, "").strip()
        if not text:
            raise BadInput("there was nothing in the field", hint="write something and send it again")
        return text

    def commit(self, version: int) -> Commit:
        """When, by whom and why a version was made."""
        return self.account.versions(after=version - 1, limit=1)[0]

    def link(self, to: str, /, **query: Any) -> str:
        """An address of the account's pages; a word of Python's has a line behind it."""
        said = {name.rstrip("_"): value for name, value in query.items() if value is not None}
        return f"{self.base}/{quote(to)}" + (f"?{urlencode(said)}" if said else "")

    def page(self, template: str, status: int = 200, **values: Any) -> Any:
        """A page of the account."""
        return self.html(template, status, account=self.account, commit=self.commit, **values)

    def html(self, template: str, status: int, **values: Any) -> Any:
        """A template with its values and what every page shows, all of it escaped."""
        from starlette.responses import HTMLResponse

        written = _templates().get_template(template).render({**self.shown, **values})
        return HTMLResponse(written, status_code=status, headers=HEADERS)

    def go(self, to: str, done: str) -> Any:
        """Another page after an act, which says what was done and offers to take it back, if that can be."""
        from starlette.responses import RedirectResponse

        undo = self.account.version if done != "erased" else None
        return RedirectResponse(self.link(to, done=done, undo=undo), status_code=303, headers=HEADERS)


def endpoint(pool: Pool, visitors: Visitors, page: Callable[[Visit], Any]) -> Callable[..., Any]:
    """A page or act as an endpoint: the form is read and proved, the account leased, every error told."""
    from starlette.concurrency import run_in_threadpool

    def answered(request: Any, form: Mapping[str, str]) -> Any:
        visit, token = Visit(request, form, visitors.same_origin), form.get("token", "")
        is_ours = request.headers.get("sec-fetch-site", "same-origin") in ("same-origin", "none")
        is_ours &= hmac.compare_digest(token.encode(), visitors.same_origin.encode())
        try:
            if request.method == "POST" and not is_ours:
                hint = "nothing was changed; open the page again and send it once more"
                raise NotAllowed("the form did not come from a page of this server as it runs now", hint=hint)
            visit.settings = visitors.of(request, visit.at["account"], proof=token)
            visit.shown["me"] = visit.settings.actor.partition(":")[2].capitalize()
            begins = visit.settings.account == visitors.settings.account  # the first of an empty folder
            with pool.account(visit.settings, begins=begins) as visit.account:
                return page(visit)
        except OctavoError as error:
            if "json" in request.headers.get("accept", ""):
                return problems.response(error, request.url.path)
            kinds = [kind.__name__ for kind in type(error).__mro__]
            told = {"kinds": kinds, "at": datetime.now(UTC), "is_open": hasattr(visit, "account")}
            return visit.html("error.html", error.http_status, error=error, **told)

    async def answer(request: Any) -> Any:
        body = await request.body()
        said = body.decode("utf-8", "replace") if len(body) <= _LONGEST else ""  # no form of ours is longer
        return await run_in_threadpool(answered, request, dict(parse_qsl(said, keep_blank_values=True)))

    return answer


@cache
def _templates() -> Any:
    """The templates, in which every function of `telling` is a filter and every table of words a name."""
    import jinja2

    files, strict = jinja2.FileSystemLoader(HERE / "templates"), jinja2.StrictUndefined
    how: dict[str, Any] = {"undefined": strict, "trim_blocks": True, "lstrip_blocks": True}
    made = jinja2.Environment(loader=files, autoescape=True, **how)
    made.filters.update(getmembers(telling, isfunction), moment=moment, plural=plural, word_steps=word_steps)
    made.globals.update({table.upper(): words for table, words in telling.words().items()})
    return made
