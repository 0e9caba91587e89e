"""Assemblies under anything: random acts against a model, stops at every file operation, failing parts."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import octavo
from octavo.documents.synthians.explaining import vectors_of
from octavo.domain.assembling import members_of
from octavo.errors import ModelFailed, StoreFull
from octavo.storage import composites
from octavo.storage.stores.local import LocalStore
from octavo.testing import Stopped, StoppingDisk, open_on
from octavo.testing.clocks import SettableClock
from test_assemblies import POTTERY, SURGERY, Subjects, lift, manual, remember

ASKED = "pottery class and surgery of mother"


def live(account):
    """The live assemblies: of each its members that are live too, and what it was merged from."""
    found = {}
    for memory in account.memories(kind="assembly"):
        members = tuple(id_ for id_ in members_of(memory) if account.get(id_))
        found[memory.id] = (members, memory.linked("merged_from"))
    return found


def composites_of(account, embedder, id_):
    """The composites that numpy makes of the members' texts as they are now; one may lack its vector yet."""
    texts = [m.text for m in account.explained.assembly(id_).members]
    vectors = np.array([embedder._one(text) for text in texts])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    for size in range(len(texts), 1, -1):
        for some in combinations(range(len(texts)), size):
            total = vectors[list(some)].sum(axis=0)
            yield total / np.linalg.norm(total)


def check_no_stale_boost(account, embedder):
    """Every lift comes from an assembly whose composite is what its members make it at this moment."""
    hits = account.recall(ASKED, k=20)
    for id_ in {hit.assembly for hit in hits if hit.parts.get("assembly")}:
        held = np.array(vectors_of(account, account.explained.found(id_)).get(id_, []))
        assert any(np.allclose(held, right, atol=2e-3) for right in composites_of(account, embedder, id_))
    return max(lift(hits).values(), default=0.0)


class Assemblies(RuleBasedStateMachine):
    """Join, merge, unmerge, forget, revise, redact, restore and reopen, beside a dict that does the same."""

    @initialize()
    def begin(self):
        self.folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"octavo-machine-{os.getpid()}-{id(self)}"
        self.embedder, self.clock = Subjects(), SettableClock()
        self.account = self.opened()
        self.ids = remember(self.account, *POTTERY, *SURGERY)
        self.model = {}  # of each live assembly: its members, and what it was merged from
        self.ended = {}  # of each source of a merge: its members when it ended
        self.gone = set()
        self.states = {}
        self.note()

    def opened(self):
        return octavo.open(
            self.folder,
            "User01",
            actor="human:you",
            embedder=self.embedder,
            clock=self.clock,
            policy=manual(max_members=8),
        )

    def note(self):
        self.states[self.account.version] = (dict(self.model), dict(self.ended), set(self.gone))

    def pick(self, number, count=1):
        names = sorted(self.model)
        return [names[(number + n) % len(names)] for n in range(count)]

    @rule(number=st.integers(0, 50), size=st.integers(2, 3))
    def group(self, number, size):
        able = [id_ for id_ in self.ids if id_ not in self.gone]
        if len(able) < size:
            return
        chosen = [able[(number + n) % len(able)] for n in range(size)]
        (made,) = self.account.assemble(*chosen, name=f"group {number}")
        self.model[made.id] = (tuple(chosen), ())
        self.note()

    @precondition(lambda self: self.model)
    @rule(number=st.integers(0, 50))
    def join(self, number):
        (id_,) = self.pick(number)
        members, parents = self.model[id_]
        able = [m for m in self.ids if m not in self.gone and m not in members]
        if not able:
            return
        links = {"part": [*members, able[0]], **({"merged_from": list(parents)} if parents else {})}
        self.account.revise(id_, links=links)
        self.model[id_] = ((*members, able[0]), parents)
        self.note()

    @precondition(lambda self: len(self.model) > 1)
    @rule(number=st.integers(0, 50))
    def merge(self, number):
        one, two = self.pick(number, 2)
        members = tuple(dict.fromkeys((*self.model[one][0], *self.model[two][0])))
        if len(members) < 2:
            return
        made = self.account.merge_assemblies(one, two)
        self.ended[one], self.ended[two] = self.model.pop(one), self.model.pop(two)
        self.model[made.id] = (members, (one, two))
        self.note()

    @precondition(lambda self: any(parents for _, parents in self.model.values()))
    @rule(number=st.integers(0, 50))
    def unmerge(self, number):
        able = sorted(id_ for id_, (_, parents) in self.model.items() if parents)
        id_ = able[number % len(able)]
        revived = self.account.unmerge(id_)
        _, parents = self.model.pop(id_)
        assert set(revived) == {p for p in parents if p in self.ended}
        for parent in revived:
            members, above = self.ended.pop(parent)
            self.model[parent] = (tuple(m for m in members if m not in self.gone), above)
        self.note()

    @rule(number=st.integers(0, 50), text=st.sampled_from(("pottery and surgery", "a surgery of pottery")))
    def revise(self, number, text):
        able = [id_ for id_ in self.ids if id_ not in self.gone]
        if able:
            self.account.revise(able[number % len(able)], text=f"{text} {self.account.version}")
            self.note()

    @rule(number=st.integers(0, 50))
    def forget(self, number):
        able = [id_ for id_ in self.ids if id_ not in self.gone]
        if len(able) < 3:
            return
        id_ = able[number % len(able)]
        self.account.forget(id_)
        self._lose(id_)
        self.note()

    @rule(number=st.integers(0, 50))
    def redact(self, number):
        """What is erased takes every assembly that ever held it along, no older version brings it back."""
        able = [id_ for id_ in self.ids if id_ not in self.gone]
        if len(able) < 4:
            return
        id_ = able[number % len(able)]
        self.account.redact(id_, reason="a test")
        for known in (self.model, self.ended):
            for key in [key for key, (members, _) in known.items() if id_ in members]:
                del known[key]
        self.gone.add(id_)
        self.states = {}
        self.note()

    def _lose(self, id_):
        self.gone.add(id_)
        self.model = {
            key: (tuple(m for m in members if m != id_), parents)
            for key, (members, parents) in self.model.items()
        }

    @precondition(lambda self: len(self.states) > 2)
    @rule(number=st.integers(0, 50))
    def restore(self, number):
        versions = sorted(self.states)
        version = versions[number % len(versions)]
        self.account.restore(version)
        self.model, self.ended, self.gone = (type(part)(part) for part in self.states[version])
        self.note()

    @rule()
    def reopen(self):
        self.account.close()
        self.account = self.opened()

    @rule()
    def lose_the_index(self):
        self.account.close()
        for folder in [path for path in self.folder.rglob("index") if path.is_dir()]:
            shutil.rmtree(folder)
        self.account = self.opened()

    @rule(fails=st.booleans())
    def catch_up(self, fails):
        self.embedder.fails = fails
        try:
            self.account.catch_up(force=True)
        except ModelFailed:
            assert fails
        self.embedder.fails = False

    @invariant()
    def the_account_is_the_model(self):
        if not hasattr(self, "account"):
            return
        found = live(self.account)
        assert found == self.model
        assert not any(parent in found for _, parents in found.values() for parent in parents)

    @invariant()
    def no_boost_is_stale(self):
        if hasattr(self, "account"):
            check_no_stale_boost(self.account, self.embedder)

    def teardown(self):
        if hasattr(self, "account"):
            self.account.close()
            shutil.rmtree(self.folder)


