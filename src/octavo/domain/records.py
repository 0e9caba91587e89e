"""The JSON form of records that others write too, in and out without loss.

A field of `Ours` is written only when set, all others always; what a record does not know is kept in `extra`.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, field

from octavo.errors import BadInput

T = TypeVar("T")
_OURS = Meta(extra={"ours": True})
Ours = Annotated[T, _OURS]


class Record(Struct, frozen=True, kw_only=True):
    """A record that keeps what it does not know."""

    extra: Mapping[str, Any] = field(default_factory=dict)


def to_json(value: Any) -> Any:
    """A record as plain JSON values."""
    if isinstance(value, Record):
        written = {name: to_json(getattr(value, name)) for name in _hints(type(value))}
        empty = [name for name in _ours(type(value)) if written[name] in (None, [], {})]
        return {name: item for name, item in written.items() if name not in empty} | dict(value.extra)
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def read(kind: type[T], data: Mapping[str, Any], path: str) -> T:
    """Read a record from plain JSON values, or raise with the path of what is wrong."""
    try:
        return msgspec.convert(_gathered(kind, data), kind)
    except msgspec.ValidationError as error:
        raise BadInput(str(error).replace("$", path, 1)) from error


def _gathered(hint: Any, value: Any) -> Any:
    """JSON values with the fields that their records do not know moved into `extra`."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        hint = get_args(hint)[0]
    if get_origin(hint) is tuple and isinstance(value, list | tuple):
        return [_gathered(get_args(hint)[0], item) for item in value]
    if isinstance(hint, type) and issubclass(hint, Record) and isinstance(value, Mapping):
        hints = _hints(hint)
        known = {name: _gathered(hints[name], item) for name, item in value.items() if name in hints}
        return {**known, "extra": {name: item for name, item in value.items() if name not in hints}}
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name] for name in kind.__struct_fields__ if name != "extra"}  # type: ignore[attr-defined]


@cache
def _ours(kind: type) -> tuple[str, ...]:
    return tuple(name for name, hint in _hints(kind).items() if _OURS in getattr(hint, "__metadata__", ()))
