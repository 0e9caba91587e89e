"""What a brief without a question tells of a person who never asked for anything to be remembered."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta

import pytest

from briefs import read
from octavo import Account
from octavo.domain.brief_page import SAID
from octavo.domain.memory import Memory, Turn
from octavo.domain.themselves import topics_of

Opened = Callable[..., Account]
BEGAN = datetime(2026, 1, 5, 9, tzinfo=UTC)

ENGLISH = (
    ("My name is Ana Duarte.", "I work as a nurse at Saint Mary's."),
    ("I live in Porto with my husband Rui.", "My daughter Mia starts school in September."),
    ("I'm a vegetarian.", "We have two cats, Miso and Tofu."),
    ("I'm so tired today.", "I love that!"),
    ("I'm allergic to peanuts.", "What should I cook tonight?"),
    ("I moved to Lisbon.", "If I lived in Rome I would eat ice cream all day."),
    ("I'm not a vegetarian any more, I'm a pescatarian.", "Always answer in Portuguese."),
    ("I'm learning Japanese.", "We're moving to a bigger flat in March."),
)
THAI = (
    ("ผมชื่อต้น เป็นครูสอนวิทยาศาสตร์", "ผมอาศัยอยู่ที่เชียงราย"),
    ("ฉันแพ้กุ้ง", "ลูกสาวของผมชื่อมายา อายุ 6 ขวบ"),
    ("วันนี้ฝนตกทั้งวัน", "ผมชอบปีนเขามาก"),
    ("ผมย้ายมาอยู่เชียงใหม่แล้ว", "พรุ่งนี้อากาศเป็นยังไงบ้าง"),
    ("ต่อไปนี้ให้ตอบเป็นภาษาไทยเสมอ", "เราเลี้ยงแมวสองตัว"),
)


def live(account: Account, sessions: Sequence[Sequence[str]], scope: str = "shared", week: int = 0) -> None:
    """Talk in one sandbox a week; the assistant says of itself what the user might."""
    for number, said in enumerate(sessions, start=week):
        at = BEGAN + timedelta(weeks=number)
        with account.sandbox(scope=scope, started_at=at) as sandbox:
            for text in said:
                sandbox.turn("user", text, at=at)
                sandbox.turn("assistant", "I live in the cloud and my name is Robo.", at=at)


def quoted(account: Account, **asked: str) -> dict[str, str]:
    """What stands under the heading of quotes: each text with its topic."""
    sections = read(account.brief(**asked).standing).sections if account.brief(**asked).standing else {}
    return {line[4]: line[3] or "" for line in sections.get(SAID, [])}


@pytest.fixture
def ana(opened: Opened) -> Account:
    account = opened("agent:bot", "ana", embedder=False)
    live(account, ENGLISH)
    return account


def episode(account: Account, text: str) -> str:
    return next(m.id for m in account.memories(kind="episode") if text in m.text)


def test_an_account_of_talk_only_tells_whom_the_agent_is_talking_to(ana: Account) -> None:
    assert quoted(ana) == {
        "My name is Ana Duarte.": "name",
        "I work as a nurse at Saint Mary's.": "work",
        "My daughter Mia starts school in September.": "family",
        "… my husband Rui.": "family",  # with whom Ana lived in Porto, which no longer holds
        "We have two cats, Miso and Tofu.": "pets",
        "I'm allergic to peanuts.": "health",
        "I moved to Lisbon.": "home",
        "I'm not a vegetarian any more, I'm a pescatarian.": "health",
        "I'm learning Japanese.": "pursuits",
        "We're moving to a bigger flat in March.": "plans",
    }


def test_each_quote_names_its_turn_and_day(ana: Account) -> None:
    brief = ana.brief()
    [line] = [line for line in read(brief.standing).sections[SAID] if "peanuts" in line[4]]
    assert line[:3] == (episode(ana, "peanuts"), "episode", "2026-02-02")
    assert brief.sources[line[0]] == line[0]


def test_an_order_without_a_condition_is_told_without_a_question(ana: Account) -> None:
    assert "Always answer in Portuguese." in ana.brief().orders
    assert "Always answer in Portuguese." not in quoted(ana)


def test_a_thai_account_tells_in_thai(opened: Opened) -> None:
    account = opened("agent:bot", "ton", embedder=False)
    live(account, THAI)
    assert quoted(account) == {
        "ผมชื่อต้น เป็นครูสอนวิทยาศาสตร์": "name",
        "ฉันแพ้กุ้ง": "health",
        "ลูกสาวของผมชื่อมายา อายุ 6 ขวบ": "family",
        "ผมชอบปีนเขามาก": "likes",
        "ผมย้ายมาอยู่เชียงใหม่แล้ว": "home",
        "เราเลี้ยงแมวสองตัว": "pets",
    }
    assert "ให้ตอบเป็นภาษาไทยเสมอ" in account.brief().orders


def test_it_is_the_same_with_a_question_and_after_small_talk(ana: Account) -> None:
    before = ana.brief().standing
    assert ana.brief("what may she eat?").standing == before
    live(ana, [["Good morning!", "Thanks, that helps a lot."]], week=9)
    assert ana.brief().standing == before


def test_a_quoted_turn_can_still_be_relevant(ana: Account) -> None:
    assert "peanuts" in ana.brief("what is she allergic to?").relevant


def test_a_scope_hears_nothing_of_what_was_said_in_another(ana: Account, opened: Opened) -> None:
    live(ana, [["I work for the secret service.", "I have three sons."]], scope="orion", week=10)
    assert "I have three sons." in quoted(ana, scope="orion")
    for other in (opened("agent:bot", "ana", scope="elysia"), opened("agent:bot", "ana", scope="shared")):
        assert "I have three sons." not in quoted(other)
        assert "I work for the secret service." not in quoted(other)
        assert "I'm allergic to peanuts." in quoted(other)


def test_many_words_in_another_scope_leave_room_for_ones_own(ana: Account, opened: Opened) -> None:
    live(ana, [[f"I work for company number {n}." for n in range(40)]], scope="orion", week=10)
    assert "I work as a nurse at Saint Mary's." in quoted(opened("agent:bot", "ana", scope="elysia"))


def test_a_forgotten_turn_is_quoted_no_more_in_a_sandbox_either(ana: Account) -> None:
    id_ = episode(ana, "peanuts")
    with ana.sandbox() as sandbox:
        sandbox.forget(id_)
        assert "I'm allergic to peanuts." not in sandbox.brief().text
    version = ana.version
    assert "I'm allergic to peanuts." not in quoted(ana)
    assert "I'm allergic to peanuts." in ana.at(version - 1).brief().text


def test_a_redacted_turn_is_quoted_no_more_at_any_version(ana: Account, opened: Opened) -> None:
    owner = opened("human:ana", "ana")
    version = owner.version
    owner.redact(episode(ana, "peanuts"), reason="private")
    assert "peanuts" not in owner.brief().text + owner.at(version).brief().text
    assert "peanuts" not in opened("agent:bot", "ana").brief().text


def test_what_a_person_refused_is_not_quoted(ana: Account, opened: Opened) -> None:
    owner = opened("human:ana", "ana")
    owner.reject("I'm allergic to peanuts.", reason="a joke")
    assert "I'm allergic to peanuts." not in quoted(ana)


def test_assistants_tools_and_people_among_themselves_are_not_quoted(opened: Opened) -> None:
    account = opened("agent:bot", "others", embedder=False)
    with account.sandbox() as sandbox:
        sandbox.turn("assistant", "I live in Paris.")
        sandbox.turn("tool", "My name is Weather Service.")
    with account.sandbox() as sandbox:
        sandbox.turn("Melanie", "I live in Oslo with my son Tim.")
        sandbox.turn("Caroline", "I moved to Bergen.")
    account.remember("I live in Rome", confidence=0.9)
    assert quoted(account) == {}


def test_what_is_noted_goes_first_and_a_small_budget_cuts_the_quotes(ana: Account) -> None:
    ana.remember("Ana leads the night shift", confidence=0.9)
    brief = ana.brief(budget=260)
    assert "Ana leads the night shift" in brief.text
    assert brief.tokens <= 260
    assert brief.left_out.facts > 0


def test_what_it_reads_is_bounded(ana: Account) -> None:
    live(ana, [[f"My sister number {n} lives in town {n}." for n in range(60)]], week=20)
    assert len(ana.quotes()) <= 14
    assert "My name is Ana Duarte." in [quote.text for quote in ana.quotes()]


def test_a_state_that_is_made_anew_tells_the_same(ana: Account, opened: Opened) -> None:
    before = ana.brief().text
    ana.close()
    again = opened("human:ana", "ana")
    again.repair()
    assert again.brief().text == before


@pytest.mark.parametrize("said", ["i used to walk ", "i really ", "my ", "I live. ", "ฉันอยู่", "เลิกกิน", " ชื่อ"])
def test_a_huge_turn_is_looked_at_as_far_as_a_person_writes(said):
    turn = Turn(speaker="user", text=said * 20_000, at=BEGAN)
    memory = Memory(
        id="m", rev=1, kind="episode", scope="shared", source="turn", actor="human:you", at=BEGAN,
        salience=0.5, confidence=1.0, text=turn.text, turns=(turn,),
    )  # fmt: skip
    begun = time.process_time()
    topics_of(memory)
    assert time.process_time() - begun < 5  # it took minutes; a thousandth of this is enough


def test_whom_they_name_as_family_is_told_though_the_day_has_passed(opened: Opened) -> None:
    account = opened("agent:bot", "dani", embedder=False)
    live(
        account, [("My daughter Elsie turned 6 yesterday, we had a cake.", "My sister came over yesterday.")]
    )
    assert list(quoted(account).values()) == ["family"]


def test_in_thai_who_is_meant_may_be_left_out(opened: Opened) -> None:
    account = opened("agent:bot", "mali", embedder=False)
    live(
        account,
        [
            ("สวัสดีค่ะ ชื่อมะลินะคะ เป็นเภสัชกร", "ช่วยคิดเมนูเย็นนี้หน่อย แพ้กุ้งนะ", "ทีมแพ้อีกแล้ว"),
            ("ได้หมามาเลี้ยงตัวนึง ชื่อโมจิ", "ย้ายมาอยู่อุดรแล้วค่ะ", "เพื่อนย้ายไปอยู่ลาวแล้ว"),
            ("ตอบสั้นๆ นะคะ อ่านในมือถือ", "ยังไม่กินข้าวเลย"),
        ],
    )
    assert sorted(quoted(account).values()) == ["health", "home", "name", "pets"]
    assert [order.text for order in account.orders() if order.is_general] == ["ตอบสั้นๆ นะคะ อ่านในมือถือ"]


def held(opened: Opened, name: str, *said: str) -> list[str]:
    """What an account tells of a user who said one thing a week."""
    account = opened("agent:bot", name, embedder=False)
    live(account, [[text] for text in said])
    return sorted(quoted(account))


def test_a_job_or_a_boss_of_before_is_told_no_more(opened: Opened) -> None:
    assert held(
        opened,
        "petra",
        "I just started a new job as a dispatcher at Vantaa Freight.",
        "My boss is called Ilkka.",
        "I quit Vantaa Freight. From September I'm at the harbour, at Port Services, as planner.",
        "My new boss is called Beatrice.",
    ) == [
        "From September I'm at the harbour, at Port Services, as planner.",
        "My new boss is called Beatrice.",
    ]
    assert held(opened, "jim", "I work at Nokia.", "I run a bakery.", "I quit my job.") == [
        "I quit my job.",
        "I run a bakery.",
    ]
    assert held(opened, "kai", "I work at Nokia.", "I left Nokia and started at Ericsson.") == [
        "I left Nokia and started at Ericsson."
    ]
    assert held(opened, "lek", "ผมทำงานที่ปตท", "ผมลาออกจากปตทแล้ว", "ผมได้งานที่กสิกร") == ["ผมได้งานที่กสิกร"]


def test_who_says_only_that_they_moved_lives_no_more_where_they_did(opened: Opened) -> None:
    said = "We moved! I'm writing from the new flat in Helsinki."
    assert held(opened, "petra", "I live in Tampere, the train takes long.", said) == [
        said.partition("! ")[2]
    ]
    assert held(opened, "jim", "I live in Tampere, the train takes long.", "We moved!") == ["We moved!"]


def test_another_persons_name_home_and_allergy_are_not_the_users(opened: Opened) -> None:
    others = (
        "สวัสดีค่ะ เพื่อนเราชื่อส้ม มาจากเชียงราย",
        "หัวหน้าผมชื่อเอก",
        "เพื่อนผมแพ้กุ้ง",
        "เจ้านายเราย้ายไปอยู่ภูเก็ต",
        "ครูของหนูชื่อแดง",
    )
    assert held(opened, "ton", "ผมชื่อต้น", *others) == ["ผมชื่อต้น"]
    assert held(opened, "ana", "Hi, I'm Ana.", "I'm Finnish.") == ["Hi, I'm Ana.", "I'm Finnish."]


def test_what_is_handed_in_to_be_worked_on_tells_nothing_of_the_user(opened: Opened) -> None:
    assert not held(
        opened,
        "ana",
        "Translate into Thai: My name is John and I live in Paris.",
        "Please proofread this letter:\n\nDear Sir, I live in Leeds. I'm allergic to nuts.",
        "แปลเป็นอังกฤษ: ผมชื่อสมชาย ผมแพ้กุ้ง",
        "ช่วยสรุปให้หน่อย\nฉันชื่อมาลี ฉันอาศัยอยู่ที่ตาก",
    )


def test_who_takes_up_again_what_they_had_given_up_is_told_so(opened: Opened) -> None:
    said = "I drink coffee again."
    assert held(opened, "ana", "I don't drink coffee.", said) == [said]


def test_a_job_of_before_is_not_told_with_the_name_it_was_told_with(opened: Opened) -> None:
    job = "Got the job at St James's, I start in April."
    named = "I'm Nadia, I'm a paediatric nurse at Leeds General and I'm tired."
    assert held(opened, "nadia", named, "I've handed in my notice at Leeds General!", job) == [
        job,
        "I'm Nadia …",
    ]
    moved = "ย้ายโรงเรียนแล้วนะ ตอนนี้สอนอยู่โรงเรียนมงฟอร์ต"
    said = "สวัสดีค่ะ เราชื่อมุกนะคะ เป็นครูอยู่ที่โรงเรียนวัดป่าแดด"
    assert held(opened, "mook", said, moved) == [moved, "สวัสดีค่ะ เราชื่อมุกนะคะ …"]
    assert held(opened, "june", said, "ตอนนี้ทำงานอยู่ที่ลำพูน") == [
        "ตอนนี้ทำงานอยู่ที่ลำพูน",
        said,
    ]  # of two jobs nobody left one


def test_a_name_in_the_sentence_behind_is_told_with_whom_it_names(opened: Opened) -> None:
    account = opened("agent:bot", "nadia", embedder=False)
    live(
        account,
        [
            ("I've got a cat now!! She's called Biscuit, 8 weeks old.",),
            ("I have a daughter. Her name is Mia.", "My brother is a pilot. He's called away a lot."),
            ("เราเลี้ยงหมาหนึ่งตัวค่ะ\nชื่อโมจิ",),
            ("I'm Jonas btw, backend lead.",),
        ],
    )
    told = quoted(account)
    assert told["I'm Jonas btw, backend lead."] == "name"
    assert {
        "I've got a cat now!! She's called Biscuit, 8 weeks old.",
        "I have a daughter. Her name is Mia.",
    } <= set(told)
    assert "เราเลี้ยงหมาหนึ่งตัวค่ะ ชื่อโมจิ" in told
    assert "My brother is a pilot." in told


def test_in_little_room_a_brief_says_first_whom_it_talks_to(opened: Opened) -> None:
    account = opened("agent:bot", "ana", embedder=False)
    live(account, [["My name is Ana Duarte."]])
    later = [
        "My sister Rita is a doctor.",
        "I love swimming in the sea.",
        "I work as a nurse at Saint Mary's.",
    ]
    live(account, [later], week=60)
    assert account.quotes()[0].text == "My name is Ana Duarte."
    assert "Ana Duarte" in account.brief("what should I cook?", budget=200).standing


def test_what_they_have_given_up_is_told_no_more(opened: Opened) -> None:
    learning = "I'm learning Portuguese for the wedding, every morning on the bus."
    given_up = "I've given up on Portuguese, no time with the masters application."
    assert held(opened, "nadia", learning, given_up) == [given_up]
    assert held(opened, "jim", learning, "I've given up on Dan.") == [learning]
    assert held(opened, "kai", learning, "I'm no longer studying German.") == [
        "I'm learning Portuguese for the wedding, every morning on the bus.",
        "I'm no longer studying German.",
    ]


PASSING = (
    "I work nights this week.",
    "We're getting married on 20 June.",
    "I'm studying in Leeds this year.",
    "My flatmate Kemi is moving out in June.",
    "ช่วงนี้ผมทำงานกะดึกถึงสิ้นเดือนพฤษภาคม",
)
LASTING = (
    "I work at Brewdog.",
    "My birthday is on 20 May.",
    "I moved to Leith on 3 May.",
    "My daughter Mia starts school in September.",
)


def test_what_was_told_of_a_time_is_told_no_more_when_it_is_over(opened: Opened) -> None:
    days = [datetime(2026, 5, 20, 9, tzinfo=UTC)]
    account = opened("agent:bot", "jo", embedder=False, clock=lambda: days[0])
    for said in (*PASSING, *LASTING):
        with account.sandbox() as sandbox:
            sandbox.turn("user", said, at=days[0])

    def told() -> set[str]:
        assert set(quoted(account)) == {quote.text for quote in account.quotes()}
        return set(quoted(account))

    assert told() == {*PASSING, *LASTING}
    for day, gone in ((datetime(2026, 5, 26, tzinfo=UTC), 1), (datetime(2026, 6, 1, tzinfo=UTC), 2)):
        days[0] = day
        assert len({*PASSING} - told()) == gone
    days[0] = datetime(2027, 10, 1, tzinfo=UTC)
    assert told() == {*LASTING}


def test_a_fact_of_a_time_leaves_the_profile_with_it_and_is_still_found(opened: Opened) -> None:
    days = [datetime(2026, 5, 20, 9, tzinfo=UTC)]
    account = opened("human:jo", "jo", embedder=False, clock=lambda: days[0])
    account.remember("Emi marries Ton on 20 June.")
    account.remember("Emi plays the violin.")
    assert "marries" in account.brief().text
    days[0] = datetime(2026, 7, 1, tzinfo=UTC)
    assert "marries" not in account.brief().text
    assert "violin" in account.brief().text
    assert "marries" in account.brief("whom does Emi marry?").text


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("ผมชอบกินเผ็ดมาก", "เลิกกินเผ็ดแล้ว"),
        ("ฉันแพ้กุ้งค่ะ", "ตอนนี้ไม่แพ้กุ้งแล้วค่ะ"),
        ("ผมชอบดื่มกาแฟตอนเช้า", "ผมเลิกดื่มกาแฟแล้ว"),
        ("ผมไม่กินเนื้อวัว", "กลับมากินเนื้อวัวแล้ว"),
        ("หนูกินเจค่ะ", "เลิกกินเจแล้วค่ะ"),
    ],
)
def test_in_thai_too_a_later_word_ends_a_liking_or_what_one_does_not_eat(
    opened: Opened, earlier: str, later: str
) -> None:
    other = "ผมชอบปีนเขามาก"
    assert set(held(opened, "ton", earlier, other, later)) == {other, later}


def test_in_thai_a_later_word_about_another_thing_ends_nothing(opened: Opened) -> None:
    assert set(held(opened, "ton", "ผมชอบกินเผ็ดมาก", "ผมเลิกดื่มกาแฟแล้ว")) == {
        "ผมชอบกินเผ็ดมาก",
        "ผมเลิกดื่มกาแฟแล้ว",
    }


def test_who_supervises_is_told_and_a_new_one_takes_the_place(opened: Opened) -> None:
    told = "my supervisor is Prof Hargreaves, she's scary", "My new supervisor is Dr Osei."
    assert held(opened, "noor", *told) == ["My new supervisor is Dr Osei."]
