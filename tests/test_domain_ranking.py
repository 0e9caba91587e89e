"""The recipe's formulas, and how a question is read."""

from __future__ import annotations

from datetime import UTC, date, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.domain import ranking, units
from octavo.domain.dates import Interval
from octavo.domain.hits import EQUAL, Hit, ordered
from octavo.domain.memory import Memory, Turn
from octavo.domain.query import read_question
from octavo.domain.ranking import (
    Recipe,
    frequency,
    idf,
    importance,
    reach,
    retention,
    saturated,
    term_weights,
)
from octavo.domain.units import address, is_person, units_of

NOW = date(2023, 6, 15)
RECIPE = Recipe()


def test_the_one_named_speaker_becomes_i_and_leaves_the_terms():
    question = read_question("Where did Mali's friend go?", now=NOW, speakers=["Mali", "Somchai"])
    assert question.speaker == "Mali"
    assert question.terms == ("friend", "go")
    assert question.phrasings == ("Where did my friend go?", "my friend go")


def test_only_a_question_about_oneself_is_read_in_the_words_it_may_be_told_in():
    question = read_question("Where do I live?", now=NOW, asker="user")
    assert question.speaker == "user"
    assert question.terms == ("live",)
    assert "move" in question.retold
    for text in ("Where does Mali live?", "Can you find me a home?", "What did I plant?"):
        other = read_question(text, now=NOW, speakers=["Mali"], asker="user")
        assert (other.retold, other.speaker) == ({}, "Mali" if "Mali" in text else None)
    assert read_question("Where do I live?", now=NOW).retold == {}


def test_two_named_speakers_are_nobody_in_particular():
    question = read_question("What did Mali tell Somchai?", now=NOW, speakers=["Mali", "Somchai"])
    assert question.speaker is None
    assert question.terms == ("tell",)


def test_a_thai_name_is_found_inside_a_run_without_spaces():
    question = read_question("สมชายชอบกินอะไร", now=NOW, speakers=["สมชาย", "มะลิ"])
    assert question.speaker == "สมชาย"
    assert question.phrasings[0] == "Iชอบกินอะไร"


def test_a_name_inside_another_word_is_no_name():
    assert read_question("the Malian team", now=NOW, speakers=["Mali"]).speaker is None


def test_thai_question_words_are_not_looked_for():
    assert read_question("ชอบอะไร", now=NOW).terms == ("ชอบ",)


def test_a_time_is_matched_as_time_and_not_as_words():
    question = read_question("What did I plant in May 2023?", now=NOW)
    assert question.terms == ("plant",)
    assert question.intervals == (Interval(first=date(2023, 5, 1), last=date(2023, 5, 31)),)


def test_a_question_of_stop_words_alone_has_no_terms_but_still_a_phrasing():
    question = read_question("what was it?", now=NOW)
    assert question.terms == ()
    assert question.phrasings


@given(st.text(max_size=60), st.lists(st.text(min_size=1, max_size=8), max_size=3))
def test_any_question_can_be_read(text, speakers):
    question = read_question(text, now=NOW, speakers=speakers)
    assert len(set(question.terms)) == len(question.terms)


@given(st.integers(1, 10**6), st.integers(0, 10**6))
def test_a_rarer_term_never_tells_less(total, containing):
    containing = min(containing, total)
    assert idf(total, containing, RECIPE) > 0
    if 0 < containing < total:
        assert idf(total, containing, RECIPE) >= idf(total, containing + 1, RECIPE)


def test_a_term_nobody_used_is_bounded():
    assert idf(10**6, 0, RECIPE) == RECIPE.unknown_idf


def test_grams_that_occur_equally_often_count_less_than_the_first_of_them():
    terms, previous = ("เชี", "ชีย", "ียง"), {"ชีย": "เชี", "ียง": "ชีย"}
    first, second, third = term_weights(terms, previous, dict.fromkeys(terms, 3), 100, RECIPE)
    assert first > second == third


@given(st.floats(0, 100), st.floats(0, 100))
def test_more_of_a_term_never_counts_less_and_its_worth_is_bounded(one, more):
    low, high = sorted((one, more))
    assert 0 <= saturated(low, RECIPE) <= saturated(high, RECIPE) <= 1 + RECIPE.saturation


def test_the_same_count_weighs_more_in_a_shorter_passage():
    assert frequency(1, 5, 10.0, RECIPE) > frequency(1, 50, 10.0, RECIPE)


@given(st.floats(0.5, 1), st.floats(0, 10_000), st.floats(0, 10_000))
def test_age_weakens_but_never_below_the_floor(factor, one, other):
    young, old = sorted((one, other))
    assert 0.3 <= retention(factor, old) <= retention(factor, young) <= 1


def test_a_month_reaches_farther_than_a_day():
    assert reach(1, RECIPE) < reach(31, RECIPE)


def test_at_equal_relevance_procedural_comes_before_semantic_before_episodic():
    worth = [
        sum(importance(salience=0.5, retained=1.0, layer=RECIPE.layers[layer], recipe=RECIPE).values())
        for layer in ("procedural", "semantic", "episodic")
    ]
    assert worth == sorted(worth, reverse=True)
    assert len(set(worth)) == 3


