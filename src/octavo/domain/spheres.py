"""The deterministic synthesis of a sphere: what recurs, rises and falls over eight cores, without a model.

Beliefs are what people kept saying of themselves in several cores, in their own words: hypotheses, each with
its evidence. How a relationship evolves is left unsaid; only a model can say it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from octavo.domain.compression import Due
from octavo.domain.cores import (
    SYNTHESIS,
    AbstractedKnowledge,
    BehavioralPattern,
    Belief,
    Core,
    Sphere,
    SphereMeta,
    Statement,
    Trace,
    Trend,
    integrity_hash,
)
from octavo.domain.pages import core_page, is_thai, listed, on_day, period, quoted, sphere_page
from octavo.domain.sentence_rank import is_telling
from octavo.domain.sentences import cosine
from octavo.domain.text import key_of, stem, words

_BELIEFS = 8
_PATTERNS = 8
_TRENDS = 12
_ALIKE = 0.3  # two statements this close by the cosine of their words say the same of a person


@dataclass(frozen=True, slots=True, kw_only=True)
class _Said:
    """A statement with the core it stands in."""

    core: str
    place: int
    statement: Statement
    bag: tuple[str, ...]


def summarise_sphere(due: Due, cores: Sequence[Core], *, made_at: datetime) -> Sphere:
    """The sphere of these cores, in their order."""
    thai = is_thai(core.compressed_narrative.summary for core in cores)
    trends = _trends(cores)
    beliefs = _beliefs(cores)
    traces = _summary(cores, trends, beliefs, due.level.summary_length, thai)
    ids = tuple(core.core_id for core in cores)
    sphere = Sphere(
        sphere_id=due.id,
        sphere_seq=due.sequence,
        timestamp_start=cores[0].timestamp_start,
        timestamp_end=cores[-1].timestamp_end,
        core_count=len(cores),
        session_count=sum(core.session_count for core in cores),
        source_cores=ids,
        abstracted_knowledge=AbstractedKnowledge(
            summary="\n".join(trace.sentence for trace in traces),
            core_beliefs=tuple(belief.belief for belief in beliefs),
            behavioral_patterns=_patterns(cores, trends, thai),
            relationship_evolution=None,
            beliefs=beliefs,
            trends=trends,
            traces=traces,
        ),
        meta=SphereMeta(compression_method=SYNTHESIS, compression_timestamp=made_at.isoformat()),
        scope=due.scope,
        integrity_hash=integrity_hash(ids),
    )
    return measured_sphere(sphere, sum(len(core_page(core)) for core in cores))


def measured_sphere(sphere: Sphere, source_characters: int) -> Sphere:
    """The sphere with the share of its cores' characters that its page keeps."""
    kept = min(1.0, round(len(sphere_page(sphere)) / source_characters, 4)) if source_characters else None
    return replace(sphere, meta=replace(sphere.meta, detail_retention=kept))


def _trends(cores: Sequence[Core]) -> tuple[Trend, ...]:
    """Every theme of two or more cores with its weight in each, heaviest first."""
    weights: dict[str, list[float]] = {}
    names: dict[str, str] = {}
    for place, core in enumerate(cores):
        for concept in core.compressed_narrative.concept_clusters:
            key = " ".join(stem(word) for word in key_of(concept.theme).split())
            names.setdefault(key, concept.theme)
            row = weights.setdefault(key, [0.0] * len(cores))
            row[place] = round(row[place] + concept.weight, 4)
    found = [
        Trend(theme=names[key], direction=_direction(row), weights=tuple(row))
        for key, row in weights.items()
        if sum(weight > 0 for weight in row) >= 2
    ]
    found.sort(key=lambda trend: (-sum(trend.weights), trend.theme))
    return tuple(found[:_TRENDS])


def _direction(row: Sequence[float]) -> str:
    half = len(row) // 2
    before, after = sum(row[:half]), sum(row[-half:])
    if after > 1.5 * before:
        return "rising"
    return "falling" if before > 1.5 * after else "steady"


def _patterns(cores: Sequence[Core], trends: Sequence[Trend], thai: bool) -> tuple[BehavioralPattern, ...]:
    found = []
    for trend in trends[:_PATTERNS]:
        holding = [core.core_id for core, weight in zip(cores, trend.weights, strict=True) if weight > 0]
        share = len(holding) / len(cores)
        found.append(
            BehavioralPattern(
                pattern=trend.theme,
                frequency="high" if share >= 0.75 else "medium" if share >= 0.5 else "low",
                context=_context(len(holding), len(cores), trend.direction, thai),
                evidence=tuple(holding),
            )
        )
    return tuple(found)


def _context(holding: int, cores: int, direction: str, thai: bool) -> str:
    if thai:
        how = {"rising": "มากขึ้น", "falling": "น้อยลง", "steady": "สม่ำเสมอ"}[direction]
        return f"{holding} จาก {cores} ช่วง {how}"
    return f"in {holding} of {cores} cores, {direction}"


def _beliefs(cores: Sequence[Core]) -> tuple[Belief, ...]:
    """What the same speaker says of themselves in two or more cores, each in its most central words."""
    groups: list[list[_Said]] = []
    for item in _said(cores):
        near = [group for group in groups if _is_same(group, item)]
        if near:
            max(near, key=lambda group: _closeness(group, item)).append(item)
        else:
            groups.append([item])
    able = [
        group for group in groups if len({item.place for item in group}) >= 2 and len(_evidence(group)) >= 2
    ]
    able.sort(key=lambda group: (-len({item.place for item in group}), -len(group), group[0].place))
    return tuple(_belief(group, len(cores)) for group in able[:_BELIEFS])


def _said(cores: Sequence[Core]) -> list[_Said]:
    return [
        _Said(core=core.core_id, place=place, statement=row, bag=tuple(_topic_words(row.text)))
        for place, core in enumerate(cores)
        for row in core.compressed_narrative.statements
        if row.kind == "preference" and len(row.text) <= 160
    ]


def _topic_words(text: str) -> list[str]:
    return [stem(word) for word in words(text) if is_telling(word)]


def _is_same(group: Sequence[_Said], item: _Said) -> bool:
    return group[0].statement.speaker == item.statement.speaker and _closeness(group, item) >= _ALIKE


def _closeness(group: Sequence[_Said], item: _Said) -> float:
    return max(cosine(other.bag, item.bag) for other in group)


def _evidence(group: Sequence[_Said]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.statement.episode or item.core for item in group))


def _belief(group: Sequence[_Said], cores: int) -> Belief:
    central = max(
        group, key=lambda item: (round(sum(cosine(item.bag, o.bag) for o in group), 6), -item.place)
    )
    places = {item.place for item in group}
    return Belief(
        belief=quoted(central.statement.speaker, central.statement.text),
        # Two cores are a hint, all of them are still no proof: a person decides.
        confidence=round(min(0.7, 0.3 + 0.4 * len(places) / cores), 2),
        evidence=_evidence(group),
        domain=None,
    )


def _summary(
    cores: Sequence[Core], trends: Sequence[Trend], beliefs: Sequence[Belief], length: int, thai: bool
) -> tuple[Trace, ...]:
    """When and how much, what lasted, rose and fell, what people kept saying, and the mark of each core."""
    lines = [_opening(cores, thai), *_movements(cores, trends, thai)]
    lines += [Trace(sentence=belief.belief, sources=belief.evidence) for belief in beliefs[:3]]
    lines += [line for core in cores for line in _mark(core, thai)]
    kept: list[Trace] = []
    for line in {line.sentence: line for line in lines}.values():
        if sum(len(trace.sentence) + 1 for trace in kept) + len(line.sentence) <= length:
            kept.append(line)
    return tuple(kept)


def _opening(cores: Sequence[Core], thai: bool) -> Trace:
    first, last = cores[0].timestamp_start, cores[-1].timestamp_end
    count = sum(core.session_count for core in cores)
    many = f"{count} ครั้ง ใน {len(cores)} ช่วง" if thai else f"{count} sessions in {len(cores)} cores."
    span = ""
    if first and last:
        span = period(datetime.fromisoformat(first), datetime.fromisoformat(last), thai=thai) + ": "
    return Trace(sentence=span + many, sources=tuple(core.core_id for core in cores))


def _movements(cores: Sequence[Core], trends: Sequence[Trend], thai: bool) -> list[Trace]:
    labels = {
        "steady": ("Throughout", "ตลอดช่วง"),
        "rising": ("More and more", "มากขึ้นเรื่อยๆ"),
        "falling": ("Less and less", "น้อยลง"),
    }
    found = []
    for direction, label in labels.items():
        rows = [trend for trend in trends if trend.direction == direction][:4]
        if rows:
            names = listed([trend.theme for trend in rows], thai=thai)
            holding = [
                core.core_id for n, core in enumerate(cores) if any(trend.weights[n] > 0 for trend in rows)
            ]
            end = "" if thai else "."
            found.append(Trace(sentence=f"{label[thai]}: {names}{end}", sources=tuple(holding)))
    return found


def _mark(core: Core, thai: bool) -> list[Trace]:
    """The weightiest event that the core's own summary quotes; the shortest of equals."""
    told = core.compressed_narrative
    able = [event for event in told.key_events if event.at and event.event[1:] in told.summary]
    if not able:
        return []
    event = min(able, key=lambda row: (-(row.ri or 0.0), len(row.event)))
    line = on_day(datetime.fromisoformat(event.at or ""), quoted(event.speaker, event.event), thai=thai)
    return [Trace(sentence=line, sources=(event.episode or core.core_id,))]
