"""The command line door: `octavo`, from what was typed to an exit code."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from octavo.errors import OctavoError, Unavailable
from octavo.later import Later

if TYPE_CHECKING:
    import traceback

    import typer

    from octavo.interfaces import cli_line, cli_program, plain, render, settings
else:
    # `main` says first how they are to be loaded.
    traceback = Later("traceback")
    typer = Later("typer")
    cli_line = Later("octavo.interfaces.cli_line")
    cli_program = Later("octavo.interfaces.cli_program")
    plain = Later("octavo.interfaces.plain")
    render = Later("octavo.interfaces.render")
    settings = Later("octavo.interfaces.settings")

_INTERRUPTED = 130
# What to do about an error that speaks of Python's arguments, in the words of the command line.
ADVICE = {
    "NotAllowed": "say --actor and --scope of somebody who may",
    "HumanOnly": "say --actor human:<name>, or ask a person",
    "OutOfScope": "--scope sees `shared` and that scope alone; leave it out to act as the owner",
    "ReadOnly": "this command only reads",
    "VersionConflict": "consolidate again; a sandbox that was opened without --strict does so by itself",
}


def main() -> None:
    """Run `octavo` and leave with its exit code."""
    # A command ends before garbage matters: looking for it while modules load, and once more when the
    # interpreter takes everything down, is a tenth of the time.
    gc.set_threshold(100_000)
    settings.use_one_thread()
    code = run(sys.argv[1:])
    gc.freeze()
    sys.exit(code)


def run(arguments: Sequence[str], program: Callable[..., Any] | None = None) -> int:
    """Run one command line; every failure becomes a message, advice and an exit code."""
    own = list(arguments[: arguments.index("--")] if "--" in arguments else arguments)
    try:
        code = _done(arguments, program)
        sys.stdout.flush()
    except OctavoError as error:
        name = type(error).__name__
        advice = ADVICE.get(name, error.advice) if error.advice == error.hint else error.advice
        return _failed(name, error.message, advice, error.exit_code, own)
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


def _done(arguments: Sequence[str], program: Callable[..., Any] | None) -> Any:
    line = None if program else cli_line.read(arguments)
    if line is not None:
        return cli_line.run(*line)
    program = program or cli_program.app(cli_program.meant(arguments))
    return program(args=list(arguments) or ["--help"], prog_name="octavo", standalone_mode=False)


def _unexpected(error: Exception, arguments: Sequence[str]) -> int:
    # typer carries its own copy of click, whose usage errors have no public class to catch.
    if hasattr(error, "format_message") and hasattr(error, "exit_code"):
        path = getattr(getattr(error, "ctx", None), "command_path", "octavo")
        advice = f"`{path} --help` shows what can be said"
        return _failed("BadInput", error.format_message(), advice, int(error.exit_code), arguments)
    if settings.is_debugging():
        sys.stderr.write("".join(traceback.format_exception(error)))
    message = f"{type(error).__name__}: {error}"
    advice = "this is a defect of Octavo; OCTAVO_DEBUG=1 shows where, please report it"
    return _failed(type(error).__name__, message, advice, 1, arguments)


def _failed(name: str, message: str, advice: str, code: int, arguments: Sequence[str]) -> int:
    if "--json" in arguments:
        fault = {"error": {"type": name, "message": message, "advice": advice, "exit_code": code}}
        print(plain.document(fault), file=sys.stderr)
    else:
        render.error(message, advice)
    return code


if __name__ == "__main__":
    main()
