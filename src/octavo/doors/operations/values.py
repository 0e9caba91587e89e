"""What a door hands in: how text or JSON becomes the value that a parameter's type asks for."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from octavo.domain.memory import check_time
from octavo.doors.operations.table import Parameter
from octavo.errors import BadInput, NotFound


def values_of(parameters: Sequence[Parameter], said: Mapping[str, Any]) -> dict[str, Any]:
    """What a door was told, by the types of some parameters; None and an empty list were not said."""
    values = {p.name: value for p in parameters if (value := value_of(p, said.get(p.name))) not in (None, [])}
    if missing := [p.name for p in parameters if p.is_required and p.name not in values]:
        raise BadInput(f"{', '.join(missing)} must be said", hint="ask again with that")
    return values


def value_of(parameter: Parameter, said: Any) -> Any:
    """What was said as the parameter's type has it; None stays None."""
    if said is None:
        return None
    read = _READERS.get(parameter.type)
    value = said if read is None else read(said, parameter.name)
    if parameter.must_exist and not Path(value).exists():
        # Said before anything is opened, so that nothing begins in vain.
        hint = f"name one that exists as the {parameter.name}"
        raise NotFound(f"there is no file or folder {value}", hint=hint)
    return value


def time_of(said: Any, name: str = "at", what: str = "time") -> datetime:
    """A time from ISO 8601 text; without a zone it is UTC, without an hour the day's first moment."""
    if isinstance(said, datetime):
        return said
    try:
        moment = datetime.fromisoformat(str(said).strip())
    except ValueError as error:
        hint = "write it like 2026-05-04, 2026-05-04T09:30 (UTC) or 2026-05-04T09:30+07:00"
        raise BadInput(f"{name} {said!r} is no {what}", hint=hint) from error
    return check_time(moment if moment.tzinfo else moment.replace(tzinfo=UTC), name)


def _when(said: Any, name: str) -> int | datetime:
    """A version's number or a time."""
    text = str(said).strip()
    return int(text) if text.isdecimal() else time_of(said, name, "version's number and no time")


def _object(said: Any, name: str) -> dict[str, Any]:
    value = _json(said, name)
    if not isinstance(value, Mapping):
        raise BadInput(f"{name} is no JSON object", hint='write it like {"calm": 0.8}')
    return dict(value)


def _objects(said: Any, name: str) -> list[dict[str, Any]]:
    """A JSON array of objects, or one object a line; what each says of its time is one."""
    if isinstance(said, str) and not said.lstrip().startswith("["):
        lines = enumerate(said.splitlines(), 1)
        said = [_json(line, f"{name}, line {n}") for n, line in lines if line.strip()]
    items = _json(said, name)
    if not isinstance(items, list) or not all(isinstance(item, Mapping) for item in items):
        raise BadInput(f"{name} are no JSON objects", hint="hand in an array of objects, or one a line")
    return [{**item, "at": time_of(item["at"])} if item.get("at") else dict(item) for item in items]


def _links(said: Any, name: str) -> dict[str, list[str]]:
    """Edges from `name=id` texts, or from an object of names and ids."""
    if isinstance(said, Mapping):
        return dict(said)
    edges: dict[str, list[str]] = {}
    for text in said:
        edge, equals, target = str(text).partition("=")
        if not (edge and equals and target):
            raise BadInput(f"{name} {text!r} is no edge", hint="write it like about=<id>")
        edges.setdefault(edge, []).append(target)
    return edges


def _json(said: Any, name: str) -> Any:
    if not isinstance(said, str):
        return said
    try:
        return json.loads(said)
    except ValueError as error:
        raise BadInput(f"{name} is no JSON: {error}", hint="mind the quotes your shell removes") from error


_READERS: dict[Any, Callable[[Any, str], Any]] = {
    datetime: time_of,
    int | datetime: _when,
    dict[str, Any]: _object,
    list[dict[str, Any]]: _objects,
    dict[str, list[str]]: _links,
    Path: lambda said, _: Path(said),
}
