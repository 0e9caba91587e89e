"""A clock that stands still until it is told otherwise."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_MORNING = datetime(2026, 1, 5, 9, 0, tzinfo=UTC)


class SettableClock:
    """The time as a test says it; calling it reads it."""

    def __init__(self, now: datetime = _MORNING) -> None:
        self.now = now

    def __call__(self) -> datetime:
        return self.now

    def set(self, now: datetime) -> None:
        """Make it this time, earlier or later."""
        self.now = now

    def advance(self, **amount: float) -> datetime:
        """Move on by hours, minutes, seconds …; returns the new time."""
        self.now += timedelta(**amount)
        return self.now
