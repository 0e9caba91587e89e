"""Teaching, events and checkpoints: the seed's dialogue, durable actions, rules that hold, exact replay."""

from __future__ import annotations

import subprocess
import sys

import pytest

from octavo.documents.brain import FilesystemMemory
from octavo.documents.brain.events import EventLog
from octavo.documents.brain.teaching import Teaching, behaviors_of, denial_of, understand
from octavo.errors import BadInput, NotFound
from octavo.testing.clocks import SettableClock


@pytest.fixture
def clock():
    return SettableClock()


@pytest.fixture
def opened(tmp_path, clock):
    """Open the same robot's memory, any number of times."""
    handles = []

    def open_(actor="agent:brain_b"):
        handles.append(FilesystemMemory(tmp_path / "brain", actor=actor, clock=clock, embedder=False))
        return handles[-1]

    yield open_
    for handle in handles:
        handle.close()


@pytest.fixture
def brain(opened):
    return opened()


@pytest.fixture
def done():
    """What the robot did."""
    return []


@pytest.fixture
def teacher(brain, done):
    return Teaching(brain, done.append)


def say(teacher, *lines):
    return [teacher.say(line).text for line in lines]


def test_the_dialogue_goes_as_the_document_writes_it(teacher):
    assert say(teacher, "teach patrol", "learn dance", "forward", "turn left", "done", "patrol") == [
        "Ready to learn 'patrol'. Show me what to do.",
        "Already recording 'patrol'. Say 'done' first.",
        "Did forward.",
        "Did left.",
        "Learned 'patrol': forward -> left",
        "Completed 'patrol' (2 actions)",
    ]


def test_teach_two_actions_done_invoke_calls_the_executor_in_order_and_survives_a_restart(
    teacher, opened, brain
):
    say(teacher, "teach ลาดตระเวน", "forward", "left", "done")
    calls = []
    teacher.invoke("ลาดตระเวน", calls.append)
    assert calls == ["forward", "left"]
    assert behaviors_of(brain.account)["ลาดตระเวน"]["times_invoked"] == 1
    again = opened()
    assert behaviors_of(again.account) == behaviors_of(brain.account)
    Teaching(again, calls.append).say("ลาดตระเวน")
    assert behaviors_of(again.account)["ลาดตระเวน"]["times_invoked"] == 2


def test_a_forgotten_or_unknown_name_answers_with_the_teach_me_text(teacher):
    say(teacher, "teach patrol", "forward", "done")
    assert say(teacher, "pat", "forget patrol", "patrol", "forget patrol", "describe patrol") == [
        "I don't know 'pat'. Did you mean 'patrol'?",
        "Forgot 'patrol'.",
        "I don't know 'patrol'. Teach me first.",
        "I don't know 'patrol'. Teach me first.",
        "I don't know 'patrol'. Teach me first.",
    ]


def test_an_empty_recording_is_cancelled(teacher, brain):
    assert say(teacher, "teach x", "done", "done", "teach y", "cancel", "cancel") == [
        "Ready to learn 'x'. Show me what to do.",
        "Nothing recorded. Cancelled.",
        "Not currently recording.",
        "Ready to learn 'y'. Show me what to do.",
        "Cancelled recording 'y'.",
        "Not currently recording.",
    ]
    assert behaviors_of(brain.account) == {}


def test_a_long_behavior_is_shown_by_its_first_five_actions_and_its_total(teacher):
    assert say(teacher, "teach spin", *["left"] * 7, "done")[-1] == (
        "Learned 'spin': left -> left -> left -> left -> left ... (7 total)"
    )


def test_behaviors_are_listed_described_retaught_and_forgotten_all(teacher):
    say(teacher, "teach a", "forward", "done", "teach b", "left", "done", "teach a", "right", "done")
    assert say(teacher, "list", "describe a", "forget all", "list") == [
        "I know: a, b.",
        "'a': right (invoked 0 times)",
        "Forgot 2 behaviors.",
        "I know no behaviors yet.",
    ]


def test_a_behavior_is_a_learned_skill_that_nobody_had_to_approve(teacher, brain):
    say(teacher, "teach patrol", "forward", "done")
    (skill,) = brain.account.memories(kind="skill")
    assert (skill.layer, skill.category, skill.topic) == ("semantic", "behavior", "behavior/patrol")
    assert set(skill.data) == {"name", "actions", "created_at", "description", "times_invoked"}


