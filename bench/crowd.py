"""Very many accounts on PostgreSQL, opened at random through the pool: what each costs, and what stays flat.

PostgreSQL is started for the run, on loopback, and ends with it.
"""

from __future__ import annotations

import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import psycopg

import octavo
from bench import harness
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import servers  # the tests' own


def make(url: str, number: int, cache: Path) -> None:
    """An account with one memory."""
    how = {"actor": "human:bench", "embedder": False, "cache": cache}
    with octavo.open(url, name_of(number), **how) as account:
        account.remember(f"บัญชี {number}: lives in house {number}", kind="register", topic="home")


def name_of(number: int) -> str:
    """The numbered account."""
    return f"user {number:06d}"


def standing() -> tuple[float, int]:
    """Memory of this process in MiB, and how many files it has open."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20, sum(1 for _ in Path("/proc/self/fd").iterdir())


def visit(bench: harness.Bench, url: str, accounts: int, cache: Path) -> None:
    """Read and write in accounts drawn at random, and see whether memory and open files stay as they are."""
    held, visits = (200, 4_000) if not bench.smoke else (4, 30)
    draw, opened, seen = random.Random(7), list[float](), list[tuple[float, int]]()
    with Pool(most=held) as pool, harness.progress("visits", visits) as step:
        for n in range(visits):
            who = Settings(
                root=url, account=name_of(draw.randrange(accounts)), actor="human:bench", cache=cache
            )
            before, begun = pool.counts["opened"], time.process_time()
            with pool.account(who, words=True) as account:
                if n % 4 == 0:
                    account.remember(f"visit {n}", kind="register", topic="visit")
                else:
                    assert account.memories(topic="home")
            if pool.counts["opened"] > before:
                opened.append(time.process_time() - begun)
            if n >= visits // 4:  # the pool is full by then
                seen.append(standing())
            step(1)
        bench.figure("accounts held", pool.counts["accounts"], "", at_most=held)
    tenth = max(1, len(seen) // 10)
    for place, (what, unit) in enumerate((("memory", "MiB"), ("open files", ""))):
        first = statistics.median(each[place] for each in seen[:tenth])
        last = statistics.median(each[place] for each in seen[-tenth:])
        bench.figure(f"{what}, once the pool is full", first, unit)
        bench.figure(f"{what} at the end / once the pool is full", last / first, "×", at_most=1.1)
    bench.figure("opening one of them and asking it", 1000 * statistics.median(opened), "ms of CPU")


def main(argv: Sequence[str] | None = None) -> None:
    """Make the accounts, visit them, and say what a million would take."""
    bench = harness.begin("crowd", "Very many accounts", argv)
    accounts = bench.pick(10_000, 12)
    with tempfile.TemporaryDirectory(prefix="octavo-crowd-") as temporary:
        folder = Path(temporary)
        folder.chmod(0o755)
        with servers.postgres(folder / "pg") as url:
            begun = time.process_time()
            with harness.progress("accounts", accounts) as step:
                for number in range(accounts):
                    make(url, number, folder / "made")
                    step(1)
            bench.figure("accounts made", len(octavo.accounts(url)), "", at_least=accounts)
            bench.figure(
                "making one with its first memory",
                1000 * (time.process_time() - begun) / accounts,
                "ms of CPU",
            )
            with psycopg.connect(url) as db:
                sql = (
                    "SELECT sum(pg_total_relation_size(oid)) FROM pg_class "
                    "WHERE relnamespace = 'octavo'::regnamespace AND relkind = 'r'"
                )
                kept = db.execute(sql).fetchone()
            assert kept is not None
            each = float(kept[0]) / accounts
            bench.figure("database, an account", each / 1000, "kB")
            bench.figure("database, a million accounts by arithmetic", each / 1000, "GB")
            visit(bench, url, accounts, folder / "cache")
    bench.note("An account holds one memory; a visit in four writes another. Words alone, no embedder.")
    bench.finish()


if __name__ == "__main__":
    main()
