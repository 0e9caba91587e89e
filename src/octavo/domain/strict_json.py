"""JSON that others wrote, read strictly: each name once, numbers that can be kept, the line of an error."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from octavo.errors import BadFile

_INTEGERS = range(-(2**63), 2**64)


def value_of(data: bytes, place: str, *, odd: bool = False) -> Any:
    """The JSON that bytes are; anything else is an error that names their place and the line.

    A number that cannot be kept is None where what is `odd` is put up with.
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise BadFile(f"{place}, line {line}: not UTF-8") from error
    try:
        number = _number_or_none if odd else _number
        value = json.loads(
            text, object_pairs_hook=_object, parse_constant=number, parse_float=number, parse_int=number
        )
        if "\\ud" in text.lower():
            json.dumps(value, ensure_ascii=False).encode()  # half of a surrogate pair cannot be kept
    except json.JSONDecodeError as error:
        raise BadFile(f"{place}, line {error.lineno}, column {error.colno}: {error.msg}") from error
    except (ValueError, RecursionError) as error:
        raise BadFile(f"{place}, line {_line_of(text, error)}: {error}") from error
    return value


def lines_of(data: bytes) -> Iterator[tuple[int, Any]]:
    """What the lines that are not blank hold, by their numbers; one that is no JSON is a BadFile."""
    for number, line in enumerate(data.split(b"\n"), start=1):
        if line.strip():
            try:
                yield number, json.loads(line)
            except (ValueError, RecursionError) as error:
                yield number, BadFile(f"it is no JSON: {error}")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    for key, value in pairs:
        if key in fields:
            raise ValueError(f"the field {key!r} stands twice in one object")
        fields[key] = value
    return fields


def _number(digits: str) -> int | float:
    """What the ledger can hold: whole numbers of 64 bits, finite ones, and not what JSON does not know."""
    is_whole = digits.lstrip("-").isdecimal()
    value = int(digits[:21]) if is_whole else float(digits)  # of a longer one the beginning is too much
    if not math.isfinite(value) or (isinstance(value, int) and value not in _INTEGERS):
        raise ValueError(f"the number {digits[:40]} cannot be kept")
    return value


def _number_or_none(digits: str) -> int | float | None:
    with suppress(ValueError):
        return _number(digits)
    return None


def _line_of(text: str, error: BaseException) -> int:
    """The first line that holds what the error quotes; the parser does not say."""
    words = str(error).replace("'", " ").split()
    quoted = next(
        (word for word in reversed(words) if word.isascii() and len(word) > 2 and word in text), None
    )
    return 1 if quoted is None else text.count("\n", 0, text.index(quoted)) + 1
