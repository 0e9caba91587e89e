"""The bridge to FastAPI: a route is a path, the parameters of a table's row, and what is done with them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated, Any

from octavo.doors.operations import Parameter
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors

Act = Callable[[Any, Settings, dict[str, Any]], Any]  # of a request, for whom, with what was said
ACCOUNT = "/accounts/{account}"
_MOST = 2**31 - 1  # what no list is longer than
# What JSON has for a type of the table; times are texts, read as the table reads them.
_JSON_TYPES: dict[Any, Any] = {datetime: str, int | datetime: int | str}
_WHOSE = Parameter(name="account", summary="Whose memory.")
_SCOPE = Parameter(name="scope", summary="See only `shared` and this scope; it can narrow, never widen.")
_NEEDED = inspect.Parameter.empty


def add_route(
    app: Any,
    visitors: Visitors,
    method: str,
    path: str,
    act: Act,
    parameters: Sequence[Parameter] = (),
    *,
    section: str,
    summary: str,
    description: str = "",
    is_narrowed: bool = True,
    is_strict: bool = True,
    media: str = "application/json",
    codes: Sequence[int] = (200,),
) -> None:
    """Add a route; a parameter stands in the path if that names it, else in the query or a JSON body.

    Who asks is told by the request alone; one that `is_narrowed` may ask for less than its token allows.
    A body that `is_strict` holds nothing else: what is misspelt or of another type is said, not ignored.
    """
    from fastapi import Request

    # Of several ids a path has one.
    spelt = {name: "ids" if name == "id" and _has(parameters, "ids") else name for name in _names(path)}
    others = [p for p in parameters if p.name not in spelt.values()]
    has_body = method in ("POST", "PATCH") and bool(others)

    def endpoint(request: Any, body: Any = None, **said: Any) -> Any:
        account, scope = (said.pop(name, None) for name in ("account", "scope"))
        values = {spelt.get(name, name): value for name, value in said.items() if value is not None}
        values |= body.model_dump(exclude_unset=True) if body is not None else {}
        if isinstance(values.get("ids"), str):
            values["ids"] = [values["ids"]]
        return act(request, visitors.of(request, account, scope), values)

    known = {"account": _WHOSE, **{p.name: p for p in parameters}}
    arguments: dict[str, tuple[Any, Any]] = {"request": (Request, _NEEDED)}
    arguments |= {name: (_in_path(known[own]), _NEEDED) for name, own in spelt.items()}
    if is_narrowed:
        arguments["scope"] = _in_query(_SCOPE)
    if has_body:
        arguments["body"] = _body(_unique(method, path), others, is_strict)
    else:
        arguments |= {p.name: _in_query(p) for p in others}
    endpoint.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=type_, default=default)
            for name, (type_, default) in arguments.items()
        ]
    )
    schema = {"type": "object" if media == "application/json" else "string"}
    app.add_api_route(
        path,
        endpoint,
        methods=[method],
        operation_id=_unique(method, path),
        summary=summary,
        description=description,
        tags=[section],
        response_model=None,
        responses={code: {"content": {media: {"schema": schema}}} for code in codes},
    )


def _names(path: str) -> list[str]:
    return re.findall(r"{(\w+)", path)


def _has(parameters: Sequence[Parameter], name: str) -> bool:
    return any(p.name == name for p in parameters)


def _unique(method: str, path: str) -> str:
    """A name for a route and its body that no other has."""
    return re.sub(r"\W+", "_", f"{method.lower()}_{path.replace(ACCOUNT, 'account')}").strip("_")


def _bounds(parameter: Parameter) -> dict[str, Any]:
    if parameter.type not in (int, float):
        return {}
    most = _MOST if parameter.most is None and parameter.type is int else parameter.most
    return {name: bound for name, bound in (("ge", parameter.least), ("le", most)) if bound is not None}


def _in_path(parameter: Parameter) -> Any:
    from fastapi import Path

    type_ = int if parameter.type is int else str
    return Annotated[type_, Path(description=parameter.summary, **_bounds(parameter))]


def _in_query(parameter: Parameter) -> tuple[Any, Any]:
    from fastapi import Query

    type_: Any = str if parameter.type == int | datetime else _JSON_TYPES.get(parameter.type, parameter.type)
    shown = Query(description=parameter.summary, **_bounds(parameter))
    if parameter.is_required:
        return Annotated[type_, shown], _NEEDED
    optional = type_ | None if parameter.default is None else type_
    return Annotated[optional, shown], parameter.default


def _body(name: str, parameters: Sequence[Parameter], is_strict: bool) -> tuple[Any, Any]:
    """A model of the body."""
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for p in parameters:
        type_: Any = _JSON_TYPES.get(p.type, p.type)
        type_ = Annotated[type_, Field(description=p.summary, **_bounds(p))]
        fields[p.name] = (type_, ...) if p.is_required else (type_ | None, p.default)
    model: Any = create_model(
        name, __config__=ConfigDict(strict=True, extra="forbid" if is_strict else "ignore"), **fields
    )
    return (model, _NEEDED) if any(p.is_required for p in parameters) else (model | None, None)
