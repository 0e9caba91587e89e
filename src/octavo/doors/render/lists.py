"""Lists as the command line shows them: a table of their columns, and what is said when they are empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from operator import attrgetter
from typing import Any

from octavo.domain import pages
from octavo.domain.memory import Memory
from octavo.doors.render.shapes import Line, Shown, Table, cell, dim, grid, line, one_line, said


def listing(
    empty: str,
    columns: str,
    *,
    wide: str | None = None,
    then: Callable[[Sequence[Any]], str] | None = None,
    **made: Callable[[Any], Any],
) -> Callable[[Mapping[str, Any]], Iterator[Shown]]:
    """A view of the list that stands first in a value, of what is to be said then, and of how to go on.

    Its columns are in order: a field, a field under another name (`by=actor`), or what is made of an item.
    The last is wide unless another is named.
    """
    read = _readers(columns, made)

    def view(value: Mapping[str, Any]) -> Iterator[Shown]:
        items = next(iter(value.values()))
        if not items:
            yield dim(empty)
            return
        told = {name: [made(item) for item in items] for name, made in read.items()}
        if set(told.get("scope", ())) <= {"shared", None}:
            told.pop("scope", None)  # where there is one scope, it says nothing
        rows = [[cell(each) or line() for each in row] for row in zip(*told.values(), strict=True)]
        numbers = tuple(name for name, values in told.items() if isinstance(values[0], int))
        yield Table(columns=tuple(told), rows=rows, numbers=numbers, wide=[*told].index(wide or [*told][-1]))
        if then is not None and (more := then(items)):
            yield dim(more)
        if value.get("next"):
            yield dim(f"more: --after {value['next']}")

    return view


def sheet(columns: str, *, empty: str = "", **made: Callable[[Any], Any]) -> Callable[[Any], Iterator[Shown]]:
    """A view of one thing, field by field, its columns said as those of a list; what is empty is left out.

    A view that says what it is to be empty leaves out what is nought as well.
    """
    read = _readers(columns, made)

    def view(value: Any) -> Iterator[Shown]:
        told = {name: of(value) for name, of in read.items()}
        rows = grid({name: (item or None) if empty else item for name, item in told.items()})
        yield rows if rows.rows else dim(empty)

    return view


def _readers(columns: str, made: Mapping[str, Callable[[Any], Any]]) -> dict[str, Callable[[Any], Any]]:
    """How each column is read from an item: made of it, or a field, by its own name or another."""
    named = [column.partition("=") for column in columns.split()]
    return {name: made.get(name) or partial(_field, field or name) for name, _, field in named}


def _field(name: str, item: Any) -> Any:
    return item[name] if isinstance(item, Mapping) else attrgetter(name)(item)


def beginning(memory: Memory) -> str:
    """The first paragraph of a core or sphere, on one line."""
    return one_line(memory.text.partition("\n\n")[0])


def span(memory: Memory) -> str:
    """From when to when a core or sphere tells."""
    first, last = memory.data.get("timestamp_start"), memory.data.get("timestamp_end")
    if not first or not last:
        return f"{memory.at:%Y-%m-%d}"
    return str(pages.period(datetime.fromisoformat(first), datetime.fromisoformat(last), "en"))


def _because(item: Any) -> Line:
    return line(said(item.memory), (f"\n{item.reason}", "dim"))


def _age(age: timedelta) -> str:
    minutes = max(int(age.total_seconds()) // 60, 0)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"


LISTS = {
    "sandboxes": listing(
        "no sandbox is open",
        "id name scope on=parent_version age lines",
        wide="name",
        name=lambda info: f"{one_line(info.name)}{' (sealed)' if info.is_sealed else ''}",
        age=lambda info: _age(info.age),
    ),
    "memories": listing("nothing found", "id kind at scope text", text=said),
    "history": listing(
        "nothing found",
        "rev=memory.rev version at=memory.at by=memory.actor text",
        text=lambda r: line(("forgotten", "red")) if r.memory.gone else said(r.memory),
    ),
    "refusals": listing(
        "nothing was refused",
        "at check kind scope text",
        text=lambda r: line(one_line(r.text) if r.text else dim("(not kept)"), (f"\n{r.detail}", "dim")),
    ),
    "orders": listing(
        "the user asked for nothing",
        "id=memory at scope when text",
        when=lambda order: order.condition or ("asked for something" if order.is_wish else ""),
    ),
    "proposals": listing("nothing waits", "id action by text", text=_because),
    "rejections": listing("no value is rejected", "at scope by text=reason"),
    "deletion_candidates": listing(
        "nothing is in doubt",
        "id=memory.id kind=memory.kind text",
        text=_because,
        then=lambda _: "put them before a person: octavo propose-deletions",
    ),
    "merge_candidates": listing(
        "no two memories look alike",
        "alike ids text",
        alike=lambda pair: f"{pair.score:.2f}",
        ids=lambda pair: f"{pair.first.id}\n{pair.second.id}",
        text=lambda pair: line(said(pair.first), "\n", said(pair.second)),
        then=lambda pairs: f"ask to merge two: octavo propose-merge {pairs[0].first.id} {pairs[0].second.id}",
    ),
    "cores": listing("no core yet", "id scope when text", when=span, text=beginning),
    "spheres": listing("no sphere yet", "id scope when text", when=span, text=beginning),
    "sessions": listing(
        "no session has closed yet",
        "session=ordinal scope place version at sandbox",
        place=lambda s: ", ".join(f"{of.removesuffix('_seq')} {n}" for of, n in reversed(s.position.items())),
        wide="place",
    ),
    "versions": listing(
        "no version yet: nothing has been written",
        "version at cause by=actor scope changes",
        cause=lambda c: f"{c.cause} (session {c.session})" if c.session else c.cause,
        wide="cause",
    ),
    "assemblies": listing(
        "no assemblies yet; `octavo assemble` groups what is alike",
        "id=assembly_id scope members changed text",
        members=lambda one: len(one.memory_ids),
        changed=lambda one: f"{one.updated_at:%Y-%m-%d}",
        text=lambda one: one_line(one.name),
        then=lambda found: f"look at one: octavo assembly {found[0].assembly_id}",
    ),
    "assemble": listing(
        "nothing new is alike",
        "id members text",
        members=lambda m: len(m.linked("part")),
        text=lambda m: one_line(m.text),
    ),
    "merge_log": listing(
        "nothing was merged yet",
        "at=creation_timestamp into=target_assembly_id alike=similarity_at_merge text",
        text=lambda event: ", ".join(event["source_assembly_ids"]),
    ),
    "patterns": listing(
        "nothing repeats in recent episodes",
        "kind times=count episodes sure=confidence known pattern=text",
        episodes=lambda p: len(p.sources),
        known=lambda p: "knowledge" if p.is_firm else "",
    ),
    "behaviors": listing(
        "no behaviour was taught",
        "name times=times_invoked actions",
        actions=lambda behavior: " → ".join(behavior["actions"]),
    ),
}
