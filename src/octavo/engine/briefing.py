"""Briefing: what a handle sees, as one block of text for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from octavo.domain import brief as pages
from octavo.domain.brief import Brief, Counter
from octavo.domain.memory import SHARED, Memory, check_scope
from octavo.errors import BadInput

_STANDING = ("canon", "register")
_MORE = 4


class Readable(Protocol):
    """The one question a brief asks of an account, a sandbox or an older version."""

    def memories(
        self, *, kind: str | Sequence[str] | None = None, scope: str | Sequence[str] | None = None
    ) -> list[Memory]:
        """Live memories that a handle sees; a scope that it does not see is an error."""
        ...


class Found(Protocol):
    """A hit, of which only the memory is told."""

    @property
    def memory(self) -> Memory:
        """The memory that was found."""
        ...


Recall = Callable[..., Iterable[Found]]


def brief(
    reader: Readable,
    query: str | None = None,
    *,
    scope: str | None = None,
    k: int = 20,
    budget: int | None = None,
    format: str = "markdown",  # noqa: A002  # the glossary's word
    count: Counter | None = None,
    recall: Recall | None = None,
) -> Brief:
    """The standing memories and what `recall` finds for the query, as seen by a scope.

    A scope sees `shared` and its own. Without a query, or without a way to recall, only the standing
    part is told. `recall` is asked as `recall(query, k=…, scope=…)` and may not widen what is seen.
    """
    if k < 0:
        raise BadInput(f"k {k} is negative")
    scopes = None if scope is None else tuple(dict.fromkeys((SHARED, check_scope(scope))))
    standing = reader.memories(kind=_STANDING, scope=scopes)
    relevant: list[Memory] = []
    if query is not None and query.strip() and recall is not None and k:
        # What stands already does not count against k, so more are asked for; a few times k is enough.
        hits = recall(query, k=k + min(len(standing), _MORE * k), scope=scopes)
        relevant = [h.memory for h in hits if scopes is None or h.memory.scope in scopes]
    return pages.render(standing, relevant, k=k, budget=budget, format=format, count=count)
