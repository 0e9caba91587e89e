"""The entries of a session buffer, and how turns pair into episodes.

Every entry is its writer's: `actor` names who wrote it if that is not who opened the sandbox.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain.memory import Emotion, Memory, Turn, is_human, transcript


class Opened(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The sandbox begins: on which version, for which scope, by whom."""

    sandbox: str
    name: str
    scope: str
    parent: int
    actor: str
    at: datetime
    strict: bool = False


class Spoke(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One turn; `episode` is the id of the episode it belongs to."""

    episode: str
    turn: Turn
    actor: str | None = None


class Wrote(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A candidate memory; `alias` is a document's temporary id for it.

    `supersedes` names the memory it replaces; `override` is a person's reason to pass a check.
    """

    memory: Memory
    alias: str | None = None
    supersedes: str | None = None
    override: str | None = None


class SetState(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A state file replaced, or patched by RFC 7396; `id` is used if the state is new."""

    id: str
    name: str
    data: Mapping[str, Any]
    at: datetime
    patch: bool = False
    actor: str | None = None


class Revised(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """New values for some fields of a memory: `wanted` carries them, `fields` names them."""

    wanted: Memory
    fields: tuple[str, ...]
    at: datetime
    override: str | None = None
    actor: str | None = None


class Forgot(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A memory that ends."""

    memory: str
    at: datetime
    actor: str | None = None


class Used(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Memories that were recalled or used, and how well they served."""

    memories: tuple[str, ...]
    feedback: float = 0.0
    actor: str | None = None


class Sealed(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Consolidation has begun; nothing is appended after this but Reopened or Discarded."""

    at: datetime


class Reopened(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A consolidation failed; the sandbox goes on."""

    at: datetime


class Discarded(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The sandbox was thrown away."""

    at: datetime


Entry = Opened | Spoke | Wrote | SetState | Revised | Forgot | Used | Sealed | Reopened | Discarded

TAGS: dict[type[Any], str] = {
    Opened: "opened", Spoke: "turn", Wrote: "memory", SetState: "state", Revised: "revise", Forgot: "forget",
    Used: "use", Sealed: "sealed", Reopened: "reopened", Discarded: "discarded",
}  # fmt: skip
CLASSES: dict[str, type[Any]] = {tag: cls for cls, tag in TAGS.items()}


class SessionBuffer(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """A sandbox's buffer as read: its opening line, what was written since, and how it stands."""

    opened: Opened
    entries: tuple[Entry, ...] = ()
    last_line: int = 0
    is_sealed: bool = False
    is_discarded: bool = False
    torn: int = 0


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


def candidates(buffer: SessionBuffer, after: int = 0) -> list[Wrote | SetState | Revised | Forgot | Used]:
    """What the buffer asks for behind a line that a commit has taken, in order.

    An episode stands where its first turn was.
    """
    turns: dict[str, list[Turn]] = {}
    writers: dict[str, str] = {}
    opened, entries = buffer.opened, buffer.entries[after:]
    for entry in entries:
        if isinstance(entry, Spoke):
            turns.setdefault(entry.episode, []).append(entry.turn)
            actor = entry.actor or opened.actor
            if not is_human(actor):  # an episode is a person's own only if every turn of it is
                writers.setdefault(entry.episode, actor)
    asked: list[Wrote | SetState | Revised | Forgot | Used] = []
    for entry in entries:
        match entry:
            case Spoke() if entry.episode in turns:
                own = replace(opened, actor=writers.get(entry.episode) or entry.actor or opened.actor)
                asked.append(Wrote(memory=episode(entry.episode, turns.pop(entry.episode), own)))
            case SetState() | Revised() | Forgot() | Used():
                asked.append(entry if entry.actor else replace(entry, actor=opened.actor))
            case Wrote():
                asked.append(entry)
    return asked


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
        sandbox=opened.sandbox,
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
