"""Retries: passages whose vectors could not be made, how often that was tried, and when it is tried again.

They are kept in the manifest of the vectors, so that a passage and its retry are published together. They
hold no text: only a row's number and the class of the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from msgspec import Struct
from msgspec.structs import replace

from octavo.storage.codec import micros

ATTEMPTS = 5
MODEL = -1  # the row of the retry that stands for the model itself, when it answers to nothing
_FIRST_SECONDS, _LONGEST_SECONDS = 60, 600


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
    waiting = [(retry.row, retry.next_at) for retry in without_model(retries)]
    return [row for row, next_at in waiting if next_at is not None and next_at <= micros(now)]


def outage(retries: Retries, now: datetime) -> Retry | None:
    """The retry of a model that is not to be asked yet."""
    models = (retry for retry in retries if retry.row == MODEL)
    return next((retry for retry in models if (retry.next_at or 0) > micros(now)), None)


def without_model(retries: Retries) -> Retries:
    """The retries that are about passages."""
    return tuple(retry for retry in retries if retry.row != MODEL)


def after_attempt(retries: Retries, rows: Iterable[int], failed: Mapping[int, str], now: datetime) -> Retries:
    """The retries after an attempt on some rows; the model has answered, or it is the row that failed.

    What failed once more is tried later each time, and is dead after the last; a model never is.
    """
    tried, before = {MODEL, *rows}, {retry.row: retry.attempts for retry in retries}
    after = [retry for retry in retries if retry.row not in tried]
    for row, error in failed.items():
        attempts = before.get(row, 0) + 1
        wait = min(_FIRST_SECONDS * 2 ** min(attempts - 1, 10), _LONGEST_SECONDS)
        is_last = attempts >= ATTEMPTS and row != MODEL
        next_at = None if is_last else micros(now + timedelta(seconds=wait))
        after.append(Retry(row=row, attempts=attempts, error=error, next_at=next_at))
    return tuple(sorted(after, key=lambda retry: retry.row))


def made_due(retries: Retries, now: datetime) -> Retries:
    """The retries with everything to be tried at once, dead letters as if for the first time."""
    return tuple(
        replace(retry, next_at=micros(now), attempts=0 if retry.is_dead else retry.attempts)
        for retry in without_model(retries)
    )
