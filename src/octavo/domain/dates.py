"""Time expressions in queries, English and Thai, as closed intervals of days."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial
from itertools import chain
from typing import NamedTuple

from octavo.domain.patterns import pattern

_MONTHS = {
    "january": 1, "february": 2, "march": 3, "april": 4, "may": 5, "june": 6, "july": 7, "august": 8,
    "september": 9, "october": 10, "november": 11, "december": 12,
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "jun": 6, "jul": 7, "aug": 8, "sept": 9, "sep": 9, "oct": 10,
    "nov": 11, "dec": 12,
    "มกราคม": 1, "กุมภาพันธ์": 2, "มีนาคม": 3, "เมษายน": 4, "พฤษภาคม": 5, "มิถุนายน": 6, "กรกฎาคม": 7,
    "สิงหาคม": 8, "กันยายน": 9, "ตุลาคม": 10, "พฤศจิกายน": 11, "ธันวาคม": 12,
    "มกรา": 1, "กุมภา": 2, "มีนา": 3, "เมษา": 4, "พฤษภา": 5, "มิถุนา": 6, "กรกฎา": 7, "สิงหา": 8,
    "กันยา": 9, "ตุลา": 10, "พฤศจิกา": 11, "ธันวา": 12,
    "ม.ค.": 1, "ก.พ.": 2, "มี.ค.": 3, "เม.ย.": 4, "พ.ค.": 5, "มิ.ย.": 6, "ก.ค.": 7, "ส.ค.": 8, "ก.ย.": 9,
    "ต.ค.": 10, "พ.ย.": 11, "ธ.ค.": 12,
}  # fmt: skip
_WEEKDAYS = {
    "monday": 0, "tuesday": 1, "wednesday": 2, "thursday": 3, "friday": 4, "saturday": 5, "sunday": 6,
    "จันทร์": 0, "อังคาร": 1, "พุธ": 2, "พฤหัสบดี": 3, "พฤหัส": 3, "ศุกร์": 4, "เสาร์": 5, "อาทิตย์": 6,
}  # fmt: skip
_NUMBERS = {
    "a couple of": 2, "couple of": 2, "a couple": 2, "a few": 3, "several": 3, "a": 1, "an": 1, "one": 1,
    "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7, "eight": 8, "nine": 9, "ten": 10,
    "eleven": 11, "twelve": 12,
    "หนึ่ง": 1, "สอง": 2, "สาม": 3, "สี่": 4, "ห้า": 5, "หก": 6, "เจ็ด": 7, "แปด": 8, "เก้า": 9, "สิบ": 10,
}  # fmt: skip
_UNITS = {
    "day": "day", "week": "week", "weekend": "weekend", "month": "month", "year": "year",
    "วัน": "day", "สัปดาห์": "week", "อาทิตย์": "week", "เดือน": "month", "ปี": "year",
}  # fmt: skip
_DAYS = {
    "the day before yesterday": -2, "day before yesterday": -2, "yesterday": -1, "last night": -1,
    "today": 0, "tonight": 0, "this morning": 0, "tomorrow": 1, "the day after tomorrow": 2,
    "เมื่อวานซืนนี้": -2, "เมื่อวานซืน": -2, "วานซืน": -2, "เมื่อวานนี้": -1, "เมื่อวาน": -1, "เมื่อคืนนี้": -1,
    "เมื่อคืน": -1, "วันนี้": 0, "คืนนี้": 0, "พรุ่งนี้": 1, "มะรืนนี้": 2, "มะรืน": 2,
}  # fmt: skip
_SHIFTS = {
    "last": -1, "past": -1, "previous": -1, "this": 0, "next": 1,
    "ที่แล้ว": -1, "ที่ผ่านมา": -1, "ก่อน": -1, "นี้": 0, "หน้า": 1,
}  # fmt: skip
# A pattern that ignores case takes a long s and a dotless i for the plain ones; the tables above do not.
_PLAIN = str.maketrans("๐๑๒๓๔๕๖๗๘๙ſı", "0123456789si")
_BUDDHIST_FROM, _BUDDHIST_OFFSET = 2400, 543


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """A closed interval of days."""

    first: date
    last: date

    @property
    def days(self) -> int:
        """How many days it covers."""
        return (self.last - self.first).days + 1


class Times(NamedTuple):
    """The intervals a query names, and the query without the words that named them."""

    intervals: tuple[Interval, ...]
    rest: str


class _Frame(NamedTuple):
    """What an expression is relative to: the day of asking and the years it may speak of."""

    now: date
    lived: Interval


def _any(names: dict[str, int] | dict[str, str], *, thai: bool) -> str:
    chosen = [name for name in names if (name[0] >= "\u0e00") == thai]
    return "|".join(re.escape(name) for name in sorted(chosen, key=len, reverse=True))


_EN_MONTH, _TH_MONTH = _any(_MONTHS, thai=False), _any(_MONTHS, thai=True)
_EN_NUMBER, _TH_NUMBER = _any(_NUMBERS, thai=False), _any(_NUMBERS, thai=True)
_EN_UNIT, _TH_UNIT = "day|week|month|year", _any(_UNITS, thai=True)
_DAY = r"(?P<day>[0-3]?\d)(?:st|nd|rd|th)?"
_ANY_YEAR = r"(?:1[89]|2[0-6])\d\d"
_YEAR = f"(?P<year>{_ANY_YEAR})"
_TH_YEAR = rf"(?:ปี\s*)?(?:พ\.?\s?ศ\.?\s*|ค\.?\s?ศ\.?\s*)?{_YEAR}"
_IN = r"(?:(?:in|on|during|by|since|around|of|from|until|before|after)\s+)?"


def find_times(query: str, now: date, lived: Interval | None = None) -> Times:
    """Find the time expressions of a query.

    `lived` is the time the account has memories of. A date outside it is content ("the war of 1914"), not
    a time to look at, and stays in the text; a day or month without a year means that day of every lived
    year.
    """
    text = query.translate(_PLAIN)
    if not _is_hinted(text):
        return Times(intervals=(), rest=query)
    frame = _Frame(now, lived or Interval(first=_shift_years(now, -3), last=_shift_years(now, 1)))
    found: list[Interval] = []
    for form, read in _READERS:
        text = form.sub(partial(_take, read=read, frame=frame, found=found), text)
    rest = re.sub(r"\s+", " ", text).strip() if found else query
    return Times(intervals=tuple(dict.fromkeys(found)), rest=rest)


def _take(
    match: re.Match[str],
    read: Callable[[dict[str, str], _Frame], Iterator[Interval]],
    frame: _Frame,
    found: list[Interval],
) -> str:
    named = {name: value.lower() for name, value in match.groupdict().items() if value}
    intervals = [interval for interval in read(named, frame) if _meets(interval, frame.lived)]
    found.extend(intervals)
    return " " if intervals else match.group()


def _meets(interval: Interval, lived: Interval) -> bool:
    return interval.first <= lived.last and lived.first <= interval.last


def _read_date(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    month = _MONTHS[named["month"]] if not named["month"].isdigit() else int(named["month"])
    years = [_year(named["year"])] if "year" in named else _years(frame)
    for year in years:
        if "day" in named:
            yield from _day(year, month, int(named["day"]))
        elif 1 <= month <= 12:
            yield _month(year, month)


def _read_slashes(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    year, one, two = _year(named["year"]), int(named["one"]), int(named["two"])
    yield from _day(year, two, one)
    if one != two:
        yield from _day(year, one, two)


def _read_year(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    year = _year(named["year"])
    yield Interval(first=date(year, 1, 1), last=date(year, 12, 31))


def _read_day(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    day = frame.now + timedelta(days=_DAYS[named["name"]])
    yield Interval(first=day, last=day)


def _read_ago(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    yield _period(_UNITS[named["unit"]], -_count(named["count"]), frame.now, around=True)


def _read_past(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    unit, count = _UNITS[named["unit"]], _count(named["count"])
    yield Interval(first=_moved(frame.now, unit, -count), last=frame.now)


def _read_shifted(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    yield _period(_UNITS[named["unit"]], _SHIFTS[named["shift"]], frame.now, around=False)


def _read_weekday(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    ahead = (_WEEKDAYS[named["weekday"]] - frame.now.weekday()) % 7
    shift = _SHIFTS[named["shift"]]
    days = ahead - 7 if shift < 0 else (ahead or 7) if shift > 0 else ahead
    day = frame.now + timedelta(days=days)
    yield Interval(first=day, last=day)


def _read_shifted_month(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    month, shift = _MONTHS[named["month"]], _SHIFTS[named["shift"]]
    year = frame.now.year
    if shift < 0 and month >= frame.now.month:
        year -= 1
    if shift > 0 and month <= frame.now.month:
        year += 1
    yield _month(year, month)


def _period(unit: str, shift: int, now: date, *, around: bool) -> Interval:
    """The calendar unit `shift` away; `around` loosens an amount that people name roughly."""
    there = _moved(now, unit, shift)
    match unit:
        case "day":
            slack = timedelta(days=1 if around and shift < -3 else 0)
            return Interval(first=there - slack, last=there + slack)
        case "week" if around:
            return Interval(first=there - timedelta(days=3), last=there + timedelta(days=3))
        case "week":
            monday = there - timedelta(days=there.weekday())
            return Interval(first=monday, last=monday + timedelta(days=6))
        case "weekend":
            saturday = there + timedelta(days=5 - there.weekday())
            return Interval(first=saturday, last=saturday + timedelta(days=1))
        case "month":
            return _month(there.year, there.month)
        case _:
            return Interval(first=date(there.year, 1, 1), last=date(there.year, 12, 31))


def _moved(day: date, unit: str, count: int) -> date:
    match unit:
        case "day":
            return day + timedelta(days=count)
        case "week" | "weekend":
            return day + timedelta(weeks=count)
        case "month":
            months = day.year * 12 + day.month - 1 + count
            year, month = divmod(months, 12)
            return date(year, month + 1, min(day.day, monthrange(year, month + 1)[1]))
        case _:
            return _shift_years(day, count)


def _shift_years(day: date, count: int) -> date:
    year = min(max(day.year + count, 1), 9998)
    return date(year, day.month, min(day.day, monthrange(year, day.month)[1]))


def _day(year: int, month: int, day: int) -> Iterator[Interval]:
    if 1 <= month <= 12 and 1 <= day <= monthrange(year, month)[1]:
        yield Interval(first=date(year, month, day), last=date(year, month, day))


def _month(year: int, month: int) -> Interval:
    return Interval(first=date(year, month, 1), last=date(year, month, monthrange(year, month)[1]))


def _year(written: str) -> int:
    year = int(written)
    return year - _BUDDHIST_OFFSET if year >= _BUDDHIST_FROM else year


def _years(frame: _Frame) -> range:
    return range(frame.lived.first.year, frame.lived.last.year + 1)


def _count(written: str) -> int:
    return int(written) if written.isdigit() else _NUMBERS[written]


def _compiled(source: str) -> re.Pattern[str]:
    return pattern(source, re.IGNORECASE)


# Every expression holds a year or one of these; most questions hold none and are done at once.
_HINTS = frozenset(("ago", *_SHIFTS, *_DAYS, *_MONTHS))
_WORD, _YEAR_HINT = pattern("[a-z]+"), pattern(_ANY_YEAR)
_TH_HINT = pattern(f"{_any(_SHIFTS, thai=True)}|{_any(_DAYS, thai=True)}|{_TH_MONTH}")


def _is_hinted(text: str) -> bool:
    is_said = not _HINTS.isdisjoint(_WORD.findall(text.lower()))
    return is_said or bool(_YEAR_HINT.search(text) or _TH_HINT.search(text))


_Reader = Callable[[dict[str, str], _Frame], Iterator[Interval]]

# The order matters: the longest forms first, so that "8 May 2023" is not read as "May 2023".
_READERS: tuple[tuple[re.Pattern[str], _Reader], ...] = tuple(
    chain(
        (
            (_compiled(rf"{_IN}\b{_YEAR}-(?P<month>[01]\d)(?:-(?P<day>[0-3]\d))?\b"), _read_date),
            (_compiled(rf"{_IN}\b(?P<one>[0-3]?\d)/(?P<two>[0-3]?\d)/{_YEAR}\b"), _read_slashes),
            (
                _compiled(rf"{_IN}\b(?:the\s+)?{_DAY}\s+(?:of\s+)?(?P<month>{_EN_MONTH})\b\.?,?\s+{_YEAR}\b"),
                _read_date,
            ),
            (_compiled(rf"{_IN}\b(?P<month>{_EN_MONTH})\b\.?\s+{_DAY}(?:,\s*|\s+){_YEAR}\b"), _read_date),
            (_compiled(rf"{_IN}\b(?P<month>{_EN_MONTH})\b\.?,?\s+(?:of\s+)?{_YEAR}\b"), _read_date),
            (
                _compiled(rf"{_IN}\b(?:the\s+)?{_DAY}\s+(?:of\s+)?(?P<month>{_EN_MONTH})\b"),
                _read_date,
            ),
            (_compiled(rf"{_IN}\b(?P<month>{_EN_MONTH})\b\.?\s+(?:the\s+)?{_DAY}\b"), _read_date),
            (
                _compiled(rf"{_IN}\b(?P<shift>last|this|next|past|previous)\s+(?P<month>{_EN_MONTH})\b"),
                _read_shifted_month,
            ),
            (
                _compiled(
                    rf"\b(?:in|during|by|since|until|before|after|of)\s+(?:early\s+|mid[\s-]|late\s+)?"
                    rf"(?P<month>{_EN_MONTH})\b"
                ),
                _read_date,
            ),
        ),
        (
            (
                _compiled(rf"(?:เมื่อ|ใน)?(?:วันที่\s*)?{_DAY}\s*(?P<month>{_TH_MONTH})\s*{_TH_YEAR}"),
                _read_date,
            ),
            (_compiled(rf"(?:เมื่อ|ใน|ช่วง)?(?:เดือน)?\s*(?P<month>{_TH_MONTH})\s*{_TH_YEAR}"), _read_date),
            (_compiled(rf"(?:เมื่อ|ใน)?(?:วันที่\s*)?{_DAY}\s*(?P<month>{_TH_MONTH})"), _read_date),
            (
                _compiled(
                    rf"(?:เมื่อ|ใน|ช่วง)?(?:เดือน)?(?P<month>{_TH_MONTH})\s*(?:ปี)?(?P<shift>ที่แล้ว|ก่อน|นี้|หน้า)"
                ),
                _read_shifted_month,
            ),
            (_compiled(rf"(?:เมื่อ|ใน|ช่วง)?(?:เดือน)\s*(?P<month>{_TH_MONTH})"), _read_date),
            (
                _compiled(rf"(?:เมื่อ|ใน|ช่วง)?(?:ปี\s*(?:พ\.?\s?ศ\.?|ค\.?\s?ศ\.?)?|พ\.ศ\.|ค\.ศ\.)\s*{_YEAR}"),
                _read_year,
            ),
            (
                _compiled(
                    rf"(?:เมื่อ|ช่วง)?\s*(?P<count>\d{{1,3}}|{_TH_NUMBER})\s*(?P<unit>{_TH_UNIT})(?:ที่แล้ว|ที่ผ่านมา|ก่อน)"
                ),
                _read_ago,
            ),
            (
                _compiled(
                    rf"(?:เมื่อ)?วัน(?P<weekday>{_any(_WEEKDAYS, thai=True)})(?P<shift>ที่แล้ว|ที่ผ่านมา|ก่อน|นี้|หน้า)"
                ),
                _read_weekday,
            ),
            (
                _compiled(rf"(?:เมื่อ|ใน|ช่วง)?(?P<unit>{_TH_UNIT})(?P<shift>ที่แล้ว|ที่ผ่านมา|ก่อน|นี้|หน้า)"),
                _read_shifted,
            ),
            (_compiled(rf"(?P<name>{_any(_DAYS, thai=True)})"), _read_day),
        ),
        (
            (_compiled(rf"\b(?P<name>{_any(_DAYS, thai=False)})\b"), _read_day),
            (
                _compiled(
                    rf"\b(?:about\s+)?(?P<count>\d{{1,3}}|{_EN_NUMBER})\s+(?P<unit>{_EN_UNIT})s?\s+ago\b"
                ),
                _read_ago,
            ),
            (
                _compiled(
                    rf"\b(?:in|over|during|within)?\s*the\s+(?:last|past)\s+(?P<count>\d{{1,3}}|{_EN_NUMBER})\s+"
                    rf"(?P<unit>{_EN_UNIT})s\b"
                ),
                _read_past,
            ),
            (
                _compiled(
                    rf"{_IN}\b(?:the\s+)?(?P<shift>last|this|next|past|previous)\s+"
                    rf"(?P<unit>weekend|{_EN_UNIT})\b"
                ),
                _read_shifted,
            ),
            (
                _compiled(
                    rf"{_IN}\b(?P<shift>last|this|next)\s+(?P<weekday>{_any(_WEEKDAYS, thai=False)})\b"
                ),
                _read_weekday,
            ),
            (
                _compiled(
                    rf"\b(?:in|during|by|since|until|before|after|of|year)\s+(?:the\s+year\s+|early\s+|late\s+|mid[\s-])?"
                    rf"{_YEAR}\b"
                ),
                _read_year,
            ),
        ),
    )
)
