"""Freshness: what the index holds of a memory, since when, and how far it is behind the ledger."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct


class Lag(Struct, frozen=True, kw_only=True):
    """How far the index is behind: versions without words, passages without a vector.

    `waiting` of these passages could not be embedded and are tried again later, `dead` ones were given up.
    """

    versions: int
    passages: int
    waiting: int = 0
    dead: int = 0
    verified_at: datetime | None = None


class Freshness(Struct, frozen=True, kw_only=True):
    """What the index holds of a memory: the newest revision it knows, and when the vectors of that came.

    `vector_index_updated_at` is None unless every passage of that revision has its vector; only indexing
    changes it, writing the memory does not. `age_seconds` counts from then, or from `verified_at` if the
    vectors were verified since; it has drifted when that is longer than the policy allows.
    """

    memory: str
    rev: int
    indexed_rev: int | None = None
    vector_index_updated_at: datetime | None = None
    verified_at: datetime | None = None
    age_seconds: float | None = None
    is_drifted: bool = False
    drift_reason: str | None = None  # of an assembly: `revision`, `age` or `no_vector`

    @property
    def is_fresh(self) -> bool:
        """Whether the index holds the current revision, and vectors of it that have not drifted."""
        return self.has_words and not self.is_drifted

    @property
    def has_words(self) -> bool:
        """Whether the current revision is found by words."""
        return self.indexed_rev == self.rev

    @property
    def has_vector(self) -> bool:
        """Whether the current revision is found by meaning."""
        return self.has_words and self.vector_index_updated_at is not None
