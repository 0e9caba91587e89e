"""A process that syncs is killed at random moments: nothing a person wrote is lost, or taken in twice."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import octavo
from octavo.domain.compression import CompressionPolicy
from octavo.domain.policy import AssemblyPolicy
from octavo.engine.account import Account

ROUNDS = 24
PAGES = ("objects", "สถานที่")
POLICY = octavo.Policy(compression=CompressionPolicy(mode="manual"), assemblies=AssemblyPolicy(mode="manual"))


def opened(root: Path) -> Account:
    return octavo.open(root, "nok", actor="human:nok", policy=POLICY, embedder=False)


def knowledge(root: Path) -> Path:
    return root / "nok" / "mirror" / "semantic" / "knowledge"


def lines_of(root: Path) -> list[tuple[Path, str]]:
    pages = (knowledge(root) / f"{page}.md" for page in PAGES)
    return [
        (page, line)
        for page in pages
        if page.exists()
        for line in page.read_text().splitlines()
        if line.startswith("- ")
    ]


def edit_by_hand(root: Path, number: int, chance: random.Random, written: set[str]) -> None:
    """A person adds a line, and changes one that is there."""
    lines = lines_of(root)
    if lines:
        page, line = chance.choice(lines)
        said, caret, id_ = line.removeprefix("- ").rpartition(" ^")
        written.discard(said if caret else id_)  # the person's own will
        text = f"person changes number {number} ครั้ง"
        written.add(text)
        page.write_text(page.read_text().replace(line, f"- {text}{caret}{id_ if caret else ''}"))
    text = f"person adds number {number} ครั้ง"
    written.add(text)
    with (knowledge(root) / f"{chance.choice(PAGES)}.md").open("a") as file:
        file.write(f"\n- {text}\n")


def sync_once(root: Path, number: int, ready: int) -> None:
    """What the process does that is killed: the engine writes, then the person's edits are taken in."""
    with opened(root) as account:
        account.remember(f"engine says number {number * 7919} of the tower", category="objects")
        os.write(ready, b"x")
        account.sync(commit=True)


def live(root: Path) -> None:
    """Many rounds of a person's edits, each with a process that is killed while it takes them in."""
    chance, written, longest = random.Random(7), set[str](), 0.0
    for number in range(ROUNDS):
        edit_by_hand(root, number, chance, written)
        ready, told = os.pipe()
        child = os.fork()
        if not child:
            sync_once(root, number, told)
            os._exit(0)
        os.read(ready, 1)
        began = time.monotonic()
        if number:  # the first may end, so that the others are killed within the time it took
            time.sleep(chance.random() * longest)
            os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        longest = longest or time.monotonic() - began
        os.close(ready)
        os.close(told)
    print(json.dumps(sorted(written)))


def test_a_kill_at_any_moment_of_a_sync_loses_no_word_and_takes_no_edit_in_twice(tmp_path: Path) -> None:
    with opened(tmp_path) as account:
        for page in PAGES:
            account.remember(f"how {page} began", category=page)
        account.mirror()
    # A process of its own, because one with threads cannot be forked.
    command = [sys.executable, "-W", "error::DeprecationWarning", __file__, str(tmp_path)]
    lived = subprocess.run(command, capture_output=True, text=True, check=True)
    written = set(json.loads(lived.stdout))
    assert len(written) > ROUNDS
    with opened(tmp_path) as account:
        told = {revision.memory.text for revision in account.revisions()}
        shown = "".join(path.read_text() for path in knowledge(tmp_path).glob("*.md"))
        assert [text for text in written if text not in told and text not in shown] == []
        account.sync(commit=True, take="theirs", delete=True)
        again = account.sync(commit=True)
        assert (again.edits, again.conflicts, again.refused, again.written) == ((), (), (), ())
        texts = [memory.text for memory in account.memories()]
        assert len(texts) == len(set(texts))
        assert written <= {revision.memory.text for revision in account.revisions()}
        said = sorted(line.removeprefix("- ").rpartition(" ^")[0] for _, line in lines_of(tmp_path))
        assert said == sorted(texts)
        assert account.check()


if __name__ == "__main__":
    live(Path(sys.argv[1]))
