"""What is counted in an account: how much there is, and the sessions that have closed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Stats:
    """How much there is, counted without looking at every memory."""

    account: str
    version: int
    memories: int
    episodes: int
    by_kind: Mapping[str, int]
    by_scope: Mapping[str, int]
    by_category: Mapping[str, int]
    sessions: Mapping[str, int]
    proposals: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """A closed session: its ordinal within its scope, the version it became, its place (compression_meta)."""

    ordinal: int
    scope: str
    sandbox: str
    version: int
    at: datetime
    position: Mapping[str, int]
