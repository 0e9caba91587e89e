"""A visit: one request to one account's pages, and the three things that can answer it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from msgspec import Struct

from octavo.engine.account import Account
from octavo.errors import BadInput


class Visit(Struct, frozen=True, kw_only=True):
    """Who looks at which account, the address without its account, and what was said in it or by a form."""

    account: Account
    base: str
    at: Mapping[str, str]
    query: Mapping[str, str]
    form: Mapping[str, str]

    def number(self, name: str, default: int | None = None) -> int:
        """A number of the address, as part of its path or behind the question mark."""
        said = self.at.get(name) or self.query.get(name) or ("" if default is None else str(default))
        if not said.isdecimal() or len(said) > 18:
            raise BadInput(f"{name} {said[:40]!r} is no number", hint="go back and choose one that is shown")
        return int(said)


class Page(Struct, frozen=True, kw_only=True):
    """A template and what it shows."""

    template: str
    values: Mapping[str, Any]
    status: int = 200


class Redirect(Struct, frozen=True, kw_only=True):
    """Another page, after an act; `done` names what was done and `undo` the version that takes it back."""

    to: str
    done: str | None = None
    undo: int | None = None

    def address(self, base: str) -> str:
        """Where it leads, with what the page shall say."""
        said = {"done": self.done, "undo": self.undo}
        return link(base, self.to, **{name: value for name, value in said.items() if value is not None})


class Download(Struct, frozen=True, kw_only=True):
    """A file to keep."""

    name: str
    data: bytes


Answer = Page | Redirect | Download


def link(base: str, to: str, /, **query: Any) -> str:
    """An address of the account's pages."""
    said = {name.rstrip("_"): value for name, value in query.items() if value is not None}
    return f"{base}/{quote(to)}" + (f"?{urlencode(said)}" if said else "")
