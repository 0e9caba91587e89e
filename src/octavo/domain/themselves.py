"""What the user has said of themselves that holds longer than a day: quotes, under what they are about."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, timedelta
from functools import cache
from itertools import zip_longest

from msgspec.structs import replace

from octavo import words as word_lists
from octavo.domain import cues, statements
from octavo.domain.cores import Statement
from octavo.domain.dates import coming, holds_until
from octavo.domain.memory import Memory
from octavo.domain.orders import Said, by_words, may_hold, said_by_user, sentences_of
from octavo.domain.profile import profile
from octavo.domain.sentences import content, is_question
from octavo.domain.text import fold, words

PLANS, LIKES, HOUSEHOLD, WORK = "plans", "likes", "household", "work"
_STATED = ("name", "health", "pets", "family", "home", "origin", "pursuits", WORK, LIKES)
TOPICS = (*_STATED, HOUSEHOLD, PLANS)
_ONE = ("name", "home")  # of which only the newest holds
_TURNING = (LIKES, "health", "pursuits")  # of which a later one may say the opposite
_MOST, _OF_ONE = 14, 3  # lines that a brief may show, and of one topic
_PLANNED_DAYS = 45  # a plan is told until the talk is so much further
_SHORTEST, _LONGEST, _LOOKED_AT = 8, 200, 10_000
_TELLING = 3  # words with content that tell something by themselves
_PLAINLY, _OPENING = 0.3, 16  # what it weighs that a sentence opens with it, and how far that reaches
_TAKEN_BACK, _PASSING = cues.cue("themselves.taken_back"), cues.cue("themselves.passing_time")
_STAYS = cues.cue("themselves.stays")
_AWAY, _NAMING = cues.cue("themselves.away"), cues.cue("themselves.naming")
_RENEWED, _LEFT, _JOB = (cues.cue(f"themselves.{name}") for name in ("renewed", "left", "job"))
# Without an edge before it, which would cost three times as much: an end of another word that is made small
# begins no line of the lists.
_CAPITAL = re.compile(r"(?:I|My|We|Our|You|Every(?:one|body)|People|Friends|Just|Please|Call|Not|No|Got)\b")
_NAME = re.compile(r"\b[A-Z]")
_HINTS = ("planned", HOUSEHOLD)
_TELLING_LISTS = (*_STATED, *_HINTS)


@cache
def _pattern(lists: tuple[str, ...], language: str) -> re.Pattern[str]:
    """One pattern of some lists of a language, each a group by its name."""
    groups = (f"(?P<{name}>{'|'.join(word_lists.lines(f'themselves.{name}', language))})" for name in lists)
    edge = r"\b" if language == "en" else ""
    opens = word_lists.block("themselves.opens", language)
    return re.compile(rf"{edge}(?={opens}{edge})(?:{'|'.join(groups)}){edge}")


def _found(plain: str, lists: tuple[str, ...]) -> re.Match[str] | None:
    """The first that a text has of some lists."""
    thai = None if plain.isascii() else _pattern(lists, "th").search(plain)
    return thai or _pattern(lists, "en").search(plain)


def topics_of(memory: Memory, said: Iterable[Said] | None = None) -> set[str]:
    """What the user tells of themselves in a memory, by what it is about."""
    return {str(quote.topic) for quote in quotes_of(memory, said)}


def quotes_of(memory: Memory, said: Iterable[Said] | None = None) -> Iterator[Memory]:
    """Each sentence of the user's turns that tells something lasting of them, as a memory of its own."""
    for turn, whole, at in said_by_user(memory) if said is None else said:
        text = whole[:_LOOKED_AT]  # behind that a document that somebody pasted tells nothing of them
        may_tell = turn is not None and _found(_plain(text), _TELLING_LISTS)
        sentences = list(sentences_of(text)) if may_tell else []
        for sentence, behind in zip_longest(sentences, sentences[1:], fillvalue=""):
            topic, is_plain = _read(sentence)
            if topic is not None:
                # "I've got a cat now! She's called Biscuit."
                is_named = topic in ("pets", "family") and _NAMING.search(behind)
                salience = min(1.0, memory.salience + _PLAINLY * is_plain)
                told = {"topic": topic, "at": at, "salience": salience}
                told["text"] = f"{sentence} {behind}" if is_named else sentence
                yield replace(memory, **told, turns=(), data={}, tags=(), links=(), category=None)


