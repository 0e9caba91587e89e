"""Errors as RFC 9457 problems: what is said of the error tree to whoever asks by HTTP."""

from __future__ import annotations

from typing import Any

from octavo import errors
from octavo.errors import NotFound, OctavoError

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


def problem(error: OctavoError, *, status: int | None = None, instance: str | None = None) -> dict[str, Any]:
    """An error as a problem; `status` is HTTP's own where HTTP has a word for the case."""
    name = type(error).__name__
    hint = _ADVICE.get(name, error.advice) if error.advice == error.hint else error.advice
    told: dict[str, Any] = {
        "type": f"{PATH}/{name}",
        "title": (type(error).__doc__ or name).partition("\n")[0],
        "status": status or error.http_status,
        "detail": error.message,
        "hint": hint,
    }
    return told if instance is None else {**told, "instance": instance}


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
