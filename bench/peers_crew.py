"""A peer's worker as seen from the run that times it: calls over a line, a kill, a cold start, its bytes."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from bench.peers_data import Document
from bench.peers_worker import serve

_PATIENCE = 600.0


class PeerFailed(RuntimeError):
    """A peer raised an error, died or did not answer."""


class Worker:
    """One peer in its own process; every call waits for its answer, so only one works at a time."""

    def __init__(self, name: str, folder: Path, known: Path, *, synthetic: bool) -> None:
        self.name, self.folder = name, folder
        spawn = multiprocessing.get_context("spawn")
        self._line, theirs = spawn.Pipe()
        arguments = (name, folder, known, synthetic, theirs)
        self._process = spawn.Process(target=serve, args=arguments, daemon=True)
        self._process.start()
        theirs.close()
        self._answer()

    def call(self, verb: str, *arguments: Any) -> Any:
        """Do one thing and return what it gave."""
        self._line.send((verb, arguments))
        return self._answer()

    def add(self, documents: Sequence[Document]) -> float:
        """Write documents; the seconds it took, embedding excluded."""
        return float(self.call("add", list(documents)))

    def load(self, documents: Sequence[Document]) -> float:
        """Write many documents the way the peer likes best; the seconds, embedding excluded."""
        return float(self.call("load", list(documents)))

    def ready(self) -> float:
        """Let the peer finish its index; the seconds it took, embedding excluded."""
        return float(self.call("ready"))

    def find(self, question: str, k: int) -> list[str]:
        """The ids of the best documents."""
        return list(self.call("find", question, k))

    def ask(self, question: str, k: int) -> tuple[float, float]:
        """Milliseconds of one query: on the wall, of the processor."""
        wall, cpu = self.call("ask", question, k)
        return float(wall), float(cpu)

    def close(self) -> None:
        """End the peer in order."""
        self.call("close")
        self._process.join(_PATIENCE)

    def kill(self) -> None:
        """End the process by SIGKILL, now."""
        self._process.kill()
        self._process.join(_PATIENCE)

    def _answer(self) -> Any:
        try:
            if not self._line.poll(_PATIENCE):
                self.kill()
                raise PeerFailed(f"no answer in {_PATIENCE:.0f} s")
            outcome, value = self._line.recv()
        except EOFError as error:
            raise PeerFailed("its process ended") from error
        if outcome == "failed":
            raise PeerFailed(str(value))
        return value


def cold_start(name: str, folder: Path, known: Path, question: str) -> float:
    """Seconds from starting a fresh interpreter to its first answer."""
    ours, theirs = os.pipe()  # libraries print what they like, so the answer has a line of its own
    arguments = [name, str(folder), str(known), question, str(theirs)]
    command = [sys.executable, "-m", "bench.peers_worker", *arguments]
    began = time.perf_counter()
    with subprocess.Popen(
        command, pass_fds=(theirs,), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as started:
        os.close(theirs)
        answered = os.read(ours, 16)
        took = time.perf_counter() - began
        os.close(ours)
        _, noise = started.communicate(timeout=_PATIENCE)
    if not answered:
        raise PeerFailed(noise.decode().strip().splitlines()[-1])
    return took


def bytes_of(folder: Path) -> int:
    """Bytes of all files below a folder."""
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