TestAssemblies = Assemblies.TestCase
TestAssemblies.settings = settings(max_examples=12, stateful_step_count=20, deadline=None)


@pytest.fixture(scope="module")
def two(tmp_path_factory):
    """An account with two assemblies, and with a third that a merge made: folder, and their ids."""
    root = tmp_path_factory.mktemp("two")
    with octavo.open(root, "default", actor="human:you", embedder=False, policy=manual()) as account:
        ids = remember(account, *POTTERY, *SURGERY)
        made = [account.assemble(*ids[n : n + 2], name=f"n{n}")[0].id for n in (0, 1, 2, 3)]
        whole = account.merge_assemblies(made[2], made[3]).id
    return root / "default", made, whole


@pytest.mark.parametrize("act", ["merge", "unmerge"])
def test_a_merge_stopped_at_any_file_operation_never_leaves_both_and_loses_no_member(act, two, tmp_path):
    folder, (one, other, *sources), whole = two
    number, is_done = 0, False
    while not is_done:
        number += 1
        copy = shutil.copytree(folder, tmp_path / f"{number}" / "default")
        disk, account = StoppingDisk(number), None
        try:
            account = open_on(LocalStore(copy, disk=disk), copy / "index")
            _ = account.merge_assemblies(one, other) if act == "merge" else account.unmerge(whole)
            is_done = True
        except Stopped:
            pass
        finally:
            if account is not None:
                account.close()
            disk.kill()
        with octavo.open(copy.parent, "default", actor="human:you", embedder=False) as again:
            found = live(again)
            assert not any(parent in found for _, parents in found.values() for parent in parents)
            if act == "merge":
                joined = [members for members, parents in found.values() if parents == (one, other)]
                assert ({one, other} <= found.keys()) != bool(joined)
                assert not joined or len(joined[0]) == 3
            else:
                assert ({whole} <= found.keys()) != (set(sources) <= found.keys())
            assert again.check()
    assert number > 5


