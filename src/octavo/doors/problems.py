"""Errors as RFC 9457 problems: what is said of the error tree to whoever asks by HTTP."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import msgspec
from msgspec import Meta

from octavo import errors
from octavo.domain.privacy import tellable
from octavo.domain.screening import mapped
from octavo.doors.forms import Unfit
from octavo.doors.operations import OPERATIONS, PATHS
from octavo.doors.plain import CALLED, advised
from octavo.errors import BadInput, NotFound, OctavoError, Stale

MEDIA_TYPE = "application/problem+json"
PATH = "/problems"
KINDS: dict[str, type[OctavoError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, OctavoError)
}


class Problem(TypedDict):
    """An error as RFC 9457 has it; `hint` is ours."""

    type: Annotated[str, Meta(description="Where this kind of error is described.")]
    title: Annotated[str, Meta(description="What kind of error it is, in a sentence.")]
    status: int
    detail: Annotated[str, Meta(description="What was tried, on what, and why not.")]
    hint: Annotated[str, Meta(description="What to do now.")]
    instance: Annotated[str, Meta(description="Where it was tried.")]


DESCRIBED: dict[str, Any] = {
    "description": "What went wrong, as an RFC 9457 problem.",
    "content": {MEDIA_TYPE: {"schema": msgspec.json.schema(Problem)["$defs"]["Problem"]}},
}
# Where REST answers what an advice calls a command.
_PATHS = (
    {"init": "`PUT /accounts/{account}`"}
    | {o.name.replace("_", "-"): f"`POST …/operations/{o.name}`" for o in OPERATIONS if not o.local}
    | {name.replace("_", "-"): f"`{address.replace(' ', ' …')}`" for address, name in reversed(PATHS.items())}
)


def described(name: str) -> dict[str, Any]:
    """What a kind of problem is: the page that its `type` leads to."""
    kind = KINDS.get(name)
    if kind is None:
        raise NotFound(f"there is no problem {name!r}", hint="docs/errors.md lists them")
    told = {"status": kind.http_status, "exit_code": kind.exit_code, "hint": kind.hint}
    return {"name": name, "title": _title(kind), **told}


def _title(kind: type[OctavoError]) -> str:
    return (kind.__doc__ or kind.__name__).partition("\n")[0]


def response(error: OctavoError, instance: str, status: int | None = None, **more: Any) -> Any:
    """An error as an answer, without a secret; `status` is HTTP's own where HTTP has a word for the case."""
    from starlette.responses import Response

    name = next(kind.__name__ for kind in type(error).__mro__ if KINDS.get(kind.__name__) is kind)
    status = status or error.http_status
    told: Problem = {
        "type": f"{PATH}/{name}",
        "title": _title(KINDS[name]),
        "status": status,
        "detail": error.message,
        "hint": CALLED.sub(lambda said: _PATHS.get(said[1], said[0]), advised(error, "http")),
        "instance": instance,
    }
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}.get(status)
    return Response(msgspec.json.encode(mapped({**told, **more}, tellable)), status, headers, MEDIA_TYPE)


def answer_errors(app: Any) -> None:
    """Let an app answer every error as a problem, the framework's own too."""
    from starlette.exceptions import HTTPException
    from starlette.requests import ClientDisconnect
    from starlette.routing import Match

    def answered(request: Any, error: Any) -> Any:
        path, status, headers = request.url.path, None, dict[str, str]()
        match error:
            case Unfit():
                where, _, what = error.message.partition(" ")
                return response(error, path, errors=[{"where": where, "what": what}])
            case Stale() if "if-match" in request.headers:
                status = 412  # it has a status of its own for what has changed since
            case HTTPException():
                kind = NotFound if error.status_code == 404 else BadInput
                status, headers = error.status_code, dict(error.headers or {})
                if "Allow" in headers:  # it knows one route of several
                    at = [route for route in app.routes if route.matches(request.scope)[0] != Match.NONE]
                    known = {method for route in at for method in getattr(route, "methods", ())}
                    headers["Allow"] = ", ".join(sorted(known | ({"HEAD"} if "GET" in known else set())))
                error = kind(f"{request.method} {path}: {error.detail}", hint="see /openapi.json")
            case ClientDisconnect():  # nobody is there to be answered, and nothing is wrong here
                error = BadInput("the request ended before its body did")
            case Exception() if not isinstance(error, OctavoError):
                # Its message may hold a memory's text; the log names its place alone.
                error = OctavoError(f"{type(error).__name__} while answering")
        reply = response(error, path, status)
        reply.headers.update(headers)
        return reply

    for kind in (OctavoError, HTTPException, ClientDisconnect, Exception):
        app.add_exception_handler(kind, answered)
