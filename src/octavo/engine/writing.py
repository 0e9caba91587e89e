"""From what a caller hands in to a candidate that has passed the text checks."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any

from octavo.domain import episodes, gate
from octavo.domain.buffer import Revised, SetState, Wrote
from octavo.domain.memory import (
    STATE,
    Emotion,
    Link,
    Memory,
    Refusal,
    Turn,
    check_id,
    check_kind,
    check_source,
    check_time,
    check_unit,
    check_words,
    is_human,
    is_temporary,
    transcript,
)
from octavo.domain.outcomes import Setting
from octavo.domain.verdicts import Verdict
from octavo.engine.spine import Spine
from octavo.errors import BadInput, BadVector, HumanOnly
from octavo.storage import refusals

Feeling = str | Emotion | Mapping[str, Any] | None
Links = Mapping[str, str | Sequence[str]] | Sequence[Link]

_MADE = ("core", "sphere", "assembly")


@dataclass(frozen=True, slots=True, kw_only=True)
class Writer:
    """Who writes where: the part of every candidate that the payload cannot set."""

    spine: Spine
    actor: str
    scope: str
    sandbox: str | None = None
    visible: frozenset[str] | None = None

    def candidate(
        self,
        text: str,
        *,
        kind: str = "fact",
        topic: str | None = None,
        category: str | None = None,
        tags: Sequence[str] = (),
        source: str | None = None,
        at: datetime | None = None,
        salience: float | None = None,
        confidence: float | None = None,
        emotion: Feeling = None,
        links: Links = (),
        data: Mapping[str, Any] | None = None,
        id: str | None = None,  # noqa: A002  # the glossary's word
        vector: tuple[str, Sequence[float]] | None = None,
        supersedes: str | None = None,
        override: str | None = None,
    ) -> Wrote:
        """A memory to write, every field checked."""
        if check_kind(kind) in _MADE:
            raise BadInput(f"a {kind} is made by the engine, not written", hint="write what it is made of")
        self._may_override(override)
        sure = 1.0 if is_human(self.actor) else 0.8
        temporary = id is not None and is_temporary(id)
        memory = Memory(
            id=self.spine.new_id() if id is None or temporary else check_id(id),
            kind=check_kind(kind),
            text=_text(text),
            scope=self.scope,
            topic=_label(topic, "topic"),
            category=_label(category, "category"),
            tags=_tags(tags),
            source=check_source(source or ("manual" if is_human(self.actor) else "chat")),
            actor=self.actor,
            at=self.spine.now() if at is None else check_time(at),
            salience=0.5 if salience is None else check_unit(salience, "salience"),
            confidence=sure if confidence is None else check_unit(confidence, "confidence"),
            emotion=feeling(emotion),
            links=_links(links),
            session=self.sandbox,
            data=_data(data) | (self._vector(*vector) if vector is not None else {}),
        )
        if memory.kind == "episode":
            memory = replace(memory, turns=(Turn(speaker=_speaker(self.actor), text=text),))
            memory = replace(memory, text=transcript(memory.turns))
        return Wrote(
            memory=memory,
            alias=id if temporary else None,
            supersedes=None if supersedes is None else check_id(supersedes, "supersedes"),
            override=override,
        )

    def episode(self, given: Mapping[str, Any], *, level: str | None = None) -> Wrote:
        """A document's episode as a candidate; nothing of the caller's mapping is changed."""
        found = episodes.from_document(given)
        temporary = found.id is not None and is_temporary(found.id)
        memory = Memory(
            id=self.spine.new_id() if found.id is None or temporary else check_id(found.id),
            kind="episode",
            text=check_words(transcript(found.turns)),
            scope=self.scope,
            category=_label(given.get("category"), "category"),
            tags=_tags(found.tags),
            actor=self.actor,
            at=found.at or self.spine.now(),
            salience=found.salience,
            emotion=found.emotion,
            links=found.links,
            session=self.sandbox,
            turns=found.turns,
            data=_data(found.data),
        )
        if level is not None and self.spine.policy.sandbox.write_levels:
            memory = episodes.at_level(memory, level)
        return Wrote(memory=memory, alias=found.id if temporary else None)

    def state(self, name: str, data: Mapping[str, Any], *, patch: bool = False) -> SetState:
        """A named state to set; secrets in it are masked, nothing of it is refused."""
        if not isinstance(data, Mapping):
            raise BadInput(f"state {name!r} is {type(data).__name__}, not an object")
        wrote = self.candidate("", kind="register", topic=name, category=STATE, data=data)
        masked = replace(self.spine.policy.kinds.register, secrets="mask", noise=False)
        kinds = replace(self.spine.policy.kinds, register=masked)
        outcome = gate.check_text(wrote.memory, replace(self.spine.policy, kinds=kinds))
        memory = outcome if isinstance(outcome, Memory) else wrote.memory
        return SetState(id=memory.id, name=memory.topic or name, data=memory.data, at=memory.at, patch=patch)

    def revision(self, old: Memory | None, id_: str, changes: Mapping[str, Any]) -> Revised | Verdict:
        """New values for a memory, checked as if it were written anew; a missing one is left to the rules."""
        wanted = dict(changes)
        override = wanted.pop("override", None)
        self._may_override(override)
        fields_ = revision(wanted)
        base = old or Memory(id=check_id(id_), kind="fact", at=self.spine.now(), scope=self.scope)
        new = replace(base, **fields_)
        if old is not None and old.kind != "episode":
            outcome = self.checked(Wrote(memory=new, override=override))
            if isinstance(outcome, Verdict):
                return outcome
        return Revised(wanted=new, fields=tuple(fields_), at=self.spine.now(), override=override)

    def checked(self, wrote: Wrote) -> Wrote | Verdict:
        """The candidate after the text checks, masked where its kind allows, or the refusal."""
        outcome = gate.check_text(wrote.memory, self.spine.policy, overridden=wrote.override is not None)
        if isinstance(outcome, Memory):
            return wrote if outcome is wrote.memory else replace(wrote, memory=outcome)
        return self.refused(wrote.memory, outcome)

    @property
    def is_human(self) -> bool:
        """Whether a person writes."""
        return is_human(self.actor)

    def checked_text(self, memory: Memory) -> str:
        """The text of a memory to be proposed, or Refused."""
        outcome = self.checked(Wrote(memory=memory))
        if isinstance(outcome, Verdict):
            return outcome.or_raise().text
        return outcome.memory.text

    def refused(self, memory: Memory, stop: gate.Stop) -> Verdict:
        """Note a refusal in the account's own log of them, without a secret's text."""
        refusals.add(
            self.spine.store,
            Refusal(
                id=memory.id,
                check=stop.check,
                detail=stop.detail,
                kind=memory.kind,
                scope=memory.scope,
                text=None if stop.check in gate.SILENT else memory.text[:1200],
                confidence=memory.confidence,
                at=self.spine.now(),
            ),
            keep=self.spine.policy.gate.refusals_kept,
        )
        return Verdict(outcome="refused", check=stop.check, detail=stop.detail, advice=stop.advice)

    def setting(self, **more: Any) -> Setting:
        """What the rules may know about this writer."""
        return Setting(
            policy=self.spine.policy,
            actor=self.actor,
            at=self.spine.now(),
            new_id=self.spine.new_id,
            keyed=self.spine.keyed,
            scope=self.scope,
            sandbox=self.sandbox,
            visible=self.visible,
            **more,
        )

    def _vector(self, embedder: str, values: Sequence[float]) -> dict[str, Any]:
        """A vector of the caller's own: part of the truth, so it is checked and lives in the ledger."""
        numbers = all(isinstance(v, int | float) and math.isfinite(v) for v in values)
        if not values or not numbers:
            raise BadVector("a vector handed in must be a list of finite numbers")
        wanted = self.spine.dimensions.get(embedder, len(values))
        if len(values) != wanted:
            raise BadVector(f"the vector has {len(values)} dimensions, {embedder} makes {wanted}")
        return {"vector": {"embedder": check_id(embedder, "embedder"), "values": [float(v) for v in values]}}

    def _may_override(self, override: str | None) -> None:
        if override is None:
            return
        if not is_human(self.actor):
            raise HumanOnly(f"{self.actor} tried to override the gate")
        if not override.strip():
            raise BadInput("an override needs a reason", hint="say why the check does not apply here")


