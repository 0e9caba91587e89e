"""Briefing: what a handle sees, as one block of text for a prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Protocol

from octavo.domain.brief import Brief, render
from octavo.domain.brief_page import Counter, Item, Told
from octavo.domain.hits import Hit, Hits
from octavo.domain.memory import SHARED, Memory, check_scope
from octavo.domain.orders import Order, unconditional
from octavo.domain.profile import profile
from octavo.errors import BadInput

_STANDING = ("canon", "register")
_MORE = 4
_NEWEST = 500  # facts that the profile is chosen from
_SHORT = 6  # words of a turn that the question before it makes understood


class Readable(Protocol):
    """The one question a brief asks of an account, a sandbox or an older version."""

    def memories(
        self,
        *,
        kind: str | Sequence[str] | None = None,
        scope: str | Sequence[str] | None = None,
        limit: int | None = None,
        newest: bool = False,
    ) -> list[Memory]:
        """Live memories that a handle sees; a scope that it does not see is an error."""
        ...

    def uses(self, *ids: str) -> Mapping[str, int]:
        """How often memories were used."""
        ...

    def quotes(self, *, scope: str | Sequence[str] | None = None) -> list[Memory]:
        """What the user said of themselves that still holds."""
        ...

    def orders(self, *, scope: str | Sequence[str] | None = None) -> list[Order]:
        """What the user asked for once and for all."""
        ...

    def grouped(self, *ids: str) -> Mapping[str, str]:
        """Which memories belong together: of each, the name of their assembly."""
        ...


Recall = Callable[..., Hits]


def brief(
    reader: Readable,
    query: str | None = None,
    *,
    scope: str | None = None,
    k: int = 60,
    budget: int | None = None,
    format: str = "markdown",  # noqa: A002  # the glossary's word
    count: Counter | None = None,
    recall: Recall | None = None,
    newest: Sequence[Memory] = (),
) -> Brief:
    """The standing memories and what `recall` finds for the query, as seen by a scope.

    A scope sees `shared` and its own. Without a query, or without a way to recall, only the standing
    part is told, and then the `newest` memories. `recall` is asked as `recall(query, k=…, scope=…)` and
    may not widen what is seen.
    """
    if k < 0:
        raise BadInput(f"k {k} is negative")
    scopes = None if scope is None else tuple(dict.fromkeys((SHARED, check_scope(scope))))
    standing = reader.memories(kind=_STANDING, scope=scopes)
    known = reader.memories(kind="fact", scope=scopes, limit=_NEWEST, newest=True)
    relevant: list[Item] = [*newest]
    until: dict[str, date] = {}
    orders: Sequence[Order] = ()
    grouped: Mapping[str, str] = {}
    if query is not None and query.strip() and recall is not None and k:
        # What stands already does not count against k, so more are asked for; a few times k is enough.
        hits = recall(query, k=k + min(len(standing), _MORE * k), scope=scopes, unit="turn")
        seen = (h for h in hits if scopes is None or h.memory.scope in scopes)
        relevant = [item for hit in seen for item in _told(hit)]
        until = {h.memory.id: h.replaced.at.date() for h in hits if h.replaced and h.replaced.is_certain}
        orders = hits.orders
        grouped = reader.grouped(*(i.id for i in relevant if isinstance(i, Memory) and i.kind == "fact"))
    else:
        orders = unconditional(reader.orders(scope=scopes))
    return render(
        standing,
        relevant,
        facts=[
            *profile(known, reader.uses(*(m.id for m in known)) if known else {}),
            *reader.quotes(scope=scopes),
        ],
        until=until,
        grouped=grouped,
        orders=orders,
        k=k,
        budget=budget,
        format=format,
        count=count,
    )


def _told(hit: Hit) -> list[Item]:
    """A hit as lines: the turn that matched, and the question before it if it is short without that."""
    if hit.turn is None or hit.turn >= len(hit.memory.turns):
        return [hit.memory]
    turns = hit.memory.turns
    lines: list[Item] = [_line(hit, hit.turn)]
    if hit.turn and "?" in turns[hit.turn - 1].text and len(turns[hit.turn].text.split()) < _SHORT:
        lines.append(_line(hit, hit.turn - 1))
    return lines


def _line(hit: Hit, turn: int) -> Told:
    said = hit.memory.turns[turn]
    return Told(memory=hit.memory, turn=turn, speaker=said.speaker, text=said.text)
