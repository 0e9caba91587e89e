"""The deterministic summariser: the sessions of a core in, its content out, without a model.

What it says is quoted, dated and traced to its episode; the same sessions give the same core in any process.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime

from octavo.domain.aggregates import aggregate, arc, emotion_of
from octavo.domain.compression import DEFAULT, CompressionPolicy, Due, is_milestone, position
from octavo.domain.cores import (
    STATISTICAL,
    CompressedNarrative,
    Concept,
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
from octavo.domain.pages import core_page, is_thai, listed, on_day, period, quoted, shown_name
from octavo.domain.sentence_rank import Ranked, choose, is_vague, rank
from octavo.domain.sentences import SessionSource, said, shorten, told
from octavo.domain.themes import Segment, themes

_STATEMENTS = 16
_EVENTS = 16


def summarise_core(
    due: Due,
    sessions: Sequence[SessionSource],
    *,
    made_at: datetime,
    policy: CompressionPolicy = DEFAULT,
    segment: Segment | None = None,
) -> Core:
    """The core of these sessions, in the order of their ordinals."""
    place = position(due.sessions[0], policy)
    ids = tuple(session.id for session in sessions)
    episodes = tuple(episode for session in sessions for episode in session.episodes)
    ranked = rank([told(session) for session in sessions])
    core = Core(
        core_id=due.id,
        sphere_seq=place["sphere_seq"],
        core_seq=place["core_seq"],
        timestamp_start=min(session.started_at for session in sessions).isoformat(),
        timestamp_end=max(session.ended_at for session in sessions).isoformat(),
        session_count=len(sessions),
        source_sessions=ids,
        compressed_narrative=_narrative(sessions, ranked, due.level.summary_length, policy, segment),
        aggregated_state=aggregate(sessions),
        salience_anchors=_anchors(sessions, ranked, policy),
        meta=CoreMeta(compression_method=STATISTICAL, compression_timestamp=made_at.isoformat()),
        scope=due.scope,
        source_episodes=tuple(episode.id for episode in episodes),
        milestones=tuple(episode.id for episode in episodes if is_milestone(episode, policy)),
        integrity_hash=integrity_hash([*ids, *(episode.id for episode in episodes)]),
    )
    return measured(core, sum(len(text_of(episode)) for episode in episodes))


def digest(session: SessionSource, policy: CompressionPolicy = DEFAULT) -> Digest:
    """One session in a few quoted lines, for a list of sessions; empty if it only greets."""
    (ranked,) = rank([told(session)])
    return _digest(session, choose(ranked, policy.digest_length, _quote_cost([session])))


def measured(core: Core, source_characters: int) -> Core:
    """The core with the share of its sources' characters that its page keeps."""
    kept = min(1.0, round(len(core_page(core)) / source_characters, 4)) if source_characters else None
    meta = replace(core.meta, detail_retention=kept, source_characters=source_characters)
    return replace(core, meta=meta)


def text_of(episode: Memory) -> str:
    """What an episode says."""
    return transcript(episode.turns) if episode.turns else episode.text


def _narrative(
    sessions: Sequence[SessionSource],
    ranked: Sequence[Sequence[Ranked]],
    length: int,
    policy: CompressionPolicy,
    segment: Segment | None,
) -> CompressedNarrative:
    concepts = themes([_spoken_of(session) for session in sessions], _speakers(sessions), segment)
    kept = [choose(row, policy.digest_length, _quote_cost(sessions)) for row in ranked]
    traces = _summary(sessions, [item for row in kept for item in row], concepts, length, policy)
    return CompressedNarrative(
        summary="\n".join(trace.sentence for trace in traces),
        key_events=_events(sessions, ranked, policy),
        recurring_themes=tuple(concept.theme for concept in concepts),
        emotional_arc=arc(sessions),
        concept_clusters=concepts,
        statements=_statements(ranked),
        digests=tuple(_digest(session, row) for session, row in zip(sessions, kept, strict=True)),
        traces=traces,
    )