def holding(quotes: Iterable[Memory]) -> list[Memory]:
    """The quotes to tell, the best first: what a later one replaces is left out, and so are plans of old."""
    said = {fold(quote.text): quote for quote in sorted(quotes, key=lambda quote: (quote.at, quote.id))}
    at_work = [quote for quote in said.values() if quote.topic == WORK]
    rows = [_without_work(quote, at_work) if quote.topic == "name" else quote for quote in said.values()]
    newest = {quote.topic: quote for quote in rows}
    kept = {row.text for row in statements.holding([_statement(quote) for quote in rows])}
    pairs = ((one, later) for place, one in enumerate(at_work) for later in at_work[place + 1 :])
    kept -= {one.text for one, later in pairs if _is_over(one, later)}
    told = [
        told
        for quote in rows
        if quote.text in kept
        and (told := _of_others(quote) if newest[quote.topic] is not quote and quote.topic in _ONE else quote)
        and (quote.topic != PLANS or quote.at >= rows[-1].at - timedelta(days=_PLANNED_DAYS))
    ]
    count: Counter[str | None] = Counter()
    known: set[str] = set()
    chosen = []
    for quote in sorted(profile(told, {}, is_talk=True), key=_place):
        mentioned = _found(_plain(quote.text), (HOUSEHOLD,))
        if quote.topic == HOUSEHOLD and mentioned and mentioned[0] in known:
            continue
        known.update([mentioned[0]] if mentioned else [])
        count[quote.topic] += 1
        if count[quote.topic] <= _OF_ONE:
            chosen.append(quote)
    return chosen[:_MOST]


def is_past(told: Memory, today: date) -> bool:
    """Whether what somebody told of a time is over with it: working nights this week, a wedding in June.

    What begins then, or was already, lasts.
    """
    said = told.at.date()
    day = holds_until(told.text, said) or (None if _STAYS.search(told.text) else coming(told.text, said))
    return day is not None and day < today


def _place(quote: Memory) -> int:
    """Who they are comes first, and who was only mentioned last."""
    return (quote.topic == HOUSEHOLD) - (quote.topic == "name")


def _without_work(quote: Memory, at_work: Sequence[Memory]) -> Memory:
    """What somebody is called, without the job they told of in the same breath and have left."""
    job = _found(_plain(quote.text), (WORK,))
    if job is None or not any(later.at > quote.at and _is_over(quote, later) for later in at_work):
        return quote
    return replace(quote, text=f"{quote.text[: job.start()].rstrip(' ,;–-')} …")


def _is_over(earlier: Memory, later: Memory) -> bool:
    """Whether a job, or a boss, is one that the user had before: there is a new one, or they have left."""
    if _LEFT.search(earlier.text):
        return _JOB.search(later.text) is not None
    said = (_RENEWED.search(later.text) or _LEFT.search(later.text)) if earlier.id != later.id else None
    return said is not None and _is_about(earlier.text, said[said.lastindex or 0])


def _is_about(text: str, named: str) -> bool:
    """Whether a text is about an employer or a boss by name, or about any job."""
    words_of = named.casefold().split()
    is_any = words_of[-1] in ("job", "employer", "company", "firm", "งาน", "ที่ทำงาน", "บริษัท")
    return _JOB.search(text) is not None if is_any else named.casefold() in text.casefold()


def _of_others(quote: Memory) -> Memory | None:
    """What stays true of a quote that no longer holds: who lives with the user is family elsewhere, too."""
    match = _found(_plain(quote.text), ("family", "pets"))
    return replace(quote, text=f"… {quote.text[match.start() :]}", topic=match.lastgroup) if match else None


def _plain(text: str) -> str:
    """A text as the lists are written: "I", and what begins their lines, in small letters."""
    return _CAPITAL.sub(lambda word: word[0].lower(), text.replace("’", "'"))


def _statement(quote: Memory) -> Statement:
    kind = "preference" if quote.topic in _TURNING else "commitment"
    return Statement(kind=kind, text=quote.text, at=quote.at.isoformat(), from_session=quote.id)


def _read(sentence: str) -> tuple[str | None, bool]:
    """What a sentence tells of who says it, None if nothing that lasts; and whether it opens with that."""
    plain = _plain(sentence)
    is_fit = _SHORTEST <= len(plain) <= _LONGEST
    if not is_fit or not (hint := _found(plain, _TELLING_LISTS)) or is_question(plain) or _is_order(sentence):
        return None, False
    match = _found(plain, _STATED)  # what is told comes before what is only mentioned
    hint = match or hint
    topic, is_plain = hint.lastgroup, hint.start() <= _OPENING
    if topic == "name":
        return topic, is_plain
    is_pointing = plain.isascii() and statements.is_pointing(sentence)
    is_named = topic in ("family", "pets") and _NAME.search(hint[0])  # who they are outlasts the day
    if is_pointing or not cues.SECOND_PERSON.isdisjoint(words(plain)):
        return None, False
    if _PASSING.search(plain) and not is_named:
        return None, False
    if topic == LIKES:
        is_courtesy = statements.is_courtesy(plain) or _AWAY.search(plain)
        return (None if is_courtesy or len(content(plain)) < _TELLING - 1 else topic), is_plain
    if match is None:
        is_plan = statements.kind_of(sentence) in ("decision", "commitment")
        is_there = topic == HOUSEHOLD and hint.start() <= 2 * _OPENING
        return (PLANS if is_plan else HOUSEHOLD if is_there else None), False
    is_taken_back = _TAKEN_BACK.search(plain[: match.start()].rstrip())
    is_aside = not is_plain and len(content(plain)) < _TELLING
    return (None if is_taken_back or is_aside else topic), is_plain


def _is_order(sentence: str) -> bool:
    order = by_words(sentence) if may_hold(sentence) else None
    return order is not None and not order[0]
