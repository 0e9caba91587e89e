"""What is counted in an account: how much there is."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct

from octavo.domain.memory import UNCOUNTED
from octavo.storage.state_view import DbView


class Stats(Struct, frozen=True, kw_only=True):
    """How much there is, counted without looking at every memory; `damage`: what was seen of it."""

    account: str
    version: int
    memories: int
    episodes: int
    by_kind: Mapping[str, int]
    by_scope: Mapping[str, int]
    by_category: Mapping[str, int]
    sessions: Mapping[str, int]
    proposals: int
    damage: tuple[str, ...] = ()
    assemblies: Mapping[str, Any] | None = None


def stats(view: DbView, account: str, sees: Callable[[str], bool]) -> Stats:
    """What there is at a version, of the scopes that a handle sees."""
    rows = [row for row in view.tallies() if sees(row[1])]
    sessions = {scope: view.sessions(scope) for _, scope, _, _ in rows}
    return Stats(
        account=account,
        version=view.version,
        memories=sum(n for *_, n in rows),
        episodes=sum(n for kind, _, category, n in rows if kind == "episode" and category not in UNCOUNTED),
        by_kind=_sums((kind, n) for kind, _, _, n in rows),
        by_scope=_sums((scope, n) for _, scope, _, n in rows),
        by_category=_sums((category, n) for _, _, category, n in rows if category),
        sessions={scope: n for scope, n in sorted(sessions.items()) if n},
        proposals=sum(1 for p in view.proposals() if sees(p.memory.scope)),
    )


def _sums(pairs: Iterable[tuple[str, int]]) -> dict[str, int]:
    totals: Counter[str] = Counter()
    for name, n in pairs:
        totals[name] += n
    return dict(sorted(totals.items()))
