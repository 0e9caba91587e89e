"""The bridge to FastAPI: a route is a path, the parameters of a table's row, what is done and answered."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, cast

import msgspec

from octavo.domain.memory import Memory
from octavo.domain.verdicts import Verdict
from octavo.doors.operations import Operation, Parameter
from octavo.doors.plain import plain
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import BadInput, NotFound

Act = Callable[[Any, Settings, dict[str, Any]], Any]  # of a request, for whom, with what was said
Shape = Callable[[Any], tuple[Any, int]]  # a value as another document says it, and its status
ACCOUNT = "/accounts/{account}"
_MOST = 2**31 - 1  # what no list is longer than
# What JSON has for a type of the table; times are texts, read as the table reads them.
_JSON_TYPES: dict[Any, Any] = {datetime: str, int | datetime: int | str}
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
    from fastapi import Path, Request

    # Of several ids a path has one.
    known = {"account": _WHOSE, **{p.name: p for p in parameters}}
    spelt = {name: name if name in known else f"{name}s" for name in re.findall(r"{(\w+)", path)}
    others = [p for p in parameters if p.name not in spelt.values()]
    unique = re.sub(r"\W+", "_", f"{method.lower()}_{path.replace(ACCOUNT, 'account')}").strip("_")
    has_body = method in ("POST", "PATCH") and bool(others)
    in_query = [*([_SCOPE] if is_narrowed else []), *([] if has_body else others)]
    query = _model(f"{unique}_query", in_query, in_query=True) if in_query else None
    many = {p.name for p in in_query if p.is_many}

    def endpoint(request: Any, body: Any = None, **in_path: Any) -> Any:
        values = {} if query is None else _asked(request, query, many)
        account, scope = in_path.pop("account", None), values.pop("scope", None) if is_narrowed else None
        values |= {spelt[name]: [said] if name != spelt[name] else said for name, said in in_path.items()}
        values |= {name: getattr(body, name) for name in body.model_fields_set} if body is not None else {}
        return act(request, visitors.of(request, account, scope), values)

    arguments: dict[str, tuple[Any, Any]] = {"request": (Request, _NEEDED)}
    for name, own in spelt.items():
        parameter = known[own]
        type_ = int if parameter.type is int else str
        shown = Path(description=parameter.summary, **_bounds(parameter))
        arguments[name] = Annotated[type_, shown], _NEEDED
    if has_body:
        model = _model(unique, others, strict=True, extra="forbid" if is_strict else "ignore")
        is_needed = any(p.is_required for p in others)
        arguments["body"] = (model, _NEEDED) if is_needed else (model | None, None)
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
        operation_id=unique,
        summary=summary,
        description=description,
        tags=[section],
        response_model=None,
        responses={code: {"content": {media: {"schema": schema}}} for code in codes},
        openapi_extra={"parameters": _described(query, in_query)} if in_query else None,
    )


def _asked(request: Any, model: Any, many: Collection[str]) -> dict[str, Any]:
    """What a query says, checked at once; the framework's way, a parameter at a time, takes longer."""
    from fastapi.exceptions import RequestValidationError
    from pydantic import ValidationError

    query = request.query_params
    said = {name: query.getlist(name) if name in many else query[name] for name in query}
    try:
        checked = model.model_validate(said)
    except ValidationError as error:
        faults = error.errors(include_url=False, include_context=False)
        raise RequestValidationError([{**one, "loc": ("query", *one["loc"])} for one in faults]) from error
    return {name: getattr(checked, name) for name in checked.model_fields_set}


def _described(model: Any, parameters: Sequence[Parameter]) -> list[dict[str, Any]]:
    """The parameters of a query as OpenAPI has them."""
    schemas = model.model_json_schema()["properties"]
    return [
        {"name": p.name, "in": "query", "required": p.is_required, "schema": schemas[p.name]}
        | ({"description": p.summary} if p.summary else {})
        for p in parameters
    ]


def _bounds(parameter: Parameter) -> dict[str, Any]:
    if parameter.type not in (int, float):
        return {}
    most = _MOST if parameter.most is None and parameter.type is int else parameter.most
    return {name: bound for name, bound in (("ge", parameter.least), ("le", most)) if bound is not None}


def _model(name: str, parameters: Sequence[Parameter], *, in_query: bool = False, **config: Any) -> Any:
    """A model of what a query or a body says; in a query every value is a text, so that no type is strict."""
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for p in parameters:
        type_: Any = str if in_query and p.type == int | datetime else _JSON_TYPES.get(p.type, p.type)
        about = Field(description=p.summary, **_bounds(p))
        if p.is_required:
            fields[p.name] = Annotated[type_, about], ...
        elif in_query:
            fields[p.name] = Annotated[type_ | None if p.default is None else type_, about], p.default
        else:
            fields[p.name] = Annotated[type_, about] | None, p.default
    model: Any = create_model(name, __config__=cast(ConfigDict, config), **fields)
    return model


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
