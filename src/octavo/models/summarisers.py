"""Summarisers: the deterministic one, and one that asks a model and falls back to it.

A model replaces only what needs understanding (narrative, beliefs, patterns, relationship); counts, averages,
anchors, milestones, sources and hashes are always computed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from datetime import datetime
from hashlib import sha256
from importlib.resources import files
from typing import Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain.compression import DEFAULT, CompressionPolicy, Due
from octavo.domain.cores import HYPOTHESIS, LLM, AbstractedKnowledge, Core, KeyEvent, Sphere
from octavo.domain.episodes import recorded_salience
from octavo.domain.pages import core_page, measured
from octavo.domain.sentences import SessionSource, said, shorten
from octavo.domain.spheres import summarise_sphere
from octavo.domain.summary import summarise_core
from octavo.errors import BadInput, ModelFailed
from octavo.models.drafts import CoreDraft, SphereDraft, check, parse, schema
from octavo.models.llm import Endpoint, Message, chat, tokens

D = TypeVar("D", bound=CoreDraft | SphereDraft)
T = TypeVar("T")

_ECHO = 4_000
_SHORTEST = 100


class Summariser(Protocol):
    """Makes the content of cores and spheres; it always returns one."""

    def core(self, due: Due, sessions: Sequence[SessionSource], *, made_at: datetime) -> Core:
        """The core of these sessions."""
        ...

    def sphere(self, due: Due, cores: Sequence[Core], *, made_at: datetime) -> Sphere:
        """The sphere of these cores."""
        ...


class StatisticalSummariser(Struct, frozen=True, kw_only=True):
    """The default: extractive, statistical, reproducible, offline."""

    policy: CompressionPolicy = DEFAULT

    def core(self, due: Due, sessions: Sequence[SessionSource], *, made_at: datetime) -> Core:
        """The core of these sessions."""
        return summarise_core(due, sessions, made_at=made_at, policy=self.policy)

    def sphere(self, due: Due, cores: Sequence[Core], *, made_at: datetime) -> Sphere:
        """The sphere of these cores."""
        return summarise_sphere(due, cores, made_at=made_at)


class ModelSummariser(Struct, frozen=True, kw_only=True):
    """Asks a model; what it cannot answer validly within `attempts` is made without it, and says so."""

    endpoint: Endpoint
    policy: CompressionPolicy = DEFAULT
    attempts: int = 3
    sleep: Callable[[float], None] = time.sleep

    def core(self, due: Due, sessions: Sequence[SessionSource], *, made_at: datetime) -> Core:
        """The core of these sessions, told by the model if it can."""
        plain = summarise_core(due, sessions, made_at=made_at, policy=self.policy)
        lines = _session_lines(sessions)
        try:
            draft = self._ask("core", CoreDraft, lines, len(sessions), due.level.summary_length)
        except ModelFailed as error:
            return replace(plain, meta=replace(plain.meta, fallback_reason=error.message))
        return _told_core(plain, draft, self.endpoint.model, sessions)

    def sphere(self, due: Due, cores: Sequence[Core], *, made_at: datetime) -> Sphere:
        """The sphere of these cores, told by the model if it can."""
        plain = summarise_sphere(due, cores, made_at=made_at)
        lines = [(core.core_id, " ".join(core_page(core).split())) for core in cores]
        try:
            draft = self._ask("sphere", SphereDraft, lines, len(cores), due.level.summary_length)
        except ModelFailed as error:
            return replace(plain, meta=replace(plain.meta, fallback_reason=error.message))
        return _told_sphere(plain, draft, self.endpoint.model, sum(len(core_page(core)) for core in cores))

    def replaced(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Of which pairs the newer text makes the older one untrue, as the model says; or `ModelFailed`."""
        lines = [(str(n), f"OLDER: {older} NEWER: {newer}") for n, (older, newer) in enumerate(pairs)]
        messages = _messages("replaced", [(n, " ".join(text.split())) for n, text in lines], self.endpoint)

        def read(answer: str) -> list[int]:
            numbers = parse(answer, dict[str, list[int]])
            if set(numbers) != {"replaced"} or not set(numbers["replaced"]) <= set(range(len(pairs))):
                raise BadInput(f"`replaced` must list numbers from 0 to {len(pairs) - 1}, and nothing else")
            return sorted(set(numbers["replaced"]))

        return self._answered(messages, read)

    def _ask(self, name: str, kind: type[D], lines: Sequence[tuple[str, str]], count: int, limit: int) -> D:
        shape = json.dumps(schema(f"{name}_draft"), ensure_ascii=False)
        messages = _messages(name, lines, self.endpoint, count=count, limit=limit, schema=shape)

        def read(answer: str) -> D:
            draft: D = parse(answer, kind)
            check(draft, [source for source, _ in lines], limit)
            return draft

        return self._answered(messages, read)

    def _answered(self, messages: list[Message], read: Callable[[str], T]) -> T:
        """What the model answers, as it is read; what cannot be read is told to it, a few times."""
        reason = ""
        for _ in range(self.attempts):
            answer = chat(self.endpoint, messages, sleep=self.sleep)
            try:
                return read(answer)
            except BadInput as error:
                reason = error.message
            messages = [*messages[:2], *_rejection(answer, reason)]
        raise ModelFailed(
            f"model {self.endpoint.model!r} gave no valid answer in {self.attempts} attempts: {reason}"
        )


