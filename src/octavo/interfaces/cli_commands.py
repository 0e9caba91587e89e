"""From a row of the table of operations to a command with its arguments, options, help and completion."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter as Argument
from inspect import Signature
from typing import Annotated, Any

import typer

from octavo.errors import OctavoError
from octavo.interfaces import acts, settings
from octavo.interfaces.cli_line import COMMON, Act, option_of, spelt
from octavo.interfaces.operation import Operation
from octavo.interfaces.parameters import Parameter
from octavo.later import Later

metadata = Later("importlib.metadata")

_TYPES: dict[str, Any] = {"number": float, "count": int, "flag": bool, "texts": list[str], "links": list[str]}


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(metadata.version("octavo"))
        raise typer.Exit


def _complete_account(ctx: typer.Context, incomplete: str) -> list[str]:
    found = settings.read({"root": ctx.params.get("root")})
    return [name for name in acts.accounts(found) if name.startswith(incomplete)]


def _complete_sandbox(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids of open sandboxes, with their names as help."""
    found = settings.read({name: ctx.params.get(name) for name in COMMON})
    try:
        with acts.opened(found) as account:
            return [(s.id, s.name) for s in account.sandboxes() if s.id.startswith(incomplete)]
    except OctavoError:
        return []  # a completion has nowhere to say what is wrong; the command itself will


ROOT = typer.Option("--root", metavar="FOLDER", help="Where the accounts are (OCTAVO_ROOT, ~/.octavo).")
ACCOUNT = typer.Option(
    "--account",
    metavar="NAME",
    help="Whose memory (OCTAVO_ACCOUNT, default).",
    autocompletion=_complete_account,
)
SCOPE = typer.Option("--scope", metavar="NAME", help="See only `shared` and this scope (OCTAVO_SCOPE).")
ACTOR = typer.Option("--actor", metavar="WHO", help="Who acts (OCTAVO_ACTOR, human:<login name>).")
JSON = typer.Option("--json", help="Answer with one JSON document; errors too, on standard error.")
VERSION = typer.Option("--version", help="Show Octavo's version.", is_eager=True, callback=_show_version)
YES = typer.Option("--yes", help="Do not ask.")


def add(app: typer.Typer, operation: Operation, act: Act) -> None:
    """Add the command of an operation, which acts on what the line says."""
    # \b keeps the example on its own lines.
    epilog = f"\b\nExample:\n  {operation.example}"
    app.command(spelt(operation), help=operation.summary, epilog=epilog)(_command(operation, act))


def _command(operation: Operation, act: Act) -> Callable[..., int]:
    def command(ctx: typer.Context, **given: Any) -> int:
        return act(operation, ctx.obj, given)

    arguments = [Argument("ctx", Argument.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    arguments += [_argument(parameter) for parameter in operation.parameters]
    if operation.asks:
        arguments.append(_keyword("yes", bool, YES, default=False))
    for name, option in zip(COMMON, (ROOT, ACCOUNT, SCOPE, ACTOR), strict=True):
        arguments.append(_keyword(name, str | None, option))
    arguments.append(_keyword("json", bool, JSON, default=False))
    command.__annotations__ = {}  # typer reads the signature; the wrapper's own hints would stand in its way
    command.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    return command


def _argument(parameter: Parameter) -> Argument:
    type_ = _TYPES.get(parameter.form, str)
    complete = _completion(parameter)
    if parameter.positional:
        shown: Any = typer.Argument(
            help=parameter.summary, metavar=parameter.name.upper(), autocompletion=complete
        )
    else:
        default = f" [default: {parameter.default}]" if parameter.default is not None else ""
        shown = typer.Option(
            option_of(parameter),
            help=parameter.summary + default,
            autocompletion=complete,
            metavar=_metavar(parameter),
        )
    if parameter.form == "flag":
        return _keyword(parameter.name, bool, shown, default=False)
    if parameter.required:
        return _keyword(parameter.name, type_, shown, default=Argument.empty)
    return _keyword(parameter.name, type_ | None, shown)


def _keyword(name: str, type_: Any, shown: Any, default: Any = None) -> Argument:
    return Argument(name, Argument.KEYWORD_ONLY, default=default, annotation=Annotated[type_, shown])


def _metavar(parameter: Parameter) -> str | None:
    match parameter.form:
        case "flag":
            return None
        case "object":
            return "JSON"
        case "links":
            return "NAME=ID"
        case "when":
            return "VERSION"
        case "text" | "texts":
            return "|".join(parameter.choices) if 0 < len(parameter.choices) < 4 else "TEXT"
        case form:
            return form.upper()


def _completion(parameter: Parameter) -> Callable[..., Any] | None:
    if parameter.name == "sandbox":
        return _complete_sandbox
    if parameter.choices:
        return lambda incomplete: [c for c in parameter.choices if c.startswith(incomplete)]
    return None
