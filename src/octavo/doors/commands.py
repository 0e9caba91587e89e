"""From the table of operations to the program that typer runs: commands, their help and their completion."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable
from contextlib import suppress
from datetime import datetime
from enum import StrEnum
from importlib import metadata
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from octavo.doors import agents, robots, serving, settings
from octavo.doors.operations import BY_NAME, OPERATIONS, Operation, Parameter, perform
from octavo.doors.operations.table import TABLE
from octavo.doors.plain import clean
from octavo.errors import BadInput, OctavoError

# Every command: the table, and those that open other doors, which use the table themselves.
COMMANDS: tuple[Operation, ...] = (*OPERATIONS, *serving.COMMANDS, *agents.COMMANDS, *robots.COMMANDS)


def spelt(operation: Operation) -> str:
    """The operation's name on the command line."""
    return operation.name.replace("_", "-")


NAMES = {spelt(operation): operation for operation in COMMANDS}
COMMON = tuple(Parameter(name=name, summary=told) for name, told in TABLE["_options"].items())
JSON, YES = (
    Parameter(name=name, type=bool, default=False, summary=told) for name, told in TABLE["_flags"].items()
)
EVERYDAY = tuple(TABLE["_help"]["everyday"].split())
_FEW = 3
_HELP_WIDTH = 80
# What typer reads a type as, and what a value of it is called: the table's own reading of times, JSON and
# the like says better what is wrong.
_READ_AS: dict[Any, tuple[Any, str]] = {
    str: (str, "TEXT"),
    int: (int, "N"),
    float: (float, "NUMBER"),
    list[str]: (list[str], "TEXT"),
    datetime: (str, "TIME"),
    int | datetime: (str, "VERSION"),
    dict[str, Any]: (str, "JSON"),
    list[dict[str, Any]]: (str, "JSON"),
    dict[str, list[str]]: (list[str], "NAME=ID"),
    Path: (str, "PATH"),
}

Act = Callable[[Operation, dict[str, Any], dict[str, Any]], int]  # what was said before and behind the name


def program(act: Act) -> Callable[..., Any]:
    """The program, which acts on what a line says; a command is made when it is named."""

    class Sections(TyperGroup):
        """The commands of the table, under its sections."""

        def list_commands(self, ctx: Any) -> list[str]:
            """The names of all commands."""
            return list(NAMES)

        def get_command(self, ctx: Any, cmd_name: str) -> Any:
            """The command of that name."""
            return command(NAMES[cmd_name], act) if cmd_name in NAMES else None

        def resolve_command(self, ctx: Any, args: Any) -> Any:
            """The command that is meant; its absence is answered with names that are like it."""
            self.commands: Any = NAMES  # where typer looks for likenesses
            if args and (meant := TABLE["_meant"].get(args[0])):
                said = f"there is no command {args[0]!r} here"
                raise BadInput(said, hint=f"`octavo {meant} --help` may be what you mean")
            return super().resolve_command(ctx, args)

        def format_commands(self, ctx: Any, formatter: Any) -> None:
            """Write the everyday commands first, then the others section by section."""
            by_name = {o.name: o for o in COMMANDS}
            groups = {"Everyday": [by_name[name] for name in EVERYDAY]}
            for other in COMMANDS:
                if other.name not in EVERYDAY:
                    title = TABLE["_help"].get(other.section, other.section.capitalize())
                    groups.setdefault(title, []).append(other)
            widest = max(map(len, NAMES))
            for title, operations in groups.items():
                with formatter.section(title):
                    formatter.write_dl([(spelt(o).ljust(widest), o.summary) for o in operations])

    app = typer.Typer(
        cls=Sections,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings=_context(),
        epilog="The options may also follow the command. `octavo COMMAND --help` shows an example.",
    )
    app.callback()(_spoken(_common, [*map(_argument, (*COMMON, JSON)), _VERSION]))
    return app


def command(operation: Operation, act: Act) -> Any:
    """The command of an operation, which acts on what the line says."""

    def run(ctx: typer.Context, **said: Any) -> int:
        return act(operation, ctx.obj or {}, said)

    asked = (YES,) if operation.asks else ()
    shown = map(_argument, (*operation.parameters, *asked, *COMMON, JSON))
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    notes = ["Only a human actor may."] * operation.human
    notes += ["It takes files of this machine."] * operation.local
    # \b keeps the example on its own lines.
    app.command(
        spelt(operation),
        help="\n\n".join([operation.summary, *notes]),
        epilog=f"\b\nExample:\n  {operation.example}",
        context_settings=_context(),
    )(_spoken(run, shown))
    return typer.main.get_command(app)