def _messages(
    name: str, lines: Sequence[tuple[str, str]], endpoint: Endpoint, **filled: str | int
) -> list[Message]:
    """The prompt from its file, and the sources fenced by a mark that they cannot contain."""
    text = files("octavo.models").joinpath("prompts", f"{name}.md").read_text("utf-8")
    for key, value in filled.items():
        text = text.replace(f"{{{{{key}}}}}", str(value))
    body = _fitted(lines, endpoint.prompt_tokens - tokens(text))
    marker = f"=== {sha256(body.encode()).hexdigest()[:16]} ==="
    text = text.replace("{{marker}}", marker)
    return [
        {"role": "system", "content": text},
        {"role": "user", "content": f"{marker}\n{body}\n{marker}"},
    ]


def _fitted(lines: Sequence[tuple[str, str]], room: int) -> str:
    """The lines within a number of tokens: the longest are cut first, then every second one is left out."""
    longest = max((len(text) for _, text in lines), default=0)
    body = _body(lines, longest)
    while tokens(body) > room and longest > _SHORTEST:
        longest = longest * 3 // 4
        body = _body(lines, longest)
    while tokens(body) > room and len(lines) > 1:
        lines = lines[::2]
        body = _body(lines, longest)
    return body


def _body(lines: Sequence[tuple[str, str]], longest: int) -> str:
    return "\n".join(f"[{source}] {shorten(text, longest)}" for source, text in lines)


def _session_lines(sessions: Sequence[SessionSource]) -> list[tuple[str, str]]:
    return [
        (episode.id, f"{(turn.at or episode.at).date()} {turn.speaker}: {' '.join(turn.text.split())}")
        for session in sessions
        for episode, turn in said(session)
    ]


def _rejection(answer: str, reason: str) -> list[Message]:
    return [
        {"role": "assistant", "content": answer[:_ECHO]},
        {
            "role": "user",
            "content": f"This was rejected: {reason}. Answer again with the corrected JSON only.",
        },
    ]


def _told_core(plain: Core, draft: CoreDraft, model: str, sessions: Sequence[SessionSource]) -> Core:
    told = plain.compressed_narrative
    narrative = replace(
        told,
        summary="\n".join(claim.sentence for claim in draft.summary),
        key_events=_told_events(plain, draft, sessions),
        recurring_themes=draft.recurring_themes or told.recurring_themes,
        emotional_arc=draft.emotional_arc,
        traces=draft.summary,
    )
    meta = replace(plain.meta, compression_method=LLM, model=model)
    return measured(
        replace(plain, compressed_narrative=narrative, meta=meta), plain.meta.source_characters or 0
    )


def _told_events(plain: Core, draft: CoreDraft, sessions: Sequence[SessionSource]) -> tuple[KeyEvent, ...]:
    """The model's events with the salience and day of their episodes; milestones it passed over stay."""
    places = {episode.id: (session.id, episode) for session in sessions for episode in session.episodes}
    events = [
        KeyEvent(
            event=row.event,
            emotion=row.emotion,
            ri=recorded_salience(episode),
            at=episode.at.isoformat(),
            from_session=session,
            episode=episode.id,
        )
        for row in draft.key_events
        for session, episode in [places[row.episode or ""]]
    ]
    named = {row.episode for row in draft.key_events} | set(places) - set(plain.milestones)
    return (
        *events,
        *(event for event in plain.compressed_narrative.key_events if event.episode not in named),
    )


def _told_sphere(plain: Sphere, draft: SphereDraft, model: str, source_characters: int) -> Sphere:
    knowledge = AbstractedKnowledge(
        summary="\n".join(claim.sentence for claim in draft.summary),
        core_beliefs=tuple(row.belief for row in draft.beliefs),
        behavioral_patterns=draft.behavioral_patterns,
        relationship_evolution=draft.relationship_evolution,
        beliefs=tuple(replace(row, epistemic_state=HYPOTHESIS) for row in draft.beliefs),
        trends=plain.abstracted_knowledge.trends,
        traces=draft.summary,
    )
    meta = replace(plain.meta, compression_method=LLM, model=model)
    return measured(replace(plain, abstracted_knowledge=knowledge, meta=meta), source_characters)
