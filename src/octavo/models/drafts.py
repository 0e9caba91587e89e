"""What a model is asked for: drafts of a core and a sphere whose every claim cites its sources."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Literal, TypeVar

import msgspec
from msgspec import Meta

from octavo.errors import BadInput

Line = Annotated[str, Meta(min_length=1, max_length=400)]
Phrase = Annotated[str, Meta(min_length=1, max_length=200)]
Word = Annotated[str, Meta(min_length=1, max_length=60)]
Share = Annotated[float, Meta(ge=0, le=1)]
Sources = Annotated[tuple[str, ...], Meta(min_length=1, max_length=64)]

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Claim:
    """One sentence of a summary and the ids it comes from."""

    text: Line
    sources: Sources


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftEvent:
    """A key event and the id it comes from."""

    event: Phrase
    source: str
    emotion: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftArc:
    """The emotional arc."""

    start_state: Word | None = None
    peak_emotion: Word | None = None
    end_state: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreDraft:
    """What a model says of eight sessions."""

    summary: Annotated[tuple[Claim, ...], Meta(min_length=1, max_length=12)]
    key_events: Annotated[tuple[DraftEvent, ...], Meta(max_length=16)] = ()
    recurring_themes: Annotated[tuple[Word, ...], Meta(max_length=8)] = ()
    emotional_arc: DraftArc = DraftArc()


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftBelief:
    """What seems to hold, how sure the model is, and the ids that support it."""

    belief: Line
    confidence: Share
    sources: Sources
    domain: Word | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftPattern:
    """A way of acting that recurs, and the ids that show it."""

    pattern: Phrase
    frequency: Literal["high", "medium", "low"]
    sources: Sources
    context: Phrase | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftRelationship:
    """How the relationship stands."""

    phase: Word | None = None
    trust_level: Share | None = None
    emotional_intimacy: Share | None = None
    professional_boundary: Share | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SphereDraft:
    """What a model says of eight cores."""

    summary: Annotated[tuple[Claim, ...], Meta(min_length=1, max_length=12)]
    beliefs: Annotated[tuple[DraftBelief, ...], Meta(max_length=8)] = ()
    behavioral_patterns: Annotated[tuple[DraftPattern, ...], Meta(max_length=8)] = ()
    relationship_evolution: DraftRelationship | None = None


Draft = CoreDraft | SphereDraft


def parse(answer: str, kind: type[T]) -> T:
    """Read a draft from a model's answer, or raise with the path of what is wrong.

    Text around the JSON object (a fence, a preamble of thought) is left out.
    """
    start, end = answer.find("{"), answer.rfind("}")
    if start < 0 or end < start:
        raise BadInput("the answer holds no JSON object")
    try:
        return msgspec.json.decode(answer[start : end + 1].encode(), type=kind)
    except msgspec.MsgspecError as error:
        raise BadInput(f"the JSON does not fit the schema: {error}") from error


def check(draft: Draft, known: Iterable[str], limit: int) -> None:
    """Raise unless every cited id exists and the summary keeps to its length."""
    names = set(known)
    invented = [cited for cited in _cited(draft) if cited not in names]
    if invented:
        shown = ", ".join(repr(cited[:40]) for cited in dict.fromkeys(invented))
        raise BadInput(f"these sources do not exist: {shown[:200]}")
    length = sum(len(claim.text) + 1 for claim in draft.summary) - 1
    if length > limit:
        raise BadInput(f"the summary has {length} characters; at most {limit} are allowed")


def _cited(draft: Draft) -> list[str]:
    found = [cited for claim in draft.summary for cited in claim.sources]
    if isinstance(draft, CoreDraft):
        return found + [event.source for event in draft.key_events]
    found += [cited for belief in draft.beliefs for cited in belief.sources]
    return found + [cited for pattern in draft.behavioral_patterns for cited in pattern.sources]
