"""The one record type, its eight kinds, and the other changes a version can hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Literal, TypeGuard, get_args

from msgspec import Struct, field

from octavo.domain.patterns import pattern
from octavo.errors import BadInput

Kind = Literal["episode", "fact", "register", "canon", "skill", "core", "sphere", "assembly"]
Layer = Literal["episodic", "semantic", "procedural"]
Action = Literal["write", "forget", "merge", "promote", "retire"]
Source = Literal["chat", "manual", "tool", "operator", "promotion"]

KINDS: tuple[Kind, ...] = get_args(Kind)
LAYERS: tuple[Layer, ...] = get_args(Layer)
SOURCES: tuple[Source, ...] = get_args(Source)
SHARED = "shared"
STATE = "state"  # the category of a register that holds raw data under a name
UNCOUNTED = ("sensory", "event")  # categories of episodes that are no conversation
COMPARED = ("fact", "register", "canon", "skill")  # kinds whose texts are looked up by likeness

SCOPE = pattern(r"[a-z0-9][a-z0-9_.-]{0,63}")
_ID = pattern(r"[A-Za-z0-9][A-Za-z0-9_.:@-]{0,95}")
_ACTOR = pattern(r"system|agent|tool|(human|agent|tool):[^\s:\x00-\x1f\x7f][^\x00-\x1f\x7f]{0,63}")
_TEMPORARY = pattern(r"(ep_)?te?mp[_-]", re.IGNORECASE)


class Emotion(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How something felt: a word for it, -1..1 from bad to good, 0..1 from faint to strong."""

    label: str | None = None
    valence: float | None = None
    intensity: float | None = None


class Link(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A named edge to another memory (`part`, `merged_from`, `about`, `evidence`, `causal` …)."""

    name: str
    to: str


class Turn(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What one speaker said; `data` keeps whatever else a document's turn carries."""

    speaker: str
    text: str
    at: datetime | None = None
    salience: float | None = None
    emotion: Emotion | None = None
    data: Mapping[str, Any] = field(default_factory=dict)


class Memory(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A remembered thing at one revision; never changed, only superseded or tombstoned.

    `turns` are an episode's; `approved` names the person who approved a skill or a belief and is set
    by the engine alone; `sandbox` names the one it came from.
    """

    id: str
    rev: int = 1
    kind: Kind
    text: str = ""
    scope: str = SHARED
    topic: str | None = None
    category: str | None = None
    tags: tuple[str, ...] = ()
    source: Source = "chat"
    actor: str = "agent"
    at: datetime
    salience: float = 0.5
    confidence: float = 0.8
    emotion: Emotion | None = None
    links: tuple[Link, ...] = ()
    sandbox: str | None = field(default=None, name="session")
    turns: tuple[Turn, ...] = ()
    data: Mapping[str, Any] = field(default_factory=dict)
    approved: str | None = None
    gone: bool = False

    @property
    def layer(self) -> Layer:
        """The layer follows from the kind; only an approved skill is procedural."""
        if self.kind == "episode":
            return "episodic"
        return "procedural" if self.kind == "skill" and self.approved is not None else "semantic"

    def linked(self, name: str) -> tuple[str, ...]:
        """The ids this memory points to under one name."""
        return tuple(link.to for link in self.links if link.name == name)


class Proposal(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A change that waits for a person's yes; `base_rev` is what it was based on (0: nothing)."""

    id: str
    action: Action
    memory: Memory
    base_rev: int = 0
    reason: str = ""
    by: str = "system"
    at: datetime


class Decision(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """What became of a proposal, and by whom."""

    proposal: str
    outcome: Literal["approved", "declined", "expired"]
    by: str
    at: datetime
    reason: str = ""


class Rejection(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A value that a person refused, kept as a keyed hash; `lifted` takes it back.

    `look` is the same for what the value looks like, so that dressing it up does not bring it in.
    """

    key: str
    scope: str
    by: str
    at: datetime
    reason: str = ""
    lifted: bool = False
    look: str | None = None


class Use(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Recorded uses of a memory: how often, and feedback between -1 and 1."""

    memory: str
    count: int = 1
    feedback: float = 0.0


class Refusal(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A candidate that stayed out: which check, why, and its text unless that is the secret."""

    id: str
    check: str
    detail: str
    kind: str
    scope: str
    text: str | None = None
    confidence: float | None = None
    at: datetime


class Merge(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A restatement that joined an existing memory; the losing wording is kept here."""

    id: str
    into: str
    rev: int
    text: str
    confidence: float


class Clash(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Two writers changed the same thing since the sandbox's parent; the later commit won."""

    id: str
    memory: str
    parent_rev: int
    found_rev: int
    detail: str


class Redaction(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The erasure of a memory's text from every version; `key` recognises the text again.

    It holds in its `scope`, everywhere if that is shared or (in older accounts) not said.
    """

    memory: str
    key: str
    by: str
    at: datetime
    reason: str = ""
    swept: bool = False
    scope: str | None = None


Change = Memory | Proposal | Decision | Rejection | Use | Refusal | Merge | Clash | Redaction


def transcript(turns: Sequence[Turn]) -> str:
    """The text of an episode: one line a turn."""
    return "\n".join(f"{turn.speaker}: {turn.text}" for turn in turns)


def check_scope(scope: str) -> str:
    """Return the scope, or raise: names are lower-case, and a wildcard is no scope."""
    if not isinstance(scope, str) or not SCOPE.fullmatch(scope):
        raise BadInput(
            f"scope {scope!r} cannot be used",
            hint="a scope is `shared` or an agent's name: lower-case letters, digits, '_', '.', '-'; "
            "at most 64 of them",
        )
    return scope


def check_id(value: str, what: str = "id") -> str:
    """Return the id, or raise: ids are short, plain and safe in paths and queries."""
    if not is_id(value):
        raise BadInput(
            f"{what} {value!r} cannot be used",
            hint="an id has at most 96 letters, digits, '_', '.', ':', '@', '-'; `octavo recall` tells them",
        )
    return value


def is_id(value: object) -> TypeGuard[str]:
    """Whether a value can be an id."""
    return isinstance(value, str) and _ID.fullmatch(value) is not None


def check_actor(actor: str) -> str:
    """Return the actor, or raise with the forms there are."""
    if not isinstance(actor, str) or not _ACTOR.fullmatch(actor):
        raise BadInput(
            f"actor {actor!r} cannot be used", hint="use human:<name>, agent:<name>, tool:<name> or system"
        )
    return actor


def check_time(value: datetime, what: str = "at") -> datetime:
    """Return the time in UTC, or raise if it is not aware."""
    if not isinstance(value, datetime) or value.tzinfo is None:
        raise BadInput(
            f"{what} {value!r} has no time zone", hint="hand in an aware datetime, for instance UTC"
        )
    try:
        return value.astimezone(UTC)
    except OverflowError as error:  # at the ends of the calendar a zone reaches beyond them
        raise BadInput(f"{what} {value} lies outside the years 1 to 9999", hint="say it in UTC") from error


def is_human(actor: str) -> bool:
    """Whether the actor is a person."""
    return actor == "human" or actor.startswith("human:")


def is_temporary(value: str) -> bool:
    """Whether an id is a document's placeholder, to be replaced when the memory is written."""
    return _TEMPORARY.match(value) is not None