def _spoken_of(session: SessionSource) -> list[str]:
    """What was said in a session, and the tags its episodes were given."""
    tags = [tag for episode in session.episodes for tag in episode.tags]
    return [*(turn.text for _, turn in said(session)), *tags]


def _summary(
    sessions: Sequence[SessionSource],
    kept: Sequence[Ranked],
    concepts: Sequence[Concept],
    length: int,
    policy: CompressionPolicy,
) -> tuple[Trace, ...]:
    """An opening line of when, who and what about, then the best quotes in order, within a length."""
    thai = is_thai(turn.text for session in sessions for _, turn in said(session))
    opening = _opening(sessions, kept, concepts, thai)
    pool = [replace(item, topic=0, score=item.score + _weight(item, concepts, policy)) for item in kept]
    room = length - len(opening.sentence)
    lines = choose(pool, room, _quote_cost(sessions, 14), repeat=0.3, thrift=0.25)
    traces = [opening]
    for item in in_order(lines):
        line = on_day(item.sentence.at, quoted(item.sentence.speaker, item.sentence.text), thai=thai)
        if sum(len(trace.sentence) + 1 for trace in traces) + len(line) <= length:
            traces.append(Trace(sentence=line, sources=(item.sentence.episode,)))
    return tuple(traces)


def _weight(item: Ranked, concepts: Sequence[Concept], policy: CompressionPolicy) -> float:
    """What speaks for a sentence in the summary besides its score: a milestone, a theme."""
    text = item.sentence.text.casefold()
    on_theme = any(concept.theme.casefold() in text for concept in concepts)
    return 0.15 * on_theme + 0.5 * (item.sentence.salience > policy.milestone_salience)


def _opening(
    sessions: Sequence[SessionSource], kept: Sequence[Ranked], concepts: Sequence[Concept], thai: bool
) -> Trace:
    first, last = min(one.started_at for one in sessions), max(one.ended_at for one in sessions)
    span = period(first, last, thai=thai)
    who = listed([shown_name(name) for name in _speakers(sessions)], thai=thai)
    about = listed([concept.theme for concept in concepts[:4]], thai=thai)
    count = f"{len(sessions)} ครั้ง" if thai else f"{len(sessions)} sessions"
    if not any(session.episodes for session in sessions):
        said_so = "nothing of them is left"
    elif not kept:
        said_so = "มีแต่คำทักทาย" if thai else "nothing but greetings"
    elif thai:
        said_so = f"{who}คุยกันเรื่อง {about}" if about else who
    else:
        said_so = f"{who} talked most about {about}" if about else who
    end = "" if thai else "."
    return Trace(sentence=f"{span}, {count}: {said_so}{end}", sources=_showing(sessions, concepts[:4]))


def _showing(sessions: Sequence[SessionSource], concepts: Sequence[Concept]) -> tuple[str, ...]:
    """The first episode that names each theme; without themes, the first of each session."""
    found: list[str] = []
    texts = [
        (episode.id, text_of(episode).casefold()) for session in sessions for episode in session.episodes
    ]
    for concept in concepts:
        found.extend([name for name, text in texts if concept.theme.casefold() in text][:1])
    firsts = [session.episodes[0].id for session in sessions if session.episodes]
    return tuple(dict.fromkeys(found or firsts))


def _digest(session: SessionSource, chosen: Iterable[Ranked]) -> Digest:
    lines: list[str] = []
    speaker: str | None = None
    for item in in_order(chosen):
        same = bool(lines) and item.sentence.speaker == speaker
        lines.append(quoted(None if same else item.sentence.speaker, item.sentence.text))
        speaker = item.sentence.speaker
    return Digest(
        session=session.id,
        at=session.started_at.isoformat(),
        text=" ".join(lines),
        sources=tuple(dict.fromkeys(item.sentence.episode for item in in_order(chosen))),
    )


