"""The deterministic synthesis of a sphere: what stayed, came, ended and changed over eight cores.

Beliefs are what people kept saying of themselves in several cores, in their own words: hypotheses, each with
its evidence. How a relationship evolves is left unsaid; only a model can say it.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from octavo.domain import pages
from octavo.domain.compression import Due
from octavo.domain.cores import (
    SYNTHESIS,
    AbstractedKnowledge,
    BehavioralPattern,
    Belief,
    Changed,
    Concept,
    Core,
    KeyEvent,
    Sphere,
    SphereMeta,
    Statement,
    Trace,
    Trend,
    integrity_hash,
)
from octavo.domain.sentences import content, cosine, is_telling
from octavo.domain.statements import changes, holding
from octavo.domain.text import fold, stem, words
from octavo.domain.themes import is_titled
from octavo.domain.units import ROLES

_BELIEFS, _PATTERNS, _TRENDS = 8, 8, 24
_MILESTONES = 2  # of a core
_CHANGED, _HOLDING, _DECIDED = 5, 6, 8
_NAMED = 5
_ALIKE = 0.3  # two statements this close by the words they share say the same of a person


# What people spoke of over the cores: its theme, its concept in each core that has one, by the core's place,
# these places, and whether it is there throughout, new, ended or passing.
_Thread = tuple[str, list[tuple[int, Concept]], list[int], str]


def summarise_sphere(due: Due, cores: Sequence[Core], *, made_at: datetime) -> Sphere:
    """The sphere of these cores, in their order."""
    told = [core.compressed_narrative for core in cores]
    language = pages.language_of(event.event for one in told for event in one.key_events)
    threads = _threads(cores)
    recurring = [thread for thread in threads if len(thread[2]) >= 2]
    said = sorted((row for one in told for row in one.statements), key=lambda row: row.at or "")
    beliefs = _beliefs(cores, {row.text for row in holding(said)})
    milestones = tuple(event for core in cores for event in _milestones(core))
    opening = Trace(
        sentence=_opening(cores, threads, language), sources=tuple(core.core_id for core in cores)
    )
    people = tuple(dict.fromkeys(name for one in told for name in one.people))
    traces = _summary(opening, milestones, people, due.level.summary_length, language)
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
            behavioral_patterns=tuple(_pattern(thread, cores) for thread in recurring[:_PATTERNS]),
            relationship_evolution=None,
            beliefs=beliefs,
            trends=tuple(_trend(thread, len(cores)) for thread in threads[:_TRENDS] if thread in recurring),
            milestones=milestones,
            changed=tuple(
                {late.text: Changed(earlier=early, later=late) for early, late in changes(said)}.values()
            )[:_CHANGED],
            statements=_kept(said, milestones, beliefs),
            traces=traces,
            people=people,
        ),
        meta=SphereMeta(compression_method=SYNTHESIS, compression_timestamp=made_at.isoformat()),
        scope=due.scope,
        integrity_hash=integrity_hash(ids),
    )
    return pages.measured(sphere, sum(len(pages.core_page(core)) for core in cores))


def _threads(cores: Sequence[Core]) -> list[_Thread]:
    """What people spoke of, heaviest first; a doubtful name counts where another core is sure of it."""
    themes: dict[str, str] = {}
    concepts: dict[str, list[tuple[int, Concept]]] = {}
    for place, core in enumerate(cores):
        for concept in core.compressed_narrative.concept_clusters:
            if concept.first and concept.last:
                theme = _short_name(concept)
                key = " ".join(stem(part) for part in fold(theme).split())
                themes.setdefault(key, theme)
                concepts.setdefault(key, []).append((place, concept))
    sure = [key for key, rows in concepts.items() if any(row.is_name is not False for _, row in rows)]
    sure.sort(key=lambda key: (-round(sum(row.weight for _, row in concepts[key]), 4), themes[key]))
    threads = []
    for key in sure:
        places = sorted({place for place, _ in concepts[key]})
        is_name = any(row.is_name for _, row in concepts[key])
        threads.append((themes[key], concepts[key], places, _direction(places, is_name, len(cores))))
    return threads


def _short_name(concept: Concept) -> str:
    """A full name by its first: people say that one."""
    parts = concept.theme.split()
    return parts[0] if concept.is_name and len(parts) == 2 and not is_titled(concept.theme) else concept.theme


def _direction(places: Sequence[int], is_name: bool, cores: int) -> str:
    """Throughout (three quarters of the cores), new (a name that came and stayed), ended, or passing."""
    if len(places) >= 0.75 * cores:
        return "throughout"
    if is_name and len(places) >= 3:
        if places[0] >= 2 and len(places) >= 0.6 * (cores - places[0]) and places[-1] >= cores - 2:
            return "new"
        if places[-1] <= cores - 3:
            return "ended"
    return "passing"


def _trend(thread: _Thread, cores: int) -> Trend:
    theme, concepts, _, direction = thread
    weights = [0.0] * cores
    for place, concept in concepts:
        weights[place] = round(weights[place] + concept.weight, 4)
    return Trend(theme=theme, direction=direction, weights=tuple(weights))


def _opening(cores: Sequence[Core], threads: Sequence[_Thread], language: str) -> str:
    """When and how much, what was there throughout, what is new and what was last mentioned when."""
    first, last = cores[0].timestamp_start, cores[-1].timestamp_end
    span = ""
    if first and last:
        span = pages.period(datetime.fromisoformat(first), datetime.fromisoformat(last), language)
    count = sum(core.session_count for core in cores)
    opening = pages.phrase("sphere", language, span=span, count=count, cores=len(cores))
    for direction in ("throughout", "new", "ended"):
        rows = [thread for thread in threads if thread[-1] == direction][:_NAMED]
        names = [_since(thread, language) for thread in rows]
        opening += pages.phrase(direction, language, names=pages.listed(names, language)) if names else ""
    return opening


def _since(thread: _Thread, language: str) -> str:
    theme, concepts, _, direction = thread
    if direction == "throughout":
        return theme
    days = [date.fromisoformat(day) for _, row in concepts for day in (row.first, row.last) if day]
    if direction == "new":
        return pages.phrase("since", language, name=theme, day=pages.dated(min(days), language))
    return f"{theme} ({pages.dated(max(days), language)})"


def _milestones(core: Core) -> list[KeyEvent]:
    """The weightiest milestones of a core in order; without any, the line of its summary that tells most."""
    told = core.compressed_narrative
    events = [event for event in told.key_events if event.at]
    marked = [event for event in events if event.episode in core.milestones]
    marked = sorted(marked, key=lambda event: -(event.ri or 0.0))[:_MILESTONES]
    if not marked:
        able = [event for event in events if event.event[1:] in told.summary] or events
        marked = sorted(able, key=lambda event: -_telling(event.event))[:1]
    return sorted(marked, key=lambda event: event.at or "")


def _kept(
    said: Sequence[Statement], milestones: Sequence[KeyEvent], beliefs: Sequence[Belief]
) -> tuple[Statement, ...]:
    """What still holds and what was decided, as far as nothing else on the page says it."""
    shown = " ".join([event.event for event in milestones] + [belief.belief for belief in beliefs])
    changed = {side.text for pair in changes(said) for side in pair if side}
    able = [row for row in holding(said) if row.text not in changed and row.text[1:] not in shown]
    rows: list[Statement] = []
    for kind, most in (("preference", _HOLDING), ("decision", _DECIDED)):
        telling = sorted(
            (row for row in able if row.kind == kind),
            key=lambda row: (-min(6, _telling(row.text)), row.at or ""),
        )
        rows += sorted(telling[:most], key=lambda row: row.at or "")
    return tuple(rows)


def _telling(text: str) -> int:
    return len(set(filter(is_telling, words(text))))


def _summary(
    opening: Trace, milestones: Sequence[KeyEvent], people: Sequence[str], length: int, language: str
) -> tuple[Trace, ...]:
    """The opening and as many milestones as there is room for, the weightiest first, in order."""
    room = length - len(opening.sentence)
    lines: list[tuple[str, Trace]] = []
    for event in sorted(milestones, key=lambda event: (-(event.ri or 0.0), len(event.event))):
        line = pages.told(event, people, language)
        if len(line) + 1 <= room:
            room -= len(line) + 1
            lines.append((event.at or "", Trace(sentence=line, sources=(event.episode or "",))))
    kept = {trace.sentence: trace for _, trace in sorted(lines, key=lambda pair: pair[0])}
    return (opening, *kept.values())


def _pattern(thread: _Thread, cores: Sequence[Core]) -> BehavioralPattern:
    theme, _, places, _ = thread
    share = len(places) / len(cores)
    return BehavioralPattern(
        pattern=theme,
        frequency="high" if share >= 0.75 else "medium" if share >= 0.5 else "low",
        context=f"{len(places)}/{len(cores)} cores",
        evidence=tuple(cores[place].core_id for place in places),
    )


_Said = tuple[int, Core, Statement, frozenset[str]]


def _beliefs(cores: Sequence[Core], still: set[str]) -> tuple[Belief, ...]:
    """What the same speaker says of themselves in two or more cores, each in its most central words."""
    groups: list[list[_Said]] = []
    for place, core in enumerate(cores):
        for row in core.compressed_narrative.statements:
            if row.kind == "preference" and row.text in still:
                _grouped(groups, (place, core, row, frozenset(filter(is_telling, content(row.text)))))
    able = [
        group for group in groups if len({place for place, *_ in group}) >= 2 and len(_evidence(group)) >= 2
    ]
    able.sort(key=lambda group: (-len({place for place, *_ in group}), -len(group), group[0][0]))
    return tuple(_belief(group, len(cores)) for group in able[:_BELIEFS])


def _grouped(groups: list[list[_Said]], item: _Said) -> None:
    def closeness(group: list[_Said]) -> float:
        is_same = group[0][2].speaker == item[2].speaker
        return max(cosine(other[3], item[3]) for other in group) if is_same else 0.0

    nearest = max(groups, key=closeness, default=None)
    if nearest is not None and closeness(nearest) >= _ALIKE:
        nearest.append(item)
    else:
        groups.append([item])


def _evidence(group: Sequence[_Said]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(row.episode or core.core_id for _, core, row, _ in group))


def _belief(group: Sequence[_Said], cores: int) -> Belief:
    def centrality(item: _Said) -> tuple[float, int]:
        return round(sum(cosine(item[3], other[3]) for other in group), 6), -item[0]

    row = max(group, key=centrality)[2]
    share = len({place for place, *_ in group}) / cores
    return Belief(
        belief=pages.quoted(row.speaker if row.speaker not in ROLES else None, row.text),
        # Two cores are a hint, all of them are still no proof: a person decides.
        confidence=round(min(0.7, 0.3 + 0.4 * share), 2),
        evidence=_evidence(group),
        domain=None,
    )
