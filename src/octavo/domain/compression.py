"""The odometer of compression: where a session stands, what becomes due when it closes, and its names.

Everything follows from the number of closed sessions of a scope, so no counter can drift. A session's
ordinal starts at 1; its position is what the counters showed before it closed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Literal

from msgspec import Struct

from octavo.domain.memory import SHARED, Kind, Memory, check_scope
from octavo.domain.patterns import pattern
from octavo.errors import BadInput, BadPolicy

Mode = Literal["background", "immediate", "manual"]

_ID = pattern(r"([a-z]+)_(\d{3,}(?:_\d{3,})*)(?:@(.+))?")


class Level(Struct, frozen=True, kw_only=True):
    """One row of the table: `radix` members fold into one memory of this kind."""

    kind: Kind
    name: str
    letters: str
    radix: int = 8
    summary_length: int = 600

    def __post_init__(self) -> None:
        if self.radix < 2:
            raise BadPolicy(
                f"compression level {self.name!r} folds {self.radix} into one; it takes 2 or more"
            )


class CompressionPolicy(Struct, frozen=True, kw_only=True):
    """How sessions fold; `levels` stay as they are once the first core of an account is made.

    A milestone's salience exceeds `milestone_salience`; a session whose average salience reaches
    `routine_salience` never has originals retired, and none has unless `retire` is set.
    """

    levels: tuple[Level, ...] = (
        Level(kind="core", name="core", letters="C"),
        Level(kind="sphere", name="sphere", letters="SP", summary_length=800),
    )
    digest_length: int = 280
    milestone_salience: float = 0.8
    routine_salience: float = 0.7
    mode: Mode = "background"
    retire: bool = False
    attempts: int = 3


class Due(Struct, frozen=True, kw_only=True):
    """A memory that compression shall make: its place, and the sessions and members it folds."""

    kind: Kind
    id: str
    scope: str
    sequence: int
    level: Level
    sessions: range
    members: tuple[str, ...]


DEFAULT = CompressionPolicy()


def counters(closed: int, policy: CompressionPolicy = DEFAULT) -> dict[str, int]:
    """The seed's counters after that many closed sessions."""
    if closed < 0:
        raise BadInput(f"{closed} closed sessions cannot be counted")
    shown, rest = {}, closed
    names = ("session", *(level.name for level in policy.levels))
    for name, level in zip(names, policy.levels, strict=False):
        rest, shown[f"{name.capitalize()}_seq"] = divmod(rest, level.radix)
    shown[f"{names[-1].capitalize()}_seq"] = rest
    return {**shown, "Total_sessions": closed}


def position(ordinal: int, policy: CompressionPolicy = DEFAULT) -> dict[str, int]:
    """The `compression_meta` of a session: the counters before its own increment."""
    shown = counters(_checked(ordinal) - 1, policy)
    return {name.lower(): value for name, value in shown.items() if name != "Total_sessions"}


def display_name(developer: str, ordinal: int, policy: CompressionPolicy = DEFAULT) -> str:
    """The seed's name of a session memory, counted from 1: the sixth is `<developer>_SP1C1_SS6`."""
    place = position(ordinal, policy)
    above = "".join(f"{level.letters}{place[f'{level.name}_seq'] + 1}" for level in reversed(policy.levels))
    return f"{developer}_{above}_SS{place['session_seq'] + 1}"


def identify(depth: int, sequence: int, scope: str = SHARED, policy: CompressionPolicy = DEFAULT) -> str:
    """The id of the sequence-th memory of a level (`core_000_001`); a private scope is added to it."""
    digits, rest = [], sequence
    for level in policy.levels[depth + 1 :]:
        rest, digit = divmod(rest, level.radix)
        digits.append(digit)
    numbers = "_".join(f"{number:03d}" for number in (rest, *reversed(digits)))
    suffix = "" if scope == SHARED else f"@{scope}"
    return f"{policy.levels[depth].name}_{numbers}{suffix}"


def recognise(memory_id: str, policy: CompressionPolicy = DEFAULT) -> Due | None:
    """What an id of compression stands for, or None if it is not one."""
    parts = _ID.fullmatch(memory_id)
    names = [level.name for level in policy.levels]
    if not parts or parts[1] not in names:
        return None
    depth = names.index(parts[1])
    sequence = 0
    for number, level in zip(
        parts[2].split("_"), (None, *reversed(policy.levels[depth + 1 :])), strict=False
    ):
        sequence = sequence * (level.radix if level else 1) + int(number)
    made = _due(depth, sequence, parts[3] or SHARED, policy)
    return made if made.id == memory_id else None


def due(closed: int, scope: str = SHARED, policy: CompressionPolicy = DEFAULT) -> tuple[Due, ...]:
    """What becomes due when the closed-th session of a scope closes, lower level first."""
    rows = []
    for depth in range(len(policy.levels)):
        span = _span(depth, policy)
        if _checked(closed) % span == 0:
            rows.append(_due(depth, closed // span - 1, check_scope(scope), policy))
    return tuple(rows)


def backlog(
    closed: int, scope: str = SHARED, policy: CompressionPolicy = DEFAULT, *, after: int = 0
) -> Iterator[Due]:
    """Everything that became due by the closed-th session and after an earlier one, in order."""
    step = policy.levels[0].radix
    for ordinal in range(after // step * step + step, closed + 1, step):
        yield from due(ordinal, scope, policy)


def is_milestone(episode: Memory, policy: CompressionPolicy = DEFAULT) -> bool:
    """Whether an episode matters so much that it stays whole."""
    return episode.salience > policy.milestone_salience


def retirable(episodes: Sequence[Memory], policy: CompressionPolicy = DEFAULT) -> tuple[str, ...]:
    """Which originals of one session may go to the archive once its core is durable and verified."""
    if not policy.retire or not episodes:
        return ()
    if sum(episode.salience for episode in episodes) / len(episodes) >= policy.routine_salience:
        return ()
    return tuple(episode.id for episode in episodes if not is_milestone(episode, policy))


def _due(depth: int, sequence: int, scope: str, policy: CompressionPolicy) -> Due:
    level, span = policy.levels[depth], _span(depth, policy)
    below = range(sequence * level.radix, (sequence + 1) * level.radix)
    return Due(
        kind=level.kind,
        id=identify(depth, sequence, scope, policy),
        scope=scope,
        sequence=sequence,
        level=level,
        sessions=range(sequence * span + 1, (sequence + 1) * span + 1),
        members=tuple(identify(depth - 1, member, scope, policy) for member in below) if depth else (),
    )


def _span(depth: int, policy: CompressionPolicy) -> int:
    return prod(level.radix for level in policy.levels[: depth + 1])


def _checked(ordinal: int) -> int:
    if ordinal < 1:
        raise BadInput(f"session ordinal {ordinal} cannot be used", hint="the first session is 1")
    return ordinal
