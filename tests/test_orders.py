"""Orders, as an account lives them: said once, shown where they apply, gone when they end."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path

import pytest

import octavo
from octavo import Account
from octavo.domain.brief_page import ASKED_FOR
from octavo.engine import asking
from octavo.errors import HumanOnly, NotFound

FILMS = "Always include platform availability when I ask about films."
RECIPES = "Never suggest pork when I ask for recipes."
TRAPS = Path(__file__).parent / "corpora" / "orders_traps.jsonl"
WATCH = "which films should I watch tonight?"


@pytest.fixture
def opened(tmp_path):
    clock = [datetime(2026, 3, 1, 9, tzinfo=UTC)]

    def tick() -> datetime:
        clock[0] += timedelta(minutes=1)
        return clock[0]

    def open_(**more: object) -> Account:
        settings = {"account": "nok", "actor": "human:nok", "embedder": False, "clock": tick, **more}
        return octavo.open(tmp_path, **settings)

    return open_


def talk(account: Account, *said: str, scope: str = "shared") -> None:
    with account.sandbox(scope=scope) as sandbox:
        for text in said:
            sandbox.turn("user", text)
            sandbox.turn("assistant", "Always happy to help when you ask about films.")


def texts(orders) -> list[str]:
    return [order.text for order in orders]


def test_an_order_stands_beside_the_hits_where_it_applies(opened):
    with opened() as account:
        talk(account, FILMS, "My dog is called Rex.")
        assert texts(account.recall(WATCH).orders) == [FILMS]
        assert texts(account.recall("what is my dog called?").orders) == []
        assert texts(account.orders()) == [FILMS]


def test_by_meaning_an_order_reaches_a_request_that_shares_no_word_with_it(opened):
    with opened(embedder=None) as account:
        talk(account, FILMS, "เวลาผมถามเรื่องเดินทาง ให้บอกเวลาเดินทางด้วยเสมอ")
        assert texts(account.recall("can you recommend a thriller?").orders) == [FILMS]
        assert texts(account.recall("ไปเชียงใหม่ยังไงดี").orders) == [
            "เวลาผมถามเรื่องเดินทาง ให้บอกเวลาเดินทางด้วยเสมอ"
        ]


def test_a_wish_reaches_a_request_of_its_domain_and_how_to_answer_reaches_every_one(opened):
    meat, short = "I don't eat meat.", "Long answers annoy me."
    with opened(embedder=None) as account:
        talk(account, meat, short)
        account.catch_up()
        assert set(texts(account.recall("suggest a place for dinner tonight").orders)) == {meat, short}
        assert texts(account.recall("help me choose a phone").orders) == [short]


def test_what_asks_about_the_world_is_governed_by_no_wish_however_near_it_comes(opened):
    zoos = "Zoos make me sad."
    with opened(embedder=None) as account:
        talk(account, zoos)
        account.catch_up()
        assert texts(account.recall("what could I do with my niece on Sunday?").orders) == [zoos]
        for question in ("which zoo is the oldest in the world?", "what do pandas eat?"):
            assert texts(account.recall(question).orders) == []


def test_what_is_told_in_passing_reaches_what_it_bears_on_and_not_what_only_names_it(opened):
    peanuts, stairs = "Peanuts would put me in hospital.", "ขึ้นบันไดแล้วเหนื่อย หัวใจไม่ค่อยดี"
    with opened(embedder=None) as account:
        talk(account, peanuts, stairs)
        account.catch_up()
        for question, bearing in (
            ("what shall I order at the Thai place?", peanuts),
            ("which snack could I take on the train?", peanuts),
            ("ไปเที่ยววัดไหนดี", stairs),
        ):
            assert bearing in texts(account.recall(question).orders)
        for question in ("which country grows the most peanuts?", "who drew Peanuts?", "บันไดเลื่อนใครคิด"):
            assert texts(account.recall(question).orders) == []


def test_questions_that_only_sound_like_what_an_order_is_about_are_mostly_told_apart(tmp_path):
    rows = [json.loads(line) for line in TRAPS.read_text("utf-8").splitlines()]
    right: dict[bool, list[bool]] = {True: [], False: []}
    for name, some in groupby(rows, key=lambda row: row["account"]):
        said = list(some)
        with octavo.open(tmp_path, account=name, actor="agent:orion") as account:
            talk(account, *(row["text"] for row in said))
            account.catch_up()
            for row in said:
                for applies, questions in ((True, row["applies"]), (False, row["idle"])):
                    shown = [texts(account.recall(question).orders) for question in questions]
                    right[applies] += [any(text in row["text"] for text in some) == applies for some in shown]
    assert sum(right[True]) / len(right[True]) >= 0.78
    assert sum(right[False]) / len(right[False]) >= 0.9


def test_an_order_about_one_thing_is_silent_for_a_question_about_another_in_a_small_account(opened):
    places = "When I ask about restaurants, tell me whether they have a terrace."
    with opened(embedder=None) as account:
        talk(account, places, "My manager is called Petra.", "คุณสมชายเป็นหัวหน้าผม")
        account.catch_up()
        assert texts(account.recall("where can we eat on Friday?").orders) == [places]
        for question in ("who is my manager?", "หัวหน้าผมชื่ออะไร", "when does the contract end?"):
            assert texts(account.recall(question).orders) == []


def test_the_brief_tells_orders_behind_the_fence_with_date_and_id(opened):
    with opened() as account:
        talk(account, FILMS)
        brief = account.brief(WATCH)
        fence, _, behind = str(brief).partition("</memory>")
        assert ASKED_FOR not in fence
        order = account.orders()[0]
        assert f"## {ASKED_FOR}" in behind
        assert f"- [{order.memory}, 2026-03-01] {FILMS}" in behind
        assert ASKED_FOR not in str(account.brief("what is my dog called?"))
        assert '"asked_for":{' in str(account.brief(WATCH, format="json"))


def test_orders_count_against_the_budget_of_a_brief(opened):
    with opened() as account:
        talk(account, FILMS)
        for budget in (0, 20, 60, 200):
            brief = account.brief(WATCH, budget=budget)
            assert brief.tokens <= budget
            assert brief.left_out.orders == (0 if brief.orders else 1)


def test_text_that_is_an_order_by_an_assistant_a_tool_or_an_agents_fact_is_none(opened):
    with opened(actor="agent:orion") as account:
        with account.sandbox() as sandbox:
            sandbox.turn("assistant", FILMS)
            sandbox.turn("tool", RECIPES)
        account.remember(FILMS)
        assert account.orders() == []


def test_a_persons_own_statement_is_an_order(opened):
    with opened() as account:
        account.remember(FILMS)
        assert texts(account.orders()) == [FILMS]


def test_a_forgotten_order_is_gone_and_an_older_version_still_has_it(opened):
    with opened() as account:
        order = account.remember(FILMS).or_raise()
        version = account.version
        account.forget(order.id)
        assert account.orders() == []
        assert account.recall(WATCH).orders == ()
        assert texts(account.at(version).orders()) == [FILMS]


def test_a_superseded_order_is_gone_and_of_two_the_later_comes_first(opened):
    with opened() as account:
        old = account.remember(FILMS).or_raise()
        new = "Always name the director when I ask about films."
        account.remember(new)
        assert texts(account.recall(WATCH).orders) == [new, FILMS]
        last = "Never tell me the ending when I ask about films."
        account.remember(last, supersedes=old.id)
        assert texts(account.recall(WATCH).orders) == [last, new]


def test_a_person_ends_one_order_and_the_memory_stays(opened):
    with opened() as account:
        talk(account, FILMS, RECIPES)
        version, order = account.version, account.orders()[-1]
        ended = account.end_order(order.memory, order.turn)[0].or_raise()
        assert texts(account.orders()) == [RECIPES]
        assert account.recall(WATCH).orders == ()
        assert account.get(order.memory) is not None
        assert ended.id not in str(account.brief())
        assert texts(account.at(version).orders()) == [RECIPES, FILMS]
        account.forget(ended.id)
        assert texts(account.orders()) == [RECIPES, FILMS]
        account.end_order(order.memory)
        talk(account, FILMS)
        assert texts(account.orders()) == [FILMS, RECIPES]
        with pytest.raises(NotFound):
            account.end_order("01kajx2f6w9m4d8c7t5s")


def test_an_agent_ends_no_order(opened):
    with opened() as account:
        order = account.remember(FILMS).or_raise()
        key = account.orders()[0].key
    with opened(actor="agent:orion") as agent:
        with pytest.raises(HumanOnly):
            agent.end_order(order.id)
        agent.remember("", kind="register", topic="ends", category="order-ended", data={"order": key})
        assert texts(agent.orders()) == [FILMS]


def test_an_order_said_later_in_a_scope_one_does_not_see_hides_nothing(opened):
    with opened() as account:
        talk(account, FILMS)
        talk(account, FILMS, scope="elysia")
        assert texts(opened(actor="agent:o", scope="orion").orders()) == [FILMS]


def test_many_wishes_push_no_order_out(opened, monkeypatch):
    monkeypatch.setattr(asking, "_WISHES", 5)
    with opened() as account:
        talk(account, FILMS, *(f"I prefer tea number {n}." for n in range(9)))
        held = account.orders()
        assert sum(order.is_wish for order in held) == 5
        assert texts(held)[-1] == FILMS


@pytest.mark.parametrize("speaker", ["document", "Web page", "tool:search", "function", "orion", "เอกสาร 1"])
def test_what_is_pasted_or_said_by_a_machine_is_no_order_whoever_speaks_beside_it(opened, speaker):
    with opened(actor="agent:orion") as account:
        with account.sandbox() as sandbox:
            sandbox.turn(speaker, FILMS)
            sandbox.turn("assistant", "I see.")
        assert account.orders() == []


def test_who_talks_with_an_agent_by_its_name_is_the_user(opened):
    with opened(actor="agent:orion") as account:
        with account.sandbox() as sandbox:
            sandbox.turn("Kate", FILMS)
            sandbox.turn("Orion", RECIPES)
        assert texts(account.orders()) == [FILMS]


def test_at_most_three_orders_apply(opened):
    with opened() as account:
        for what in ("director", "country", "year", "language", "length"):
            account.remember(f"Always name the {what} when I ask about films.")
        assert len(account.recall(WATCH).orders) == 3
        assert len(account.orders()) == 5


def test_an_order_of_one_scope_is_not_seen_by_another(opened):
    with opened() as account:
        talk(account, FILMS, scope="orion")
        talk(account, RECIPES, scope="elysia")
    with opened(scope="orion") as orion:
        assert texts(orion.orders()) == [FILMS]
    with opened(scope="elysia") as elysia:
        assert texts(elysia.recall(WATCH).orders) == []


def test_a_sandbox_sees_the_order_that_was_just_given_in_it(opened):
    with opened() as account, account.sandbox() as sandbox:
        sandbox.turn("user", FILMS)
        sandbox.turn("assistant", "I will.")
        assert texts(sandbox.recall(WATCH).orders) == [FILMS]
        assert account.orders() == []


def test_orders_survive_a_reindex_a_repair_and_a_restart(opened):
    with opened() as account:
        talk(account, FILMS)
        account.reindex()
        account.repair()
        assert texts(account.orders()) == [FILMS]
    with opened(read_only=True, actor="agent") as reader:
        assert texts(reader.recall(WATCH).orders) == [FILMS]


def test_a_redacted_order_leaves_nothing_behind(opened, tmp_path):
    with opened(embedder=None) as account:
        account.remember(RECIPES)
        order = account.remember(FILMS).or_raise()
        account.catch_up()  # the vectors of orders lie beside those of passages
        assert FILMS in texts(account.recall(WATCH).orders)
        kept = list(tmp_path.rglob("orders.bin"))
        assert kept
        before = kept[0].read_bytes()
        account.redact(order.id, reason="taken back")
        assert texts(account.orders()) == [RECIPES]
        assert all(path.read_bytes() != before for path in tmp_path.rglob("orders.bin"))
        assert account.recall("any recipes for dinner?").orders


def test_a_wish_lifts_its_turn_for_a_request_and_not_for_a_question(opened):
    with opened() as account:
        talk(account, "I prefer window seats on trains.", "Trains were late on Monday.")
        asked = account.recall("can you book seats on trains to Rome?", unit="turn")
        assert asked[0].parts["wish"] > 0
        told = account.recall("when were trains late?", unit="turn")
        assert all("wish" not in hit.parts for hit in told)


def test_an_alias_is_a_register_that_a_question_follows_from_then_on(opened):
    with opened() as account:
        with account.sandbox() as sandbox:
            sandbox.turn("Emi", "I bought a red kayak.")
            sandbox.turn("Nok", "I bought a red canoe.")
        assert account.alias("Kate", "Emi")
        account.catch_up()
        hits = account.recall("what did Kate buy?", unit="turn")
        assert hits[0].memory.turns[hits[0].turn].speaker == "Emi"
        assert hits[0].parts["speaker"] > 0
        account.alias("Kate", "Nok")
        hits = account.recall("what did Kate buy?", unit="turn")
        assert hits[0].memory.turns[hits[0].turn].speaker == "Nok"
        with pytest.raises(octavo.errors.BadInput):
            account.alias("", "Emi")


def test_a_name_used_in_the_talk_means_whom_it_was_said_to(opened):
    with opened() as account:
        for item in ("kayak", "tent"):
            with account.sandbox() as sandbox:
                sandbox.turn("Melanie", f"Hey Caro! I bought a {item}.")
                sandbox.turn("Caroline", f"Hi Mel, I sold my {item}.")
        account.catch_up()
        hits = account.recall("what did Mel buy?", unit="turn")
        assert hits[0].parts["speaker"] > 0
        assert hits[0].memory.turns[hits[0].turn].speaker == "Melanie"


def test_by_meaning_a_sentence_without_any_cue_is_an_order_or_a_wish(opened):
    news, quiet, thai = (
        "Whenever news is the subject, name the outlet.",
        "I can't stand horror.",
        "ชอบออกกำลังกายตอนเช้ามากกว่าตอนเย็น",
    )
    with opened(embedder=None) as account:
        talk(
            account,
            quiet,
            f"We won on Sunday! {news} The heater broke again.",
            thai,
            "My sister moved to Leeds.",
        )
        assert account.orders() == []  # words tell nothing of it
        account.catch_up()
        assert {(order.text, order.is_wish) for order in account.orders()} == {
            (news, False), (quiet, True), (thai, True),
        }  # fmt: skip
        assert texts(account.recall("what happened in parliament this week?").orders) == [news]
        assert quiet in texts(account.recall("which film should we see on Friday?").orders)
        assert texts(account.recall("how do I tie a bow tie?").orders) == []


def test_what_may_be_no_order_stands_beside_a_request_that_it_fits_and_is_not_listed(opened):
    veggie = "I'm vegetarian, so keep that in mind."
    with opened(embedder=None) as account:
        talk(account, veggie, "The heater broke again.")
        account.catch_up()
        assert account.orders() == []
        assert texts(account.recall("What should I make for dinner tonight?").orders) == [veggie]
        assert texts(account.recall("How do I reset my router?").orders) == []
        [told] = account.recall("What should I make for dinner tonight?").orders
        account.end_order(told.memory)
        assert texts(account.recall("What should I make for dinner tonight?").orders) == []


def test_what_was_found_by_meaning_survives_a_restart_a_reindex_and_ends_with_its_memory(opened):
    news = "Whenever news is the subject, name the outlet."
    with opened(embedder=None) as account:
        talk(account, news)
        account.catch_up()
    with opened(embedder=None) as account:
        assert texts(account.orders()) == [news]
        account.reindex()
        assert texts(account.orders()) == [news]
        [order] = account.orders()
        version = account.version
        account.forget(order.memory)
        assert account.orders() == []
        assert texts(account.at(version).orders()) == [news]


def test_what_is_quoted_is_no_order_by_its_meaning_either(opened):
    with opened(embedder=None) as account:
        talk(
            account,
            'My boss wrote "Whenever news is the subject, name the outlet."',
            "My boss wants the report in French.",
        )
        account.catch_up()
        assert account.orders() == []


def test_what_a_user_tells_of_themselves_or_asks_for_once_is_no_order_by_its_meaning(opened):
    told = (
        "By the way I just bought a Trek Domane bike for 1,450 dollars, so money is tight this month.",
        "Quick question on resume writing: I worked at Larkspur Analytics for four years.",
        "Give me five tips on medieval trade.",
        "My boss wants the report in French.",
        "เมื่อวานไปหาหมอฟันมา เสียไป 900 บาท",
        "what time do I need to be at uni on Thursday",
        "tell me about the Edo period in bullet points",
        "I used to drink like 5.",
        "pls write a unit test for the parser",
        "อธิบายเรื่อง tcp แบบสั้นๆ หน่อย",
    )
    with opened(embedder=None) as account:
        talk(account, *told)
        account.catch_up()
        assert account.orders() == []


def test_nobody_who_asks_waits_for_who_looks_for_orders(opened):
    with opened(embedder=None) as account:
        talk(account, FILMS)
        account.catch_up()
        with account._indexing.asking._following:  # as if the background were at it
            assert texts(account.recall(WATCH).orders) == [FILMS]


def test_a_full_disk_keeps_nobody_from_asking(opened, monkeypatch, caplog):
    def fails(path, data):
        raise OSError(28, "No space left on device", str(path))

    with opened(embedder=None) as account:
        talk(account, FILMS)
        account.catch_up()
        monkeypatch.setattr("octavo.engine.asking.replace_file", fails)
        talk(account, "Whenever news is the subject, name the outlet.")
        assert texts(account.recall(WATCH).orders) == [FILMS]
        account.catch_up()
        assert len(account.orders()) == 2
    assert "orders not kept" in caplog.text


def test_what_is_only_told_is_no_order_and_no_wish(opened):
    told = (
        "The oven repair cost £1,240, more than I hoped.",
        "The new address is 14 Otley Road, Headingley.",
        "You were right about the paint.",
        "My brother says I should stop talking and start.",
        "Six men, two hours, one scratched door.",
        "เครื่องสีกาแฟเก่าเสียอีกแล้ว ช่างบอกว่าไม่มีอะไหล่",
    )
    with opened(embedder=None) as account:
        talk(account, *told, "Answers in grams please, no cups.")
        account.catch_up()
        assert [order.text for order in account.orders()] == ["Answers in grams please, no cups."]


def test_an_order_about_answers_is_known_at_once_by_its_words(opened):
    with opened(embedder=None) as account:
        talk(
            account,
            "Keep answers short please, I read them on my phone.",
            "When you give me recipes, use grams.",
        )
        assert "Keep answers short" in str(account.brief())
        assert {order.condition for order in account.orders()} == {None, "you give me recipes"}
