"""Opening an account whose state is current, in fresh processes, imports excluded."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import octavo
from bench import accounts, harness

_TITLE = "Opening an account"


def main(argv: Sequence[str] | None = None) -> None:
    """Open accounts of two sizes, to write and to read, each time in a process of its own."""
    bench = harness.begin("opening", _TITLE, argv)
    sizes = (20, 60) if bench.smoke else (1_000, 1_000_000)
    rounds = bench.options.rounds or bench.pick(15, 1)
    roots = {size: accounts.account(bench.cache, size) for size in sizes}
    context = multiprocessing.get_context("spawn")

    def fresh(root: Path, read_only: bool) -> float:
        with context.Pool(1) as pool:
            return float(pool.apply(opening_seconds, (root, read_only)))

    runs: dict[str, Callable[[], float | None]] = {
        f"{size:,} memories, to {'read' if read_only else 'write'}": partial(fresh, root, read_only)
        for size, root in roots.items()
        for read_only in ((True,) if bench.smoke else (False, True))
    }
    samples = harness.interleaved(rounds, runs, what="openings")
    for name, taken in samples.items():
        milliseconds = [s * 1e3 for s in taken]
        wished = 50 if name.startswith(f"{sizes[-1]:,}") else None
        bench.figure(name, statistics.median(milliseconds), "ms", at_most=wished, samples=milliseconds)
    bench.note(
        f"{rounds} fresh processes each; the time of `octavo.open` and of reading version and counts, after "
        "`import octavo`, with the files in the operating system's cache."
    )
    bench.finish()


def opening_seconds(root: Path, read_only: bool) -> float:
    """The seconds from a folder's name to the account's version and counts."""
    open_ = octavo.open  # looking the name up imports what it needs
    began = time.perf_counter()
    account = open_(root, accounts.NAME, read_only=read_only)
    account.stats()
    took = time.perf_counter() - began
    account.close()
    return took


if __name__ == "__main__":
    main()