SHOW = """
import os, signal, sys
from octavo.documents.brain import FilesystemMemory
from octavo.documents.brain.teaching import Teaching
teacher = Teaching(FilesystemMemory(sys.argv[1], embedder=False))
for line in ("teach patrol", "forward", "left", "forward"):
    teacher.say(line)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_in_the_middle_of_teaching_loses_no_action(tmp_path, opened):
    killed = subprocess.run([sys.executable, "-c", SHOW, str(tmp_path / "brain")], check=False)
    assert killed.returncode == -9
    teacher = Teaching(opened())
    assert teacher.recording == "patrol"
    assert teacher.say("done").text == "Learned 'patrol': forward -> left -> forward"


def test_rules_that_a_person_approved_stop_a_behavior_at_the_first_denial(teacher, opened, done, brain):
    say(teacher, "teach patrol", "forward", "speed 0.3", "left", "speed 0.9", "done")
    done.clear()
    brain.write_memory({"deny": ["forward"]}, "procedural", "guardrails")
    assert teacher.invoke("patrol").denial is None, "what only waits for approval rules nothing"
    opened("human:ana").write_memory({"max_speed": 0.5}, "procedural", "sandbox_rules")
    done.clear()
    reply = teacher.invoke("patrol")
    assert done == ["forward", "speed 0.3", "left"]
    assert reply.text == "Stopped 'patrol' after 3 actions: speed 0.9 is above the limit of 0.5."
    assert reply.denial == "max_speed"
    assert behaviors_of(brain.account)["patrol"]["times_invoked"] == 1, "what was stopped does not count"
    (event,) = [e.data for e in brain.list_level("episodic") if e.data.get("event_type") == "sandbox_denied"]
    assert event["payload"]["action"] == "speed 0.9"


def test_a_denied_action_is_neither_done_nor_recorded(teacher, opened, done):
    opened("human:ana").write_memory({"deny": ["backward"]}, "procedural", "guardrails")
    assert say(teacher, "teach x", "backward")[-1] == "SANDBOX DENIED: backward is denied by a guardrail."
    assert done == []
    assert teacher.say("done").text == "Nothing recorded. Cancelled."


def test_explicit_denial_wins_and_limits_hold():
    rules = {"actuators": ["forward", "speed"], "deny": ["forward"], "sensors_denied": ["microphone"]}
    assert denial_of("forward", 0, rules)[0] == "deny"
    assert denial_of("left", 0, rules)[0] == "actuators"
    assert denial_of("microphone", 0, {"sensors_denied": ["microphone"]})[0] == "sensors_denied"
    assert denial_of("speed fast", 0, {"max_speed": 0.5})[0] == "max_speed"
    assert denial_of("speed 0.5", 0, {"max_speed": 0.5}) is None
    assert denial_of("left", 0, {"deny": "left"})[0] == "deny", "a rule of one name need not be a list"
    assert denial_of("left", 100)[0] == "max_actions"
    assert denial_of("left", 2, {"max_actions": 2})[0] == "max_actions"
    assert denial_of("left", 0, {}, {}) is None


@pytest.mark.parametrize(
    ("line", "kind", "rest"),
    [
        ("Teach  Patrol", "START_TEACHING", "patrol"),
        ("remember 'go home'", "START_TEACHING", "go home"),
        ("record ลาดตระเวน", "START_TEACHING", "ลาดตระเวน"),
        ("save", "DONE", ""),
        ("end.", "DONE", ""),
        ("cancel", "CANCEL", ""),
        ("list behaviors", "LIST", ""),
        ("forget patrol", "FORGET", "patrol"),
        ("describe patrol", "DESCRIBE", "patrol"),
        ("go back", "MOVE", "backward"),
        ("set speed to 0.50", "SPEED", "speed 0.5"),
        ("wave", "INVOKE", "wave"),
        ("run wave", "INVOKE", "wave"),
        ("xyzzy", "UNKNOWN", "xyzzy"),
    ],
)
def test_a_line_is_understood(line, kind, rest):
    assert understand(line, known={"wave"}) == (kind, rest)


def test_a_behavior_can_be_handed_in_whole_and_has_its_name_in_it(teacher, brain):
    assert brain.save_behavior("wave", ["left", "right"], "says hello")
    assert behaviors_of(brain.account)["wave"]["description"] == "says hello"
    assert teacher.say("wave").text == "Completed 'wave' (2 actions)"
    for name, actions in (("", ["left"]), ("x" * 65, ["left"]), ("empty", [])):
        with pytest.raises(BadInput):
            brain.save_behavior(name, actions)


def test_a_name_that_is_none_is_bad_input(teacher):
    with pytest.raises(BadInput):
        teacher.say('teach ""')
    with pytest.raises(BadInput):
        teacher.say("teach a\x01b")


def test_a_checkpoint_and_two_actions_replay_as_exactly_these_two(brain):
    log = EventLog(brain, lambda: {"r1": {"x": 3}})
    log.log("spawn", "r1")
    id_ = log.checkpoint({"why": "test"})
    log.log("action", "r1", {"command": "forward"})
    log.log("action", "r1", {"command": "left"})
    assert [e["payload"]["command"] for e in log.replay(id_)] == ["forward", "left"]
    assert {e["checkpoint_id"] for e in log.replay(id_)} == {id_}
    checkpoint, events = log.restore(id_)
    assert (checkpoint["agents"], len(events)) == ({"r1": {"x": 3}}, 2)


def test_the_latest_checkpoint_has_a_backup_and_older_ones_are_found_by_id(brain, clock):
    log = EventLog(brain)
    ids = []
    for _ in range(3):
        log.log("action", "r1")
        clock.advance(seconds=1)
        ids.append(log.checkpoint())
    topics = {m.topic: m.data["checkpoint_id"] for m in brain.account.memories(kind="register")}
    assert topics == {"ckpt_latest": ids[2], "ckpt_backup": ids[1]}
    assert len(log.replay(ids[0])) == 2
    assert log.replay() == []
    with pytest.raises(NotFound):
        log.replay("ckpt_0")


def test_a_checkpoint_is_taken_every_fifty_actions_also_across_a_restart(brain, opened):
    log = EventLog(brain, every=5)
    log.checkpoint()
    for _ in range(3):
        log.log("action", "r1")
    log = EventLog(opened(), every=5)
    first = log.restore()[0]["checkpoint_id"]
    log.log("action", "r1")
    assert log.restore()[0]["checkpoint_id"] == first
    log.log("action", "r1")
    assert log.restore()[0]["checkpoint_id"] != first
    assert log.replay() == []


def test_an_event_says_what_the_document_says_and_unknown_types_are_refused(brain):
    log = EventLog(brain)
    log.log("message", "r1", {"text": "สวัสดี"})
    (event,) = [e.data for e in brain.list_level("episodic")]
    assert set(event) == {"timestamp", "event_type", "agent_id", "payload", "checkpoint_id"}
    with pytest.raises(BadInput, match="shutdown"):
        log.log("explode")
