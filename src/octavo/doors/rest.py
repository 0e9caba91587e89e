"""The REST door: a FastAPI app whose routes are read from the table of operations, and the server's own.

A route is an address, the parameters of a row of the table, and what is done; whatever it is told, in its
path, its query, a JSON body or a header, is read by one form each.
"""

from __future__ import annotations

import inspect
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
from importlib import metadata
from types import MappingProxyType
from typing import Any

import msgspec
from msgspec.structs import replace

from octavo.domain.memory import Memory, is_human
from octavo.domain.verdicts import Verdict
from octavo.doors import problems
from octavo.doors.forms import Form, Unfit
from octavo.doors.operations import BY_NAME, OPERATIONS, PATHS, Operation, Parameter, call
from octavo.doors.operations.performing import accounts_in, exists
from octavo.doors.plain import plain
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Counts, Guard, Visitors
from octavo.errors import BadInput, Busy, HumanOnly, NotFound, OctavoError, OutOfScope

LOG = logging.getLogger(__name__)
Act = Callable[[Any, Settings, dict[str, Any]], Any]  # of a request, for whom, with what was said
# A value as another document says it, from what was said, and its status.
Shape = Callable[[Any, Mapping[str, Any]], tuple[Any, int]]
ACCOUNT = "/accounts/{account}"
REMOTE = tuple(o for o in OPERATIONS if not o.local and o.subjects != (Settings,))
_WHOSE = Parameter(name="account", summary="Whose memory.")
_SCOPE = Parameter(name="scope", summary="See only `shared` and this scope; it can narrow, never widen.")
_AFTER = Parameter(name="after", type=int, least=0, summary="Begin behind this version.")
_CONDITIONS = {"if-match": "rev", "idempotency-key": "key"}  # the parameters that a header says
_ANY = ("if-match", "*")  # whatever its revision is
_POLL_SECONDS, _QUIET, _PAGE, _LISTENERS = 0.25, 60, 100, 100


def app(
    pool: Pool,
    settings: Settings,
    *,
    visitors: Visitors | None = None,
    mounts: Iterable[Callable[[Server], None]] = (),
    **limits: Any,
) -> Any:
    """The FastAPI app of a folder of accounts; each of `mounts` adds its routes, `limits` are the guard's."""
    server = Server(pool, visitors or Visitors(settings))
    for mount in (_add_own, _add_table, _add_events, *mounts):
        mount(server)
    server.app.add_middleware(Guard, visitors=server.visitors, counts=server.counts, **limits)
    return server.app


def answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Any:
    """A value as a JSON answer; what is one's memory stays in no cache."""
    from fastapi import Response

    own = {"Cache-Control": "no-store", **(headers or {})}
    body = None if status == 304 else msgspec.json.encode(plain(value))
    return Response(body, status, own, None if body is None else "application/json")