def revision(changes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields a revision may set, checked."""
    checks: dict[str, Callable[[Any], Any]] = {
        "text": _text,
        "topic": lambda value: _label(value, "topic"),
        "category": lambda value: _label(value, "category"),
        "tags": _tags,
        "salience": lambda value: check_unit(value, "salience"),
        "confidence": lambda value: check_unit(value, "confidence"),
        "emotion": feeling,
        "links": _links,
        "data": _data,
        "at": check_time,
    }
    hint = f"set {', '.join(checks)}"
    for name in changes:
        if name not in checks:
            raise BadInput(f"{name!r} cannot be revised", hint=hint)
    if not changes:
        raise BadInput("a revision must change something", hint=hint)
    return {name: checks[name](value) for name, value in changes.items()}


def feeling(value: Feeling) -> Emotion | None:
    """An emotion from a word, a mapping or an Emotion."""
    match value:
        case None | Emotion():
            return value
        case str():
            return Emotion(label=value)
        case Mapping():
            unknown = set(value) - {f.name for f in fields(Emotion)}
            if unknown:
                raise BadInput(
                    f"emotion has unknown keys {sorted(unknown)}", hint="use label, valence, intensity"
                )
            return Emotion(**value)
        case _:
            raise BadInput(
                f"emotion {value!r} cannot be used", hint="use a word or label, valence, intensity"
            )


def _speaker(actor: str) -> str:
    return "user" if is_human(actor) else "assistant"


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadInput(f"text is {type(value).__name__}, not text")
    return check_words(value)


def _label(value: Any, what: str) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or not value.strip() or len(value) > 200 or any(ord(c) < 32 for c in value):
        raise BadInput(f"{what} {value!r} cannot be used", hint="use a short line of text")
    return check_words(value.strip(), what)


def _tags(values: Sequence[str]) -> tuple[str, ...]:
    if isinstance(values, str):
        raise BadInput(f"tags {values!r} is one text", hint="hand in a list of tags")
    return tuple(dict.fromkeys(tag for value in values if (tag := _label(value, "tag"))))


def _links(given: Links) -> tuple[Link, ...]:
    if isinstance(given, Mapping):
        pairs = [
            (name, to) for name, many in given.items() for to in ([many] if isinstance(many, str) else many)
        ]
        given = [Link(name=name, to=to) for name, to in pairs]
    return tuple(
        Link(name=check_id(link.name, "link"), to=check_id(link.to, "link target")) for link in given
    )


def _data(given: Mapping[str, Any] | None) -> dict[str, Any]:
    if given is None:
        return {}
    if not isinstance(given, Mapping) or not all(isinstance(key, str) for key in given):
        raise BadInput(f"data is {type(given).__name__}, not an object with text keys")
    return {check_words(key, "data"): plain_json(value) for key, value in given.items()}


def plain_json(value: Any) -> Any:
    """A deep copy of plain JSON values; anything else is refused, so that nothing is pickled or lost."""
    match value:
        case None | bool() | int():
            return value
        case str():
            return check_words(value, "data")
        case float():
            if not math.isfinite(value):
                raise BadInput("data holds NaN or Inf, which JSON cannot say")
            return value
        case datetime():
            return episodes.iso(check_time(value))
        case Mapping():
            return {check_words(str(key), "data"): plain_json(item) for key, item in value.items()}
        case list() | tuple():
            return [plain_json(item) for item in value]
        case _:
            raise BadInput(f"data holds a {type(value).__name__}; only JSON values can be kept")
