"""A command line read straight from the table of operations, and done.

Loading typer takes as long as a short command runs, so a line that says a command, its arguments and its
options plainly is read here. Everything else (help, completion, a mistake that needs a message) is typer's,
and so is the last word on what a line means: tests hold the two readings against each other.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from octavo.errors import BadInput
from octavo.interfaces import settings
from octavo.interfaces.operation import Operation, perform
from octavo.interfaces.operations import OPERATIONS
from octavo.interfaces.parameters import Parameter
from octavo.later import Later

if TYPE_CHECKING:
    import typer

    from octavo.interfaces import plain, render
else:
    typer = Later("typer")
    plain = Later("octavo.interfaces.plain")
    render = Later("octavo.interfaces.render")

COMMON = ("root", "account", "scope", "actor")
_NUMBERS: dict[str, type[int | float]] = {"number": float, "count": int}
_REPEATED = ("texts", "links")

Act = Callable[[Operation, Mapping[str, Any], dict[str, Any]], int]
Line = tuple[Operation, dict[str, Any], dict[str, Any]]  # the operation, what was said before it and after


def spelt(operation: Operation) -> str:
    """The operation's name on the command line."""
    return operation.name.replace("_", "-")


def option_of(parameter: Parameter) -> str:
    """A parameter's option; one that may be repeated is named for one of its values."""
    name = parameter.name.removesuffix("s") if parameter.form in _REPEATED else parameter.name
    return f"--{name.replace('_', '-')}"


def read(arguments: Sequence[str]) -> Line | None:
    """The operation and what it is given, None if typer is to read the line."""
    if settings.is_completing() or "--" in arguments:
        return None
    words = iter(arguments)
    before: dict[str, Any] = {**dict.fromkeys(COMMON), "json": False}
    name = _options(words, _common(), before)
    operation = next((o for o in OPERATIONS if spelt(o) == name), None)
    if operation is None:
        return None
    given = {p.name: False if p.form == "flag" else None for p in operation.parameters}
    given |= {**dict.fromkeys(COMMON), "json": False, **({"yes": False} if operation.asks else {})}
    options = _common() | {option_of(p): p for p in operation.parameters if not p.positional}
    if operation.asks:
        options["--yes"] = Parameter(name="yes", summary="Do not ask.", form="flag")
    places = iter([p for p in operation.parameters if p.positional])
    while (word := _options(words, options, given)) is not None:
        place = next(places, None)
        if word == "" or place is None or not _take(place, word, given):
            return None
    missing = [p for p in operation.parameters if p.required and given[p.name] is None]
    return None if missing else (operation, before, given)


def _common() -> dict[str, Parameter]:
    found = {f"--{name}": Parameter(name=name, summary="") for name in COMMON}
    return {**found, "--json": Parameter(name="json", summary="", form="flag")}


def _options(words: Iterator[str], options: Mapping[str, Parameter], given: dict[str, Any]) -> str | None:
    """Take options up to the next word, and return it; "" if an option is not plain, None at the end."""
    for word in words:
        if not word.startswith("-") or word == "-":
            return word
        name, equals, value = word.partition("=")
        parameter = options.get(name)
        if parameter is None or (equals and parameter.form == "flag"):
            return ""
        if parameter.form == "flag":
            given[parameter.name] = True
            continue
        value = value if equals else next(words, "-")
        if (value.startswith("-") and not equals) or not _take(parameter, value, given):
            return ""
    return None


def _take(parameter: Parameter, word: str, given: dict[str, Any]) -> bool:
    """Note what was said of a parameter; False if it cannot be taken as it stands, or was said before."""
    if parameter.form in _REPEATED and not parameter.positional:
        given[parameter.name] = [*(given[parameter.name] or []), word]
        return True
    if given[parameter.name] is not None or parameter.form in _REPEATED:
        return False
    try:
        given[parameter.name] = _NUMBERS.get(parameter.form, str)(word)
    except ValueError:
        return False
    return True


def run(operation: Operation, before: Mapping[str, Any], given: dict[str, Any]) -> int:
    """Do what a command line asks and show what came of it; the exit code says whether it is in."""
    after = {name: given.pop(name) for name in COMMON}
    common = {name: before[name] if said is None else said for name, said in after.items()}
    as_json = given.pop("json") or before["json"]
    if operation.asks and not given.pop("yes"):
        _ask(operation.asks.format(**given))
    values = {p.name: _read(p, given[p.name]) for p in operation.parameters}
    found = settings.read(common)
    if as_json:
        value = perform(operation, found, values)
        print(plain.document(value))
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
    if operation.name == "upkeep":
        return 7 if value.problems else 0
    verdicts = value.get("verdicts", []) if isinstance(value, dict) else [value]
    return 5 if any(getattr(v, "outcome", None) in ("refused", "proposed") for v in verdicts) else 0
