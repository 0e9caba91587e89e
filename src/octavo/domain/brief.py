"""The brief: memories as one fenced block of data for a prompt, within a budget.

The standing part (canon, registers with a topic, then the facts of the profile) comes first and depends on
nothing but what it shows, so that its bytes are the same from call to call and prompt caches hit. The
relevant part is filled with single turns as they rank, below a heading for each conversation, until the
budget is spent.
"""

from __future__ import annotations

from collections import Counter as Counted
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import TypeVar

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from octavo.domain.brief_page import (
    CANON,
    CONTEXT,
    FACTS,
    FORMATS,
    REGISTERS,
    SAID,
    Counter,
    Item,
    Page,
    count_tokens,
    memory_of,
    numbered,
    plain,
    turn_of,
)
from octavo.domain.dates import holds_until
from octavo.domain.hits import Hit
from octavo.domain.memory import Memory
from octavo.domain.orders import SHOWN, Order, by_words
from octavo.domain.sentences import is_thin, spoken
from octavo.domain.text import fold
from octavo.errors import BadInput

T = TypeVar("T", bound=Item)

_SHORT = 6  # words of a turn that the question before it makes understood
BUDGET = 1_800  # tokens, if nobody says another number
_LASTING = 6  # orders that are told where nothing is asked

# Registers that hold the raw state of a machine or a file, not something to tell a model.
_SILENT_CATEGORIES = ("state", "file")
# Assemblies only boost; of spheres only approved beliefs speak, and those are canon.
_SILENT_KINDS = ("assembly", "sphere")
# The part of the budget that registers leave to what is relevant, and the most that the profile takes.
_RESERVED, _PROFILE = 4, 2
_KNOWN = ((FACTS, "fact"), (SAID, "episode"))  # what tells of the user: what was noted, what they said


class LeftOut(Struct, frozen=True, kw_only=True):
    """How many lines did not fit; canon is never among them silently."""

    canon: int = 0
    registers: int = 0
    facts: int = 0
    relevant: int = 0
    orders: int = 0

    def __bool__(self) -> bool:
        return any(asdict(self).values())


class Brief(Struct, frozen=True, kw_only=True):
    """The text for a prompt, what it costs and what had to stay out; str() is the text.

    `standing` and `relevant` are its two parts, each as a whole block for callers that place them apart;
    `orders` is what the user asked for, outside the fence, because it is meant to be followed. `sources`
    gives the id of the memory behind each line, by what stands first in its brackets: the id or a number.
    """

    text: str = ""
    standing: str = ""
    relevant: str = ""
    orders: str = ""
    tokens: int = 0
    sources: Mapping[str, str] = field(default_factory=dict)
    left_out: LeftOut = field(default_factory=LeftOut)

    def __str__(self) -> str:
        return self.text

    def __bool__(self) -> bool:
        return bool(self.text)


def render(
    standing: Iterable[Memory],
    relevant: Iterable[Item] = (),
    *,
    facts: Sequence[Memory] = (),
    until: Mapping[str, date] | None = None,
    grouped: Mapping[str, str] | None = None,
    orders: Sequence[Order] = (),
    k: int | None = None,
    budget: int | None = None,
    format: str = "markdown",  # noqa: A002  # the glossary's word
    count: Counter | None = None,
) -> Brief:
    """The brief of standing and ranked relevant memories; `k` and `budget` are upper bounds.

    The budget covers the whole text. Canon takes what it needs, registers leave a quarter to the
    relevant part, the `facts` of the profile, best first, and then quotes of the user take half of what
    is left at most, whether anything is asked or not, and what is relevant fills the rest in the order of
    its rank. What was replaced is told with the day `until` which it held; `orders` come after the fence.
    `grouped` memories stand together below their name.
    """
    if format not in FORMATS:
        raise BadInput(f"format {format!r} is unknown", hint=f"use one of {', '.join(FORMATS)}")
    if budget is not None and budget < 0:
        raise BadInput(f"budget {budget} is negative")
    if k is not None and k < 0:
        raise BadInput(f"k {k} is negative")
    shown = standing_order(standing)
    topics = Counted(memory.topic for memory in shown if memory.topic)
    page = Page(
        count or count_tokens,
        is_json=format == "json",
        until=until or {},
        grouped=grouped or {},
        shared={topic for topic, often in topics.items() if often > 1},
    )
    ranked = [item for item in relevant if is_relevant(memory_of(item))]

    def fits(n: int) -> bool:  # more than a question may have leave half of the room to what is known
        room = None if budget is None else budget // (1 if n <= SHOWN else 2)
        return room is None or page.count(page.asked_for(orders[:n])) <= room

    taken = _most(len(orders), fits) or 0
    asked_for = page.asked_for(orders[:taken])
    left = None if budget is None else budget - page.count(asked_for)
    # What somebody said several times, or noted in several ways, is told once.
    known = [m for m in _distinct(facts, shown) if is_relevant(m)]
    brief = _filled(page, shown, known, ranked, k, left)
    # A wish that is a fact, and stands among them, is not told twice.
    told = [o for o in orders[:taken] if not (o.is_wish and o.turn is None and o.memory in brief.sources)]
    return _closed(page, brief, page.asked_for(told), left_out=len(orders) - taken)


