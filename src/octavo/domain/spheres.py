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
    integrity_hash,
)
from octavo.domain.sentences import content, cosine, is_telling
from octavo.domain.statements import changes, holding
from octavo.domain.text import fold, stem, words
from octavo.domain.themes import is_titled
from octavo.domain.units import ROLES

_BELIEFS, _PATTERNS = 8, 24
_MILESTONES = 2  # of a core
_CHANGED, _HOLDING, _DECIDED = 5, 6, 8
_NAMED = 5
_ALIKE = 0.3  # two statements this close by the words they share say the same of a person


class _Thread:
    """What people spoke of over the cores: a theme with its concepts, each with the place of its core."""

    def __init__(self, rows: Sequence[tuple[int, Concept]], cores: int) -> None:
        self.theme, self.rows = _short_name(rows[0][1]), rows
        self.weight = round(sum(concept.weight for _, concept in rows), 4)
        self.places = sorted({place for place, _ in rows})
        # Throughout is three quarters of the cores; new is a name that came and stayed.
        self.direction, since = "passing", cores - self.places[0]
        if len(self.places) >= 0.75 * cores:
            self.direction = "throughout"
        elif len(self.places) >= 3 and any(concept.is_name for _, concept in rows):
            is_new = since <= cores - 2 and self.places[-1] >= cores - 2 and len(self.places) >= 0.6 * since
            is_over = self.places[-1] <= cores - 3
            self.direction = "new" if is_new else "ended" if is_over else "passing"

    def told(self, language: str) -> str:
        """The theme, with the day since when it is new or until when it was mentioned."""
        days = [date.fromisoformat(day) for _, row in self.rows for day in (row.first, row.last) if day]
        if self.direction == "new":
            return pages.phrase("since", language, name=self.theme, day=pages.dated(min(days), language))
        is_over = self.direction == "ended"
        return f"{self.theme} ({pages.dated(max(days), language)})" if is_over else self.theme

    def pattern(self, cores: Sequence[Core]) -> BehavioralPattern:
        """The theme as something that recurs."""
        share = len(self.places) / len(cores)
        return BehavioralPattern(
            pattern=self.theme,
            frequency="high" if share >= 0.75 else "medium" if share >= 0.5 else "low",
            context=f"{len(self.places)}/{len(cores)} cores",
            evidence=tuple(cores[place].core_id for place in self.places),
        )


def summarise_sphere(due: Due, cores: Sequence[Core], *, made_at: datetime) -> Sphere:
    """The sphere of these cores, in their order."""
    told = [core.compressed_narrative for core in cores]
    language = pages.language_of(event.event for one in told for event in one.key_events)
    threads = _threads(cores)
    recurring = [thread for thread in threads if len(thread.places) >= 2][:_PATTERNS]
    said = sorted((row for one in told for row in one.statements), key=lambda row: row.at or "")
    beliefs = _beliefs(cores, {row.text for row in holding(said)})
    milestones = tuple(event for core in cores for event in _milestones(core))
    ids = tuple(core.core_id for core in cores)
    opening = Trace(sentence=_opening(cores, threads, language), sources=ids)
    people = tuple(dict.fromkeys(name for one in told for name in one.people))
    weightiest = sorted(milestones, key=lambda event: (-(event.ri or 0.0), len(event.event)))
    traces = pages.summarised(opening, weightiest, people, language, due.level.summary_length)
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
            behavioral_patterns=tuple(thread.pattern(cores) for thread in recurring),
            relationship_evolution=None,
            beliefs=beliefs,
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
    concepts: dict[str, list[tuple[int, Concept]]] = {}
    for place, core in enumerate(cores):
        for concept in core.compressed_narrative.concept_clusters:
            if concept.first and concept.last:
                key = " ".join(stem(part) for part in fold(_short_name(concept)).split())
                concepts.setdefault(key, []).append((place, concept))
    sure = (rows for rows in concepts.values() if any(row.is_name is not False for _, row in rows))
    threads = [_Thread(rows, len(cores)) for rows in sure]
    return sorted(threads, key=lambda thread: (-thread.weight, thread.theme))


def _short_name(concept: Concept) -> str:
    """A full name by its first: people say that one."""
    parts = concept.theme.split()
    return parts[0] if concept.is_name and len(parts) == 2 and not is_titled(concept.theme) else concept.theme


def _opening(cores: Sequence[Core], threads: Sequence[_Thread], language: str) -> str:
    """When and how much, what was there throughout, what is new and what was last mentioned when."""
    first, last = cores[0].timestamp_start, cores[-1].timestamp_end
    span = ""
    if first and last:
        span = pages.period(datetime.fromisoformat(first), datetime.fromisoformat(last), language)
    count = sum(core.session_count for core in cores)
    opening = pages.phrase("sphere", language, span=span, count=count, cores=len(cores))
    for direction in ("throughout", "new", "ended"):
        names = [one.told(language) for one in threads if one.direction == direction][:_NAMED]
        opening += pages.phrase(direction, language, names=pages.listed(names, language)) if names else ""
    return opening


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


_Said = tuple[int, Core, Statement, frozenset[str]]


def _beliefs(cores: Sequence[Core], still: set[str]) -> tuple[Belief, ...]:
    """What the same speaker says of themselves in two or more cores, each in its most central words."""
    groups: list[list[_Said]] = []
    told = [(n, core, row) for n, core in enumerate(cores) for row in core.compressed_narrative.statements]
    for place, core, row in told:
        if row.kind == "preference" and row.text in still:
            bag = frozenset(filter(is_telling, content(row.text)))
            own = [group for group in groups if group[0][2].speaker == row.speaker]
            near = [max(cosine(other[-1], bag) for other in group) for group in own]
            if near and max(near) >= _ALIKE:
                own[near.index(max(near))].append((place, core, row, bag))
            else:
                groups.append([(place, core, row, bag)])
    able = [
        group for group in groups if len({place for place, *_ in group}) >= 2 and len(_evidence(group)) >= 2
    ]
    able.sort(key=lambda group: (-len({place for place, *_ in group}), -len(group), group[0][0]))
    return tuple(_belief(group, len(cores)) for group in able[:_BELIEFS])


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
