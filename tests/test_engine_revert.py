"""The way back in small steps: a version reverted, a decided proposal reopened; equal texts do not differ."""

from __future__ import annotations

import pytest

from octavo.domain.memory import Link
from octavo.errors import HumanOnly, NotFound, OutOfScope, Refused, Stale


def texts(reader, **wanted):
    return [memory.text for memory in reader.memories(**wanted)]


def test_a_reverted_version_takes_back_its_own_changes_and_leaves_what_others_wrote_since(account, agent):
    account.remember("lives in Bangkok", kind="register", topic="home")
    account.remember("lives in Chiang Mai", kind="register", topic="home")
    agent.remember("ชอบกาแฟดำไม่ใส่น้ำตาล", confidence=0.9)
    assert account.revert(2) == 4
    assert sorted(texts(account)) == ["lives in Bangkok", "ชอบกาแฟดำไม่ใส่น้ำตาล"]
    assert [commit.cause for commit in account.versions()][-1] == "revert 2"


def test_a_revert_can_be_reverted_and_brings_a_forgotten_memory_back(account):
    memory = account.remember("นัดหมอฟันวันศุกร์").memory
    account.forget(memory.id)
    account.revert(2)
    assert texts(account) == ["นัดหมอฟันวันศุกร์"]
    account.revert(3)
    assert texts(account) == []
    assert account.check()


def test_a_revert_refuses_where_a_later_revision_stands_and_names_the_memory(account):
    for home in ("lives in Bangkok", "lives in Chiang Mai", "lives in Lampang"):
        memory = account.remember(home, kind="register", topic="home").memory
    with pytest.raises(Stale, match=f"{memory.id} .*home.* revision 3, not 2"):
        account.revert(2)
    assert (account.version, texts(account)) == (3, ["lives in Lampang"])
    account.revert(3)
    account.revert(2)  # step by step: revision 4 says what revision 2 said
    assert texts(account) == ["lives in Bangkok"]


def test_a_memory_whose_topic_is_held_by_another_does_not_come_back(account):
    old = account.remember("paints the kitchen", kind="register", topic="plan").memory
    account.forget(old.id)
    new = account.remember("hikes up Doi Suthep", kind="register", topic="plan").memory
    assert new.id != old.id
    with pytest.raises(Stale, match="holds its topic"):
        account.revert(2)


def test_a_version_that_was_taken_back_already_is_not_taken_back_twice(account):
    account.remember("likes tea")
    assert (account.revert(1), account.revert(1)) == (2, 2)


def test_only_a_person_with_the_owners_handle_reverts(account, agent, opened):
    account.remember("likes tea")
    with pytest.raises(HumanOnly):
        agent.revert(1)
    with pytest.raises(OutOfScope):
        opened(scope="orion").revert(1)
    with pytest.raises(NotFound):
        account.revert(0)
    with pytest.raises(NotFound):
        account.revert(2)


def test_a_reverted_rejection_is_lifted_and_what_it_ended_lives_again(account, agent):
    agent.remember("Nok is afraid of dogs", confidence=0.9)
    account.reject("Nok is afraid of dogs")
    account.revert(2)
    assert (texts(account), account.rejections()) == (["Nok is afraid of dogs"], [])


def test_an_erased_text_does_not_return_by_a_revert(account):
    memory = account.remember("a secret wedding").memory
    account.forget(memory.id)
    account.redact(memory.id, reason="told in confidence")
    account.revert(2)
    assert texts(account) == []


def test_a_yes_taken_back_ends_the_memory_and_the_proposal_waits_again(account, agent):
    verdict = agent.remember("Nok is a vegetarian", kind="canon", topic="identity/diet")
    account.approve(verdict.proposal)
    again = account.reopen(verdict.proposal)
    assert (texts(account), [p.id for p in account.proposals()]) == ([], [again])
    assert account.approve(again).text == "Nok is a vegetarian"
    assert account.check()


def test_a_yes_to_a_change_taken_back_can_be_said_again(account, agent):
    account.remember("Somchai", kind="register", topic="profile/name")
    verdict = agent.remember("Robert", kind="register", topic="profile/name")
    account.approve(verdict.proposal)
    again = account.reopen(verdict.proposal)
    assert texts(account) == ["Somchai"]
    account.approve(again, seen=account.proposal(again).digest)
    assert texts(account) == ["Robert"]


def test_a_yes_in_other_words_passes_the_gate_and_is_one_step_to_take_back(account, agent):
    id_ = agent.remember("Nok is a vegetarian", kind="canon").proposal
    with pytest.raises(Refused):
        account.approve(id_, text="my card is 4111 1111 1111 1111")
    assert account.approve(id_, text="กินมังสวิรัติวันพระ").text == "กินมังสวิรัติวันพระ"
    account.revert(account.version)
    assert ([p.memory.text for p in account.proposals()], texts(account)) == (["Nok is a vegetarian"], [])


def test_a_no_taken_back_lifts_the_refusal_and_the_proposal_waits_again(account, agent):
    verdict = agent.remember("นกกินมังสวิรัติ", kind="canon")
    account.decline(verdict.proposal, reason="a guess")
    assert agent.remember("นกกินมังสวิรัติ", kind="canon").check == "rejection"
    again = account.reopen(verdict.proposal)
    assert [(p.id, p.by) for p in account.proposals()] == [(again, "agent:bot")]
    assert account.rejections() == []


def test_reverting_the_version_of_a_yes_reopens_its_proposal(account, agent):
    verdict = agent.remember("the mission is peace", kind="canon")
    account.approve(verdict.proposal)
    account.revert(account.version)
    assert [p.memory.text for p in account.proposals()] == ["the mission is peace"]


def test_what_waits_or_never_was_cannot_be_reopened_nor_twice(account, agent):
    verdict = agent.remember("the mission is peace", kind="canon")
    with pytest.raises(NotFound):
        account.reopen(verdict.proposal)
    account.decline(verdict.proposal)
    with pytest.raises(HumanOnly):
        agent.reopen(verdict.proposal)
    account.reopen(verdict.proposal)
    with pytest.raises(Stale, match="already"):
        account.reopen(verdict.proposal)


def test_a_yes_is_not_taken_back_under_a_later_change(account, agent):
    verdict = agent.remember("the mission is peace", kind="canon", topic="mission")
    account.approve(verdict.proposal)
    account.remember("the mission is tea", kind="canon", topic="mission")
    with pytest.raises(Stale, match="mission"):
        account.reopen(verdict.proposal)


def test_a_difference_leaves_out_what_only_has_a_new_revision(account):
    first = account.remember("lives in Bangkok", kind="register", topic="home").memory
    account.forget(first.id)
    account.restore(1)
    assert not account.diff(1, 3)
    assert account.diff(1, 2).removed


def test_an_agent_that_proposes_is_asked_for_evidence_and_its_reason_reaches_the_person(account, agent):
    with agent.sandbox() as sandbox:
        said = sandbox.turn("Nok", "I do not eat meat any more.")
    bare = agent.remember("Nok is kind", kind="canon")
    assert "evidence" in bare.advice
    told = agent.remember(
        "Nok is a vegetarian",
        kind="canon",
        links=[Link(name="evidence", to=said)],
        data={"reason": "she said so"},
    )
    assert "evidence" not in told.advice
    reasons = {p.memory.text: p.reason for p in account.proposals()}
    assert reasons["Nok is a vegetarian"].endswith(": she said so")
    assert account.proposal(told.proposal).proposal.memory.linked("evidence") == (said,)
