"""How long a command takes from nothing, in fresh processes, against a bare interpreter."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial

import octavo
from bench import harness
from bench.texts import Texts

_TITLE = "Starting up"
_CLI = [sys.executable, "-c", "from octavo.doors.cli import main; main()"]


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
            "octavo --help": [*_CLI, "--help"],
            "octavo memories": [*_CLI, *at, "memories", "--limit", "5"],
            "octavo recall --words": [*_CLI, *at, "recall", "coffee in the garden", "--words"],
            "octavo recall, with the model": [*_CLI, *at, "recall", "coffee in the garden"],
        }
        wished = {"octavo --help": 200.0, "octavo memories": 300.0, "octavo recall --words": 300.0}
        known = {name: command for name, command in commands.items() if _works(command)}
        runs: dict[str, Callable[[], float | None]] = {
            name: partial(_run, command) for name, command in known.items()
        }
        samples = harness.interleaved(rounds, runs, what="commands")
    for name, taken in samples.items():
        milliseconds = [s * 1e3 for s in taken]
        bench.figure(
            name, statistics.median(milliseconds), "ms", at_most=wished.get(name), samples=milliseconds
        )
    missing = [name for name in commands if name not in known]
    bench.note(
        f"{rounds} fresh processes each, on an account of 200 memories."
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
    environment = _plain()
    began = time.perf_counter()
    subprocess.run(command, capture_output=True, check=True, env=environment)
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
