"""Errors as RFC 9457 problems: what is said of the error tree to whoever asks by HTTP."""

from __future__ import annotations

from typing import Any

import msgspec

from octavo import errors
from octavo.domain.privacy import tellable
from octavo.domain.screening import mapped
from octavo.doors.operations import OPERATIONS, PATHS
from octavo.doors.plain import CALLED, advised
from octavo.errors import BadInput, NotFound, OctavoError, Stale, TooLarge

MEDIA_TYPE = "application/problem+json"
PATH = "/problems"
KINDS: dict[str, type[OctavoError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, OctavoError)
}
_SAID = {
    "type": "Where this kind of error is described.",
    "title": "What kind of error it is, in a sentence.",
    "detail": "What was tried, on what, and why not.",
    "hint": "What to do now.",
    "instance": "Where it was tried.",
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "hint"],
    "properties": {
        "status": {"type": "integer"},
        **{name: {"type": "string", "description": what} for name, what in _SAID.items()},
    },
}
# Where REST answers what an advice calls a command.
_PATHS = {o.name.replace("_", "-"): f"`POST …/operations/{o.name}`" for o in OPERATIONS if not o.local} | {
    name.replace("_", "-"): f"`{address.replace(' ', ' …')}`" for address, name in reversed(PATHS.items())
}


def described(name: str) -> dict[str, Any]:
    """What a kind of problem is: the page that its `type` leads to."""
    kind = KINDS.get(name)
    if kind is None:
        raise NotFound(f"there is no problem {name!r}", hint="docs/errors.md lists them")
    told = {"status": kind.http_status, "exit_code": kind.exit_code, "hint": kind.hint}
    return {"name": name, "title": (kind.__doc__ or name).partition("\n")[0], **told}


def response(error: OctavoError, instance: str, status: int | None = None, **more: Any) -> Any:
    """An error as an answer, without a secret; `status` is HTTP's own where HTTP has a word for the case."""
    from starlette.responses import Response

    name, status = type(error).__name__, status or error.http_status
    told = {
        "type": f"{PATH}/{name}",
        "title": (type(error).__doc__ or name).partition("\n")[0],
        "status": status,
        "detail": error.message,
        "hint": CALLED.sub(lambda said: _PATHS.get(said[1], said[0]), advised(error, "http")),
        "instance": instance,
        **more,
    }
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}.get(status)
    return Response(msgspec.json.encode(mapped(told, tellable)), status, headers, MEDIA_TYPE)


def answer_errors(app: Any) -> None:
    """Let an app answer every error as a problem, the framework's own too."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    def answered(request: Any, error: Any) -> Any:
        path, hint = request.url.path, "see /openapi.json"
        match error:
            case OctavoError():
                # If-Match has a status of its own for what has changed since.
                is_match = isinstance(error, Stale) and "if-match" in request.headers
                return response(error, path, 412 if is_match else None)
            case RequestValidationError():
                faults = [
                    {"where": ".".join(map(str, one["loc"])), "what": one["msg"]}
                    for one in error.errors()[:20]
                ]
                first = "the request does not fit: {where}: {what}".format(**faults[0])
                is_json = "json" in request.headers.get("content-type", "json")
                said = None if is_json else "send the body as application/json"
                return response(BadInput(first, hint=said), path, errors=faults)
            case HTTPException(status_code=404):
                return response(NotFound(f"there is nothing at {path}", hint=hint), path)
            case HTTPException(status_code=413):
                return response(TooLarge(error.detail), path)
            case HTTPException():
                unfit = BadInput(f"{request.method} {path}: {error.detail}", hint=hint)
                reply = response(unfit, path, error.status_code)
                reply.headers.update(error.headers or {})
                return reply
        # The message of an error nobody foresaw may hold a memory's text; the log names its place alone.
        return response(OctavoError(f"{type(error).__name__} while answering"), path)

    for kind in (OctavoError, RequestValidationError, HTTPException, Exception):
        app.add_exception_handler(kind, answered)
