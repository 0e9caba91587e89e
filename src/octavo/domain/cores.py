"""What a core and a sphere hold: every field of seed 001, and what we add to it.

Fields of `Ours` are our own; all others are the seed's. A value that is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any, Literal

from msgspec import field

from octavo.domain.records import Ours, Record, read
from octavo.errors import BadInput

Method = Literal["statistical_aggregation", "llm_summarization", "multi_core_synthesis"]

STATISTICAL: Method = "statistical_aggregation"
LLM: Method = "llm_summarization"
SYNTHESIS: Method = "multi_core_synthesis"
HYPOTHESIS = "hypothesis"


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


class Trend(Record, frozen=True, kw_only=True):
    """A theme that is there throughout, new, ended or passing, with its weight in each core."""

    theme: str
    direction: str
    weights: tuple[float, ...]


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
    trends: Ours[tuple[Trend, ...]] = ()
    milestones: Ours[tuple[KeyEvent, ...]] = ()
    changed: Ours[tuple[Changed, ...]] = ()
    statements: Ours[tuple[Statement, ...]] = ()
    traces: Ours[tuple[Trace, ...]] = ()
    people: Ours[tuple[str, ...]] = ()


class SphereMeta(Record, frozen=True, kw_only=True):
    """How a sphere was made."""

    compression_method: Method
    compression_timestamp: str | None = None
    abstraction_level: str | None = "high"
    detail_retention: Ours[float | None] = None
    model: Ours[str | None] = None
    fallback_reason: Ours[str | None] = None


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


def integrity_hash(sources: Iterable[str]) -> str:
    """The SHA-256 over the sorted ids of the sources, one a line."""
    return sha256("\n".join(sorted(set(sources))).encode()).hexdigest()


def is_intact(made: Core | Sphere) -> bool:
    """Whether the hash of a core or sphere fits the sources it lists (one without a hash does)."""
    sources = made.source_cores if isinstance(made, Sphere) else made.source_sessions + made.source_episodes
    return made.integrity_hash is None or made.integrity_hash == integrity_hash(sources)


def core_from_json(data: Mapping[str, Any]) -> Core:
    """Read a core in the seed's shape, or raise with the path of what is wrong."""
    return read(Core, data, "core")


def sphere_from_json(data: Mapping[str, Any]) -> Sphere:
    """Read a sphere in the seed's shape, or raise with the path of what is wrong."""
    return read(Sphere, data, "sphere")


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
