"""Boosts: functions from hits to hits, in the order they are listed; and reasons that are true."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

import octavo
from octavo.domain.compression import CompressionPolicy
from octavo.engine.boosts import lifted
from octavo.engine.recall import Recaller
from octavo.errors import BadInput


@pytest.fixture
def words(opened):
    """An account that recalls by words alone."""
    return opened(embedder=False)


def with_boosts(account, *more):
    indexing, _ = account._recalling()
    account._made = (indexing, Recaller(account._spine, indexing, account._worker.wake, more=more))


def test_a_boost_gets_the_question_and_the_hits_and_its_hits_stand(words):
    words.remember("the harbour is quiet in winter")
    words.remember("ท่าเรือเงียบในฤดูหนาว")
    words.remember("Anna photographs every boat that leaves a harbour before the winter storms")
    seen = []

    def last_first(recalled, hits):
        seen.append((recalled.query.text, recalled.vector, recalled.base.version, [h.text for h in hits]))
        recalled.notes.append("turned round")
        return [lifted(hit, "assembly", float(rank)) for rank, hit in enumerate(hits)]

    before = [hit.text for hit in words.recall("harbour in winter")]
    with_boosts(words, last_first)
    hits = words.recall("harbour in winter")
    assert [hit.text for hit in hits] == before[::-1]
    assert hits[0].parts["assembly"] == len(before) - 1
    assert "belongs to an assembly that fits" in hits[0].why
    assert "turned round" in hits.notes
    assert seen == [("harbour in winter", None, 3, before)]


def test_a_boost_may_bring_hits_and_take_some_away_but_never_more_than_asked(words):
    for text in ("tea in the garden", "tea with Anna", "ชาเขียวกับ tea"):
        words.remember(text)
    with_boosts(words, lambda recalled, hits: [*hits, *hits])
    assert len(words.recall("tea", k=2)) == 2
    with_boosts(words, lambda recalled, hits: [])
    assert words.recall("tea") == []


@pytest.mark.parametrize("indexed", [False, True])
def test_a_core_lifts_its_episodes_without_being_decoded(opened, indexed, monkeypatch):
    account = opened(policy=octavo.Policy(compression=CompressionPolicy(mode="immediate")), embedder=False)
    for number in range(8):
        with account.sandbox() as sandbox:
            sandbox.turn("user", f"I planted {number} mango trees behind the house with Anna.")
    if indexed:
        account.catch_up()
    decoded = []
    original = octavo.storage.state_view.decode_memory

    def noting(envelope, body):
        memory = original(envelope, body)
        decoded.append(memory.kind)
        return memory

    account.recall("planted 5 mango trees")
    monkeypatch.setattr(octavo.storage.state_view, "decode_memory", noting)
    hits = account.recall("planted 5 mango trees", kinds=("episode",)) + account.recall("5 mango trees")
    assert all(hit.memory.kind == "episode" for hit in hits)
    assert any(hit.parts.get("abstraction", 0) > 0 for hit in hits)
    if indexed:
        assert "core" not in decoded


def test_the_documents_names_of_streams_are_taken_everywhere(opened):
    account = opened(policy=octavo.Policy(compression=CompressionPolicy(mode="immediate")), embedder=False)
    for number in range(8):
        with account.sandbox() as sandbox:
            sandbox.turn("user", f"I planted {number} mango trees ต้นมะม่วง with Anna.")
    for theirs, ours in (("narrative", "words"), ("temporal", "time"), ("intuition", "links")):
        asked, named = (account.recall("mango ต้นมะม่วง", streams=[name]) for name in (theirs, ours))
        assert [(hit.text, hit.parts.keys()) for hit in asked] == [(h.text, h.parts.keys()) for h in named]
    for name in ("emotion", "salience", "sensory", "reflection"):
        account.recall("mango", streams={name: 0.5, "narrative": 1.0})
    assert {hit.memory.kind for hit in account.recall("mango", streams="core")} == {"core"}
    assert {hit.memory.kind for hit in account.recall("mango", streams=["episode", "words"])} == {"episode"}
    assert account.recall("mango", streams="core", kinds="episode") == []
    assert account.recall("mango", streams="sphere") == []
    with pytest.raises(BadInput, match="smell"):
        account.recall("mango", streams=["core", "smell"])


def test_only_what_a_person_said_was_said_by_a_person(words):
    words.remember("the harbour has a red lighthouse")
    with words.sandbox() as sandbox:
        sandbox.turn("user", "Is the harbour open?")
        sandbox.turn("assistant", "The harbour opens at nine.")
        sandbox.turn("user", "ท่าเรือ harbour ปิดกี่โมง")
        sandbox.turn("Orion", "The harbour closes at six.")
    why = {hit.text: hit.why for hit in words.recall("harbour", unit="turn")}
    assert len(why) == 5
    told = {text for text, reason in why.items() if "was said by a person" in reason}
    assert told == {"Is the harbour open?", "ท่าเรือ harbour ปิดกี่โมง"}
    assert "was said by Orion" in why["The harbour closes at six."]


def test_an_agent_that_speaks_under_its_own_name_is_no_person(opened):
    orion = opened("agent:orion", embedder=False)
    with orion.sandbox() as sandbox:
        sandbox.turn("Nok", "The harbour is closed today")
        sandbox.turn("Orion", "The harbour opens tomorrow ค่ะ")
    why = {hit.text: hit.why for hit in orion.recall("harbour", unit="turn")}
    assert "was said by a person" in why["The harbour is closed today"]
    assert "was said by Orion" in why["The harbour opens tomorrow ค่ะ"]


def test_only_a_text_that_shares_words_is_said_to(words):
    with words.sandbox() as sandbox:
        sandbox.turn("Mali", "Which dog did you adopt?")
        sandbox.turn("Anna", "A beagle, from the shelter.")
        sandbox.turn("Mali", "สวนสวยมาก")
    why = {hit.text: hit.why for hit in words.recall("adopt a dog", unit="turn")}
    assert "shares words" in why["Which dog did you adopt?"]
    assert "shares words" not in why["A beagle, from the shelter."]
    assert "stands beside words of the question" in why["A beagle, from the shelter."]


def test_a_very_long_question_is_cut_and_the_notes_say_so(words):
    words.remember("the harbour is quiet")
    words.remember("ท่าเรือเงียบ")
    hits = words.recall("harbour " + "ท่าเรือ noise " * 8_000)
    assert {hit.text for hit in hits} == {"the harbour is quiet", "ท่าเรือเงียบ"}
    assert any("only the first 2000 of the question's" in note for note in hits.notes)
    assert words.recall("harbour").notes == words.recall("harbour quiet").notes


def test_an_assembly_is_never_a_hit(words):
    words.remember("the harbour is quiet")
    fact = words.remember("boats leave at nine").memory
    made = replace(fact, id="assembly_1", kind="assembly", text="harbour and boats")
    words._spine.commit(lambda pending, _: pending.apply(made), cause="assemble", actor="system")
    for _ in range(2):
        assert "assembly" not in {hit.memory.kind for hit in words.recall("harbour boats")}
        assert words.recall("harbour", kinds="assembly") == []
        words.catch_up()
    assert "not searched" in words.explain("harbour", made.id)
