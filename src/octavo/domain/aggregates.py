"""Averages, feelings and counts over sessions; what was not recorded stays None."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from octavo.domain import cues
from octavo.domain.cores import AggregatedState, EmotionalArc
from octavo.domain.memory import Emotion, Memory
from octavo.domain.sentences import SessionSource, counts, split, spoken
from octavo.domain.text import words

Feeling = tuple[str, float]

_STRESS = ("stress", "stress_load", "avg_stress")
_WARMTH = ("warmth", "social_warmth", "avg_warmth")
_NEGATED = re.compile(r"\b(not|never|no|isn't|wasn't|aren't|don't|didn't)\b|ไม่", re.IGNORECASE)
_THAI = re.compile("[\u0e00-\u0e7f]")
_FRAMES = 12


def aggregate(sessions: Sequence[SessionSource]) -> AggregatedState:
    """Averages of every recorded state, the feeling that weighs most, and counts of interactions."""
    means = _means(sessions)
    feelings, source = feelings_of(sessions)
    counted = [episode for session in sessions for episode in interactions(session)]
    return AggregatedState(
        avg_stress=_first(means, _STRESS),
        avg_warmth=_first(means, _WARMTH),
        dominant_emotion=_dominant([feeling for row in feelings for feeling in row]),
        interaction_count=len(counted),
        averages=means,
        interaction_types=dict(sorted(counts([_interaction_type(episode) for episode in counted]).items())),
        semantic_frames=_frames(counted),
        emotion_source=source,
    )


def arc(sessions: Sequence[SessionSource]) -> EmotionalArc:
    """How the first, the strongest and the last feeling is called."""
    rows = [row for row in feelings_of(sessions)[0] if row]
    if not rows:
        return EmotionalArc()
    every = [feeling for row in rows for feeling in row]
    top = max(strength for _, strength in every)
    return EmotionalArc(
        start_state=_dominant(rows[0]),
        peak_emotion=_dominant([feeling for feeling in every if feeling[1] == top]),
        end_state=_dominant(rows[-1]),
    )


def feelings_of(sessions: Sequence[SessionSource]) -> tuple[list[list[Feeling]], str | None]:
    """The feelings of each session and whether they were recorded with the episodes or stated in words."""
    for source, found_in in (("recorded", _recorded), ("stated", _stated)):
        rows = [[feeling for ep in session.episodes for feeling in found_in(ep)] for session in sessions]
        if any(rows):
            return rows, source
    return [[] for _ in sessions], None


def emotion_of(episode: Memory) -> str | None:
    """The word for how an episode felt: recorded if it was, else as its speakers said outright."""
    return _dominant(list(_recorded(episode)) or list(_stated(episode)))


def interactions(session: SessionSource) -> list[Memory]:
    """The episodes that count; sensory records and events do not."""
    return [episode for episode in session.episodes if episode.category not in ("sensory", "event")]


def _recorded(episode: Memory) -> Iterator[Feeling]:
    for emotion in (episode.emotion, *(turn.emotion for turn in episode.turns)):
        if isinstance(emotion, Emotion) and emotion.label:
            yield emotion.label, _strength(emotion.intensity, episode)
    for snapshot in _snapshots(episode):
        label = _mapping(snapshot, "EVA_matrix").get("emotion_label")
        if isinstance(label, str):
            yield label, _strength(None, episode)
    for turn in episode.turns:
        inferred = _mapping(turn.data, "affective_inference")
        if isinstance(inferred.get("emotion_signal"), str):
            yield inferred["emotion_signal"], _strength(inferred.get("intensity"), episode)


def _stated(episode: Memory) -> Iterator[Feeling]:
    for turn in spoken(episode):
        for sentence in split(turn.text):
            own = _THAI.search(sentence) or any(word in cues.FIRST_PERSON for word in words(sentence))
            if own and not _NEGATED.search(sentence):
                for label, pattern in cues.FEELINGS.items():
                    if pattern.search(sentence):
                        yield label, _strength(None, episode)


def _strength(intensity: Any, episode: Memory) -> float:
    known = isinstance(intensity, int | float) and not isinstance(intensity, bool)
    return round((intensity if known else 0.5) + 0.5 * episode.salience, 6)


def _dominant(feelings: Sequence[Feeling]) -> str | None:
    total: dict[str, float] = {}
    for label, strength in feelings:
        total[label] = round(total.get(label, 0.0) + strength, 6)
    return max(total, key=lambda label: total[label]) if total else None


def _means(sessions: Iterable[SessionSource]) -> dict[str, float]:
    seen: dict[str, list[float]] = {}
    for session in sessions:
        snapshots = [snapshot for episode in session.episodes for snapshot in _snapshots(episode)]
        for snapshot in (*snapshots, session.states):
            for name, value in _numbers(snapshot):
                seen.setdefault(name, []).append(value)
    return {name: round(sum(values) / len(values), 4) for name, values in sorted(seen.items())}


def _snapshots(episode: Memory) -> list[Mapping[str, Any]]:
    """The states recorded with an episode, under either name the documents use."""
    return [_mapping(episode.data, name) for name in ("state_snapshot", "emotive_snapshot")]


def _numbers(data: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for name, value in data.items():
        if isinstance(value, Mapping):
            yield from _numbers(value)
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield str(name), float(value)


def _first(means: Mapping[str, float], names: Iterable[str]) -> float | None:
    return next((means[name] for name in names if name in means), None)


def _interaction_type(episode: Memory) -> str:
    context = _mapping(episode.data, "situation_context")
    for found in (context.get("interaction_mode"), episode.data.get("interaction_type"), episode.category):
        if isinstance(found, str) and found:
            return found
    return "exchange" if len({turn.speaker for turn in episode.turns}) > 1 else "note"


def _frames(episodes: Sequence[Memory]) -> tuple[str, ...]:
    found = [
        frame
        for episode in episodes
        for data in (episode.data, *(turn.data for turn in episode.turns))
        for frame in _strings(data.get("semantic_frames"))
    ]
    return tuple(frame for frame, _ in sorted(counts(found).items(), key=lambda row: (-row[1], row[0])))[
        :_FRAMES
    ]


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []
