"""The entries of a session buffer, and how turns pair into episodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from octavo.domain.memory import Emotion, Memory, Turn, transcript


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The sandbox begins: on which version, for which scope, by whom."""

    sandbox: str
    name: str
    scope: str
    parent: int
    actor: str
    at: datetime
    strict: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Spoke:
    """One turn; `episode` is the id of the episode it belongs to."""

    episode: str
    turn: Turn


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrote:
    """A candidate memory; `alias` is a document's temporary id for it.

    `supersedes` names the memory it replaces; `override` is a person's reason to pass a check.
    """

    memory: Memory
    alias: str | None = None
    supersedes: str | None = None
    override: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SetState:
    """A state file replaced, or patched by RFC 7396; `id` is used if the state is new."""

    id: str
    name: str
    data: Mapping[str, Any]
    at: datetime
    patch: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Revised:
    """New values for some fields of a memory: `wanted` carries them, `fields` names them."""

    wanted: Memory
    fields: tuple[str, ...]
    at: datetime
    override: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgot:
    """A memory that ends."""

    memory: str
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Used:
    """Memories that were recalled or used, and how well they served."""

    memories: tuple[str, ...]
    feedback: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Sealed:
    """Consolidation has begun; nothing is appended after this but Reopened or Discarded."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Reopened:
    """A consolidation failed; the sandbox goes on."""

    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Discarded:
    """The sandbox was thrown away."""

    at: datetime


Entry = Opened | Spoke | Wrote | SetState | Revised | Forgot | Used | Sealed | Reopened | Discarded

TAGS: dict[type[Any], str] = {
    Opened: "opened",
    Spoke: "turn",
    Wrote: "memory",
    SetState: "state",
    Revised: "revise",
    Forgot: "forget",
    Used: "use",
    Sealed: "sealed",
    Reopened: "reopened",
    Discarded: "discarded",
}
CLASSES: dict[str, type[Any]] = {tag: cls for cls, tag in TAGS.items()}


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionBuffer:
    """A sandbox's buffer as read: its opening line, what was written since, and how it stands."""

    opened: Opened
    entries: tuple[Entry, ...] = ()
    first_line: int = 1
    last_line: int = 0
    is_sealed: bool = False
    is_discarded: bool = False
    torn: int = field(default=0, compare=False)


def open_episode(entries: Iterable[Entry]) -> tuple[str, str] | None:
    """The episode that the next turn would join and the speaker who opened it, if one is open."""
    found: tuple[str, str] | None = None
    for entry in entries:
        if isinstance(entry, Spoke):
            found = after_turn(found, entry)
    return found


def after_turn(found: tuple[str, str] | None, spoke: Spoke) -> tuple[str, str] | None:
    """An episode closes with the first turn of another speaker than its opener."""
    if found is None or found[0] != spoke.episode:
        return (spoke.episode, spoke.turn.speaker)
    return found if spoke.turn.speaker == found[1] else None


def beyond(buffer: SessionBuffer, line: int) -> SessionBuffer:
    """The part of a buffer that a commit up to `line` has not taken yet."""
    kept = max(line + 1 - buffer.first_line, 0)
    return replace(buffer, entries=buffer.entries[kept:], first_line=buffer.first_line + kept)


def candidates(buffer: SessionBuffer) -> list[Wrote | SetState | Revised | Forgot | Used]:
    """What the buffer asks for, in order; an episode stands where its first turn was."""
    spoken: dict[str, list[Turn]] = {}
    for entry in buffer.entries:
        if isinstance(entry, Spoke):
            spoken.setdefault(entry.episode, []).append(entry.turn)
    found: list[Wrote | SetState | Revised | Forgot | Used] = []
    for entry in buffer.entries:
        match entry:
            case Spoke() if entry.episode in spoken:
                found.append(Wrote(memory=episode(entry.episode, spoken.pop(entry.episode), buffer.opened)))
            case Wrote() | SetState() | Revised() | Forgot() | Used():
                found.append(entry)
    return found


def episode(id_: str, turns: list[Turn], opened: Opened) -> Memory:
    """An episode of these turns; the most salient turn lends it salience and emotion."""
    rated = [turn for turn in turns if turn.salience is not None]
    felt: list[Emotion] = [turn.emotion for turn in turns if turn.emotion is not None]
    return Memory(
        id=id_,
        kind="episode",
        text=transcript(turns),
        scope=opened.scope,
        actor=opened.actor,
        at=turns[0].at or opened.at,
        salience=max((turn.salience or 0.0 for turn in rated), default=0.5),
        emotion=max(felt, key=lambda e: e.intensity or 0.0) if felt else None,
        session=opened.sandbox,
        turns=tuple(turns),
    )


def patch(target: Any, change: Any) -> Any:
    """JSON merge patch (RFC 7396): objects merge key by key, null removes, anything else replaces."""
    if not isinstance(change, Mapping):
        return change
    merged = dict(target) if isinstance(target, Mapping) else {}
    for key, value in change.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = patch(merged.get(key), value)
    return merged
