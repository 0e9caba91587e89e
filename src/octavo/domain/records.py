"""The JSON form of frozen records, in and out without loss.

Fields made by `added` are written only when set, all others always; what a record does not know is
kept in its `extra`.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from dataclasses import MISSING, field, fields, is_dataclass
from functools import cache
from typing import Any, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints

from octavo.errors import BadInput

T = TypeVar("T")


def added(default: Any = None) -> Any:
    """A field that is left out of the JSON while it is empty."""
    if isinstance(default, dict):
        return field(default_factory=dict, metadata={"added": True})
    return field(default=default, metadata={"added": True})


def unknown() -> Any:
    """The field that keeps what a record does not know."""
    return field(default_factory=dict, metadata={"extra": True})


def to_json(value: Any) -> Any:
    """A record as plain JSON values."""
    if is_dataclass(value):
        written = {name: to_json(getattr(value, name)) for name in _written(value)}
        return written | dict(getattr(value, "extra", {}))
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def read(kind: type[T], data: Mapping[str, Any], path: str) -> T:
    """Read a record from plain JSON values, or raise with the path of what is wrong."""
    return cast(T, _read(kind, data, path))


def _written(value: Any) -> list[str]:
    rows = [row for row in fields(value) if "extra" not in row.metadata]
    return [
        row.name
        for row in rows
        if "added" not in row.metadata or getattr(value, row.name) not in (None, (), {})
    ]


def _read(hint: Any, value: Any, path: str) -> Any:
    if is_dataclass(hint):
        return _read_record(cast(type, hint), value, path)
    origin, parts = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return None if value is None else _read(parts[0], value, path)
    if origin is Literal:
        return _chosen(value, parts, path)
    if origin is tuple:
        items = _checked(value, list | tuple, path)
        return tuple(_read(parts[0], item, f"{path}[{n}]") for n, item in enumerate(items))
    if origin is not None:
        return {
            key: _read(parts[1], item, f"{path}.{key}")
            for key, item in _checked(value, Mapping, path).items()
        }
    if hint is Any:
        return value
    return _checked(value, int | float if hint is float else hint, path)


def _read_record(kind: type, value: Any, path: str) -> Any:
    data = _checked(value, Mapping, path)
    hints = _hints(kind)
    for row in fields(kind):
        if row.name not in data and row.default is MISSING and row.default_factory is MISSING:
            raise BadInput(f"{path} has no {row.name!r}")
    known = {name: _read(hints[name], item, f"{path}.{name}") for name, item in data.items() if name in hints}
    return kind(**known, extra={name: item for name, item in data.items() if name not in hints})


@cache
def _hints(kind: type) -> dict[str, Any]:
    return {name: hint for name, hint in get_type_hints(kind).items() if name != "extra"}


def _checked(value: Any, kind: Any, path: str) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise BadInput(f"{path} is {type(value).__name__}, which cannot stand there")
    return value


def _chosen(value: Any, able: tuple[Any, ...], path: str) -> Any:
    if value not in able:
        raise BadInput(f"{path} is none of {', '.join(map(str, able))}")
    return value
