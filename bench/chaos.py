"""Chaos: many processes do everything to one account at once and are killed at random; then all is proved.

Each process notes what it is about to do and what was acknowledged, in a file of its own. Afterwards every
acknowledged write, the chain, the state against a replay of the ledger, recall of everything and every backup
are held against these notes.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import octavo
from bench import harness
from octavo.errors import NotFound, OctavoError
from octavo.testing.embedders import seeded_vector

_TITLE = "Chaos"
_ACTOR = "human:chaos"
_THAI = ("แม่น้ำ", "ตลาดเช้า", "ชาเขียว", "ต้นมะม่วง")
_LIVES_SECONDS = (0.5, 8.0)
Note = dict[str, Any]


class Seeded:
    """An embedder that needs no model: a text's vector is the sum of its words', which their hashes make.

    So who asks for a word is near what holds it; with a vector made of a whole text's hash, meaning would be
    noise that now and then outweighs the very word.
    """

    name, dimension = "seeded-words", 64

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """A vector for each text."""
        each = ([seeded_vector(word, self.dimension) for word in text.split()] for text in texts)
        return [[sum(column) for column in zip(*vectors, strict=True)] for vectors in each]


def opened(root: Path, **more: Any) -> octavo.Account:
    """The account that everybody works on."""
    return octavo.open(root / "data", "chaos", actor=_ACTOR, embedder=Seeded(), **more)


class Worker:
    """One process: it does one thing after the other until it is killed, and notes what was acknowledged."""

    def __init__(self, root: Path, number: int) -> None:
        self.root, self.number = root, number
        self._dice = random.Random(number)
        self._fd = os.open(root / "notes" / f"{number}.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._facts: dict[str, str] = {}  # this process's own, by id: the word that only it holds
        self._steps = 0
        self.account = opened(root)

    def note(self, what: str, **more: Any) -> None:
        """Write a line that a kill of this process cannot take back."""
        os.write(self._fd, json.dumps({"what": what, **more}, ensure_ascii=False).encode() + b"\n")

    def run(self) -> None:
        """Do things at random; a typed error is noted and life goes on, any other ends this process."""
        common = (self.write, self.talk, self.ask, self.look_back, self.revise)
        rare = (self.forget, self.redact, self.reject, self.tend, self.back_up, self.reopen)
        while True:
            act = self._dice.choice(common if self._dice.random() < 0.85 else rare)
            try:
                act()
            except OctavoError as error:
                self.note("typed", act=act.__name__, error=type(error).__name__, said=error.message[:200])
            self.note("did", act=act.__name__)

    def _word(self) -> str:
        self._steps += 1
        return f"w{hashlib.sha256(f'{self.number} {self._steps}'.encode()).hexdigest()[:14]}"

    def write(self) -> None:
        """Remember a fact, now and then several at once."""
        words = [self._word() for _ in range(self._dice.choice((1, 1, 1, 5)))]
        texts = [f"{word} stands beside {self._dice.choice(_THAI)}" for word in words]
        verdicts = self.account.remember_many([{"text": text} for text in texts])
        for word, text, verdict in zip(words, texts, verdicts, strict=True):
            memory = verdict.or_raise()
            self._facts[memory.id] = word
            self.note("wrote", id=memory.id, word=word, text=text)

    def talk(self) -> None:
        """Open a sandbox, say some turns, and consolidate it, leave it, or discard it."""
        sandbox = self.account.sandbox(f"talk {self.number}")
        for n in range(self._dice.randint(1, 6)):
            word = self._word()
            sandbox.turn(
                "user" if n % 2 == 0 else "assistant", f"{word} said by the {self._dice.choice(_THAI)}"
            )
            self.note("said", sandbox=sandbox.id, word=word)
        match self._dice.random():
            case end if end < 0.1:
                self.note("discarding", sandbox=sandbox.id)
                sandbox.discard()
            case end if end < 0.25:
                sandbox.close()
            case _:
                sandbox.consolidate()

    def ask(self) -> None:
        """Recall a fact of one's own by its word: it comes, whatever others do to the index meanwhile."""
        if self._facts:
            id_, word = self._dice.choice(list(self._facts.items()))
            hits = self.account.recall(word, k=10)
            if id_ not in [hit.memory.id for hit in hits]:
                self.note("wrong", act="recall", id=id_, word=word, notes=list(hits.notes), came=len(hits))
            if self.account.get(id_) is None:
                self.note("wrong", act="get", id=id_, word=word)

    def look_back(self) -> None:
        """Read an older version twice: it never changes, but for what was redacted."""
        version = self._dice.randint(0, self.account.version)
        once, again = (
            {m.id for m in self.account.at(version).memories(kind="fact", limit=200)} for _ in range(2)
        )
        if once != again:
            self.note("wrong", act="look back", version=version, ids=sorted(once ^ again))

    def revise(self) -> None:
        """Change a fact of one's own."""
        if self._facts:
            id_, word = self._dice.choice(list(self._facts.items()))
            text = f"{word} moved to {self._dice.choice(_THAI)} {self._steps}"
            self._steps += 1
            self.note("revising", id=id_, text=text)
            self.account.revise(id_, text=text).or_raise()
            self.note("revised", id=id_, text=text)

    def forget(self) -> None:
        """End a fact of one's own."""
        if self._facts:
            id_ = self._dice.choice(list(self._facts))
            self.note("forgetting", id=id_)
            self._facts.pop(id_)
            self.account.forget(id_)[0].or_raise()
            self.note("forgot", id=id_)

    def redact(self) -> None:
        """Erase a fact of one's own from every version."""
        if self._facts:
            id_ = self._dice.choice(list(self._facts))
            word = self._facts.pop(id_)
            self.note("redacting", id=id_, word=word)
            done = self.account.redact(id_, reason="chaos")
            self.note("redacted", id=id_, word=word, waiting=list(done.waiting))

    def reject(self) -> None:
        """Refuse a value, then try to bring it in."""
        value = f"{self._word()} is refused"
        self.account.reject(value, reason="chaos")
        if self.account.remember(value):
            self.note("wrong", act="reject", value=value)

    def tend(self) -> None:
        """Do the work that nobody waits for, all of it at the worst time."""
        by_name = {
            "reindex": self.account.reindex,
            "upkeep": self.account.upkeep,
            "compress": self.account.compress,
            "catch_up": self.account.catch_up,
            "mirror": self.account.mirror,
        }
        by_name[self._dice.choice(list(by_name))]()

    def back_up(self) -> None:
        """Copy the account."""
        name = f"{self.number}-{self._steps}"
        self._steps += 1
        self.account.backup(self.root / "backups" / name)
        self.note("backed up", name=name)

    def reopen(self) -> None:
        """Let go of the account and open it again."""
        self.account.close()
        self.account = opened(self.root)