def lasting(orders: Iterable[Order]) -> list[Order]:
    """The orders to tell where nothing is asked: those about every answer, and those that by their words
    hold from then on, whatever is done."""
    return [order for order in orders if order.is_general or _is_lasting(order)][:_LASTING]


def _is_lasting(order: Order) -> bool:
    reading = None if order.is_wish or order.condition else by_words(order.text)
    return reading is not None and not reading[0]


def told(hits: Iterable[Hit]) -> Iterator[Item]:
    """Hits as lines: the turn that matched, and the question before it if it is short without that."""
    for hit in hits:
        turns, turn = hit.memory.turns, hit.turn
        if turn is None or turn >= len(turns):
            yield hit.memory
            continue
        yield hit.memory, turn
        if turn and "?" in turns[turn - 1].text and len(turns[turn].text.split()) < _SHORT:
            yield hit.memory, turn - 1


def is_telling(memory: Memory) -> bool:
    """Whether what was said last is more than thanks and yes."""
    return not all(is_thin(turn.text) for turn in spoken(memory))


def over(memory: Memory, today: date) -> date | None:
    """Until when a memory held that says itself that it holds no longer ("until May"); None if it may."""
    day = holds_until(memory.text, memory.at.date())
    return day if day is not None and day < today else None


def standing_order(memories: Iterable[Memory]) -> list[Memory]:
    """What stands in every brief: canon by category and age, then registers by topic."""
    shown = [m for m in memories if is_standing(m)]
    canon = sorted((m for m in shown if m.kind == "canon"), key=lambda m: (m.category or "", m.at, m.id))
    registers = sorted(
        (m for m in shown if m.kind == "register"), key=lambda m: (m.topic or "", m.scope, m.id)
    )
    return canon + registers


def is_standing(memory: Memory) -> bool:
    """Whether a memory stands in every brief: canon, and registers with a topic that say something."""
    if memory.gone or not plain(memory.text):
        return False
    if memory.kind == "canon":
        return not _is_contested(memory)
    return (
        memory.kind == "register" and memory.topic is not None and memory.category not in _SILENT_CATEGORIES
    )


def is_relevant(memory: Memory) -> bool:
    """Whether a recalled memory may be shown: raw states, assemblies and open beliefs stay out."""
    if memory.gone or not plain(memory.text) or memory.kind in _SILENT_KINDS or _is_contested(memory):
        return False
    return not (memory.kind == "register" and memory.category in _SILENT_CATEGORIES)


def _is_contested(memory: Memory) -> bool:
    """Whether a belief lost its approval because later sessions say the opposite."""
    return memory.kind == "canon" and memory.data.get("epistemic_state") == "contested"


