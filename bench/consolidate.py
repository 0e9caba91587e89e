"""Consolidating thirty episodes to acknowledgement, on accounts of three sizes."""

from __future__ import annotations

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import octavo
from bench import accounts, harness
from bench.texts import Texts
from octavo.domain.compression import CompressionPolicy
from octavo.domain.policy import Policy

_TITLE = "Consolidating 30 episodes"
_EPISODES = 30


def main(argv: Sequence[str] | None = None) -> None:
    """Consolidate on each account in turn; only the call to consolidate is timed."""
    bench = harness.begin("consolidate", _TITLE, argv)
    sizes = (20, 40) if bench.smoke else (1_000, 100_000, 1_000_000)
    rounds = bench.options.rounds or bench.pick(45, 2)
    roots = {size: _working_copy(bench, size) for size in sizes}
    opened = {size: _open(root) for size, root in roots.items()}
    texts = Texts(30)
    runs: dict[str, Callable[[], float | None]] = {
        f"{size:,}": partial(consolidate_once, account, texts) for size, account in opened.items()
    }
    samples = harness.interleaved(rounds, runs, what="consolidations")
    for account in opened.values():
        account.close()
    first, *_, last = samples
    each = [b / a for a, b in zip(samples[first], samples[last], strict=True)]
    ratio = harness.ratio(samples, last, first)
    bench.figure(f"on {last} memories / on {first}", ratio, "×", at_most=1.3, samples=each)
    for name, taken in samples.items():
        milliseconds = [s * 1e3 for s in taken]
        bench.figure(f"on {name} memories", statistics.median(milliseconds), "ms", samples=milliseconds)
    for size, root in list(roots.items())[-bench.pick(len(roots), 1) :]:
        bench.figure(f"resident memory, {size:,} memories", _resident(root) / 2**20, "MiB")
    bench.note(
        f"{rounds} interleaved rounds; each consolidation commits {_EPISODES} episodes of two turns. "
        "No cores are made meanwhile. Resident memory is that of a fresh process that opens the account and "
        "consolidates five times. "
        f"Building the account of {last} memories took {_built(bench, sizes[-1]):.0f} s."
    )
    bench.finish()


def consolidate_once(account: octavo.Account, texts: Texts) -> float:
    """Fill a sandbox, then the seconds its consolidation takes."""
    sandbox = account.sandbox("bench")
    for _ in range(_EPISODES):
        for speaker, text in texts.turns():
            sandbox.turn(speaker, text)
    began = time.perf_counter()
    sandbox.consolidate()
    return time.perf_counter() - began


def _open(root: Path) -> octavo.Account:
    """Without making cores: that runs behind the acknowledgement, and these accounts have thousands due."""
    policy = Policy(compression=CompressionPolicy(mode="manual"))
    return octavo.open(root, accounts.NAME, policy=policy, embedder=False)


def resident_after(root: Path) -> int:
    """What a process holds after some consolidations."""
    with _open(root) as account:
        texts = Texts(5)
        for _ in range(5):
            consolidate_once(account, texts)
        return harness.resident_bytes()


def _resident(root: Path) -> int:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return int(pool.apply(resident_after, (root,)))


def _working_copy(bench: harness.Bench, size: int) -> Path:
    return accounts.working_copy(accounts.account(bench.cache, size), bench.cache / f"consolidate-{size}")


def _built(bench: harness.Bench, size: int) -> float:
    return accounts.building_seconds(accounts.account(bench.cache, size))


if __name__ == "__main__":
    main()
