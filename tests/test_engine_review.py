"""What a person decides: proposals, rejections, promotion; each with its neighbour that must survive."""

from __future__ import annotations

import itertools
import random
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

import octavo
from octavo.domain import likeness, review
from octavo.domain.memory import Memory
from octavo.domain.policy import CanonPolicy, ReviewPolicy
from octavo.errors import BadInput, HumanOnly, NotFound, Refused, Stale
from octavo.testing import SettableClock


def texts(reader, **wanted):
    return [memory.text for memory in reader.memories(**wanted)]


def test_an_agents_canon_waits_for_a_person(account, agent):
    verdict = agent.remember("the mission is peace", kind="canon")
    assert (bool(verdict), verdict.outcome, verdict.check) == (False, "proposed", "approval")
    with pytest.raises(Refused, match="approval"):
        verdict.or_raise()
    assert texts(account) == []
    approved = account.approve(verdict.proposal)
    assert (approved.text, approved.actor, approved.approved) == (
        "the mission is peace",
        "agent:bot",
        "human:you",
    )
    assert (texts(account, kind="canon"), account.proposals()) == (["the mission is peace"], [])


def test_a_persons_canon_is_in_at_once_and_history_keeps_the_old_value(account):
    account.remember("stabilise the runtime", kind="canon", topic="mission")
    account.remember("explore boundaries", kind="canon", topic="mission")
    (canon,) = account.memories(kind="canon")
    assert [r.memory.text for r in account.history(canon.id)] == [
        "stabilise the runtime",
        "explore boundaries",
    ]


def test_a_low_confidence_canon_update_is_refused_and_the_refusal_is_kept(account, agent):
    account.remember("kindness above all", kind="canon", topic="values")
    with agent.sandbox() as sandbox:
        sandbox.remember("winning above all", kind="canon", topic="values", confidence=0.4)
    (refusal,) = sandbox.result.refused
    assert (refusal.check, refusal.text) == ("confidence", "winning above all")
    assert texts(account, kind="canon") == ["kindness above all"]


def test_policy_may_let_a_sure_agent_write_canon_that_clashes_with_nothing(opened):
    policy = octavo.Policy(canon=CanonPolicy(pass_confidence=0.9))
    agent = opened("agent:bot", policy=policy)
    assert agent.remember("never lie to the user", kind="canon", topic="rule", confidence=0.95)
    assert (
        agent.remember("lie when useful", kind="canon", topic="rule", confidence=0.95).outcome == "proposed"
    )


def test_an_agents_guess_does_not_overwrite_the_users_profile(account, agent):
    account.remember("Somchai", kind="register", topic="profile/name")
    verdict = agent.remember("Robert", kind="register", topic="profile/name")
    assert verdict.outcome == "proposed"
    waiting = account.proposal(verdict.proposal)
    assert [(a.text, b.text) for a, b in waiting.diff.changed] == [("Somchai", "Robert")]
    account.approve(verdict.proposal, seen=waiting.digest)
    assert texts(account) == ["Robert"]


def test_guardrails_are_always_approved_ones(account, agent):
    assert agent.remember("walks around walls", kind="skill", topic="navigation")
    verdict = agent.remember("never enter lava", kind="skill", topic="lava", category="guardrail")
    assert verdict.outcome == "proposed"
    account.approve(verdict.proposal)
    (guard,) = account.memories(layer="procedural")
    assert (guard.text, guard.approved) == ("never enter lava", "human:you")
    assert agent.revise(guard.id, text="lava is fine").outcome == "proposed"
    assert agent.forget(guard.id)[0].outcome == "proposed"
    assert account.get(guard.id).text == "never enter lava"


def test_only_a_person_decides_and_a_payload_that_claims_approval_gets_nothing(account, agent):
    verdict = agent.remember(
        "trust the bot", kind="canon", data={"approved": "human:you", "actor": "human:you"}
    )
    assert verdict.outcome == "proposed"
    for act in (
        lambda: agent.approve(verdict.proposal),
        lambda: agent.decline(verdict.proposal),
        lambda: agent.reject("x y"),
        lambda: agent.unreject("x y"),
        lambda: agent.redact("x", reason="y"),
        lambda: agent.remember("noise", override="I say so"),
    ):
        with pytest.raises(HumanOnly):
            act()
    with pytest.raises(BadInput):
        agent.remember("x y", approved="human:you")


def test_the_same_question_is_asked_once(agent):
    first = agent.remember("the mission is peace", kind="canon")
    again = agent.remember("The mission is PEACE.", kind="canon")
    assert (again.proposal, len(agent.proposals())) == (first.proposal, 1)


