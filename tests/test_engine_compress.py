"""Eight sessions to a core, eight cores to a sphere: once each, whole or not at all, undone and remade."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from msgspec.structs import replace

import octavo
from octavo.domain import cores
from octavo.domain.compression import CompressionPolicy
from octavo.domain.cores import is_intact
from octavo.engine import compress, handle
from octavo.engine.indexing import Indexing
from octavo.errors import BadInput, ModelFailed, NotFound
from octavo.models.summarisers import Summariser
from octavo.storage.stores.local import LocalStore
from octavo.testing import Stopped, StoppingDisk, open_on

MANUAL = octavo.Policy(compression=CompressionPolicy(mode="manual"))
NOW = octavo.Policy(compression=CompressionPolicy(mode="immediate"))


def live(account, sessions, scope="shared", *, say=None, start=0):
    for n in range(start, start + sessions):
        with account.sandbox(f"S{n}", scope=scope) as sandbox:
            sandbox.turn("user", say or f"I decided to plant {n} mango trees behind the house in Chiang Mai.")
            sandbox.turn("assistant", "That will be a lovely garden.")
            sandbox.turn("user", "เมื่อวานฉันไปตลาดกับแม่และซื้อมะม่วง", salience=0.85 if n % 8 == 3 else 0.4)


def made(account):
    return [memory.id for memory in account.memories(kind=["core", "sphere"])]


@pytest.mark.parametrize(
    ("sessions", "cores", "spheres", "counted"),
    [
        (7, 0, 0, (7, 0, 0)),
        (8, 1, 0, (0, 1, 0)),
        (10, 1, 0, (2, 1, 0)),
        (16, 2, 0, (0, 2, 0)),
        (64, 8, 1, (0, 0, 1)),
        (65, 8, 1, (1, 0, 1)),
        (72, 9, 1, (0, 1, 1)),
    ],
)
def test_cores_and_spheres_follow_from_the_number_of_sessions(opened, sessions, cores, spheres, counted):
    account = opened(policy=MANUAL)
    live(account, sessions)
    account.compress()
    found = account.counters()
    assert (found["Session_seq"], found["Core_seq"], found["Sphere_seq"]) == counted
    assert found["Total_sessions"] == sessions
    ids = [f"core_{n // 8:03d}_{n % 8:03d}" for n in range(cores)] + ["sphere_000"] * spheres
    assert sorted(made(account)) == sorted(ids)
    assert account.compress() == []


def test_a_core_names_its_eight_sessions_and_every_source(opened):
    account = opened(policy=NOW)
    live(account, 8)
    memory = account.get("core_000_000")
    core = cores.read(cores.Core, memory.data)
    assert core.source_sessions == tuple(s.sandbox for s in account.sessions())
    assert set(memory.linked("part")) == {m.id for m in account.memories(kind="episode")}
    assert is_intact(core)
    assert core.meta.compression_method == "statistical_aggregation"
    assert len(core.milestones) == 1
    assert any("มะม่วง" in event.event for event in core.compressed_narrative.key_events) or any(
        "มะม่วง" in anchor.phrase for anchor in core.salience_anchors
    )
    assert "mango" in memory.text


def test_a_sphere_lists_its_cores_and_its_beliefs_wait_for_a_person(opened):
    account = opened(policy=NOW)
    live(account, 64, say="I always drink green tea in the morning with my sister Anna.")
    sphere = cores.read(cores.Sphere, account.get("sphere_000").data)
    assert sphere.source_cores == tuple(f"core_000_{n:03d}" for n in range(8))
    assert (sphere.session_count, sphere.core_count) == (64, 8)
    assert sphere.abstracted_knowledge.relationship_evolution is None
    waiting = account.proposals()
    assert waiting
    assert {(p.memory.kind, p.memory.category) for p in waiting} == {("canon", "worldview")}
    assert account.memories(kind="canon") == []
    belief = account.approve(waiting[0].id)
    assert (belief.category, belief.approved) == ("worldview", "human:you")


def test_a_session_of_twenty_episodes_counts_once_and_so_does_one_closed_twice(account):
    with account.sandbox() as sandbox:
        for n in range(20):
            sandbox.turn("user", f"line {n}")
            sandbox.turn("assistant", "yes")
    assert account.counters()["Session_seq"] == 1
    sandbox.consolidate()
    account.resume(sandbox.id).consolidate()
    assert account.counters()["Total_sessions"] == 1


def test_the_worker_makes_the_core_while_consolidation_returns_at_once(account):
    live(account, 8)
    assert account.wait(60)
    assert made(account) == ["core_000_000"]
    assert account.counters()["last_update"] is not None


def test_the_worker_looks_again_only_at_what_may_be_due_since(account, monkeypatch):
    def worked(act):
        looked.clear()
        act()
        assert account.wait(60)
        return list(looked)

    looked, make = [], compress.make
    live(account, 16)
    assert account.wait(60)
    account.remember("the garden grows")
    assert account.wait(60)
    monkeypatch.setattr(compress, "make", lambda *of, **more: looked.append(of[2].id) or make(*of, **more))
    assert worked(lambda: account.remember("มะม่วงสุกแล้ว")) == []
    assert worked(lambda: live(account, 7, start=16)) == []
    assert worked(lambda: live(account, 1, start=23))[0] == "core_000_002"
    source = account.get("core_000_000").linked("part")[0]
    worked(lambda: account.forget(source))
    assert source not in account.get("core_000_000").linked("part")
    account.uncompress("core_000_001")
    worked(lambda: account.remember("the garden sleeps"))
    assert made(account) == ["core_000_000", "core_000_002"]


def test_without_a_worker_upkeep_makes_what_is_due(opened):
    account = opened(policy=MANUAL)
    live(account, 8)
    later = opened(policy=octavo.Policy())
    assert later.upkeep().made == ("core_000_000",)


def test_scopes_never_mix_and_their_ids_never_collide(opened):
    account = opened(policy=NOW)
    live(account, 8)
    live(account, 8, scope="orion", say="orion keeps this secret plan about the harbour")
    assert sorted(made(account)) == ["core_000_000", "core_000_000@orion"]
    elysia = opened("agent:elysia", scope="elysia")
    assert made(elysia) == ["core_000_000"]
    assert "harbour" not in elysia.get("core_000_000").text
    assert account.get("core_000_000@orion").scope == "orion"


def test_a_removed_core_stays_removed_until_asked_for_and_is_then_the_same(opened):
    account = opened(policy=NOW)
    live(account, 64)
    before = account.get("core_000_002")
    assert account.uncompress("core_000_002") == ["core_000_002", "sphere_000"]
    assert account.upkeep().made == ()
    assert len(account.memories(kind="episode")) == 128
    (again,) = account.compress("core_000_002")
    assert (again.text, again.data, again.links) == (before.text, before.data, before.links)
    account.compress("sphere_000")
    assert "sphere_000" in made(account)
    with pytest.raises(BadInput):
        account.compress("core_000_002")
    with pytest.raises(NotFound):
        account.compress("core_004_004")
    with pytest.raises(BadInput):
        account.compress("episode_1")
    with pytest.raises(NotFound):
        account.uncompress("core_004_004")


def test_a_summary_is_the_same_in_every_process(opened, root):
    account = opened(policy=NOW)
    live(account, 8)
    text, data = account.get("core_000_000").text, account.get("core_000_000").data
    script = (
        "import octavo, sys, json\n"
        "a = octavo.open(sys.argv[1], 'User01', actor='human:you')\n"
        "a.uncompress('core_000_000')\n"
        "m = a.compress('core_000_000')[0]\n"
        "print(json.dumps([m.text, dict(m.data)], sort_keys=True))\n"
    )
    for seed in ("1", "2"):
        done = subprocess.run(
            [sys.executable, "-c", script, root],
            env={"PYTHONHASHSEED": seed, "PATH": "/usr/bin:/bin", "PYTHONPATH": os.pathsep.join(sys.path)},
            capture_output=True,
            text=True,
            check=True,
        )
        assert octavo.storage.codec.decode_json(done.stdout.encode()) == [text, data]


def test_two_processes_never_make_the_same_core_twice(opened, root):
    account = opened(policy=MANUAL)
    live(account, 24)
    script = "import octavo, sys; octavo.open(sys.argv[1], 'User01').compress()"
    running = [subprocess.Popen([sys.executable, "-c", script, root]) for _ in range(3)]
    assert [process.wait(60) for process in running] == [0, 0, 0]
    assert sorted(made(account)) == ["core_000_000", "core_000_001", "core_000_002"]
    assert [c.cause for c in account.versions() if c.cause.startswith("compress")] == [
        "compress core_000_000",
        "compress core_000_001",
        "compress core_000_002",
    ]
    assert all(len(account.history(id_)) == 1 for id_ in made(account))


def test_stopped_at_any_call_there_is_no_core_or_the_whole_core(tmp_path):
    with octavo.open(tmp_path / "data", policy=MANUAL) as account:
        live(account, 8)
    stopped, stop_at = True, 0
    while stopped:
        stop_at += 1
        root = tmp_path / f"run{stop_at}"
        shutil.copytree(tmp_path / "data", root)
        disk = StoppingDisk(stop_at)
        folder = root / "default"
        try:
            with open_on(LocalStore(folder, disk=disk), folder / "index", policy=MANUAL) as worker:
                worker.compress()
        except Stopped:
            pass
        stopped = disk.stopped
        with octavo.open(root, policy=MANUAL) as again:
            assert again.check()
            core = again.get("core_000_000")
            assert is_intact(cores.read(cores.Core, core.data)) if core else stopped
            again.compress()
            assert made(again) == ["core_000_000"]
        shutil.rmtree(root)


class FailingSummariser(Summariser):
    """Fails a given number of times, then summarises."""

    failures: list[None]

    def core(self, due, sessions, *, made_at):
        if self.failures:
            self.failures.pop()
            raise ModelFailed("the model is out")
        return super().core(due, sessions, made_at=made_at)


def test_failed_work_is_tried_again_and_later_sessions_go_on_accumulating(opened, monkeypatch):
    monkeypatch.setattr("octavo.engine.worker._BACKOFF_SECONDS", 0.01)
    account = opened(summariser=FailingSummariser(failures=[None]))
    live(account, 8)
    assert account.wait(60)
    assert made(account) == ["core_000_000"]
    stuck = opened(account="other", summariser=FailingSummariser(failures=[None] * 3))
    live(stuck, 8)  # a ninth would be a reason to try once more, before or after the third attempt
    assert stuck.wait(60)
    assert (made(stuck), stuck.counters()["Total_sessions"]) == ([], 8)
    assert any("the model is out" in note for note in stuck.check().notes)
    live(stuck, 8, start=8)
    assert stuck.wait(60)
    assert made(stuck) == ["core_000_000", "core_000_001"]
    assert stuck.check().notes == ()


def test_a_core_is_made_again_when_a_source_is_forgotten_or_erased(opened):
    account = opened(policy=NOW)
    live(account, 7)
    live(account, 1, say="My secret code word is zebraquux, remember that.", start=7)
    target = next(m for m in account.memories(kind="episode") if "zebraquux" in m.text)
    assert "zebraquux" in str(account.get("core_000_000").data)
    account.forget(target.id)
    assert account.upkeep().made == ("core_000_000",)
    core = account.get("core_000_000")
    assert "zebraquux" not in f"{core.text}{core.data}"
    assert target.id not in core.linked("part")
    account.redact(target.id, reason="asked to")
    assert "zebraquux" not in str([r.memory for r in account.history("core_000_000")])


def test_routine_originals_retire_only_by_policy_and_come_back(opened, root):
    policy = octavo.Policy(compression=CompressionPolicy(mode="immediate", retire=True))
    account = opened(policy=policy)
    live(account, 8)
    assert len(account.memories(kind="episode")) == 16
    retired = account.upkeep().retired
    kept = account.memories(kind="episode")
    assert len(retired) == 15
    assert [m.salience > 0.8 for m in kept] == [True]
    assert len((root / "+user01" / "archive" / "core_000_000.jsonl").read_text().splitlines()) == 15
    assert len(account.at(8).memories(kind="episode")) == 16
    assert account.upkeep().retired == ()
    core = account.get("core_000_000")
    account.uncompress("core_000_000")
    assert len(account.memories(kind="episode")) == 16
    assert account.compress("core_000_000")[0].data == core.data


def test_more_than_a_tenth_does_not_retire_without_a_persons_yes(opened, root):
    policy = octavo.Policy(compression=CompressionPolicy(mode="immediate", retire=True))
    account = opened(policy=policy)
    live(account, 32)
    assert account.upkeep().retired == ()
    assert account.upkeep().retired == ()
    asked = [p for p in account.proposals() if p.action == "retire"]
    assert [p.memory.id for p in asked] == [f"core_000_00{n}" for n in range(4)]
    assert len(account.memories(kind="episode")) == 64
    account.approve(asked[0].id)
    account.decline(asked[1].id)
    assert len(account.memories(kind="episode")) == 64 - 15
    account.upkeep()
    assert [p.memory.id for p in account.proposals() if p.action == "retire"] == [
        "core_000_002",
        "core_000_003",
    ]
    account.uncompress("core_000_000")
    assert len(account.memories(kind="episode")) == 64


def test_originals_stay_by_default(opened):
    account = opened(policy=NOW)
    live(account, 8)
    assert account.upkeep().retired == ()
    assert len(account.memories(kind="episode")) == 16


def test_a_contradicted_belief_loses_its_approval(opened):
    account = opened(policy=NOW)
    live(account, 64, say="I always drink green tea in the morning with my sister Anna.")
    proposal = next(p for p in account.proposals() if "green tea" in p.memory.text)
    belief = account.approve(proposal.id)
    live(account, 2, say=belief.text.replace("always drink", "do not drink"), start=64)
    assert account.upkeep().contested == ()
    live(account, 2, say=belief.text.replace("always drink", "do not drink"), start=66)
    assert account.upkeep().contested == (belief.id,)
    now = account.get(belief.id)
    assert (now.approved, now.confidence, now.data["epistemic_state"]) == (None, 0.4, "contested")


def test_every_episode_has_its_place_on_the_odometer(opened):
    account = opened(policy=MANUAL)
    live(account, 10)
    places = [session.position for session in account.sessions()]
    assert places[0] == {"session_seq": 0, "core_seq": 0, "sphere_seq": 0}
    assert places[9] == {"session_seq": 1, "core_seq": 1, "sphere_seq": 0}


def test_the_radix_is_policy(opened):
    levels = tuple(replace(level, radix=2) for level in CompressionPolicy().levels)
    account = opened(policy=octavo.Policy(compression=CompressionPolicy(mode="immediate", levels=levels)))
    live(account, 4)
    assert sorted(made(account)) == ["core_000_000", "core_000_001", "sphere_000"]


@pytest.mark.parametrize("indexed", [False, True])
def test_cores_take_no_episodes_place_and_are_found_when_asked_for(opened, indexed):
    account = opened(policy=MANUAL, embedder=False)
    live(account, 72)
    account.compress()
    if indexed:
        account.catch_up()
    assert [hit.memory.kind for hit in account.recall("mango trees", k=10)] == ["episode"] * 10
    assert len(account.recall("mango trees", k=40)) == 40
    assert len(account.recall("mango trees", k=10, kinds="core")) == 9
    both = account.recall("mango trees", k=100, kinds=("core", "sphere", "episode"))
    assert {hit.memory.kind for hit in both} == {"core", "sphere", "episode"}
    found = account.recall("mango trees", k=10, streams=("words", "abstractions"))
    assert any(hit.parts.get("abstraction", 0) > 0 for hit in found)
    assert not any("abstraction" in h.parts for h in account.recall("mango trees", streams="words"))


def test_words_follow_while_a_backlog_of_cores_is_made(opened, monkeypatch):
    """Or every question would read all of them itself, and index them when they are many."""
    monkeypatch.setattr(handle, "_CORES", 2)
    before = opened(policy=MANUAL)
    live(before, 40)
    before.close()
    account, behind = opened(policy=octavo.Policy(compression=CompressionPolicy(mode="background"))), []
    follow = Indexing.add_words

    def counted(indexing, *more):
        behind.append(account.version - indexing.watermark().version)
        return follow(indexing, *more)

    monkeypatch.setattr(Indexing, "add_words", counted)
    account.remember("the garden grows")
    assert account.wait(60)
    assert len(made(account)) == 5
    assert behind[1:] == [2, 2, 1]  # everything is indexed first, then two by two, then the rest
