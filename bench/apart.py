"""A network cut between a machine and its store: whether two ever own one sandbox, and what is lost.

Machines are network namespaces, each with a cable of its own to PostgreSQL (root, and Debian's iproute2).
A cable that is pulled says nothing to either end, as a real one: no connection is refused or reset.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import octavo
from bench import harness

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
import places  # the tests' own
import servers

_TURNS = 5  # that each owner says before and after


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words], check=True)


class Machine:
    """A network namespace with one cable to the server, whose end there has the address `server`."""

    def __init__(self, number: int) -> None:
        self.name = f"octavo-{os.getpid()}-{number}"
        self._cable, third = f"oct{os.getpid() % 100_000}-{number}", os.getpid() % 250 + 1
        self.server, self._own = (f"10.213.{third}.{4 * number + n}" for n in (1, 2))

    def start(self) -> None:
        """Make the machine and plug it in."""
        ip("netns", "add", self.name)
        ip("link", "add", self._cable, "type", "veth", "peer", "name", "eth0", "netns", self.name)
        ip("addr", "add", f"{self.server}/30", "dev", self._cable)
        ip("-n", self.name, "addr", "add", f"{self._own}/30", "dev", "eth0")
        ip("-n", self.name, "link", "set", "lo", "up")
        ip("-n", self.name, "link", "set", "eth0", "up")
        self.plug(True)

    def plug(self, is_in: bool) -> None:
        """Plug the cable in, or pull it."""
        ip("link", "set", self._cable, "up" if is_in else "down")

    def end(self) -> None:
        """Take the machine away, its cable with it."""
        ip("netns", "del", self.name)

    def run(self, url: str, account: str, cache: Path, part: str) -> Owner:
        """Run a part of the tests' own on this machine."""
        place = url.replace("127.0.0.1", self.server)
        command = [sys.executable, places.__file__, place, account, cache / self.name, part, _TURNS]
        return Owner(["ip", "netns", "exec", self.name, *map(str, command)])


class Owner:
    """A process that talks in a sandbox, and tells each turn as soon as it is acknowledged."""

    def __init__(self, command: Sequence[str]) -> None:
        self.said: list[tuple[float, str]] = []
        self.ended = 0.0
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said.append((time.monotonic(), json.loads(line)))
        self.ended = time.monotonic()

    def wait_for(self, turns: int, seconds: float = 120) -> None:
        """Wait until so many turns were acknowledged."""
        deadline = time.monotonic() + seconds
        while len(self.said) < turns:
            assert time.monotonic() < deadline, f"{len(self.said)} of {turns} turns were acknowledged"
            time.sleep(0.02)

    def end(self, seconds: float = 120) -> str:
        """Wait until it has ended; what it complained of."""
        assert self.process.stderr is not None
        self.process.wait(seconds)
        self._reader.join()
        return self.process.stderr.read()


@contextmanager
def machines(count: int) -> Iterator[list[Machine]]:
    """So many machines beside the server."""
    with ExitStack() as stack:
        made = [Machine(number) for number in range(count)]
        for machine in made:
            machine.start()
            stack.callback(machine.end)
        yield made


def cut(
    url: str, account: str, cache: Path, one: Machine, two: Machine, *, stays_out: bool
) -> dict[str, float]:
    """Pull the owner's cable, let the other machine follow, and see what there is at the end.

    The cable is plugged in again while the other talks, or stays out until the owner has given up.
    """
    owner = one.run(url, account, cache, "talk")
    owner.wait_for(_TURNS)
    one.plug(False)
    pulled = time.monotonic()
    heir = two.run(url, account, cache, "follow")
    heir.wait_for(_TURNS)
    told = owner.end(300) if stays_out else ""
    one.plug(True)
    since, told = pulled if stays_out else time.monotonic(), told or owner.end()
    assert "LeaseLost" in told or "Unavailable" in told, told[-3000:]
    assert heir.end() == ""
    with octavo.open(url, account, embedder=False, cache=cache / "third") as third:
        there = [turn.text for memory in third.memories(kind="episode") for turn in memory.turns]
        problems = len(third.check().problems)
    first = [text for _, text in owner.said]
    second = [text for _, text in heir.said]
    begun = there.index(second[0])
    return {
        "acknowledged": len(first) + len(second),
        "lost": sum(text not in there for text in (*first, *second)),
        "two": sum(text not in second for text in there[begun:]) + len(there) - len(set(there)),
        "problems": problems,
        "followed": heir.said[0][0] - pulled,
        "knew": max(0.0, owner.ended - since),
    }


def main(argv: Sequence[str] | None = None) -> None:
    """Cut one machine after the other off from its store."""
    bench = harness.begin("apart", "A machine cut off from its store", argv)
    rounds = bench.options.rounds or bench.pick(6, 1)
    outs = [number % 3 == 2 for number in range(rounds)]
    with (
        tempfile.TemporaryDirectory(prefix="octavo-apart-") as temporary,
        machines(2) as (one, two),
        harness.progress("cuts", rounds) as step,
    ):
        folder = Path(temporary)
        folder.chmod(0o755)
        with servers.postgres(folder / "pg", also=(one.server, two.server)) as url:
            seen = []
            for number in range(rounds):
                pair = (one, two) if number % 2 == 0 else (two, one)
                name, stays_out = f"ผู้ใช้ {number}", outs[number]
                seen.append(cut(url, name, folder / "cache", *pair, stays_out=stays_out))
                step(1)
    bench.figure("times a cable was pulled", rounds, "")
    bench.figure("turns acknowledged", sum(each["acknowledged"] for each in seen), "")
    bench.figure("acknowledged and lost", sum(each["lost"] for each in seen), "", at_most=0)
    bench.figure("turns of an owner that was followed", sum(each["two"] for each in seen), "", at_most=0)
    bench.figure("problems found by check", sum(each["problems"] for each in seen), "", at_most=0)
    bench.figure("until the other machine went on, longest", max(each["followed"] for each in seen), "s")
    for what, is_out in (("knew, once its cable was back", False), ("gave up, its cable out", True)):
        if waits := [each["knew"] for each, out in zip(seen, outs, strict=True) if out == is_out]:
            bench.figure(f"until the first machine {what}, longest", max(waits), "s")
    bench.note("A lease of one second; turns are said until the cable is pulled, and by the heir after it.")
    bench.finish()


if __name__ == "__main__":
    main()
