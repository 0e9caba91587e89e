"""What a core and a sphere hold: every field of seed 001, and what we add to it.

Fields made by `added` are ours; all others are the seed's. A value that is not known is None, never 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal

from octavo.domain.records import added, read, unknown

Method = Literal["statistical_aggregation", "llm_summarization", "multi_core_synthesis"]

STATISTICAL: Method = "statistical_aggregation"
LLM: Method = "llm_summarization"
SYNTHESIS: Method = "multi_core_synthesis"
HYPOTHESIS = "hypothesis"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Where one sentence of a summary comes from: ids of episodes, or of cores."""

    sentence: str
    sources: tuple[str, ...]
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyEvent:
    """Something that happened, how it felt and how much it mattered (ri)."""

    event: str
    emotion: str | None = None
    ri: float | None = None
    speaker: str | None = added()
    at: str | None = added()
    from_session: str | None = added()
    episode: str | None = added()
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class EmotionalArc:
    """How it felt at the start, at its strongest and at the end."""

    start_state: str | None = None
    peak_emotion: str | None = None
    end_state: str | None = None
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Concept:
    """A recurring theme with its share of all themes; shares of one core sum to at most 1."""

    theme: str
    weight: float
    sessions: int | None = added()
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """A decision, a commitment or a preference in the speaker's own words."""

    kind: str
    text: str
    speaker: str | None = None
    at: str | None = None
    from_session: str | None = None
    episode: str | None = None
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """One session in a few quoted lines; empty when nothing was worth keeping."""

    session: str
    at: str
    text: str
    sources: tuple[str, ...] = ()
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class CompressedNarrative:
    """What happened: summary, key events, recurring themes, how it felt."""

    summary: str
    key_events: tuple[KeyEvent, ...] = ()
    recurring_themes: tuple[str, ...] = ()
    emotional_arc: EmotionalArc = EmotionalArc()
    concept_clusters: tuple[Concept, ...] = added(())
    statements: tuple[Statement, ...] = added(())
    digests: tuple[Digest, ...] = added(())
    traces: tuple[Trace, ...] = added(())
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AggregatedState:
    """Averages and counts over the sessions; None where nothing was recorded."""

    avg_stress: float | None = None
    avg_warmth: float | None = None
    dominant_emotion: str | None = None
    interaction_count: int | None = None
    averages: Mapping[str, float] = added({})
    interaction_types: Mapping[str, int] = added({})
    semantic_frames: tuple[str, ...] = added(())
    emotion_source: str | None = added()
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SalienceAnchor:
    """A phrase that mattered, verbatim, with its salience (rim) and its session."""

    phrase: str
    rim: float | None = None
    from_session: str | None = None
    episode: str | None = added()
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class CoreMeta:
    """How a core was made; `detail_retention` is characters kept by characters of the sources."""

    compression_method: Method
    compression_timestamp: str | None = None
    detail_retention: float | None = None
    model: str | None = added()
    fallback_reason: str | None = added()
    source_characters: int | None = added()
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Core:
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
    scope: str | None = added()
    source_episodes: tuple[str, ...] = added(())
    milestones: tuple[str, ...] = added(())
    integrity_hash: str | None = added()
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Belief:
    """What seems to hold, how sure that is, and from where; a hypothesis until a person approves it."""

    belief: str
    confidence: float
    evidence: tuple[str, ...]
    epistemic_state: str = HYPOTHESIS
    domain: str | None = None
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class BehavioralPattern:
    """Something that recurs: how often (high, medium, low) and where."""

    pattern: str
    frequency: str | None = None
    context: str | None = None
    evidence: tuple[str, ...] = added(())
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Trend:
    """A theme that rises, falls or stays over the cores, with its weight in each."""

    theme: str
    direction: str
    weights: tuple[float, ...]
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class RelationshipEvolution:
    """How the relationship stands; only a model says this."""

    phase: str | None = None
    trust_level: float | None = None
    emotional_intimacy: float | None = None
    professional_boundary: float | None = None
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class AbstractedKnowledge:
    """What eight cores have in common; `beliefs` carry the evidence of `core_beliefs`."""

    summary: str
    core_beliefs: tuple[str, ...] = ()
    behavioral_patterns: tuple[BehavioralPattern, ...] = ()
    relationship_evolution: RelationshipEvolution | None = None
    beliefs: tuple[Belief, ...] = added(())
    trends: tuple[Trend, ...] = added(())
    traces: tuple[Trace, ...] = added(())
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class SphereMeta:
    """How a sphere was made."""

    compression_method: Method
    compression_timestamp: str | None = None
    abstraction_level: str | None = "high"
    detail_retention: float | None = added()
    model: str | None = added()
    fallback_reason: str | None = added()
    extra: Mapping[str, Any] = unknown()


@dataclass(frozen=True, slots=True, kw_only=True)
class Sphere:
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
    scope: str | None = added()
    integrity_hash: str | None = added()
    extra: Mapping[str, Any] = unknown()


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
