"""The one table of operations (table.toml): what can be asked and done, through whichever door.

Each is an annotated function or a method of the engine; a door reads its name and parameters from here,
hands what it was told to `perform`, and shows the value that comes back. It adds nothing of its own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from octavo.doors.operations import keeping, remembering
from octavo.doors.operations.performing import call, perform
from octavo.doors.operations.table import TABLE, Operation, Parameter, Progress
from octavo.engine.account import Account
from octavo.engine.explain import Explainer
from octavo.engine.sandbox import Sandbox

__all__ = ["BY_NAME", "OPERATIONS", "PATHS", "Operation", "Parameter", "Progress", "call", "perform"]

_OURS: dict[str, Callable[..., Any]] = {**vars(remembering), **vars(keeping)}


def _made(section: str, name: str, row: dict[str, Any]) -> Operation:
    """The operation of a row: our function of that name, or else the engine's method."""
    marks = dict.fromkeys(row.pop("is", "").split(), True)
    span = next((span for span, names in TABLE["_spans"].items() if name in names.split()), None)
    how = {"section": section, "name": name, "span": span, **row, **marks}
    own = _OURS.get(name) or _OURS.get(f"{name}_")
    if own is None:
        method = next(getattr(kind, name) for kind in (Account, Sandbox, Explainer) if hasattr(kind, name))
        return Operation(function=method, **how)
    is_open = any(one.kind is one.VAR_KEYWORD for one in inspect.signature(own).parameters.values())
    return Operation(function=own, like=getattr(Account, name) if is_open else None, **how)


PATHS: dict[str, str] = TABLE["_paths"]
OPERATIONS = tuple(
    _made(section, name, row)
    for section, rows in TABLE.items()
    if not section.startswith("_")
    for name, row in rows.items()
)
BY_NAME = {operation.name: operation for operation in OPERATIONS}
