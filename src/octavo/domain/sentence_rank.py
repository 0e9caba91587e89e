"""Which sentences are worth telling: news, told early, by a person, and not said already.

The weights come from a regression on conversations whose facts were listed before any summary was seen,
rounded; leaving any single one out changes little.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from octavo import words as word_lists
from octavo.domain import cues
from octavo.domain.episodes import recorded_salience
from octavo.domain.memory import Memory, Turn
from octavo.domain.patterns import pattern
from octavo.domain.sentences import (
    Sentence,
    SessionSource,
    calls_of,
    content,
    cosine,
    is_person,
    is_question,
    is_telling,
    is_thin,
    said,
    shorten,
    split,
    uncalled,
)
from octavo.domain.statements import NAME, kind_of
from octavo.domain.text import fold, key_of, words

WEIGHTS = {
    "first_of_session": 0.8, "first_of_turn": 0.2, "last_of_turn": -0.2, "past": 0.5, "news": 0.5, "day": 0.8,
    "name": 0.4, "decision": 0.6, "preference": 0.4, "exclaims": 0.3, "addresses": -0.8, "leans": -0.3,
    "encourages": -0.3, "asks": -0.6, "is_short": -1.0, "is_empty": -0.9, "is_assistant": -1.5,
}  # fmt: skip
IN_RUN = {
    "news": 0.6, "past": 0.3, "name": 0.3, "number": 0.2, "exclaims": 0.2, "encourages": -0.8,
    "is_question": -1.0,
}  # fmt: skip
_MILESTONE = 4.0
_THRIFT, _NOVELTY, _SECOND = 0.8, 0.8, 0.8  # a hundred characters, likeness to what is told, a line more
_LEAST, _LEAST_SECOND = -1.5, -1.6
_SAME = 0.9  # as like as this to something chosen, a sentence says it again
_CANDIDATES = 600
_WINDOW, _SHORT, _JOINED = 130, 30, 120
_DIGIT = pattern(r"\d")
_NUMBER = pattern(rf"\d|\b(?:{'|'.join(word_lists.valued('numbers.counts', 'en'))})\b", re.IGNORECASE)


class Telling:
    """One session as it may be told: its turns, and what its people call each other."""

    def __init__(self, session: SessionSource, milestone: float) -> None:
        self.session, self.milestone, self.turns = session, milestone, list(said(session))
        self.names = calls_of(turn.speaker for _, turn in self.turns)

    def candidates(self) -> list[Sentence]:
        """What may be quoted, with its score; of a milestone turn its most telling run alone."""
        known = frozenset(map(fold, self.names))
        found: dict[str, Sentence] = {}
        is_opened = False
        for number, (episode, turn) in enumerate(self.turns):
            pieces = [uncalled(piece, self.names) for piece in split(turn.text)]
            weight = salience_of(episode, turn) or 0.0
            if pieces and weight > self.milestone:
                text, place = _telling_run(turn.text, pieces)
                bonus = _MILESTONE + 5 * (weight - self.milestone)
                found[f"{number}: {text}"] = self._sentence(number, text, place, bonus)
                continue
            joined, person = _joined(turn.text, pieces, known), is_person(turn.speaker)
            for place, text in enumerate(joined):
                if not (is_question(text) or is_thin(text) or key_of(text) in found):
                    is_news = person and not known.issuperset(content(text)) and not _asks(text)
                    opens, is_opened = is_news and not is_opened, is_opened or is_news
                    marks = {"first_of_session": opens, "last_of_turn": 0 < place == len(joined) - 1}
                    found[key_of(text)] = self._sentence(number, text, place, **marks)
        return list(found.values())

    def statements(self) -> Iterator[Sentence]:
        """Every sentence of a person that decides, commits or tells a preference."""
        for number, (_, turn) in enumerate(self.turns):
            for place, piece in enumerate(split(turn.text) if is_person(turn.speaker) else ()):
                if kind_of(text := uncalled(piece, self.names)):
                    yield self._sentence(number, text, place)

    def _sentence(self, number: int, text: str, place: int, bonus: float = 0.0, **marks: bool) -> Sentence:
        episode, turn = self.turns[number]
        known = {**marks, **_marks(text), "first_of_turn": place == 0, kind_of(text) or "": True}
        known["is_assistant"] = not is_person(turn.speaker)
        return Sentence(
            text=text,
            kind=kind_of(text),
            speaker=turn.speaker or None,
            at=turn.at or episode.at,
            session=self.session.id,
            episode=episode.id,
            turn=number,
            place=place,
            salience=salience_of(episode, turn),
            is_milestone=bonus > 0,
            bag=frozenset(content(text)),
            score=round(_weigh(known, WEIGHTS) - number / max(1, len(self.turns)) + bonus, 6),
        )


def choose(
    candidates: Iterable[Sentence], room: int, cost: int, *, more: int | None = None, spread: bool = True
) -> list[Sentence]:
    """The best that fit into a number of characters, in the order they were said.

    Milestones come first, then, if they are to `spread`, a line of every session before any has two; `cost`
    is what each takes besides its text, `more` what a session's next one takes. Length, likeness to what is
    chosen and lines of its session make a sentence worth less.
    """
    able = sorted(candidates, key=lambda one: (-one.score, one.at, one.turn, one.place))[:_CANDIDATES]
    able = _fitted(able, room, cost)
    likeness = [0.0] * len(able)
    lines: dict[str, int] = {}
    chosen: list[Sentence] = []
    left = dict(enumerate(able))
    while True:
        ranked = []
        for n, one in left.items():
            is_said = likeness[n] > _SAME and not one.is_milestone
            if not is_said and len(one.text) + _frame(one, lines, cost, more) <= room:
                count = lines.get(one.session, 0) if spread else 0
                worth = one.score - _THRIFT * len(one.text) / 100 - _NOVELTY * likeness[n] - _SECOND * count
                if one.is_milestone or worth >= (_LEAST_SECOND if count else _LEAST):
                    ranked.append((one.is_milestone, not count, round(worth, 6), -n))
        if not ranked:
            return in_order(chosen)
        best = left.pop(-max(ranked)[-1])
        room -= len(best.text) + _frame(best, lines, cost, more)
        lines[best.session] = lines.get(best.session, 0) + 1
        chosen.append(best)
        for n, other in left.items():
            likeness[n] = max(likeness[n], cosine(best.bag, other.bag))


def _fitted(candidates: Sequence[Sentence], room: int, cost: int) -> list[Sentence]:
    """The candidates with their milestones cut short, evenly, if not all of them would fit as they are."""
    lengths = [len(one.text) + cost for one in candidates if one.is_milestone]
    if sum(lengths) <= room:
        return list(candidates)
    most = max(_SHORT, room // len(lengths) - cost)
    return [replace(one, text=shorten(one.text, most)) if one.is_milestone else one for one in candidates]


def _frame(one: Sentence, lines: Mapping[str, int], cost: int, more: int | None) -> int:
    return more if more is not None and one.session in lines else cost


def in_order(sentences: Iterable[Sentence]) -> list[Sentence]:
    """Sentences in the order they were said."""
    return sorted(sentences, key=lambda one: (one.at, one.session, one.turn, one.place))


def salience_of(episode: Memory, turn: Turn) -> float | None:
    """How much a turn matters, None if nobody said; an episode's salience is that of its people's turns."""
    if any(one.salience is not None for one in episode.turns):
        return turn.salience
    is_meant = is_person(turn.speaker) or not any(is_person(one.speaker) for one in episode.turns)
    return recorded_salience(episode) if is_meant else None


def verbatim(text: str, first: str, last: str) -> str:
    """The stretch of a text from one of its sentences to another, as it was written."""
    start = text.find(first)
    end = text.find(last, max(start, 0))
    stretch = text[start : end + len(last)] if 0 <= start <= end else ""
    return stretch if stretch and "\n" not in stretch and len(stretch) < 2 * _WINDOW else f"{first} {last}"


def _joined(text: str, pieces: Sequence[str], names: frozenset[str]) -> list[str]:
    """The sentences of a turn; a short first one takes the next along, or falls if it tells nothing."""
    if len(pieces) < 2 or len(pieces[0]) >= _SHORT or any(map(is_question, pieces[:2])):
        return list(pieces)
    first, second, *rest = pieces
    telling = [word for word in words(first) if is_telling(word) and word not in names]
    if is_thin(first) or not (telling or cues.NEWS.search(first)):
        return [second, *rest]
    return [verbatim(text, first, second), *rest] if len(first) + len(second) < _JOINED else list(pieces)


def _telling_run(text: str, pieces: Sequence[str]) -> tuple[str, int]:
    """The run of neighbouring sentences within a window that tells most, and the place of its first."""
    best, chosen, place = -1.0e9, pieces[0], 0
    for start in range(len(pieces)):
        for end in range(start + 1, len(pieces) + 1):
            run = pieces[start:end]
            if len(" ".join(run)) > _WINDOW and len(run) > 1:
                break
            opening = words(run[0])[:1]
            leans = len(run) > 1 and bool(opening) and opening[0] in cues.LEANING_RUN
            worth = sum(1 + _weigh(_marks(one), IN_RUN) for one in run)
            worth -= 2.0 * (leans and not cues.NEWS.search(run[0]))
            if worth > best + 1e-9:
                best, place = worth, start
                chosen = run[0] if len(run) == 1 else verbatim(text, run[0], run[-1])
    return chosen, place


def _marks(text: str) -> dict[str, Any]:
    """What a sentence has that tells by itself how much it is worth."""
    plain, spoken = text.replace("’", "'"), words(text)
    return {
        "past": cues.PAST.search(plain),
        "news": cues.NEWS.search(plain),
        "day": cues.WHEN.search(_DIGIT.sub("", plain)),
        "name": NAME.search(plain),
        "number": _NUMBER.search(plain),
        "exclaims": text.endswith("!") or "!!" in text,
        "addresses": not cues.SECOND_PERSON.isdisjoint(spoken) or cues.ADDRESSED_TH.search(text),
        "leans": spoken[:1] and spoken[0] in cues.DANGLING,
        "encourages": cues.VAGUE.search(plain) or cues.WISH_TH.search(text),
        "asks": _asks(plain),
        "is_question": is_question(text),
        "is_short": len(text) < _SHORT,
        "is_empty": not cues.THAI.search(text) and sum(map(is_telling, set(spoken))) < 2,
    }


def _weigh(marks: Mapping[str, Any], weights: Mapping[str, float]) -> float:
    return sum(weight for name, weight in weights.items() if marks.get(name))


def _asks(text: str) -> bool:
    return bool(cues.REQUEST.search(text))
