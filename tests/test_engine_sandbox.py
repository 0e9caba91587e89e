"""Sandboxes: private until consolidated, durable from the first word."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

import octavo
from octavo.errors import (
    BadInput,
    Immutable,
    NotFound,
    OutOfScope,
    Refused,
    SandboxBusy,
    SandboxClosed,
    VersionConflict,
)


def texts(reader, **wanted):
    return [memory.text for memory in reader.memories(**wanted)]


def test_nobody_sees_a_sandbox_before_it_is_consolidated(account):
    sandbox = account.sandbox()
    sandbox.turn("user", "hello")
    sandbox.remember("likes tea")
    assert account.version == 0
    assert account.memories() == []
    sandbox.consolidate()
    assert account.version == 1
    assert texts(account, kind="fact") == ["likes tea"]


def test_a_sandbox_reads_its_parent_version_and_its_own_writes_and_nobody_elses(account):
    account.remember("was there before")
    sandbox = account.sandbox()
    account.remember("came after")
    sandbox.remember("is its own")
    assert texts(sandbox, kind="fact") == ["was there before", "is its own"]
    other = account.sandbox()
    assert texts(other, kind="fact") == ["was there before", "came after"]


def test_an_episode_opens_with_a_turn_and_closes_with_the_first_turn_of_another_speaker(account):
    with account.sandbox() as sandbox:
        for speaker, text in [("A", "1"), ("A", "2"), ("B", "3"), ("B", "4"), ("A", "5"), ("C", "6")]:
            sandbox.turn(speaker, text)
    spoken = [[(t.speaker, t.text) for t in m.turns] for m in account.memories(kind="episode")]
    assert spoken == [
        [("A", "1"), ("A", "2"), ("B", "3")],
        [("B", "4"), ("A", "5")],
        [("C", "6")],
    ]


def test_an_episode_keeps_time_salience_emotion_and_whatever_else_a_turn_carries(account):
    at = datetime(2026, 1, 2, 3, 4, tzinfo=UTC)
    with account.sandbox() as sandbox:
        sandbox.turn("user", "ฉันดีใจมาก", at=at, salience=0.9, emotion="joy", data={"photo": "beach"})
    (episode,) = account.memories(kind="episode")
    assert (episode.at, episode.salience, episode.emotion.label) == (at, 0.9, "joy")
    assert episode.turns[0].data == {"photo": "beach"}
    assert episode.text == "user: ฉันดีใจมาก"
    assert episode.sandbox == sandbox.id


def test_leaving_the_block_consolidates_and_the_result_says_what_happened(account):
    with account.sandbox("Sandbox 09:30", scope="orion") as sandbox:
        sandbox.turn("user", "I moved to Chiang Mai last week.")
        sandbox.turn("assistant", "How do you like it?")
        sandbox.remember("lives in Chiang Mai", confidence=0.9)
        sandbox.remember("may like durian", confidence=0.5)
        sandbox.update_state("ire_state", {"calm": 0.8})
    result = sandbox.result
    assert (result.version, len(result.added), result.session) == (1, 3, 1)
    assert [(r.check, r.text) for r in result.refused] == [("confidence", "may like durian")]


def test_an_exception_keeps_the_sandbox_to_be_resumed(account):
    sandbox = account.sandbox()
    sandbox.turn("user", "hello")
    with pytest.raises(ZeroDivisionError), sandbox:
        sandbox.turn("user", f"{1 / 0}")
    assert account.version == 0
    (waiting,) = account.sandboxes()
    assert (waiting.id, waiting.lines, waiting.age.total_seconds() >= 0) == (sandbox.id, 1, True)
    again = account.resume(waiting.id)
    again.turn("assistant", "hello again")
    assert again.consolidate().version == 1
    assert [len(m.turns) for m in account.memories(kind="episode")] == [2]


def test_a_sandbox_has_one_owner_at_a_time(account, opened):
    sandbox = account.sandbox()
    with pytest.raises(SandboxBusy):
        account.resume(sandbox.id)
    with pytest.raises(SandboxBusy):
        opened().resume(sandbox.id)
    sandbox.close()
    account.resume(sandbox.id).discard()


def test_consolidating_again_returns_the_same_result_even_after_a_restart(account, opened):
    sandbox = account.sandbox()
    sandbox.turn("user", "hello")
    sandbox.remember("unsure of it", confidence=0.3)
    first = sandbox.consolidate()
    assert sandbox.consolidate() == first
    again = opened().resume(sandbox.id)
    assert again.consolidate() == first
    assert account.version == 1
    with pytest.raises(SandboxClosed):
        again.turn("user", "too late")


def test_an_empty_sandbox_closes_without_a_version(account):
    with account.sandbox() as sandbox:
        pass
    assert (account.version, sandbox.result.version, sandbox.result.added) == (0, 0, ())
    assert account.sandboxes() == []


def test_a_discarded_sandbox_leaves_no_trace(account):
    sandbox = account.sandbox()
    sandbox.turn("user", "never mind")
    sandbox.discard()
    assert (account.version, account.sandboxes()) == (0, [])
    with pytest.raises(NotFound):
        account.resume(sandbox.id)


def test_two_sandboxes_of_one_parent_lose_nothing_and_report_the_clash(account):
    account.remember("first", kind="register", topic="mood")
    a, b = account.sandbox("A"), account.sandbox("B")
    for sandbox in (a, b):
        sandbox.turn("user", f"this is {sandbox.name}")
        sandbox.remember(f"mood of {sandbox.name}", kind="register", topic="mood")
    assert a.consolidate().clashes == ()
    (clash,) = b.consolidate().clashes
    assert (clash.parent_rev, clash.found_rev) == (1, 2)
    assert len(account.memories(kind="episode")) == 2
    (mood,) = account.memories(kind="register")
    assert (mood.text, mood.rev) == ("mood of B", 3)
    assert [r.memory.text for r in account.history(mood.id)] == ["first", "mood of A", "mood of B"]


def test_a_strict_sandbox_hands_the_conflict_to_the_caller_and_stays(account):
    sandbox = account.sandbox(strict=True)
    sandbox.turn("user", "hello")
    account.remember("somebody else was faster")
    with pytest.raises(VersionConflict):
        sandbox.consolidate()
    sandbox.turn("assistant", "still here")
    assert len(account.sandboxes()) == 1


def test_update_state_replaces_and_patch_merges(account):
    with account.sandbox() as sandbox:
        sandbox.update_state("ire_state", {"calm": 0.8, "deep": {"a": 1, "b": 2}})
    with account.sandbox() as sandbox:
        sandbox.update_state("ire_state", {"calm": None, "deep": {"b": 3}}, patch=True)
    (state,) = account.memories(category="state")
    assert state.data == {"deep": {"a": 1, "b": 3}}
    with account.sandbox() as sandbox:
        sandbox.update_state("ire_state", {"only": "this"})
    (state,) = account.memories(category="state")
    assert (state.data, state.rev) == ({"only": "this"}, 3)


def test_a_temporary_id_becomes_permanent_and_crosslinks_follow(account):
    with account.sandbox() as sandbox:
        sandbox.write_episode({"episode_id": "ep_temp_001", "turn_1": {"speaker": "user", "text": "one"}})
        sandbox.write_episode(
            {
                "episode_id": "ep_temp_002",
                "turn_1": {"speaker": "user", "text": "two"},
                "crosslinks": {"temporal": ["ep_temp_001", "ep_elsewhere"]},
            }
        )
    one, two = account.memories(kind="episode")
    assert not one.id.startswith("ep_temp")
    assert two.linked("temporal") == (one.id, "ep_elsewhere")
    assert two.data["crosslinks"] == {"temporal": [one.id, "ep_elsewhere"]}


def test_an_episode_that_is_there_never_changes(account):
    with account.sandbox() as sandbox:
        sandbox.write_episode({"episode_id": "ep_001", "turn_1": {"speaker": "user", "text": "as it was"}})
    with account.sandbox() as sandbox:
        with pytest.raises(Immutable):
            sandbox.write_episode({"episode_id": "ep_001", "turn_1": {"text": "rewritten"}})
        assert sandbox.revise("ep_001", text="rewritten").check == "immutable"
    assert account.get("ep_001").turns[0].text == "as it was"
    assert account.revise("ep_001", text="rewritten").check == "immutable"


def test_the_episode_limit_is_policy_and_off_by_default(account, opened):
    with account.sandbox() as sandbox:
        for n in range(31):
            sandbox.turn("user", f"{n}")
            sandbox.turn("eva", f"{n}!")
    policy = octavo.Policy(sandbox=octavo.domain.policy.SandboxPolicy(max_episodes=30))
    limited = opened(policy=policy).sandbox()
    for n in range(30):
        limited.turn("user", f"{n}")
        limited.turn("eva", f"{n}!")
    with pytest.raises(Refused, match="30 episodes"):
        limited.turn("user", "the 31st")


def test_a_handle_bound_to_a_scope_cannot_write_or_resume_elsewhere(account, opened):
    private = account.sandbox(scope="elysia")
    private.close()
    orion = opened("agent:orion", scope="orion")
    with pytest.raises(OutOfScope):
        orion.sandbox(scope="elysia")
    with pytest.raises(NotFound):
        orion.resume(private.id)
    assert orion.sandboxes() == []


@pytest.mark.parametrize(
    ("act", "error"),
    [
        (lambda s: s.turn("", "text"), BadInput),
        (lambda s: s.turn("user", "   "), BadInput),
        (lambda s: s.turn("user", "x", at=datetime(2026, 1, 1)), BadInput),
        (lambda s: s.turn("user", "x", salience=1.5), BadInput),
        (lambda s: s.turn("user", "x", emotion=["joy"]), BadInput),
        (lambda s: s.turn("user", "x", data={"a": float("nan")}), BadInput),
        (lambda s: s.remember("x", kind="opinion"), BadInput),
        (lambda s: s.remember("x", kind="core"), BadInput),
        (lambda s: s.remember("x", source="rumour"), BadInput),
        (lambda s: s.remember("x", confidence="high"), BadInput),
        (lambda s: s.remember("x", tags="one"), BadInput),
        (lambda s: s.remember("x", id="../../etc"), BadInput),
        (lambda s: s.update_state("x", ["no", "object"]), BadInput),
        (lambda s: s.use("abc", feedback=2), BadInput),
        (lambda s: s.revise("abc"), BadInput),
        (lambda s: s.revise("abc", actor="human:me"), BadInput),
    ],
)
def test_bad_input_is_a_typed_error_and_buffers_nothing(account, act, error):
    sandbox = account.sandbox()
    with pytest.raises(error):
        act(sandbox)
    assert sandbox.buffer.entries == ()