def test_an_episode_is_a_unit_a_turn_and_everything_else_is_one():
    at = datetime(2023, 5, 1, tzinfo=UTC)
    turns = (Turn(speaker="มะลิ", text="สวัสดี"), Turn(speaker="assistant", text="hello"))
    episode = Memory(id="e1", kind="episode", at=at, sandbox="s1", turns=turns)
    said = list(units_of(episode, valid_from=3, position=10))
    assert [(unit.turn, unit.position, unit.text) for unit in said] == [(0, 10, "สวัสดี"), (1, 11, "hello")]
    assert [is_person(unit.speaker) for unit in said] == [True, False]
    fact = Memory(id="f1", kind="fact", at=at, text="ชอบชาเขียว", sandbox="s1")
    (unit,) = units_of(fact, valid_from=3)
    assert (unit.turn, unit.position, unit.text) == (None, None, "ชอบชาเขียว")


@pytest.mark.parametrize(
    ("text", "share"),
    [
        ("What inspired you to paint?", 1.0),
        ("I like how you paint", 0.5),
        ("My sister and I paint", 0.0),
        ("Young people paint in Youngstown", 0.0),
        ("คุณชอบวาดรูปไหม", 1.0),
        ("ผมชอบรูปที่คุณวาด", 0.5),
        ("ขอบคุณมาก คุณภาพดีจริง", 0.0),
    ],
)
def test_a_text_is_about_the_one_spoken_to_as_far_as_it_says_you(text, share):
    assert address(text) == share


@given(st.text(max_size=60) | st.lists(st.sampled_from(["you", "I", "our", "คุณ", "ฉัน", "tea"])).map(" ".join))
def test_the_address_of_any_text_is_a_share(text):
    assert 0 <= address(text) <= 1


@pytest.mark.parametrize("text", ["Noted.", "OK, thanks!", "รับทราบค่ะ", "จำได้แล้วค่ะ", "And you?"])
def test_who_only_asks_or_says_that_they_heard_tells_nothing(text):
    assert units.substance(text) & 15 == 8


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("I signed up for pottery yesterday.", 16 | 32),
        ("We moved house", 32),
        ("The concert is next week", 16),
        ("Shall we meet on Friday?", 8 | 16 | 64),
        (
            "That was a good one! Do you bake too? I bake bread and cakes for everybody on our street.",
            32 | 64,
        ),
        ("I need a feed for the weeds", 0),
        ("เมื่อวานไปหาหมอมา", 16 | 32),
        ("ลูกเคยเรียนเปียโน", 32),
        ("แมวชอบนอนบนโซฟา", 0),
    ],
)
def test_a_turn_is_known_to_say_when_to_tell_of_the_past_and_to_ask(text, told):
    assert units.substance(text) & ~7 == told


def test_a_turn_that_says_when_tells_more_and_one_that_asks_or_comes_late_less():
    plain = dict.fromkeys(("only_asks", "names", "number", "dated", "past", "asks", "late", "rarity"), 0.0)
    given = {**plain, "fullness": 1.0, "meaning": 0.0, "words": 0.0, "is_list": False}

    def told(**more: float) -> float:
        return ranking.substance(**{**given, **more})

    assert told(dated=1.0) > told(past=1.0) > told() > told(asks=1.0)
    assert told() > told(late=0.5) > told(late=1.0)
    assert told(dated=1.0, fullness=0.1) < told(past=1.0)  # a long text has something of everything


@pytest.mark.parametrize("text", ["Sure, the key is under the mat.", "ได้งานใหม่แล้วค่ะ", "Great Yarmouth"])
def test_a_polite_beginning_is_not_all_of_a_turn(text):
    assert not units.substance(text) & 8


def test_a_part_that_speaks_against_a_hit_is_said_so():
    memory = Memory(
        id="m", rev=1, kind="fact", scope="shared", source="manual", actor="human:you",
        at=datetime(2026, 1, 5, tzinfo=UTC), salience=0.5, confidence=1.0, text="ชอบชา",
    )  # fmt: skip
    for name, against in (("substance", "tells little"), ("meaning", "means something else")):
        less, more = (
            Hit(memory=memory, turn=None, score=0.1, parts={name: value}, version=1) for value in (-0.1, 0.1)
        )
        assert less.why == f"{against} (-0.10)"
        assert against not in more.why


def test_hits_that_only_rounding_tells_apart_stand_by_their_ids():
    def hit(id_, score):
        memory = Memory(id=id_, kind="fact", text="x", at=datetime(2026, 1, 1, tzinfo=UTC))
        return Hit(memory=memory, turn=None, score=score, parts={}, version=1)

    one = [hit("m3", 1.0), hit("m1", 1.0 - 3e-7), hit("m2", 1.0 + 3e-7), hit("m0", 0.9)]
    assert [h.memory.id for h in ordered(one)] == ["m1", "m2", "m3", "m0"]
    assert [h.memory.id for h in ordered([hit("m2", 1.0), hit("m1", 1.0 - 2 * EQUAL)])] == ["m2", "m1"]
