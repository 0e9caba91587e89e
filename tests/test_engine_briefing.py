"""What a handle's brief holds: scopes, older versions, sandboxes, and what recall hands in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

import octavo
from briefs import memory, read
from octavo import Account, Memory
from octavo.domain.hits import Hit
from octavo.engine.reading import Hits
from octavo.errors import BadInput, OutOfScope


def at(day: int) -> datetime:
    return datetime(2026, 5, day, 9, tzinfo=UTC)


def hits(memories: Iterable[Memory]) -> Hits:
    return Hits(Hit(memory=m, turn=None, score=1.0, parts={}, version=1) for m in memories)


@pytest.fixture
def full(account: Account) -> Account:
    account.remember("Mission: stabilise the runtime", kind="canon", category="mission")
    account.remember("orion explores boundaries", kind="canon", scope="orion")
    account.remember("elysia writes poems", kind="canon", scope="elysia")
    account.remember("เชียงใหม่", kind="register", topic="home", scope="orion")
    account.remember("likes green tea", kind="fact")
    return account


def test_the_standing_part_needs_no_query(full: Account) -> None:
    told = read(str(full.brief()))
    assert "Mission: stabilise the runtime" in told.texts
    assert [line[4] for line in told.sections["Known Facts"]] == ["likes green tea"]


def test_a_wish_that_stands_among_the_facts_is_not_told_again(account: Account) -> None:
    account.remember("I prefer green tea")
    account.catch_up()
    assert [order.text for order in account.recall("suggest a drink for me").orders] == ["I prefer green tea"]
    told = account.brief("suggest a drink for me")
    assert told.text.count("I prefer green tea") == 1
    assert not told.orders


def test_a_scope_sees_shared_and_its_own(full: Account) -> None:
    assert set(read(str(full.brief(scope="orion"))).texts) == {
        "Mission: stabilise the runtime",
        "orion explores boundaries",
        "เชียงใหม่",
        "likes green tea",
    }
    assert read(str(full.brief(scope="shared"))).texts == [
        "Mission: stabilise the runtime",
        "likes green tea",
    ]


def test_a_bound_handle_cannot_widen(full: Account, opened: Callable[..., Account]) -> None:
    bound = opened(scope="orion")
    assert str(bound.brief()) == str(full.brief(scope="orion"))
    with pytest.raises(OutOfScope):
        bound.brief(scope="elysia")


@pytest.mark.parametrize("scope", ["*", "", "Orion", "a b"])
def test_a_wildcard_or_a_malformed_scope_is_an_error(full: Account, scope: str) -> None:
    with pytest.raises(BadInput):
        full.brief(scope=scope)


def test_two_calls_give_the_same_bytes(full: Account) -> None:
    assert str(full.brief(scope="orion")) == str(full.brief(scope="orion"))


def test_updating_a_register_leaves_every_other_line_as_it_was(full: Account) -> None:
    before = str(full.brief(scope="orion")).splitlines()
    full.remember("กรุงเทพ", kind="register", topic="home", scope="orion")
    after = str(full.brief(scope="orion")).splitlines()
    assert [a == b for a, b in zip(before, after, strict=True)].count(False) == 1


def test_an_older_version_and_a_sandbox_brief_like_the_account(full: Account) -> None:
    then = full.version
    full.remember("new canon", kind="canon")
    assert "new canon" in str(full.brief())
    assert "new canon" not in str(full.at(then).brief())
    with full.sandbox("s", scope="orion") as sandbox:
        sandbox.remember("only in here", kind="canon")
        assert "only in here" in str(sandbox.brief())
        assert "only in here" not in str(full.brief())


def test_the_relevant_part_comes_from_recall_without_what_stands(
    full: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = full.memories(scope=["shared"])

    def recall(query: str, *, k: int, scope: Sequence[str] | None, unit: str) -> Hits:
        assert (query, scope) == ("tea", ("shared",))
        return hits(everything[:k])

    monkeypatch.setattr(full, "recall", recall)
    found = read(str(full.brief("tea", scope="shared")))
    assert found.texts == ["Mission: stabilise the runtime", "likes green tea"]


def test_a_query_brings_what_the_account_recalls_behind_what_stands(
    full: Account, opened: Callable[..., Account]
) -> None:
    brief = full.brief("green tea", scope="orion")
    found = read(brief.text.removesuffix(f"\n\n{brief.orders}"))  # once indexed, it may be a wish as well
    assert found.texts[-1] == "likes green tea"
    assert "Mission: stabilise the runtime" in found.texts
    bound = opened(scope="elysia")
    assert "orion explores" not in str(bound.brief("orion boundaries"))


def test_a_recall_that_reaches_too_far_does_not_widen_the_brief(
    full: Account, monkeypatch: pytest.MonkeyPatch
) -> None:
    stray = memory("x1", "elysia's secret", "fact", scope="elysia")
    monkeypatch.setattr(full, "recall", lambda q, k, scope, unit: hits([stray]))
    assert "secret" not in str(full.brief("x", scope="orion"))


def test_k_zero_or_no_query_asks_nothing(full: Account, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object, **__: object) -> Hits:
        raise AssertionError("recall was asked")

    for query, k in (("tea", 0), (None, 5), ("  ", 5)):
        monkeypatch.setattr(full, "recall", never)
        assert full.brief(query, k=k).relevant == ""
    with pytest.raises(BadInput):
        full.brief("tea", k=-1)


def test_a_conversation_is_told_turn_by_turn_below_one_heading_with_its_sources(account: Account) -> None:
    with account.sandbox("morning") as sandbox:
        sandbox.turn("user", "My sister Nok moved to Chiang Mai in May.", at=at(4))
        sandbox.turn("assistant", "What does she do there?", at=at(4))
        sandbox.turn("user", "She teaches pottery, เธอสอนปั้นดินเผา.", at=at(5))
    brief = account.brief("What does Nok teach in Chiang Mai?")
    told = read(str(brief))
    heading = "Conversation of 2026-05-04"
    assert sandbox.id not in str(brief)  # the sources say which conversation it was
    assert told.sections[heading][0][4] == "user: My sister Nok moved to Chiang Mai in May."
    for number, *_ in told.sections[heading]:
        source = account.get(brief.sources[number])
        assert source is not None
        assert source.sandbox == sandbox.id


def test_a_short_answer_comes_with_the_question_before_it(account: Account) -> None:
    with account.sandbox() as sandbox:
        sandbox.turn("assistant", "Where did you buy the bicycle?")
        sandbox.turn("user", "Warorot market.")
    told = read(str(account.brief("Warorot market")))
    assert "assistant: Where did you buy the bicycle?" in told.texts


def test_the_budget_is_filled_with_turns_and_not_with_ten_hits(account: Account) -> None:
    with account.sandbox() as sandbox:
        for n in range(40):
            sandbox.turn("user", f"The garden got plant number {n} today.")
            sandbox.turn("assistant", "Lovely.")
    brief = account.brief("which plants did the garden get?")
    assert sum("plant number" in text for text in read(str(brief)).texts) > 20
    assert brief.tokens <= 1800
    assert account.brief("which plants did the garden get?", budget=300).tokens <= 300


def test_the_profile_holds_what_is_current_and_its_bytes_do_not_depend_on_the_question(
    account: Account,
) -> None:
    account.remember("Her manager is Priya.", at=at(1))
    account.remember("Her manager is now Tom Reyes.", at=at(8))
    account.remember("แพ้กุ้ง", at=at(2), salience=0.9)
    standing = account.brief().standing
    assert "แพ้กุ้ง" in standing
    assert "Tom Reyes" in standing
    assert "Priya" not in standing
    assert account.brief("who is the manager?").standing == standing


@pytest.mark.parametrize(
    ("bounded", "plain", "question"),
    [
        ("Priya manages the depot until May", "Priya has two sons", "who manages the depot?"),
        ("เก๋เช่าห้องที่หอจนถึงเดือนพฤษภาคม", "เก๋แพ้กุ้ง", "เก๋เช่าห้องที่ไหน"),
    ],
)
def test_what_was_said_to_hold_until_a_day_is_told_as_over_once_that_is_past(
    tmp_path: Path, bounded: str, plain: str, question: str
) -> None:
    now = [at(5)]
    with octavo.open(tmp_path, account="a", actor="human:a", embedder=False, clock=lambda: now[0]) as account:
        account.remember(bounded, at=at(2))
        account.remember(plain, at=at(3))
        assert {line[4] for line in read(str(account.brief())).sections["Known Facts"]} == {bounded, plain}
        assert "until 2026" not in account.brief(question).text
        now[0] = datetime(2026, 6, 2, tzinfo=UTC)
        assert [line[4] for line in read(str(account.brief())).sections["Known Facts"]] == [plain]
        assert "2026-05-02, until 2026-05-31" in account.brief(question).relevant


def test_the_profile_knows_a_change_that_is_told_in_other_words_of_the_same_one(account: Account) -> None:
    for day, text in enumerate(
        (
            "I live in Chiang Mai",
            "Ana lives in Paris",
            "Ana likes tea",
            "I moved to Bangkok",
            "Ana moved to Rome",
            "Ana's brother moved to Oslo",
            "I moved my desk to the window",
        ),
        1,
    ):
        account.remember(text, at=at(day))
    told = {line[4] for line in read(str(account.brief())).sections["Known Facts"]}
    assert told == {
        "Ana likes tea",
        "I moved to Bangkok",
        "Ana moved to Rome",
        "Ana's brother moved to Oslo",
        "I moved my desk to the window",
    }


def test_the_profile_leaves_out_what_is_over_in_thai_too(account: Account) -> None:
    account.remember("แพรวทำงานเป็นนักบัญชี", at=at(1))
    account.remember("แพรวแพ้นมวัว", at=at(2))
    account.remember("แพรวลาออกจากงานบัญชี", at=at(8))
    standing = account.brief().standing
    assert "เป็นนักบัญชี" not in standing
    assert "แพ้นมวัว" in standing
    assert "ลาออกจากงานบัญชี" in standing


def test_the_profile_knows_a_move_in_thai(account: Account) -> None:
    for day, text in enumerate(("ฉันอยู่เชียงใหม่", "แอนอยู่ปารีส", "ฉันแพ้กุ้ง", "ฉันย้ายไปกรุงเทพแล้ว"), 1):
        account.remember(text, at=at(day))
    told = {line[4] for line in read(str(account.brief())).sections["Known Facts"]}
    assert told == {"แอนอยู่ปารีส", "ฉันแพ้กุ้ง", "ฉันย้ายไปกรุงเทพแล้ว"}


def test_the_profile_holds_everything_that_is_true_at_once(account: Account) -> None:
    for day, text in enumerate(
        ("I am allergic to cashews", "I am allergic to cats", "แนนชอบปีนผา", "แนนชอบถักไหมพรม")
    ):
        account.remember(text, at=at(1 + day))
    standing = account.brief().standing
    assert all(word in standing for word in ("cashews", "cats", "ปีนผา", "ถักไหมพรม"))


def test_in_little_room_the_profile_tells_what_matters_most_and_not_what_is_newest(account: Account) -> None:
    account.remember("Maeve is allergic to latex", at=at(1), salience=0.95)
    for day in range(2, 12):
        account.remember(f"Maeve rode the ferry to island number {day}", at=at(day))
    brief = account.brief(budget=200)
    assert "latex" in str(brief)
    assert brief.tokens <= 200


def test_the_profile_prefers_the_one_whom_most_facts_are_about(account: Account) -> None:
    account.remember("Maeve runs the data team in Cork", at=at(1))
    account.remember("Maeve has a twin", at=at(1))
    for number, thing in enumerate(
        ("Snowflake", "dbt", "Airflow", "Looker", "Kafka", "Spark", "Trino", "Redis")
    ):
        account.remember(f"{thing} costs {number + 2} thousand a month", at=at(9))
    assert "data team in Cork" in str(account.brief(budget=200))


def test_the_one_whom_most_facts_are_about_is_no_article_and_known_with_a_genitive_too(
    account: Account,
) -> None:
    account.remember_many(
        [
            *({"text": f"The {thing} was serviced"} for thing in ("boiler", "lift", "car", "alarm", "oven")),
            {"text": "Mia is allergic to nuts"},
            {"text": "Mia's school is St Olave's"},
            {"text": "Mia rides to school by tram"},
        ]
    )
    told = [line[4] for line in read(str(account.brief(budget=340))).sections["Known Facts"]]
    assert any("allergic" in line for line in told)
    assert any("Olave" in line for line in told)


def test_one_form_that_replaces_itself_leaves_room_for_what_else_is_known(account: Account) -> None:
    account.remember_many([{"text": "Nora lives in Porto"}, {"text": "The dog is called Biscuit"}])
    account.remember_many([{"text": f"Meter reading {n} of the day is {n * 7}"} for n in range(150)])
    standing = str(account.brief())
    assert "Nora lives in Porto" in standing
    assert "The dog is called Biscuit" in standing


def test_a_brief_without_question_tells_the_orders_that_hold_whatever_is_done(account: Account) -> None:
    lasting = [
        "Always run make lint before you say you're done.",
        "Never touch the files under vendor/.",
        "ต่อไปนี้ให้ใส่แหล่งที่มาทุกครั้ง",
    ]
    for day, order in enumerate([*lasting, "When I ask about films, always name the platform."], start=1):
        account.remember(order, at=at(day))
    account.remember("I prefer green tea", at=at(9))  # a wish waits for a request
    told = account.brief()
    assert [line.partition("] ")[2] for line in told.orders.splitlines()[2:]] == lasting[::-1]
    assert not account.brief("what is new?", standing=False).orders


def test_many_orders_leave_room_for_what_is_known(account: Account) -> None:
    account.remember("ชื่อมะลิ อยู่เชียงใหม่", kind="canon")
    for number in range(9):
        account.remember(f"Always answer letter number {number} before you go on with the next one.")
    told = account.brief(budget=400)
    assert told.tokens <= 400
    assert 3 <= told.orders.count("Always answer") <= 6
    assert "ชื่อมะลิ" in told.text


def test_what_is_noted_in_several_ways_or_said_several_times_is_told_once(account: Account) -> None:
    account.remember("prefers tea", kind="canon")
    account.remember("Prefers tea")
    account.remember("อยู่เชียงใหม่", kind="register", topic="home")
    account.remember("อยู่เชียงใหม่")
    for _ in range(3):
        with account.sandbox() as sandbox:
            sandbox.turn("user", "rename the invoice export, please")
            sandbox.turn("assistant", "Done, it is called the ledger export now.")
    told = str(account.brief("invoice export"))
    for text in ("refers tea", "อยู่เชียงใหม่", "rename the invoice export", "the ledger export"):
        assert told.count(text) == 1
    account.remember("Otto", topic="dog")
    account.remember("Otto", kind="register", topic="son")
    assert str(account.brief()).count("Otto") == 2  # of two topics it says two things


def test_a_fact_that_finds_no_room_in_the_profile_is_told_where_it_is_relevant(account: Account) -> None:
    for number in range(40):
        account.remember(f"Visitor {number} of the museum came from town number {number} by train.")
    told = account.brief("where did visitor 7 of the museum come from?", budget=300)
    assert "Visitor 7 of" in told.text


def test_of_what_was_said_last_thanks_and_yes_are_left_out(account: Account) -> None:
    for said in ("We deploy to Hetzner now, ย้ายจาก Fly.io แล้ว", "yes", "thx!", "ขอบคุณค่ะ"):
        with account.sandbox() as sandbox:
            sandbox.turn("user", said)
    newest = account.memories(kind="episode", newest=True)
    assert len(newest) == 4
    told = account.brief(newest=newest).relevant
    assert "Hetzner" in told
    assert not any(text in told for text in ("yes", "thx", "ขอบคุณ"))


def test_a_topic_of_two_scopes_is_told_with_its_scope(account):
    account.remember("lives in Nan", kind="register", topic="home")
    account.remember("drinks tea", kind="register", topic="drink", scope="orion")
    assert "scope" not in account.brief().standing
    account.remember("อยู่ลำปาง", kind="register", topic="home", scope="orion")
    lines = account.brief().standing.splitlines()
    assert [line.partition(", home")[2] for line in lines if "home" in line] == [
        ", scope orion] อยู่ลำปาง",
        ", scope shared] lives in Nan",
    ]
    assert '"topic":"home","scope":"orion"' in account.brief(format="json").text
    assert "scope" not in next(line for line in lines if "drink" in line)