def _common(ctx: typer.Context, **said: Any) -> None:
    """Long-term memory for AI agents: versioned, explained, undoable, offline."""
    ctx.obj = said


def _spoken(function: Callable[..., Any], options: Iterable[Argument]) -> Callable[..., Any]:
    """A function that typer calls with these options."""
    context = Argument("ctx", Argument.POSITIONAL_OR_KEYWORD, annotation=typer.Context)
    function.__annotations__ = {}  # typer reads the signature; hints would stand in its way
    function.__signature__ = Signature([context, *options])  # type: ignore[attr-defined]
    return function


def _context() -> dict[str, Any]:
    """How help is asked for, and that it fits the terminal: left alone it takes 50 columns at least."""
    width = min(shutil.get_terminal_size().columns, _HELP_WIDTH) - 2
    return {"help_option_names": ["-h", "--help"], "terminal_width": width}


def option_of(parameter: Parameter) -> str:
    """A parameter's option; one that may be repeated is named for one of its values."""
    name = parameter.name.removesuffix("s") if parameter.is_many else parameter.name
    return f"--{name.replace('_', '-')}"


def _argument(parameter: Parameter) -> Argument:
    type_, metavar = _typed(parameter)
    one_of = f" One of {', '.join(parameter.choices)}." if len(parameter.choices) > _FEW else ""
    more: dict[str, Any] = {"help": parameter.summary + one_of, "min": parameter.least, "max": parameter.most}
    if known := {"account": "accounts", "sandbox": "sandboxes"}.get(parameter.name):
        more["autocompletion"] = _completed(known)
    if parameter.is_positional:
        shown: Any = typer.Argument(
            show_default=False, metavar=f"{parameter.name.upper()}{'...' * parameter.is_many}", **more
        )
    else:
        names = [option_of(parameter), *([parameter.short] if parameter.short else [])]
        has_default = parameter.default not in (None, "", False, 0.0)
        shown = typer.Option(*names, show_default=has_default, metavar=metavar, **more)
    if parameter.is_required:
        return _keyword(parameter.name, type_, shown, Argument.empty)
    return _keyword(parameter.name, type_ | None, shown, parameter.default)


def _typed(parameter: Parameter) -> tuple[Any, str | None]:
    """The type that typer reads a parameter as, and what a value of it is called."""
    name = parameter.name.removesuffix("s") if parameter.is_many else parameter.name
    if parameter.choices:
        called = "|".join(parameter.choices) if len(parameter.choices) <= _FEW else name.upper()
        # typer knows no list of literals, but of an enumeration; mypy wants the members of one written out.
        enumeration: Any = StrEnum
        each = enumeration("each", {choice: choice for choice in parameter.choices})
        return (list[each] if parameter.is_many else parameter.type), called  # type: ignore[valid-type]
    return _READ_AS.get(parameter.type, (parameter.type, None))


def _keyword(name: str, type_: Any, shown: Any, default: Any = None) -> Argument:
    return Argument(name, Argument.KEYWORD_ONLY, default=default, annotation=Annotated[type_, shown])


def _completed(known: str) -> Callable[[typer.Context, str], list[str]]:
    """What a shell offers: the accounts or the open sandboxes; it has nowhere to say what is wrong."""

    def offered(ctx: typer.Context, incomplete: str) -> list[str]:
        names: list[str] = []
        with suppress(OctavoError):
            before = ctx.find_root().params
            where = settings.read({p.name: ctx.params.get(p.name) or before.get(p.name) for p in COMMON})
            (found,) = perform(BY_NAME[known], where, {}).values()
            for one in found:
                names += [one] if isinstance(one, str) else [one.id, one.name]
        return [name for name in names if name.startswith(incomplete) and name == clean(name)]

    return offered


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(metadata.version("octavo"))
        raise typer.Exit


_VERSION = _keyword(
    "version",
    bool,
    typer.Option("--version", help="Show Octavo's version.", is_eager=True, callback=_show_version),
    False,
)
