"""What recall finds: one turn of an episode, or one other memory, with all that ranking asks of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from functools import cache, lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from octavo import words
from octavo.domain.memory import Kind, Layer, Memory
from octavo.domain.patterns import pattern

# Speakers that are roles, not names: nobody is looked for by them.
ROLES = frozenset({"user", "assistant", "system", "tool", "human", "ai", "agent", "bot"})
USERS = frozenset({"user", "human"})
_MACHINES = frozenset({"assistant", "system", "tool", "ai", "agent", "bot"})

# The words for the one spoken to (in the group) and for the one who speaks. Thai words have no borders:
# thanks and qualities hold the word for "you" too.
_ENGLISH_PERSONS = re.compile(
    r"\b(?:(you(?:r(?:s|self|selves)?)?)|i|me|my(?:self)?|mine|we|us|our(?:s|selves)?)\b"
)
_THAI_PERSONS = re.compile("(?<!ขอบ)(คุณ)(?!ภาพ|ค่า|สมบัติ|ธรรม)|ผม|ฉัน|เรา(?!ะ)")

# A capital inside a sentence, or something quoted.
_NAMES = re.compile(r"(?<=[^.!?…\s] )[A-Z][a-z]+|[\"“][^\"”]{2,}[\"”]")
_SENTENCES, _DIGIT = re.compile(r"(?<=[.!?…])\s+"), re.compile(r"\d")
_DATED, _PAST = (pattern(words.cue(f"search.{name}")) for name in ("dated", "past"))
# With a machine one asks without a mark, too; some only seem to ask; and what it answers may tell nothing.
_ASKS, _TELLS = (pattern(words.cue(f"search.{name}"), re.IGNORECASE) for name in ("asks", "tells"))
_KNOWS_NOT = pattern(words.cue("search.knows_not"), re.IGNORECASE)
ONLY_ASKS = 8  # of what `substance` tells
_SHORT, _SHORTEST = 15, 40  # words, letters

# Where cores and spheres quote people and name what was spoken of, the longest first.
_QUOTED = (
    *(("compressed_narrative", "digests", "text"), ("compressed_narrative", "key_events", "event")),
    *(("compressed_narrative", "statements", "text"), ("compressed_narrative", "concept_clusters", "theme")),
    *(("abstracted_knowledge", "milestones", "event"), ("abstracted_knowledge", "statements", "text")),
    *(
        ("abstracted_knowledge", "beliefs", "belief"),
        ("abstracted_knowledge", "behavioral_patterns", "pattern"),
    ),
)
_FRAMED = ("statistical_aggregation", "multi_core_synthesis")


class Unit(NamedTuple):
    """One indexed thing; `position` is its place among the turns of its session, None outside of one.

    A tuple, for an indexing pass makes them by the thousand.
    """

    memory: str
    rev: int
    turn: int | None
    scope: str
    kind: Kind
    layer: Layer
    text: str
    at: datetime
    valid_from: int
    session: str | None = None
    position: int | None = None
    speaker: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    salience: float = 0.5


class Watermark(Struct, frozen=True, kw_only=True):
    """Up to where something derived follows the ledger: a version and the hash of its header."""

    version: int
    header: str


def units_of(memory: Memory, *, valid_from: int, position: int = 0) -> Iterator[Unit]:
    """The units of a memory; `position` is the place of its first turn among those of its session."""
    id_, rev, scope, kind, layer = memory.id, memory.rev, memory.scope, memory.kind, memory.layer
    session, category, tags, salience = memory.sandbox, memory.category, memory.tags, memory.salience
    if not memory.turns:
        text = searched(memory.text, memory.data)
        yield Unit(
            id_, rev, None, scope, kind, layer, text, memory.at, valid_from, session, None, None,
            category, tags, salience,
        )  # fmt: skip
    for index, turn in enumerate(memory.turns):
        yield Unit(
            id_, rev, index, scope, kind, layer, turn.text, turn.at or memory.at, valid_from, session,
            None if session is None else position + index, turn.speaker, category, tags, salience,
        )  # fmt: skip


def searched(text: str, data: Mapping[str, Any]) -> str:
    """What recall searches of a memory: its text; of a core or sphere what it quotes, without a page's frame.

    The words of a frame ("sessions", "most about") match questions that have nothing to do with it. What a
    model or somebody else told has no frame of ours.
    """
    quotes: dict[str, None] = {}
    for part, rows, key in _QUOTED:
        told = data.get(part)
        for row in told.get(rows) or () if isinstance(told, Mapping) else ():
            line = str(row.get(key, "")) if isinstance(row, Mapping) else ""
            if line and not any(line in longer for longer in quotes):
                quotes[line] = None
    meta = data.get("meta")
    is_framed = isinstance(meta, Mapping) and meta.get("compression_method") in _FRAMED
    return "\n".join(quotes if quotes and is_framed else [text, *quotes])


@lru_cache(maxsize=1024)
def is_person(speaker: str | None) -> bool:
    """Whether a turn was said by a person rather than by a machine."""
    return speaker is None or speaker.casefold() not in _MACHINES


def substance(text: str, speaker: str | None = None) -> int:
    """What tells an answer from small talk: names inside sentences (0 to 3), a number (4), no question (0).

    A short text that only asks, or only says that it heard, has 8. What says when something was has 16, what
    tells of the past 32, what asks something 64. In talk with a machine a question may lack its mark, and
    that the machine does not know counts as one.
    """
    names, lowered = min(3, len(_NAMES.findall(text))), text.lower()
    sentences = [part for part in _SENTENCES.split(text.strip()) if part]
    asking = sum(part.endswith("?") for part in sentences)
    if speaker is not None and speaker.casefold() in ROLES:
        if is_person(speaker):
            asking = sum(map(asks, sentences))
        else:
            asking += sum(_KNOWS_NOT.search(part) is not None for part in sentences)
        asking -= asking and _TELLS.search(text) is not None
    only_asks = text.count(" ") < _SHORT and asking == len(sentences)
    is_empty = only_asks or (len(text) < _SHORTEST and _acknowledgement().fullmatch(lowered))
    told = 16 * bool(_DATED.search(lowered)) | 32 * bool(_PAST.search(lowered)) | 64 * bool(asking)
    return names | (4 if _DIGIT.search(text) else 0) | (8 if is_empty and sentences else 0) | told


def asks(sentence: str) -> bool:
    """Whether a sentence asks something, with or without its mark."""
    return sentence.endswith("?") or _ASKS.search(sentence) is not None


@cache
def _acknowledgement() -> re.Pattern[str]:
    lists = (words.block("search.acknowledgement", language).strip() for language in ("en", "th"))
    return re.compile(rf"(?:(?:{'|'.join(lists)})[\s,.!…]*)+")


def address(text: str) -> float:
    """How far a text is about the one it is said to: the share of "you" among "you", "I" and "we"."""
    lowered = text.lower()
    found: list[str] = []
    if "you" in lowered:
        found += _ENGLISH_PERSONS.findall(lowered)
    if "คุณ" in lowered:
        found += _THAI_PERSONS.findall(lowered)
    return 1 - found.count("") / len(found) if found else 0.0
