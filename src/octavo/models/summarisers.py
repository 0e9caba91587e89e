"""The summariser: deterministic, or asking a model and falling back to that.

A model replaces only what needs understanding (narrative, beliefs, patterns, relationship), every claim with
its sources; counts, averages, anchors, milestones, sources and hashes are always computed.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from octavo.domain import cores as records
from octavo.domain.compression import DEFAULT, CompressionPolicy, Due
from octavo.domain.cores import BehavioralPattern, Belief, Core, EmotionalArc, KeyEvent, Sphere, Trace
from octavo.domain.episodes import recorded_salience
from octavo.domain.pages import core_page, measured
from octavo.domain.records import shape_of
from octavo.domain.sentences import SessionSource, said, shorten
from octavo.domain.spheres import summarise_sphere
from octavo.domain.summary import summarise_core
from octavo.errors import BadInput, ModelFailed
from octavo.models.llm import Endpoint, Message, chat, tokens

_ECHO = 4_000
_SHORTEST, _LONGEST, _MOST_SOURCES = 100, 400, 64
_CLAIMS = ("summary", "key_events", "beliefs", "behavioral_patterns")


class Draft(Struct, frozen=True, kw_only=True):
    """What a model says; every claim with its sources."""

    summary: Annotated[tuple[Trace, ...], Meta(min_length=1, max_length=12)]

    @property
    def told(self) -> str:
        """Its summary, a claim a line."""
        return "\n".join(claim.sentence for claim in self.summary)


class CoreDraft(Draft, frozen=True, kw_only=True):
    """What a model says of eight sessions; of an event its words, feeling and episode count."""

    key_events: Annotated[tuple[KeyEvent, ...], Meta(max_length=16)] = ()
    recurring_themes: Annotated[tuple[str, ...], Meta(max_length=8)] = ()
    emotional_arc: EmotionalArc = EmotionalArc()


class SphereDraft(Draft, frozen=True, kw_only=True):
    """What a model says of eight cores."""

    beliefs: Annotated[tuple[Belief, ...], Meta(max_length=8)] = ()
    behavioral_patterns: Annotated[tuple[BehavioralPattern, ...], Meta(max_length=8)] = ()
    relationship_evolution: records.RelationshipEvolution | None = None


Line = tuple[str, str]  # a source, and what it says
D = TypeVar("D", bound=Draft)
T = TypeVar("T")
Made = TypeVar("Made", Core, Sphere)
_TYPES = {**records.TYPES, "core_draft": CoreDraft, "sphere_draft": SphereDraft}


class Summariser(Struct, frozen=True, kw_only=True):
    """Makes cores and spheres: extractive and offline, or told by a model where there is an `endpoint`.

    What a model cannot answer validly within `attempts` is made without it, and says so. Who makes them in
    another way has a subclass with a `core` and a `sphere` of its own.
    """

    endpoint: Endpoint | None = None
    policy: CompressionPolicy = DEFAULT
    attempts: int = 3
    sleep: Callable[[float], None] = time.sleep

    def core(self, due: Due, sessions: Sequence[SessionSource], *, made_at: datetime) -> Core:
        """The core of these sessions, told by the model if it can."""
        plain = summarise_core(due, sessions, made_at=made_at, policy=self.policy)
        turns = [row for session in sessions for row in said(session)]
        lines = [(ep.id, f"{(turn.at or ep.at).date()} {turn.speaker}: {turn.text}") for ep, turn in turns]

        def told(draft: CoreDraft) -> Core:
            narrative = replace(
                plain.compressed_narrative,
                summary=draft.told,
                key_events=_told_events(plain, draft, sessions),
                recurring_themes=draft.recurring_themes or plain.compressed_narrative.recurring_themes,
                emotional_arc=draft.emotional_arc,
                traces=draft.summary,
            )
            return replace(plain, compressed_narrative=narrative)

        return self._told(due, CoreDraft, plain, told, lines)

    def sphere(self, due: Due, cores: Sequence[Core], *, made_at: datetime) -> Sphere:
        """The sphere of these cores, told by the model if it can."""
        plain = summarise_sphere(due, cores, made_at=made_at)

        def told(draft: SphereDraft) -> Sphere:
            knowledge = records.AbstractedKnowledge(
                summary=draft.told,
                core_beliefs=tuple(row.belief for row in draft.beliefs),
                behavioral_patterns=draft.behavioral_patterns,
                relationship_evolution=draft.relationship_evolution,
                beliefs=tuple(replace(row, epistemic_state=records.HYPOTHESIS) for row in draft.beliefs),
                traces=draft.summary,
            )
            return replace(plain, abstracted_knowledge=knowledge)

        lines = [(core.core_id, core_page(core)) for core in cores]
        return self._told(due, SphereDraft, plain, told, lines)

    def replaced(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Of which pairs the newer text makes the older one untrue, as the model says; or `ModelFailed`."""
        lines = [(str(n), f"OLDER: {older} NEWER: {newer}") for n, (older, newer) in enumerate(pairs)]

        def read(answer: str) -> list[int]:
            numbers = _parsed(answer, dict[str, list[int]])
            if set(numbers) != {"replaced"} or not set(numbers["replaced"]) <= set(range(len(pairs))):
                raise BadInput(f"`replaced` must list numbers from 0 to {len(pairs) - 1}, and nothing else")
            return sorted(set(numbers["replaced"]))

        return [] if self.endpoint is None else self._answered(self.endpoint, "replaced", lines, {}, read)

    def _told(
        self, due: Due, kind: type[D], plain: Made, told: Callable[[D], Made], lines: Sequence[Line]
    ) -> Made:
        """What a model makes of the plain one; why it made nothing of it, if it did not."""
        if self.endpoint is None:
            return plain
        shape, limit = json.dumps(schema(f"{due.kind}_draft"), ensure_ascii=False), due.level.summary_length
        blanks: dict[str, str | int] = {"count": due.level.radix, "limit": limit, "schema": shape}

        def read(answer: str) -> D:
            draft: D = _parsed(answer, kind)
            _check(draft, {source for source, _ in lines}, limit)
            return draft

        try:
            made = told(self._answered(self.endpoint, due.kind, lines, blanks, read))
            how = {"compression_method": records.LLM, "model": self.endpoint.model}
        except ModelFailed as error:
            made, how = plain, {"fallback_reason": error.message}
        return measured(replace(made, meta=replace(made.meta, **how)), plain.meta.source_characters)

    def _answered(
        self,
        endpoint: Endpoint,
        name: str,
        lines: Sequence[Line],
        blanks: Mapping[str, str | int],
        read: Callable[[str], T],
    ) -> T:
        """What the model answers, as it is read; what cannot be read is told to it, a few times."""
        reason, messages = "", _messages(name, lines, endpoint, **blanks)
        for _ in range(self.attempts):
            answer = chat(endpoint, messages, sleep=self.sleep)
            try:
                return read(answer)
            except BadInput as error:
                reason = error.message
            again = f"This was rejected: {reason}. Answer again with the corrected JSON only."
            said_before: Message = {"role": "assistant", "content": answer[:_ECHO]}
            messages = [*messages[:2], said_before, {"role": "user", "content": again}]
        raise ModelFailed(
            f"model {endpoint.model!r} gave no valid answer in {self.attempts} attempts: {reason}"
        )