_MERGER = """
import sys
import octavo
from octavo.domain.policy import AssemblyPolicy, Policy
policy = Policy(assemblies=AssemblyPolicy(mode="manual"))
with octavo.open(sys.argv[1], "default", actor="human:you", embedder=False, policy=policy) as account:
    one, two = sys.argv[2:]
    print("ready", flush=True)
    while True:
        whole = account.merge_assemblies(one, two).id
        account.unmerge(whole)
        print("round", flush=True)
"""


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_process_killed_while_it_merges_leaves_one_or_the_other(rounds, two, tmp_path):
    folder, (one, other, *_), _ = two
    copy = shutil.copytree(folder, tmp_path / "default")
    command = [sys.executable, "-c", _MERGER, str(copy.parent), one, other]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    for _ in range(rounds + 1):
        assert process.stdout.readline().strip() in ("ready", "round")
    process.send_signal(signal.SIGKILL)
    process.communicate()
    with octavo.open(copy.parent, "default", actor="human:you", embedder=False) as again:
        found = live(again)
        is_merged = any(parents == (one, other) for _, parents in found.values())
        assert is_merged != ({one, other} <= found.keys())
        assert again.check()


class Faulty:
    """The n-th durable write of a derived file fails, as a full disk or a torn cable makes it."""

    def __init__(self, monkeypatch, at):
        self.left, self.failed = at, False
        self.real = os.fsync
        monkeypatch.setattr(os, "fsync", self)

    def __call__(self, descriptor):
        self.left -= 1
        if self.left == 0:
            self.failed = True
            raise OSError(28, "no space left on device")
        return self.real(descriptor)


@pytest.mark.parametrize("change", ["member", "assembly", "forget", "merge"])
def test_no_boost_is_stale_when_the_disk_fails_at_any_write_of_the_index(change, opened, monkeypatch, root):
    """Whatever write fails after a change, the lift is none or the right one; afterwards it comes back."""
    embedder, clock = Subjects(), SettableClock()
    account = opened(embedder=embedder, clock=clock, policy=manual())
    ids = remember(account, *POTTERY, *SURGERY)
    made = account.assemble()
    at, is_through = 0, False
    while not is_through:
        at += 1
        if change == "member":
            account.revise(ids[0], text=f"Anna has pottery class number {at}")
        elif change == "assembly":
            account.revise(made[0].id, tags=[f"t{at}"])
        elif change == "forget":
            account.forget(remember(account, f"the surgery of mother was on day {at}")[0])
        else:
            one, two = (account.assemble(*ids[n : n + 2], name=f"{n} {at}")[0].id for n in (0, 1))
            account.forget(account.merge_assemblies(one, two).id)
        with monkeypatch.context() as patch:
            fault = Faulty(patch, at)
            try:
                account.catch_up(force=True)
            except StoreFull:
                assert fault.failed
            check_no_stale_boost(account, embedder)
            is_through = not fault.failed
    assert at > 1
    account.catch_up(force=True)
    assert check_no_stale_boost(account, embedder) > 0
    assert account.check(), account.check().problems


@pytest.mark.parametrize("is_torn", [True, False])
def test_no_boost_is_stale_when_composites_are_torn_or_put_back_from_before(is_torn, opened, root):
    embedder = Subjects()
    account = opened(embedder=embedder, clock=SettableClock(), policy=manual())
    ids = remember(account, *POTTERY, *SURGERY)
    account.assemble()
    account.catch_up()
    path = account._indexing.embedding.folder / composites.FILE
    kept = path.read_bytes()
    account.revise(ids[1], text="mother has a pottery class after her surgery")
    account.catch_up()
    path.write_bytes(path.read_bytes()[:-5] if is_torn else kept)
    check_no_stale_boost(account, embedder)
    again = opened(embedder=embedder, clock=SettableClock(), policy=manual())
    check_no_stale_boost(again, embedder)
    again.reindex()
    assert check_no_stale_boost(again, embedder) > 0


def test_no_boost_is_stale_while_the_embedder_fails_and_what_waits_survives_a_restart(opened):
    embedder, clock = Subjects(), SettableClock()
    account = opened(embedder=embedder, clock=clock, policy=manual())
    ids = remember(account, *POTTERY)
    account.assemble()
    assert check_no_stale_boost(account, embedder) > 0
    text = "Anna has a pottery class again"
    embedder.poison = text
    account.revise(ids[0], text=text)
    account.catch_up()
    for _ in range(6):  # from the first attempt to the dead letter, a restart between each
        check_no_stale_boost(account, embedder)
        account.close()
        clock.advance(minutes=15)
        account = opened(embedder=embedder, clock=clock, policy=manual())
        account.catch_up()
    assert account.lag().dead == 1
    embedder.poison = None
    clock.advance(hours=1)
    account.catch_up()
    assert account.lag().dead == 1  # by itself nothing tries it again
    account.catch_up(force=True)
    assert account.lag().dead == 0
    assert account.upkeep().problems == ()
    assert check_no_stale_boost(account, embedder) > 0


def test_forcing_tries_at_once_what_waits_for_its_next_attempt(opened):
    embedder = Subjects()
    account = opened(embedder=embedder, clock=SettableClock(), policy=manual())
    embedder.poison = POTTERY[0]
    remember(account, *POTTERY)
    account.catch_up()
    embedder.poison = None
    account.catch_up()
    assert account.lag().waiting == 1  # it is not due yet
    account.catch_up(force=True)
    assert account.lag().waiting == 0