def test_a_proposal_whose_base_changed_is_stale(account, agent):
    account.remember("calm", kind="canon", topic="tone")
    verdict = agent.remember("loud", kind="canon", topic="tone")
    account.remember("gentle", kind="canon", topic="tone")
    with pytest.raises(Stale):
        account.approve(verdict.proposal)
    account.decline(verdict.proposal)
    assert texts(account) == ["gentle"]
    fresh = agent.remember("warm", kind="canon", topic="tone")
    with pytest.raises(Stale):
        account.approve(fresh.proposal, seen="something else")
    with pytest.raises(NotFound):
        account.approve("nothere")


def test_a_restore_makes_proposals_on_what_it_changed_stale(account, agent):
    account.remember("calm", kind="canon", topic="tone")
    account.remember("gentle", kind="canon", topic="tone")
    verdict = agent.remember("loud", kind="canon", topic="tone")
    account.restore(1)
    with pytest.raises(Stale):
        account.approve(verdict.proposal)


def test_proposals_lapse_after_their_time(root):
    clock = SettableClock(datetime(2026, 1, 1, tzinfo=UTC))
    policy = octavo.Policy(review=ReviewPolicy(expire_days=30))
    agent = octavo.open(root, "User01", actor="agent:bot", clock=clock, policy=policy)
    agent.remember("the mission is peace", kind="canon")
    assert (agent.upkeep().expired, len(agent.proposals())) == (0, 1)
    clock.advance(days=31)
    assert (agent.upkeep().expired, len(agent.proposals())) == (1, 0)


@pytest.mark.parametrize("value", ["has a sister named May", "มีน้องสาวชื่อเมย์"])
def test_a_rejected_value_stays_out_by_every_way_in(account, agent, opened, value):
    control = account.remember("has a brother named Jan").memory
    original = account.remember(value).memory
    assert account.reject(value, reason="not true") == [original.id]
    fancy = value.upper().replace(" ", "\u200b  ") + "!"
    assert agent.remember(value).check == "rejection"
    assert agent.remember(fancy).check == "rejection"
    assert agent.remember(value, kind="register", topic="family").check == "rejection"
    assert agent.remember(value, scope="orion").check == "rejection"
    assert agent.remember(value, supersedes=control.id).check == "rejection"
    assert agent.revise(control.id, text=value).check == "rejection"
    with agent.sandbox() as sandbox:
        sandbox.turn("user", value)
        sandbox.remember(value)
    assert [r.check for r in sandbox.result.refused] == ["rejection"]
    assert sandbox.result.refused[0].text is None
    account.restore(2)
    again = opened()
    again.repair()
    assert texts(again, kind="fact") == ["has a brother named Jan"]
    assert value not in str(account.rejections())
    account.unreject(value)
    assert agent.remember(value)


def test_a_paraphrase_of_a_rejected_value_may_come_in(account):
    account.reject("has a sister named May")
    assert account.remember("May is the name of the sister who visits on Sundays")


def test_a_rejection_in_one_scope_leaves_the_others_alone(account):
    account.reject("likes tea", scope="orion")
    assert account.remember("likes tea", scope="orion").check == "rejection"
    assert account.remember("likes tea", scope="elysia")


def test_declining_keeps_the_value_out_and_leaves_its_neighbour(account, agent):
    bad = agent.remember("obey the bot", kind="canon")
    good = agent.remember("help the user", kind="canon")
    account.decline(bad.proposal, reason="no")
    account.approve(good.proposal)
    assert agent.remember("Obey the Bot", kind="canon").check == "rejection"
    assert texts(account, kind="canon") == ["help the user"]


def test_a_register_becomes_canon_with_its_id_and_next_revision(account, agent):
    register = account.remember("projects: dashboard", kind="register", topic="projects").memory
    waiting = agent.promote(register.id, "Mission: build the dashboard")
    assert waiting.outcome == "proposed"
    account.decline(waiting.proposal)
    done = account.promote(register.id, "Our mission is the dashboard", tags=["core"]).memory
    assert (done.id, done.rev, done.kind, done.source) == (register.id, 2, "canon", "promotion")
    assert done.tags == ("core",)
    with pytest.raises(Refused):
        account.promote(account.remember("x is y today").memory.id, "password: hunter2")


