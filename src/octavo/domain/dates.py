"""Time expressions in queries, English and Thai, as closed intervals of days."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Iterable, Iterator
from datetime import date, timedelta
from functools import partial
from itertools import chain

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


_ANY_YEAR = r"(?:1[89]|2[0-6])\d\d"


def find_times(query: str, now: date, lived: Interval | None = None) -> tuple[tuple[Interval, ...], str]:
    """The intervals that a query names, and the query without the words that named them.

    `lived` is the time the account has memories of. A date outside it is content ("the war of 1914"), not
    a time to look at, and stays in the text; a day or month without a year means that day of every lived
    year.
    """
    text = query.translate(_PLAIN)
    if not _is_hinted(text):
        return (), query
    known = lived or Interval(first=_shift_years(now, -3), last=_shift_years(now, 1))
    found: list[Interval] = []

    def taken(match: re.Match[str], kind: str) -> str:
        named = {name: value.lower() for name, value in match.groupdict().items() if value}
        meant = [x for x in _read(kind, named, now, known) if x.first <= known.last and known.first <= x.last]
        found.extend(meant)
        return " " if meant else match.group()

    for kind, form in _FORMS:
        text = form.sub(partial(taken, kind=kind), text)
    rest = re.sub(r"\s+", " ", text).strip() if found else query
    return tuple(dict.fromkeys(found)), rest


def holds_until(text: str, said: date) -> date | None:
    """The last day of what a text, said on some day, tells to hold until then: "until May", "ถึงสิ้นปี 2570".

    What does not begin until then has no end, nor has what was over when it was said.
    """
    known = Interval(first=_shift_years(said, -_FAR), last=_shift_years(said, _FAR))
    for until, not_yet, within in _BOUNDS:
        for clause in _CLAUSE.split(text) if until.search(text) else ():
            bound = until.search(clause)
            if bound is None or not_yet.search(clause, 0, bound.start()):
                continue
            named, _ = find_times(within + clause[bound.end() :], said, known)
            if ends := [time.last for time in named if time.last >= said]:
                return min(ends)
    return None


def coming(text: str, said: date) -> date | None:
    """The last day of the next time that a text, said on some day, names: "on 20 June", "this week"."""
    named, _ = find_times(text, said, Interval(first=said, last=_shift_years(said, 1)))
    return min((time.last for time in named if time.last >= said), default=None)


def _read(kind: str, named: dict[str, str], now: date, lived: Interval) -> Iterator[Interval]:
    """What an expression of some kind may mean, by its parts."""
    year = _year(named["year"]) if "year" in named else None
    match kind:
        case "date":
            month = int(named["month"]) if named["month"].isdigit() else _MONTHS[named["month"]]
            for each in range(lived.first.year, lived.last.year + 1) if year is None else [year]:
                if "day" in named:
                    yield from _day(each, month, int(named["day"]))
                elif 1 <= month <= 12:
                    yield _month(each, month)
        case "slashes" if year is not None:
            one, two = int(named["one"]), int(named["two"])
            yield from _day(year, two, one)
            if one != two:
                yield from _day(year, one, two)
        case "year" if year is not None:
            yield Interval(first=date(year, 1, 1), last=date(year, 12, 31))
        case "season":
            yield _meant_season(named, year, now)
        case _:
            yield _relative(kind, named, now)


def _relative(kind: str, named: dict[str, str], now: date) -> Interval:
    """What an expression means that is relative to the day of asking."""
    shift = _SHIFTS[named["shift"]] if "shift" in named else 0
    unit, written = _UNITS.get(named.get("unit", ""), ""), named.get("count", "0")
    count = int(written) if written.isdigit() else _NUMBERS[written]
    match kind:
        case "ago":
            return _period(unit, -count, now, around=True)
        case "past":
            return Interval(first=_moved(now, unit, -count), last=now)
        case "shifted":
            return _period(unit, shift, now, around=False)
        case "shifted_month":
            month = _MONTHS[named["month"]]
            passed = -1 if shift < 0 and month >= now.month else 0
            return _month(now.year + (1 if shift > 0 and month <= now.month else passed), month)
        case "weekday":
            ahead = (_WEEKDAYS[named["weekday"]] - now.weekday()) % 7
            days = ahead - 7 if shift < 0 else (ahead or 7) if shift > 0 else ahead
        case _:
            days = _DAYS[named["name"]]
    return Interval(first=now + timedelta(days=days), last=now + timedelta(days=days))


def _meant_season(named: dict[str, str], year: int | None, now: date) -> Interval:
    """The season of a year, the one that is over, this year's, or the next to begin."""
    if year is not None:
        return _season(named["season"], year)
    shift = _SHIFTS[named["shift"]]
    if "of" in named:  # the season of last year, not the last one
        return _season(named["season"], now.year + shift)
    nearby = [_season(named["season"], now.year + each) for each in (-2, -1, 0, 1)]
    if shift < 0:
        return max((one for one in nearby if one.last < now), key=lambda one: one.last)
    if shift > 0:
        return min((one for one in nearby if one.first > now), key=lambda one: one.first)
    return next((one for one in nearby if one.first <= now <= one.last), nearby[2])


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


def _forms(language: str) -> Iterator[tuple[str, re.Pattern[str]]]:
    """How a language writes times, in its order, each with its kind."""
    lists = ("month", "weekday", "unit", "day", "shift", "season")
    parts = {key: f"(?P<{key}>{_alternatives(words.valued(f'dates.{key}s', language))})" for key in lists}
    parts["name"] = parts.pop("day").replace("<day>", "<name>")
    few = {**words.valued("numbers.counts", language), **words.valued("numbers.few", language)}
    parts["count"] = rf"(?P<count>\d{{1,3}}|{_alternatives(few)})"
    parts["day"], parts["year"] = r"(?P<day>[0-3]?\d)", f"(?P<year>{_ANY_YEAR})"
    for line in words.lines("dates.forms", language):
        kind, _, form = line.partition(" ")
        yield kind, pattern(re.sub(r"\{([a-z]+)\}", lambda match: parts[match[1]], form), re.IGNORECASE)


def _bound(language: str) -> tuple[re.Pattern[str], re.Pattern[str], str]:
    """What a fact holds until, what says that it only begins then, and what stands before a time."""
    months = _alternatives(words.valued("dates.months", language))
    until, not_yet = (words.block(f"dates.{key}", language) for key in ("until", "not_yet"))
    within = words.block("dates.within", language)
    return pattern(until.replace("{month}", months), re.IGNORECASE), pattern(not_yet, re.IGNORECASE), within


_FORMS = tuple(chain.from_iterable(map(_forms, words.languages())))
_BOUNDS = tuple(_bound(name) for name in words.languages() if words.block("dates.until", name))
_CLAUSE, _FAR = pattern(r"[,;!?()]|\.\s"), 50  # as many years a fact may hold
