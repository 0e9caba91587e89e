"""A visit: one request to an account's pages, what was said in it, and the page, way or file that answers."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

from octavo.doors.operations.performing import store_of
from octavo.doors.settings import Settings
from octavo.doors.web import telling
from octavo.engine.account import Account
from octavo.errors import BadInput

HERE = Path(__file__).parent
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self'; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    "Cache-Control": "no-store",
}


class Visit:
    """The address without its account, what was said in it or by a form; then whose account it is."""

    account: Account
    settings: Settings

    def __init__(self, request: Any, form: Mapping[str, str], token: str) -> None:
        self.at, self.query, self.form = request.path_params, dict(request.query_params), form
        root, undo = str(request.scope.get("root_path", "")), self.query.get("undo", "")
        self.base = f"{root}/@{quote(self.at['account'], safe='')}"
        self.shown = {
            "static": f"{root}/static",
            "base": self.base,
            "token": token,
            "page": request.url.path.partition("/@")[2].partition("/")[2].partition("/")[0],
            "theme": request.cookies.get("theme", "auto"),
            "url": partial(link, self.base),
            "done": telling.words("done").get(self.query.get("done", "")),
            "undo": int(undo) if undo.isdecimal() and len(undo) < 18 else None,
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

    def sizes(self) -> tuple[int, int] | None:
        """The bytes of the versions and of what is made of them; None for an account without a folder."""
        folder = store_of(self.settings).folder
        if folder is None:
            return None
        sizes = [(p.parts, p.stat().st_size) for p in folder.rglob("*") if p.is_file()]
        kept, made = (sum(size for parts, size in sizes if part in parts) for part in ("ledger", "index"))
        return kept, made

    def page(self, template: str, status: int = 200, **values: Any) -> Any:
        """A page of the account."""
        standing = {"waiting": len(self.account.proposals()), "version": self.account.version}
        return self.html(template, status, **standing, **values)

    def html(self, template: str, status: int, **values: Any) -> Any:
        """A template with its values and what every page shows, all of it escaped."""
        from starlette.responses import HTMLResponse

        written = _templates().get_template(template).render({**self.shown, **values})
        return HTMLResponse(written, status_code=status, headers=HEADERS)

    def go(self, to: str, done: str, *, can_undo: bool = True) -> Any:
        """Another page after an act, which says what was done and offers to take it back."""
        from starlette.responses import RedirectResponse

        undo = self.account.version if can_undo else None
        return RedirectResponse(link(self.base, to, done=done, undo=undo), status_code=303, headers=HEADERS)


def link(base: str, to: str, /, **query: Any) -> str:
    """An address of the account's pages."""
    said = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{base}/{quote(to)}" + (f"?{urlencode(said)}" if said else "")


@cache
def _templates() -> Any:
    import jinja2

    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    names = ("speech", "change", "when", "day", "gist", "wording", "label", "sure", "name_of", "span", "look")
    made.filters.update({name: getattr(telling, name) for name in names})
    made.globals.update({"KINDS": telling.words("kinds"), "LINKS": telling.words("links")})
    return made
