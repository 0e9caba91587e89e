"""The one table of operations: what can be asked and done, through whichever door.

Each is an annotated function in the module of its section; a door reads its name and parameters from here,
hands what it was told to `perform`, and shows the value that comes back. It adds nothing of its own.
"""

from __future__ import annotations

from msgspec.structs import replace

from octavo.doors.operations import (
    accounts,
    assemblies,
    compression,
    files,
    health,
    levels,
    memories,
    recall,
    review,
    sandboxes,
    versions,
)
from octavo.doors.operations.performing import call, perform
from octavo.doors.operations.table import Operation, Parameter, Progress

__all__ = ["OPERATIONS", "Operation", "Parameter", "Progress", "call", "perform"]

_SECTIONS = (
    *(accounts, sandboxes, memories, recall, review, compression, assemblies, versions),
    *(files, levels, health),
)

OPERATIONS: tuple[Operation, ...] = tuple(
    replace(value, section=section.__name__.rpartition(".")[2])
    for section in _SECTIONS
    for value in vars(section).values()
    if isinstance(value, Operation)
)
