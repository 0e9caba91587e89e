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
    first, second = _family(felt.label), _family(mood.label)
    if first is None or second is None:
        family = 0.7
    else:
        related = frozenset((first, second)) in _RELATED
        family = 1.0 if first == second else 0.6 if related else 0.1
    product = (felt.valence or 0.0) * (mood.valence or 0.0)
    return 0.6 * family + 0.4 * (0.5 if product == 0 else float(product > 0))


def in_mood(hits: list[Hit], mood: Emotion, *, gate: bool) -> tuple[list[Hit], list[str]]:
    """Hits as a mood orders them; with the gate those that weigh on it stay out, each named."""
    kept: list[Hit] = []
    notes: list[str] = []
    for hit in hits:
        felt = hit.memory.emotion
        is_heavy = felt is not None and (felt.valence or 0.0) < -0.7 and (felt.intensity or 0.0) > 0.8
        if gate and is_heavy and (mood.valence or 0.0) < -0.5 and (mood.intensity or 0.0) > 0.6:
            notes.append(f"{hit.memory.id} is left out: it would weigh on the mood")
            continue
        parts = {name: _SCORE * value for name, value in hit.parts.items()}
        parts["mood"] = _RESONANCE * resonance(hit.memory.emotion, mood)
        kept.append(replace(hit, parts=parts, score=_SCORE * hit.score + parts["mood"]))
    return kept, notes


def _family(label: str | None) -> int | str | None:
    """The family of a feeling, None if it is neutral or not said; a word nobody knows is one of its own."""
    if label is None or label.casefold() == NEUTRAL:
        return None
    plain = label.casefold()
    named = (name for name, cue in cues.FEELINGS.items() if cue.search(plain))
    known = plain if plain in cues.FEELINGS else next(named, "")
    return next((place for place, family in enumerate(_FAMILIES) if known in family), plain)
