"""Many processes on one account: versions without a gap, nothing acknowledged is lost, nobody starves."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

import octavo
from octavo.domain import rules
from octavo.domain.compression import CompressionPolicy
from octavo.errors import SandboxBusy
from octavo.storage.stores.local import LocalStore
from octavo.testing import UnlockedStore, open_on

PROCESSES = 8
EACH = 50


class Crowd:
    """Processes that run one of the parts below, each told its number, and what they say at the end."""

    def __init__(self, root: Path, *parts: str) -> None:
        self.root = root
        command = [sys.executable, __file__, str(root)]
        self.running = [
            subprocess.Popen([*command, part, str(n)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            for n, part in enumerate(parts)
        ]

    def told(self) -> list[list]:
        (self.root / "go").touch()
        try:
            outputs = [process.communicate(timeout=120) for process in self.running]
        finally:
            for process in self.running:
                process.kill()
                process.communicate()
        for process, (_, error) in zip(self.running, outputs, strict=True):
            assert process.returncode == 0, error.decode()[-3000:]
        return [json.loads(out) for out, _ in outputs]


# Cores would be versions of their own; here every version is counted.
BY_HAND = octavo.Policy(compression=CompressionPolicy(mode="manual"))


def opened(root: Path, *, locked: bool) -> octavo.Account:
    if locked:
        return octavo.open(root, policy=BY_HAND)
    return open_on(UnlockedStore(LocalStore(root / "default")), root / "default" / "index", policy=BY_HAND)


def wait_for_the_start(root: Path) -> None:
    while not (root / "go").exists():
        time.sleep(0.001)


def consolidating(root: Path, number: int, *, locked: bool = True) -> list:
    """Fifty sandboxes: two turns, and a register that everybody writes."""
    acknowledged = []
    with opened(root, locked=locked) as account:
        wait_for_the_start(root)
        for n in range(EACH):
            with account.sandbox(f"{number}.{n}") as sandbox:
                sandbox.turn("user", f"คำที่ {number}.{n}")
                sandbox.turn("assistant", "ค่ะ")
                sandbox.remember(f"at {number}.{n}", kind="register", topic=f"place {n % 4}")
            acknowledged.append([sandbox.result.version, sandbox.result.added, f"at {number}.{n}"])
    return acknowledged


def remembering(root: Path, number: int, *, locked: bool = True) -> list:
    """Fifty registers written outside sandboxes."""
    acknowledged = []
    with opened(root, locked=locked) as account:
        wait_for_the_start(root)
        for n in range(EACH):
            text = f"อยู่ที่ {number}.{n}"
            memory = account.remember(text, kind="register", topic=f"place {n % 4}").or_raise()
            acknowledged.append([None, [memory.id], text])
    return acknowledged


def slow(root: Path, number: int) -> list:
    """One consolidation whose rules take a tenth of a second, beside writers that take a few milliseconds."""
    quick = rules.consolidate

    def dawdling(*args, **more):
        time.sleep(0.1)
        return quick(*args, **more)

    waits = []
    with opened(root, locked=True) as account:
        wait_for_the_start(root)
        while account.version < 10 and not (root / "stop").exists():
            time.sleep(0.001)
        for n in range(3):
            sandbox = account.sandbox(f"slow {n}")
            sandbox.turn("user", f"ช้า ๆ {n}")
            before = account.version
            rules.consolidate = dawdling
            waits.append(sandbox.consolidate().version - before - 1)
            rules.consolidate = quick
    (root / "stop").touch()
    return waits


def fast(root: Path, number: int) -> list:
    """Commits as quickly as it can until the slow one is through."""
    n = 0
    with opened(root, locked=True) as account:
        wait_for_the_start(root)
        try:
            while not (root / "stop").exists() and n < 2000:
                n += 1
                account.remember(f"เร็ว {number}.{n}", kind="register", topic=f"place {number}")
        finally:
            (root / "stop").touch()
    return [n]


PARTS = {
    "consolidating": consolidating,
    "remembering": remembering,
    "consolidating without lock": lambda root, n: consolidating(root, n, locked=False),
    "remembering without lock": lambda root, n: remembering(root, n, locked=False),
    "slow": slow,
    "fast": fast,
}


def check_nothing_is_lost(root: Path, acknowledged: list[list]) -> None:
    with octavo.open(root) as account:
        total = PROCESSES * EACH
        assert account.version == total
        assert [c.version for c in account.versions()] == list(range(1, total + 1))
        report = account.check()
        assert report, report.problems
        assert report.versions == total
        known = {ids[0] for _, ids, _ in acknowledged}
        begun = {id_: account.history(id_)[0].version for id_ in known}
        for version, ids, _ in acknowledged:
            assert version in (None, begun[ids[0]])
        check_registers(account, acknowledged)


def check_registers(account: octavo.Account, acknowledged: list[list]) -> None:
    """Every write of a register is a revision, in the order of the commits, without a gap."""
    written = Counter()
    for place in account.memories(kind="register"):
        history = account.history(place.id)
        assert [r.memory.rev for r in history] == list(range(1, len(history) + 1))
        assert [r.version for r in history] == sorted(r.version for r in history)
        assert history[-1].memory == place
        written.update(r.memory.text for r in history)
    assert written == Counter(text for _, _, text in acknowledged)


@pytest.mark.slow
@pytest.mark.parametrize("part", ["consolidating", "consolidating without lock"])
def test_eight_processes_consolidate_fifty_times_each_and_nothing_is_lost(part, tmp_path):
    acknowledged = [one for told in Crowd(tmp_path, *[part] * PROCESSES).told() for one in told]
    versions = sorted(version for version, _, _ in acknowledged)
    assert versions == list(range(1, PROCESSES * EACH + 1))
    check_nothing_is_lost(tmp_path, acknowledged)
    with octavo.open(tmp_path) as account:
        assert [s.ordinal for s in account.sessions()] == versions
        assert account.stats().episodes == PROCESSES * EACH
        assert account.sandboxes() == []


@pytest.mark.slow
@pytest.mark.parametrize("part", ["remembering", "remembering without lock"])
def test_eight_processes_remember_fifty_times_each_and_nothing_is_lost(part, tmp_path):
    acknowledged = [one for told in Crowd(tmp_path, *[part] * PROCESSES).told() for one in told]
    check_nothing_is_lost(tmp_path, acknowledged)


@pytest.mark.slow
def test_a_slow_consolidation_beside_four_fast_writers_is_not_starved(tmp_path):
    waits, *fast_ones = Crowd(tmp_path, "slow", *["fast"] * 4).told()
    assert all(n for [n] in fast_ones)
    assert max(waits) < 100, f"{waits} others committed before it"
    with octavo.open(tmp_path) as account:
        assert account.check()


def test_two_processes_on_one_sandbox_one_is_told_it_is_busy_and_nothing_is_lost(tmp_path):
    with octavo.open(tmp_path) as account:
        sandbox = account.sandbox("ของฉัน")
        sandbox.turn("user", "before")
        script = (
            "import sys, octavo\n"
            "try: octavo.open(sys.argv[1]).resume(sys.argv[2])\n"
            "except octavo.errors.SandboxBusy as busy: sys.exit(busy.exit_code)"
        )
        other = [sys.executable, "-c", script, str(tmp_path), sandbox.id]
        assert subprocess.run(other, check=False, timeout=60).returncode == SandboxBusy.exit_code
        sandbox.turn("assistant", "หลัง")
        sandbox.close()
        assert subprocess.run(other, check=False, timeout=60).returncode == 0
        result = account.resume(sandbox.id).consolidate()
        assert [t.text for t in account.get(result.added[0]).turns] == ["before", "หลัง"]


def test_a_sandbox_whose_owner_was_killed_can_be_taken_up(tmp_path):
    script = (
        "import os, sys, octavo\n"
        "sandbox = octavo.open(sys.argv[1]).sandbox()\n"
        "sandbox.turn('user', 'อยู่ไหม')\n"
        "print(sandbox.id, flush=True)\n"
        "os.kill(os.getpid(), 9)"
    )
    told = subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False, capture_output=True)
    with octavo.open(tmp_path) as account:
        result = account.resume(told.stdout.decode().strip()).consolidate()
        assert len(result.added) == 1


if __name__ == "__main__":
    print(json.dumps(PARTS[sys.argv[2]](Path(sys.argv[1]), int(sys.argv[3]))))


def test_a_check_beside_a_writer_finds_nothing_wrong(tmp_path):
    with octavo.open(tmp_path, actor="human:ann") as account, octavo.open(tmp_path) as other:
        account.remember("the first memory of all")
        stop = threading.Event()

        def write() -> None:
            number = 0
            while not stop.is_set():
                number += 1
                other.remember(f"entry {number}", kind="register", topic="log")

        writer = threading.Thread(target=write)
        writer.start()
        try:
            reports = [account.check()]
            while account.version < 20:
                reports.append(account.check())
        finally:
            stop.set()
            writer.join()
        assert [report.problems for report in reports if report.problems] == []


def test_a_second_handle_takes_no_locks_from_the_first(opened, root):
    first = opened()
    first.remember("the kettle whistles at noon")
    (state,) = root.rglob("state.db")

    def locks() -> list[list[str]]:
        lines = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        ours = [line for line in lines if str(os.getpid()) in line]
        return [line[1:] for line in ours if any(part.endswith(f":{state.stat().st_ino}") for part in line)]

    assert first.wait(60)  # whoever reads in the background holds one more for a moment
    before = locks()
    opened("agent:bot")
    assert before
    assert locks() == before
