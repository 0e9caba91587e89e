"""The program that typer runs: one command for each row of the table of operations, and their help."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from octavo.interfaces import cli_commands, settings
from octavo.interfaces.cli_line import Act, run, spelt
from octavo.interfaces.operation import Operation
from octavo.interfaces.operations import OPERATIONS

_SECTIONS = {
    "accounts": "Accounts",
    "sandboxes": "Sandboxes (a conversation before it counts)",
    "memories": "Memories",
    "recall": "Recall (what comes back, and why)",
    "review": "Review (what a person decides)",
    "compression": "Compression (eight sessions to a core, eight cores to a sphere)",
    "versions": "Versions (what was, and the way back)",
    "health": "Health, copies and other systems",
}


class Sections(TyperGroup):
    """The commands under the table's sections; typer's own panels would load rich for `--help`."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the commands, section by section."""
        for section, title in _SECTIONS.items():
            rows = [(spelt(o), o.summary) for o in OPERATIONS if o.section == section]
            with formatter.section(title):
                formatter.write_dl(rows)


def app(operations: Sequence[Operation] = OPERATIONS, act: Act = run) -> typer.Typer:
    """The program with the commands of these operations."""
    made = typer.Typer(
        cls=Sections,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        epilog="The options may also follow the command. `octavo COMMAND --help` shows an example.",
    )
    made.callback()(common)
    for operation in operations:
        cli_commands.add(made, operation, act)
    return made


def common(
    ctx: typer.Context,
    root: Annotated[str | None, cli_commands.ROOT] = None,
    account: Annotated[str | None, cli_commands.ACCOUNT] = None,
    scope: Annotated[str | None, cli_commands.SCOPE] = None,
    actor: Annotated[str | None, cli_commands.ACTOR] = None,
    json: Annotated[bool, cli_commands.JSON] = False,
    version: Annotated[bool, cli_commands.VERSION] = False,
) -> None:
    """Long-term memory for AI agents: versioned, explained, undoable, offline."""
    ctx.obj = {"root": root, "account": account, "scope": scope, "actor": actor, "json": json}


def meant(arguments: Sequence[str]) -> Sequence[Operation]:
    """The operations that a command line may mean; to make every command takes longer than most of them run.

    The help of the program itself is written from the table and needs none of them.
    """
    if set(arguments) <= {"-h", "--help"} and not settings.is_completing():
        return ()
    return [o for o in OPERATIONS if spelt(o) in arguments] or OPERATIONS
