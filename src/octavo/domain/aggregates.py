"""Averages, feelings and counts over sessions; what was not recorded stays None."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from octavo.domain import cues
from octavo.domain.cores import AggregatedState, EmotionalArc
from octavo.domain.memory import Emotion, Memory
from octavo.domain.patterns import pattern
from octavo.domain.sentences import SessionSource, is_person, split, spoken
from octavo.domain.text import words

Feeling = tuple[str, float]

_STRESS = ("stress", "stress_load", "avg_stress")
_WARMTH = ("warmth", "social_warmth", "avg_warmth")
_NEGATED = pattern(r"\b(not|never|no|isn't|wasn't|aren't|don't|didn't)\b|ไม่", re.IGNORECASE)
_FRAMES = 12
_NEAR = 5


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
        interaction_types=dict(sorted(Counter(map(_interaction_type, counted)).items())),
        semantic_frames=_frames(counted),
        emotion_source=source,
    )


def arc(sessions: Sequence[SessionSource]) -> EmotionalArc:
    """How the first and the last feeling is called, and the strongest where feelings were recorded."""
    feelings, source = feelings_of(sessions)
    rows = [row for row in feelings if row]
    if not rows:
        return EmotionalArc()
    every = [feeling for row in rows for feeling in row]
    top = max(strength for _, strength in every)
    return EmotionalArc(
        start_state=_dominant(rows[0]),
        peak_emotion=_dominant([one for one in every if one[1] == top]) if source == "recorded" else None,
        end_state=_dominant(rows[-1]),
    )


def feelings_of(sessions: Sequence[SessionSource]) -> tuple[list[list[Feeling]], str | None]:
    """The feelings of each session and whether they were recorded with the episodes or stated in words.

    One session's words are a mood, not an arc: stated feelings count from two sessions on.
    """
    for source, feelings_in, fewest in (("recorded", _recorded, 1), ("stated", _stated, 2)):
        rows = [[feeling for ep in session.episodes for feeling in feelings_in(ep)] for session in sessions]
        if sum(map(bool, rows)) >= fewest:
            return rows, source
    return [[] for _ in sessions], None


def feeling_in(episode: Memory, text: str) -> str | None:
    """The word for how something said felt: recorded with its episode if it was, else as said outright."""
    stated = [(label, 1.0) for sentence in split(text) for label in _named_in(sentence)]
    return _dominant(list(_recorded(episode)) or stated)


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
        if is_person(turn.speaker):
            for label in (label for sentence in split(turn.text) for label in _named_in(sentence)):
                yield label, _strength(None, episode)


def _named_in(sentence: str) -> Iterator[str]:
    """The feelings that a speaker names as their own: in English after an I or a we, and not denied."""
    if _NEGATED.search(sentence.replace("can't wait", "")):
        return
    for label, cue in cues.FEELINGS.items():
        named = cue.search(sentence)
        before = words(sentence[: named.start()])[-_NEAR:] if named else []
        if named and (cues.THAI.search(sentence) or not cues.FIRST_PERSON.isdisjoint(before)):
            yield label


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
    for named in (context.get("interaction_mode"), episode.data.get("interaction_type"), episode.category):
        if isinstance(named, str) and named:
            return named
    return "exchange" if len({turn.speaker for turn in episode.turns}) > 1 else "note"


def _frames(episodes: Sequence[Memory]) -> tuple[str, ...]:
    frames = [
        frame
        for episode in episodes
        for data in (episode.data, *(turn.data for turn in episode.turns))
        for frame in _strings(data.get("semantic_frames"))
    ]
    often = Counter(frames)
    return tuple(sorted(often, key=lambda frame: (-often[frame], frame))[:_FRAMES])


def _mapping(data: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = data.get(key)
    return value if isinstance(value, Mapping) else {}


def _strings(value: Any) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []
