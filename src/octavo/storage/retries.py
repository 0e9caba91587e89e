"""Retries: passages whose vectors could not be made, how often that was tried, and when it is tried again.

They are kept in the manifest of the vectors, so that a passage and its retry are published together. They
hold no text: only a row's number and the class of the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

ATTEMPTS = 5
MODEL = -1  # the row of the retry that stands for the model itself, when it answers to nothing
_FIRST_SECONDS, _LONGEST_SECONDS = 60, 600
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Retry(Struct, frozen=True, kw_only=True):
    """A row without a vector; `next_at` is in microseconds, and None for a dead letter."""

    row: int
    attempts: int
    error: str
    next_at: int | None

    @property
    def is_dead(self) -> bool:
        """Whether it is tried again only when somebody forces it."""
        return self.next_at is None


Retries = tuple[Retry, ...]


def due(retries: Retries, now: datetime) -> list[int]:
    """The rows whose next attempt may be made."""
    reached = micros(now)
    return [
        retry.row
        for retry in retries
        if retry.row != MODEL and retry.next_at is not None and retry.next_at <= reached
    ]


def outage(retries: Retries, now: datetime) -> Retry | None:
    """The retry of a model that is not to be asked yet."""
    found = of(retries, MODEL)
    return found if found and found.next_at is not None and found.next_at > micros(now) else None


def without_model(retries: Retries) -> Retries:
    """The retries that are about passages."""
    return tuple(retry for retry in retries if retry.row != MODEL)


def after_attempt(retries: Retries, rows: Iterable[int], failed: Mapping[int, str], now: datetime) -> Retries:
    """The retries after an attempt on some rows; the model has answered, or it is the row that failed."""
    tried = {MODEL, *rows}
    kept = [retry for retry in retries if retry.row not in tried]
    kept += [_again(of(retries, row), row, error, now) for row, error in failed.items()]
    return tuple(sorted(kept, key=lambda retry: retry.row))


def made_due(retries: Retries, now: datetime) -> Retries:
    """The retries with everything to be tried at once, dead letters as if for the first time."""
    reached = micros(now)
    return tuple(
        replace(retry, next_at=reached, attempts=0 if retry.is_dead else retry.attempts)
        for retry in without_model(retries)
    )


def of(retries: Retries, row: int) -> Retry | None:
    """The retry of a row."""
    return next((retry for retry in retries if retry.row == row), None)


def micros(at: datetime) -> int:
    """A time as whole microseconds."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def moment(value: int) -> datetime:
    """Whole microseconds as a time."""
    return _EPOCH + timedelta(microseconds=value)


def _again(before: Retry | None, row: int, error: str, now: datetime) -> Retry:
    """The retry after one more failure: later each time, and dead after the last; a model never is."""
    attempts = before.attempts + 1 if before else 1
    wait = min(_FIRST_SECONDS * 2 ** min(attempts - 1, 10), _LONGEST_SECONDS)
    is_last = attempts >= ATTEMPTS and row != MODEL
    next_at = None if is_last else micros(now + timedelta(seconds=wait))
    return Retry(row=row, attempts=attempts, error=error, next_at=next_at)