def _filled(
    page: Page,
    shown: Sequence[Memory],
    facts: Sequence[Memory],
    ranked: Sequence[Item],
    k: int | None,
    budget: int | None,
) -> Brief:
    """Take lines in the order canon, registers, facts, relevant for as long as the whole text fits."""
    all_canon = [m for m in shown if m.kind == "canon"]
    all_registers = [m for m in shown if m.kind == "register"]
    reserve = 0 if budget is None or not ranked or k == 0 else budget // _RESERVED

    def parts(canon: int, registers: int, known: int = 0) -> str:
        return page.standing(
            (CANON, all_canon[:canon], len(all_canon) - canon),
            (REGISTERS, all_registers[:registers], len(all_registers) - registers),
            *((heading, _of_kind(facts[:known], kind), 0) for heading, kind in _KNOWN),
        )

    def fits(text: str, keep: int = 0) -> bool:
        return budget is None or page.count(page.whole(text, "")) <= budget - keep

    canon = _most(len(all_canon), lambda n: fits(parts(n, 0)))
    if canon is None:  # not even the number of lines left out can be said
        return Brief(left_out=_left_out(all_canon, all_registers, facts, ranked[:k]))
    registers = known = 0
    if canon == len(all_canon):
        registers = _most(len(all_registers), lambda n: fits(parts(canon, n), reserve)) or 0
        spent = page.count(page.whole(parts(canon, registers) or FACTS, ""))
        room = 0 if budget is None else max(0, budget - spent) // _PROFILE
        known = _most(len(facts), lambda n: fits(parts(canon, registers, n), room)) or 0
        if facts and not known and not ranked and fits(parts(canon, registers, 1)):
            known = 1  # in little room too it says something
    standing = parts(canon, registers, known)
    above = [*all_canon[:canon], *all_registers[:registers], *facts[:known]]
    seen = {m.id: m.id for m in above}
    quoted = [m for m in above if m.kind == "episode"]  # one sentence of what may be told as a whole
    left = _distinct(ranked, [m for m in above if m not in quoted])[:k]
    taken = _taken(page, standing, left, budget)
    text = page.whole(standing, page.relevant(taken))
    return Brief(
        text=text,
        standing=page.whole(standing, ""),
        relevant=page.whole("", page.relevant(taken)),
        tokens=page.count(text) if text else 0,
        sources=seen
        | {item.id: item.id for item in taken if isinstance(item, Memory)}
        | {number: id_ for (id_, _), number in numbered(taken).items()},
        left_out=_left_out(
            all_canon[canon:], all_registers[registers:], facts[known:], [i for i in left if i not in taken]
        ),
    )


def _of_kind(memories: Iterable[Memory], kind: str) -> list[Memory]:
    return sorted((m for m in memories if m.kind == kind), key=lambda m: (m.at, m.id, m.text))


def _left_out(
    canon: Sequence[Memory], registers: Sequence[Memory], facts: Sequence[Memory], relevant: Sequence[Item]
) -> LeftOut:
    return LeftOut(canon=len(canon), registers=len(registers), facts=len(facts), relevant=len(relevant))


def _taken(page: Page, standing: str, ranked: Sequence[Item], budget: int | None) -> list[Item]:
    """The relevant lines that still fit, best first; a long one gives way to shorter ones behind it.

    Lines are counted one by one and the page once at the end, so that filling it is not quadratic.
    """
    if budget is None:
        return list(ranked)
    taken: list[Item] = []
    groups: set[tuple[str, str]] = set()
    spent = page.count(page.whole(standing, '"relevant":[]' if page.is_json else f"## {CONTEXT}")) + 4
    for number, item in enumerate(ranked, start=1):
        group = page.group(item)
        cost = page.cost(item, number)
        if group not in groups and not page.is_json:
            cost += page.count(f"### {group[0]}\n")
        if spent + cost <= budget:
            spent += cost
            groups.add(group)
            taken.append(item)
    while taken and page.count(page.whole(standing, page.relevant(taken))) > budget:
        taken.pop()
    return taken


def _most(limit: int, fits: Callable[[int], bool]) -> int | None:
    """The largest number up to a limit that fits, None if not even nothing does."""
    if fits(limit):
        return limit
    if not fits(0):
        return None
    low, high = 0, limit
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


def _distinct(items: Iterable[T], told: Iterable[Item] = ()) -> list[T]:
    """Each text once, where it ranks first, and none that is told already.

    Of two topics the same text says two things.
    """
    known = {form for item in told for form in _forms(item)}
    first: list[T] = []
    for item in items:
        forms = _forms(item)
        if forms[0] not in known:
            first.append(item)
            known.update(forms)
    return first


def _forms(item: Item) -> tuple[str, str]:
    """What is said, whoever says it: with its topic, if it has one, and alone."""
    memory, turn = memory_of(item), turn_of(item)
    text = fold(memory.text if turn is None else memory.turns[turn].text)
    return (f"{memory.topic}\n{text}" if memory.topic and turn is None else text), text


def _closed(page: Page, brief: Brief, asked_for: str, *, left_out: int) -> Brief:
    """The brief with what the user asked for behind its fence."""
    missing = replace(brief.left_out, orders=left_out)
    if not asked_for:
        return replace(brief, left_out=missing)
    if page.is_json:
        text = f"{brief.text[:-1]},\n{asked_for}}}" if brief.text else f"{{{asked_for}}}"
    else:
        text = f"{brief.text}\n\n{asked_for}" if brief.text else asked_for
    return replace(brief, text=text, orders=asked_for, tokens=page.count(text), left_out=missing)
