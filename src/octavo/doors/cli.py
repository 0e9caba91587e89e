"""The command line door: `octavo`, from what was typed to an exit code."""

from __future__ import annotations

import gc
import io
import os
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from octavo.domain.privacy import tellable
from octavo.doors import commands, plain, render, settings
from octavo.doors.operations import Operation, Parameter, perform
from octavo.errors import BadInput, OctavoError, Unavailable

_INTERRUPTED = 130
_JSON = (dict[str, Any], list[dict[str, Any]])


def main() -> None:
    """Run `octavo` and leave with its exit code."""
    # A command ends before garbage matters: looking for it while modules load, and once more when the
    # interpreter takes everything down, is a tenth of the time.
    gc.set_threshold(100_000)
    settings.use_one_thread()
    for stream in (sys.stdout, sys.stderr):  # a terminal that cannot show Thai shows its escapes
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


def run(arguments: Sequence[str], program: Callable[..., Any] | None = None) -> int:
    """Run one command line; every failure becomes a message, advice and an exit code."""
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    program = program or commands.program(act)
    try:
        code = program(args=list(arguments) or ["--help"], prog_name="octavo", standalone_mode=False)
        sys.stdout.flush()
        if code == _INTERRUPTED:  # what typer makes of Ctrl-C
            raise KeyboardInterrupt
    except OctavoError as error:
        advice = plain.advised(error, "command")
        return _failed(type(error).__name__, error.message, advice, error.exit_code, own)
    except typer.Abort:
        return _failed("Interrupted", "not done", "nothing was changed", 1, own)
    except KeyboardInterrupt:
        return _failed("Interrupted", "stopped", "nothing half-written remains", _INTERRUPTED, own)
    except BrokenPipeError:
        # The reader of a pipe has seen enough (`octavo memories | head`); nothing more can be said to it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return _failed(
            "Unavailable", f"{where}{error.strerror}", Unavailable.hint, Unavailable.exit_code, own
        )
    except Exception as error:  # the outermost door: nobody above could do better than say it
        return _unexpected(error, own)
    return code if isinstance(code, int) else 0


def act(operation: Operation, before: Mapping[str, Any], said: dict[str, Any]) -> int:
    """Do what a command line asks and show what came of it; the exit code says whether it is in."""
    behind = {p.name: said.pop(p.name) for p in commands.COMMON}
    common = {name: before.get(name) if value is None else value for name, value in behind.items()}
    as_json = said.pop("json") or before.get("json", False)
    if operation.asks and not said.pop("yes"):
        _ask(operation.asks.format(**said))
    values = {p.name: _read(p, said[p.name]) for p in operation.parameters}
    where = settings.read(common)
    if as_json:
        value = perform(operation, where, values)
        print(plain.document(value))
    else:
        with render.progress(commands.spelt(operation), is_long=operation.long) as progress:
            value = perform(operation, where, values, progress)
        render.show(operation.name, value)
    return _exit_code(value)


def _ask(question: str) -> None:
    if not sys.stdin.isatty():
        raise BadInput(f"{question} Nobody is there to answer", hint="say --yes")
    typer.confirm(plain.clean(question), abort=True, err=True)


def _read(parameter: Parameter, said: Any) -> Any:
    """What was typed; `-` stands for standard input, and JSON may also come from a file."""
    if isinstance(said, list):
        return [*map(str, said)]  # of an enumeration the plain text
    if isinstance(said, str) and not said.isprintable():
        try:
            said.encode()
        except UnicodeEncodeError as error:
            raise BadInput(f"{parameter.name} is not UTF-8", hint="check the terminal's encoding") from error
    if not parameter.is_positional or not isinstance(said, str):
        return said
    if said == "-" and (parameter.name == "text" or parameter.type in _JSON):
        return _decoded(sys.stdin.buffer.read(), "standard input")
    if parameter.type in _JSON and not said.lstrip().startswith(("{", "[")):
        path = Path(said)
        if not path.is_file():
            raise BadInput(f"{parameter.name} {said!r} is neither JSON nor a file", hint="mind the quotes")
        return _decoded(path.read_bytes(), said)
    return said


def _decoded(data: bytes, what: str) -> str:
    try:
        return data.decode().rstrip("\n")
    except UnicodeDecodeError as error:
        raise BadInput(f"{what} is not UTF-8", hint="convert it first") from error


def _exit_code(value: Any) -> int:
    """Of values that are no errors: 5 if something was kept out, 3 if it is not there, 7 for damage."""
    if getattr(value, "problems", ()):
        return 7
    verdicts = value.get("verdicts", []) if isinstance(value, dict) else [value]
    kept_out = [v.check for v in verdicts if getattr(v, "outcome", None) in ("refused", "proposed")]
    return 0 if not kept_out else 3 if set(kept_out) == {"missing"} else 5


def _unexpected(error: Exception, arguments: Sequence[str]) -> int:
    # typer carries its own copy of click, whose usage errors have no public class to catch.
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        named = next((f"octavo {name}" for name in arguments if name in commands.NAMES), "octavo")
        advice = f"`{named} --help` shows what can be said"
        message = error.format_message().replace(" int range", " number").replace(" float range", " number")
        return _failed("BadInput", message, advice, int(error.exit_code), arguments)
    if settings.is_debugging():
        sys.stderr.write(plain.clean("".join(traceback.format_exception(error))))
    message = f"{type(error).__name__}: {error}"
    advice = "this is a defect of Octavo; OCTAVO_DEBUG=1 shows where, please report it"
    return _failed(type(error).__name__, message, advice, 1, arguments)


def _failed(name: str, message: str, advice: str, code: int, arguments: Sequence[str]) -> int:
    message, advice = tellable(message), tellable(advice)
    if "--json" in arguments:
        fault = {"error": {"type": name, "message": message, "advice": advice, "exit_code": code}}
        print(plain.document(fault), file=sys.stderr)
    else:
        render.error(message, advice)
    return code


if __name__ == "__main__":
    main()
