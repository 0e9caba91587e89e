"""What a core and a sphere hold: every field of seed 001, and what we add to it, in and out without loss.

Fields of `Ours` are our own and written only when set, all others are the seed's and always written; what a
record does not know is kept in `extra`. A value that is not known is None, never 0.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Mapping
from datetime import datetime
from functools import cache
from hashlib import sha256
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta, Struct, field

from octavo.domain.records import shape_of
from octavo.errors import BadInput

Method = Literal["statistical_aggregation", "llm_summarization", "multi_core_synthesis"]

STATISTICAL: Method = "statistical_aggregation"
LLM: Method = "llm_summarization"
SYNTHESIS: Method = "multi_core_synthesis"
HYPOTHESIS = "hypothesis"
T = TypeVar("T")
_OURS = Meta(extra={"ours": True})
Ours = Annotated[T, _OURS]


class Record(Struct, frozen=True, kw_only=True):
    """A record that keeps what it does not know."""

    extra: Mapping[str, Any] = field(default_factory=dict)


class Trace(Record, frozen=True, kw_only=True):
    """Where one sentence of a summary comes from: ids of episodes, or of cores."""

    sentence: str
    sources: tuple[str, ...]


class KeyEvent(Record, frozen=True, kw_only=True):
    """Something that happened, how it felt and how much it mattered (ri)."""

    event: str
    emotion: str | None = None
    ri: float | None = None
    speaker: Ours[str | None] = None
    at: Ours[str | None] = None
    from_session: Ours[str | None] = None
    episode: Ours[str | None] = None


class EmotionalArc(Record, frozen=True, kw_only=True):
    """How it felt at the start, at its strongest and at the end."""

    start_state: str | None = None
    peak_emotion: str | None = None
    end_state: str | None = None


class Concept(Record, frozen=True, kw_only=True):
    """A theme with its share of all themes; shares of one core sum to at most 1.

    `first` and `last` are the days on which a person spoke of it. `is_name` is false of what only may be one,
    because it stands where every word has a capital; a sphere counts it where another core is sure.
    """

    theme: str
    weight: float
    sessions: Ours[int | None] = None
    is_name: Ours[bool | None] = None
    first: Ours[str | None] = None
    last: Ours[str | None] = None


class Statement(Record, frozen=True, kw_only=True):
    """A decision, a commitment or a preference in the speaker's own words."""

    kind: str
    text: str
    speaker: str | None = None
    at: str | None = None
    from_session: str | None = None
    episode: str | None = None


class Changed(Record, frozen=True, kw_only=True):
    """A statement that ends an earlier one; without the earlier, it tells both sides itself."""

    later: Statement
    earlier: Statement | None = None


class Digest(Record, frozen=True, kw_only=True):
    """One session in a few quoted lines; empty when nothing was worth keeping."""

    session: str
    at: str
    text: str
    sources: tuple[str, ...] = ()


class CompressedNarrative(Record, frozen=True, kw_only=True):
    """What happened: summary, key events, recurring themes, how it felt; `people` if several spoke."""

    summary: str
    key_events: tuple[KeyEvent, ...] = ()
    recurring_themes: tuple[str, ...] = ()
    emotional_arc: EmotionalArc = EmotionalArc()
    concept_clusters: Ours[tuple[Concept, ...]] = ()
    statements: Ours[tuple[Statement, ...]] = ()
    digests: Ours[tuple[Digest, ...]] = ()
    traces: Ours[tuple[Trace, ...]] = ()
    people: Ours[tuple[str, ...]] = ()


class AggregatedState(Record, frozen=True, kw_only=True):
    """Averages and counts over the sessions; None where nothing was recorded."""

    avg_stress: float | None = None
    avg_warmth: float | None = None
    dominant_emotion: str | None = None
    interaction_count: int | None = None
    averages: Ours[Mapping[str, float]] = field(default_factory=dict)
    interaction_types: Ours[Mapping[str, int]] = field(default_factory=dict)
    semantic_frames: Ours[tuple[str, ...]] = ()
    emotion_source: Ours[str | None] = None


class SalienceAnchor(Record, frozen=True, kw_only=True):
    """A phrase that mattered, verbatim, with its salience (rim) and its session."""

    phrase: str
    rim: float | None = None
    from_session: str | None = None
    episode: Ours[str | None] = None


class CoreMeta(Record, frozen=True, kw_only=True):
    """How a core was made; `detail_retention` is characters kept by characters of the sources."""

    compression_method: Method
    compression_timestamp: str | None = None
    detail_retention: float | None = None
    model: Ours[str | None] = None
    fallback_reason: Ours[str | None] = None
    source_characters: Ours[int | None] = None


class Core(Record, frozen=True, kw_only=True):
    """A summary of eight sessions."""

    core_id: str
    sphere_seq: int
    core_seq: int
    timestamp_start: str | None = None
    timestamp_end: str | None = None
    session_count: int
    source_sessions: tuple[str, ...]
    compressed_narrative: CompressedNarrative
    aggregated_state: AggregatedState = AggregatedState()
    salience_anchors: tuple[SalienceAnchor, ...] = ()
    meta: CoreMeta
    scope: Ours[str | None] = None
    source_episodes: Ours[tuple[str, ...]] = ()
    milestones: Ours[tuple[str, ...]] = ()
    integrity_hash: Ours[str | None] = None


