"""Two-way sync under a state machine: a person, the engine and kills at any moment."""

from __future__ import annotations

import os
import re
import shutil
import tempfile
import threading
from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from octavo.domain import mirror_places
from octavo.domain.buffer import Wrote
from octavo.domain.compression import CompressionPolicy
from octavo.domain.memory import Memory
from octavo.domain.policy import AssemblyPolicy, Policy
from octavo.storage.stores.local import LocalStore
from octavo.testing import SettableClock, Stopped, StoppingDisk, open_on

PAGES = ("objects", "สถานที่")
EXAMPLES = int(os.environ.get("EXAMPLES", "25"))
# Nobody else commits.
POLICY = Policy(compression=CompressionPolicy(mode="manual"), assemblies=AssemblyPolicy(mode="manual"))


class OwnDisk(StoppingDisk):
    """Stops at the calls of the test's own thread; the one that indexes makes its own when it likes."""

    def tap(self, name: str, args: Sequence[Any]) -> Any:
        if threading.current_thread() is threading.main_thread():
            return super().tap(name, args)
        if self.stopped:
            raise Stopped
        return getattr(self.inner, name)(*args)


class MirrorMachine(RuleBasedStateMachine):
    """What a person wrote is always on disk or in the ledger, and no edit is ever taken in twice."""

    def __init__(self) -> None:
        super().__init__()
        shared = Path("/dev/shm")
        self.root = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
        self.clock = SettableClock()
        self.written: set[str] = set()
        self.copied = Counter[str]()
        self.number = 0
        self.begin()
        self.account.mirror()

    @property
    def mirror(self) -> Path:
        return self.root / "nok" / "mirror"

    @property
    def knowledge(self) -> Path:
        return self.mirror / "semantic" / "knowledge"

    def begin(self) -> None:
        self.disk = OwnDisk(None)
        store = LocalStore(self.root / "nok", disk=self.disk)
        self.account = open_on(
            store, self.root / "nok" / "index", clock=self.clock, policy=POLICY, actor="human:nok"
        )

    def teardown(self) -> None:
        self.account.close()
        shutil.rmtree(self.root)

    def words(self, who: str) -> str:
        self.number += 1
        return f"{who} says number {self.number} ครั้ง"

    @rule(page=st.sampled_from(PAGES))
    def engine_remembers(self, page: str) -> None:
        memory = Memory(id="", kind="fact", text=self.words("engine"), category=page, at=self.clock())
        self.account.intake.write_many([Wrote(memory=memory)], cause="test", skip=frozenset({"duplicate"}))

    @precondition(lambda self: self.account.memories())
    @rule(data=st.data())
    def engine_revises(self, data: st.DataObject) -> None:
        memory = data.draw(st.sampled_from(self.account.memories()))
        self.account.revise(memory.id, text=self.words("engine"))

    @precondition(lambda self: self.account.memories())
    @rule(data=st.data())
    def engine_forgets(self, data: st.DataObject) -> None:
        self.account.forget(data.draw(st.sampled_from(self.account.memories())).id)

    @precondition(lambda self: self.account.memories())
    @rule(data=st.data(), page=st.sampled_from(PAGES), section=st.sampled_from(["", "Keys", "ประตู"]))
    def engine_moves(self, data: st.DataObject, page: str, section: str) -> None:
        memory = data.draw(st.sampled_from(self.account.memories()))
        self.account.revise(memory.id, category=page, data={"section": section})

    @rule()
    def engine_shows(self) -> None:
        self.account.mirror(self.mirror)

    @rule(page=st.sampled_from(PAGES))
    def person_adds(self, page: str) -> None:
        self.knowledge.mkdir(parents=True, exist_ok=True)
        text = self.words("person")
        self.written.add(text)
        with (self.knowledge / f"{page}.md").open("a") as file:
            file.write(f"\n- {text}\n")

    @precondition(lambda self: self.lines())
    @rule(data=st.data(), removes=st.booleans())
    def person_edits(self, data: st.DataObject, removes: bool) -> None:
        path, line = data.draw(st.sampled_from(self.lines()))
        said, caret, id_ = line.removeprefix("- ").rpartition(" ^")
        self.written.discard(said if caret else id_)  # the person's own will, from here on
        text = self.words("person")
        new = "" if removes else f"- {text}{caret}{id_ if caret else ''}"
        if not removes:
            self.written.add(text)
        path.write_text(path.read_text().replace(line, new, 1))

    @precondition(lambda self: self.lines())
    @rule(data=st.data(), page=st.sampled_from(PAGES), copies=st.booleans())
    def person_moves(self, data: st.DataObject, page: str, copies: bool) -> None:
        """A line goes somewhere else on its page, or to another one, or stands in both."""
        path, line = data.draw(st.sampled_from(self.lines()))
        there = self.knowledge / f"{page}.md"
        if copies:
            said, caret, id_ = line.removeprefix("- ").rpartition(" ^")
            self.copied[said if caret else id_] += 1
        else:
            left = path.read_text().split("\n")
            left.remove(line)
            path.write_text("\n".join(left))
            said = line.removeprefix("- ").rpartition(" ^")
            others = [
                one for _, one in self.lines() if one.removeprefix("- ").startswith(f"{said[0] or said[2]} ^")
            ]
            # A sync that was killed may have written it to the next file of its page: it stands twice.
            self.copied[said[0] or said[2]] += bool(others) and not said[1]
        lines = there.read_text().split("\n") if there.exists() else [""]
        first = 1 + max((n for n, one in enumerate(lines) if one == "---"), default=-1)
        place = data.draw(st.integers(first, len(lines)))
        there.write_text("\n".join([*lines[:place], line, *lines[place:]]))

    @precondition(lambda self: self.heads())
    @rule(data=st.data(), page=st.sampled_from((*PAGES, "ของใช้")))
    def person_renames(self, data: st.DataObject, page: str) -> None:
        """The head of a page says that it is another one."""
        path = data.draw(st.sampled_from(self.heads()))
        path.write_text(re.sub("^page: .*$", f"page: {page}", path.read_text(), count=1, flags=re.MULTILINE))

    def heads(self) -> list[Path]:
        pages = sorted(p for p in self.knowledge.glob("*.md") if "octavo" not in p.name)
        return [page for page in pages if page.read_text().startswith("---\npage: ")]

    def lines(self) -> list[tuple[Path, str]]:
        pages = sorted(p for p in self.knowledge.glob("*.md") if "octavo" not in p.name)
        return [(p, line) for p in pages for line in p.read_text().split("\n") if line.startswith("- ")]

    @rule(take=st.sampled_from([None, "theirs"]), stop=st.one_of(st.none(), st.integers(1, 60)))
    def syncs(self, take: str | None, stop: int | None) -> None:
        if stop is not None:
            self.disk.stop_at = len(self.disk.calls) + stop
        with suppress(Stopped):
            self.account.sync(self.mirror, commit=True, take=take)  # type: ignore[arg-type]
        self.disk.stop_at = None
        if self.disk.stopped:  # also where it was the work behind the sync that came so far
            self.account.close()
            self.begin()

    @rule()
    def settles(self) -> None:
        """A sync that decides everything leaves nothing to do, and the files say what the account says."""
        for page in self.heads():  # a name in a head waits until the person takes it back
            name = re.sub(r"-\d{4}$", "", page.stem)
            page.write_text(
                re.sub("^page: .*$", f"page: {name}", page.read_text(), count=1, flags=re.MULTILINE)
            )
        self.account.sync(self.mirror, commit=True, take="theirs", delete=True)
        again = self.account.sync(self.mirror, commit=True, take="theirs")
        assert (again.edits, again.conflicts, again.refused, again.written) == ((), (), (), ())
        told = sorted(line.removeprefix("- ").rpartition(" ^")[0] for _, line in self.lines())
        assert told == sorted(memory.text for memory in self.account.memories())
        shown = {p.name: p.read_bytes() for p in self.knowledge.glob("*.md") if b"- " in p.read_bytes()}
        fresh = Path(self.account.mirror(self.root / "fresh").folder) / "semantic" / "knowledge"
        assert shown == {p.name: p.read_bytes() for p in fresh.glob("*.md")}
        shutil.rmtree(self.root / "fresh")

    @invariant()
    def nothing_is_lost_and_nothing_comes_twice(self) -> None:
        live = [memory.text for memory in self.account.memories()]
        assert not [text for text, times in Counter(live).items() if times > 1 + self.copied[text]]
        ledger = {revision.memory.text for revision in self.account.revisions()}
        disk = "".join(p.read_text() for p in self.knowledge.glob("*.md")) if self.knowledge.exists() else ""
        assert not [text for text in self.written if text not in ledger and text not in disk]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_mirror_that_is_killed_at_any_step_leaves_its_file_old_or_new(tmp_path: Path) -> None:
    store = LocalStore(tmp_path / "nok")
    steps, page, old = 0, tmp_path / "nok/mirror/semantic/knowledge/objects.md", "กุญแจอยู่ในครัว"
    with open_on(store, tmp_path / "index", policy=POLICY, actor="human:nok") as account:
        id_ = account.remember(old, category="objects").or_raise().id
        account.mirror()
    while True:
        new, steps = f"กุญแจย้ายไปที่ {steps * 7919}", steps + 1
        before = page.read_bytes()
        disk = OwnDisk(None, torn=True)
        account = open_on(
            LocalStore(tmp_path / "nok", disk=disk), tmp_path / "index", policy=POLICY, actor="human:nok"
        )
        account.revise(id_, text=new)
        disk.stop_at = len(disk.calls) + steps
        with suppress(Stopped):
            account.mirror()
        assert page.read_bytes() in (before, before.replace(old.encode(), new.encode()))
        is_whole, disk.stop_at = not disk.stopped, None
        with suppress(Stopped):
            account.close()
        if is_whole:
            break
        with open_on(
            LocalStore(tmp_path / "nok"), tmp_path / "index", policy=POLICY, actor="human:nok"
        ) as account:
            account.mirror()
            assert account.sync().edits == ()
        assert page.read_bytes() == before.replace(old.encode(), new.encode())
        old = new
    assert steps > 20


