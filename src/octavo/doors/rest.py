"""The REST door: a FastAPI app whose routes are read from the table of operations, and the server's own.

A route is a path, the parameters of a row of the table, what is done, and the answer with its headers.
"""

from __future__ import annotations

import inspect
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import datetime
from importlib import metadata
from typing import Annotated, Any

import msgspec
from msgspec.structs import replace

from octavo.domain.memory import Memory, is_human
from octavo.domain.verdicts import Verdict
from octavo.doors import problems
from octavo.doors.operations import BY_NAME, OPERATIONS, PATHS, Operation, Parameter
from octavo.doors.operations.performing import accounts_in, of_settings
from octavo.doors.plain import plain
from octavo.doors.pool import Pool
from octavo.doors.rest_guard import Counts, Guard, metrics
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors
from octavo.errors import BadInput, Busy, HumanOnly, NotFound, OutOfScope

Act = Callable[[Any, Settings, dict[str, Any]], Any]  # of a request, for whom, with what was said
Shape = Callable[[Any], tuple[Any, int]]  # a value as another document says it, and its status
ACCOUNT = "/accounts/{account}"
REMOTE = tuple(o for o in OPERATIONS if not o.local and o.subjects != (Settings,))
_PROBLEM: dict[str, Any] = {
    "description": "What went wrong, as an RFC 9457 problem.",
    "content": {problems.MEDIA_TYPE: {"schema": problems.SCHEMA}},
}
_WHOSE = Parameter(name="account", summary="Whose memory.")
_SCOPE = Parameter(name="scope", summary="See only `shared` and this scope; it can narrow, never widen.")
_AFTER = Parameter(name="after", type=int, least=0, summary="Begin behind this version.")
_POLL_SECONDS, _ALIVE_SECONDS, _PAGE, _LISTENERS = 0.25, 15.0, 100, 100
_LARGEST = 2**31 - 1  # what no list is longer than
# What JSON has for a type of the table; times are texts, read as the table reads them.
_JSON_TYPES: dict[Any, Any] = {datetime: str, int | datetime: int | str}


def app(
    pool: Pool,
    settings: Settings,
    *,
    visitors: Visitors | None = None,
    mounts: Iterable[Callable[[Any, Pool, Visitors], None]] = (),
    **limits: Any,
) -> Any:
    """The FastAPI app of a folder of accounts; each of `mounts` adds its routes, `limits` are the guard's."""
    from fastapi import FastAPI

    visitors, counts = visitors or Visitors(settings), Counts()

    @asynccontextmanager
    async def lifespan(_: Any) -> Any:
        yield
        pool.close()

    made = FastAPI(
        title="Octavo",
        version=metadata.version("octavo"),
        description="Long-term memory for AI agents. Errors are RFC 9457 problems.",
        lifespan=lifespan,
        redoc_url=None,
        docs_url=None,
        responses={"default": _PROBLEM},
        separate_input_output_schemas=False,
    )
    made.state.is_ending = lambda: False
    problems.answer_errors(made)
    _add_own(made, pool, visitors, counts)
    for address, name in PATHS.items():
        method, _, path = address.partition(" ")
        add_operation(made, pool, visitors, BY_NAME[name], method, ACCOUNT + path)
    for operation in REMOTE:
        add_operation(made, pool, visitors, operation, "POST", f"{ACCOUNT}/operations/{operation.name}")
    _add_events(made, pool, visitors)
    for mount in mounts:
        mount(made, pool, visitors)
    made.add_middleware(Guard, visitors=visitors, counts=counts, **limits)
    return made


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:
    """A value as a JSON answer; what is one's memory stays in no cache."""
    from fastapi import Response

    own = {"Cache-Control": "no-store", **(headers or {})}
    body = None if status == 304 else msgspec.json.encode(plain(value))
    return Response(body, status, own, None if body is None else "application/json")