class Server:
    """An app that routes are added to, with the accounts behind it and who may come in."""

    def __init__(self, pool: Pool, visitors: Visitors) -> None:
        from fastapi import FastAPI

        self.pool, self.visitors, self.counts = pool, visitors, Counts()
        about = "Long-term memory for AI agents. Errors are RFC 9457 problems."
        how: dict[str, Any] = {"on_shutdown": [pool.close], "redoc_url": None, "docs_url": None}
        how["responses"] = {"default": problems.DESCRIBED}
        self.app: Any = FastAPI(title="Octavo", version=metadata.version("octavo"), description=about, **how)
        self.app.state.is_ending = lambda: False
        problems.answer_errors(self.app)

    def route(
        self,
        address: str,
        act: Act,
        parameters: Sequence[Parameter] = (),
        *,
        headers: Mapping[str, str] = MappingProxyType({}),
        is_open: bool = False,
        media: str = "application/json",
        **told: Any,
    ) -> None:
        """Add a route; a parameter stands in the path if that names it, else in the query or a JSON body.

        Who asks is told by the request alone, who may ask for less than a token allows.
        """
        from fastapi import Request
        from starlette.concurrency import run_in_threadpool

        method, path = address.split()
        known = {"account": _WHOSE, **{p.name: p for p in parameters}}
        # Of several ids a path has one.
        spelt = {name: name if name in known else f"{name}s" for name in re.findall(r"{(\w+)", path)}
        placed = [replace(known[own], name=name, is_required=True) for name, own in spelt.items()]
        others = [p for p in parameters if p.name not in spelt.values()]
        has_body = method in ("POST", "PATCH") and bool(others)
        in_path = Form([p if p.type is int else replace(p, type=str) for p in placed])
        in_query = Form([_SCOPE, *([] if has_body else others)], is_open=is_open)
        in_body = Form(others if has_body else (), is_open=is_open, nulls=True)
        taken = {header: name for header, name in headers.items() if name in known}
        in_headers = Form([replace(known[own], name=name, is_required=False) for name, own in taken.items()])

        def answered(request: Any, body: bytes) -> Any:
            said = in_query.read(in_query.texts(request.query_params), "query")
            named = in_path.read(request.path_params, "path")
            who = self.visitors.of(request, named.pop("account", None), said.pop("scope", None))
            said |= {own: named[n] if n == own else [named[n]] for n, own in spelt.items() if n in named}
            said |= in_body.read(_json(request, body), "body", is_text=False) if has_body else {}
            texts = {name: request.headers[name].strip() for name in taken if name in request.headers}
            told = {name: text.strip('"') for name, text in texts.items() if (name, text) != _ANY}
            return act(request, who, said | {taken[n]: v for n, v in in_headers.read(told, "header").items()})

        async def endpoint(request: Any) -> Any:
            return await run_in_threadpool(answered, request, await request.body() if has_body else b"")

        endpoint.__annotations__ = {"request": Request}
        extra: dict[str, Any] = {"parameters": [*in_path.described("path"), *in_query.described("query")]}
        if has_body:
            is_needed = any(p.is_required for p in others)
            content = {"application/json": {"schema": in_body.schema}}
            extra["requestBody"] = {"required": is_needed, "content": content}
        gives = {"content": {media: {"schema": {"type": "object" if "json" in media else "string"}}}}
        name = re.sub(r"\W+", "_", f"{method.lower()}_{path.replace(ACCOUNT, 'account')}").strip("_")
        how = {"methods": [method], "operation_id": name, "response_model": None, "openapi_extra": extra}
        said = {"tags": ["server"], "summary": inspect.getdoc(act), "description": "", **told}
        self.app.add_api_route(path, endpoint, responses={200: gives, "2XX": gives}, **how, **said)

    def operation(
        self,
        operation: Operation,
        address: str,
        shape: Shape | None = None,
        spelt: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Add the route of an operation; `shape` says its value and `spelt` its parameters otherwise."""
        parameters = {spelt.get(p.name, p.name): p for p in operation.parameters}

        def act(request: Any, who: Settings, said: dict[str, Any]) -> Any:
            for header, name in _CONDITIONS.items():  # what insists on something is heard or refused
                if header in request.headers and name not in parameters:
                    hint = "`remember` takes a key, `revise` and `forget` a revision; leave it out here"
                    raise BadInput(f"{operation.name} takes no {header.title()}", hint=hint)
            value = self.pool.perform(operation, who, {parameters[n].name: v for n, v in said.items()})
            return _reply(request, operation.name, value) if shape is None else answer(*shape(value, said))

        note = "Only a human actor may." if operation.human else ""
        told: dict[str, Any] = {"summary": operation.summary, "tags": [operation.section]}
        taken = [replace(p, name=name) for name, p in parameters.items()]
        self.route(address, act, taken, headers=_CONDITIONS, description=note, **told)


def _json(request: Any, body: bytes) -> Any:
    """What a body says; an empty one says nothing."""
    try:
        if "json" in request.headers.get("content-type", "json"):
            return msgspec.json.decode(body or b"{}")
        raise Unfit("body is not said to be JSON", hint="send the body as application/json")
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unfit(f"body is no JSON: {error}", hint="mind its quotes and brackets") from error


def _reply(request: Any, operation: str, value: Any) -> Any:
    """The answer: its status from a verdict, its ETag from a revision, the next page as a link."""
    status, headers = 200, {}
    is_one = request.method == "DELETE" and operation == "forget"
    verdict = value["verdicts"][0] if is_one else value
    if isinstance(verdict, Verdict):
        if verdict.outcome == "refused" and verdict.check == "missing":
            raise NotFound(verdict.detail)
        if verdict.outcome == "refused":
            verdict.or_raise()
        is_new = verdict.outcome == "admitted" and operation == "remember"
        status = 202 if verdict.outcome == "proposed" else 201 if is_new else 200
    memory = value.memory if isinstance(value, Verdict) else value
    if isinstance(memory, Memory):
        headers["ETag"] = f'"{memory.rev}"'
        held = request.headers.get("if-none-match", "")
        if request.method == "GET" and (headers["ETag"] in held or held.strip() == "*"):
            status = 304
    if request.method == "GET" and isinstance(value, Mapping) and value.get("next") is not None:
        following = request.url.include_query_params(after=value["next"])
        headers["Link"] = f'<{following.path}?{following.query}>; rel="next"'
    return answer(value, status, headers)


def _add_table(server: Server) -> None:
    """Add the resources below an account, and every operation that names no file by its name."""
    for address, name in PATHS.items():
        server.operation(BY_NAME[name], address.replace(" ", f" {ACCOUNT}"))
    for operation in REMOTE:
        server.operation(operation, f"POST {ACCOUNT}/operations/{operation.name}")


def _add_own(server: Server) -> None:
    """Add the routes that are no operation on one account: health, counts, who one is, accounts, problems."""
    from fastapi import Response

    pool, visitors = server.pool, server.visitors

    def metrics(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Counts in Prometheus' text form."""
        text = "\n".join(_counted(server.counts, pool.counts)) + "\n"
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
        owner = _owner(who, "begin an account")
        is_new = not exists(owner) and pool.perform(BY_NAME["init"], owner, {})["is_new"]
        return answer({"account": who.account, "is_new": is_new}, 201 if is_new else 200)

    def delete(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Delete an account whole, with its history."""
        owner = _owner(who, "delete an account")
        return answer(pool.perform(BY_NAME["delete_account"], owner, {"name": who.account}))

    def health() -> Any:
        """Say that the server is there."""
        return answer({"status": "ok", "version": metadata.version("octavo")})

    def described(name: str) -> Any:
        """Say what a kind of problem is."""
        return answer(problems.described(name))

    for path, open_ in (("/health", health), (f"{problems.PATH}/{{name}}", described)):
        server.app.add_api_route(path, open_, summary=inspect.getdoc(open_), description="", tags=["server"])
    server.route("GET /metrics", metrics, media="text/plain")
    server.route("GET /session", session)
    server.route("GET /accounts", accounts)
    server.route(f"PUT {ACCOUNT}", begin)
    server.route(f"DELETE {ACCOUNT}", delete)


def _owner(who: Settings, what: str) -> Settings:
    """Who asks, if they may begin and end accounts."""
    if not is_human(who.actor):
        raise HumanOnly(f"{who.actor} tried to {what}")
    if who.scope is not None:
        raise OutOfScope(f"a token bound to {who.scope!r} tried to {what}")
    return who


def _counted(counts: Counts, pool: Mapping[str, int]) -> Iterator[str]:
    """The lines that a collector reads."""
    yield from ("# TYPE octavo_info gauge", f'octavo_info{{version="{metadata.version("octavo")}"}} 1')
    yield "# TYPE octavo_requests_total counter"
    for (method, path, status), many in sorted(counts.items()):
        yield f'octavo_requests_total{{method="{method}",path="{path}",status="{status}"}} {many}'
    for name, number in pool.items():
        kind, ending = ("counter", "_total") if name in ("opened", "closed") else ("gauge", "")
        yield f"# TYPE octavo_pool_{name}{ending} {kind}\noctavo_pool_{name}{ending} {number}"


def _add_events(server: Server) -> None:
    """Add the stream of server-sent events: every new version as it comes, and those missed meanwhile."""
    from anyio import sleep, to_thread
    from fastapi.responses import StreamingResponse

    listening = 0

    def page(request: Any, after: int) -> list[Any]:
        # Asked anew every time: a token may be revoked while its holder listens.
        whose = request.path_params["account"], request.query_params.get("scope")
        with server.pool.account(server.visitors.of(request, *whose)) as account:
            return account.versions(after=after, limit=_PAGE)

    async def stream(request: Any, seen: int) -> AsyncIterator[str]:
        nonlocal listening
        if listening >= _LISTENERS:
            return  # many came at one moment; they ask again
        listening, quiet = listening + 1, 0
        try:
            yield "retry: 1000\n\n"
            while not server.app.state.is_ending():
                for commit in await to_thread.run_sync(page, request, seen):
                    seen, quiet = commit.version, 0
                    data = msgspec.json.encode(plain(commit)).decode()
                    yield f"id: {seen}\nevent: version\ndata: {data}\n\n"
                await sleep(_POLL_SECONDS)
                quiet += 1
                if quiet % _QUIET == 0:
                    yield ": alive\n\n"
        except OctavoError as error:  # who asks again is told why
            LOG.info("listening ended error=%s", type(error).__name__)
        finally:
            listening -= 1

    def listen(request: Any, who: Settings, said: dict[str, Any]) -> Any:
        """Stream new versions."""
        if listening >= _LISTENERS:
            raise Busy(f"{_LISTENERS} clients listen already")
        with server.pool.account(who) as account:
            behind = said.get("after", account.version)
            call(BY_NAME["versions"], account, {"after": behind, "limit": 0})  # there must be such a version
        how: dict[str, Any] = {"media_type": "text/event-stream", "headers": {"Cache-Control": "no-store"}}
        return StreamingResponse(stream(request, behind), **how)

    told: dict[str, Any] = {"tags": ["versions"], "media": "text/event-stream"}
    server.route(f"GET {ACCOUNT}/events", listen, [_AFTER], headers={"last-event-id": "after"}, **told)
