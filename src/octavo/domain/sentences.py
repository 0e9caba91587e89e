"""The sentences of a session, each with its speaker, its episode and what it is good for."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from math import sqrt
from typing import Any

from octavo.domain import cues
from octavo.domain.memory import Memory, Turn
from octavo.domain.text import UNSPACED, key_of, stem, words

_CODE = re.compile(r"```.*?(```|$)", re.DOTALL)
_MARKS = re.compile(r"^\s*([-*•>]|#{1,6}|\d{1,2}[.)])\s+")
_ENDS = re.compile(
    r"(?<=[.!?…])(?<!\.\.\.)\s+|(?:(?<=\.\.\.)|(?<=[.!?…][\"'”’)\]]))\s+(?=[\"'“‘(\[]?[^\sa-z])|(?<=[。！？])|\n+"
)
_ABBREVIATION = re.compile(r"\b(mr|mrs|ms|dr|prof|st|vs|etc|e\.g|i\.e|no|approx|[a-z])\.$", re.IGNORECASE)
_THAI = re.compile("[\u0e00-\u0e7f]")
_THAI_ENDS = re.compile(r"(?:(?<=ครับ)|(?<=ค่ะ)|(?<=คะ)|(?<=จ้ะ)|(?<=จ้า))\s+")
_LEAD = re.compile(rf"^((?:{'|'.join(cues.OPENERS)})\b(\s+\w+)?\s*[,!.…-]+\s+)+", re.IGNORECASE)
_BARE_LEAD = re.compile(
    r"^(ok|okay|also|so|and|but|btw|plus)\s+(?=(i|i'm|i'll|i've|we|we're|my|let's)\b)", re.IGNORECASE
)
_UNSPACED = re.compile(f"[{UNSPACED}]")
_THAI_PIECE = 110
_LONGEST = 200
_TURN = 6_000  # a longer turn is a paste or a document; its beginning tells what it is


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionSource:
    """One closed session as compression reads it; `states` are the registers it left, by name."""

    id: str
    ordinal: int
    started_at: datetime
    ended_at: datetime
    episodes: tuple[Memory, ...]
    states: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """One sentence, verbatim, with where it was said and the bag of its content words."""

    text: str
    speaker: str | None
    at: datetime
    session: str
    episode: str
    turn: int
    salience: float
    bag: tuple[str, ...]
    kind: str | None = None


def told(session: SessionSource) -> list[Sentence]:
    """The sentences of a session that say something, in order, each text once."""
    found: dict[str, Sentence] = {}
    calls = _calls(turn.speaker for _, turn in said(session))
    for number, (episode, turn) in enumerate(said(session)):
        for text in (_called_by(piece, calls) for piece in split(turn.text)):
            bag = tuple(content(text))
            if says_something(text, bag):
                found.setdefault(key_of(text), _sentence(text, bag, number, session, episode, turn))
    return list(found.values())


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


def split(text: str) -> list[str]:
    """The sentences of a text without code, list marks and openers such as "Yeah,"."""
    pieces: list[str] = []
    for piece in _ENDS.split(_CODE.sub("\n", text)):
        whole = _MARKS.sub("", piece or "").strip()
        if pieces and whole and len(pieces[-1]) < _LONGEST and _ABBREVIATION.search(pieces[-1]):
            pieces[-1] = f"{pieces[-1]} {whole}"
        elif whole:
            pieces.extend(_clauses(whole) if _THAI.search(whole) else [whole])
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


def says_something(text: str, bag: Sequence[str]) -> bool:
    """Whether a sentence is neither a question, nor a greeting, nor too thin to stand alone."""
    if is_question(text):
        return False
    if _THAI.search(text):
        rest = cues.THAI_SMALL_TALK.sub("", text)
        return len(_THAI.findall(rest)) + len(re.findall(r"[A-Za-z0-9]", rest)) >= 8
    # One content word is enough where somebody decides, commits or prefers: "let's go with SQLite".
    return len(set(bag)) >= (1 if kind_of(text) else 2)


def kind_of(text: str) -> str | None:
    """Whether a sentence decides, commits or tells a preference."""
    if cues.DECISION.search(text):
        return "decision"
    if cues.COMMITMENT.search(text):
        return "commitment"
    return "preference" if cues.PREFERENCE.search(text) else None


def is_question(text: str) -> bool:
    """Whether a sentence asks."""
    bare = text.rstrip(" \"'”’)😊🙂").rstrip()
    return bare.endswith(("?", "？")) or cues.QUESTION_TH.search(bare) is not None


def topics(turns: Sequence[Sequence[str]], threshold: float = 0.15) -> list[int]:
    """The topic number of each turn; a new topic shares little with the two turns before it."""
    numbers: list[int] = []
    for index, bag in enumerate(turns):
        before = [word for earlier in turns[max(0, index - 2) : index] for word in earlier]
        is_new = bool(bag) and bool(before) and cosine(before, bag) < threshold
        numbers.append((numbers[-1] if numbers else 0) + is_new)
    return numbers


def cosine(one: Sequence[str], other: Sequence[str]) -> float:
    """The cosine of two bags of words."""
    left, right = counts(one), counts(other)
    shared = sum(count * right[word] for word, count in left.items() if word in right)
    if not shared:
        return 0.0
    return shared / sqrt(sum(n * n for n in left.values()) * sum(n * n for n in right.values()))


def counts(bag: Sequence[str]) -> dict[str, int]:
    """How often each word occurs, in order of first occurrence."""
    found: dict[str, int] = {}
    for word in bag:
        found[word] = found.get(word, 0) + 1
    return found


def _calls(names: Iterable[str]) -> tuple[str, ...]:
    """The names people of a session may call each other by: whole, first, or cut short."""
    found = {name for speaker in names for name in (speaker, *speaker.split()) if name}
    found |= {name[:size] for name in found for size in range(3, len(name)) if name[0].isupper()}
    return tuple(sorted(found, key=lambda name: (-len(name), name)))


def _called_by(text: str, names: tuple[str, ...]) -> str:
    """The sentence without the name it opens or ends with."""
    for name in names:
        if text.startswith((f"{name}, ", f"{name}! ")) and len(text) > len(name) + 12:
            return text[len(name) + 2 :].lstrip()
        for mark in ".!":
            if text.endswith(f", {name}{mark}"):
                return text[: -len(name) - 3] + mark
    return text


def _sentence(
    text: str, bag: tuple[str, ...], number: int, session: SessionSource, episode: Memory, turn: Turn
) -> Sentence:
    return Sentence(
        text=text,
        speaker=turn.speaker or None,
        at=turn.at or episode.at,
        session=session.id,
        episode=episode.id,
        turn=number,
        salience=episode.salience if turn.salience is None else max(turn.salience, episode.salience),
        bag=bag,
        kind=kind_of(text),
    )


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
