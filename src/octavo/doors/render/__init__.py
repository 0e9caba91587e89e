"""What the command line shows: an operation's value as a few readable lines, a table or a page.

Memories are data: their text is never read as markup, and what would steer a terminal is made visible. An
operation without a view of its own is shown by the form of its value.
"""

from __future__ import annotations

from typing import Any

from octavo.doors.render.console import error, progress, write
from octavo.doors.render.pages import PAGES
from octavo.doors.render.shapes import value_lines
from octavo.doors.render.views import DESCRIBED, View

__all__ = ["error", "progress", "show"]

VIEWS: dict[str, View] = {**DESCRIBED, **PAGES}


def show(name: str, value: Any) -> None:
    """Print what an operation gave back; what was kept out goes to standard error."""
    for shown in VIEWS.get(name, value_lines)(value):
        write(shown)
