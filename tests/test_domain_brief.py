"""The brief: order, budget, attribution and both formats."""

from __future__ import annotations

import json
import random
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from briefs import DAY, memory, read
from octavo.domain.brief import render
from octavo.domain.brief_page import CANON, CONTEXT, REGISTERS, count_tokens, plain
from octavo.errors import BadInput

MISSION = memory("m1", "Mission: stabilise the runtime", category="mission")
BIO = memory("b1", "ผู้สร้างชื่อสมชาย อยู่เชียงใหม่", category="bio")
PROJECTS = memory("r1", "dashboard, memory upgrade", "register", topic="current_projects")
HOME = memory("r0", "เชียงใหม่", "register", topic="บ้าน")
FACT = memory("f1", "prefers dark mode", "fact", category="preference")


def test_nothing_to_tell_is_an_empty_text() -> None:
    assert str(render([])) == ""
    assert not render([])


def test_canon_stands_first_by_category_then_registers_by_topic() -> None:
    found = read(str(render([HOME, PROJECTS, MISSION, BIO])))
    assert list(found.sections) == [CANON, REGISTERS]
    assert found.ids == ["b1", "m1", "r1", "r0"]


def test_within_a_category_canon_stands_in_the_order_it_came() -> None:
    later = memory("a0", "never delete logs", category="mission", at=DAY + timedelta(days=1))
    assert read(str(render([later, MISSION]))).ids == ["m1", "a0"]


def test_the_bytes_do_not_depend_on_the_order_of_the_input() -> None:
    all_ = [MISSION, BIO, PROJECTS, HOME]
    shuffled = all_[:]
    random.Random(7).shuffle(shuffled)
    assert str(render(all_)) == str(render(shuffled))


def test_a_query_changes_nothing_in_front_of_the_relevant_part() -> None:
    without, with_ = render([MISSION, PROJECTS]), render([MISSION, PROJECTS], [FACT])
    assert with_.text.startswith(without.text.removesuffix("</memory>").rstrip())
    assert with_.standing == without.standing == without.text


def test_registers_without_a_topic_raw_states_and_files_do_not_stand() -> None:
    silent = [
        memory("x1", "no topic", "register"),
        memory("x2", "calm", "register", topic="ire_state", category="state"),
        memory("x3", "bytes", "register", topic="a/b.md", category="file"),
        memory("x4", "", "register", topic="only data", data={"a": 1}),
        memory("x5", "gone", gone=True),
        FACT,
    ]
    assert read(str(render([*silent, PROJECTS]))).ids == ["r1"]


def test_every_line_names_id_kind_date_and_a_topic_if_there_is_one() -> None:
    found = read(str(render([PROJECTS, MISSION])))
    assert found.sections[CANON] == [("m1", "canon", "2026-03-01", None, "Mission: stabilise the runtime")]
    assert found.sections[REGISTERS] == [
        ("r1", "register", "2026-03-01", "current_projects", "dashboard, memory upgrade")
    ]


def test_relevant_memories_stand_canon_first_and_grouped_by_kind_and_category() -> None:
    ranked = [
        FACT,
        memory("e1", "user: hello", "episode"),
        memory("f2", "tea", "fact", category="preference"),
    ]
    found = read(str(render([], [*ranked, MISSION])))
    assert list(found.sections) == [CONTEXT, "canon: mission", "fact: preference", "episode"]
    assert found.ids == ["m1", "f1", "f2", "e1"]


def test_what_stands_already_is_not_told_twice() -> None:
    found = render([MISSION], [MISSION, FACT, FACT])
    assert read(found.text).ids == ["m1", "f1"]
    assert found.left_out.relevant == 0


def test_assemblies_open_beliefs_and_raw_states_are_never_relevant() -> None:
    silent = [
        memory("a1", "a cluster", "assembly"),
        memory("s1", "a belief", "sphere"),
        memory("x2", "calm", "register", topic="ire_state", category="state"),
    ]
    assert str(render([], silent)) == ""


def test_k_bounds_the_relevant_lines_and_zero_means_none() -> None:
    many = [memory(f"f{n}", f"fact {n}", "fact") for n in range(5)]
    assert read(str(render([MISSION], many, k=2))).ids == ["m1", "f0", "f1"]
    assert str(render([], many, k=0)) == ""


def test_a_long_transcript_is_cut_and_says_by_how_much() -> None:
    (said,) = read(str(render([], [memory("e1", "ก" * 5000, "episode")]))).texts
    assert said.endswith("… (3800 more characters)")


