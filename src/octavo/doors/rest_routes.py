"""The bridge to FastAPI: a route is a path, the parameters of a table's row, what is done and answered."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from octavo.domain.memory import Memory
from octavo.domain.verdicts import Verdict
from octavo.doors import forms
from octavo.doors.operations import Operation, Parameter
from octavo.doors.plain import plain
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import BadInput, NotFound

Act = Callable[[Any, Settings, dict[str, Any]], Any]  # of a request, for whom, with what was said
Shape = Callable[[Any], tuple[Any, int]]  # a value as another document says it, and its status
ACCOUNT = "/accounts/{account}"
_WHOSE = Parameter(name="account", summary="Whose memory.")
_SCOPE = Parameter(name="scope", summary="See only `shared` and this scope; it can narrow, never widen.")


_NEEDED = inspect.Parameter.empty


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:
    """A value as a JSON answer; what is one's memory stays in no cache."""
    from fastapi import Response

    own = {"Cache-Control": "no-store", **(headers or {})}
    if status == 304:
        return Response(None, status, own)
    return Response(msgspec.json.encode(plain(value)), status, own, "application/json")


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
    from fastapi import Path, Query, Request

    known = {"account": _WHOSE, **{p.name: p for p in parameters}}
    # Of several ids a path has one.
    spelt = {name: name if name in known else f"{name}s" for name in re.findall(r"{(\w+)", path)}
    others = [p for p in parameters if p.name not in spelt.values()]
    unique = re.sub(r"\W+", "_", f"{method.lower()}_{path.replace(ACCOUNT, 'account')}").strip("_")
    has_body = method in ("POST", "PATCH") and bool(others)
    in_query = [*([_SCOPE] if is_narrowed else []), *([] if has_body else others)]

    def endpoint(request: Any, body: Any = None, **values: Any) -> Any:
        account, scope = values.pop("account", None), values.pop("scope", None) if is_narrowed else None
        named = {own: [values.pop(name)] for name, own in spelt.items() if name != own}
        said = {name: value for name, value in values.items() if value is not None}
        return act(request, visitors.of(request, account, scope), {**said, **named, **forms.said(body)})

    takes: dict[str, tuple[Any, Any]] = {"request": (Request, _NEEDED)}
    for name, own in spelt.items():
        placed = replace(known[own], type=int if known[own].type is int else str)
        takes[name] = forms.typed(placed, Path), _NEEDED
    for p in in_query:
        type_ = forms.typed(p, Query, has_null=not p.is_required)
        takes[p.name] = type_, _NEEDED if p.is_required else p.default
    if has_body:
        model = forms.form(unique, others, strict=True, extra="forbid" if is_strict else "ignore")
        takes["body"] = (model, _NEEDED) if any(p.is_required for p in others) else (model | None, None)
    endpoint.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=type_, default=default)
            for name, (type_, default) in takes.items()
        ]
    )
    schema = {"type": "object" if media == "application/json" else "string"}
    app.add_api_route(
        path,
        endpoint,
        methods=[method],
        operation_id=unique,
        summary=summary,
        description=description,
        tags=[section],
        response_model=None,
        responses={code: {"content": {media: {"schema": schema}}} for code in codes},
    )


def add_operation(
    app: Any,
    pool: Pool,
    visitors: Visitors,
    operation: Operation,
    method: str,
    path: str,
    shape: Shape | None = None,
) -> None:
    """Add the route of an operation; `shape` says its value in another document's form."""
    names = {p.name for p in operation.parameters}

    def act(request: Any, who: Settings, values: dict[str, Any]) -> Any:
        values |= {**_condition(request, names), **_idempotency(request, operation.name, names)}
        return _shown(request, operation.name, pool.perform(operation, who, values), shape)

    add_route(
        app,
        visitors,
        method,
        path,
        act,
        operation.parameters,
        section=operation.section,
        summary=operation.summary,
        description="Only a human actor may." if operation.human else "",
    )


def _condition(request: Any, names: set[str]) -> dict[str, Any]:
    """The revision that `If-Match` insists on, where one can be insisted on."""
    tag = request.headers.get("if-match")
    if tag is None or tag.strip() == "*" or "rev" not in names:
        return {}
    text = tag.strip().strip('"')
    if not text.isdecimal():
        raise BadInput(f"If-Match {tag[:80]!r} is no revision", hint='send the ETag as it came, such as "3"')
    return {"rev": int(text)}


def _idempotency(request: Any, operation: str, names: set[str]) -> dict[str, Any]:
    """The key that makes a retry safe."""
    key = request.headers.get("idempotency-key")
    if key is not None and "key" not in names:
        hint = "only `remember` takes one; consolidating twice is safe without"
        raise BadInput(f"{operation} takes no Idempotency-Key", hint=hint)
    return {} if key is None else {"key": key}


def _shown(request: Any, operation: str, value: Any, shape: Shape | None) -> Any:
    """The answer: its status from a verdict, its ETag from a revision, the next page as a link."""
    status, headers = 200, {}
    verdict = value if isinstance(value, Verdict) else None
    if request.method == "DELETE" and operation == "forget":
        (verdict,) = value["verdicts"]
    memory = value if isinstance(value, Memory) else None
    if verdict is not None:
        if verdict.outcome == "refused" and verdict.check == "missing":
            raise NotFound(verdict.detail)
        if verdict.outcome == "refused":
            verdict.or_raise()
        status, memory = (202 if verdict.outcome == "proposed" else 200), verdict.memory
        if verdict.outcome == "admitted" and operation == "remember":
            status = 201
    if memory is not None and operation != "forget":
        headers["ETag"] = f'"{memory.rev}"'
        if request.method == "GET" and request.headers.get("if-none-match") == headers["ETag"]:
            return answer(None, 304, headers)
    if request.method == "GET" and isinstance(value, Mapping) and value.get("next") is not None:
        following = request.url.include_query_params(after=value["next"])
        headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    if shape is not None:
        value, status = shape(value)
    return answer(value, status, headers)
