"""The sentences of a session: who said them where, and whether they say anything."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from math import sqrt
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from octavo.domain import cues
from octavo.domain.memory import Memory, Turn
from octavo.domain.patterns import pattern
from octavo.domain.text import UNSPACED, stem, words

_CODE = pattern(r"```.*?(```|$)", re.DOTALL)
_MASK = pattern(r"\[[a-z][a-z_]*\]")  # what stands for a secret
_MARKS = pattern(r"^\s*([-*•>]|#{1,6}|\d{1,2}[.)])\s+")
_ENDS = pattern(
    rf"(?<=[.!?…])(?<!\.\.\.){cues.UNENDED}\s+|(?:(?<=\.\.\.)|(?<=[.!?…][\"'”’)\]]))\s+(?=[\"'“‘(\[]?[^\sa-z])|(?<=[。！？])|\n+"
)
_ABBREVIATION = pattern(r"\b(mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|no|approx|[a-z])\.$", re.IGNORECASE)
_THAI_ENDS = pattern(r"(?:(?<=ครับ)|(?<=ค่ะ)|(?<=คะ)|(?<=จ้ะ)|(?<=จ้า))\s+")
_LEAD = pattern(rf"^((?:{'|'.join(cues.OPENERS)})\b(\s+\w+)?\s*[,!.…-]+\s+)+", re.IGNORECASE)
_BARE_LEAD = pattern(
    r"^(ok|okay|also|so|and|but|btw|plus)\s+(?=(i|i'm|i'll|i've|we|we're|my|let's)\b)", re.IGNORECASE
)
_UNSPACED = pattern(f"[{UNSPACED}]")
_PLAIN = pattern(r"[A-Za-z0-9]")
_THAI_PIECE = 110
_LONGEST = 200
_TURN = 6_000  # a longer turn is a paste or a document; its beginning tells what it is


class SessionSource(Struct, frozen=True, kw_only=True):
    """One closed session as compression reads it; `states` are the registers it left, by name."""

    id: str
    ordinal: int
    started_at: datetime
    ended_at: datetime
    episodes: tuple[Memory, ...]
    states: Mapping[str, Any] = field(default_factory=dict)


class Sentence(Struct, frozen=True, kw_only=True):
    """What may be quoted, verbatim: a sentence or a run of them, where it was said and how much it tells.

    `kind` is that of the statement it makes, if it makes one.
    """

    text: str
    kind: str | None = None
    speaker: str | None
    at: datetime
    session: str
    episode: str
    turn: int
    place: int = 0
    salience: float | None = None
    is_milestone: bool = False
    bag: frozenset[str] = frozenset()
    score: float = 0.0


def said(session: SessionSource) -> Iterator[tuple[Memory, Turn]]:
    """Every turn of a session with its episode; sensory records are left out."""
    for episode in session.episodes:
        if episode.category != "sensory":
            for turn in spoken(episode):
                yield episode, turn


def spoken(episode: Memory) -> Iterator[Turn]:
    """The turns of an episode, each with its first few thousand characters; a text without turns is one."""
    for turn in episode.turns or (Turn(speaker="", text=episode.text),):
        yield turn if len(turn.text) <= _TURN else replace(turn, text=turn.text[:_TURN])


def prose(text: str) -> str:
    """A text without code, and without what stands for a secret."""
    return _MASK.sub(";", _CODE.sub("\n", text))


def split(text: str) -> list[str]:
    """The sentences of a text without code, list marks and openers such as "Yeah,"."""
    pieces: list[str] = []
    for piece in _ENDS.split(_CODE.sub("\n", text)):
        whole = _MARKS.sub("", piece or "").strip()
        if pieces and whole and len(pieces[-1]) < _LONGEST and _ABBREVIATION.search(pieces[-1]):
            pieces[-1] = f"{pieces[-1]} {whole}"
        elif whole:
            pieces.extend(_clauses(whole) if cues.THAI.search(whole) else [whole])
    return [shorten(_without_lead(piece), _LONGEST) for piece in pieces]


def _without_lead(piece: str) -> str:
    bare = _LEAD.sub("", piece).strip()
    return _BARE_LEAD.sub("", bare) or piece


def shorten(text: str, length: int) -> str:
    """The text, cut at a clause or word if it is longer than asked, with an ellipsis."""
    if len(text) <= length:
        return text
    head = text[: length - 1]
    for mark in (", ", "; ", " – ", " "):
        if head.rfind(mark) > length // 2:
            return head[: head.rfind(mark)].rstrip(" ,;–-") + "…"
    return head + "…"


def content(text: str) -> list[str]:
    """The content words of a text: no stop words, no small talk, English words by their stem."""
    return [stem(word) for word in words(text) if not is_empty(word)]


def is_empty(word: str) -> bool:
    """Whether a word carries no topic."""
    if _UNSPACED.match(word):
        return len(word) < 3
    return word in cues.STOP or word in cues.SMALL_TALK or word.isdigit() or len(word) < 2


def is_thin(text: str) -> bool:
    """Whether a text is nothing but small talk, or a word."""
    if cues.THAI.search(text):
        rest = cues.THAI_SMALL_TALK.sub("", text)
        return len(cues.THAI.findall(rest)) + len(_PLAIN.findall(rest)) < 6
    spoken = words(text)
    return len(spoken) < 2 or (len(spoken) < 3 and all(map(is_empty, spoken)))


def is_telling(word: str) -> bool:
    """Whether a word belongs to some conversations and not to all."""
    return not is_empty(word) and word not in cues.GENERIC


def is_person(speaker: str | None) -> bool:
    """Whether somebody speaks who is no assistant."""
    return not speaker or speaker.casefold() not in cues.ASSISTANTS


def is_question(text: str) -> bool:
    """Whether a sentence asks."""
    bare = text.rstrip(" \"'”’)😊🙂").rstrip()
    return bare.endswith(("?", "？")) or cues.QUESTION_TH.search(bare) is not None


def cosine(one: frozenset[str], other: frozenset[str]) -> float:
    """The cosine of two sets of words."""
    return len(one & other) / sqrt(len(one) * len(other)) if one and other else 0.0


def calls_of(names: Iterable[str]) -> tuple[str, ...]:
    """The names people of a session may call each other by: whole, first, or cut short."""
    calls = {name for speaker in names for name in (speaker, *speaker.split()) if name}
    calls |= {name[:size] for name in calls for size in range(3, len(name)) if name[0].isupper()}
    return tuple(sorted(calls, key=lambda name: (-len(name), name)))


def uncalled(text: str, names: tuple[str, ...]) -> str:
    """The sentence without the name it opens or ends with."""
    for name in names:
        if text.startswith((f"{name}, ", f"{name}! ")) and len(text) > len(name) + 12:
            return text[len(name) + 2 :].lstrip()
        for mark in ".!":
            if text.endswith(f", {name}{mark}"):
                return text[: -len(name) - 3] + mark
    return text


def _clauses(text: str) -> list[str]:
    """Thai clauses, split after a polite particle and at spaces, packed into readable lines."""
    packed: list[str] = []
    for piece in filter(None, (part.strip() for part in _THAI_ENDS.split(text))):
        line = ""
        for clause in piece.split(" "):
            if line and len(line) + len(clause) >= _THAI_PIECE:
                packed.append(line)
                line = clause
            else:
                line = f"{line} {clause}".strip()
        packed.append(line)
    return packed
