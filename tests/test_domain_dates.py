"""Time expressions in questions."""

from __future__ import annotations

from datetime import date

import pytest
from hypothesis import given
from hypothesis import strategies as st

from octavo.domain import dates
from octavo.domain.dates import Interval, find_times, holds_until

NOW = date(2023, 6, 15)  # a Thursday


def _found(query: str, lived: Interval | None = None) -> list[tuple[str, str]]:
    return [(str(i.first), str(i.last)) for i in find_times(query, NOW, lived)[0]]


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("What happened on 8 May 2023?", "2023-05-08", "2023-05-08"),
        ("on May 8th, 2023", "2023-05-08", "2023-05-08"),
        ("2023-05-08", "2023-05-08", "2023-05-08"),
        ("plans for May 2023", "2023-05-01", "2023-05-31"),
        ("what did I do last May?", "2023-05-01", "2023-05-31"),
        ("where did she go last spring?", "2023-03-01", "2023-05-31"),
        ("last summer", "2022-06-01", "2022-08-31"),
        ("this summer", "2023-06-01", "2023-08-31"),
        ("last winter", "2022-12-01", "2023-02-28"),
        ("next autumn", "2023-09-01", "2023-11-30"),
        ("in the winter of 2021", "2021-12-01", "2022-02-28"),
        ("ฤดูหนาวที่แล้วไปไหนมา", "2022-11-01", "2023-02-28"),
        ("หน้าร้อนปีที่แล้ว", "2022-03-01", "2022-05-31"),
        ("last July", "2022-07-01", "2022-07-31"),
        ("what did I eat yesterday", "2023-06-14", "2023-06-14"),
        ("the day before yesterday", "2023-06-13", "2023-06-13"),
        ("two weeks ago", "2023-05-29", "2023-06-04"),
        ("3 days ago", "2023-06-12", "2023-06-12"),
        ("last week", "2023-06-05", "2023-06-11"),
        ("last weekend", "2023-06-10", "2023-06-11"),
        ("last month", "2023-05-01", "2023-05-31"),
        ("this year", "2023-01-01", "2023-12-31"),
        ("in the past 3 days", "2023-06-12", "2023-06-15"),
        ("last Monday", "2023-06-12", "2023-06-12"),
        ("in 2022", "2022-01-01", "2022-12-31"),
        ("เมื่อวานกินอะไร", "2023-06-14", "2023-06-14"),
        ("เมื่อวานซืน", "2023-06-13", "2023-06-13"),
        ("วันนี้ทำอะไร", "2023-06-15", "2023-06-15"),
        ("สัปดาห์ที่แล้วไปไหน", "2023-06-05", "2023-06-11"),
        ("อาทิตย์ก่อน", "2023-06-05", "2023-06-11"),
        ("เดือนที่แล้ว", "2023-05-01", "2023-05-31"),
        ("ปีที่แล้ว", "2022-01-01", "2022-12-31"),
        ("สามวันก่อน", "2023-06-12", "2023-06-12"),
        ("พฤษภาคม 2566", "2023-05-01", "2023-05-31"),
        ("วันที่ ๘ พ.ค. ๒๕๖๖", "2023-05-08", "2023-05-08"),
        ("8 พฤษภาคม พ.ศ. 2566", "2023-05-08", "2023-05-08"),
        ("ปี 2566", "2023-01-01", "2023-12-31"),
        ("วันจันทร์ที่แล้ว", "2023-06-12", "2023-06-12"),
    ],
)
def test_an_expression_names_a_closed_interval(query, first, last):
    assert _found(query) == [(first, last)]


@pytest.mark.parametrize("query", ["What may I do?", "march on", "the war of 1914", "ปี 1914"])
def test_what_is_no_time_of_the_account_stays_in_the_text(query):
    intervals, rest = find_times(query, NOW)
    assert intervals == ()
    assert rest == query


def test_the_words_that_named_the_time_leave_the_text():
    assert find_times("What did she paint in May 2023?", NOW)[1] == "What did she paint ?"
    assert find_times("เมื่อวานฉันไปไหน", NOW)[1] == "ฉันไปไหน"


