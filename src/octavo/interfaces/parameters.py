"""What operations are given: a parameter's form, and how text or JSON of a door becomes its value."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from octavo.errors import BadInput, NotFound

Form = Literal[
    "text",
    "texts",
    "number",
    "count",
    "flag",
    "time",
    "when",
    "object",
    "objects",
    "links",
    "path",
    "source",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One thing an operation is given; positional ones come in their order."""

    name: str
    summary: str
    form: Form = "text"
    required: bool = False
    positional: bool = False
    default: Any = None
    choices: tuple[str, ...] = ()


# Four parameters change what an operation is asked of: a sandbox or an older version in the account's
# place, or the account opened without an embedder or with a reranker.
IN_SANDBOX = Parameter(name="sandbox", summary="Do it inside this open sandbox.")
AT_VERSION = Parameter(name="at", summary="Read an older version: its number, or a time.", form="when")
SECOND_LOOK = Parameter(
    name="rerank", summary="Take a second look at the best hits (the extra `rerank`).", form="flag"
)
BY_WORDS = Parameter(name="words", summary="Use words alone; no model is loaded.", form="flag")


def value_of(parameter: Parameter, given: Any) -> Any:
    """The value a door was handed, as the engine takes it; None stays None."""
    if given is None:
        return None
    value = _FORMS[parameter.form](given, parameter.name) if parameter.form in _FORMS else given
    for one in value if isinstance(value, list) else [value]:
        if parameter.choices and one not in parameter.choices:
            raise BadInput(
                f"{parameter.name} {one!r} is unknown", hint=f"use one of {', '.join(parameter.choices)}"
            )
    return value


def time_of(given: Any, name: str = "at") -> datetime:
    """A time from ISO 8601 text; without a zone it is UTC, without an hour the day's first moment."""
    if isinstance(given, datetime):
        return given
    try:
        moment = datetime.fromisoformat(str(given).strip())
    except ValueError as error:
        hint = "write it like 2026-05-04, 2026-05-04T09:30 (UTC) or 2026-05-04T09:30+07:00"
        raise BadInput(f"{name} {given!r} is no time", hint=hint) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _when(given: Any, name: str) -> int | datetime:
    """A version's number or a time."""
    text = str(given).strip()
    return int(text) if text.isdecimal() else time_of(given, name)


def _source(given: Any, name: str) -> str:
    """A file or folder that is there; said before anything is opened, so that nothing begins in vain."""
    if not Path(str(given)).exists():
        raise NotFound(f"there is no file or folder {given}", hint=f"name one that exists as the {name}")
    return str(given)


def _object(given: Any, name: str) -> dict[str, Any]:
    found = _json(given, name)
    if not isinstance(found, Mapping):
        raise BadInput(f"{name} is no JSON object", hint='write it like {"calm": 0.8}')
    return dict(found)


def _objects(given: Any, name: str) -> list[dict[str, Any]]:
    """A JSON array of objects, or one object a line."""
    if isinstance(given, str) and not given.lstrip().startswith("["):
        given = [
            _json(line, f"{name}, line {n}") for n, line in enumerate(given.splitlines(), 1) if line.strip()
        ]
    found = _json(given, name)
    if not isinstance(found, list) or not all(isinstance(item, Mapping) for item in found):
        raise BadInput(f"{name} are no JSON objects", hint="hand in an array of objects, or one a line")
    return [dict(item) for item in found]


def _links(given: Any, name: str) -> dict[str, list[str]]:
    """Edges from `name=id` texts, or from an object of names and ids."""
    if isinstance(given, Mapping):
        return dict(given)
    edges: dict[str, list[str]] = {}
    for text in given:
        edge, equals, target = str(text).partition("=")
        if not (edge and equals and target):
            raise BadInput(f"{name} {text!r} is no edge", hint="write it like about=<id>")
        edges.setdefault(edge, []).append(target)
    return edges


def _json(given: Any, name: str) -> Any:
    if not isinstance(given, str):
        return given
    try:
        return json.loads(given)
    except ValueError as error:
        raise BadInput(f"{name} is no JSON: {error}", hint="mind the quotes your shell removes") from error


_FORMS: dict[str, Callable[[Any, str], Any]] = {
    "time": time_of,
    "when": _when,
    "object": _object,
    "objects": _objects,
    "links": _links,
    "source": _source,
}
