"""The REST door: a FastAPI app whose routes are read from the table of operations."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterable
from contextlib import asynccontextmanager
from datetime import datetime
from importlib import metadata
from typing import Annotated, Any

from octavo.doors import problems, rest_own
from octavo.doors.operations import OPERATIONS, Operation, Parameter
from octavo.doors.pool import Pool
from octavo.doors.rest_answers import answer_errors, condition, idempotency, shown
from octavo.doors.rest_events import events
from octavo.doors.rest_guard import Guard, Limits, Metrics
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import Unavailable

_ACCOUNT = "/accounts/{account}"
_MOST = 2**31 - 1  # what no list is longer than
# The resources, each an operation; every other one that names no file answers below /operations.
ROUTES: tuple[tuple[str, str, str], ...] = (
    ("GET", "/memories", "memories"),
    ("POST", "/memories", "remember"),
    ("POST", "/memories/batch", "remember_many"),
    ("GET", "/memories/search", "recall"),
    ("POST", "/memories/search", "recall"),
    ("GET", "/memories/{id}", "get"),
    ("PATCH", "/memories/{id}", "revise"),
    ("DELETE", "/memories/{id}", "forget"),
    ("GET", "/memories/{id}/history", "history"),
    ("POST", "/memories/{id}/promote", "promote"),
    ("POST", "/memories/{id}/redact", "redact"),
    ("GET", "/versions", "versions"),
    ("POST", "/versions/{version}/restore", "restore"),
    ("POST", "/versions/{version}/revert", "revert"),
    ("GET", "/diff", "diff"),
    ("GET", "/sandboxes", "sandboxes"),
    ("POST", "/sandboxes", "sandbox"),
    ("GET", "/sandboxes/{sandbox}", "buffer"),
    ("DELETE", "/sandboxes/{sandbox}", "discard"),
    ("POST", "/sandboxes/{sandbox}/turns", "turn"),
    ("POST", "/sandboxes/{sandbox}/consolidate", "consolidate"),
    ("GET", "/proposals", "proposals"),
    ("GET", "/proposals/{id}", "proposal"),
    ("POST", "/proposals/{id}/approve", "approve"),
    ("POST", "/proposals/{id}/decline", "decline"),
    ("POST", "/proposals/{id}/reopen", "reopen"),
    ("GET", "/assemblies", "assemblies"),
    ("POST", "/assemblies", "assemble"),
    ("GET", "/assemblies/{id}", "assembly"),
    ("GET", "/assemblies/{id}/lineage", "lineage"),
    ("GET", "/health", "check"),
    ("GET", "/brief", "brief"),
    ("GET", "/stats", "stats"),
)
BY_NAME = {operation.name: operation for operation in OPERATIONS}
REMOTE = tuple(o for o in OPERATIONS if not o.local and o.subjects != (Settings,))
# What JSON has for a type of the table; times are texts, read as the table reads them.
_JSON_TYPES: dict[Any, Any] = {datetime: str, int | datetime: int | str}


def app(
    pool: Pool,
    settings: Settings,
    *,
    visitors: Visitors | None = None,
    limits: Limits | None = None,
    mounts: Iterable[Callable[[Any, Pool, Visitors], None]] = (),
) -> Any:
    """The FastAPI app of a folder of accounts; each of `mounts` adds its own routes to it."""
    fastapi = _fastapi()
    visitors, limits = visitors or Visitors(settings), limits or Limits()

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        yield
        pool.close()

    made = fastapi.FastAPI(
        title="Octavo",
        version=metadata.version("octavo"),
        description="Long-term memory for AI agents. Errors are RFC 9457 problems.",
        lifespan=lifespan,
        redoc_url=None,
        docs_url=None,
        responses={"default": _PROBLEM},
        separate_input_output_schemas=False,
    )
    made.state.visitors, made.state.is_ending = visitors, lambda: False
    metrics = Metrics(pool)
    answer_errors(made)
    rest_own.add(made, pool, visitors, metrics)
    for method, path, name in ROUTES:
        add_operation(made, pool, visitors, BY_NAME[name], method, _ACCOUNT + path)
    for operation in REMOTE:
        add_operation(made, pool, visitors, operation, "POST", f"{_ACCOUNT}/operations/{operation.name}")
    made.add_api_route(f"{_ACCOUNT}/events", events(made, pool, visitors, limits.streams), name="events")
    for mount in mounts:
        mount(made, pool, visitors)
    made.add_middleware(Guard, visitors=visitors, limits=limits, metrics=metrics)
    return made


_PROBLEM: dict[str, Any] = {
    "description": "What went wrong, as an RFC 9457 problem.",
    "content": {problems.MEDIA_TYPE: {"schema": problems.SCHEMA}},
}
_ANSWER: dict[str, Any] = {"content": {"application/json": {"schema": {"type": "object"}}}}


def _fastapi() -> Any:
    try:
        import fastapi
    except ImportError as error:
        hint = "install it: pip install 'octavo[server]'"
        raise Unavailable("the server needs the packages fastapi and uvicorn", hint=hint) from error
    return fastapi


def add_operation(
    made: Any,
    pool: Pool,
    visitors: Visitors,
    operation: Operation,
    method: str,
    path: str,
    shape: Callable[[Any], Any] | None = None,
) -> None:
    """Add the route of an operation; its parameters stand in the path, the query or the body."""
    from fastapi import Request

    named = set(re.findall(r"{(\w+)}", path))
    in_path = {p.name: spelt for p in operation.parameters for spelt in _spellings(p) if spelt in named}
    others = [p for p in operation.parameters if p.name not in in_path]
    has_body = method in ("POST", "PATCH")

    def endpoint(request: Any, account: str | None = None, scope: str | None = None, **said: Any) -> Any:
        who = visitors.of(request, account, scope)
        values = {name: said.pop(spelt) for name, spelt in in_path.items()}
        body = said.pop("body", None)
        values |= {name: value for name, value in said.items() if value is not None}
        values |= body.model_dump(exclude_unset=True) if body is not None else {}
        values = {n: [v] if n == "ids" and isinstance(v, str) else v for n, v in values.items()}
        if "rev" in {p.name for p in others}:
            values |= condition(request)
        values |= idempotency(request, operation)
        return shown(request, operation, pool.perform(operation, who, values), shape)

    def argument(name: str, type_: Any, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
        return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=type_, default=default)

    own = {in_path[p.name]: _in_path(p) for p in operation.parameters if p.name in in_path}
    in_order = {"account": _in_path(_WHOSE), **own}
    arguments = [argument("request", Request)]
    arguments += [argument(name, type_) for name, type_ in in_order.items() if name in named]
    arguments.append(argument("scope", *_in_query(_SCOPE)))
    if has_body and others:
        arguments.append(argument("body", *_body(method, path, others)))
    elif not has_body:
        arguments += [argument(p.name, *_in_query(p)) for p in others]
    endpoint.__signature__ = inspect.Signature(arguments)  # type: ignore[attr-defined]
    made.add_api_route(
        path,
        endpoint,
        methods=[method],
        name=operation.name,
        operation_id=_unique(method, path),
        summary=operation.summary,
        description="Only a human actor may." if operation.human else None,
        tags=[operation.section],
        response_model=None,
        responses={200: _ANSWER},
    )


_WHOSE = Parameter(name="account", summary="Whose memory.")
_SCOPE = Parameter(name="scope", summary="See only `shared` and this scope; it can narrow, never widen.")


def _spellings(parameter: Parameter) -> tuple[str, ...]:
    """How a path may name a parameter: of several ids it has one."""
    return (parameter.name, "id") if parameter.name == "ids" else (parameter.name,)


def _unique(method: str, path: str) -> str:
    """A name for a route and its body that no other has."""
    return re.sub(r"\W+", "_", f"{method.lower()}_{path.replace(_ACCOUNT, 'account')}").strip("_")


def _json_type(parameter: Parameter) -> Any:
    return _JSON_TYPES.get(parameter.type, parameter.type)


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

    type_: Any = str if parameter.type == int | datetime else _json_type(parameter)
    shown = Query(description=parameter.summary, **_bounds(parameter))
    if parameter.is_required:
        return Annotated[type_, shown], inspect.Parameter.empty
    optional = type_ | None if parameter.default is None else type_
    return Annotated[optional, shown], parameter.default


def _body(method: str, path: str, parameters: list[Parameter]) -> tuple[Any, Any]:
    """A model of the body, strict: what is misspelt or of another type is said, not ignored."""
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for p in parameters:
        type_: Any = Annotated[_json_type(p), Field(description=p.summary, **_bounds(p))]
        fields[p.name] = (type_, ...) if p.is_required else (type_ | None, p.default)
    model: Any = create_model(
        _unique(method, path), __config__=ConfigDict(strict=True, extra="forbid"), **fields
    )
    if any(p.is_required for p in parameters):
        return model, inspect.Parameter.empty
    return model | None, None
