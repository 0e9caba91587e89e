"""An account equals a plain dictionary under random sandboxes, crashes, reopenings, restores and forgets."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import octavo
from octavo.domain.compression import CompressionPolicy
from octavo.domain.ports import Store
from octavo.errors import SandboxClosed
from octavo.storage import buffers
from octavo.storage.stores.local import LocalStore
from octavo.testing import MemoryStore, SettableClock, Stopped, StoppingDisk, StoppingStore, open_on

# Far enough from one another that none restates or contrasts with another.
FACTS = (
    "มะลิชอบดื่มชาเขียวตอนเช้า",
    "the boat leaves from Krabi harbour",
    "ปลาทองว่ายน้ำในโหลแก้ว",
    "violins are tuned in fifths",
    "กาแฟดอยช้างหอมมาก",
    "the library closes on Sundays",
)
TOPICS = ("home", "งาน", "mood")
BY_HAND = octavo.Policy(compression=CompressionPolicy(mode="manual"))  # the model knows no cores
WORDS = ("สวัสดี", "hello there", "แล้วเจอกัน", "see you")


@dataclass
class Draft:
    """What the model knows of an open sandbox: its id and what was acknowledged into it."""

    id: str
    turns: list[tuple[str, str]] = field(default_factory=list)
    facts: list[str] = field(default_factory=list)
    registers: dict[str, str] = field(default_factory=dict)
    states: dict[str, dict] = field(default_factory=dict)


@dataclass
class World:
    """A version in plain dictionaries: facts and episodes by text, registers and states by topic."""

    facts: dict[str, str] = field(default_factory=dict)
    registers: dict[str, str] = field(default_factory=dict)
    states: dict[str, dict] = field(default_factory=dict)
    said: list[tuple[str, str]] = field(default_factory=list)

    def copy(self) -> World:
        return World(dict(self.facts), dict(self.registers), dict(self.states), list(self.said))


def world_of(account: octavo.Account | octavo.engine.reading.Snapshot) -> World:
    memories = account.memories()
    return World(
        {m.text: m.id for m in memories if m.kind == "fact"},
        {m.topic: m.text for m in memories if m.kind == "register" and m.category != "state"},
        {m.topic: dict(m.data) for m in memories if m.category == "state"},
        sorted((t.speaker, t.text) for m in memories if m.kind == "episode" for t in m.turns),
    )


class AccountMachine(RuleBasedStateMachine):
    """Every step happens to the account and to the model; after each, they are equal."""

    sandboxes = Bundle("sandboxes")

    def __init__(self) -> None:
        super().__init__()
        shared = Path("/dev/shm")
        self.root = Path(tempfile.mkdtemp(dir=shared if shared.is_dir() else None))
        self.clock = SettableClock()
        self.versions = [World()]
        self.held: dict[str, octavo.Sandbox] = {}
        self.drafts: dict[str, Draft] = {}
        self.number = self.indexes = 0
        self.begin()

    def teardown(self) -> None:
        for sandbox in self.held.values():
            sandbox.close()
        self.account.close()
        shutil.rmtree(self.root, ignore_errors=True)

    def begin(self) -> None:
        store = self.store()
        self.account = open_on(store, self.root / f"index {self.indexes}", clock=self.clock, policy=BY_HAND)

    def store(self) -> Store:
        """A handle on the machine's store; `dying` is what can be stopped of it."""
        self.dying = StoppingDisk(None)
        return LocalStore(self.root / "default", disk=self.dying)

    @property
    def now(self) -> World:
        return self.versions[-1]

    def sandbox(self, draft: Draft) -> octavo.Sandbox:
        if draft.id not in self.held:
            self.held[draft.id] = self.account.resume(draft.id)
        return self.held[draft.id]

    @rule(target=sandboxes)
    def open_sandbox(self) -> Draft:
        sandbox = self.account.sandbox(f"แซนด์บ็อกซ์ {len(self.drafts)}")
        draft = self.drafts[sandbox.id] = Draft(sandbox.id)
        self.held[sandbox.id] = sandbox
        return draft

    @rule(draft=sandboxes, speaker=st.sampled_from(["user", "assistant", "มะลิ"]), text=st.sampled_from(WORDS))
    def speak(self, draft: Draft, speaker: str, text: str) -> None:
        if draft.id in self.drafts:
            self.number += 1
            self.sandbox(draft).turn(speaker, f"{text} {self.number}")
            draft.turns.append((speaker, f"{text} {self.number}"))

    @rule(draft=sandboxes, text=st.sampled_from(FACTS))
    def note_fact(self, draft: Draft, text: str) -> None:
        if draft.id in self.drafts:
            self.sandbox(draft).remember(text, confidence=0.9)
            draft.facts.append(text)

    @rule(draft=sandboxes, topic=st.sampled_from(TOPICS), text=st.sampled_from(WORDS))
    def note_register(self, draft: Draft, topic: str, text: str) -> None:
        if draft.id in self.drafts:
            self.sandbox(draft).remember(text, kind="register", topic=topic)
            draft.registers[topic] = text

    @rule(draft=sandboxes, name=st.sampled_from(["ire_state", "ehm_state"]), n=st.integers(0, 5))
    def note_state(self, draft: Draft, name: str, n: int) -> None:
        if draft.id in self.drafts:
            self.sandbox(draft).update_state(name, {"สงบ": n})
            draft.states[name] = {"สงบ": n}

    @rule(draft=sandboxes)
    def see_only_the_parent_and_its_own(self, draft: Draft) -> None:
        if draft.id not in self.drafts:
            return
        sandbox = self.sandbox(draft)
        seen, parent = world_of(sandbox), self.versions[sandbox.parent_version]
        assert seen.registers == parent.registers | draft.registers
        assert seen.states == parent.states | draft.states
        assert seen.said == sorted(parent.said + draft.turns)
        assert set(seen.facts) == set(parent.facts) | set(draft.facts)

    @rule(draft=sandboxes)
    def consolidate(self, draft: Draft) -> None:
        if draft.id not in self.drafts:
            return
        sandbox = self.sandbox(draft)
        result = sandbox.consolidate()
        assert sandbox.consolidate() == result
        self.commit_draft(draft, result.version)
        with pytest.raises(SandboxClosed):
            sandbox.turn("user", "too late")

    def commit_draft(self, draft: Draft, version: int) -> None:
        """What the model says about a consolidation: facts join, the latest register and state win."""
        after = self.now.copy()
        after.facts |= {text: after.facts.get(text, "new") for text in draft.facts}
        after.registers |= draft.registers
        after.states |= draft.states
        after.said = sorted(after.said + draft.turns)
        self.forget_draft(draft)
        if version == len(self.versions):
            self.versions.append(after)
        else:  # nothing new was said, so there is no version
            assert version == len(self.versions) - 1
            assert (after.registers, after.states, after.said) == (
                self.now.registers,
                self.now.states,
                self.now.said,
            )
        self.learn_ids()

    def forget_draft(self, draft: Draft) -> None:
        del self.drafts[draft.id]
        self.held.pop(draft.id, None)

    def learn_ids(self) -> None:
        found = world_of(self.account).facts
        assert set(found) == set(self.now.facts)
        self.now.facts = found

    @rule(draft=sandboxes)
    def discard(self, draft: Draft) -> None:
        if draft.id in self.drafts:
            self.sandbox(draft).discard()
            self.forget_draft(draft)

    @rule(text=st.sampled_from(FACTS))
    def remember_fact(self, text: str) -> None:
        before = self.account.version
        assert self.account.remember(text, confidence=0.9)
        after = self.now.copy()
        after.facts.setdefault(text, "new")
        if self.account.version > before:
            self.versions.append(after)
        self.learn_ids()

    @rule(topic=st.sampled_from(TOPICS), text=st.sampled_from(WORDS))
    def remember_register(self, topic: str, text: str) -> None:
        assert self.account.remember(text, kind="register", topic=topic)
        if self.now.registers.get(topic) != text:
            after = self.now.copy()
            after.registers[topic] = text
            self.versions.append(after)

    @precondition(lambda self: self.now.facts)
    @rule(data=st.data())
    def forget(self, data: st.DataObject) -> None:
        text = data.draw(st.sampled_from(sorted(self.now.facts)))
        assert self.account.forget(self.now.facts[text])[0]
        after = self.now.copy()
        del after.facts[text]
        self.versions.append(after)

    @precondition(lambda self: self.now.registers)
    @rule(data=st.data(), text=st.sampled_from(WORDS))
    def revise(self, data: st.DataObject, text: str) -> None:
        topic = data.draw(st.sampled_from(sorted(self.now.registers)))
        [memory] = self.account.memories(topic=topic)
        assert self.account.revise(memory.id, text=text)
        if self.now.registers[topic] != text:
            after = self.now.copy()
            after.registers[topic] = text
            self.versions.append(after)

    @rule(data=st.data())
    def restore(self, data: st.DataObject) -> None:
        target = data.draw(st.integers(0, len(self.versions) - 1))
        before = self.account.version
        self.account.restore(target)
        if self.account.version > before:
            self.versions.append(self.versions[target].copy())
        assert world_of(self.account) == self.versions[target]

    @rule(hours=st.integers(-2, 5))
    def time_passes(self, hours: int) -> None:
        self.clock.advance(hours=hours)

    @rule()
    def reopen(self) -> None:
        for sandbox in self.held.values():
            sandbox.close()
        self.held.clear()
        self.account.close()
        self.begin()

    @rule(keep_index=st.booleans())
    def crash(self, keep_index: bool) -> None:
        """Nothing is closed by us; the kernel closes the files of a dead process."""
        self.dying.kill()
        self.held.clear()
        self.account._spine.state.close()
        if not keep_index:
            self.indexes += 1  # as if it were gone; whoever died may still be busy in the old one
        self.begin()

    @rule(draft=sandboxes, call=st.integers(1, 30))
    def crash_while_consolidating(self, draft: Draft, call: int) -> None:
        if draft.id not in self.drafts:
            return
        self.sandbox(draft)
        self.dying.stop_at = len(self.dying.calls) + call
        with suppress(Stopped):
            self.held[draft.id].consolidate()
        self.crash(keep_index=True)
        left = draft.id in [s.id for s in self.account.sandboxes()]
        if left or self.account.version == len(self.versions):
            result = self.account.resume(draft.id).consolidate()
            self.commit_draft(draft, result.version)
        else:  # an empty sandbox closes without a version
            self.commit_draft(draft, self.account.version)

    @invariant()
    def the_account_is_the_model(self) -> None:
        assert self.account.version == len(self.versions) - 1
        assert world_of(self.account) == self.now
        assert {s.id for s in self.account.sandboxes()} == set(self.drafts)

    @rule(data=st.data())
    def read_an_older_version(self, data: st.DataObject) -> None:
        version = data.draw(st.integers(0, len(self.versions) - 1))
        assert world_of(self.account.at(version)) == self.versions[version]

    @rule()
    def check(self) -> None:
        report = self.account.check()
        assert report, report.problems


def run_machine(examples: int, open_store: Callable[[str], Store] | None = None) -> None:
    """Play that many lives in local folders, or on stores of another kind, a name for each."""

    class Machine(AccountMachine):
        def store(self) -> Store:
            self.dying = StoppingStore(open_store(f"machine {self.root.name}"))
            return self.dying

    run_state_machine_as_test(
        Machine if open_store else AccountMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            deadline=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
def test_an_account_equals_a_plain_dictionary_whatever_happens():
    run_machine(60)


def test_an_account_in_memory_equals_a_plain_dictionary_whatever_happens(monkeypatch):
    monkeypatch.setattr(buffers, "LEASE_SECONDS", 0.0)  # of who died; the living are never followed here
    stores: dict[str, MemoryStore] = {}
    run_machine(20, lambda name: stores.setdefault(name, MemoryStore()))
