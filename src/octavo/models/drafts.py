"""What a model is asked for: the parts of a core and a sphere that need understanding, every claim with its
sources; and the schemas.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct

from octavo.domain.cores import (
    BehavioralPattern,
    Belief,
    Core,
    EmotionalArc,
    KeyEvent,
    RelationshipEvolution,
    Sphere,
    Trace,
)
from octavo.errors import BadInput

T = TypeVar("T")
_LONGEST, _MOST_SOURCES = 400, 64


class CoreDraft(Struct, frozen=True, kw_only=True):
    """What a model says of eight sessions; of an event its words, feeling and episode count."""

    summary: Annotated[tuple[Trace, ...], Meta(min_length=1, max_length=12)]
    key_events: Annotated[tuple[KeyEvent, ...], Meta(max_length=16)] = ()
    recurring_themes: Annotated[tuple[str, ...], Meta(max_length=8)] = ()
    emotional_arc: EmotionalArc = EmotionalArc()


class SphereDraft(Struct, frozen=True, kw_only=True):
    """What a model says of eight cores."""

    summary: Annotated[tuple[Trace, ...], Meta(min_length=1, max_length=12)]
    beliefs: Annotated[tuple[Belief, ...], Meta(max_length=8)] = ()
    behavioral_patterns: Annotated[tuple[BehavioralPattern, ...], Meta(max_length=8)] = ()
    relationship_evolution: RelationshipEvolution | None = None


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
    """Raise unless every claim cites ids that exist, every text and number is in bounds, the summary too."""
    for text in _texts(msgspec.to_builtins(draft)):
        if not 0 < len(text) <= _LONGEST:
            raise BadInput(f"a text has {len(text)} characters; 1 to {_LONGEST} are allowed")
    names = set(known)
    for cited in _cited(draft):
        if not 0 < len(cited) <= _MOST_SOURCES:
            raise BadInput(f"a claim cites {len(cited)} sources; 1 to {_MOST_SOURCES} are allowed")
        if invented := [name for name in cited if name not in names]:
            shown = ", ".join(repr(name[:40]) for name in dict.fromkeys(invented))
            raise BadInput(f"these sources do not exist: {shown[:200]}")
    length = sum(len(claim.sentence) + 1 for claim in draft.summary) - 1
    if length > limit:
        raise BadInput(f"the summary has {length} characters; at most {limit} are allowed")


def _texts(value: Any) -> Iterator[str]:
    """Every text of JSON values; a number that is no share is refused on the way."""
    match value:
        case str():
            yield value
        case float() | int() if not 0 <= value <= 1:
            raise BadInput(f"{value} is no number between 0 and 1")
        case dict():
            if value.pop("extra", None):
                raise BadInput("`extra` is not asked for")
            yield from (text for item in value.values() for text in _texts(item))
        case list() | tuple():
            yield from (text for item in value for text in _texts(item))


def _cited(draft: Draft) -> list[tuple[str, ...]]:
    claims = [claim.sources for claim in draft.summary]
    if isinstance(draft, CoreDraft):
        return claims + [(event.episode or "",) for event in draft.key_events]
    patterns = [row.evidence for row in draft.behavioral_patterns]
    return claims + [row.evidence for row in draft.beliefs] + patterns
