"""Operations of recall: what comes back, and why."""

# ruff: noqa: A002  # a memory's id is `id`, a brief's format `format`, in every door
from __future__ import annotations

from collections.abc import Collection
from typing import Annotated, Any

from msgspec.structs import asdict

from octavo.domain.hits import Hit
from octavo.doors.operations.table import operation
from octavo.engine.account import Account
from octavo.engine.reading import Reader


@operation('octavo recall "where does she live?" --why', indexes=True, like=Reader.recall)
def recall(
    reader: Reader,
    *,
    why: Annotated[bool, "Show the parts of every score and where it comes from."] = False,
    once: Annotated[bool, "Take no second look, where the extra `rerank` would."] = False,
    **said: Any,
) -> dict[str, Any]:
    """Find the memories that answer a question, best first."""
    hits = reader.recall(**said, rerank=not once)
    drifted = reader.drifted(hits) if why else None
    return {
        "hits": [_told(hit, drifted) for hit in hits],
        "notes": hits.notes,
        "trail": hits.trail,
        "orders": hits.orders,
        "explained": why,
    }


def _told(hit: Hit, drifted: Collection[str] | None) -> dict[str, Any]:
    """A hit with what it derives from its fields: the text that matched, and the reasons in words.

    To find out what has drifted takes as long as the recall itself, so it is told with the reasons alone.
    """
    return {
        "memory": hit.memory,
        "turn": hit.turn,
        "text": hit.text,
        "score": hit.score,
        "parts": hit.parts,
        "why": hit.why,
        "reasons": [{"part": words, "value": value} for value, words in hit.reasons],
        "version": hit.version,
        "is_fresh": hit.is_fresh,
        "is_drifted": None if drifted is None else hit.memory.id in drifted,
        "notes": hit.notes,
        "replaced": hit.replaced,
    }


explain = operation(
    'octavo explain "where does she live?" 01kajx2f6w9m4d8c7t5s', indexes=True, result="explanation"
)(Reader.explain)


brief = operation('octavo brief "travel plans" --budget 800', indexes=True)(Reader.brief)
orders = operation("octavo orders", result="orders")(Reader.orders)
end_order = operation("octavo end-order 01kajx2f6w9m4d8c7t5s --turn 2", writes=True, result="verdicts")(
    Account.end_order
)
alias = operation("octavo alias Kate Emi", writes=True)(Account.alias)


@operation("octavo freshness 01kajx2f6w9m4d8c7t5s")
def freshness(
    account: Account, id: Annotated[str | None, "The memory's id; none for the whole index."] = None
) -> dict[str, Any]:
    """Show what the index holds of a memory; without an id, how far it is behind."""
    if id is None:
        return {"version": account.version, **asdict(account.lag())}
    held = account.freshness(id)
    derived = {name: getattr(held, name) for name in ("is_fresh", "has_words", "has_vector")}
    return {**asdict(held), **derived}


@operation("octavo catch-up", writes=True, indexes=True, long=True, like=Account.catch_up, result="version")
def catch_up(account: Account, **said: Any) -> int:
    """Bring the index up to the newest version."""
    account.catch_up(**said)
    return account.version


@operation("octavo reindex", writes=True, indexes=True, long=True, like=Account.reindex, result="version")
def reindex(account: Account, **said: Any) -> int:
    """Throw the index away and make it anew from the ledger."""
    account.reindex(**said)
    return account.version
