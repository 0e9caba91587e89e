"""Commits a second on each store, beside a bare write of as many bytes in the same run; and cold opens.

PostgreSQL and SeaweedFS are started for the run, on loopback, and end with it.
"""

from __future__ import annotations

import secrets
import shutil
import statistics
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import octavo
from bench import harness
from octavo.domain.compression import CompressionPolicy
from octavo.engine.spine import identify
from octavo.storage.ledger import GENESIS, Ledger, key_of
from octavo.storage.stores.disk import Disk
from octavo.storage.stores.local import LocalStore
from octavo.storage.stores.names import folder_of
from octavo.storage.stores.places import place_of
from octavo.testing import CountingStore, open_on
from octavo.testing.stores import draft

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import servers  # the tests' own

BY_HAND = octavo.Policy(compression=CompressionPolicy(mode="manual"))
SHAPES = {"1 writer": (1, 1), "8 writers, 8 accounts": (8, 8), "8 writers, 1 account": (8, 1)}


def opened(root: str, account: str, cache: Path) -> octavo.Account:
    return octavo.open(root, account, actor="human:bench", policy=BY_HAND, embedder=False, cache=cache)


def episode(number: int) -> str:
    return f"I watered pot {number} in the garden this morning, and the orchid has a new leaf."


def commits(root: str, writers: int, accounts: int, seconds: float, cache: Path) -> list[float]:
    """How long each commit of one memory took, by writers who have a handle each."""
    run = secrets.token_hex(4)
    handles = [opened(root, f"bench {run} {n % accounts}", cache) for n in range(writers)]

    def write(number: int, n: int) -> None:
        handles[number].remember(episode(n), kind="register", topic=f"pot {number} {n}")

    try:
        return timed(write, writers, seconds)
    finally:
        for handle in handles:
            handle.close()


def bare(root: str, writers: int, accounts: int, seconds: float) -> list[float]:
    """How long a create of as many bytes takes, without an engine."""
    run, data = secrets.token_hex(4), secrets.token_bytes(900)
    stores = [place_of(root).open(f"bare {run} {n % accounts}") for n in range(writers)]

    def write(number: int, n: int) -> None:
        stores[number].create(key_of(number * 1_000_000 + n + 1), data)

    return timed(write, writers, seconds)


