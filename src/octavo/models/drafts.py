"""What a model is asked for: drafts of a core and a sphere whose every claim cites its sources; schemas."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from octavo.domain.cores import Core, Sphere
from octavo.errors import BadInput

Line = Annotated[str, Meta(min_length=1, max_length=400)]
Phrase = Annotated[str, Meta(min_length=1, max_length=200)]
Word = Annotated[str, Meta(min_length=1, max_length=60)]
Share = Annotated[float, Meta(ge=0, le=1)]
Sources = Annotated[tuple[str, ...], Meta(min_length=1, max_length=64)]

T = TypeVar("T")


class Claim(Struct, frozen=True, kw_only=True):
    """One sentence of a summary and the ids it comes from."""

    text: Line
    sources: Sources


class DraftEvent(Struct, frozen=True, kw_only=True):
    """A key event and the id it comes from."""

    event: Phrase
    source: str
    emotion: Word | None = None


class DraftArc(Struct, frozen=True, kw_only=True):
    """The emotional arc."""

    start_state: Word | None = None
    peak_emotion: Word | None = None
    end_state: Word | None = None


class CoreDraft(Struct, frozen=True, kw_only=True):
    """What a model says of eight sessions."""

    summary: Annotated[tuple[Claim, ...], Meta(min_length=1, max_length=12)]
    key_events: Annotated[tuple[DraftEvent, ...], Meta(max_length=16)] = ()
    recurring_themes: Annotated[tuple[Word, ...], Meta(max_length=8)] = ()
    emotional_arc: DraftArc = DraftArc()


class DraftBelief(Struct, frozen=True, kw_only=True):
    """What seems to hold, how sure the model is, and the ids that support it."""

    belief: Line
    confidence: Share
    sources: Sources
    domain: Word | None = None


class DraftPattern(Struct, frozen=True, kw_only=True):
    """A way of acting that recurs, and the ids that show it."""

    pattern: Phrase
    frequency: Literal["high", "medium", "low"]
    sources: Sources
    context: Phrase | None = None


class DraftRelationship(Struct, frozen=True, kw_only=True):
    """How the relationship stands."""

    phase: Word | None = None
    trust_level: Share | None = None
    emotional_intimacy: Share | None = None
    professional_boundary: Share | None = None


class SphereDraft(Struct, frozen=True, kw_only=True):
    """What a model says of eight cores."""

    summary: Annotated[tuple[Claim, ...], Meta(min_length=1, max_length=12)]
    beliefs: Annotated[tuple[DraftBelief, ...], Meta(max_length=8)] = ()
    behavioral_patterns: Annotated[tuple[DraftPattern, ...], Meta(max_length=8)] = ()
    relationship_evolution: DraftRelationship | None = None


Draft = CoreDraft | SphereDraft
_TYPES = {"core": Core, "sphere": Sphere, "core_draft": CoreDraft, "sphere_draft": SphereDraft}


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of `core`, `sphere`, `core_draft` or `sphere_draft`."""
    made = msgspec.json.schema(_TYPES[name])
    for row in made["$defs"].values():
        # In the JSON, fields that we do not know stand in the object itself, not in `extra`.
        row.get("properties", {}).pop("extra", None)
        for value in row.get("properties", {}).values():
            if isinstance(value.get("default"), dict):
                value["default"].pop("extra", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


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
    cited_ids = [cited for claim in draft.summary for cited in claim.sources]
    if isinstance(draft, CoreDraft):
        return cited_ids + [event.source for event in draft.key_events]
    cited_ids += [cited for belief in draft.beliefs for cited in belief.sources]
    return cited_ids + [cited for pattern in draft.behavioral_patterns for cited in pattern.sources]
