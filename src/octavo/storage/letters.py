"""Letters: passages whose vectors could not be made, how often that was tried, and when it is tried again.

They are kept in the manifest of the vectors, so that a passage and its letter are published together. They
hold no text: only a row's number and the class of the error.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

ATTEMPTS = 5
MODEL = -1  # the row of the letter that stands for the model itself, when it answers to nothing
_FIRST_SECONDS, _LONGEST_SECONDS = 60, 600
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Letter:
    """A row without a vector; `next_at` is in microseconds, and None for a dead letter."""

    row: int
    attempts: int
    error: str
    next_at: int | None

    @property
    def is_dead(self) -> bool:
        """Whether only making the index anew tries it again."""
        return self.next_at is None


Letters = tuple[Letter, ...]


def due(letters: Letters, now: datetime) -> list[int]:
    """The rows whose next attempt may be made."""
    reached = micros(now)
    return [
        letter.row
        for letter in letters
        if letter.row != MODEL and letter.next_at is not None and letter.next_at <= reached
    ]


def outage(letters: Letters, now: datetime) -> Letter | None:
    """The letter of a model that is not to be asked yet."""
    found = of(letters, MODEL)
    return found if found and found.next_at is not None and found.next_at > micros(now) else None


def without_model(letters: Letters) -> Letters:
    """The letters that are about passages."""
    return tuple(letter for letter in letters if letter.row != MODEL)


def settled(letters: Letters, rows: Iterable[int], failed: Mapping[int, str], now: datetime) -> Letters:
    """The letters after an attempt on some rows; the model has answered, or it is the row that failed."""
    tried = {MODEL, *rows}
    kept = [letter for letter in letters if letter.row not in tried]
    kept += [_again(of(letters, row), row, error, now) for row, error in failed.items()]
    return tuple(sorted(kept, key=lambda letter: letter.row))


def of(letters: Letters, row: int) -> Letter | None:
    """The letter of a row."""
    return next((letter for letter in letters if letter.row == row), None)


def micros(at: datetime) -> int:
    """A time as whole microseconds."""
    return (at - _EPOCH) // timedelta(microseconds=1)


def moment(value: int) -> datetime:
    """Whole microseconds as a time."""
    return _EPOCH + timedelta(microseconds=value)


def _again(before: Letter | None, row: int, error: str, now: datetime) -> Letter:
    """The letter after one more failure: later each time, and dead after the last; a model never is."""
    attempts = before.attempts + 1 if before else 1
    wait = min(_FIRST_SECONDS * 2 ** min(attempts - 1, 10), _LONGEST_SECONDS)
    is_last = attempts >= ATTEMPTS and row != MODEL
    next_at = None if is_last else micros(now + timedelta(seconds=wait))
    return Letter(row=row, attempts=attempts, error=error, next_at=next_at)