def timed(write: Callable[[int, int], None], writers: int, seconds: float) -> list[float]:
    taken: list[float] = []
    end = time.perf_counter() + seconds

    def work(number: int) -> None:
        n, begun = 0, time.perf_counter()
        while n == 0 or begun < end:
            write(number, n)
            taken.append(-begun + (begun := time.perf_counter()))
            n += 1

    threads = [threading.Thread(target=work, args=(n,)) for n in range(writers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return taken


def cold(bench: harness.Bench, folder: Path, versions: int) -> None:
    """What opening a long history costs a machine that has nothing of it, before and after upkeep."""
    account = folder / folder_of("cold")
    store = LocalStore(account, disk=Unsynced())
    identify(store, "cold", datetime.now(UTC))
    ledger, hash_, at = Ledger(store), GENESIS, None
    for parent in range(versions):
        text = f"day {parent}: the reading was {parent * 7 % 1013}"
        written = ledger.commit(*draft(text, parent=parent), hash_, at)
        assert written is not None
        hash_, at = written.hash, written.header.at
    plain = opening(str(folder), "cold", versions)
    with opened(str(folder), "cold", folder) as handle:
        begun = time.process_time()
        handle.upkeep()
        bench.figure(f"upkeep of {versions:,} versions", time.process_time() - begun, "s of CPU")
    packed = statistics.median(opening(str(folder), "cold", versions) for _ in range(3))
    bench.figure(f"cold open of {versions:,} versions, by replay", plain, "s of CPU")
    target = 0.5 if versions == 10_000 else None
    bench.figure(f"cold open of {versions:,} versions, from a checkpoint", packed, "s of CPU", at_most=target)
    entries = sum(1 for path in account.rglob("*") if path.is_file() and "index" not in path.parts)
    bench.figure(
        f"entries of {versions:,} versions", entries, "", at_most=1100 if versions > 50_000 else None
    )


class Unsynced(Disk):
    """A disk for building, which is no part of any figure."""

    def sync(self, fd: int) -> None:
        """Not now."""

    def sync_folder(self, folder: Path) -> None:
        """Not now."""


def opening(root: str, account: str, versions: int) -> float:
    """The processor time of opening an account of which nothing derived is there."""
    shutil.rmtree(Path(root) / folder_of(account) / "index", ignore_errors=True)
    begun = time.process_time()
    with opened(root, account, Path(root)) as handle:
        assert handle.version == versions
        return time.process_time() - begun


def calls_a_commit(root: str, folder: Path) -> int:
    """How many things one commit asks of its store, alone."""
    store = CountingStore(place_of(root).open(f"counted {secrets.token_hex(4)}"))
    with open_on(store, folder) as account:
        account.remember(episode(0), kind="register", topic="first")
        store.asked.clear()
        account.remember(episode(1), kind="register", topic="second")
        return sum(store.asked.values())


@contextmanager
def places(folder: Path) -> Iterator[dict[str, str]]:
    """The three stores, each where it is."""
    with servers.postgres(folder / "pg") as postgres, servers.seaweed(folder / "s3") as objects:
        yield {"local": str(folder / "data"), "PostgreSQL": postgres, "SeaweedFS": objects}


def measure(bench: harness.Bench, roots: dict[str, str], folder: Path) -> None:
    """Commits and bare writes of every shape on every store, in turn, round after round."""
    rounds, seconds = bench.options.rounds or bench.pick(3, 1), bench.pick(40, 1) / 10
    rates: dict[tuple[str, str], list[float]] = {}
    taken: dict[tuple[str, str, str], list[float]] = {}
    for _ in range(rounds):
        for shape, (writers, accounts) in SHAPES.items():
            for store, root in roots.items():
                plain = bare(root, writers, accounts, seconds / 2)
                durable = commits(root, writers, accounts, seconds, folder / "cache")
                taken.setdefault((store, shape, "a bare write"), []).extend(plain)
                taken.setdefault((store, shape, "a commit"), []).extend(durable)
                rates.setdefault((store, shape), []).append(len(durable) / seconds)
    for (store, shape), samples in rates.items():
        least = 50.0 if (store, shape) == ("PostgreSQL", "8 writers, 1 account") else None
        bench.figure(f"{store}, {shape}: commits", statistics.median(samples), "a second", at_least=least)
    for (store, shape, what), samples in taken.items():
        for percent in (50, 95):
            value = 1000 * harness.percentile(samples, percent)
            bench.figure(f"{store}, {shape}: {what}, p{percent}", value, "ms")
    many = "8 writers, 8 accounts"
    ratios = [a / b for a, b in zip(rates["PostgreSQL", many], rates["local", many], strict=True)]
    bench.figure(f"PostgreSQL / local, {many}", statistics.median(ratios), "×", at_least=0.8)


def main(argv: Sequence[str] | None = None) -> None:
    """Start the servers, measure, and end them."""
    bench = harness.begin("stores", "Commits on each store", argv)
    with tempfile.TemporaryDirectory(prefix="octavo-bench-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        with places(folder) as roots:
            measure(bench, roots, folder)
            for store, root in roots.items():
                calls = calls_a_commit(root, folder / store)
                bench.figure(f"{store}: store calls a commit, alone", calls, "", at_most=3)
        for versions in (10_000, 100_000) if not bench.smoke else (20,):
            cold(bench, folder / f"cold {versions}", versions)
    bench.note("A commit is one memory through gate, rules, ledger and state; every store syncs.")
    bench.finish()


if __name__ == "__main__":
    main()
