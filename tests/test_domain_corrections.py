"""Corrections: the newer of two facts about the same thing goes first, and nothing else is disturbed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from octavo.domain.corrections import (
    CERTAIN,
    REPLACES,
    Fact,
    arrange,
    is_about_the_past,
    present,
    probability,
)

START = datetime(2026, 1, 5, tzinfo=UTC)


def facts(*texts: str, relevance: tuple[float, ...] = ()) -> list[Fact]:
    """Facts a month apart, the first the oldest; the best by relevance comes first."""
    made = [
        Fact(
            id=f"m{n}",
            text=text,
            at=START + timedelta(days=30 * n),
            version=n + 1,
            relevance=relevance[n] if relevance else 1 - n / 100,
        )
        for n, text in enumerate(texts)
    ]
    return sorted(made, key=lambda fact: -fact.relevance)


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("where does Nora live?", "Nora lives in Porto", "Nora moved to Braga in March"),
        ("who is her dentist?", "Her dentist is Dr. Kovacs", "Her dentist is Dr. Amari since May"),
        ("does Ben smoke?", "Ben smokes", "Ben gave up smoking"),
        ("how much is the rent?", "The rent is 900 euros", "The rent was raised to 980 euros"),
        (
            "is Ida allergic to nuts?",
            "Ida is allergic to nuts",
            "The test was wrong, Ida is not allergic to nuts",
        ),
        ("ต้นอยู่ที่ไหน", "ต้นอยู่ที่ขอนแก่น", "ต้นย้ายไปอยู่ที่ภูเก็ตแล้ว"),
        ("ฉันอยู่ที่ไหน", "ฉันอยู่เชียงใหม่", "ฉันย้ายไปกรุงเทพแล้ว"),
        ("นัดหมอวันไหน", "นัดหมอวันจันทร์", "นัดหมอเลื่อนเป็นวันพฤหัส"),
    ],
)
def test_a_correction_replaces_what_it_corrects(question, older, newer):
    assert probability(question, older, newer) > REPLACES
    order, replaced = arrange(question, facts(older, newer))
    assert order == ["m1", "m0"]
    assert [(r.older, r.newer) for r in replaced] == [("m0", "m1")]


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("where does Nora live?", "Nora lives in Porto", "Tom moved to Braga in March"),
        ("where does Nora live?", "Nora lives in Porto", "Nora is thinking about moving to Braga one day"),
        ("who is her dentist?", "Her dentist is Dr. Kovacs", "Her manager is Dr. Amari since May"),
        ("what does Nora play?", "Nora plays the cello", "Nora's brother plays the drums now"),
        (
            "when is the rehearsal on Monday?",
            "The rehearsal on Monday is at 7",
            "The rehearsal on Friday is at 9",
        ),
        ("which editor does Nora use?", "Nora uses Emacs", "Nora uses zsh as her shell"),
        ("what does the club drink?", "The club drinks cider", "The club drinks port for dessert"),
        ("ต้นอยู่ที่ไหน", "ต้นอยู่ที่ขอนแก่น", "ต้นอยากย้ายไปอยู่ภูเก็ตสักวัน"),
    ],
)
def test_what_is_about_something_else_replaces_nothing(question, older, newer):
    order, replaced = arrange(question, facts(older, newer))
    assert order == ["m0", "m1"]
    assert not replaced


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("where do I live?", "I live in Chiang Mai", "Ana lives in Paris"),
        ("where do I live?", "User lives in Chiang Mai", "Ana lives in Paris"),
        ("where do I live?", "I live in Chiang Mai", "Ana moved to Rome"),
        ("where do we work?", "We work at Acme", "Tom works at Globex"),
        ("what is my favourite food?", "I love ramen", "Ana loves pizza"),
        ("ฉันอยู่ที่ไหน", "ฉันอยู่เชียงใหม่", "แอนย้ายไปโรมแล้ว"),
        ("ฉันอยู่ที่ไหน", "ฉันอยู่เชียงใหม่", "แอนอยู่ปารีส"),
    ],
)
def test_what_somebody_else_does_replaces_nothing_of_the_one_who_speaks(question, older, newer):
    order, replaced = arrange(question, facts(older, newer))
    assert order == ["m0", "m1"]
    assert replaced == []


@pytest.mark.parametrize("who", ["I", "User"])
def test_a_change_of_the_one_who_speaks_is_as_certain_as_one_of_a_name(who):
    verb = "live" if who == "I" else "lives"
    (_, replaced) = arrange(
        "where do I live?", facts(f"{who} {verb} in Chiang Mai", f"{who} moved to Bangkok")
    )
    assert [r.is_certain for r in replaced] == [True]


def test_a_plan_and_a_visit_leave_the_fact_as_it_is():
    texts = ("Nora lives in Porto", "Nora might move to Braga", "Nora visited Faro last week")
    order, replaced = arrange("where does Nora live?", facts(*texts))
    assert order[0] == "m0"
    assert not replaced


@pytest.mark.parametrize(
    "question",
    [
        "where did Nora live before?",
        "what was her previous address?",
        "เมื่อก่อนต้นอยู่ที่ไหน",
        "who was the boss before Ana?",
        "how much rent did Rosa pay before the increase?",
        "who guarded the bridge before the flood?",
        "which hall was first meant for the concert?",
        "was Samira ever a vegetarian?",
        "ก่อนเลื่อน ประชุมเช้าเริ่มกี่โมง",
        "ใครดูแลร้านก่อนคุณสุรเดช",
        "หมาตัวก่อนชื่ออะไร",
    ],
)
def test_a_question_about_the_past_is_recognised(question):
    assert is_about_the_past(question)


@pytest.mark.parametrize(
    "question", ["was our server hacked?", "where does Nora live?", "ต้นอยู่ที่ไหน", "how old is Ida?"]
)
def test_the_past_tense_alone_is_no_question_about_the_past(question):
    assert not is_about_the_past(question)


@pytest.mark.parametrize(
    "question",
    [
        "what do I need to buy before the trip?",
        "who opens the shop before nine?",
        "what should we pack before we leave?",
        "ก่อนนอนกินยาอะไร",
        "ก่อนไปญี่ปุ่นต้องเตรียมอะไรบ้าง",
        "ส่งงานก่อนวันไหน",
        "ขอดูเมนูก่อนได้ไหม",
    ],
)
def test_what_comes_before_something_to_be_done_is_no_past(question):
    assert not is_about_the_past(question)


def test_a_question_about_the_past_gets_what_was_replaced_first():
    texts = ("Nora lives in Porto", "Nora moved to Braga in March")
    order, _ = arrange("where did Nora live before?", facts(*texts))
    assert order == ["m0", "m1"]
    assert present("where did Nora live before?") == "where did Nora live"


def test_originally_asks_for_the_oldest_and_before_for_the_one_before():
    texts = ("Nora lives in Porto", "Nora moved to Braga in March", "Nora moved to Faro in June")
    originally, _ = arrange("where did Nora live originally?", facts(*texts))
    before, _ = arrange("where did Nora live before?", facts(*texts))
    assert originally[0] == "m0"
    assert before[0] == "m1"


def test_a_day_that_is_named_gets_what_held_on_it():
    texts = ("Nora lives in Porto", "Nora moved to Braga")
    order, replaced = arrange("where did Nora live on 10 January 2026?", facts(*texts))
    assert order[0] == "m0"
    assert not replaced


def test_only_the_best_few_are_compared_and_the_rest_keep_their_places():
    texts = ["Nora lives in Porto", "Nora moved to Braga"] + [f"Item {n} is in box {n}" for n in range(20)]
    relevance = (1.0, 0.9, *(0.1 for _ in range(20)))
    order, replaced = arrange("where does Nora live?", facts(*texts, relevance=relevance))
    assert order[:2] == ["m1", "m0"]
    assert len(order) == 22
    assert replaced[0].certainty >= CERTAIN


def test_two_facts_of_one_moment_are_told_apart_by_the_version_they_came_in():
    older = Fact(id="a", text="The rent is 900 euros", at=START, version=3, relevance=1.0)
    newer = Fact(id="b", text="The rent was raised to 980 euros", at=START, version=4, relevance=0.9)
    assert arrange("how much is the rent?", [older, newer])[0] == ["b", "a"]


def test_nothing_found_is_nothing_to_arrange():
    assert arrange("where does Nora live?", []) == ([], [])


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        (
            "when is the project deadline?",
            "The project deadline is 30 April",
            "We pushed the deadline to 15 May",
        ),
        (
            "what is the rate limit?",
            "The API rate limit is 100 a minute",
            "The rate limit was raised to 500 a minute",
        ),
        ("what car does Ingrid have?", "Ingrid has a green Volvo", "Ingrid sold the Volvo and bought a Fiat"),
        ("when is Marta's surgery?", "Marta's surgery is on 3 June", "They moved Marta's surgery to 17 June"),
    ],
)
def test_a_change_of_what_is_asked_about_replaces_it_however_it_is_worded(question, older, newer):
    assert arrange(question, facts(older, newer))[0] == ["m1", "m0"]


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("when does the library open?", "The library opens at ten", "The library café opens at nine"),
        ("where does Omar work?", "Omar works at Spotify", "Omar no longer plays in the company band"),
        ("what did Rita give up?", "Rita gave up chocolate", "Rita gave up her seat to an old man"),
        ("is Nadia left-handed?", "Nadia is left-handed", "Nadia's twin is right-handed"),
        ("ฝนแพ้อะไร", "ฝนแพ้กุ้ง", "น้องสาวฝนแพ้ถั่ว"),
        ("ร้านปิดวันไหน", "ร้านปิดวันจันทร์", "ร้านตรงข้ามปิดวันพุธ"),
    ],
)
def test_a_narrower_thing_a_relative_and_the_end_of_something_else_replace_nothing(question, older, newer):
    order, replaced = arrange(question, facts(older, newer))
    assert order == ["m0", "m1"]
    assert not replaced


def test_a_newer_fact_goes_before_what_it_replaces_wherever_it_ranks():
    texts = ("Nora lives in Porto", "Nora likes ports", "Nora collects maps of Porto", "Nora moved to Braga")
    order, _ = arrange("where does Nora live?", facts(*texts, relevance=(1.0, 0.6, 0.5, 0.3)))
    assert order.index("m3") < order.index("m0")


@pytest.mark.parametrize(
    ("question", "first", "second"),
    [
        ("what are Hana's hobbies?", "Hana plays badminton", "Hana has taken up pottery"),
        ("which food does she like?", "She likes Thai food", "She likes Ethiopian food"),
        ("what does the service depend on?", "The service depends on Redis", "The service depends on Kafka"),
        ("what am I allergic to?", "I'm allergic to cashews", "I'm allergic to cats"),
        ("what does the flat have?", "The flat has a balcony", "The flat has two bathrooms"),
        ("ก้องพูดภาษาอะไรได้บ้าง", "ก้องพูดภาษาจีนได้", "ก้องพูดภาษาสเปนได้"),
        ("ฉันแพ้อะไร", "ฉันแพ้กุ้ง", "ฉันแพ้ฝุ่น"),
    ],
)
def test_what_may_be_said_of_many_things_ends_none_of_them(question, first, second):
    assert arrange(question, facts(first, second))[1] == []


def test_one_of_many_ends_when_somebody_says_so():
    texts = ("Luis speaks Catalan", "Luis no longer speaks Catalan")
    assert arrange("which languages does Luis speak?", facts(*texts))[0] == ["m1", "m0"]


@pytest.mark.parametrize(
    ("question", "older", "newer", "other"),
    [
        (
            "is new_checkout enabled in production?",
            "Feature flag new_checkout is enabled in production",
            "new_checkout has been disabled in production",
            "new_search has been disabled in production",
        ),
        (
            "does Anton like being called Tony?",
            "Anton likes being called Tony",
            "Anton doesn't want to be called Tony any more",
            "Anton wants to be called on Sundays",
        ),
        (
            "which hotel do we stay at in Cádiz?",
            "We stay at the Hotel Miramar in Cádiz",
            "We stay at the Casa Azul in Cádiz",
            "My parents stay at the Casa Azul in Cádiz",
        ),
        (
            "what is his favourite restaurant?",
            "His favourite restaurant is Trattoria Lupo",
            "His favourite restaurant is the ramen bar on Hill Street",
            "His wife's favourite restaurant is the ramen bar on Hill Street",
        ),
    ],
)
def test_an_opposite_a_refusal_and_a_value_of_another_shape_replace_only_their_own(
    question, older, newer, other
):
    assert arrange(question, facts(older, newer))[0] == ["m1", "m0"]
    assert arrange(question, facts(older, other)) == (["m0", "m1"], [])


def test_what_a_fact_only_mentions_does_not_end_it():
    texts = (
        "Maeve runs the data team in Cork",
        "The team uses Airflow",
        "The team migrated from Airflow to Dagster",
    )
    order, replaced = arrange(
        "what does the team use to schedule jobs?", facts(*texts, relevance=(0.4, 1.0, 0.5))
    )
    assert order[0] == "m2"
    assert [(r.older, r.newer) for r in replaced] == [("m1", "m2")]


def test_a_newer_fact_takes_the_place_of_what_it_replaces_before_others_that_fit_less():
    texts = ("Nora lives in Porto", "Nora likes to live well", "Nora moved to Braga")
    order, _ = arrange("where does Nora live?", facts(*texts, relevance=(1.0, 0.6, 0.4)))
    assert order[0] == "m2"


@pytest.mark.parametrize(
    ("question", "is_past"),
    [
        ("what does the team use to schedule jobs?", False),
        ("which tool is used to measure pressure?", False),
        ("where did Nora use to live?", True),
        ("what did the old team use to schedule jobs?", True),
        ("who used to own the bakery?", True),
    ],
)
def test_use_to_asks_about_the_past_only_after_did(question, is_past):
    assert is_about_the_past(question) is is_past


@pytest.mark.parametrize(
    ("question", "texts"),
    [
        (
            "who maintains the billing service?",
            (
                "Lina maintains the billing service",
                "Jorge maintains the search service",
                "Priya took over the billing service",
            ),
        ),
        ("กานต์ทำงานที่ไหน", ("กานต์ทำงานที่ดาวเหนือ", "มินทำงานที่เทศบาล", "กานต์ลาออกไปทำงานที่สุขใจ")),
    ],
)
def test_what_tells_of_another_thing_goes_behind_and_is_not_told_as_replaced(question, texts):
    order, replaced = arrange(question, facts(*texts))
    assert order[0] == "m2"
    assert [(r.older, r.newer) for r in replaced] == [("m0", "m2")]


def test_who_it_was_before_is_who_did_this_and_not_the_like():
    texts = (
        "Lina maintains the billing service",
        "Jorge maintains the search service",
        "Priya took over the billing service",
    )
    assert arrange("who maintained billing before?", facts(*texts))[0][0] == "m0"


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        (
            "what is the backend written in?",
            "The backend is written in Django",
            "We finished porting the backend to Go",
        ),
        (
            "what does the database run on?",
            "The database runs on MySQL 5.7",
            "Migrated the database to Postgres 16",
        ),
        ("what is my shoe size?", "My shoe size is 42", "After the pregnancy I need size 43 in shoes"),
        (
            "how much is our rent?",
            "Our rent is 1,450 euros",
            "Landlord's letter says 1,590 euros of rent from May",
        ),
    ],
)
def test_what_was_finished_what_followed_an_event_and_a_role_that_opens_a_sentence_tell_a_change(
    question, older, newer
):
    assert arrange(question, facts(older, newer))[0] == ["m1", "m0"]


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("what is Marta's job?", "Marta is a bus driver", "Marta retrained and works as an electrician"),
        ("what does Ayla study?", "Ayla studies biology in Leeds", "Ayla switched to economics last year"),
        ("ก้อยทำงานที่ไหน", "ก้อยทำงานที่ธนาคาร", "ก้อยลาออกไปเปิดร้านกาแฟ"),
    ],
)
def test_news_of_the_one_asked_about_replaces_though_no_word_is_shared(question, older, newer):
    assert arrange(question, facts(older, newer))[0] == ["m1", "m0"]


@pytest.mark.parametrize(
    ("question", "older", "newer"),
    [
        ("what causes the fault?", "The fault is caused by the cable", "The cable was moved to the cellar"),
        ("ลิฟต์ใช้ได้ไหม", "ลิฟต์เสีย", "ประตูซ่อมเสร็จแล้ว"),
    ],
)
def test_news_of_something_else_replaces_nothing(question, older, newer):
    assert arrange(question, facts(older, newer))[0] == ["m0", "m1"]
