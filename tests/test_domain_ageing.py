"""Retention: the oldest goes to the archive, and never a milestone, a behaviour or what no core holds."""

from __future__ import annotations

import pytest

import octavo
from octavo.documents.brain import FilesystemMemory
from octavo.domain.policy import Policy, RetentionPolicy
from octavo.errors import BadPolicy
from octavo.testing.clocks import SettableClock


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def brain(tmp_path, clock):
    with FilesystemMemory(tmp_path / "brain", clock=clock, embedder=False) as memory:
        yield memory


def talk(brain, clock, count):
    for number in range(count):
        brain.log_conversation_turn("user", f"เรื่องที่ {number}: where is box {number}?")
        brain.log_conversation_turn("assistant", f"box {number} is in hall {number}")
        brain.close_session()
        clock.advance(minutes=1)


def live(brain, **more):
    return [m for m in brain.account.memories(kind="episode", **more) if m.category is None]


def test_of_101_conversations_the_oldest_is_archived_and_the_newest_hundred_stay(brain, clock):
    talk(brain, clock, 101)
    brain.account.compress()
    (oldest,) = brain.account.retire_aged()["conversations"]
    assert len(live(brain)) == 100
    assert "box 0 " in brain.account.history(oldest)[0].memory.text, "not destroyed"
    archive = brain.account._spine.store.folder / "archive" / "retention_conversations.jsonl"
    assert oldest in archive.read_text()
    assert brain.account.retire_aged()["conversations"] == []


def test_a_redaction_reaches_what_retention_moved_to_the_archive(tmp_path, brain, clock):
    id_ = brain.log_event({"event_type": "action", "payload": "น้องสาวจะแต่งงานเงียบ ๆ"})
    brain.show()
    clock.advance(days=8)
    assert brain.account.retire_aged()["events"] == [id_]
    archive = brain.account._spine.store.folder / "archive" / "retention_events.jsonl"
    assert "แต่งงาน" in archive.read_text()
    with FilesystemMemory(tmp_path / "brain", actor="human:ana", clock=clock, embedder=False) as person:
        assert person.account.redact(id_, reason="told in confidence").unreached == ()
        assert person.account.check()
    kept = [path.read_bytes() for path in (tmp_path / "brain").rglob("*") if path.is_file()]
    assert not any("แต่งงาน".encode() in data for data in kept)


def test_many_at_once_wait_for_a_person_and_stand_in_the_archive_before_they_go(brain, tmp_path, clock):
    events = [{"text": f"เหตุการณ์ที่ {n}", "kind": "episode", "category": "event"} for n in range(60)]
    ids = [verdict.or_raise().id for verdict in brain.account.remember_many(events)]
    clock.advance(days=8)
    assert brain.account.retire_aged()["events"] == brain.account.retire_aged()["events"] == []
    with octavo.open(tmp_path / "brain", "brain_b", actor="human:ana", clock=clock) as person:
        (asked,) = [proposal for proposal in person.proposals() if proposal.action == "retire"]
        archive = person._spine.store.folder / "archive" / "retention_events.jsonl"
        kept = archive.read_text()
        assert all(f"เหตุการณ์ที่ {n}" in kept for n in range(60)), "a yes must not end what nobody kept"
        assert len(kept.splitlines()) == 60
        person.approve(asked.id)
        assert [id_ for id_ in ids if person.get(id_)] == []


def test_a_conversation_older_than_thirty_days_goes_once_a_core_holds_it(brain, clock):
    talk(brain, clock, 9)
    brain.account.compress()
    clock.advance(days=29)
    assert brain.account.retire_aged()["conversations"] == []
    clock.advance(days=2)
    assert len(brain.account.retire_aged()["conversations"]) == 8, "the ninth is in no core yet"
    assert len(live(brain)) == 1


def test_events_runs_and_conversations_each_have_their_own_age(brain, clock):
    brain.log_event({"event_type": "action", "payload": {"n": 1}})
    brain.save_episode({"metadata": {"episode_id": "run_1"}, "steps": [{"action": {"command": "left"}}]})
    clock.advance(days=8)
    gone = brain.account.retire_aged()
    assert ({name: len(ids) for name, ids in gone.items()}) == {
        "conversations": 0,
        "events": 1,
        "rlds_episodes": 0,
    }
    clock.advance(days=83)
    assert brain.account.retire_aged()["rlds_episodes"] == ["run_1"]


def test_a_milestone_a_behaviour_knowledge_and_what_a_person_approved_never_go(brain, tmp_path, clock):
    brain.account.remember("the robot found home", kind="episode", category="event", salience=0.9)
    brain.account.remember("spin: left", kind="skill", category="behavior", topic="behavior/spin")
    brain.write_memory("the charger stands in the hall", "semantic", "locations")
    with octavo.open(tmp_path / "brain", "brain_b", actor="human:ana", clock=clock) as person:
        person.remember("never leave the yard", kind="skill", category="procedural", topic="agents")
    before = brain.account.memories()
    clock.advance(days=400)
    assert not any(brain.account.retire_aged().values())
    assert brain.account.memories() == before


def test_many_at_once_wait_for_a_person_and_are_asked_about_once(tmp_path, clock):
    policy = Policy(retention=RetentionPolicy(events={"max_size_mb": 0}))
    with FilesystemMemory(tmp_path / "b", clock=clock, policy=policy, embedder=False) as brain:
        events = [{"text": f"event {n}", "kind": "episode", "category": "event"} for n in range(60)]
        brain.account.remember_many(events)
        for _ in range(2):
            assert not any(brain.account.retire_aged().values())
        (proposal,) = brain.account.proposals()
        assert "60 episodes" in proposal.reason
        with octavo.open(tmp_path / "b", "brain_b", actor="human:ana", clock=clock) as person:
            person.approve(proposal.id)
        assert brain.account.memories(kind="episode") == []


def test_a_size_lets_the_oldest_go(tmp_path, clock):
    policy = Policy(retention=RetentionPolicy(events={"max_size_mb": 0.001}))
    with FilesystemMemory(tmp_path / "b", clock=clock, policy=policy, embedder=False) as brain:
        for number in range(4):
            brain.account.remember(f"{number} " * 200, kind="episode", category="event", at=clock())
            clock.advance(minutes=1)
        assert len(brain.account.retire_aged()["events"]) == 2
        assert [m.text.split()[1] for m in brain.account.memories(kind="episode")] == ["2", "3"]


def test_a_limit_is_set_by_itself_lifted_by_inf_and_a_misspelt_one_is_named(tmp_path, clock):
    own = tmp_path / "policy.toml"
    own.write_text("[retention]\nevents.max_age_days = inf\nconversations = { max_files = 7 }\n")
    with FilesystemMemory(tmp_path / "b", clock=clock, policy=own, embedder=False) as brain:
        assert brain.retention()["episodic"]["conversations"] == {"max_age_days": 30, "max_files": 7}
        brain.log_event({"event_type": "action", "payload": "อยู่ต่อ"})
        clock.advance(days=4000)
        assert not any(brain.account.retire_aged().values())
    own.write_text("[retention.events]\nmax_age = 3\n")
    with pytest.raises(BadPolicy, match=r"'retention\.events\.max_age'"):
        FilesystemMemory(tmp_path / "b", policy=own)
