"""A question that was asked before is no answer, nor what a machine said to it then."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from octavo.domain import units

START = datetime(2026, 5, 1, 9, tzinfo=UTC)
OTHERS = [
    ("The bike shop on Leith Walk closes at six.", "Good to know."),
    ("ร้านกาแฟหน้าปากซอยเปิดเจ็ดโมงเช้า", "ดีจังค่ะ"),
]


@pytest.fixture
def lived(opened):
    """An account in which some exchanges took place, one a day, with some others among them."""

    def made(*exchanges, speakers=("user", "assistant")):
        account = opened()
        for day, pair in enumerate((*OTHERS, *exchanges)):
            at = START + timedelta(days=day)
            with account.sandbox(f"day {day}", started_at=at) as sandbox:
                for minute, (speaker, text) in enumerate(zip(speakers, pair, strict=True)):
                    sandbox.turn(speaker, text, at=at + timedelta(minutes=minute))
        return account

    return made


def told(account, question, **more):
    return [hit.text for hit in account.recall(question, rerank=False, **more)]


@pytest.mark.parametrize(
    ("answer", "asked", "echo", "again"),
    [
        (
            "My landlord Mr Okafor wants the rent by the 3rd now.",
            "what's my landlord called?",
            "Your landlord is called Mr Okafor.",
            "what's my landlord called?",
        ),
        (
            "Dan is coming over on Saturday, my brother is always late.",
            "who is Dan",
            "I don't know who Dan is.",
            "who is Dan?",
        ),
        (
            "เจ้าของบ้านเช่าชื่อลุงสมชาย ใจดีมาก",
            "เจ้าของบ้านเช่าชื่ออะไรนะ",
            "ไม่ทราบค่ะว่าเจ้าของบ้านเช่าชื่ออะไร",
            "เจ้าของบ้านเช่าชื่ออะไร",
        ),
    ],
)
def test_an_answer_stands_before_the_question_asked_again_and_its_echo(lived, answer, asked, echo, again):
    account = lived((answer, "Noted."), (asked, echo), (asked, echo))
    assert told(account, again)[0] == answer
    turns = told(account, again, unit="turn")
    assert turns[0] == answer
    assert turns.index(answer) < min(turns.index(text) for text in turns if text in (asked, echo))


@pytest.mark.parametrize(
    ("older", "asked", "echo", "newer"),
    [
        (
            "My rent is 950 a month.",
            "how much is my rent?",
            "Your rent is 950.",
            "My rent is 1000 from July.",
        ),
        ("แมวอยู่กับแม่ที่ขอนแก่น", "แมวอยู่กับใคร", "แมวอยู่กับแม่ที่ขอนแก่นค่ะ", "ตอนนี้แมวอยู่กับผมแล้ว"),
    ],
)
def test_what_a_machine_answered_then_stands_behind_what_the_user_said_since(
    lived, older, asked, echo, newer
):
    account = lived((older, "Noted."), (asked, echo), (newer, "Noted."))
    hits = told(account, asked, unit="turn")
    assert hits.index(newer) < hits.index(echo)


def test_what_only_a_machine_knows_is_still_the_answer(lived):
    account = lived(("What did the vet call the cream?", "The vet called the cream Surolan."))
    assert told(account, "What did the vet call the cream?")[0] == "The vet called the cream Surolan."


def test_what_was_asked_is_found_by_whom_that_is_the_question(lived):
    account = lived(("who is Dan?", "I don't know."), ("Dan is my brother.", "Noted."))
    assert "who is Dan?" in told(account, "what did I ask about Dan?", unit="turn")[:2]
    hit = next(hit for hit in account.recall("what did I ask about Dan?") if hit.text == "who is Dan?")
    assert "asked" not in hit.parts or not hit.parts["asked"]


def test_a_hit_says_that_it_only_asks_the_same(lived):
    account = lived(("who is Dan?", "I don't know."), ("Dan is my brother.", "Noted."))
    hit = next(hit for hit in account.recall("who is Dan?", unit="turn") if hit.text == "who is Dan?")
    assert hit.parts["asked"] < 0
    assert "only asks the same" in hit.why


def test_people_who_talk_among_themselves_lose_nothing_by_asking(lived):
    account = lived(("Who is Dan?", "Dan is my brother."), speakers=("Maya", "Ben"))
    assert not any(hit.parts.get("asked") for hit in account.recall("Who is Dan?", unit="turn"))


@pytest.mark.parametrize("question", ["what did I tell you about Anna?", "do you know where Anna works?"])
def test_an_echo_does_not_come_first_because_a_question_says_what_was_told(lived, question):
    anna = "My sister Anna works at the Royal Infirmary as a nurse."
    account = lived((anna, "Nice."), ("how much do I pay?", "You told me that your rent is 950 a month."))
    assert told(account, question)[0] == anna
    assert "You told me that your rent is 950 a month." not in told(account, question, k=1, unit="turn")


@pytest.mark.parametrize(
    ("text", "speaker", "only_asks"),
    [
        ("what's my landlord called", "user", True),
        ("who is Dan", "user", True),
        ("do i have anything on friday", "user", True),
        ("แมวชื่ออะไร", "user", True),
        ("หมอนัดวันไหนคะ", "user", True),
        ("I'm not sure who your landlord is.", "assistant", True),
        ("ไม่ทราบค่ะ", "assistant", True),
        ("What a day", "user", False),
        ("Did you know I moved to Leeds?", "user", False),
        ("When I was young we lived in Leeds", "user", False),
        ("รู้ไหมว่าเราย้ายไปเชียงใหม่แล้ว", "user", False),
        ("คุณแม่ย้ายไปเชียงใหม่เมื่อวาน ทำยังไงดี", "user", False),
        ("I'm not sure, but you said it was Mr Okafor.", "assistant", False),
        ("what's my landlord called", "Maya", False),
    ],
)
def test_who_talks_with_a_machine_asks_without_a_mark_too(text, speaker, only_asks):
    found = units.substance(text, speaker)
    assert bool(found & 8 and found & 64) is only_asks
