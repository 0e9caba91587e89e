"""What starts the doors for agents from the command line: `octavo mcp`, `octavo hook`, `octavo install`."""

from __future__ import annotations

from typing import Annotated, Any

from octavo.doors import hooks
from octavo.doors import install as installing
from octavo.doors import mcp as serving
from octavo.doors.operations.table import Operation, operation
from octavo.doors.settings import Settings


@operation("octavo mcp --scope orion", writes=True)
def mcp(settings: Settings) -> None:
    """Answer an MCP client on standard input and output (the extra `mcp`)."""
    serving.serve_stdio(settings)


@operation("octavo hook session-start", writes=True)
def hook(
    settings: Settings,
    event: Annotated[str, "session-start, prompt, pre-compact or stop; its JSON on standard input."],
) -> None:
    """Answer a coding agent's hook: brief it, and keep what was said."""
    hooks.answer(settings, event)


@operation("octavo install claude-code", writes=True)
def install(
    settings: Settings,
    client: Annotated[installing.Client, "Which one."],
    *,
    undo: Annotated[bool, "Take it out again."] = False,
    yes: Annotated[bool, "Do not ask."] = False,
) -> dict[str, Any]:
    """Give a coding agent this memory: its tools, its hooks and a skill; the difference is shown first."""
    return installing.install(settings, client, undo=undo, yes=yes)


COMMANDS: tuple[Operation, ...] = (mcp, hook, install)
