"""Moods: how well a memory's feeling goes with that of whoever asks, and what would only weigh on them."""

from __future__ import annotations

from msgspec.structs import replace

from octavo.domain import cues
from octavo.domain.hits import Hit
from octavo.domain.memory import Emotion

NEUTRAL = "neutral"
_UNKNOWN = 0.5  # the resonance of what says nothing of how it felt
_FAMILIES = (
    ("joy", "excitement", "gratitude", "pride"),
    ("calm", "hope"),
    ("worry", "stress"),
    ("sadness",),
    ("anger",),
)
_RELATED = frozenset(frozenset(pair) for pair in ((0, 1), (2, 3), (2, 4), (3, 4)))
_SCORE, _RESONANCE = 0.7, 0.3


def resonance(felt: Emotion | None, mood: Emotion) -> float:
    """How well a feeling goes with a mood: its family counts 0.6, the sign of its valence 0.4."""
    if felt is None or (felt.label is None and felt.valence is None):
        return _UNKNOWN
    return 0.6 * _compatibility(felt.label, mood.label) + 0.4 * _alignment(felt.valence, mood.valence)


def in_mood(hits: list[Hit], mood: Emotion, *, gate: bool) -> tuple[list[Hit], list[str]]:
    """Hits as a mood orders them; with the gate those that weigh on it stay out, each named."""
    kept: list[Hit] = []
    notes: list[str] = []
    for hit in hits:
        if gate and weighs_on(hit.memory.emotion, mood):
            notes.append(f"{hit.memory.id} is left out: it would weigh on the mood")
            continue
        parts = {name: _SCORE * value for name, value in hit.parts.items()}
        parts["mood"] = _RESONANCE * resonance(hit.memory.emotion, mood)
        kept.append(replace(hit, parts=parts, score=_SCORE * hit.score + parts["mood"]))
    return kept, notes


def weighs_on(felt: Emotion | None, mood: Emotion) -> bool:
    """Whether a strongly negative memory would come to somebody in a strongly negative mood."""
    if felt is None or None in (felt.valence, felt.intensity, mood.valence, mood.intensity):
        return False
    is_heavy = (felt.valence or 0.0) < -0.7 and (felt.intensity or 0.0) > 0.8
    return is_heavy and (mood.valence or 0.0) < -0.5 and (mood.intensity or 0.0) > 0.6


def _compatibility(one: str | None, other: str | None) -> float:
    first, second = _family(one), _family(other)
    if first is None or second is None:
        return 0.7
    if first == second:
        return 1.0
    return 0.6 if frozenset((first, second)) in _RELATED else 0.1


def _family(label: str | None) -> int | str | None:
    """The family of a feeling, None if it is neutral or not said; a word nobody knows is one of its own."""
    if label is None or label.casefold() == NEUTRAL:
        return None
    plain = label.casefold()
    known = (
        plain
        if plain in cues.FEELINGS
        else next((n for n, c in cues.FEELINGS.items() if c.search(plain)), "")
    )
    return next((place for place, family in enumerate(_FAMILIES) if known in family), plain)


def _alignment(one: float | None, other: float | None) -> float:
    if one is None or other is None or one * other == 0:
        return 0.5
    return 1.0 if one * other > 0 else 0.0