def add_route(
    app: Any,
    visitors: Visitors,
    method: str,
    path: str,
    act: Act,
    parameters: Sequence[Parameter] = (),
    *,
    section: str = "server",
    is_narrowed: bool = False,
    is_strict: bool = True,
    media: str = "application/json",
    codes: Sequence[int] = (200,),
    **told: Any,
) -> None:
    """Add a route; a parameter stands in the path if that names it, else in the query or a JSON body.

    Who asks is told by the request alone; one that `is_narrowed` may ask for less than its token allows.
    One that `is_strict` takes nothing else: what is misspelt or of another type is said, not ignored.
    """
    from fastapi import Path, Query, Request
    from pydantic import Field, create_model

    known = {"account": _WHOSE, **{p.name: p for p in parameters}}
    # Of several ids a path has one.
    spelt = {name: name if name in known else f"{name}s" for name in re.findall(r"{(\w+)", path)}
    others = [p for p in parameters if p.name not in spelt.values()]
    unique = re.sub(r"\W+", "_", f"{method.lower()}_{path.replace(ACCOUNT, 'account')}").strip("_")
    has_body = method in ("POST", "PATCH") and bool(others)

    in_query = {p.name: p for p in (*([_SCOPE] if is_narrowed else []), *([] if has_body else others))}

    def endpoint(request: Any, body: Any = None, **values: Any) -> Any:
        if is_strict and (strange := set(request.query_params) - in_query.keys()):
            hint = f"it takes {', '.join(in_query) or 'none'}"
            raise BadInput(f"there is no query parameter {min(strange)[:80]!r} here", hint=hint)
        account, scope = values.pop("account", None), values.pop("scope", None) if is_narrowed else None
        named = {own: [values.pop(name)] for name, own in spelt.items() if name != own}
        said = {name: value for name, value in values.items() if value is not None}
        if body is not None:
            named |= {name: getattr(body, name) for name in body.model_fields_set}
        return act(request, visitors.of(request, account, scope), {**said, **named})

    takes: dict[str, tuple[Any, Any]] = {"request": (Request, ...)}
    for name, own in spelt.items():
        type_ = int if known[own].type is int else str
        takes[name] = _taken(replace(known[own], type=type_, is_required=True), Path)
    takes |= {name: _taken(p, Query) for name, p in in_query.items()}
    if has_body:
        config: Any = {"strict": True, "extra": "forbid" if is_strict else "ignore"}
        fields: dict[str, Any] = {p.name: _taken(p, Field) for p in others}
        model: Any = create_model(unique, __config__=config, **fields)
        takes["body"] = (model, ...) if any(p.is_required for p in others) else (model | None, None)
    keyword, needed = inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.empty
    endpoint.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(name, keyword, annotation=type_, default=needed if default is ... else default)
            for name, (type_, default) in takes.items()
        ]
    )
    schema = {"type": "object" if media == "application/json" else "string"}
    app.add_api_route(
        path,
        endpoint,
        methods=[method],
        operation_id=unique,
        tags=[section],
        response_model=None,
        responses={code: {"content": {media: {"schema": schema}}} for code in codes},
        **{"summary": inspect.getdoc(act), "description": "", **told},
    )


def _taken(parameter: Parameter, field: Any) -> tuple[Any, Any]:
    """A parameter's type in JSON, with its sentence and its bounds, and its default: ... if it has none."""
    type_ = _JSON_TYPES.get(parameter.type, parameter.type)
    most = _LARGEST if type_ is int and parameter.most is None else parameter.most
    bounds = {"ge": parameter.least, "le": most} if type_ in (int, float) else {}
    about = field(description=parameter.summary, **bounds)
    if parameter.is_required:
        return Annotated[type_, about], ...
    return Annotated[type_ | None, about], parameter.default


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
        values |= _of_headers(request, operation.name, names)
        return _shown(request, operation.name, pool.perform(operation, who, values), shape)

    who = "Only a human actor may." if operation.human else ""
    told: dict[str, Any] = {"summary": operation.summary, "description": who, "section": operation.section}
    add_route(app, visitors, method, path, act, operation.parameters, is_narrowed=True, **told)


def _of_headers(request: Any, operation: str, names: set[str]) -> dict[str, Any]:
    """The revision that `If-Match` insists on, where one can be, and the key that makes a retry safe."""
    said: dict[str, Any] = {}
    tag, key = request.headers.get("if-match"), request.headers.get("idempotency-key")
    if tag is not None and tag.strip() != "*" and "rev" in names:
        if not (text := tag.strip().strip('"')).isdecimal():
            hint = 'send the ETag as it came, such as "3"'
            raise BadInput(f"If-Match {tag[:80]!r} is no revision", hint=hint)
        said["rev"] = int(text)
    if key is not None:
        if "key" not in names:
            hint = "only `remember` takes one; consolidating twice is safe without"
            raise BadInput(f"{operation} takes no Idempotency-Key", hint=hint)
        said["key"] = key
    return said


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


def _add_own(made: Any, pool: Pool, visitors: Visitors, counts: Counts) -> None:
    """Add the routes that are no operation on one account: health, counts, who one is, accounts, problems."""
    from fastapi import Response

    def page(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Counts in Prometheus' text form."""
        text = "\n".join(metrics(counts, pool.counts)) + "\n"
        return Response(text, media_type="text/plain; version=0.0.4")

    def session(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Say for whom a request is done; without a token also what a write must bring."""
        proof = {"same_origin": visitors.same_origin} if visitors.is_person_here(request) else {}
        return answer({"account": who.account, "actor": who.actor, "scope": who.scope, **proof})

    def accounts(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """List the accounts: a token's own, or on this machine all of them."""
        is_here = visitors.is_person_here(request)
        known = [name for name in accounts_in(who.root) if is_here or name == who.account]
        return answer({"accounts": known})

    def begin(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Begin an account."""
        _must_own(who, "begin an account")
        is_new = of_settings(BY_NAME["init"], who, {})["is_new"]
        return answer({"account": who.account, "is_new": is_new}, 201 if is_new else 200)

    def delete(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Delete an account whole, with its history."""
        _must_own(who, "delete an account")
        return answer(pool.perform(BY_NAME["delete_account"], who, {"name": who.account}))

    def health() -> Any:
        """Say that the server is there."""
        return answer({"status": "ok", "version": metadata.version("octavo")})

    def described(name: str) -> Any:
        """Say what a kind of problem is."""
        return answer(problems.described(name))

    for path, open_ in (("/health", health), (f"{problems.PATH}/{{name}}", described)):
        made.add_api_route(path, open_, summary=inspect.getdoc(open_), description="", tags=["server"])
    add_route(made, visitors, "GET", "/metrics", page, media="text/plain")
    add_route(made, visitors, "GET", "/session", session)
    add_route(made, visitors, "GET", "/accounts", accounts)
    add_route(made, visitors, "PUT", ACCOUNT, begin, codes=(200, 201))
    add_route(made, visitors, "DELETE", ACCOUNT, delete)


def _must_own(who: Settings, what: str) -> None:
    if not is_human(who.actor):
        raise HumanOnly(f"{who.actor} tried to {what}")
    if who.scope is not None:
        raise OutOfScope(f"a token bound to {who.scope!r} tried to {what}")


def _add_events(made: Any, pool: Pool, visitors: Visitors) -> None:
    """Add the stream of server-sent events: every new version as it comes, and those missed meanwhile."""
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
            while not made.state.is_ending():
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
        """Stream new versions."""
        if listening >= _LISTENERS:
            raise Busy(f"{_LISTENERS} clients listen already")
        with pool.account(who) as account:
            seen = said.get("after", account.version)
        last = request.headers.get("last-event-id")
        if last is not None and (not last.isdecimal() or len(last) > 12):
            raise BadInput(f"Last-Event-ID {last[:40]!r} is no version")
        events = stream(who, seen if last is None else int(last))
        return StreamingResponse(
            events, media_type="text/event-stream", headers={"Cache-Control": "no-store"}
        )

    told: dict[str, Any] = {"section": "versions", "is_narrowed": True, "media": "text/event-stream"}
    add_route(made, visitors, "GET", f"{ACCOUNT}/events", listen, [_AFTER], **told)
