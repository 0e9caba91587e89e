"""Corrections, as an account lives them: what is said later holds, and what it replaced is marked.

The five ways of Atlas' correction tests, each asked at once, after the index was made anew, and after the
account was opened again; each with a control that must not move.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

import octavo
from octavo import Account

START = datetime(2026, 1, 10, 9, tzinfo=UTC)

OTHERS = (
    "Tom's dentist is Dr. Lee",
    "The rehearsal is in the old library",
    "Marta plays the oboe",
    "The parking permit costs 40 euros",
    "แม่ของต้นชอบปลูกกุหลาบ",
    "The cat sleeps on the piano",
)

WAYS = {
    "replacement": ("where does Nora live?", "Nora lives in Porto", "Nora moved to Braga in March"),
    "retraction": ("does Nora have a sister?", "Nora has a sister", "I misspoke, Nora has no sister"),
    "polarity": (
        "does Alice like green tea?",
        "Alice likes green tea",
        "Alice does not like green tea any more",
    ),
    "partial": (
        "when is the choir?",
        "The choir meets on Tuesday at 7",
        "The choir meets on Tuesday at 8 now",
    ),
    "bounded": (
        "who is her manager?",
        "Her manager is Priya until May",
        "Her manager is Tom Reyes since June",
    ),
    "thai": ("ต้นอยู่ที่ไหน", "ต้นอยู่ที่ขอนแก่น", "ต้นย้ายไปอยู่ที่ภูเก็ตแล้ว"),
}

CONTROLS = {
    "replacement": "Nora is thinking about moving to Faro one day",
    "retraction": "Nora's cousin has no brother",
    "polarity": "Marta does not like green tea",
    "partial": "The orchestra meets on Wednesday at 6 now",
    "bounded": "Her dentist is Ana Lopes since June",
    "thai": "ต้นอยากไปอยู่เชียงใหม่สักวัน",
}


@pytest.fixture
def lived(tmp_path):
    """Accounts with words alone: what they find must not hang on a model."""
    clock = [START]

    def open_() -> Account:
        return octavo.open(
            tmp_path, account="nora", actor="human:nora", embedder=False, clock=lambda: clock[0]
        )

    def write(account: Account, *texts: str) -> list[str]:
        ids = []
        for text in texts:
            clock[0] += timedelta(days=20)
            ids.append(account.remember(text).or_raise().id)
        return ids

    with open_() as account:
        write(account, *OTHERS)
    return open_, write


def first_two(account: Account, question: str) -> list[str]:
    return [hit.memory.text for hit in account.recall(question)[:2]]


@pytest.mark.parametrize("way", WAYS)
def test_what_is_said_later_holds_at_once_after_reindexing_and_after_a_restart(lived, way):
    open_, write = lived
    question, older, newer = WAYS[way]
    with open_() as account:
        _, new = write(account, older, newer)
        assert first_two(account, question) == [newer, older]
        account.reindex()
        assert first_two(account, question) == [newer, older]
    with open_() as account:
        hits = account.recall(question)
        assert [hit.memory.text for hit in hits[:2]] == [newer, older]
        assert hits[0].replaced is None
        assert hits[1].replaced.newer == new
        assert f"replaced by {new}" in hits[1].why


@pytest.mark.parametrize("way", WAYS)
def test_what_is_about_something_else_displaces_nothing(lived, way):
    open_, write = lived
    question, older, _ = WAYS[way]
    with open_() as account:
        write(account, older, CONTROLS[way])
        assert first_two(account, question)[0] == older
        account.reindex()
        hits = account.recall(question)
        assert hits[0].memory.text == older
        assert all(hit.replaced is None for hit in hits)


def test_a_question_about_the_past_and_an_older_version_get_the_older_fact(lived):
    open_, write = lived
    question, older, newer = WAYS["replacement"]
    with open_() as account:
        write(account, older)
        then = account.version
        write(account, newer)
        assert first_two(account, "where did Nora live before?") == [older, newer]
        assert first_two(account, question) == [newer, older]
        assert first_two(account.at(then), question)[0] == older
        assert account.at(then).recall(question)[0].replaced is None


def test_the_brief_tells_the_older_only_as_what_held_until_then(lived):
    open_, write = lived
    question, older, newer = WAYS["bounded"]
    with open_() as account:
        old, new = write(account, older, newer)
        day = account.get(new).at.date().isoformat()
        lines = str(account.brief(question)).splitlines()
        told = [line for line in lines if old in line or new in line]
        assert newer in told[0]
        assert "until 2026" not in told[0]
        assert f"until {day}" in told[1]
        assert f'"until":"{day}"' in str(account.brief(question, format="json"))


def test_a_link_of_the_gate_alone_moves_nothing(lived):
    open_, write = lived
    with open_() as account:
        manager, dentist = write(account, "Her manager is Tom Reyes", "Her dentist is Tom Reyes")
        hits = account.recall("who is her manager?")
        assert hits[0].memory.id == manager
        assert not hits[0].notes
        assert dentist in [hit.memory.id for hit in hits]


@pytest.mark.parametrize(
    ("older", "other", "newer"),
    [
        ("I live in Chiang Mai", "Ana lives in Paris", "I moved to Bangkok"),
        ("ฉันอยู่เชียงใหม่", "แอนอยู่ปารีส", "ฉันย้ายไปกรุงเทพแล้ว"),
    ],
)
def test_the_verdict_names_what_a_change_told_in_other_words_is_of(lived, older, other, newer):
    open_, _ = lived
    with open_() as account:
        old = account.remember(older).memory.id
        account.remember(other)
        verdict = account.remember(newer)
        assert [c.id for c in verdict.contrasts] == [old]
        assert f"supersedes='{old}'" in verdict.advice


def test_advice_is_for_who_writes_a_few_and_waits_for_it(lived):
    open_, _ = lived
    with open_() as account:
        account.remember("I live in Chiang Mai")
        many = [{"text": f"Shelf {n} of the archive holds maps"} for n in range(20)]
        assert account.remember_many([*many, {"text": "I moved to Bangkok"}])[-1].contrasts == ()
        assert account.remember_many([{"text": "I relocated to Phuket for good"}])[0].contrasts


def test_the_verdict_names_what_a_new_fact_contrasts_with_and_the_way_to_replace_it(lived):
    open_, write = lived
    with open_() as account:
        (old,) = write(account, "Her manager is Priya")
        verdict = account.remember("Her manager is Tom Reyes since June")
        assert [(c.id, c.text) for c in verdict.contrasts] == [(old, "Her manager is Priya")]
        assert f"supersedes={old!r}" in verdict.advice
        assert "topic" in verdict.advice
        assert account.remember("The bakery opens at six").contrasts == ()


def test_a_fact_supersedes_another_by_its_id_or_by_its_text(lived):
    open_, write = lived
    with open_() as account:
        (old,) = write(account, "Her manager is Priya")
        by_text = account.remember("Her manager is Tom Reyes", supersedes="her manager is Priya.")
        assert by_text.outcome == "superseding"
        assert account.get(old) is None
        by_id = account.remember("Her manager is Ana Lopes", supersedes=by_text.memory.id)
        assert by_id.outcome == "superseding"
        nobody = account.remember("Her manager is Bo", supersedes="Her gardener is Cy")
        assert (nobody.check, bool(nobody)) == ("supersedes", False)
        (home,) = write(account, "ต้นอยู่ที่ขอนแก่น")
        assert account.remember("ต้นอยู่ที่ภูเก็ต", supersedes="ต้นอยู่ที่ขอนแก่น").outcome == "superseding"
        assert account.get(home) is None


def test_a_text_that_could_mean_two_facts_supersedes_neither(lived):
    open_, write = lived
    with open_() as account:
        write(account, "Her big desk lamp is red", "Her big desk lamp is blue")
        verdict = account.remember("Her lamp is green", supersedes="Her big desk lamp is old")
        assert not verdict


def test_a_retraction_outlives_the_source_being_told_again(lived):
    open_, write = lived
    with open_() as account:
        old, new = write(account, "Nora has a sister", "I misspoke, Nora has no sister")
        account.forget(old)
        again = account.remember("Nora has a sister")
        assert again
        hits = account.recall("does Nora have a sister?")
        assert {hit.memory.text for hit in hits[:2]} == {
            "Nora has a sister",
            "I misspoke, Nora has no sister",
        }
        account.reject("Nora has a sister", reason="she has none")
        account.forget(again.memory.id)
        assert account.remember("Nora has a sister").check == "rejection"
        assert account.recall("does Nora have a sister?")[0].memory.id == new


def test_facts_that_merely_share_the_words_of_a_question_keep_their_order(lived):
    open_, write = lived
    with open_() as account:
        write(
            account,
            "The mango shop near the river opens at noon",
            "They sell mango juice beside a bicycle shop",
        )
        hits = account.recall("mango shop river")
        assert hits[0].memory.text.startswith("The mango shop")
        assert all(hit.replaced is None for hit in hits)


TALK = (
    ("we hired Petra for mornings, she starts at 5", "Petra quit, her mum is ill. Now Honza does mornings"),
    ("our flour comes from Perner's mill", "Perner had a bad batch, our flour comes from Vozenilek now"),
    ("ผมทำงานอยู่ที่ร้านกาแฟแถวสยาม", "ผมย้ายมาทำงานที่โรงแรมแล้วครับ"),
)


@pytest.fixture
def talked(tmp_path):
    """An account of talk alone, the later of each pair four months after the earlier."""
    with octavo.open(tmp_path / "talk", actor="agent:helper", clock=lambda: START) as account:
        for pair, at in ((0, START), (1, START + timedelta(days=120))):
            with account.sandbox(started_at=at) as sandbox:
                for minute, said in enumerate(TALK):
                    sandbox.turn("user", said[pair], at=at + timedelta(minutes=minute))
                    sandbox.turn("assistant", "Noted, thank you.", at=at + timedelta(minutes=minute))
        account.catch_up()
        yield account


@pytest.mark.parametrize(
    ("question", "pair"),
    [("who does the mornings?", 0), ("where does our flour come from?", 1), ("ผมทำงานที่ไหน", 2)],
)
def test_of_what_a_user_said_the_later_stands_first(talked, question, pair):
    for unit in ("turn", "episode"):
        texts = [hit.text for hit in talked.recall(question, unit=unit)]
        assert texts.index(TALK[pair][1]) < texts.index(TALK[pair][0]), unit


def test_what_was_said_later_ends_nothing(talked):
    hits = talked.recall("who does the mornings?", unit="turn")
    assert all(hit.replaced is None for hit in hits)
    later = next(hit for hit in hits if hit.text == TALK[0][1])
    earlier = next(hit for hit in hits if hit.text == TALK[0][0])
    assert f"said later than {earlier.memory.id}" in later.notes


@pytest.mark.parametrize("question", ["who did mornings in January?", "when did Petra start?"])
def test_who_asks_what_happened_gets_what_fits(talked, question):
    assert not any("current" in hit.parts for hit in talked.recall(question, unit="turn"))


def test_the_words_of_an_assistant_take_nobodys_place(tmp_path):
    with octavo.open(tmp_path, actor="agent:helper", clock=lambda: START) as account:
        for day, speaker, said in ((0, "user", TALK[1][0]), (90, "assistant", TALK[1][1])):
            with account.sandbox(started_at=START + timedelta(days=day)) as sandbox:
                sandbox.turn(speaker, said, at=START + timedelta(days=day))
        account.catch_up()
        assert not any(
            "current" in hit.parts for hit in account.recall("where does our flour come from?", unit="turn")
        )
