"""From a row of the table of operations to a command with its arguments, options, help and completion."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from inspect import Parameter as Argument
from inspect import Signature
from pathlib import Path
from typing import Annotated, Any

import typer

from octavo.errors import BadInput, OctavoError
from octavo.interfaces import acts, settings
from octavo.interfaces.operation import Operation, perform
from octavo.interfaces.parameters import Parameter
from octavo.later import Later

metadata = Later("importlib.metadata")
plain = Later("octavo.interfaces.plain")
render = Later("octavo.interfaces.render")

_TYPES: dict[str, Any] = {"number": float, "count": int, "flag": bool, "texts": list[str], "links": list[str]}
_COMMON = ("root", "account", "scope", "actor")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(metadata.version("octavo"))
        raise typer.Exit


def _complete_account(ctx: typer.Context, incomplete: str) -> list[str]:
    found = settings.read({"root": ctx.params.get("root")})
    return [name for name in acts.accounts(found) if name.startswith(incomplete)]


def _complete_sandbox(ctx: typer.Context, incomplete: str) -> list[tuple[str, str]]:
    """Ids of open sandboxes, with their names as help."""
    found = settings.read({name: ctx.params.get(name) for name in _COMMON})
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


def spelt(operation: Operation) -> str:
    """The operation's name on the command line."""
    return operation.name.replace("_", "-")


def option_of(parameter: Parameter) -> str:
    """A parameter's option; one that may be repeated is named for one of its values."""
    name = parameter.name.removesuffix("s") if parameter.form in ("texts", "links") else parameter.name
    return f"--{name.replace('_', '-')}"


def add(app: typer.Typer, operation: Operation) -> None:
    """Add the command of an operation."""
    # \b keeps the example on its own lines.
    epilog = f"\b\nExample:\n  {operation.example}"
    app.command(spelt(operation), help=operation.summary, epilog=epilog)(_command(operation))


def _command(operation: Operation) -> Callable[..., int]:
    def run(ctx: typer.Context, **given: Any) -> int:
        return _run(operation, ctx.obj, given)

    arguments = [Argument("ctx", Argument.POSITIONAL_OR_KEYWORD, annotation=typer.Context)]
    arguments += [_argument(parameter) for parameter in operation.parameters]
    if operation.asks:
        arguments.append(_keyword("yes", bool, YES, default=False))
    for name, option in zip(_COMMON, (ROOT, ACCOUNT, SCOPE, ACTOR), strict=True):
        arguments.append(_keyword(name, str | None, option))
    arguments.append(_keyword("json", bool, JSON, default=False))
    run.__annotations__ = {}  # typer reads the signature; the wrapper's own hints would stand in its way
    run.__signature__ = Signature(arguments)  # type: ignore[attr-defined]
    return run


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


def _run(operation: Operation, before: Mapping[str, Any], given: dict[str, Any]) -> int:
    """Do what a command line asks and show what came of it; the exit code says whether it is in."""
    after = {name: given.pop(name) for name in _COMMON}
    common = {name: before[name] if said is None else said for name, said in after.items()}
    as_json = given.pop("json") or before["json"]
    if operation.asks and not given.pop("yes"):
        _ask(operation.asks.format(**given))
    values = {p.name: _read(p, given[p.name]) for p in operation.parameters}
    found = settings.read(common)
    if as_json:
        value = perform(operation, found, values)
        typer.echo(plain.document(value))
    else:
        with render.progress(operation) as progress:
            value = perform(operation, found, values, progress)
        render.show(operation.name, value)
    return _exit_code(operation, value)


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise BadInput(f"{question} Nobody is there to answer", hint="say --yes")
    typer.confirm(question, abort=True, err=True)


def _read(parameter: Parameter, given: Any) -> Any:
    """What was typed; `-` stands for standard input, and JSON may also come from a file."""
    if isinstance(given, str) and not given.isprintable():
        try:
            given.encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"{parameter.name} is not UTF-8", hint="check the terminal's encoding") from error
    if not parameter.positional or not isinstance(given, str):
        return given
    if given == "-" and (parameter.name == "text" or parameter.form in ("object", "objects")):
        return _decoded(sys.stdin.buffer.read(), "standard input")
    if parameter.form in ("object", "objects") and not given.lstrip().startswith(("{", "[")):
        path = Path(given)
        if not path.is_file():
            raise BadInput(f"{parameter.name} {given!r} is neither JSON nor a file", hint="mind the quotes")
        return _decoded(path.read_bytes(), given)
    return given


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"{what} is not UTF-8", hint="convert it first") from error


def _exit_code(operation: Operation, value: Any) -> int:
    """5 if the gate kept something out, 7 if a check found damage; both are values, not errors."""
    if operation.name in ("check", "repair"):
        return 0 if value else 7
    verdicts = value.get("verdicts", []) if isinstance(value, dict) else [value]
    return 5 if any(getattr(v, "outcome", None) in ("refused", "proposed") for v in verdicts) else 0