def work(root: Path, number: int) -> None:
    """The whole life of a process; an error that is not ours ends it, and `crowd` notes what it said."""
    Worker(root, number).run()


def crowd(root: Path, processes: int, seconds: float, dice: random.Random) -> tuple[int, int]:
    """Keep so many processes at work and kill them at random; returns how many were started and killed."""
    running: dict[int, subprocess.Popen[bytes]] = {}
    ends: dict[int, float] = {}
    started = killed = 0
    deadline = time.monotonic() + seconds
    try:
        while time.monotonic() < deadline or killed < processes:
            while len(running) < processes:
                started += 1
                flags = ["-X", "faulthandler", "-m", "bench.chaos", "--work", f"{started}:{root}"]
                with (root / "errors" / f"{started}.txt").open("wb") as errors:
                    running[started] = subprocess.Popen(
                        [sys.executable, *flags], stdout=subprocess.DEVNULL, stderr=errors
                    )
            for number, child in list(running.items()):
                if number not in ends and (root / "notes" / f"{number}.jsonl").exists():
                    ends[number] = time.monotonic() + dice.uniform(*_LIVES_SECONDS)
                if child.poll() is None and time.monotonic() > ends.get(number, math.inf):
                    child.kill()
                    child.wait()
                    killed += 1
                if child.poll() is not None:
                    running.pop(number)
                    if child.returncode != -signal.SIGKILL:  # nothing else ends a process
                        said = (root / "errors" / f"{number}.txt").read_text(errors="replace")
                        (root / "raw" / f"{number}.txt").write_text(f"ended by {child.returncode}\n{said}")
            time.sleep(0.02)
    finally:
        for child in running.values():
            child.kill()
            child.wait()
    return started, killed + len(running)