def test_a_day_without_a_year_means_that_day_of_every_lived_year():
    lived = Interval(first=date(2021, 1, 1), last=date(2023, 12, 31))
    assert [first for first, _ in _found("on 8 May", lived)] == ["2021-05-08", "2022-05-08", "2023-05-08"]


def test_a_date_that_can_be_read_in_two_ways_is_read_in_both():
    assert _found("03/04/2023") == [("2023-04-03", "2023-04-03"), ("2023-03-04", "2023-03-04")]


def test_a_time_outside_the_lived_time_is_content():
    lived = Interval(first=date(2026, 1, 1), last=date(2026, 2, 1))
    assert _found("in May 2023", lived) == []


@given(st.text(max_size=80), st.dates(min_value=date(1950, 1, 1), max_value=date(2200, 1, 1)))
def test_any_text_is_read_without_fail_and_intervals_are_in_order(text, now):
    for interval in find_times(text, now)[0]:
        assert interval.first <= interval.last


@given(
    st.sampled_from(["days", "weeks", "months", "years"]),
    st.integers(0, 200),
    st.dates(min_value=date(1950, 1, 1), max_value=date(2200, 1, 1)),
)
def test_what_lies_some_time_ago_does_not_lie_ahead(unit, count, now):
    lived = Interval(first=date(1, 1, 1), last=date(9999, 12, 31))
    (interval,) = find_times(f"{count} {unit} ago", now, lived)[0]
    assert interval.first <= now


@pytest.mark.parametrize("text", ["laſt week", "thıs week", "LAST WEEK", "last weeK"])
def test_a_letter_that_only_looks_different_is_read_as_what_it_is(text):
    plain = {"l": "last week", "t": "this week"}[text[0].lower()]
    assert find_times(text, date(2026, 1, 7)) == find_times(plain, date(2026, 1, 7))


PIECES = [
    "7", "63", "2023", "2566", "08/05/2023", "2023-05-08", "May", "8 May", "days", "ago", "last", "week",
    "yesterday", "last night", "This morning", "day after TOMORROW", "two", "วัน", "3", "ก่อน", "ที่แล้ว",
    "พฤษภาคม", "เมื่อวาน", "ปี", "สัปดาห์", "tea", "the", "in",
]  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from(PIECES), st.sampled_from([" ", "", "/", "-"])), max_size=6))
def test_a_text_that_is_passed_over_holds_no_time_expression(pieces):
    text = "".join(piece + gap for piece, gap in pieces)
    if not dates._is_hinted(text):
        assert [form.pattern for _, form in dates._FORMS if form.search(text)] == []


@pytest.mark.parametrize(
    ("text", "last"),
    [
        ("Her manager is Priya until May", date(2026, 5, 31)),
        ("Nora lives in Porto until 5 June, then in Faro", date(2026, 6, 5)),
        ("the badge is valid until 2026-05-31", date(2026, 5, 31)),
        ("On leave until the end of March", date(2026, 3, 31)),
        ("We rent the hall till 2027", date(2027, 12, 31)),
        ("Until next week I share a desk", date(2026, 1, 18)),
        ("เก๋อยู่หอจนถึงเดือนพฤษภาคม", date(2026, 5, 31)),
        ("จนถึงพฤษภาคมใช้ห้องเล็ก", date(2026, 5, 31)),
        ("สัญญาเช่าถึง 31 ธันวาคม 2570", date(2027, 12, 31)),
        ("The shop does not open until May", None),
        ("ยังไม่เปิดจนถึงเดือนพฤษภาคม", None),
        ("I stayed in Rome until May 2019", None),
        ("The library is open until 8", None),
        ("ไปถึงเชียงใหม่เดือนพฤษภาคม", None),
        ("Marta plays the oboe", None),
    ],
)
def test_a_fact_may_say_until_when_it_holds(text, last):
    assert holds_until(text, date(2026, 1, 10)) == last
