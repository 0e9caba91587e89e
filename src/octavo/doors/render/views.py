"""The views that views.toml describes: a value as a table, as fields, or in sentences."""

from __future__ import annotations

import re
import string
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from octavo.documents.brain.teaching import Reply
from octavo.domain import pages
from octavo.domain.memory import Memory, Refusal
from octavo.domain.verdicts import Consolidation
from octavo.doors import plain
from octavo.doors.render.console import write
from octavo.doors.render.diff import diff_lines
from octavo.doors.render.shapes import (
    Line,
    Shown,
    Table,
    cell,
    dim,
    grid,
    line,
    one_line,
    plural,
    said,
    table,
    value_lines,
)
from octavo.engine.explain import Assembly

ABOVE = "newer than the index; found by looking at it directly"
View = Callable[[Any], Iterable[Shown]]
_STYLE = re.compile(r"<([a-z ]*)>")


def view(form: Mapping[str, Any], value: Any) -> Iterator[Shown]:
    """A value in the form that views.toml has for it."""
    if "head" in form:
        yield sentence(form["head"], value)
    for field, each in form.get("below", {}).items():
        yield from (line("  ", sentence(each, one)) for one in of(field, value))
    if "changes" in form:
        yield from diff_lines(of(form["changes"], value))
    if "rest" in form:
        yield from value_lines(of(form["rest"], value))
    yield from _body(form, value)
    if "beside" in form:
        write(sentence(form["beside"], value), stderr=True)


def _body(form: Mapping[str, Any], value: Any) -> Iterator[Shown]:
    """The value field by field, or the things in it, and how to go on."""
    first = next(iter(value.values()), None) if isinstance(value, Mapping) else value
    things = first if isinstance(first, list) else [first]
    if "fields" in form:
        fields = _fields(form["fields"], value)
        # Where it is said what it is to be empty, nought is empty too.
        rows = grid({name: item or None for name, item in fields.items()} if "empty" in form else fields)
        yield rows if rows.rows else dim(form["empty"])
    elif "empty" in form and not things:
        yield dim(form["empty"])
    elif "columns" in form:
        yield _table(form["columns"], things)
    elif "each" in form:
        yield from (sentence(form["each"], one) for one in things)
    if "then" in form and things:
        yield dim(form["then"].format(*things))
    if isinstance(value, Mapping) and value.get("next"):
        yield dim(f"more: --after {value['next']}")


def sentence(form: str, value: Any) -> Line:
    """A sentence about a value: its fields in their places, its pieces in their styles."""
    made, style = Line(), ""
    for number, part in enumerate(_STYLE.split(form)):
        if number % 2:
            style = part
            continue
        for words, field, way, _ in string.Formatter().parse(part):
            piece = None if field is None else cell(_told(field, way or "", value))
            made += [(words, style), *((text, own or style) for text, own in piece or ())]
    return made


def of(field: str, value: Any) -> Any:
    """A field of a value, also of what is in it; the field `.` is the value itself."""
    for name in field.split(".") if field != "." else ():
        if value is not None:
            value = value.get(name) if isinstance(value, Mapping) else getattr(value, name)
    return value


def _told(field: str, way: str, value: Any) -> Any:
    """A field in the way it is told; nothing is told of what is not there."""
    found = of(field, value)
    if found is None or not way:
        return found
    if way.startswith("#"):
        return plural(way[1:], found if isinstance(found, int) else len(found))
    return _WAYS[way](found)


def _fields(columns: str, value: Any) -> dict[str, Any]:
    """What each column says of a value; a no is not said."""
    named = (column.partition("=") for column in columns.split())
    parts = ((name, *(source or name).partition(":")[::2]) for name, _, source in named)
    fields = {name: _told(field, way, value) for name, field, way in parts}
    return {name.replace("_", " "): None if item is False else item for name, item in fields.items()}


def _table(columns: str, things: list[Any]) -> Table:
    """A table of things; where there is one scope, it says nothing."""
    rows = [_fields(columns, thing) for thing in things]
    if {row.get("scope") for row in rows} <= {"shared", None}:
        rows = [{**row, "scope": None} for row in rows]
    return table(rows)


def span(memory: Memory) -> str:
    """From when to when a core or sphere tells."""
    first, last = memory.data.get("timestamp_start"), memory.data.get("timestamp_end")
    if not first or not last:
        return f"{memory.at:%Y-%m-%d}"
    return str(pages.period(datetime.fromisoformat(first), datetime.fromisoformat(last), "en"))


