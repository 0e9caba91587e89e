"""Forms: what a route or a tool may be told, as a JSON schema and as the shape that reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict

import msgspec
from msgspec import Meta

from octavo.domain.records import shape_of
from octavo.doors.operations import Parameter
from octavo.errors import BadInput

_LARGEST = 2**31 - 1  # what no list is longer than
# What JSON has for a type of the table; times are texts, read as the table reads them.
_JSON_TYPES: dict[Any, Any] = {datetime: str, int | datetime: int | str}
_TYPED = re.compile("; (may be repeated|- reads standard input)")  # what is said of a command line alone


class Unfit(BadInput):
    """What was said does not fit its form; the message begins with its place, such as `body.text`."""


class Form:
    """What some parameters may be told; one that is open ignores what is not among them."""

    def __init__(self, parameters: Sequence[Parameter], *, is_open: bool = False, nulls: bool = False):
        self._known = {p.name: p for p in parameters}
        self._is_open = is_open
        self._shape: Any = TypedDict("Form", {p.name: _field(p, nulls) for p in parameters})  # type: ignore[misc]

    @property
    def schema(self) -> dict[str, Any]:
        """It as a JSON schema of an object."""
        (schema,) = msgspec.json.schema(self._shape)["$defs"].values()
        parts = {name: schema["properties"][name] for name in self._known}
        for name, part in parts.items():
            if self._known[name].choices:
                part.get("items", part)["type"] = "string"
        needed = [name for name in parts if name in schema["required"]]
        whole = {"type": "object", "properties": parts, "required": needed}
        return whole if self._is_open else {**whole, "additionalProperties": False}

    def described(self, place: str) -> list[dict[str, Any]]:
        """It as the parameters of a place (`path`, `query`) that OpenAPI describes."""
        schema = self.schema
        needed, parts = schema["required"], schema["properties"].items()
        return [{"name": n, "in": place, "required": n in needed, "schema": part} for n, part in parts]

    def texts(self, query: Any) -> dict[str, Any]:
        """What a query says, each text by its name; several where several are taken."""
        many = {p.name: query.getlist(p.name) for p in self._known.values() if p.is_many}
        return {**query, **{name: texts for name, texts in many.items() if texts}}

    def read(self, said: Any, where: str, *, is_text: bool = True) -> dict[str, Any]:
        """What was said, by the types of the parameters; None is not said, a text may stand for a number."""
        hint = f"it takes {', '.join(self._known) or 'nothing'}"
        if not isinstance(said, Mapping):
            raise Unfit(f"{where} is no JSON object", hint=hint)
        for name in () if self._is_open else sorted(said.keys() - self._known.keys())[:1]:
            raise Unfit(f"{where}.{name[:80]} is unknown: there is no {name[:80]!r} here", hint=hint)
        many = {name for name, value in said.items() if is_text and isinstance(value, str)}
        many &= {p.name for p in self._known.values() if p.is_many}
        told = {name: [value] if name in many else value for name, value in said.items()}
        try:
            read = msgspec.convert(told, shape_of(self._shape), strict=not is_text)
        except msgspec.ValidationError as error:
            what, _, place = str(error).partition(" - at `$")
            for parameter in [self._known[name] for name in re.findall(r"[\w-]+", place)[:1]]:
                one_of = f" One of {', '.join(parameter.choices)}." if parameter.choices else ""
                hint = f"{parameter.name}: {_TYPED.sub('', parameter.summary)}{one_of}"
            raise Unfit(f"{where}{place.rstrip('`')} does not fit: {what}", hint=hint) from error
        return {name: value for name, value in read.items() if value is not None}


def _field(parameter: Parameter, nulls: bool) -> Any:
    """A field: its type with its sentence and its bounds, and whether it may be absent, or null."""
    type_ = _JSON_TYPES.get(parameter.type, parameter.type)
    if type_ in (int, float):
        most = _LARGEST if type_ is int and parameter.most is None else parameter.most
        type_ = Annotated[type_, Meta(ge=parameter.least, le=most)]
    more = {"format": "date-time"} if parameter.type is datetime else {}
    more |= {"default": parameter.default} if parameter.default not in (None, False) else {}
    about = Meta(description=_TYPED.sub("", parameter.summary), extra_json_schema=more)
    if parameter.is_required:
        return Annotated[type_, about]
    return NotRequired[Annotated[type_ | None if nulls else type_, about]]
