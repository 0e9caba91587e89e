"""What an account promises wherever it lies: a suite for the tests of each place, and its processes."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TextIO

import pytest

import octavo
from octavo.domain.compression import CompressionPolicy
from octavo.doors import cli
from octavo.errors import BadInput, LedgerTruncated, NotFound, SandboxBusy
from octavo.models import embedders
from octavo.storage import buffers, cache, checkpoints, segments
from octavo.storage.ledger import key_of
from octavo.storage.stores.entries import every
from octavo.storage.stores.places import place_of
from octavo.testing.embedders import seeded_vector

BY_HAND = octavo.Policy(compression=CompressionPolicy(mode="manual"))
WRITERS, EACH, KILLS = 4, 8, 4


def opened(root: str, account: str, cache: Path, **more) -> octavo.Account:
    how = {"actor": "human:tester", "embedder": False, "policy": BY_HAND, **more}
    return octavo.open(root, account, cache=cache, **how)


class Child:
    """A process that runs one of the parts below."""

    def __init__(self, root: str, account: str, cache: Path, part: str, number: int) -> None:
        command = [sys.executable, __file__, root, account, str(cache), part, str(number)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def told(self) -> list:
        out, error = self.process.communicate(timeout=120)
        assert self.process.returncode == 0, error.decode()[-3000:]
        return json.loads(out)


class PlaceSuite:
    """Subclass it with a fixture `root` that gives a place."""

    @pytest.fixture
    def name(self, request) -> str:
        return f"ผู้ใช้ {request.node.name[:60]}"

    def test_what_was_remembered_is_recalled_on_another_machine(self, root, name, tmp_path):
        with opened(root, name, tmp_path / "one") as account:
            account.remember("Mali drinks green tea every morning.")
            with account.sandbox(scope="orion") as sandbox:
                sandbox.turn("user", "ฉันย้ายไปเชียงใหม่เมื่อสัปดาห์ก่อน")
        how = {
            "read_only": True,
            "embedder": embedders.CallableEmbedder(name="seeded", dimension=16, function=vectors),
        }
        with opened(root, name, tmp_path / "two", **how) as again:
            assert "green tea" in again.recall("what does Mali drink")[0].memory.text
            assert "เชียงใหม่" in again.recall("ย้ายไปเชียงใหม่", scope="orion")[0].memory.text
            assert [m.kind for m in again.memories() if m.kind == "episode"] == ["episode"]
            assert again.check()
        with opened(root, name, tmp_path / "two", scope="vega") as other:
            assert not [hit for hit in other.recall("ย้ายไปเชียงใหม่") if "เชียงใหม่" in hit.memory.text]

    def test_the_command_line_keeps_policy_accounts_and_copies_in_any_place(
        self, root, name, tmp_path, capsys, monkeypatch
    ):
        monkeypatch.setenv("OCTAVO_CACHE", str(tmp_path / "cache"))
        (tmp_path / "rules.toml").write_text("[sandbox]\nmax_episodes = 30\n")
        where = ["--root", str(root), "--account", name]
        assert cli.run(["init", "--policy", str(tmp_path / "rules.toml"), *where]) == 0
        assert cli.run(["remember", "ชอบชาเขียว", *where]) == 0
        assert cli.run(["backup", str(tmp_path / "copy"), *where]) == 0
        with octavo.open(tmp_path / "copy", name, embedder=False) as copy:
            assert copy.policy.sandbox.max_episodes == 30
            assert [m.text for m in copy.memories()] == ["ชอบชาเขียว"]
        capsys.readouterr()
        assert cli.run(["accounts", "--root", str(root)]) == 0
        assert name in capsys.readouterr().out
        assert cli.run(["delete-account", name, "--yes", *where]) == 0
        assert name not in octavo.accounts(root)

    def test_accounts_are_listed_in_pages_and_deleted_whole(self, root, name, tmp_path):
        names = [f"{name} {n}" for n in range(3)]
        for one in names:
            opened(root, one, tmp_path / "cache").close()
        assert set(names) <= set(octavo.accounts(root))
        first = octavo.accounts(root, limit=1)
        rest = octavo.accounts(root, after=first[0])
        assert sorted(first + rest) == sorted(octavo.accounts(root))
        octavo.delete_account(root, names[1])
        assert names[1] not in octavo.accounts(root)
        with pytest.raises(NotFound):
            octavo.delete_account(root, names[1])
        with pytest.raises(NotFound):
            opened(root, names[1], tmp_path / "cache", read_only=True)

    def test_writers_on_two_machines_lose_nothing_and_leave_no_gap(self, root, name, tmp_path):
        opened(root, name, tmp_path / "cache").close()
        parts = [(root, name, tmp_path / f"cache {n % 2}", "race", n) for n in range(WRITERS)]
        acknowledged = [pair for told in self.told_by(parts) for pair in told]
        assert sorted(version for version, _ in acknowledged) == list(range(1, WRITERS * EACH + 1))
        with opened(root, name, tmp_path / "third") as account:
            texts = {memory.text for memory in account.memories()}
            assert {text for _, text in acknowledged} == texts
            assert account.check()

    def told_by(self, parts: list[tuple]) -> list[list]:
        """What each part says at the end, in a process of its own."""
        return [child.told() for child in [Child(*part) for part in parts]]

    def test_writers_killed_at_random_moments_lose_nothing_that_was_acknowledged(self, root, name, tmp_path):
        [told] = self.told_by([(root, name, tmp_path / "cache", "die", KILLS)])
        turns = [text for kind, text in told if kind == "turn"]
        registers = {text for kind, text in told if kind == "register"}
        assert turns
        assert registers
        with opened(root, name, tmp_path / "heir") as account:
            for left in account.sandboxes():
                patiently(partial(account.resume, left.id)).consolidate()
            said = [turn.text for memory in account.memories(kind="episode") for turn in memory.turns]
            assert len(said) == len(set(said)), "something was said twice"
            assert set(turns) <= set(said)
            assert registers <= {memory.text for memory in account.memories(kind="register")}
            assert account.check()

    def test_an_owner_that_was_paused_and_followed_can_say_nothing_any_more(self, root, name, tmp_path):
        child = Child(root, name, tmp_path / "cache", "talk", 0)
        try:
            acknowledged = [json.loads(child.process.stdout.readline()) for _ in range(3)]
            child.process.send_signal(signal.SIGSTOP)
            with opened(root, name, tmp_path / "heir") as account:
                [left] = account.sandboxes()
                if place_of(root).open(name).folder is not None:  # its lock is good as long as it lives
                    with pytest.raises(SandboxBusy):
                        account.resume(left.id)
                    return
                resumed = patiently(lambda: account.resume(left.id))
                resumed.turn("user", "ฉันพูดต่อ")
                child.process.send_signal(signal.SIGCONT)
                rest, error = child.process.communicate(timeout=120)
                assert b"LeaseLost" in error, error.decode()[-3000:]
                acknowledged += map(json.loads, rest.splitlines())
                assert [entry.turn.text for entry in resumed.buffer.entries][:-1] == acknowledged
                resumed.consolidate()
                assert account.check()
        finally:
            child.process.kill()
            child.process.communicate()

    def test_a_redaction_reaches_segments_checkpoints_and_other_machines(
        self, root, name, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(segments, "SIZE", 10)
        monkeypatch.setattr(checkpoints, "EVERY", 10)
        secret = "the orchid code is seven three nine"
        store = place_of(root).open(name)
        with opened(root, name, tmp_path / "one") as account, opened(root, name, tmp_path / "two") as other:
            told = account.remember(secret)
            for n in range(24):
                account.remember(f"ข้อเท็จจริงที่ {n} about pot number {n}", kind="register", topic=f"pot {n}")
            done = account.upkeep()
            assert (done.sealed, done.checkpoint) == (20, 25)
            assert [segments.first_of(key) for key in every(store, "segments/")] == [1, 11]
            assert list(every(store, "ledger/")) == [key_of(n) for n in range(21, 26)]
            assert other.recall("orchid code")
            account.redact(told.or_raise().id, reason="asked for")
            assert list(every(store, "checkpoints/")) == []
            for key in every(store, "segments/"):
                assert not any(b"orchid" in data for data in segments.unpack(key, store.read(key))[1])
            assert not other.recall("orchid code")
            assert account.check()
            assert other.check()
        for machine in ("one", "two"):
            files = [path for path in (tmp_path / machine).rglob("*") if path.is_file()]
            assert not [path for path in files if b"orchid" in path.read_bytes()]

    def test_a_long_history_opens_from_a_checkpoint_and_says_the_same(
        self, root, name, tmp_path, monkeypatch
    ):
        monkeypatch.setattr(segments, "SIZE", 10)
        monkeypatch.setattr(checkpoints, "EVERY", 10)
        with opened(root, name, tmp_path / "one") as account:
            for n in range(25):
                account.remember(f"pot {n} is watered on day {n}", kind="register", topic=f"pot {n}")
            account.upkeep()
            account.remember("one more", kind="register", topic="after")
            wanted = [memory.text for memory in account.memories()]
            old = [memory.text for memory in account.at(7).memories()]
        with opened(root, name, tmp_path / "two") as again:
            assert again.version == 26
            assert [memory.text for memory in again.memories()] == wanted
            assert [memory.text for memory in again.at(7).memories()] == old
            assert again.check()
            again.remember("and another", kind="register", topic="later")
            assert again.version == 27
            copy = octavo.open(again.backup(tmp_path / "copy") and tmp_path / "copy", name, embedder=False)
            with copy:
                assert copy.version == 27
                assert copy.check()

    def test_who_fell_far_behind_cannot_fork_a_sealed_history(self, root, name, tmp_path, monkeypatch):
        monkeypatch.setattr(segments, "SIZE", 10)
        with opened(root, name, tmp_path / "one") as account, opened(root, name, tmp_path / "two") as behind:
            account.remember("first", kind="register", topic="a")
            assert behind.version == 1
            for n in range(24):
                account.remember(f"pot {n}", kind="register", topic=f"pot {n}")
            account.upkeep()
            behind.remember("มาช้า", kind="register", topic="late")
            assert (behind.version, account.version) == (26, 26)
            assert account.check()

    def test_an_account_is_carried_to_another_place_and_back(self, root, name, tmp_path):
        with opened(root, name, tmp_path / "cache") as account:
            account.remember("moves house", kind="register", topic="home")
            held = account.sandbox()
            held.turn("user", "ยังพูดอยู่")
            account.backup(tmp_path / "elsewhere")
            held.close()
        octavo.delete_account(root, name)
        assert name not in octavo.accounts(root)
        with octavo.open(tmp_path / "elsewhere", name, embedder=False) as moved:
            assert [m.text for m in moved.memories()] == ["moves house"]
            assert len(moved.sandboxes()) == 1
            moved.backup(root)
        opened(root, f"{name} 2", tmp_path / "cache").close()
        with opened(root, name, tmp_path / "new cache") as back:
            assert back.check()
            assert back.version == 1
            with pytest.raises(BadInput, match="exists already"):
                back.backup(root)

    def test_the_cache_can_be_deleted_at_any_time_and_is_bounded(self, root, name, tmp_path):
        place = place_of(root)
        if place.open(name).folder is not None:
            return  # what is derived lies beside the account
        with opened(root, name, tmp_path / "cache") as account:
            account.remember("ชาเขียว", kind="register", topic="tea")
            assert cache.trim(tmp_path / "cache", 0) == 0
        assert cache.trim(tmp_path / "cache", 0) == 1
        with opened(root, name, tmp_path / "cache") as again:
            assert [m.text for m in again.memories()] == ["ชาเขียว"]
        assert not list((tmp_path / "cache").glob("*/.deleted*"))

    def test_a_ledger_that_lost_its_end_is_refused(self, root, name, tmp_path):
        with opened(root, name, tmp_path / "cache") as account:
            for n in range(3):
                account.remember(f"{n}", kind="register", topic=f"t{n}")
            place_of(root).open(name).delete(key_of(3))
            with pytest.raises(LedgerTruncated):
                account.remember("on a gap", kind="register", topic="gap")


def patiently(act, seconds: float = 90):
    """Ask again until a dead owner's lease has run out."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return act()
        except SandboxBusy:
            assert time.monotonic() < deadline
            time.sleep(0.2)