# A kill ends the thread that indexes as well.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("blocks", [1000, 2])  # on a page; with two, most pages are several files
def test_a_person_the_engine_and_kills_never_lose_a_word_or_apply_an_edit_twice(
    blocks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_places, "BLOCKS", blocks)
    run_state_machine_as_test(
        MirrorMachine,
        settings=settings(
            max_examples=EXAMPLES,
            stateful_step_count=20,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("shows", [False, True])
@pytest.mark.parametrize("what", ["moves", "moves a copy", "edits", "removes", "renames"])
def test_what_a_person_does_to_new_lines_after_a_sync_that_was_killed_is_an_edit_of_them(
    what: str, shows: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mirror_places, "BLOCKS", 1)
    line, taken = "- กุญแจอยู่ในครัว", 0
    for stop in range(2, 80, 3):
        machine = MirrorMachine()
        there, other = (machine.knowledge / f"{page}.md" for page in PAGES)
        there.parent.mkdir(parents=True, exist_ok=True)
        there.write_text(f"- ลาวาร้อนมาก\n{line}\n")
        if what == "moves a copy":
            other.write_text(f"{line}\n")
        machine.syncs(stop=stop, take=None)
        taken += bool(machine.account.memories()) and "^" not in there.read_text()
        page = there.read_text()
        (mine,) = (
            (said for path, said in machine.lines() if path == there and line in said)
            if line in page
            else ("",)
        )
        if mine and what in ("moves", "moves a copy"):
            with other.open("a") as file:
                file.write(f"{mine}\n")
        match what:
            case "edits":
                there.write_text(page.replace("ครัว", "สวน"))
            case "renames":
                there.rename(there.with_stem("plants"))
            case _:
                there.write_text(page.replace(mine, ""))
        wanted = sorted(said.removeprefix("- ").partition(" ^")[0] for _, said in machine.lines())
        if shows:
            machine.engine_shows()
        machine.syncs(stop=None, take=None)
        lines = sorted(said.removeprefix("- ").partition(" ^")[0] for _, said in machine.lines())
        assert sorted(memory.text for memory in machine.account.memories()) == lines == wanted
        again = machine.account.sync(machine.mirror)
        assert (again.edits, again.conflicts, again.refused) == ((), (), ())
        machine.teardown()
    assert taken > 3