def _events(
    sessions: Sequence[SessionSource], ranked: Sequence[Sequence[Ranked]], policy: CompressionPolicy
) -> tuple[KeyEvent, ...]:
    """The two best sentences of each session, and the best of every milestone."""
    by_id = {episode.id: episode for session in sessions for episode in session.episodes}
    best: list[Ranked] = []
    for row in ranked:
        best.extend(choose(row, _EVENTS * 200, 0)[: max(1, _EVENTS // len(ranked))])
    named = {item.sentence.episode for item in best}
    every = sorted((item for row in ranked for item in row), key=lambda item: -item.score)
    for item in every:
        if item.sentence.episode not in named and is_milestone(by_id[item.sentence.episode], policy):
            named.add(item.sentence.episode)
            best.append(item)
    return tuple(_event(item, by_id[item.sentence.episode]) for item in in_order(best))


def _event(item: Ranked, episode: Memory) -> KeyEvent:
    return KeyEvent(
        event=item.sentence.text,
        emotion=emotion_of(episode),
        ri=episode.salience,
        speaker=item.sentence.speaker,
        at=item.sentence.at.isoformat(),
        from_session=item.sentence.session,
        episode=episode.id,
    )


def _anchors(
    sessions: Sequence[SessionSource], ranked: Sequence[Sequence[Ranked]], policy: CompressionPolicy
) -> tuple[SalienceAnchor, ...]:
    """A phrase of every milestone, verbatim, the weightiest first; a recorded anchor is taken as it is."""
    best: dict[str, Ranked] = {}
    for item in sorted((item for row in ranked for item in row), key=lambda item: item.score):
        best[item.sentence.episode] = item
    found = []
    for session, episode in ((one, episode) for one in sessions for episode in one.episodes):
        phrase, rim = _recorded_anchor(episode)
        weight = round(max(rim or 0.0, episode.salience), 4)
        if weight > policy.milestone_salience:
            told_best = (
                best[episode.id].sentence.text if episode.id in best else shorten(text_of(episode), 280)
            )
            found.append(
                SalienceAnchor(
                    phrase=phrase or told_best, rim=weight, from_session=session.id, episode=episode.id
                )
            )
    return tuple(sorted(found, key=lambda anchor: -(anchor.rim or 0.0)))


def _recorded_anchor(episode: Memory) -> tuple[str | None, float | None]:
    for turn in episode.turns:
        match turn.data.get("salience_anchor"):
            case {"phrase": str(phrase), "Resonance_impact": float(impact) | int(impact)}:
                return phrase, impact
    return None, None


def _statements(ranked: Sequence[Sequence[Ranked]]) -> tuple[Statement, ...]:
    able = [
        item
        for row in ranked
        for item in row
        if item.sentence.kind and item.score > 0.35 and not is_vague(item.sentence.text)
    ]
    kept = choose(able, 4000, 0, novelty=0.8)[:_STATEMENTS]
    return tuple(
        Statement(
            kind=item.sentence.kind or "",
            text=item.sentence.text,
            speaker=item.sentence.speaker,
            at=item.sentence.at.isoformat(),
            from_session=item.sentence.session,
            episode=item.sentence.episode,
        )
        for item in in_order(kept)
    )


def in_order(ranked: Iterable[Ranked]) -> list[Ranked]:
    """Sentences in the order they were said."""
    return sorted(ranked, key=lambda item: (item.sentence.at, item.sentence.turn))


def _quote_cost(sessions: Sequence[SessionSource], date: int = 0) -> int:
    """What a name, quotation marks and a date take besides the sentence they frame."""
    return max((len(shown_name(name)) for name in _speakers(sessions)), default=0) + 5 + date


def _speakers(sessions: Sequence[SessionSource]) -> list[str]:
    names = (turn.speaker for session in sessions for _, turn in said(session))
    return list(dict.fromkeys(name for name in names if name))
