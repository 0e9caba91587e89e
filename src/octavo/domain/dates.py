"""Time expressions in queries, English and Thai, as closed intervals of days."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable, Iterable, Iterator
from datetime import date, timedelta
from functools import partial
from itertools import chain
from typing import NamedTuple

from msgspec import Struct

from octavo import words
from octavo.domain.patterns import pattern

_MONTHS, _WEEKDAYS, _DAYS, _SHIFTS = (
    {name: int(value) for name, value in words.valued(f"dates.{key}").items()}
    for key in ("months", "weekdays", "days", "shifts")
)
_UNITS, _SEASONS = words.valued("dates.units"), words.valued("dates.seasons")
_NUMBERS = {
    name: int(value) for key in ("counts", "few") for name, value in words.valued(f"numbers.{key}").items()
}
# A pattern that ignores case takes a long s and a dotless i for the plain ones; the tables above do not.
_PLAIN = str.maketrans("๐๑๒๓๔๕๖๗๘๙ſı", "0123456789si")
_BUDDHIST_FROM, _BUDDHIST_OFFSET = 2400, 543


class Interval(Struct, frozen=True, kw_only=True):
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


_ANY_YEAR = r"(?:1[89]|2[0-6])\d\d"


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
    named_times: list[Interval] = []
    for form, read in _READERS:
        text = form.sub(partial(_take, read=read, frame=frame, named_times=named_times), text)
    rest = re.sub(r"\s+", " ", text).strip() if named_times else query
    return Times(intervals=tuple(dict.fromkeys(named_times)), rest=rest)


def _take(
    match: re.Match[str],
    read: Callable[[dict[str, str], _Frame], Iterator[Interval]],
    frame: _Frame,
    named_times: list[Interval],
) -> str:
    named = {name: value.lower() for name, value in match.groupdict().items() if value}
    intervals = [interval for interval in read(named, frame) if _meets(interval, frame.lived)]
    named_times.extend(intervals)
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


def _read_season(named: dict[str, str], frame: _Frame) -> Iterator[Interval]:
    """The season of a year, the one that is over, this year's, or the next to begin."""
    if "year" in named:
        yield _season(named["season"], _year(named["year"]))
        return
    year, shift = frame.now.year, _SHIFTS[named["shift"]]
    if "of" in named:  # the season of last year, not the last one
        yield _season(named["season"], year + shift)
        return
    nearby = [_season(named["season"], each) for each in (year - 2, year - 1, year, year + 1)]
    if shift < 0:
        yield max((one for one in nearby if one.last < frame.now), key=lambda one: one.last)
    elif shift > 0:
        yield min((one for one in nearby if one.first > frame.now), key=lambda one: one.first)
    else:
        yield next((one for one in nearby if one.first <= frame.now <= one.last), nearby[2])


def _season(name: str, year: int) -> Interval:
    first, last = map(int, _SEASONS[name].split("-"))
    return Interval(first=date(year, first, 1), last=_month(year + (last < first), last).last)


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


def _alternatives(names: Iterable[str]) -> str:
    return "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))


def _hints() -> tuple[frozenset[str], str]:
    """Every expression holds a year or one of these, as a word or, where there are no spaces, anywhere."""
    spoken = {name: sections["spaced"] for name, sections in words.languages().items()}
    named = {
        (name, spoken[language])
        for language in spoken
        for key in ("months", "days", "shifts", "seasons")
        for name in words.valued(f"dates.{key}", language)
    }
    alone = words.listed("dates.hints") | {name for name, is_spaced in named if is_spaced}
    return alone, _alternatives(name for name, is_spaced in named if not is_spaced)


_HINTS, _ANYWHERE = _hints()
_WORD, _YEAR_HINT, _HINT = pattern("[^\\W\\d_]+"), pattern(_ANY_YEAR), pattern(_ANYWHERE)


def _is_hinted(text: str) -> bool:
    is_said = not _HINTS.isdisjoint(_WORD.findall(text.lower()))
    return is_said or bool(_YEAR_HINT.search(text) or _HINT.search(text))


_Reader = Callable[[dict[str, str], _Frame], Iterator[Interval]]
_READER_OF: dict[str, _Reader] = {
    "date": _read_date,
    "slashes": _read_slashes,
    "year": _read_year,
    "name": _read_day,
    "ago": _read_ago,
    "past": _read_past,
    "shifted": _read_shifted,
    "weekday": _read_weekday,
    "shifted_month": _read_shifted_month,
    "season": _read_season,
}


def _forms(language: str) -> Iterator[tuple[re.Pattern[str], _Reader]]:
    """How a language writes times, in its order, each with what reads it."""
    lists = ("month", "weekday", "unit", "day", "shift", "season")
    parts = {key: f"(?P<{key}>{_alternatives(words.valued(f'dates.{key}s', language))})" for key in lists}
    parts["name"] = parts.pop("day").replace("<day>", "<name>")
    few = {**words.valued("numbers.counts", language), **words.valued("numbers.few", language)}
    parts["count"] = rf"(?P<count>\d{{1,3}}|{_alternatives(few)})"
    parts["day"], parts["year"] = r"(?P<day>[0-3]?\d)", f"(?P<year>{_ANY_YEAR})"
    for line in words.lines("dates.forms", language):
        reader, _, form = line.partition(" ")
        source = re.sub(r"\{([a-z]+)\}", lambda match: parts[match[1]], form)
        yield pattern(source, re.IGNORECASE), _READER_OF[reader]


_READERS = tuple(chain.from_iterable(map(_forms, words.languages())))
