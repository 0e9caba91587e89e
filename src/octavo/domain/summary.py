"""The deterministic summariser: the sessions of a core in, its content out, without a model.

What it says is quoted, dated and traced to its episode; the same sessions give the same core in any process.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from octavo.domain import pages
from octavo.domain.aggregates import aggregate, arc, feeling_in
from octavo.domain.compression import DEFAULT, CompressionPolicy, Due, is_milestone, position
from octavo.domain.cores import (
    STATISTICAL,
    CompressedNarrative,
    Core,
    CoreMeta,
    Digest,
    KeyEvent,
    SalienceAnchor,
    Statement,
    Trace,
    integrity_hash,
)
from octavo.domain.memory import Memory, transcript
from octavo.domain.sentence_rank import Telling, choose, in_order, verbatim
from octavo.domain.sentences import Sentence, SessionSource, is_person, shorten
from octavo.domain.themes import recurring, themes

_STATEMENTS = 12  # of a kind; the page shows four
_LISTS = 100  # characters of the page that the headings and lists may count on
_ABOUT = 4
_DATE = 16  # what a day, its mark and quotation marks take besides a sentence


def summarise_core(
    due: Due,
    sessions: Sequence[SessionSource],
    *,
    made_at: datetime,
    policy: CompressionPolicy = DEFAULT,
) -> Core:
    """The core of these sessions, in the order of their ordinals."""
    place, story = position(due.sessions[0], policy), _Story(sessions, policy)
    ids = tuple(session.id for session in sessions)
    sources = tuple(story.episodes)
    core = Core(
        core_id=due.id,
        sphere_seq=place["sphere_seq"],
        core_seq=place["core_seq"],
        timestamp_start=story.first.isoformat(),
        timestamp_end=story.last.isoformat(),
        session_count=len(sessions),
        source_sessions=ids,
        compressed_narrative=story.narrative(due.level.summary_length),
        aggregated_state=aggregate(sessions),
        salience_anchors=story.anchors(),
        meta=CoreMeta(compression_method=STATISTICAL, compression_timestamp=made_at.isoformat()),
        scope=due.scope,
        source_episodes=sources,
        milestones=tuple(id_ for id_, (_, ep) in story.episodes.items() if is_milestone(ep, policy)),
        integrity_hash=integrity_hash([*ids, *sources]),
    )
    return pages.measured(core, sum(len(text_of(episode)) for _, episode in story.episodes.values()))


def digest(session: SessionSource, policy: CompressionPolicy = DEFAULT) -> Digest:
    """One session in a few quoted lines, for search and lists of sessions; empty if it only greets."""
    return _Story([session], policy).digests()[0]


def text_of(episode: Memory) -> str:
    """What an episode says."""
    return transcript(episode.turns) if episode.turns else episode.text


class _Story:
    """Some sessions as they are told: what may be quoted of each, who is named, in which language."""

    def __init__(self, sessions: Sequence[SessionSource], policy: CompressionPolicy) -> None:
        self.sessions, self.policy = sessions, policy
        self.first = min(session.started_at for session in sessions)
        self.last = max(session.ended_at for session in sessions)
        self.episodes = {ep.id: (session, ep) for session in sessions for ep in session.episodes}
        self.tellings = [Telling(session, policy.milestone_salience) for session in sessions]
        self.candidates = [telling.candidates() for telling in self.tellings]
        turns = [turn for telling in self.tellings for _, turn in telling.turns]
        self.named = pages.names_of(turn.speaker for turn in turns)
        self.name_cost = max((len(name) + 1 for name in self.named), default=0)
        # That of the people, not of who answers them.
        self.language = pages.language_of(turn.text for turn in turns if is_person(turn.speaker))

    def narrative(self, length: int) -> CompressedNarrative:
        """What happened: a summary of some length, what the page quotes, themes, feelings, statements."""
        concepts = themes(self.sessions)
        shown = recurring(concepts)
        every = [one for row in self.candidates for one in row]
        opening, cost = self._opening(bool(every), shown[:_ABOUT]), _DATE + self.name_cost
        room = pages.CORE_CHARACTERS - len(opening.sentence) - _LISTS - len(", ".join(shown)) - 6 * len(shown)
        chosen = choose(every, room, cost + 2, more=self.name_cost + 3)
        lines = choose(every, length - len(opening.sentence) - 1, cost + 1)
        traces = pages.summarised(opening, self._events(lines), self.named, self.language)
        return CompressedNarrative(
            summary="\n".join(trace.sentence for trace in traces),
            key_events=self._events(chosen),
            recurring_themes=shown,
            emotional_arc=arc(self.sessions),
            concept_clusters=concepts,
            statements=self._statements(),
            digests=self.digests(),
            traces=traces,
            people=tuple(self.named),
        )

    def _opening(self, is_told: bool, about: Sequence[str]) -> Trace:
        """When, how often and what about, with the first episode of each theme, else of each session."""
        texts = {id_: text_of(episode).casefold() for id_, (_, episode) in self.episodes.items()}
        showing = [
            next((id_ for id_, text in texts.items() if name.casefold() in text), None) for name in about
        ]
        firsts = [session.episodes[0].id for session in self.sessions if session.episodes]
        if self.episodes and is_told:
            names = pages.listed(about, self.language)
            what = pages.phrase("about", self.language, names=names) if about else ""
        else:
            what = pages.phrase("quiet" if self.episodes else "gone", self.language)
        span = pages.period(self.first, self.last, self.language)
        sentence = pages.phrase("core", self.language, span=span, count=len(self.sessions), about=what)
        return Trace(sentence=sentence, sources=tuple(dict.fromkeys(list(filter(None, showing)) or firsts)))

    def digests(self) -> tuple[Digest, ...]:
        """Each session in a few quoted lines."""
        digests = []
        for session, row in zip(self.sessions, self.candidates, strict=True):
            chosen = choose(row, self.policy.digest_length, 3 + self.name_cost, spread=False)
            text = pages.quotes(((one.speaker, one.text) for one in chosen), self.named)
            sources = tuple(dict.fromkeys(one.episode for one in chosen))
            at = session.started_at.isoformat()
            digests.append(Digest(session=session.id, at=at, text=text, sources=sources))
        return tuple(digests)

    def _events(self, chosen: Sequence[Sentence]) -> tuple[KeyEvent, ...]:
        """Quotations, one a turn; feelings and salience only where somebody recorded them."""
        rows = [
            (one, feeling_in(self.episodes[one.episode][1], one.text))
            for one in _joined(self.tellings, chosen)
        ]
        return tuple(
            KeyEvent(event=one.text, emotion=felt, ri=one.salience, **_where(one)) for one, felt in rows
        )

    def anchors(self) -> tuple[SalienceAnchor, ...]:
        """A phrase of every milestone, verbatim, the weightiest first; a recorded anchor as it is."""
        telling = {one.episode: one.text for row in self.candidates for one in row if one.is_milestone}
        anchors = []
        for id_, (session, episode) in self.episodes.items():
            said_so, impact = _recorded_anchor(episode)
            if max(impact or 0.0, episode.salience) > self.policy.milestone_salience:
                phrase = said_so or telling.get(id_) or shorten(text_of(episode), 280)
                rim = impact if said_so else episode.salience
                anchors.append(SalienceAnchor(phrase=phrase, rim=rim, from_session=session.id, episode=id_))
        return tuple(sorted(anchors, key=lambda anchor: -(anchor.rim or 0.0)))

    def _statements(self) -> tuple[Statement, ...]:
        """What people decide, plan and say of themselves, the most telling first; each once."""
        rows = [one for telling in self.tellings for one in telling.statements()]
        rows.sort(key=lambda one: (-one.score, one.at, one.turn, one.place))
        kept = dict[str, Statement]()
        for one in rows:
            if one.text not in kept and sum(row.kind == one.kind for row in kept.values()) < _STATEMENTS:
                kept[one.text] = Statement(kind=one.kind or "", text=one.text, **_where(one))
        return tuple(kept.values())


def _joined(tellings: Sequence[Telling], chosen: Sequence[Sentence]) -> list[Sentence]:
    """Chosen sentences of one turn as one quotation: neighbours as they stand, others with an ellipsis."""
    turns = {telling.session.id: telling.turns for telling in tellings}
    joined: list[Sentence] = []
    for one in in_order(chosen):
        last = joined[-1] if joined else None
        if last is None or (last.session, last.turn) != (one.session, one.turn):
            joined.append(one)
            continue
        whole = verbatim(turns[one.session][one.turn][1].text, last.text, one.text)
        is_near = len(whole) <= len(last.text) + len(one.text) + 2
        joined[-1] = replace(last, text=whole if is_near else f"{last.text} … {one.text}")
    return joined


def _where(one: Sentence) -> dict[str, Any]:
    """Who said a sentence, when and where."""
    at = one.at.isoformat()
    return {"speaker": one.speaker, "at": at, "from_session": one.session, "episode": one.episode}


def _recorded_anchor(episode: Memory) -> tuple[str | None, float | None]:
    for turn in episode.turns:
        match turn.data.get("salience_anchor"):
            case {"phrase": str(phrase_), "Resonance_impact": float(impact) | int(impact)}:
                return phrase_, impact
    return None, None
