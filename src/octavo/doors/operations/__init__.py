"""The one table of operations: what can be asked and done, through whichever door.

Each is an annotated function or a method of the engine; a door reads its name and parameters from here,
hands what it was told to `perform`, and shows the value that comes back. It adds nothing of its own.
"""

from __future__ import annotations

from octavo.doors.operations import keeping, remembering
from octavo.doors.operations.performing import call, perform
from octavo.doors.operations.table import Operation, Parameter, Progress

__all__ = ["OPERATIONS", "Operation", "Parameter", "Progress", "call", "perform"]

OPERATIONS: tuple[Operation, ...] = tuple(
    made for room in (remembering, keeping) for made in vars(room).values() if isinstance(made, Operation)
)
