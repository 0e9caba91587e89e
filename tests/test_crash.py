"""Stopped at every call, cut off from power, killed at random: the account is at N or N+1, and whole."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

import octavo
from octavo.errors import SandboxClosed
from octavo.storage.stores.local import LocalStore
from octavo.testing import RecordingDisk, Stopped, StoppingDisk, open_on

OLD_TURNS = ("I moved to Chiang Mai last week.", "ยินดีด้วยค่ะ ชอบไหมคะ")
NEW_TURN = "ชอบมาก อากาศดี"


@dataclass(frozen=True)
class Prepared:
    """An account at version 2, with a register and a sandbox that two turns went into."""

    folder: Path
    sandbox: str


@pytest.fixture
def quick_path() -> Iterator[Path]:
    """A folder in memory where there is one: what a sync keeps is modelled here, so none is waited for."""
    shared = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=shared if os.access(shared, os.W_OK) else None) as folder:
        yield Path(folder)


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Prepared:
    root = tmp_path_factory.mktemp("prepared")
    with octavo.open(root, actor="human:ann") as account:
        account.remember("lives in Bangkok", kind="register", topic="home")
        account.remember("lives in Chiang Mai", kind="register", topic="home")
        sandbox = account.sandbox("เช้า")
        for speaker, text in zip(("user", "assistant"), OLD_TURNS, strict=True):
            sandbox.turn(speaker, text)
        sandbox.remember("มะลิชอบชาเขียว", confidence=0.9)
        sandbox.close()
    return Prepared(root / "default", sandbox.id)


def turn(account: octavo.Account, p: Prepared) -> None:
    sandbox = account.resume(p.sandbox)
    sandbox.turn("user", NEW_TURN)


def consolidate(account: octavo.Account, p: Prepared) -> None:
    assert account.resume(p.sandbox).consolidate().version == 3


def create(account: octavo.Account, p: Prepared) -> None:
    account.sandbox("บ่าย").turn("user", NEW_TURN)


def discard(account: octavo.Account, p: Prepared) -> None:
    account.resume(p.sandbox).discard()


def remember(account: octavo.Account, p: Prepared) -> None:
    assert account.remember("works at the night market")


def restore(account: octavo.Account, p: Prepared) -> None:
    assert account.restore(1) == 3


def refuse(account: octavo.Account, p: Prepared) -> None:
    assert not account.remember("maybe a vegetarian", confidence=0.3)


Act = Callable[[octavo.Account, Prepared], None]
ACTS: list[Act] = [turn, consolidate, create, discard, remember, restore, refuse]


def attempt(act: Act, p: Prepared, folder: Path, index: Path, disk: StoppingDisk) -> bool:
    """Run an act in a process that may die; whether it was acknowledged."""
    account = None
    try:
        account = open_on(LocalStore(folder, disk=disk), index, clock=lambda: datetime.now(UTC))
        act(account, p)
    except Stopped:
        return False
    finally:
        if account is not None:
            account.close()
        disk.kill()
    return True


def every_stop(run: Callable[[int], bool]) -> int:
    """Run with a stop at the first call, at the second … until nothing is stopped; returns how many."""
    number = 1
    while not run(number):
        number += 1
        assert number < 200
    return number


def what_it_is(account: octavo.Account) -> tuple[int, list[str]]:
    return account.version, sorted(m.text for m in account.memories())


def check_whole(folder: Path, p: Prepared, act, acknowledged: bool) -> None:
    """The account is exactly before or after, acknowledged turns are there, a retry duplicates nothing."""
    with octavo.open(folder.parent, account=folder.name, actor="human:ann") as account:
        report = account.check()
        assert report, report.problems
        version = account.version
        assert version in ((3,) if acknowledged and act in (consolidate, remember, restore) else (2, 3))
        if act in (turn, create, discard, refuse):
            assert version == 2
        home = [m.text for m in account.memories(topic="home")]
        assert home == [["lives in Bangkok"], ["lives in Chiang Mai"]][not (act is restore and version == 3)]
        assert bool(account.memories(kind="fact")) == (act in (consolidate, remember) and version == 3)
        if act is refuse and acknowledged:
            assert [r.text for r in account.refusals()] == ["maybe a vegetarian"]
        check_sandboxes(account, p, act, acknowledged)
        assert account.check()


def check_sandboxes(account: octavo.Account, p: Prepared, act, acknowledged: bool) -> None:
    new = [s for s in account.sandboxes() if s.id != p.sandbox]
    if act is create:
        said = [e.turn.text for s in new for e in account.resume(s.id).buffer.entries]
        assert said == [NEW_TURN] or (not acknowledged and said == [] and len(new) <= 1)
    else:
        assert not new
    if act is discard and (acknowledged or p.sandbox not in [s.id for s in account.sandboxes()]):
        with pytest.raises((SandboxClosed, octavo.errors.NotFound)):
            account.resume(p.sandbox)
        assert account.check().sandboxes == 0
        return
    check_retry(account, p, act, acknowledged)


def check_retry(account: octavo.Account, p: Prepared, act, acknowledged: bool) -> None:
    before = account.version
    sandbox = account.resume(p.sandbox)
    result = sandbox.consolidate()
    assert sandbox.consolidate() == result
    assert account.resume(p.sandbox).consolidate() == result
    assert account.version == (before if act is consolidate and before == 3 else before + 1)
    assert result.version == account.version
    assert len(result.added) == (3 if act is turn and len(account.memories(kind="episode")) == 2 else 2)
    said = [t.text for e in account.memories(kind="episode") for t in e.turns]
    assert said[:2] == list(OLD_TURNS)
    assert said[2:] == [NEW_TURN] if act is turn and acknowledged else said[2:] in ([], [NEW_TURN])
    assert [m.text for m in account.memories(kind="fact", from_sandbox=p.sandbox)] == ["มะลิชอบชาเขียว"]
    assert [s.ordinal for s in account.sessions()] == [1]
    assert account.sandboxes() == [] or act is create


@pytest.mark.parametrize("torn", [False, True], ids=["clean", "torn"])
@pytest.mark.parametrize("act", ACTS)
def test_an_act_stopped_at_any_call_leaves_the_account_before_or_after_it(act, torn, prepared, quick_path):
    def run(number: int) -> bool:
        folder = shutil.copytree(prepared.folder, quick_path / f"{number}" / "default")
        done = attempt(act, prepared, folder, folder / "index", StoppingDisk(number, torn=torn))
        check_whole(folder, prepared, act, done)
        return done

    assert every_stop(run) > 5


@pytest.mark.parametrize("index", ["lost", "kept", "older"])
@pytest.mark.parametrize("act", ACTS)
def test_an_act_cut_off_from_power_at_any_call_leaves_the_account_before_or_after_it(
    act, index, prepared, quick_path
):
    def run(number: int) -> bool:
        root = quick_path / f"{number}"
        folder = shutil.copytree(prepared.folder, root / "live", ignore=shutil.ignore_patterns("index"))
        shutil.copytree(prepared.folder / "index", root / "index")
        recording = RecordingDisk(root / "live")
        disk = StoppingDisk(number, inner=recording)
        done = attempt(act, prepared, folder, root / "index", disk)
        after = recording.after_power_cut(root / "default")
        recording.forget()
        if index != "lost":
            shutil.copytree(root / "index" if index == "kept" else prepared.folder / "index", after / "index")
        check_whole(after, prepared, act, done)
        return done

    assert every_stop(run) > 5


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("act", ACTS)
def test_what_was_never_synced_may_survive_a_power_cut_by_chance_and_nothing_breaks(
    act, seed, prepared, quick_path
):
    chance = random.Random(seed)

    def run(number: int) -> bool:
        root = quick_path / f"{number}"
        folder = shutil.copytree(prepared.folder, root / "live", ignore=shutil.ignore_patterns("index"))
        recording = RecordingDisk(root / "live")
        disk = StoppingDisk(number, inner=recording, torn=chance.random() < 0.5)
        done = attempt(act, prepared, folder, root / "index", disk)
        after = recording.after_power_cut(root / "default", lambda: chance.random() < 0.5)
        recording.forget()
        check_whole(after, prepared, act, done)
        return done

    assert every_stop(run) > 5


@pytest.mark.parametrize("act", [turn, consolidate, remember])
def test_a_killed_writer_then_another_and_then_a_power_cut_lose_nothing_acknowledged(
    act, prepared, quick_path
):
    def run(number: int) -> bool:
        root = quick_path / f"{number}"
        folder = shutil.copytree(prepared.folder, root / "live", ignore=shutil.ignore_patterns("index"))
        recording = RecordingDisk(root / "live")
        disk = StoppingDisk(number, inner=recording)
        done = attempt(act, prepared, folder, root / "index", disk)
        with open_on(LocalStore(folder, disk=recording), root / "index") as heir:
            result = heir.resume(prepared.sandbox).consolidate()
            versions = heir.version
        after = recording.after_power_cut(root / "default")
        recording.forget()
        with octavo.open(after.parent, account="default") as account:
            assert account.check()
            assert account.version == versions
            assert account.resume(prepared.sandbox).consolidate() == result
            said = [t.text for e in account.memories(kind="episode") for t in e.turns]
            assert said[:2] == list(OLD_TURNS)
        return done

    assert every_stop(run) > 5


def first(account: octavo.Account, p: Prepared) -> None:
    account.remember("มะลิชอบชาเขียว")


def test_the_very_first_write_of_an_account_and_its_heir_s_survive_a_power_cut(prepared, quick_path):
    def run(number: int) -> bool:
        root = quick_path / f"{number}"
        (root / "live").mkdir(parents=True)
        recording = RecordingDisk(root / "live")
        folder = root / "live" / "default"
        done = attempt(first, prepared, folder, root / "index", StoppingDisk(number, inner=recording))
        with open_on(LocalStore(folder, disk=recording), root / "index") as heir:
            known = heir.remember("the heir wrote this").or_raise()
            version = heir.version
        after = recording.after_power_cut(root / "after")
        recording.forget()
        with octavo.open(after) as account:
            assert account.check()
            assert account.get(known.id) == known
            assert account.version == version
            assert version == 2 if done else version in (1, 2)
        return done

    assert every_stop(run) > 5


ROUNDS = 300


@pytest.mark.slow
def test_three_hundred_kills_at_random_moments_lose_nothing_acknowledged(tmp_path):
    """A child talks, consolidates, remembers and discards until SIGKILL; its heir takes up what is left."""
    done = subprocess.run(
        [sys.executable, __file__, str(tmp_path), "8", str(ROUNDS)],
        check=False,
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-4000:]
    told = json.loads(done.stdout)
    assert told["kills"] == ROUNDS
    assert min(told["turns"], told["consolidated"], told["left open"]) > 0


class Acknowledged:
    """What the killed children had been told is safe."""

    def __init__(self) -> None:
        self.turns: dict[str, str] = {}
        self.registers: dict[str, str] = {}
        self.consolidated: dict[str, int] = {}
        self.discarding: set[str] = set()
        self.left_open = 0

    def hear(self, told: bytes) -> None:
        for line in told.split(b"\n")[:-1]:
            match json.loads(line):
                case ["turn", sandbox, text]:
                    self.turns[text] = sandbox
                case ["register", topic, text]:
                    self.registers[text] = topic
                case ["consolidated", sandbox, version]:
                    assert self.consolidated.setdefault(sandbox, version) == version
                case ["discarding", sandbox]:
                    self.discarding.add(sandbox)

    def verify(self, root: Path) -> None:
        with octavo.open(root) as account:
            left = account.sandboxes()
            self.left_open += len(left)
            for info in left:
                account.resume(info.id).consolidate()
            report = account.check()
            assert report, report.problems
            said: dict[str, int] = {}
            for turn_ in (t for e in account.memories(kind="episode") for t in e.turns):
                said[turn_.text] = said.get(turn_.text, 0) + 1
            assert set(said.values()) <= {1}, "something was said twice"
            lost = {t for t, s in self.turns.items() if t not in said and s not in self.discarding}
            assert not lost, lost
            for sandbox, version in self.consolidated.items():
                assert account.resume(sandbox).consolidate().version == version
            for topic in {*self.registers.values()}:
                history = [r.memory for m in account.memories(topic=topic) for r in account.history(m.id)]
                assert [m.rev for m in history] == list(range(1, len(history) + 1))
                wanted = [t for t, at in self.registers.items() if at == topic]
                assert [m.text for m in history if m.text in wanted] == wanted


def talk_until_killed(root: Path, round_: int, pipe: int) -> None:
    """A conversation that never ends by itself; it says what was acknowledged, as soon as it was."""

    def tell(*words: object) -> None:
        os.write(pipe, json.dumps(words).encode() + b"\n")

    random_ = random.Random(round_)
    with octavo.open(root) as account:
        tell("ready")
        left = account.sandboxes()
        for number in range(10_000):
            sandbox = account.resume(left.pop().id) if left else account.sandbox(f"รอบ {round_}")
            if sandbox.result is not None:
                continue  # it was committed, only its buffer had been left
            for step in range(random_.randrange(4)):
                text = f"คำที่ {round_}.{number}.{step}"
                sandbox.turn(("user", "assistant")[step % 2], text)
                tell("turn", sandbox.id, text)
            if random_.random() < 0.2:
                tell("discarding", sandbox.id)
                sandbox.discard()
            elif random_.random() < 0.3:
                sandbox.close()
            elif (result := sandbox.consolidate()).added:
                tell("consolidated", sandbox.id, result.version)
            text = f"on {round_}.{number}"
            account.remember(text, kind="register", topic=f"place {number % 3}")
            tell("register", f"place {number % 3}", text)


def kill_many(root: Path, seed: int, rounds: int) -> None:
    moments = random.Random(seed)
    known = Acknowledged()
    for round_ in range(rounds):
        reading, writing = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(reading)
            try:
                talk_until_killed(root, round_, writing)
            finally:
                os._exit(1)
        os.close(writing)
        told = os.read(reading, 1)
        time.sleep(moments.random() * 0.03)
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        while more := os.read(reading, 1 << 16):
            told += more
        os.close(reading)
        assert os.WIFSIGNALED(status), "the child ended by itself: " + told.decode()[-300:]
        known.hear(told)
        if round_ % 10 == 9:
            known.verify(root)
    counts = {"kills": rounds, "turns": len(known.turns), "consolidated": len(known.consolidated)}
    print(json.dumps(counts | {"left open": known.left_open}))


if __name__ == "__main__":
    kill_many(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