def schema(name: str) -> dict[str, Any]:
    """The JSON Schema of `core`, `sphere`, `core_draft` or `sphere_draft`."""
    made = msgspec.json.schema(_TYPES[name])
    for row in made["$defs"].values():
        # In the JSON, fields that we do not know stand in the object itself, not in `extra`.
        row.get("properties", {}).pop("extra", None)
        for value in row.get("properties", {}).values():
            if isinstance(value.get("default"), dict):
                value["default"].pop("extra", None)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made}


def _messages(name: str, lines: Sequence[Line], endpoint: Endpoint, **filled: str | int) -> list[Message]:
    """The prompt from its file, and the sources fenced by a mark that they cannot contain."""
    text = files("octavo.models").joinpath("prompts", f"{name}.md").read_text("utf-8")
    for key, value in filled.items():
        text = text.replace(f"{{{{{key}}}}}", str(value))
    body = _fitted(
        [(source, " ".join(said.split())) for source, said in lines], endpoint.prompt_tokens - tokens(text)
    )
    marker = f"=== {sha256(body.encode()).hexdigest()[:16]} ==="
    text = text.replace("{{marker}}", marker)
    return [
        {"role": "system", "content": text},
        {"role": "user", "content": f"{marker}\n{body}\n{marker}"},
    ]


def _fitted(lines: Sequence[Line], room: int) -> str:
    """The lines within a number of tokens: the longest are cut first, then every second one is left out."""
    longest = max((len(text) for _, text in lines), default=0)
    while True:
        body = "\n".join(f"[{source}] {shorten(text, longest)}" for source, text in lines)
        if tokens(body) <= room or (longest <= _SHORTEST and len(lines) <= 1):
            return body
        longest, lines = (longest * 3 // 4, lines) if longest > _SHORTEST else (longest, lines[::2])


def _parsed(answer: str, kind: type[T]) -> T:
    """Read a draft from a model's answer, or raise with the path of what is wrong.

    Text around the JSON object (a fence, a preamble of thought) is left out.
    """
    start, end = answer.find("{"), answer.rfind("}")
    if start < 0 or end < start:
        raise BadInput("the answer holds no JSON object")
    try:
        return msgspec.json.decode(answer[start : end + 1].encode(), type=shape_of(kind))
    except msgspec.MsgspecError as error:
        raise BadInput(f"the JSON does not fit the schema: {error}") from error


def _check(draft: Draft, known: set[str], limit: int) -> None:
    """Raise unless every claim cites ids that exist, every text and number is in bounds, the summary too."""
    told = msgspec.to_builtins(draft)
    for text in _texts(told):
        if not 0 < len(text) <= _LONGEST:
            raise BadInput(f"a text has {len(text)} characters; 1 to {_LONGEST} are allowed")
    for claim in (claim for name in _CLAIMS for claim in told.get(name, ())):
        sources = claim.get("sources") or claim.get("evidence") or [*filter(None, [claim.get("episode")])]
        if not 0 < len(sources) <= _MOST_SOURCES:
            raise BadInput(f"a claim cites {len(sources)} sources; 1 to {_MOST_SOURCES} are allowed")
        if invented := [name for name in sources if name not in known]:
            shown = ", ".join(repr(name[:40]) for name in dict.fromkeys(invented))
            raise BadInput(f"these sources do not exist: {shown[:200]}")
    if len(draft.told) > limit:
        raise BadInput(f"the summary has {len(draft.told)} characters; at most {limit} are allowed")


def _texts(value: Any) -> Iterator[str]:
    """Every text of JSON values; a number that is no share is refused on the way."""
    match value:
        case str():
            yield value
        case float() | int() if not 0 <= value <= 1:
            raise BadInput(f"{value} is no number between 0 and 1")
        case dict():
            if value.pop("extra", None):
                raise BadInput("`extra` is not asked for")
            yield from (text for item in value.values() for text in _texts(item))
        case list() | tuple():
            yield from (text for item in value for text in _texts(item))


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
