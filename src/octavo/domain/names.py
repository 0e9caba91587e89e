"""Who is meant by a name: a speaker by the whole of it or a part, by an alias, or by what others call them.

A name that could mean two people is nobody's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from octavo import words
from octavo.domain.memory import Memory
from octavo.domain.text import STOP_WORDS
from octavo.domain.units import ROLES

ALIAS = "alias"  # the category of a register that says who is meant by a name
_OFTEN = 2  # so often a name must be used for a speaker
_MOSTLY = 0.8  # and for nobody else in more than the rest of its uses
# Somebody spoken to by name: "Hey Kate!", "Thanks, Kate." A greeting must be there, or any word could be one.
_CALLED = re.compile(
    r"\b(?:[Hh]ey|[Hh]i|[Hh]ello|[Tt]hanks|[Tt]hank you|[Gg]ood (?:morning|evening|night)|[Bb]ye|[Dd]ear)"
    r"[, ]+(?P<name>[A-Z][^\W\d_]+)\s*[,!.?…]"
    # In Thai a title must be there, for names have no capitals, and what closes a sentence goes.
    r"|(?:สวัสดี|หวัดดี|ขอบคุณ|ขอบใจ|ลาก่อน)(?:ครับ|ค่ะ|คะ|จ้า|จ้ะ|จ๊ะ|นะ|มาก|\s)*(?:คุณ|พี่|น้อง)"
    r"(?P<thai>[\u0e01-\u0e4e]{2,20}?)(?:นะ|ครับ|ค่ะ|คะ|จ้า|จ้ะ|จ๊ะ)*(?=[\s,!.?…]|$)"
)
# What greetings begin with: looking for the whole of one costs five times more, and so would a group in it.
_GREETING = re.compile(
    "Hey[, ]|hey[, ]|Hi[, ]|hi[, ]|Hello|hello|Thank|thank|Good|good|Bye|bye|Dear|dear|สวัสดี|หวัดดี|ขอบ|ลาก่อน"
)
_TITLES = words.listed("search.titles")
_PART = re.compile(r"[^\W_][\w'’\u0e31\u0e34-\u0e3a\u0e47-\u0e4e-]*")
_NOBODY = STOP_WORDS | words.listed("search.nobody")


def called_in(memory: Memory) -> Iterator[tuple[str, str]]:
    """The names that speakers are called by in an episode of two, each with who is spoken to."""
    speakers = list(dict.fromkeys(turn.speaker for turn in memory.turns))
    if len(speakers) != 2:
        return
    named = [speaker for speaker in speakers if speaker.casefold() not in ROLES]
    for turn in memory.turns if named else ():
        other = speakers[1 - speakers.index(turn.speaker)]
        is_called = other in named and _GREETING.search(turn.text)
        for match in _CALLED.finditer(turn.text) if is_called else ():
            name = match["name"] or match["thai"]
            if name.casefold() not in _NOBODY:
                yield name, other


def aliases_in(memories: Iterable[Memory]) -> dict[str, str]:
    """The aliases that live registers hold: another name, and whom it means."""
    given = [memory.data for memory in memories if memory.category == ALIAS and not memory.gone]
    return {str(data["name"]): str(data["means"]) for data in given if {"name", "means"} <= set(data)}


def agreed(called: Iterable[tuple[str, str, int]]) -> dict[str, str]:
    """Of names, who was called by them and how often: those that nearly always mean the same speaker."""
    uses: dict[str, Counter[str]] = {}
    for name, speaker, count in called:
        uses.setdefault(name, Counter())[speaker] += count
    meant = {}
    for name, speakers in uses.items():
        (speaker, count), *_ = speakers.most_common(1)
        if count >= _OFTEN and count >= _MOSTLY * speakers.total():
            meant[name] = speaker
    return meant


def meanings(
    speakers: Iterable[str], aliases: Mapping[str, str] | None = None, called: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The speaker that each name means; what could mean two of them means nobody."""
    whole = {speaker: speaker for speaker in speakers}
    candidates: dict[str, set[str]] = {}
    for speaker in whole:
        for part in _parts(speaker):
            if len(part) > 1 and part.casefold() not in STOP_WORDS | _TITLES and part != speaker:
                candidates.setdefault(part, set()).add(speaker)
    for name, speaker in (called or {}).items():
        if speaker in whole:
            candidates.setdefault(name, set()).add(speaker)
    meant = {name: next(iter(who)) for name, who in candidates.items() if len(who) == 1 and name not in whole}
    known = whole | meant
    said = {name: known[who] for name, who in (aliases or {}).items() if who in known}
    return {**meant, **said, **whole}


def _parts(speaker: str) -> Iterator[str]:
    """The parts of a name that people go by; not particles, nor Thai surnames, which are words too."""
    called = ""
    for match in _PART.finditer(speaker):
        part, is_thai = match[0], match[0][0] >= "\u0e00"
        is_nickname = speaker[: match.start()].endswith(("(", '"', "“"))
        if not part[0].islower() and not (is_thai and called and not is_nickname):
            yield part
            called = called or ("" if part in _TITLES else part)