def race(root: str, account: str, cache: Path, number: int) -> list:
    """Registers written outside sandboxes, beside others who do the same."""
    acknowledged = []
    with opened(root, account, cache) as handle:
        for n in range(EACH):
            text = f"คำที่ {number}.{n}"
            handle.remember(text, kind="register", topic=f"topic {number}.{n}")
            version = handle.history(handle.memories(topic=f"topic {number}.{n}")[0].id)[-1].version
            acknowledged.append([version, text])
    return acknowledged


def die(root: str, account: str, cache: Path, rounds: int) -> list:
    """Children that live one after the other, each killed at a random moment; what they were told is safe.

    This process itself opens nothing: a place that is in use cannot be taken through a fork.
    """
    told: list = []
    for number in range(rounds):
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            os.close(ours)
            live(root, account, cache, number, os.fdopen(theirs, "w"))
        os.close(theirs)
        with os.fdopen(ours) as pipe:
            told += [json.loads(pipe.readline()) for _ in range(3 * number + 1)]
            time.sleep(random.uniform(0.0, 0.1))
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            told += [json.loads(line) for line in pipe if line.endswith("\n")]
    return told


def live(root: str, account: str, cache: Path, number: int, pipe: TextIO) -> None:
    """Take up what others left, then talk, consolidate and remember without end."""

    def tell(kind: str, text: str) -> None:
        pipe.write(json.dumps([kind, text]) + "\n")
        pipe.flush()

    with opened(root, account, cache) as handle:
        for left in handle.sandboxes():
            patiently(partial(handle.resume, left.id)).consolidate()
        for n in range(100_000):
            sandbox = handle.sandbox()
            for part in range(3):
                text = f"ประโยคที่ {number}.{n}.{part}"
                sandbox.turn("user", text)
                tell("turn", text)
            sandbox.consolidate()
            handle.remember(f"at {number}.{n}", kind="register", topic=f"place {number}.{n}")
            tell("register", f"at {number}.{n}")


