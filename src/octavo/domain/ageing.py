"""Retention, pure: which episodes are past their age, number or size, and may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from msgspec import Struct

from octavo.domain.compression import is_milestone
from octavo.domain.memory import Memory
from octavo.domain.policy import RetentionPolicy

GROUPS: Mapping[str, str] = {"event": "events", "game_event": "events", "rlds": "rlds_episodes"}
CONVERSATIONS = "conversations"


class Limit(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """How old, how many and how large a group's files may get; None is no limit."""

    max_age_days: float | None = None
    max_files: int | None = None
    max_size_mb: float | None = None


def limits_of(policy: RetentionPolicy) -> Mapping[str, Limit]:
    """The limits that a policy sets."""
    return {
        CONVERSATIONS: Limit(max_age_days=policy.conversation_days, max_files=policy.conversation_files),
        "events": Limit(max_age_days=policy.event_days, max_size_mb=policy.event_megabytes),
        "rlds_episodes": Limit(max_age_days=policy.run_days, max_files=policy.run_files),
    }


LIMITS = limits_of(RetentionPolicy())


def overdue(
    episodes: Sequence[Memory], held: frozenset[str], now: datetime, limits: Mapping[str, Limit] | None = None
) -> dict[str, list[Memory]]:
    """Episodes that a limit lets go, by group; `held` are the ids that a core has summarised.

    A conversation goes whole or not at all, and only if a core holds all of it; a milestone never goes.
    """
    limits = LIMITS if limits is None else limits
    files: dict[str, dict[str, list[Memory]]] = {name: {} for name in limits}
    for memory in episodes:
        group = GROUPS.get(memory.category or "", CONVERSATIONS)
        if group in files and (memory.category in GROUPS or memory.category is None):
            unit = memory.sandbox or memory.id if group == CONVERSATIONS else memory.id
            files[group].setdefault(unit, []).append(memory)
    gone = {name: _over(list(units.values()), limits[name], now) for name, units in files.items()}
    return {
        name: [memory for unit in units if _may_go(name, unit, held) for memory in unit]
        for name, units in gone.items()
    }


def _over(units: list[list[Memory]], limit: Limit, now: datetime) -> list[list[Memory]]:
    """The units past a limit, the newest counted first."""
    over, size = [], 0
    newest_first = sorted(units, key=lambda unit: max(memory.at for memory in unit), reverse=True)
    for place, unit in enumerate(newest_first):
        size += sum(len(memory.text.encode()) + len(str(memory.data)) for memory in unit)
        age = now - max(memory.at for memory in unit)
        if (
            (limit.max_files is not None and place >= limit.max_files)
            or (limit.max_age_days is not None and age > timedelta(days=limit.max_age_days))
            or (limit.max_size_mb is not None and size > limit.max_size_mb * 1_000_000)
        ):
            over.append(unit)
    return over


def _may_go(group: str, unit: Sequence[Memory], held: frozenset[str]) -> bool:
    if any(is_milestone(memory) for memory in unit):
        return False
    return group != CONVERSATIONS or all(memory.id in held for memory in unit)
