"""Errors as RFC 9457 problems: what is said of the error tree to whoever asks by HTTP."""

from __future__ import annotations

from typing import Any

import msgspec

from octavo import errors
from octavo.domain.privacy import tellable
from octavo.domain.screening import mapped
from octavo.errors import BadInput, NotFound, OctavoError, Stale, TooLarge

MEDIA_TYPE = "application/problem+json"
PATH = "/problems"
KINDS: dict[str, type[OctavoError]] = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, OctavoError)
}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "hint"],
    "properties": {
        "type": {"type": "string", "description": "Where this kind of error is described."},
        "title": {"type": "string", "description": "What kind of error it is, in a sentence."},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was tried, on what, and why not."},
        "hint": {"type": "string", "description": "What to do now."},
        "instance": {"type": "string"},
    },
}
# What to do about an error that speaks of Python's arguments, in the words of HTTP.
_ADVICE = {
    "NotAllowed": "use a token of an actor who may",
    "HumanOnly": "use a person's token, or ask a person",
    "OutOfScope": "a token sees `shared` and its own scope alone",
    "ReadOnly": "this account can only be read here",
}


def problem(error: OctavoError, *, status: int | None = None, **more: Any) -> dict[str, Any]:
    """An error as a problem without a secret; `status` is HTTP's own where HTTP has a word for the case."""
    name = type(error).__name__
    hint = _ADVICE.get(name, error.advice) if error.advice == error.hint else error.advice
    told: dict[str, Any] = {
        "type": f"{PATH}/{name}",
        "title": (type(error).__doc__ or name).partition("\n")[0],
        "status": status or error.http_status,
        "detail": error.message,
        "hint": hint,
    }
    without_secrets: dict[str, Any] = mapped({**told, **more}, tellable)
    return without_secrets


def described(name: str) -> dict[str, Any]:
    """What a kind of problem is: the page that its `type` leads to."""
    kind = KINDS.get(name)
    if kind is None:
        raise NotFound(f"there is no problem {name!r}", hint="docs/errors.md lists them")
    return {
        "name": name,
        "title": (kind.__doc__ or name).partition("\n")[0],
        "status": kind.http_status,
        "exit_code": kind.exit_code,
        "hint": kind.hint,
    }


def response(error: OctavoError, instance: str, status: int | None = None, **more: Any) -> Any:
    """The answer to a request that failed."""
    from starlette.responses import Response

    told = problem(error, status=status, instance=instance, **more)
    headers = {401: {"WWW-Authenticate": "Bearer"}, 429: {"Retry-After": "1"}}.get(told["status"])
    return Response(msgspec.json.encode(told), told["status"], headers, MEDIA_TYPE)


def too_large(max_bytes: int) -> Exception:
    """What ends the reading of a body: the framework takes any other error for a body that is no JSON."""
    from starlette.exceptions import HTTPException

    return HTTPException(TooLarge.http_status, f"a request may carry {max_bytes:,} bytes")


def answer_errors(app: Any) -> None:
    """Let an app answer every error as a problem, the framework's own too."""
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    def known(request: Any, error: OctavoError) -> Any:
        # If-Match has a status of its own for what has changed since.
        is_match = isinstance(error, Stale) and "if-match" in request.headers
        return response(error, request.url.path, 412 if is_match else None)

    def unfit(request: Any, error: Any) -> Any:
        faults = [
            {"where": ".".join(map(str, fault["loc"])), "what": fault["msg"]} for fault in error.errors()[:20]
        ]
        first = f"{faults[0]['where']}: {faults[0]['what']}"
        return response(BadInput(f"the request does not fit: {first}"), request.url.path, errors=faults)

    def plainly(request: Any, error: Any) -> Any:
        path, status, hint = request.url.path, error.status_code, "see /openapi.json"
        match status:
            case 404:
                return response(NotFound(f"there is nothing at {path}", hint=hint), path)
            case 413:
                return response(TooLarge(error.detail), path)
        reply = response(BadInput(f"{request.method} {path}: {error.detail}", hint=hint), path, status)
        reply.headers.update(error.headers or {})
        return reply

    def unforeseen(request: Any, error: Exception) -> Any:
        # The message of an error nobody foresaw may hold a memory's text; the log names its place alone.
        return response(OctavoError(f"{type(error).__name__} while answering"), request.url.path)

    handlers: dict[Any, Any] = {OctavoError: known, RequestValidationError: unfit, HTTPException: plainly}
    for kind, handler in (*handlers.items(), (Exception, unforeseen)):
        app.add_exception_handler(kind, handler)
