"""What a command costs from nothing, in fresh processes, beside another tool's help: processor time."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial

import octavo
from bench import harness
from bench.texts import Texts

_TITLE = "Starting up"
_CLI = [sys.executable, "-c", "from octavo.doors.cli import main; main()"]
_BESIDE = "sqlite-utils --help"  # a tool of the same kind, which people find quick enough
_TIMES = 1.5


def main(argv: Sequence[str] | None = None) -> None:
    """Run each command in turn, round after round."""
    bench = harness.begin("startup", _TITLE, argv)
    rounds = bench.options.rounds or bench.pick(15, 1)
    with tempfile.TemporaryDirectory() as root:
        _small_account(root)
        at = ["--root", root, "--account", "bench"]
        commands = {
            "a bare interpreter": [sys.executable, "-c", "pass"],
            "import octavo": [sys.executable, "-c", "import octavo"],
            _BESIDE: [sys.executable, "-c", "from sqlite_utils.cli import cli; cli()", "--help"],
            "octavo --help": [*_CLI, "--help"],
            "octavo memories": [*_CLI, *at, "memories", "--limit", "5"],
            "octavo recall --words": [*_CLI, *at, "recall", "coffee in the garden", "--words"],
            "octavo recall, with the model": [*_CLI, *at, "recall", "coffee in the garden"],
        }
        known = {name: command for name, command in commands.items() if _works(command)}
        runs: dict[str, Callable[[], float | None]] = {
            name: partial(_run, command) for name, command in known.items()
        }
        samples = harness.interleaved(rounds, runs, what="commands")
    medians = {name: statistics.median(taken) for name, taken in samples.items()}
    for name, taken in samples.items():
        bench.figure(name, medians[name] * 1e3, "ms", samples=[seconds * 1e3 for seconds in taken])
    for name in ("octavo --help", "octavo memories") if _BESIDE in medians else ():
        bench.figure(f"{name} / {_BESIDE}", medians[name] / medians[_BESIDE], "×", at_most=_TIMES)
    missing = [name for name in commands if name not in known]
    bench.note(
        f"{rounds} fresh processes each, on an account of 200 memories; user and system time."
        + (f" Not there yet: {', '.join(missing)}." if missing else "")
    )
    bench.finish()


def _small_account(root: str) -> None:
    texts = Texts(2)
    with octavo.open(root, "bench") as account:
        account.remember_many({"text": texts.sentence(), "kind": "episode"} for _ in range(200))


def _works(command: Sequence[str]) -> bool:
    return subprocess.run(command, capture_output=True, check=False, env=_plain()).returncode == 0


def _plain() -> dict[str, str]:
    """The environment of a user, whose modules are compiled once and kept."""
    return {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}


def _run(command: Sequence[str]) -> float:
    """The processor time of one process; how long it waited for a busy machine is no matter."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_plain())
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


if __name__ == "__main__":
    main()
