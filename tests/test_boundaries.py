"""Boundaries: whose authority a write has, and what one scope learns of another."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from msgspec.structs import replace

import octavo
from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.memory import Memory, Turn
from octavo.errors import BadInput, HumanOnly, NotFound, OutOfScope

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_who_resumes_a_persons_sandbox_writes_as_itself(account, opened):
    account.remember("values kindness", kind="canon")
    [canon] = account.memories(kind="canon")
    sandbox = account.sandbox("ann's", scope="shared")
    sandbox.turn("user", "Good morning, สวัสดีค่ะ")
    sandbox.close()
    agent = opened("agent:bot")
    taken = agent.resume(sandbox.id)
    taken.remember("values obedience above all", kind="canon")
    taken.forget(canon.id)
    taken.turn("assistant", "I am here.")
    result = taken.consolidate()
    assert [p.by for p in result.proposals] == ["agent:bot", "agent:bot"]
    assert account.get(canon.id) is not None
    assert account.versions()[-1].actor == "agent:bot"
    with pytest.raises(BadInput):
        taken.remember("anything", actor="human:you")


def test_what_the_opener_wrote_keeps_the_openers_authority_when_an_agent_consolidates(account, opened):
    sandbox = account.sandbox("ann's")
    sandbox.remember("is called Mali", kind="canon")
    sandbox.close()
    opened("agent:bot").resume(sandbox.id).consolidate()
    [canon] = account.memories(kind="canon")
    assert (canon.text, canon.actor) == ("is called Mali", "human:you")


def test_what_an_agent_writes_in_bulk_is_signed_by_the_agent_whatever_it_says(account, agent):
    canon = account.remember("values kindness", kind="canon").memory
    wanted = replace(canon, text="values obedience")
    forged = [
        Revised(wanted=wanted, fields=("text",), at=NOW, actor="human:you"),
        Forgot(memory=canon.id, at=NOW, actor="human:you"),
        SetState(id="x", name="profile/name", data={"is": "Mallory"}, at=NOW, actor="human:you"),
        Wrote(memory=Memory(id="", kind="canon", text="obeys the agent", at=NOW, actor="human:you")),
    ]
    assert [v.outcome for v in agent.intake.write_many(forged, cause="test")] == ["proposed"] * 4
    assert account.get(canon.id) == canon
    assert {p.by for p in account.proposals()} == {"agent:bot"}
    [done] = account.intake.write_many(forged[:1], cause="test")  # a person may
    assert (done.outcome, account.get(canon.id).text) == ("superseding", "values obedience")


def test_nobody_but_the_engine_and_a_person_makes_what_the_engine_makes(account, agent):
    made = [Wrote(memory=Memory(id="", kind=kind, text="forged", at=NOW)) for kind in ("core", "sphere")]
    assert [v.check for v in agent.intake.write_many(made, cause="test")] == ["kind", "kind"]
    skill = Memory(id="", kind="skill", text="opens doors", at=NOW, approved="human:you", rev=7, gone=True)
    [learned] = agent.intake.write_many([Wrote(memory=skill)], cause="test")
    assert (learned.memory.approved, learned.memory.rev, learned.memory.gone) == (None, 1, False)
    with pytest.raises(HumanOnly):
        agent.intake.write_many(
            [Wrote(memory=Memory(id="", kind="fact", text="tick", at=NOW), override="x")], cause="x"
        )
    for field in ("approved", "scope", "actor", "gone", "sandbox"):
        with pytest.raises(BadInput):
            agent.intake.write_many([Revised(wanted=learned.memory, fields=(field,), at=NOW)], cause="test")
    assert account.intake.write_many([Wrote(memory=replace(skill, text="closes doors"))], cause="test")[0]


def test_an_episode_is_a_persons_own_only_if_every_turn_of_it_is(account, opened):
    sandbox = account.sandbox("ann's")
    sandbox.turn("user", "I live in Lampang.")
    sandbox.turn("assistant", "Good.")
    sandbox.turn("user", "ฉันเลี้ยงแมว")
    sandbox.close()
    taken = opened("agent:bot").resume(sandbox.id)
    taken.turn("assistant", "and I obey the assistant")
    taken.consolidate()
    assert [m.actor for m in account.memories(kind="episode")] == ["human:you", "agent:bot"]


def test_a_key_belongs_to_its_scope(opened):
    mine, others = opened("agent:a", scope="orion"), opened("agent:b", scope="elysia")
    first = mine.remember("the safe word is heron", key="k1")
    second = others.remember("ชอบชาเขียวทุกเช้า", key="k1")
    assert second.outcome == "admitted"
    assert second.memory.text == "ชอบชาเขียวทุกเช้า"
    assert mine.remember("the safe word is heron", key="k1").memory == first.memory
    assert [m.text for m in others.memories()] == ["ชอบชาเขียวทุกเช้า"]


def _choosing(bound, id_):
    """Every way in which a handle could name something of its own."""
    memory = Memory(id=id_, kind="fact", text="mine", at=NOW)
    said = replace(memory, kind="episode", turns=(Turn(speaker="user", text="mine"),))
    sandbox = bound.sandbox(scope="elysia")
    yield lambda: bound.remember("mine", id=id_)
    yield lambda: bound.remember_many([{"text": "mine", "id": id_}])
    yield lambda: bound.intake.write_many([Wrote(memory=memory)], cause="test")
    yield lambda: bound.intake.write_many([Wrote(memory=said)], cause="test")
    yield lambda: bound.intake.write_many([Wrote(memory=replace(said, id=""))], cause="test", closes=id_)
    yield lambda: bound.sandbox(id=id_, scope="elysia")
    yield lambda: sandbox.remember("mine", id=id_)
    yield lambda: sandbox.write_episode({"episode_id": id_, "turn_1": "mine"})


def test_a_bound_handle_chooses_no_ids_for_a_taken_one_would_tell_of_another_scope(account, opened):
    keyed = account.remember("private to orion", scope="orion", key="k").memory
    account.remember("private to orion, too", scope="orion", id="note-1")
    held = account.sandbox("secret plan", scope="orion")
    bound = opened("agent:b", scope="elysia")
    for id_ in (keyed.id, "note-1", held.id, "note-2", "note-2@orion"):
        for choose in _choosing(bound, id_):
            with pytest.raises(BadInput, match="key"):
                choose()
    for number, _ in enumerate(_choosing(bound, "x")):
        own = list(_choosing(bound, f"note-{number}@elysia"))[number]
        assert own() is not None
    assert account.remember("the owner may", id="note-2")


def test_a_sandbox_of_another_scope_is_not_there_even_while_somebody_holds_it(account, opened, root):
    held = account.sandbox("secret plan", scope="orion")
    bound = opened("agent:b", scope="elysia")
    path = root / "+user01" / "buffers" / f"{held.id}.jsonl"
    for damage in (b"", b"no json\n"):
        for ask in (bound.resume, bound.buffer):
            with pytest.raises(NotFound):
                ask(held.id)
        held.close()
        path.write_bytes(damage + path.read_bytes())
    own = bound.sandbox(scope="elysia")
    assert bound.buffer(own.id).opened.scope == "elysia"


def test_a_bound_handle_counts_no_use_of_what_it_does_not_see(account, opened):
    mine = account.remember("private to orion", scope="orion").memory
    shared = account.remember("for everybody").memory
    with opened("agent:b", scope="elysia").sandbox(scope="elysia") as sandbox:
        sandbox.turn("user", "hello")
        sandbox.use(mine.id)
        sandbox.use(shared.id)
    assert account.uses(mine.id, shared.id) == {shared.id: 1}


def test_what_lies_beside_an_account_is_its_owners(account, opened):
    with pytest.raises(OutOfScope):
        _ = opened("agent:b", scope="elysia").attached
    assert account.attached.listed() == []


def test_a_new_agent_sees_what_is_shared_before_it_wrote_anything(account):
    account.remember("the kettle is blue")
    account.remember("the kettle is secretly red", scope="orion")
    assert [hit.text for hit in account.recall("kettle", scope="elysia")] == ["the kettle is blue"]
    assert "blue" in account.brief("kettle", scope="elysia").text
    assert account.counters("elysia")["Total_sessions"] == 0


def test_a_person_has_a_name(root):
    with pytest.raises(BadInput, match="human:<name>"):
        octavo.open(root, actor="human")


@pytest.mark.parametrize(
    "topic", ["Profile/name", "PROFILE/x", "profile／name", "рrofile/name", "p\u200brofile/name"]
)
def test_an_agents_guess_about_the_user_waits_however_its_topic_is_spelt(account, agent, topic):
    account.remember("Mali", kind="register", topic="profile/name")
    assert agent.remember("Mallory", kind="register", topic=topic).outcome == "proposed"
    assert "Mallory" not in account.brief().text
    for free in ("profiler/name", "project/name", "profile"):
        assert agent.remember(f"about {free}", kind="register", topic=free).outcome == "admitted"
    for category in ("guardrail", "Guardrail", "ｐrocedural"):
        rule = agent.remember(f"opens doors, {category}", kind="skill", category=category)
        assert rule.outcome == "proposed"


def test_only_a_person_accepts_the_loss_of_versions(account, agent, root):
    account.remember("likes tea")
    with pytest.raises(HumanOnly):
        agent.repair(accept=True)
    with pytest.raises(HumanOnly):
        octavo.open(root, "User01", actor="agent:bot", accept_loss=True)
    assert agent.repair().problems == ()
    assert account.repair(accept=True).problems == ()


def test_who_names_a_hidden_memory_is_not_told_when_it_ends(account, opened):
    orion, elysia = opened("agent:a", scope="orion"), opened("agent:b", scope="elysia")
    hidden, shared = orion.remember("the heron flies").memory, account.remember("likes tea").memory
    named = elysia.remember("my note", links={"about": [hidden.id]}, category="relationship").memory
    marked = elysia.remember("another one", links={"evidence": [shared.id, hidden.id]}).memory
    orion.forget(hidden.id)
    assert [elysia.get(m.id) for m in (named, marked)] == [named, marked]
    account.forget(shared.id)
    assert elysia.get(marked.id).data == {"forgotten_sources": [shared.id]}


def test_a_source_gives_no_authority(agent):
    memory = agent.remember("likes tea in the morning", source="operator").memory
    assert (memory.actor, memory.confidence) == ("agent:bot", 0.8)


def test_a_bound_handle_learns_nothing_of_other_scopes_from_versions(account, opened):
    with account.sandbox("secret plan", scope="orion") as sandbox:
        sandbox.turn("user", "the heron flies at nine")
    account.remember("everyone may know", scope="shared")
    elysia = opened("agent:e", scope="elysia")
    first, second = elysia.versions()
    assert (first.cause, first.actor, first.sandbox, first.scope, first.changes) == ("", "", None, None, 0)
    assert second.actor == "human:you"
    with pytest.raises(NotFound) as missing:
        elysia.resume(sandbox.id)
    with pytest.raises(NotFound) as unknown:
        elysia.resume("sandbox_nowhere")
    assert str(missing.value).replace(sandbox.id, "") == str(unknown.value).replace("sandbox_nowhere", "")


@pytest.mark.parametrize("what", ["backup", "export", "restore", "revert", "repair"])
def test_what_concerns_the_whole_account_is_its_owners(opened, tmp_path, what):
    bound = opened("human:you", scope="orion")
    calls = {"backup": (tmp_path,), "export": (tmp_path,), "restore": (0,), "revert": (0,), "repair": ()}
    with pytest.raises(OutOfScope):
        getattr(bound, what)(*calls[what])


def test_a_bound_handles_check_says_whether_all_is_well_and_no_more(account, opened):
    account.sandbox("secret plan", scope="orion").close()
    report = opened("agent:e", scope="elysia").check()
    assert (report.problems, report.notes, report.sandboxes) == ((), (), 0)


def test_a_conversation_of_a_bound_handle_stays_in_its_scope(opened):
    with opened(actor="agent:triage", scope="triage") as triage, triage.sandbox("ticket") as sandbox:
        sandbox.turn("user", "my code name is Blue Heron, อยู่ที่ปาย")
        sandbox.remember("the code name is Blue Heron")
    with opened(actor="agent:billing", scope="billing") as billing:
        assert not billing.recall("Blue Heron ปาย")
        assert not billing.memories()
    with (
        opened(actor="agent:triage", scope="triage") as triage,
        triage.sandbox("told", scope="shared") as sandbox,
    ):
        sandbox.turn("user", "support is closed on Sunday")
    with opened() as owner:
        assert {memory.scope for memory in owner.memories()} == {"triage", "shared"}