def talk(root: str, account: str, cache: Path, number: int) -> None:
    """Turns without end, each told as soon as it is acknowledged."""
    with opened(root, account, cache) as handle:
        sandbox = handle.sandbox()
        for n in range(100_000):
            text = f"ประโยคที่ {n}"
            sandbox.turn("user", text)
            print(json.dumps(text), flush=True)
            time.sleep(0.01)


def follow(root: str, account: str, cache: Path, turns: int) -> None:
    """Take up the sandbox that another machine left, say some turns in it, and consolidate it."""
    with opened(root, account, cache) as handle:
        [left] = handle.sandboxes()
        sandbox = patiently(partial(handle.resume, left.id))
        for n in range(2 * turns):
            text = f"ฉันพูดต่อ {n}"
            sandbox.turn("user", text)
            print(json.dumps(text), flush=True)
            time.sleep(0.2)
        sandbox.consolidate()


def vectors(texts: Sequence[str]) -> list[list[float]]:
    return [seeded_vector(text, 16) for text in texts]


PARTS = {"race": race, "die": die, "talk": talk, "follow": follow}

if __name__ == "__main__":
    buffers.LEASE_SECONDS = 1.0
    where, whose, folder, part, which = sys.argv[1:]
    if (told := PARTS[part](where, whose, Path(folder), int(which))) is not None:
        print(json.dumps(told))
