"""The gate: what each kind may hold, and that passing it twice changes nothing."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from octavo.domain.gate import check_text, is_plain
from octavo.domain.memory import Memory, Turn, transcript
from octavo.domain.policy import Policy, PrivacyPolicy
from octavo.domain.verdicts import Verdict

AT = datetime(2026, 1, 1, tzinfo=UTC)


def fact(text, **more):
    return Memory(id="m", kind="fact", text=text, at=AT, **more)


def episode(text, **more):
    turns = (Turn(speaker="user", text=text, data=more.pop("turn_data", {})),)
    return Memory(id="e", kind="episode", text=transcript(turns), turns=turns, at=AT, **more)


@pytest.mark.parametrize(
    ("memory", "check"),
    [
        (fact("   "), "empty"),
        (fact("tick marker for burst 5"), "noise"),
        (fact("x" * 1300), "length"),
        (fact("password: hunter2"), "secret"),
        (fact("harmless", data={"deep": [{"api_key": "sk-abc123def456"}]}), "secret"),
        (fact("harmless", tags=("password=hunter2secret",)), "secret"),
        (fact("harmless", topic="AKIA" + "IOSFODNN7EXAMPLE"), "secret"),
    ],
)
def test_a_statement_is_refused_with_the_check_that_stopped_it(memory, check):
    outcome = check_text(memory, Policy())
    assert isinstance(outcome, Verdict)
    assert outcome.check == check
    assert outcome.advice


def test_an_episode_is_kept_with_every_secret_masked_wherever_it_hides():
    given_ = episode("รหัสผ่าน: hunter2secret นะ", turn_data={"note": "password: hunter2"}, tags=("ok",))
    kept = check_text(given_, Policy())
    assert isinstance(kept, Memory)
    assert "hunter2" not in f"{kept}"
    assert kept.turns[0].speaker == "user"


def test_noise_and_length_do_not_apply_to_episodes():
    assert isinstance(check_text(episode("heartbeat " * 300), Policy()), Memory)


def test_phone_and_email_are_allowed_masked_or_refused_by_policy():
    text = "call me at 081-234-5678 or mail somchai@example.com"
    assert check_text(fact(text), Policy()) == fact(text)
    masked = check_text(fact(text), Policy(privacy=PrivacyPolicy(phone="mask", email="mask")))
    assert isinstance(masked, Memory)
    assert "081" not in masked.text
    assert "somchai" not in masked.text
    refused = check_text(fact(text), Policy(privacy=PrivacyPolicy(phone="refuse")))
    assert isinstance(refused, Verdict)


@given(st.text(max_size=300))
def test_what_passed_the_gate_passes_it_again_unchanged(text):
    kept = check_text(episode(text or "x"), Policy())
    if isinstance(kept, Memory):
        assert check_text(kept, Policy()) == kept


SAID = [
    "password is hunter2",
    "I like tea",
    "",
    "  ",
    "บัตร 1101700230673",
    "ชอบชาเขียว",
    "x" * 40,
    "tick marker 5",
]


@given(
    st.sampled_from(["user", "sk-abc123def456ghi789", "มะลิ"]),
    st.sampled_from(SAID),
    st.sampled_from([{}, {"note": "my password is hunter2"}, {"n": 1}]),
    st.sampled_from([None, 30]),
    st.booleans(),
    st.sampled_from(["mask", "refuse", "allow"]),
)
def test_a_turn_is_plain_exactly_when_the_checks_of_an_episode_change_nothing(
    speaker, text, data, longest, noise, secrets
):
    row = replace(Policy().kinds.episode, max_length=longest, noise=noise, secrets=secrets)
    policy = replace(Policy(), kinds=replace(Policy().kinds, episode=row))
    turn = Turn(speaker=speaker, text=text, data=data)
    memory = Memory(id="e1", kind="episode", at=AT, text=transcript([turn]), turns=(turn,))
    if is_plain(turn, policy):
        assert check_text(memory, policy) is memory
    elif not noise and text.strip():
        assert check_text(memory, policy) is not memory
