"""Retention, pure: which episodes are past their age, number or size, and may go."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from octavo.domain.compression import is_milestone
from octavo.domain.memory import Memory
from octavo.domain.policy import RetentionPolicy

CONVERSATIONS = "conversations"
_GROUPS = {None: CONVERSATIONS, "event": "events", "game_event": "events", "rlds": "rlds_episodes"}


def limits_of(policy: RetentionPolicy) -> dict[str, dict[str, float]]:
    """The limits of each group that a policy sets, as the seed writes them."""
    limits = {
        CONVERSATIONS: {"max_age_days": policy.conversation_days, "max_files": policy.conversation_files},
        "events": {"max_age_days": policy.event_days, "max_size_mb": policy.event_megabytes},
        "rlds_episodes": {"max_age_days": policy.run_days, "max_files": policy.run_files},
    }
    return {
        group: {name: most for name, most in some.items() if most is not None}
        for group, some in limits.items()
    }


def overdue(
    episodes: Sequence[Memory], held: frozenset[str], now: datetime, policy: RetentionPolicy
) -> dict[str, list[Memory]]:
    """Episodes that a limit lets go, by group; `held` are the ids that a core has summarised.

    A conversation goes whole or not at all, and only if a core holds all of it; a milestone never goes.
    """
    files: dict[str, dict[str, list[Memory]]] = {group: {} for group in limits_of(policy)}
    for memory in (memory for memory in episodes if memory.category in _GROUPS):
        group = _GROUPS[memory.category]
        unit = (memory.sandbox or memory.id) if group == CONVERSATIONS else memory.id
        files[group].setdefault(unit, []).append(memory)
    gone: dict[str, list[Memory]] = {}
    for group, limits in limits_of(policy).items():
        over = _over(list(files[group].values()), limits, now)
        if group == CONVERSATIONS:
            over = [unit for unit in over if held.issuperset(memory.id for memory in unit)]
        gone[group] = [memory for unit in over if not any(map(is_milestone, unit)) for memory in unit]
    return gone


def _over(units: list[list[Memory]], limits: Mapping[str, float], now: datetime) -> list[list[Memory]]:
    """The units past a limit, the newest counted first."""
    over, size = [], 0
    for count, unit in enumerate(sorted(units, key=_last, reverse=True), start=1):
        size += sum(len(memory.text.encode()) + len(str(memory.data)) for memory in unit)
        reached = {
            "max_files": count,
            "max_age_days": (now - _last(unit)) / timedelta(days=1),
            "max_size_mb": size / 1_000_000,
        }
        if any(reached[name] > most for name, most in limits.items()):
            over.append(unit)
    return over


def _last(unit: Sequence[Memory]) -> datetime:
    return max(memory.at for memory in unit)
