"""The deterministic summariser: the sessions of a core in, its content out, without a model.

What it says is quoted, dated and traced to its episode; the same sessions give the same core in any process.
"""

from __future__ import annotations

from collections import Counter
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
from octavo.domain.sentence_rank import choose, in_order, statements_of, told, verbatim
from octavo.domain.sentences import Sentence, SessionSource, is_person, said, shorten
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
    place = position(due.sessions[0], policy)
    ids = tuple(session.id for session in sessions)
    episodes = tuple(episode for session in sessions for episode in session.episodes)
    candidates = [told(session, policy.milestone_salience) for session in sessions]
    core = Core(
        core_id=due.id,
        sphere_seq=place["sphere_seq"],
        core_seq=place["core_seq"],
        timestamp_start=min(session.started_at for session in sessions).isoformat(),
        timestamp_end=max(session.ended_at for session in sessions).isoformat(),
        session_count=len(sessions),
        source_sessions=ids,
        compressed_narrative=_narrative(sessions, candidates, due.level.summary_length, policy),
        aggregated_state=aggregate(sessions),
        salience_anchors=_anchors(sessions, candidates, policy),
        meta=CoreMeta(compression_method=STATISTICAL, compression_timestamp=made_at.isoformat()),
        scope=due.scope,
        source_episodes=tuple(episode.id for episode in episodes),
        milestones=tuple(episode.id for episode in episodes if is_milestone(episode, policy)),
        integrity_hash=integrity_hash([*ids, *(episode.id for episode in episodes)]),
    )
    return pages.measured(core, sum(len(text_of(episode)) for episode in episodes))


def digest(session: SessionSource, policy: CompressionPolicy = DEFAULT) -> Digest:
    """One session in a few quoted lines, for search and lists of sessions; empty if it only greets."""
    return _digest(session, told(session, policy.milestone_salience), policy, _named([session]))


def text_of(episode: Memory) -> str:
    """What an episode says."""
    return transcript(episode.turns) if episode.turns else episode.text


def _narrative(
    sessions: Sequence[SessionSource],
    candidates: Sequence[Sequence[Sentence]],
    length: int,
    policy: CompressionPolicy,
) -> CompressedNarrative:
    concepts = themes(sessions)
    shown = recurring(concepts)
    every = [one for row in candidates for one in row]
    named = _named(sessions)
    name_cost = max((len(name) + 1 for name in named), default=0)
    cost, language = _DATE + name_cost, _language(sessions)
    opening = _opening(sessions, bool(every), shown, language)
    room = pages.CORE_CHARACTERS - len(opening.sentence) - _LISTS - len(", ".join(shown)) - 6 * len(shown)
    chosen = choose(every, room, cost + 2, more=name_cost + 3)
    lines = choose(every, length - len(opening.sentence) - 1, cost + 1)
    traces = (opening, *(_trace(one, named, language) for one in _joined(sessions, lines)))
    return CompressedNarrative(
        summary="\n".join(trace.sentence for trace in traces),
        key_events=_events(sessions, chosen),
        recurring_themes=shown,
        emotional_arc=arc(sessions),
        concept_clusters=concepts,
        statements=_statements(sessions),
        digests=tuple(
            _digest(session, row, policy, named) for session, row in zip(sessions, candidates, strict=True)
        ),
        traces=traces,
        people=tuple(named),
    )


def _language(sessions: Sequence[SessionSource]) -> str:
    """The language of the people, not that of who answers them."""
    turns = [turn for session in sessions for _, turn in said(session)]
    return pages.language_of(turn.text for turn in turns if is_person(turn.speaker))


def _named(sessions: Sequence[SessionSource]) -> list[str]:
    return pages.names_of(turn.speaker for session in sessions for _, turn in said(session))


def _opening(sessions: Sequence[SessionSource], is_told: bool, shown: Sequence[str], language: str) -> Trace:
    """When, how often and what about, with the episodes that show it."""
    first, last = min(one.started_at for one in sessions), max(one.ended_at for one in sessions)
    if not any(session.episodes for session in sessions):
        about = pages.phrase("gone", language)
    elif not is_told:
        about = pages.phrase("quiet", language)
    else:
        about = pages.phrase("about", language, names=pages.listed(shown[:_ABOUT], language)) if shown else ""
    span = pages.period(first, last, language)
    sentence = pages.phrase("core", language, span=span, count=len(sessions), about=about)
    return Trace(sentence=sentence, sources=_showing(sessions, shown[:_ABOUT]))


