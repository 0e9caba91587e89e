"""Errors as RFC 9457 problems: what is said of the error tree to whoever asks by HTTP."""

from __future__ import annotations

from typing import Any

import msgspec

from octavo import errors
from octavo.domain.privacy import tellable
from octavo.domain.screening import mapped
from octavo.errors import BadInput, NotFound, OctavoError, Stale

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


def answer_errors(app: Any) -> None:
    """Let an app answer every error as a problem, the framework's own too."""
    from fastapi import Response
    from fastapi.exceptions import RequestValidationError
    from starlette.exceptions import HTTPException

    def told(request: Any, error: OctavoError, status: int | None = None, **more: Any) -> Any:
        shown = problem(error, status=status, instance=request.url.path, **more)
        headers = {"WWW-Authenticate": "Bearer"} if shown["status"] == 401 else {}
        return Response(msgspec.json.encode(shown), shown["status"], headers, MEDIA_TYPE)

    def known(request: Any, error: OctavoError) -> Any:
        # If-Match has a status of its own for what has changed since.
        is_match = isinstance(error, Stale) and "if-match" in request.headers
        return told(request, error, 412 if is_match else None)

    def unfit(request: Any, error: Any) -> Any:
        faults = [
            {"where": ".".join(map(str, fault["loc"])), "what": fault["msg"]} for fault in error.errors()[:20]
        ]
        first = f"{faults[0]['where']}: {faults[0]['what']}"
        return told(request, BadInput(f"the request does not fit: {first}"), errors=faults)

    def plainly(request: Any, error: Any) -> Any:
        path, hint = request.url.path, "see /openapi.json"
        if error.status_code == 404:
            return told(request, NotFound(f"there is nothing at {path}", hint=hint))
        unserved = BadInput(f"{request.method} {path}: {error.detail}", hint=hint)
        reply = told(request, unserved, error.status_code)
        reply.headers.update(error.headers or {})
        return reply

    def unforeseen(request: Any, error: Exception) -> Any:
        # The message of an error nobody foresaw may hold a memory's text; the log names its place alone.
        return told(request, OctavoError(f"{type(error).__name__} while answering"))

    app.add_exception_handler(OctavoError, known)
    app.add_exception_handler(RequestValidationError, unfit)
    app.add_exception_handler(HTTPException, plainly)
    app.add_exception_handler(Exception, unforeseen)