def test_canon_that_exceeds_the_budget_is_counted_in_the_text() -> None:
    canon = [memory(f"c{n:02}", f"invariant number {n} holds in all apps") for n in range(40)]
    brief = render(canon, budget=300)
    found = read(brief.text)
    assert 0 < len(found.ids) < 40
    assert found.notes == {CANON: 40 - len(found.ids)}
    assert brief.left_out.canon == 40 - len(found.ids)


def test_registers_leave_a_quarter_of_the_budget_to_what_is_relevant() -> None:
    registers = [memory(f"r{n:02}", "state " * 10, "register", topic=f"t{n:02}") for n in range(60)]
    brief = render(registers, [FACT], budget=600)
    assert "f1" in read(brief.text).ids
    assert brief.left_out.registers == read(brief.text).notes[REGISTERS]


def test_a_line_too_long_for_the_budget_gives_way_to_shorter_ones() -> None:
    long = memory("e1", "word " * 200, "episode")
    brief = render([], [long, FACT], budget=120)
    assert read(brief.text).ids == ["f1"]
    assert brief.left_out.relevant == 1


def test_a_budget_too_small_to_say_anything_still_counts_what_is_left_out() -> None:
    brief = render([MISSION, PROJECTS], [FACT], budget=3)
    assert str(brief) == ""
    assert (brief.left_out.canon, brief.left_out.registers, brief.left_out.relevant) == (1, 1, 1)


def test_the_token_counter_can_be_exchanged() -> None:
    counted = render([MISSION], count=len)
    assert counted.tokens == len(counted.text)
    assert str(render([MISSION], budget=len(counted.text), count=len)) == counted.text
    assert "1 more line does" in str(render([MISSION], budget=len(counted.text) - 1, count=len))


@pytest.mark.parametrize("format_", ["markdown", "json"])
@given(
    texts=st.lists(st.text(max_size=80), max_size=12),
    relevant=st.lists(st.text(max_size=80), max_size=12),
    budget=st.integers(0, 900),
)
@settings(max_examples=60, deadline=None)
def test_no_brief_exceeds_its_budget(
    format_: str, texts: list[str], relevant: list[str], budget: int
) -> None:
    standing = [memory(f"c{n}", text, category="x") for n, text in enumerate(texts)]
    ranked = [memory(f"f{n}", text, "fact") for n, text in enumerate(relevant)]
    brief = render(standing, ranked, budget=budget, format=format_)
    assert count_tokens(brief.text) == brief.tokens <= budget


@given(st.lists(st.text(max_size=60), max_size=8), st.lists(st.text(max_size=60), max_size=8))
@settings(max_examples=100, deadline=None)
def test_any_text_comes_back_out_of_the_block_on_one_line(texts: list[str], topics: list[str]) -> None:
    standing = [memory(f"c{n}", text) for n, text in enumerate(texts)]
    standing += [
        memory(f"r{n}", "value", "register", topic=topic) for n, topic in enumerate(topics) if plain(topic)
    ]
    told = [m for m in standing if plain(m.text)]
    if told:
        found = read(str(render(standing)))
        assert sorted(found.texts) == sorted(plain(m.text) for m in told)


def test_json_holds_the_same_lines_and_parses() -> None:
    brief = render([MISSION, PROJECTS, BIO], [FACT], format="json")
    found = json.loads(brief.text)
    assert list(found) == ["notice", "canon", "registers", "relevant"]
    assert [line["id"] for line in found["canon"]] == ["b1", "m1"]
    assert found["registers"] == [
        {
            "id": "r1",
            "kind": "register",
            "date": "2026-03-01",
            "topic": "current_projects",
            "text": "dashboard, memory upgrade",
        }
    ]
    assert json.loads(brief.standing)["canon"] == found["canon"]
    assert json.loads(brief.relevant)["relevant"] == found["relevant"]


def test_json_says_how_many_lines_of_canon_are_left_out() -> None:
    canon = [memory(f"c{n:02}", f"invariant number {n} holds in all apps") for n in range(40)]
    found = json.loads(str(render(canon, budget=400, format="json")))
    assert found["canon_left_out"] == 40 - len(found["canon"]) > 0


def test_unknown_formats_and_negative_bounds_are_bad_input() -> None:
    for wrong in ({"format": "xml"}, {"budget": -1}, {"k": -1}):
        with pytest.raises(BadInput):
            render([MISSION], **wrong)  # type: ignore[arg-type]


def test_thai_counts_three_tokens_for_two_characters_and_digits_one_each() -> None:
    assert count_tokens("สวัสดี") == 6
    assert count_tokens("ស្វាគមន៍") == 16
    assert count_tokens("我住在清迈") == 5
    assert count_tokens("a1b2c3") == 6
    assert count_tokens("international") == 4
    assert count_tokens("the cat") == 2
    assert count_tokens("") == 0