class Belief(Record, frozen=True, kw_only=True):
    """What seems to hold, how sure that is, and from where; a hypothesis until a person approves it."""

    belief: str
    confidence: float
    evidence: tuple[str, ...]
    epistemic_state: str = HYPOTHESIS
    domain: str | None = None


class BehavioralPattern(Record, frozen=True, kw_only=True):
    """Something that recurs: how often (high, medium, low) and where."""

    pattern: str
    frequency: str | None = None
    context: str | None = None
    evidence: Ours[tuple[str, ...]] = ()


class RelationshipEvolution(Record, frozen=True, kw_only=True):
    """How the relationship stands; only a model says this."""

    phase: str | None = None
    trust_level: float | None = None
    emotional_intimacy: float | None = None
    professional_boundary: float | None = None


class AbstractedKnowledge(Record, frozen=True, kw_only=True):
    """What eight cores have in common; `beliefs` carry the evidence of `core_beliefs`."""

    summary: str
    core_beliefs: tuple[str, ...] = ()
    behavioral_patterns: tuple[BehavioralPattern, ...] = ()
    relationship_evolution: RelationshipEvolution | None = None
    beliefs: Ours[tuple[Belief, ...]] = ()
    milestones: Ours[tuple[KeyEvent, ...]] = ()
    changed: Ours[tuple[Changed, ...]] = ()
    statements: Ours[tuple[Statement, ...]] = ()
    traces: Ours[tuple[Trace, ...]] = ()
    people: Ours[tuple[str, ...]] = ()


class SphereMeta(CoreMeta, frozen=True, kw_only=True):
    """How a sphere was made."""

    abstraction_level: str | None = "high"
    detail_retention: Ours[float | None] = None


class Sphere(Record, frozen=True, kw_only=True):
    """A summary of eight cores."""

    sphere_id: str
    sphere_seq: int
    timestamp_start: str | None = None
    timestamp_end: str | None = None
    core_count: int
    session_count: int
    source_cores: tuple[str, ...]
    abstracted_knowledge: AbstractedKnowledge
    meta: SphereMeta
    scope: Ours[str | None] = None
    integrity_hash: Ours[str | None] = None


TYPES: Mapping[str, type[Core | Sphere]] = {"core": Core, "sphere": Sphere}


def integrity_hash(sources: Iterable[str]) -> str:
    """The SHA-256 over the sorted ids of the sources, one a line."""
    return sha256("\n".join(sorted(set(sources))).encode()).hexdigest()


def is_intact(made: Core | Sphere) -> bool:
    """Whether the hash of a core or sphere fits the sources it lists (one without a hash does)."""
    sources = made.source_cores if isinstance(made, Sphere) else made.source_sessions + made.source_episodes
    return made.integrity_hash is None or made.integrity_hash == integrity_hash(sources)


def must_be_quotable(content: Core | Sphere) -> None:
    """Raise unless every line that a page may quote has a time that can be read and, but a digest, a text."""
    rows: list[KeyEvent | Statement | Digest] = []
    if isinstance(content, Core):
        told = content.compressed_narrative
        rows += [*told.key_events, *told.statements, *told.digests]
    else:
        rows += [*content.abstracted_knowledge.milestones, *content.abstracted_knowledge.statements]
    for row in rows:
        if not (row.event if isinstance(row, KeyEvent) else row.text) and not isinstance(row, Digest):
            raise BadInput("a line says nothing")
        datetime.fromisoformat(row.at or "2000-01-01")


def to_json(value: Any) -> Any:
    """A record as plain JSON values."""
    if isinstance(value, Record):
        written = {name: to_json(getattr(value, name)) for name in _hints(type(value))}
        empty = [name for name in _ours(type(value)) if written[name] in (None, [], {})]
        return {name: item for name, item in written.items() if name not in empty} | dict(value.extra)
    if isinstance(value, Mapping):
        return {key: to_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [to_json(item) for item in value]
    return value


def read(kind: type[T], data: Mapping[str, Any]) -> T:
    """Read a record in the seed's shape from plain JSON values, or raise with the path of what is wrong."""
    try:
        return msgspec.convert(_gathered(kind, data), shape_of(kind))
    except msgspec.ValidationError as error:
        raise BadInput(str(error).replace("$", kind.__name__.lower(), 1)) from error


def _gathered(hint: Any, value: Any) -> Any:
    """JSON values with the fields that their records do not know moved into `extra`."""
    if get_origin(hint) is Annotated:
        hint = get_args(hint)[0]
    if get_origin(hint) in (Union, types.UnionType):
        hint = get_args(hint)[0]
    if get_origin(hint) is tuple and isinstance(value, list | tuple):
        return [_gathered(get_args(hint)[0], item) for item in value]
    if isinstance(hint, type) and issubclass(hint, Record) and isinstance(value, Mapping):
        hints = _hints(hint)
        known = {name: _gathered(hints[name], item) for name, item in value.items() if name in hints}
        return {**known, "extra": {name: item for name, item in value.items() if name not in hints}}
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    hints = get_type_hints(kind, include_extras=True)
    return {name: hints[name] for name in kind.__struct_fields__ if name != "extra"}  # type: ignore[attr-defined]


@cache
def _ours(kind: type) -> tuple[str, ...]:
    return tuple(name for name, hint in _hints(kind).items() if _OURS in getattr(hint, "__metadata__", ()))
