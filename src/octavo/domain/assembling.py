"""Assembling: what may belong together, how an assembly is made, named and merged, where it comes from.

An assembly is a memory that points to its members; likenesses come in as numbers, from whoever has vectors.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from datetime import datetime
from graphlib import CycleError, TopologicalSorter
from itertools import chain, pairwise
from statistics import fmean
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from octavo import words as word_lists
from octavo.domain import cues
from octavo.domain.memory import UNCOUNTED, Link, Memory
from octavo.domain.patterns import pattern
from octavo.domain.policy import AssemblyPolicy
from octavo.domain.sentences import SessionSource
from octavo.domain.state import View
from octavo.domain.text import fold, gram_size, runs, stem, terms_of_run
from octavo.domain.themes import themes
from octavo.errors import BadInput

KIND: Literal["assembly"] = "assembly"
GROUPED = ("episode", "fact")
PART, MERGED_FROM, MERGED_INTO = "part", "merged_from", "merged_into"
LEAST, DEEPEST = 2, 100
_NAMED, _KEYWORDS, _TOPICS = 3, 20, 8
_READ = 24  # members that lend an assembly its name; more say the same
_SHORT, _LONGEST_WORD = 60, 40
_PARTS = pattern(r"[.!?,;:()\"“”\n…–—]+")
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


def begun(id_: str, by: str, first: Memory, **formed: str | float | None) -> Memory:
    """An assembly before its first revision, to be `grown`, in the scope of its first member.

    It says how it was `formed`: by what, under which embedder, how alike, and how alike it had to be.
    """
    told = {key: round(v, 6) if isinstance(v, float) else v for key, v in formed.items() if v is not None}
    data = {"topics": [], "schema_version": "1.0", "formed": {"by": by, **told}}
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


def topics_of(members: Sequence[Memory], rarity: Rarity) -> tuple[str, ...]:
    """What members share, in words a person would use, the most telling first; empty if they share none."""
    read = members if len(members) <= _READ else (*members[: _READ // 2], *members[-_READ // 2 :])
    sources = [
        SessionSource(id=m.id, ordinal=n, started_at=m.at, ended_at=m.at, episodes=(m,))
        for n, m in enumerate(read)
    ]
    speakers = {word for m in read for turn in m.turns for word in runs(turn.speaker)}
    counts = Counter(phrase for m in read for phrase in _phrases(m, speakers))
    weights = {one.theme: one.weight for one in themes(sources) if (one.sessions or 0) >= LEAST}
    if not weights:  # no theme is told: the words that half of them have
        half = max(LEAST, len(read) / 2)
        weights = {word: count for word, count in counts.items() if count >= half and " " not in word}
    topics: dict[frozenset[str], str] = {}
    for theme in sorted(weights, key=lambda theme: (-weights[theme] * rarity(theme) ** 2, theme)):
        # With the word that it mostly stands beside: health, mental health.
        own = fold(theme)
        wider = [
            (n, pair) for pair, n in counts.items() if n >= LEAST and own in pair.split() and pair != own
        ]
        topic = max(wider)[1].replace(own, theme) if wider else theme
        stems = frozenset(stem(word) for word in runs(topic))
        if stems.isdisjoint(chain(*topics)):
            topics[stems] = topic
    return tuple(topics.values())[:_TOPICS]


def _phrases(member: Memory, speakers: set[str]) -> set[str]:
    """The telling words of a member, and pairs of them that stand side by side."""
    phrases = set[str]()
    for text in [turn.text for turn in member.turns] or [member.text]:
        for part in _PARTS.split(text):
            words = [word if _is_telling(word, speakers) else "" for word in runs(part)]
            phrases.update(filter(None, words))
            phrases.update(f"{one} {next_}" for one, next_ in pairwise(words) if one and next_)
    return phrases


def _is_telling(word: str, speakers: set[str]) -> bool:
    """Whether a word can name a topic: no small talk, verb or number, and nobody who speaks."""
    is_word = 3 <= len(word) <= _LONGEST_WORD and word.isalpha() and not gram_size(word)
    is_verb = word.endswith(("ed", "ing", "ly"))
    return is_word and not is_verb and word not in _DULL and not any(n.startswith(word) for n in speakers)


def name_of(topics: Sequence[str], members: Sequence[Memory]) -> str:
    """The name of an assembly: its three most telling topics, or how its first member begins."""
    if topics:
        return ", ".join(topics[:_NAMED])
    first = members[0]
    text = " ".join((first.turns[0].text if first.turns else first.text).split())
    return text if len(text) <= _SHORT else f"{text[:_SHORT].rstrip()}…"


def keywords(members: Iterable[Memory]) -> tuple[str, ...]:
    """The terms that most members have, at most twenty."""
    own = ({t for run in runs(m.text) if len(run) > 2 for t in terms_of_run(run)} for m in members)
    counts = Counter(term for terms in own for term in terms)
    return tuple(sorted(counts, key=lambda term: (-counts[term], term))[:_KEYWORDS])


def emotion_profile(members: Sequence[Memory]) -> dict[str, float]:
    """How members felt on average, of those that say so."""
    profile = {}
    for name in ("valence", "intensity"):
        felt = [getattr(member.emotion, name) for member in members if member.emotion]
        if said := [value for value in felt if value is not None]:
            profile[name] = round(fmean(said), 4)
    return profile


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
    if not 1 <= max_depth <= DEEPEST:
        raise BadInput(f"max_depth {max_depth!r} is not between 1 and {DEEPEST}")
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