def notes(root: Path) -> Iterator[Note]:
    """What the processes noted, each in its order; a line that a kill cut short was not acknowledged."""
    for path in sorted((root / "notes").glob("*.jsonl"), key=lambda p: int(p.stem)):
        for line in path.read_bytes().splitlines():
            with suppress(ValueError):
                yield json.loads(line)


class Judge:
    """Holds an account against what its writers noted."""

    def __init__(self, root: Path) -> None:
        self.root, self.counts, self.failures = root, Counter[str](), list[str]()
        self.facts: dict[str, tuple[str, set[str | None]]] = {}  # id: its word, and what it may say now
        self.said: dict[str, list[str]] = {}
        self.discarded: set[str] = set()
        self.erased: dict[str, bool] = {}  # id: whether the erasure was acknowledged
        self.backups: list[str] = []
        for note in notes(root):
            self._take(note)

    def _take(self, note: Note) -> None:
        self.counts[note["what"]] += 1
        match note["what"]:
            case "wrote":
                self.facts[note["id"]] = (note["word"], {note["text"]})
            case "revising":
                self.facts[note["id"]][1].add(note["text"])
            case "revised":
                self.facts[note["id"]] = (self.facts[note["id"]][0], {note["text"]})
            case "forgetting":
                self.facts[note["id"]][1].add(None)
            case "forgot":
                self.facts[note["id"]] = (self.facts[note["id"]][0], {None})
            case "redacting":
                self.erased[note["id"]] = False
            case "redacted":
                self.erased[note["id"]] = True
            case "said":
                self.said.setdefault(note["sandbox"], []).append(note["word"])
            case "discarding":
                self.discarded.add(note["sandbox"])
            case "backed up":
                self.backups.append(note["name"])
            case "wrong":
                self.failures.append(f"a wrong answer: {note}")
            case "typed":
                self.counts[f"typed {note['error']} by {note['act']}"] += 1

    def judge(self) -> None:
        """Take up what was left, then prove everything."""
        with opened(self.root) as account:
            for info in account.sandboxes():
                with suppress(NotFound):  # it was consolidated, and killed before its buffer went
                    account.resume(info.id).consolidate()
            account.upkeep()
            self._must(not account.check().problems, f"check: {account.check().problems[:3]}")
            self._facts(account)
            self._turns(account)
            self._replay(account)
            self._backups(account)
        self._erased()

    def _must(self, holds: bool, failure: str) -> None:
        if not holds:
            self.failures.append(failure)

    def _facts(self, account: octavo.Account) -> None:
        for id_, (word, may_say) in self.facts.items():
            memory = account.get(id_)
            if id_ in self.erased:
                self._must(memory is None or not self.erased[id_], f"{id_} was redacted and lives")
                continue
            self._must((memory.text if memory else None) in may_say, f"{id_} says {memory}, not {may_say}")
            if memory is not None:
                hits = account.recall(word, k=10)
                self._must(id_ in [h.memory.id for h in hits], f"{id_} is not recalled")
                self.counts["recalled"] += 1

    def _turns(self, account: octavo.Account) -> None:
        there = {
            word
            for memory in account.memories(kind="episode")
            for turn in memory.turns
            for word in turn.text.split()[:1]
        }
        for sandbox, words in self.said.items():
            if sandbox not in self.discarded:
                for word in words:
                    self._must(word in there, f"a turn of {sandbox} is lost: {word}")

    def _replay(self, account: octavo.Account) -> None:
        """The same account without anything derived, made anew from its ledger, says the same."""
        copy = self.root / "replay"
        shutil.copytree(self.root / "data", copy / "data", ignore=shutil.ignore_patterns("index", "mirror"))
        with opened(copy) as replayed:
            # Either may have gone on: cores are made in the background, and opening finishes a sweep.
            head = min(account.version, replayed.version)
            for version in {head, head // 2}:
                one, other = account.at(version).memories(), replayed.at(version).memories()
                self._must(one == other, f"version {version} replayed differs from the state")

    def _backups(self, account: octavo.Account) -> None:
        for name in self.backups:
            place = self.root / "backups" / name
            # Read first, then open to write: that may finish a sweep, which is a version of the copy's own,
            # as a redaction that followed it there is.
            with octavo.open(place, "chaos", actor=_ACTOR, embedder=False, read_only=True) as copy:
                told = {(commit.version, commit.at, commit.cause) for commit in account.versions()}
                shared = [c.version for c in copy.versions() if (c.version, c.at, c.cause) in told]
                version = max(shared)
                facts = copy.at(version).memories(kind="fact")
            own = {m.id: m.text for m in facts if m.id not in self.erased}
            then = {m.id: m.text for m in account.at(version).memories(kind="fact")}
            same = {id_: text for id_, text in then.items() if id_ not in self.erased}
            unlike = sorted(set(own.items()) ^ set(same.items()))
            self._must(not unlike, f"backup {name} differs from version {version}: {unlike[:4]}")
            with octavo.open(place, "chaos", actor=_ACTOR, embedder=False) as copy:
                self._must(not copy.check().problems, f"backup {name}: {copy.check().problems[:3]}")

    def _erased(self) -> None:
        words = [
            self.facts[id_][0].encode() for id_, done in self.erased.items() if done and id_ in self.facts
        ]
        for path in (self.root / "data").rglob("*"):
            data = path.read_bytes() if path.is_file() else b""
            for word in words:
                self._must(word not in data, f"{path.name} still holds the redacted {word.decode()}")


def main(argv: Sequence[str] | None = None) -> None:
    """Let the crowd loose, then judge."""
    minutes = {"type": float, "default": 5.0, "help": "how long the processes are let loose"}
    processes = {"type": int, "default": 8, "help": "how many are at work at once"}
    seed = {"type": int, "default": 1, "help": "which kills there are"}
    own = {"default": None, "help": "be one of the processes, NUMBER:FOLDER (the run starts them itself)"}
    bench = harness.begin("chaos", _TITLE, argv, minutes=minutes, processes=processes, seed=seed, work=own)
    if bench.options.work:
        number, _, folder = bench.options.work.partition(":")
        work(Path(folder), int(number))
    seconds = 6.0 if bench.smoke else 60 * bench.options.minutes
    count = bench.pick(bench.options.processes, 3)
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for folder in ("notes", "raw", "errors", "backups"):
            (root / folder).mkdir()
        opened(root).close()
        started, killed = crowd(root, count, seconds, random.Random(bench.options.seed))
        judge = Judge(root)
        judge.judge()
        raw = [path.read_text() for path in sorted((root / "raw").glob("*.txt"))]
    _tell(bench, judge, started, killed, raw)
    for problem in (*judge.failures[:20], *raw[:5]):
        harness.console.print(problem, markup=False)
    bench.finish()
    if judge.failures or raw:
        sys.exit(1)


def _tell(bench: harness.Bench, judge: Judge, started: int, killed: int, raw: Sequence[str]) -> None:
    counts, lost = judge.counts, [f for f in judge.failures if not f.startswith("a wrong answer")]
    wrong = len(judge.failures) - len(lost)
    bench.figure("processes started", started, "")
    bench.figure("processes killed (SIGKILL)", killed, "")
    bench.figure("things done", counts["did"], "")
    bench.figure("facts, revisions and endings acknowledged", _sum(counts, "wrote", "revised", "forgot"), "")
    bench.figure("turns acknowledged", counts["said"], "")
    bench.figure("redactions, backups acknowledged", _sum(counts, "redacted", "backed up"), "")
    bench.figure("recalled afterwards", counts["recalled"], "")
    bench.figure("lost, or other than it was written", len(lost), "", at_most=0)
    bench.figure("wrong answers meanwhile", wrong, "", at_most=0)
    bench.figure("raw exceptions", len(raw), "", at_most=0)
    bench.figure("typed errors meanwhile", counts["typed"], "")
    typed = {k.removeprefix("typed "): n for k, n in counts.items() if k.startswith("typed ")}
    told = ", ".join(f"{name} {n}" for name, n in sorted(typed.items(), key=lambda item: -item[1])[:8])
    bench.note(
        f"{bench.pick(bench.options.processes, 3)} processes at once, each lives some seconds. Typed errors: "
        f"{told or 'none'}. Afterwards: every acknowledged write, the chain, the state against a replay, "
        "recall of everything, every backup, and that no redacted word is in any file."
    )


def _sum(counts: Counter[str], *names: str) -> int:
    return sum(counts[name] for name in names)


if __name__ == "__main__":
    main()
