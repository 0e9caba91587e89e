"""Assembling: what may belong together, how an assembly is made, named and merged, where it comes from.

An assembly is a memory that points to its members; likenesses come in as numbers, from whoever has vectors.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from statistics import fmean
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from octavo import words as word_lists
from octavo.domain import cues
from octavo.domain.memory import UNCOUNTED, Link, Memory
from octavo.domain.policy import AssemblyPolicy
from octavo.domain.sentences import SessionSource, is_person, shorten, spoken
from octavo.domain.state import View
from octavo.domain.text import fold, gram_size, runs, terms_of_run
from octavo.domain.themes import themes
from octavo.domain.verdicts import Verdict, refused

KIND: Literal["assembly"] = "assembly"
GROUPED = ("episode", "fact")
PART, MERGED_FROM, MERGED_INTO = "part", "merged_from", "merged_into"
LEAST, DEEPEST = 2, 100
_NAMED, _KEYWORDS, _TOPICS = 3, 20, 8
_READ = 24  # members that lend an assembly its name; more say the same
_SHORT, _LONGEST_WORD = 60, 40
_DULL = cues.GENERIC | cues.SMALL_TALK | cues.STOP | word_lists.listed("themes.verbs")

Rarity = Callable[[str], float]


def may_belong(memory: Memory) -> bool:
    """Whether a memory may be a member: a live episode of a conversation, or a live fact."""
    is_kept = not memory.gone and bool(memory.text)
    return is_kept and memory.kind in GROUPED and memory.category not in UNCOUNTED


def members_of(assembly: Memory) -> tuple[str, ...]:
    """The ids of the members, in the order they joined."""
    return assembly.linked(PART)


def live_members(view: View, ids: Collection[str]) -> list[Memory]:
    """The memories of some members that are members still, in the same order."""
    known = view.many(ids)
    return [known[id_][1] for id_ in ids if id_ in known and may_belong(known[id_][1])]


def begun(
    id_: str, by: str, first: Memory, topics: Sequence[str] = (), **formed: str | float | None
) -> Memory:
    """An assembly before its first revision, to be `grown`, in the scope of its first member.

    It says how it was `formed`: by what, under which embedder, how alike, and how alike it had to be.
    """
    told = {key: round(v, 6) if isinstance(v, float) else v for key, v in formed.items() if v is not None}
    data = {"topics": list(topics), "schema_version": "1.0", "formed": {"by": by, **told}}
    new = Memory(id=id_, rev=0, kind=KIND, source="promotion", actor="system", at=first.at, data=data)
    return replace(new, scope=first.scope, salience=0.0, confidence=1.0)


def grown(assembly: Memory, members: Sequence[Memory], rarity: Rarity) -> Memory:
    """Its next revision with all these members, named by what they share; a name that a person gave stays."""
    data = {key: value for key, value in assembly.data.items() if key != "vector"}
    old, known = data.get("topics", ()), members_of(assembly)
    topics = topics_of(members, rarity) or old
    is_ours = not assembly.text or assembly.text == name_of(old, members)
    return replace(
        assembly,
        rev=assembly.rev + 1,
        actor="system",
        text=name_of(topics, members) if is_ours else assembly.text,
        at=max((assembly.at, *(member.at for member in members))),
        salience=max((assembly.salience, *(member.salience for member in members))),
        links=(*assembly.links, *(Link(name=PART, to=m.id) for m in members if m.id not in known)),
        data=data | {"topics": list(topics)},
    )


def amended(view: View, old: Memory, new: Memory, most: int) -> Memory | Verdict:
    """A revision by hand: who comes in must be able to belong, and how the assembly came to be stays said."""
    had, named = members_of(old), members_of(new)
    added = [id_ for id_ in named if id_ not in had]
    able = {m.id for m in live_members(view, added) if m.scope == old.scope}
    if strange := next((id_ for id_ in added if id_ not in able), None):
        detail = f"there is no memory {strange} that can be a member in scope {old.scope!r}"
        return refused("members", detail, "group episodes of conversations, and facts, of one scope")
    if len(named) != len({*named}) or len(named) > max(most, len(had)):
        told = f"{len(named)} members, of {len({*named})} memories"
        return refused("members", told, f"name each once, at most {most}: max_members in the policy")
    if new.data != old.data:
        return refused("data", "how an assembly came to be is not written", "change name, tags, members")
    kept, data = (link for link in old.links if link.name == MERGED_FROM), dict(old.data)
    if named != had:
        data.pop("vector", None)
    links = (*(link for link in new.links if link.name != MERGED_FROM), *kept)
    return replace(new, links=links, data=data)


def topics_of(members: Sequence[Memory], rarity: Rarity) -> tuple[str, ...]:
    """What half of the members share, in words a person would use, the most telling first; empty if nothing.

    Names and nouns are topics; where they share none, any telling word is.
    """
    some = members if len(members) <= _READ else (*members[: _READ // 2], *members[-_READ // 2 :])
    read, half = [_told(m) for m in some], max(LEAST, len(some) / 2)
    sources = [
        SessionSource(id=m.id, ordinal=n, started_at=m.at, ended_at=m.at, episodes=(m,))
        for n, m in enumerate(read)
    ]
    named = {one.theme: one.sessions or 0 for one in themes(sources)}
    for found in (named, Counter(word for m in read for word in _words(m))):
        worth = {word: n * rarity(word) ** 2 for word, n in found.items() if n >= half}
        if topics := sorted(filter(worth.get, worth), key=lambda word: (-worth[word], word)):
            return tuple(topics[:_TOPICS])
    return ()


def mentions(memory: Memory, topics: Iterable[str]) -> bool:
    """Whether people speak of one of some topics in a memory."""
    text = fold(" ".join(turn.text for turn in spoken(_told(memory))))
    # In scripts without spaces a word begins anywhere.
    begun = (rf"\b{re.escape(fold(topic))}" if topic.isascii() else re.escape(topic) for topic in topics)
    return any(re.search(one, text) for one in begun)


def _told(member: Memory) -> Memory:
    """A member with what people say in it alone."""
    said = tuple(turn for turn in member.turns if is_person(turn.speaker))
    return replace(member, turns=said) if said else member


def _words(member: Memory) -> set[str]:
    """The words of a member that can name a topic: no small talk, verb or number, and nobody who speaks."""
    speakers = {word for turn in member.turns for word in runs(turn.speaker)}
    return {
        word
        for turn in spoken(member)
        for word in runs(turn.text)
        if 3 <= len(word) <= _LONGEST_WORD and word.isalpha() and not gram_size(word) and word not in _DULL
        if not word.endswith(("ed", "ing", "ly")) and not any(name.startswith(word) for name in speakers)
    }


def name_of(topics: Sequence[str], members: Sequence[Memory]) -> str:
    """The name of an assembly: its three most telling topics, or how its first member begins."""
    if topics:
        return ", ".join(topics[:_NAMED])
    return shorten(" ".join(next(spoken(members[0])).text.split()), _SHORT)


def keywords(members: Iterable[Memory]) -> tuple[str, ...]:
    """The terms that most members have, at most twenty."""
    own = ({t for run in runs(m.text) if len(run) > 2 for t in terms_of_run(run)} for m in members)
    counts = Counter(term for terms in own for term in terms)
    return tuple(sorted(counts, key=lambda term: (-counts[term], term))[:_KEYWORDS])


def emotion_profile(members: Sequence[Memory]) -> dict[str, float]:
    """How members felt on average, of those that say so."""
    felt = [member.emotion for member in members if member.emotion]
    said = {name: [getattr(one, name) for one in felt] for name in ("valence", "intensity")}
    told = {name: [value for value in values if value is not None] for name, values in said.items()}
    return {name: round(fmean(values), 4) for name, values in told.items() if values}


def boost(similarity: float, base: float, policy: AssemblyPolicy) -> float:
    """How far an assembly of some similarity to the question lifts a member of some relevance."""
    if similarity < policy.activation:
        return 0.0
    share = similarity
    if policy.boost_mode == "sigmoid":
        share = 1 / (1 + math.exp(-10 * (similarity - 0.5)))
    elif policy.boost_mode == "multiplicative":
        share = base * similarity
    return max(0.0, min(policy.boost * share, 1 - min(max(base, 0.0), 1.0)))


class Ancestor(Struct, frozen=True, kw_only=True):
    """What history says of one assembly of a lineage: `origin` came of no merge, `merged` did."""

    assembly_id: str
    name: str | None = None
    depth: int = 0
    status: Literal["origin", "merged", "not_found", "cycle_detected", "depth_limit_reached"] = "not_found"
    created_at: datetime | None = None
    memory_count: int | None = None
    ended: bool = False
    merged_from: tuple[str, ...] = ()


class Lineage(Struct, frozen=True, kw_only=True):
    """An assembly and its ancestors, each once at its least depth; only foreign data has cycles."""

    target_assembly_id: str
    lineage: tuple[Ancestor, ...]
    max_depth_reached: bool = False
    cycles_detected: bool = False


def lineage(target: str, known: Callable[[str], Ancestor | None], max_depth: int = 10) -> Lineage:
    """The ancestors of an assembly, as far up as is asked for; `known` says what history tells of one."""
    rows, above, depths, queue = dict[str, Ancestor](), dict[str, list[str]](), {target: 0}, [target]
    for id_ in queue:  # it grows meanwhile
        row = known(id_) or Ancestor(assembly_id=id_)
        is_cut = bool(row.merged_from) and depths[id_] == max_depth
        rows[id_] = replace(row, depth=depths[id_], status="depth_limit_reached" if is_cut else row.status)
        above[id_] = [] if is_cut else list(dict.fromkeys(row.merged_from))
        new = [parent for parent in above[id_] if parent not in depths]
        depths |= dict.fromkeys(new, depths[id_] + 1)
        queue += new
    cycles = []
    try:  # two paths that meet make no cycle
        TopologicalSorter(above).prepare()
    except CycleError as error:
        id_, child, *_ = error.args[1]
        depth = depths[child] + 1
        cycles = [Ancestor(assembly_id=id_, name=rows[id_].name, depth=depth, status="cycle_detected")]
    return Lineage(
        target_assembly_id=target,
        lineage=tuple(sorted([*rows.values(), *cycles], key=lambda row: row.depth)),
        max_depth_reached=any(row.status == "depth_limit_reached" for row in rows.values()),
        cycles_detected=bool(cycles),
    )
