"""What an operation takes, as a model of pydantic's: REST and MCP read, check and describe it by that."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Annotated, Any, cast

from octavo.doors.operations import Parameter

_MOST = 2**31 - 1  # what no list is longer than
# What JSON has for a type of the table; times are texts, read as the table reads them.
_JSON_TYPES: dict[Any, Any] = {datetime: str, int | datetime: int | str}


def form(name: str, parameters: Iterable[Parameter], *, has_nulls: bool = True, **config: Any) -> Any:
    """A model with a field for every parameter; null is the same as nothing said, unless it has none."""
    from pydantic import ConfigDict, Field, create_model

    fields: dict[str, Any] = {}
    for p in parameters:
        type_ = typed(p, Field, has_null=has_nulls and not p.is_required)
        fields[p.name] = type_, ... if p.is_required else p.default
    model: Any = create_model(name, __config__=cast(ConfigDict, config), **fields)
    return model


def typed(parameter: Parameter, field: Any, *, has_null: bool = False) -> Any:
    """A parameter's type in JSON, with its sentence and its bounds in a field of pydantic's or FastAPI's."""
    type_, most = _JSON_TYPES.get(parameter.type, parameter.type), parameter.most
    if type_ is int and most is None:
        most = _MOST
    bounds = {"ge": parameter.least, "le": most} if type_ in (int, float) else {}
    return Annotated[type_ | None if has_null else type_, field(description=parameter.summary, **bounds)]


def said(model: Any) -> dict[str, Any]:
    """What was said of a model's fields, by their names."""
    return {} if model is None else {name: getattr(model, name) for name in model.model_fields_set}