def _age(age: timedelta) -> str:
    minutes = max(int(age.total_seconds()) // 60, 0)
    if minutes < 60:
        return f"{minutes} min"
    return f"{minutes // 60} h" if minutes < 2880 else f"{minutes // 1440} days"


def _because(asked: Any) -> Line:
    return line(said(asked.memory), (f"\n{asked.reason}", "dim"))


def _kept(refusal: Refusal) -> Line:
    return line(one_line(refusal.text) if refusal.text else dim("(not kept)"), (f"\n{refusal.detail}", "dim"))


def _consolidated(done: Consolidation) -> str:
    counts = {"added": done.added, "superseded": done.superseded, "forgotten": done.forgotten}
    what = ", ".join(f"{len(ids)} {name}" for name, ids in counts.items() if ids)
    session = f", session {done.session}" if done.session else ""
    return f"version {done.version}{session}{': ' if what else ''}{what}"


def _state(held: Mapping[str, Any]) -> str | None:
    if "memory" not in held:
        return None
    if not held["has_words"]:
        return ABOVE
    return f"{'fresh' if held['is_fresh'] else 'drifted'}; the index holds revision {held['indexed_rev']}"


def _reply(reply: Reply) -> Line:
    steps = [f"\n  {number}. {action}" for number, action in enumerate(reply.actions, 1)]
    return line(
        (reply.text, "bold red" if reply.denial else "bold green"), *(steps if len(steps) > 1 else ())
    )


def _entry(item: Mapping[str, Any]) -> Line:
    """An entry of a sandbox's buffer, by its tag."""
    return sentence(_ENTRIES.get(item["t"], "{at}"), item["entry"])


def fallback(memory: Memory) -> str | None:
    """Why a core or sphere is told without the model that was asked."""
    why = memory.data.get("meta", {}).get("fallback_reason")
    return f"a model's summary: {why}" if why else None


def _left_out(out: Struct) -> str | None:
    told = cell({name: n or None for name, n in asdict(out).items()})
    return f"; left out: {told.plain}" if told and told.plain else None


def _lifts(one: Assembly) -> str:
    if one.is_synchronized:
        return "its members, when it fits a question"
    return f"nothing now ({one.drift_reason}); `octavo catch-up`, then `octavo upkeep`"


_ENTRIES = {
    "turn": "{turn.speaker:line}: {turn.text:line}",
    "memory": "{memory:said}",
    "revise": "{wanted.id}  {wanted:said}",
    "state": "{name:line}  {data}",
    "forget": "{memory}",
    "use": "{memories:comma}",
}
# How a field is told, by the name that views.toml has for it.
_WAYS: dict[str, Callable[[Any], Any]] = {
    "age": _age,
    "answer": lambda is_so: "yes" if is_so else "no",
    "because": _because,
    "brief": lambda brief: (
        brief.text
        or dim("nothing fits the budget" if any(asdict(brief.left_out).values()) else "nothing to say")
    ),
    "entry": _entry,
    "fallback": lambda memory: line(f"\n  {why}") if (why := fallback(memory)) else None,
    "left_out": _left_out,
    "reply": _reply,
    "torn": lambda n: f"\n  a torn last line of {n} bytes, never acknowledged" if n else None,
    "behind": lambda versions: f"{plural('version', versions)} behind" if versions else "up to date",
    "begun": lambda is_new: "begun" if is_new else "there already",
    "comma": ", ".join,
    "consolidated": _consolidated,
    "count": len,
    "day": lambda at: f"{at:%Y-%m-%d}",
    "edges": lambda links: [f"{link.name} {link.to}" for link in links],
    "hundredths": lambda share: f"{share:.2f}",
    "json": lambda data: plain.document(data) if data else None,
    "kept": _kept,
    "lifts": _lifts,
    "line": one_line,
    "pair": lambda pair: line(said(pair.first), "\n", said(pair.second)),
    "pair_ids": lambda pair: [pair.first.id, pair.second.id],
    "place": lambda at: ", ".join(f"{of.removesuffix('_seq')} {n}" for of, n in reversed(at.items())),
    "said": lambda memory: line(("forgotten", "red")) if memory.gone else said(memory),
    "sound": lambda report: line(("sound", "bold green") if report else ("damaged", "bold red")),
    "span": span,
    "state": _state,
    "verified": lambda held: held["verified_at"] or "never",
    "without": lambda passages: f"{plural('passage', passages)} without" if passages else "up to date",
}
DESCRIBED: dict[str, View] = {
    name: partial(view, form)
    for names, form in tomllib.loads(Path(__file__).with_name("views.toml").read_text("utf-8")).items()
    for name in names.split()
}
