"""Brain B's memory: reading by levels, writing at them, and what repeats climbing up, by the seed's words."""

from __future__ import annotations

import shutil
import threading
from datetime import timedelta

import pytest

from octavo.documents.brain import (
    FilesystemMemory,
    consolidate_memory,
    patterns,
    read_memory,
    write_memory,
)
from octavo.domain.policy import PatternPolicy, Policy, RetentionPolicy
from octavo.errors import BadInput
from octavo.testing.clocks import SettableClock

WALK = ("forward", "left", "forward")


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def brain(tmp_path, clock):
    """A robot's memory, by words alone."""
    with FilesystemMemory(tmp_path / "brain", clock=clock, embedder=False) as memory:
        yield memory


@pytest.fixture
def person(tmp_path, brain, clock):
    """The same memory in a person's hands."""
    with FilesystemMemory(tmp_path / "brain", actor="human:ana", clock=clock, embedder=False) as memory:
        yield memory


def run(number, actions=WALK, at=None, denied=(), **metadata):
    """An RLDS episode of some actions; those denied are refused by the sandbox in front of lava."""
    steps = [
        {
            "observation": {"look_ahead": {"tile": "lava", "distance": 1 if n in denied else 3}},
            "action": {"command": action},
            "reward": -1.0 if n in denied else 0.1,
            "info": {"result": "moved", "sandbox_denied": n in denied},
        }
        for n, action in enumerate(actions)
    ]
    head = {"episode_id": f"robotgrid_{number}", "success": True, **metadata}
    return {"metadata": head | ({"start_time": at.isoformat()} if at else {}), "steps": steps}


def test_a_page_that_was_learned_from_episodes_says_from_how_many_and_when(brain, clock):
    brain.update_knowledge("objects", "doors are red")
    for number in range(3):
        brain.save_episode(run(number, at=clock()))
    brain.consolidate_memory()
    tree = brain.show()
    page = (tree / "semantic/knowledge/strategies.md").read_text()
    assert page.startswith(f"---\npage: strategies\nupdated: '{clock():%Y-%m-%d}'\nepisodes: 3\n---\n")
    assert (tree / "semantic/knowledge/objects.md").read_text().startswith("---\npage: objects\n---\n")
    with FilesystemMemory(brain.account) as memory:
        assert memory.account.sync().edits == ()


def test_in_a_fresh_directory_the_whole_tree_exists_and_a_repeated_start_is_harmless(tmp_path):
    for _ in range(2):
        with FilesystemMemory(tmp_path / "new", embedder=False) as memory:
            tree = memory.show()
            folders = {p.relative_to(tree).as_posix() for p in tree.glob("*/*") if p.is_dir()}
            assert folders == {
                "procedural/skills",
                *("semantic/skills", "semantic/knowledge", "semantic/behaviors"),
                *("semantic/states", "semantic/cores", "semantic/spheres"),
                *("episodic/conversations", "episodic/events"),
                *("episodic/rlds_episodes", "episodic/checkpoints"),
            }
            assert memory.stats()["total_files"] == 0
            assert memory.get_capabilities() == {"actions": [], "tools": []}


def test_an_episodic_write_appends_one_event_keeps_earlier_ones_and_its_argument(brain):
    event = {"event_type": "message", "payload": {"text": "เริ่มลาดตระเวน"}}
    before = dict(event)
    brain.write_memory({"note": "the first"}, "episodic", "diary")
    brain.write_memory(event, "episodic", "diary")
    entries = brain.list_level("episodic")
    assert [entry.data["event_type"] for entry in entries] == ["diary", "message"]
    assert event == before
    assert entries[0].path == "episodic/events/events.jsonl"


def test_a_semantic_write_makes_a_page_and_a_second_one_replaces_it_block_by_block(brain):
    page = "# Level Strategies\n\n## Lava\n- keep one tile away from lava\n- turn back when stuck\n"
    first = brain.write_memory(page, "semantic", "level_strategies")
    second = brain.write_memory(page.replace("one tile", "two tiles"), "semantic", "level_strategies")
    assert len(first.ids) == len(second.ids) == 2
    assert first.ids[1] == second.ids[1], "an unchanged block stays the same memory"
    live = brain.account.memories(kind="fact", category="level_strategies")
    assert {m.text for m in live} == {"keep two tiles away from lava", "turn back when stuck"}
    assert {m.data["section"] for m in live} == {"Lava"}
    assert {e.path for e in brain.list_level("semantic")} == {"semantic/knowledge/level_strategies.md"}


def test_a_page_that_people_wrote_is_replaced_whole(brain, person):
    for text in ("the hall is blue", "ห้องครัวสีเขียว", "the attic is dark"):
        person.account.remember(text, category="locations")
    brain.write_memory("- the hall is blue\n- the yard is wide", "semantic", "locations")
    live = brain.account.memories(kind="fact", category="locations")
    assert {m.text for m in live} == {"the hall is blue", "the yard is wide"}


def test_a_page_can_be_handed_in_as_sections_and_in_thai(brain):
    content = {
        "title": "Objects",
        "sections": {"กุญแจ": ["กุญแจเปิดประตู", "เก็บก่อนไปที่ประตู"], "Door": "needs a key"},
    }
    assert len(brain.write_memory(content, "semantic", "objects").ids) == 3
    assert "กุญแจเปิดประตู" in brain.read_memory("กุญแจ").text


def test_the_eleventh_version_of_a_page_drops_the_oldest_from_view_and_the_ledger_keeps_it(brain):
    for number in range(12):
        brain.write_memory(f"the charger stands in room {number}", "semantic", "locations")
    versions = brain.page_versions("locations")
    assert len(versions) == 10
    oldest = [r.version for r in brain.account.revisions() if "room 0" in r.memory.text]
    assert oldest
    assert oldest[0] < versions[0]
    assert "room 0" in brain.account.at(oldest[0]).memories(category="locations")[0].text


def test_how_many_versions_of_a_page_are_shown_can_be_set(tmp_path):
    policy = Policy(retention=RetentionPolicy(versions_shown=2))
    with FilesystemMemory(tmp_path / "short", policy=policy, embedder=False) as brain:
        for number in range(3):
            brain.write_memory(f"the charger stands in room {number}", "semantic", "locations")
        assert len(brain.page_versions("locations")) == 2
        assert brain.retention()["semantic"]["knowledge"] == {"version_history": 2}


def test_the_functions_of_the_document_read_write_and_consolidate_a_folder(tmp_path):
    where = {"data_dir": tmp_path / "brain_b_data", "embedder": False}
    assert write_memory({"event_type": "action", "payload": "forward"}, "episodic", "walk", **where)
    assert write_memory("# Objects\n\n- กุญแจเปิดประตู", "semantic", "objects", **where)
    assert not write_memory({"actions": []}, "procedural", "capabilities", **where)
    assert read_memory("กุญแจ", ["semantic"], **where).mixed[0].content == "กุญแจเปิดประตู"
    assert consolidate_memory(**where).patterns_found == 0
    page = tmp_path / "brain_b_data/brain_b/mirror/semantic/knowledge/objects.md"
    assert "กุญแจเปิดประตู" in page.read_text()


def test_consolidating_a_robots_memory_keeps_the_documents_retention(brain, clock):
    brain.log_event({"event_type": "action", "payload": "forward"})
    clock.advance(days=8)
    brain.log_event({"event_type": "action", "payload": "left"})
    brain.consolidate_memory()
    assert [entry.data["payload"] for entry in brain.list_level("episodic")] == ["left"]


def test_a_procedural_write_without_a_person_is_a_proposal_and_leaves_nothing(brain):
    written = brain.write_memory({"actions": ["forward"], "tools": []}, "procedural", "capabilities")
    assert not written
    assert written.proposal in {p.id for p in brain.account.proposals()}
    assert brain.account.memories(kind="skill") == []
    assert brain.get_capabilities() == {"actions": [], "tools": []}
    assert [p.name for p in (brain.show() / "procedural").rglob("*")] == ["skills"]


def test_a_person_approves_a_procedural_write_and_the_decision_is_logged(brain, person):
    written = brain.write_memory({"actions": ["forward"], "tools": []}, "procedural", "capabilities")
    person.account.approve(written.proposal)
    assert brain.get_capabilities() == {"actions": ["forward"], "tools": []}
    (entry,) = brain.list_level("procedural")
    assert entry.path == "procedural/capabilities.json"
    assert person.account.memories(kind="skill")[0].approved == "human:ana"
    assert person.account.versions()[-1].actor == "human:ana"


def test_a_persons_own_procedural_write_counts_at_once(person):
    assert person.write_memory("Never leave the yard at night.", "procedural", "agents")
    assert person.list_level("procedural")[0].path == "procedural/AGENTS.md"


def test_equal_matches_rank_procedural_before_semantic_before_episodic(person):
    said = "the charger stands beside the blue door"
    person.account.remember(said, kind="episode")
    person.account.remember(said, kind="fact")
    person.account.remember(said, kind="skill", category="procedural", topic="charger")
    context = person.read_memory("where does the charger stand?")
    assert [entry.level for entry in context.mixed] == ["procedural", "semantic", "episodic"]
    only = person.read_memory("where does the charger stand?", levels=["semantic"])
    assert [entry.level for entry in only.mixed] == ["semantic"]
    assert set(only.levels) == {"semantic"}


def test_weights_of_the_caller_replace_the_engines(person):
    said = "the charger stands beside the blue door"
    person.account.remember(said, kind="fact")
    person.account.remember(said, kind="skill", category="procedural", topic="charger")
    context = person.read_memory("charger", weights={"semantic": 5.0, "procedural": 1.0})
    assert [entry.level for entry in context.mixed] == ["semantic", "procedural"]


def test_of_one_topic_only_the_higher_level_is_in_the_mix(person):
    person.account.remember("lava is denied", kind="fact", topic="lava")
    person.account.remember("never step onto lava", kind="skill", category="procedural", topic="lava")
    context = person.read_memory("lava")
    assert [entry.content for entry in context.mixed] == ["never step onto lava"]
    assert [entry.overridden for entry in context.levels["semantic"]] == [True]
    assert "lava is denied" not in context.text


def test_a_sequence_seen_often_enough_becomes_knowledge_with_frequency_and_sources(brain, clock):
    for number in range(3):
        brain.save_episode(run(number, at=clock() - timedelta(days=number)))
    done = brain.consolidate_memory()
    assert (done.patterns_promoted, done.proposals) == (done.knowledge_updated, ())
    fact = brain.account.memories(topic="pattern/actions/forward-left-forward")[0]
    assert (fact.data["frequency"], fact.category) == (3, "strategies")
    assert set(fact.linked("evidence")) == {"robotgrid_0", "robotgrid_1", "robotgrid_2"}
    assert fact.data["first_seen"] == (clock() - timedelta(days=2)).isoformat()
    assert fact.data["last_seen"] == clock().isoformat()


def test_below_the_threshold_and_before_the_look_back_nothing_is_learned(brain, clock):
    brain.save_episode(run(1, at=clock()))
    brain.save_episode(run(2, at=clock()))
    brain.save_episode(run(3, at=clock() - timedelta(days=8)))
    brain.save_episode(run(4, at=clock() + timedelta(days=1)))
    assert brain.consolidate_memory().knowledge_updated == 1, "only that floor is walked on"
    assert brain.account.memories(topic="pattern/actions/forward-left-forward") == []
    assert brain.consolidate_memory(max_age_days=9).patterns_promoted == 1


def test_what_is_learned_is_indexed_by_the_one_worker_of_the_account(tmp_path, clock):
    others = set(threading.enumerate())

    def workers():
        return sum(thread.name == "octavo-worker" for thread in set(threading.enumerate()) - others)

    with FilesystemMemory(tmp_path, actor="human:ana", clock=clock, embedder=False) as memory:
        for number in range(3):
            memory.save_episode(run(number, at=clock()))
        before = workers()
        for _ in range(3):
            assert memory.consolidate_memory().patterns_found
        assert workers() == before == 1
        assert {m.actor for m in memory.account.memories(kind="fact")} == {"agent"}, "nobody's own word"
        assert memory.account.actor == "human:ana"
    assert workers() == 0, "and none is at work on a closed account"


def test_running_again_revises_and_never_duplicates(brain, clock):
    for number in range(3):
        brain.save_episode(run(number, at=clock()))
    brain.consolidate_memory()
    facts = brain.account.memories(kind="fact")
    assert brain.consolidate_memory().knowledge_updated == 0
    brain.save_episode(run(4, at=clock()))
    brain.consolidate_memory()
    again = brain.account.memories(kind="fact")
    assert {m.id for m in again} == {m.id for m in facts}
    assert {m.data["frequency"] for m in again if m.category == "strategies" and "outcome" not in m.data} == {
        4
    }


def test_a_sandbox_denial_seen_twice_is_promoted_in_runs_and_in_both_shapes_of_events(brain, clock):
    brain.save_episode(run(1, actions=("forward", "forward"), at=clock(), denied=(0, 1)))
    brain.log_event({"type": "sandbox_denied", "action": "microphone"})
    brain.log_event({"event_type": "action", "payload": {"action": "microphone", "sandbox_denied": True}})
    brain.consolidate_memory()
    denials = brain.account.memories(kind="fact", category="safety_constraints")
    assert {m.topic for m in denials} == {"pattern/denials/forward-lava", "pattern/denials/microphone"}
    assert {m.confidence for m in denials} == {0.9}


def test_intents_of_conversations_become_interaction_patterns(brain):
    for _ in range(3):
        brain.log_conversation_turn("user", "teach patrol", {"intent": "START_TEACHING"})
        brain.log_conversation_turn("assistant", "Ready to learn 'patrol'.", {"action": "teach_start"})
        brain.log_conversation_turn("user", "done", {"intent": "DONE"})
        brain.close_session()
    brain.consolidate_memory()
    (fact,) = brain.account.memories(kind="fact", category="interaction_patterns")
    assert fact.data["frequency"] == 3


def stable(brain, clock):
    """Knowledge that has stood for thirty days and was used three times."""
    for number in range(3):
        brain.save_episode(run(number, at=clock()))
    brain.consolidate_memory()
    fact = brain.account.memories(topic="pattern/actions/forward-left-forward")[0]
    for _ in range(3):
        brain.use([fact.id])
    clock.advance(days=30)
    return fact


def test_thirty_days_of_consistent_knowledge_make_one_proposal_and_never_a_change(brain, person, clock):
    fact = stable(brain, clock)
    before = brain.account.memories(kind=["fact", "skill"])
    assert brain.consolidate_memory().proposals == ()
    (proposal,) = brain.consolidate_memory(promote=True).proposals
    assert person.consolidate_memory(promote=True).proposals == (), "a second run asks nothing new"
    assert brain.account.memories(kind=["fact", "skill"]) == before
    skill = person.account.approve(proposal)
    assert (skill.layer, skill.topic, skill.approved) == ("procedural", fact.topic, "human:ana")
    assert brain.consolidate_memory(promote=True).proposals == ()


def test_a_declined_promotion_is_recorded_and_not_asked_again(brain, person, clock):
    stable(brain, clock)
    (proposal,) = brain.consolidate_memory(promote=True).proposals
    person.account.decline(proposal, reason="not yet")
    assert brain.consolidate_memory(promote=True).proposals == ()
    assert len(person.account.rejections()) == 1


def test_a_day_too_young_or_a_use_too_few_is_not_proposed(brain, clock):
    fact = stable(brain, clock)
    clock.advance(seconds=-1)
    assert brain.consolidate_memory(promote=True).proposals == ()
    clock.advance(seconds=1)
    brain.account.revise(fact.id, data={**fact.data, "consistency": 0.89})
    assert brain.consolidate_memory(promote=True).proposals == ()
    brain.account.revise(fact.id, data=fact.data)
    assert len(brain.consolidate_memory(promote=True).proposals) == 1


def test_knowledge_that_was_used_twice_is_not_proposed(brain, clock):
    for number in range(3):
        brain.save_episode(run(number, at=clock()))
    brain.consolidate_memory()
    for _ in range(2):
        brain.use([brain.account.memories(topic="pattern/actions/forward-left-forward")[0].id])
    clock.advance(days=40)
    assert brain.consolidate_memory(promote=True).proposals == ()


def test_a_conversation_has_the_seeds_form(brain, clock):
    brain.log_conversation_turn("user", "teach patrol", {"intent": "START_TEACHING"})
    clock.advance(seconds=1)
    said = "Ready to learn 'patrol'. Show me what to do."
    brain.log_conversation_turn("assistant", said, {"action": "teach_start", "taught": "patrol"})
    document = brain.close_session()
    assert set(document) == {
        *("session_id", "start_time", "end_time", "turns"),
        *("behaviors_taught", "sandbox_denials", "success"),
    }
    assert [set(turn) - {"timestamp", "role", "content"} for turn in document["turns"]] == [
        {"intent"},
        {"action"},
    ]
    assert (document["behaviors_taught"], document["sandbox_denials"], document["success"]) == (
        ["patrol"],
        0,
        True,
    )
    assert document["start_time"] < document["end_time"]
    assert brain.close_session() is None


def test_copying_the_directory_and_opening_it_elsewhere_gives_the_same_reads(brain, tmp_path, clock):
    brain.write_memory("the charger stands in the hall\nที่ชาร์จอยู่ในห้องโถง", "semantic", "locations")
    here = brain.read_memory("charger")
    shutil.copytree(tmp_path / "brain", tmp_path / "elsewhere")
    with FilesystemMemory(tmp_path / "elsewhere", clock=clock, embedder=False) as copy:
        assert copy.read_memory("charger") == here
        assert copy.stats() == brain.stats()


@pytest.mark.parametrize(
    "key", ["../x", "/etc/passwd", "a/b", "C:\\x", "a\x00b", "", "x" * 65, "Objects", "ก"]
)
def test_a_key_that_is_a_path_is_refused_at_every_level(brain, key):
    for level in ("episodic", "semantic", "procedural"):
        with pytest.raises(BadInput, match="no path"):
            brain.write_memory("text", level, key)
    with pytest.raises(BadInput):
        brain.register_skill(key, "x")
    with pytest.raises(BadInput):
        brain.update_knowledge(key, "x")
    assert brain.stats()["total_files"] == 0


def test_an_unknown_level_or_nothing_to_write_is_bad_input(brain):
    with pytest.raises(BadInput) as error:
        brain.list_level("cosmic")
    assert error.value.advice == "level is one of 'episodic', 'semantic', 'procedural'"
    for wrong in (
        lambda: brain.read_memory("x", levels=["cosmic"]),
        lambda: brain.read_memory("x", weights={"cosmic": 1}),
        lambda: brain.write_memory("x", "cosmic", "key"),
        lambda: brain.write_memory("", "semantic", "key"),
        lambda: brain.write_memory("# only a title", "semantic", "key"),
        lambda: brain.write_memory({"no": "sections"}, "semantic", "key"),
        lambda: brain.list_level("cosmic"),
        lambda: brain.save_episode({"steps": []}),
        lambda: brain.log_event({"event_type": "x", "timestamp": "yesterday"}),
    ):
        with pytest.raises(BadInput):
            wrong()
    assert brain.stats()["total_files"] == 0


def test_a_secret_never_reaches_a_page(brain):
    page = "- the password is hunter2-XyZ-99\n- the hall is blue"
    written = brain.write_memory(page, "semantic", "locations")
    assert len(written.ids) == 1
    assert [why.partition(":")[0] for why in written.refused] == ["secret"]
    assert b"hunter2" not in b"".join(p.read_bytes() for p in brain_files(brain))


def brain_files(brain):
    folder = brain.account._spine.store.folder
    return [path for path in folder.rglob("*") if path.is_file()]


def test_stats_and_retention_answer_as_the_seed_lists_them(brain):
    brain.write_memory("a note", "episodic", "diary")
    stats = brain.stats()
    assert set(stats) == {"levels", "total_files", "total_size_bytes"}
    assert {level: row["decay_rate"] for level, row in stats["levels"].items()} == {
        "episodic": 0.9,
        "semantic": 0.99,
        "procedural": 0.999,
    }
    assert stats["levels"]["episodic"]["file_count"] == stats["total_files"] == 1
    assert brain.retention()["episodic"]["conversations"] == {"max_age_days": 30, "max_files": 100}


def test_thresholds_can_be_set(tmp_path, clock):
    policy = Policy(patterns=PatternPolicy(min_count=1, min_sources=1))
    with FilesystemMemory(tmp_path / "eager", clock=clock, policy=policy, embedder=False) as eager:
        eager.save_episode(run(1, at=clock()))
        found = patterns.find(eager.account, clock(), policy.patterns)
        assert [p.key for p in found if p.is_firm and p.kind == "actions"] == ["forward-left-forward"]


def test_knowledge_is_added_block_by_block(brain):
    id_ = brain.update_knowledge("objects", "a key opens one door", section="Keys", source="session 3")
    memory = brain.account.get(id_)
    assert (memory.category, memory.data) == ("objects", {"section": "Keys", "source": "session 3"})
    assert (
        brain.update_knowledge("objects", "a key opens one door", section="Keys", source="session 3") == id_
    )


def test_a_learned_skill_becomes_procedural_by_a_persons_word_and_by_nobody_elses(brain, person):
    id_ = brain.register_skill("navigation", "# Navigation Skill\n\n## Constraints\n- lava is denied\n")
    assert brain.account.get(id_).layer == "semantic"
    waiting = brain.account.revise(id_, category="procedural")
    assert (waiting.outcome, brain.account.get(id_).layer) == ("proposed", "semantic")
    approved = person.account.approve(waiting.proposal)
    assert (approved.layer, approved.approved) == ("procedural", "human:ana")
    assert brain.list_level("procedural")[0].path == "procedural/skills/navigation/SKILL.md"
    assert brain.account.revise(id_, text="# Navigation Skill\n\nlava is fine").outcome == "proposed"