def _showing(sessions: Sequence[SessionSource], names: Sequence[str]) -> tuple[str, ...]:
    """The first episode that names each theme; without themes, the first of each session."""
    texts = [(episode.id, text_of(episode).casefold()) for one in sessions for episode in one.episodes]
    showing = [next((id_ for id_, text in texts if name.casefold() in text), None) for name in names]
    firsts = [session.episodes[0].id for session in sessions if session.episodes]
    return tuple(dict.fromkeys([id_ for id_ in showing if id_] or firsts))


def _joined(sessions: Sequence[SessionSource], chosen: Sequence[Sentence]) -> list[Sentence]:
    """Chosen sentences of one turn as one quotation: neighbours as they stand, others with an ellipsis."""
    texts = {(session.id, n): turn.text for session in sessions for n, (_, turn) in enumerate(said(session))}
    joined: list[Sentence] = []
    for one in in_order(chosen):
        last = joined[-1] if joined else None
        if last is None or (last.session, last.turn) != (one.session, one.turn):
            joined.append(one)
            continue
        whole = verbatim(texts[one.session, one.turn], last.text, one.text)
        is_near = len(whole) <= len(last.text) + len(one.text) + 2
        text = whole if is_near else f"{last.text} … {one.text}"
        joined[-1] = replace(last, text=text)
    return joined


def _trace(one: Sentence, named: Sequence[str], language: str) -> Trace:
    quote = pages.quoted(one.speaker if one.speaker in named else None, one.text)
    return Trace(sentence=f"{pages.dated(one.at, language)} {quote}", sources=(one.episode,))


def _digest(
    session: SessionSource, candidates: Sequence[Sentence], policy: CompressionPolicy, named: Sequence[str]
) -> Digest:
    cost = 3 + max((len(name) + 1 for name in named), default=0)
    chosen = choose(candidates, policy.digest_length, cost, spread=False)
    return Digest(
        session=session.id,
        at=session.started_at.isoformat(),
        text=pages.quotes(((one.speaker, one.text) for one in chosen), named),
        sources=tuple(dict.fromkeys(one.episode for one in chosen)),
    )


def _events(sessions: Sequence[SessionSource], chosen: Sequence[Sentence]) -> tuple[KeyEvent, ...]:
    """What the page tells, a quotation each; feelings and salience only where somebody recorded them."""
    episodes = {episode.id: episode for session in sessions for episode in session.episodes}
    return tuple(
        KeyEvent(
            event=one.text,
            emotion=feeling_in(episodes[one.episode], one.text),
            ri=one.salience,
            **_where(one),
        )
        for one in _joined(sessions, chosen)
    )


def _where(one: Sentence) -> dict[str, Any]:
    """Who said a sentence, when and where."""
    at = one.at.isoformat()
    return {"speaker": one.speaker, "at": at, "from_session": one.session, "episode": one.episode}


def _anchors(
    sessions: Sequence[SessionSource], candidates: Sequence[Sequence[Sentence]], policy: CompressionPolicy
) -> tuple[SalienceAnchor, ...]:
    """A phrase of every milestone, verbatim, the weightiest first; a recorded anchor is taken as it is."""
    telling = {one.episode: one for row in candidates for one in row if one.is_milestone}
    anchors = []
    for session, episode in ((one, episode) for one in sessions for episode in one.episodes):
        said_so, impact = _recorded_anchor(episode)
        if max(impact or 0.0, episode.salience) > policy.milestone_salience:
            run, rim = telling.get(episode.id), impact if said_so else episode.salience
            phrase = said_so or (run.text if run else shorten(text_of(episode), 280))
            anchors.append(
                SalienceAnchor(phrase=phrase, rim=rim, from_session=session.id, episode=episode.id)
            )
    return tuple(sorted(anchors, key=lambda anchor: -(anchor.rim or 0.0)))


def _recorded_anchor(episode: Memory) -> tuple[str | None, float | None]:
    for turn in episode.turns:
        match turn.data.get("salience_anchor"):
            case {"phrase": str(phrase_), "Resonance_impact": float(impact) | int(impact)}:
                return phrase_, impact
    return None, None


def _statements(sessions: Sequence[SessionSource]) -> tuple[Statement, ...]:
    """What people decide, plan and say of themselves, the most telling first; each once."""
    rows = [row for session in sessions for row in statements_of(session)]
    rows.sort(key=lambda row: (-row[1].score, row[1].at, row[1].turn, row[1].place))
    count, kept = Counter[str](), dict[str, Statement]()
    for kind, one in rows:
        if one.text not in kept and count[kind] < _STATEMENTS:
            count[kind] += 1
            kept[one.text] = Statement(kind=kind, text=one.text, **_where(one))
    return tuple(kept.values())
