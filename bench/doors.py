"""The doors: what a recall over REST costs beside the library's, 32 clients at once, many accounts held."""

from __future__ import annotations

import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import httpx2 as httpx

import octavo
from bench import harness
from bench.texts import Texts
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings, use_one_thread

_TITLE = "Doors"
_PATH = "/accounts/bench/memories/search"
_WARM = 10  # questions before anything is measured
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


def main(argv: Sequence[str] | None = None) -> None:
    """Recall by the library and by a server of its own process; clients at once; accounts held."""
    use_one_thread()  # as the server does: numpy's other threads spin, and would count for the library alone
    bench = harness.begin("doors", _TITLE, argv)
    # Accounts go first: a model that is loaded and let go would hide what they take.
    for part in (_accounts, _recalls):
        with tempfile.TemporaryDirectory() as folder:
            part(bench, Path(folder))
    bench.note(
        "CPU is of the whole process that answers: this one for the library, the server's own for REST. "
        "Both embed the question with the offline default and use one thread of numpy's, and take turns."
    )
    bench.finish()


def _recalls(bench: harness.Bench, root: Path) -> None:
    """The same questions by turns, so that a busy machine is as busy for both; the medians of the rounds."""
    texts = Texts(seed=1)
    size, times, rounds = bench.pick(2_000, 50), bench.pick(60, 10), bench.pick(5, 2)
    library, rest = [], []
    with octavo.open(root, "bench", actor="human:bench") as account:
        account.remember_many([{"text": texts.sentence()} for n in range(size)])
        account.catch_up()
        questions = [texts.sentence() for n in range(times)]
        with _served(root) as (pid, base), httpx.Client(base_url=base, timeout=300) as client:
            for question in questions[:_WARM]:
                account.recall(question, k=10)
                client.get(_PATH, params={"query": question, "k": 10}).raise_for_status()
            for _ in range(rounds):
                before = time.process_time()
                for question in questions:
                    account.recall(question, k=10)
                library.append(1_000 * (time.process_time() - before) / times)
                before = _cpu(pid)
                for question in questions:
                    client.get(_PATH, params={"query": question, "k": 10}).raise_for_status()
                rest.append(1_000 * (_cpu(pid) - before) / times)
            rate, p95 = _at_once(base, questions * rounds, bench.pick(32, 4))
            held = _resident(pid)
    added = [one - other for one, other in zip(rest, library, strict=True)]
    bench.figure(f"recall by the library, {size:,} facts", statistics.median(library), "ms CPU")
    bench.figure("recall over REST", statistics.median(rest), "ms CPU")
    bench.figure("what REST adds", statistics.median(added), "ms CPU", at_most=2.0)
    bench.figure("requests a second, 32 clients", rate, "/s")
    bench.figure("p95, 32 clients", p95, "ms")
    bench.figure("resident memory of the server", held / 1e6, "MB")


def _at_once(base: str, questions: Sequence[str], clients: int) -> tuple[float, float]:
    """Requests a second and the 95th percentile in milliseconds of clients that ask one after the other."""

    def ask(number: int) -> list[float]:
        waited = []
        with httpx.Client(base_url=base, timeout=300) as client:
            for question in questions[number % 7 :: 7]:
                began = time.perf_counter()
                client.get(_PATH, params={"query": question, "k": 10}).raise_for_status()
                waited.append(1_000 * (time.perf_counter() - began))
        return waited

    began = time.perf_counter()
    with ThreadPoolExecutor(clients) as threads:
        waited = [one for many in threads.map(ask, range(clients)) for one in many]
    return len(waited) / (time.perf_counter() - began), statistics.quantiles(waited, n=20)[-1]


def _accounts(bench: harness.Bench, root: Path) -> None:
    many, most = bench.pick(1_000, 8), bench.pick(100, 3)
    with Pool(most=most) as pool:
        names = [f"account-{n}" for n in range(many)]
        for name in names:
            octavo.open(root, name, embedder=False).close()
        before, began = _resident(os.getpid()), time.process_time()
        for name in names:
            with pool.account(Settings(root=root, account=name)) as account:
                account.memories(limit=1)
        spent = time.process_time() - began
        grown = _resident(os.getpid()) - before
        assert pool.counts["accounts"] == most
        files = len(list(Path(f"/proc/{os.getpid()}/fd").iterdir()))
    bench.figure(f"memory grown, {many:,} accounts touched, {most} held", grown / 1e6, "MB")
    bench.figure("files open then", files, "")
    bench.figure("opening one for a request", 1_000 * spent / many, "ms CPU")


@contextmanager
def _served(root: Path) -> Iterator[tuple[int, str]]:
    line = [sys.executable, "-m", "octavo", "serve", "--port", "0", "--root", str(root)]
    with subprocess.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        told = re.search(r"http://\S+", process.stderr.readline())
        assert told
        try:
            yield process.pid, told[0]
        finally:
            process.terminate()


def _cpu(pid: int) -> float:
    """The processor seconds that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident(pid: int) -> float:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * _PAGE


if __name__ == "__main__":
    resource.setrlimit(resource.RLIMIT_NOFILE, (4_096, resource.getrlimit(resource.RLIMIT_NOFILE)[1]))
    main()
