"""The mirror of ten thousand memories: what one commit costs it, and a sync that finds nothing."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import octavo
from bench import harness
from octavo.domain.buffer import Wrote
from octavo.domain.memory import Memory
from octavo.domain.policy import MirrorPolicy, Policy
from octavo.engine.account import Account
from octavo.engine.mirror import Mirror

_TITLE = "The mirror of an account"
_FOLLOWED = Policy(mirror=MirrorPolicy(mode="manual"))
_AT = datetime(2026, 5, 4, 9, 0, tzinfo=UTC)


def main(argv: Sequence[str] | None = None) -> None:
    """Show an account, change one fact at a time, and sync without a change."""
    bench = harness.begin("mirror", _TITLE, argv)
    size, rounds = bench.pick(10_000, 40), bench.options.rounds or bench.pick(30, 2)
    with (
        tempfile.TemporaryDirectory() as folder,
        octavo.open(Path(folder), "nok", actor="human:nok", embedder=False, policy=_FOLLOWED) as account,
    ):
        facts = [
            Wrote(memory=Memory(id=f"m{n}", kind="fact", text=_text(n), category=f"page{n % 4}", at=_AT))
            for n in range(size)
        ]
        account.intake.write_many(facts, cause="import", skip=frozenset({"duplicate"}))
        bench.figure("the first time", _seconds(account.mirror), "s")
        _measure(bench, account, size, rounds)
    bench.note(
        f"{size:,} facts on four pages of up to 1,000 blocks a file. A commit is one changed, new or ended "
        "fact, timed from the commit's end to the files on disk, synced; times are of the processor."
    )
    bench.finish()


def _measure(bench: harness.Bench, account: Account, size: int, rounds: int) -> None:
    tree = Mirror(account._spine)
    taken: dict[str, list[float]] = {"changed": [], "new": [], "ended": []}
    most = 0
    for n in range(rounds):
        for name, samples in taken.items():
            if name == "changed":
                account.revise(f"m{4 * n + 1}", text=f"tile {n} is lava now, seen {n * 7919} times")
            elif name == "new":
                account.remember(f"door {n * 7919} of the tower is {n * 31} steps up", category="page1")
            else:
                account.forget(f"m{4 * n + 2}")
            account.wait(30)
            before = {p: p.stat().st_mtime_ns for p in tree.folder.rglob("*") if p.is_file()}
            samples.append(1e3 * _seconds(tree.follow))
            after = {p: p.stat().st_mtime_ns for p in tree.folder.rglob("*") if p.is_file()}
            changed = [p for p in after if before.get(p) != after[p] and ".octavo" not in p.parts]
            most = max(most, len(changed))
    for name, samples in taken.items():
        bench.figure(f"one fact {name}", statistics.median(samples), "ms", at_most=20, samples=samples)
    bench.figure("files that one commit rewrites, at most", most, "", at_most=2)
    looks = [_seconds(account.sync) for _ in range(rounds)]
    bench.figure("a sync without changes", statistics.median(looks), "s", at_most=0.5, samples=looks)


def _seconds(act: Callable[[], object]) -> float:
    began = time.process_time()
    act()
    return time.process_time() - began


def _text(n: int) -> str:
    return f"tile {n} of the grid is {n * 7919 % 10007}"


if __name__ == "__main__":
    main()