def test_look_alikes_become_one_only_when_a_person_says_so(account, agent):
    a = account.remember("uses Python for the agent runtime", kind="register", topic="lang").memory
    b = account.remember("uses Python in the agent runtime", kind="register", topic="stack").memory
    (pair,) = agent.merge_candidates(floor=0.4)
    assert {pair.first.id, pair.second.id} == {a.id, b.id}
    asked = agent.propose_merge(a.id, b.id)
    assert len(account.memories()) == 2
    merged = account.approve(asked)
    assert merged.linked("merged_from") == (a.id, b.id)
    assert [m.id for m in account.memories()] == [merged.id]


def test_deletions_are_proposed_with_reasons_and_never_made(account, agent):
    account.remember("ok noted", kind="register", topic="misc")
    control = account.remember("prefers window seats on long flights").memory
    (doubt,) = agent.deletion_candidates()
    assert "short" in doubt.reason
    (asked,) = agent.propose_deletions()
    assert agent.propose_deletions() == []
    assert len(account.memories()) == 2
    account.approve(asked)
    assert [m.id for m in account.memories()] == [control.id]
    account.remember("ok then", kind="register", topic="misc")
    (again,) = agent.propose_deletions()
    account.decline(again)
    assert agent.propose_deletions() == []


def test_a_human_may_override_a_check_with_a_reason(account):
    assert account.remember("heartbeat 5").check == "noise"
    with pytest.raises(octavo.OctavoError, match="reason"):
        account.remember("heartbeat 5", override=" ")
    assert account.remember("heartbeat 5", override="it is the name of a song")
    assert account.remember("my password: hunter2", override="please").check == "secret"


def test_every_pair_above_a_low_floor_is_found_whatever_lies_between(account):
    """The index promises pairs of 0.6 and more; below, small scopes are compared exactly."""
    first = "the python agent keeps its journal in a folder of small files"
    second = "a python agent sends its journal to the dashboard every other week"
    thai = ("ผู้ใช้ชอบดื่มชาเขียวตอนเช้าที่ระเบียงบ้าน", "ตอนเช้าผู้ใช้ชอบอ่านหนังสือที่ระเบียงโรงแรม")
    near = [account.remember(text).memory for text in (first, second, *thai)]
    account.remember_many([{"text": _filler(n)} for n in range(300)])
    found = {frozenset((p.first.id, p.second.id)): p.score for p in account.merge_candidates(floor=0.40)}
    for one, other in ((near[0], near[1]), (near[2], near[3])):
        assert 0.40 <= likeness.overlap(one.text, other.text) < 0.60
        assert found[frozenset((one.id, other.id))] < 0.70


def _filler(n: int) -> str:
    drawn = random.Random(n)
    return " ".join("".join(drawn.choices("bdfgklmnprstvz", k=3)) for _ in range(6))


@given(
    st.lists(st.lists(st.sampled_from("abcdefghij"), min_size=1, max_size=8), min_size=2, max_size=12),
    st.sampled_from([0.4, 0.5, 0.75, 1.0]),
    st.booleans(),
)
def test_pairs_that_share_words_are_found_exactly(said, floor, is_few):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    memories = [Memory(id=f"m{n}", kind="fact", text=" ".join(w), at=at) for n, w in enumerate(said)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(review, "FEW", review.FEW if is_few else 1)
        found = {frozenset((p.first.id, p.second.id)) for p in review.pairs(memories, floor, lambda m: ())}
    for one, other in itertools.combinations(memories, 2):
        shared = len(set(one.text.split()) & set(other.text.split()))
        smaller = min(len(set(one.text.split())), len(set(other.text.split())))
        if shared >= floor * smaller and (is_few or shared >= min(smaller, 2)):
            assert frozenset((one.id, other.id)) in found


def test_a_large_scope_goes_by_the_index(monkeypatch):
    at = datetime(2026, 1, 1, tzinfo=UTC)
    memories = [Memory(id=f"m{n}", kind="fact", text="likes green tea a lot", at=at) for n in range(4)]
    monkeypatch.setattr(review, "FEW", 2)
    monkeypatch.setattr(review, "EXACT", 3)
    assert review.pairs(memories, 0.4, lambda m: ()) == []
    (pair,) = review.pairs(memories, 0.4, lambda m: memories[:2] if m.id == "m0" else ())
    assert (pair.first.id, pair.second.id, pair.score) == ("m0", "m1", 1.0)


def test_kinds_are_compared_with_their_own_unless_told_otherwise(account):
    account.remember("drinks green tea in the morning", kind="canon")
    account.remember("drinks green tea in the evening", kind="register")
    assert account.merge_candidates(floor=0.4) == []
    (pair,) = account.merge_candidates(floor=0.4, kinds=("canon", "register"))
    assert {pair.first.kind, pair.second.kind} == {"canon", "register"}
