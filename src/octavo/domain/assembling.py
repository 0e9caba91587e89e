"""Assembling: what may belong together, how an assembly is made, named and merged, and how far it lifts.

An assembly is a memory that points to its members; likenesses come in as numbers, from whoever has vectors.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import chain, product
from typing import Literal

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

KIND: Literal["assembly"] = "assembly"
GROUPED = ("episode", "fact")
PART, MERGED_FROM, MERGED_INTO = "part", "merged_from", "merged_into"
LEAST = 2
_NAMED, _KEYWORDS, _TOPICS = 3, 20, 8
_READ = 24  # members that lend an assembly its name; more say the same
_SHORT, _LONGEST_WORD = 60, 40
_PARTS = pattern(r"[.!?,;:()\"“”\n…–—]+")
_DULL = cues.GENERIC | cues.SMALL_TALK | cues.STOP | word_lists.listed("themes.verbs")

Rarity = Callable[[str], float]
Phrases = dict[tuple[str, ...], tuple[int, str]]


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
    return Memory(
        id=id_,
        rev=0,
        kind=KIND,
        scope=first.scope,
        source="promotion",
        actor="system",
        at=first.at,
        salience=0.0,
        confidence=1.0,
        data={"topics": [], "schema_version": "1.0", "formed": {"by": by, **told}},
    )


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
    phrases, topics = _phrases(read), dict[frozenset[str], str]()
    weights = {one.theme: one.weight for one in themes(sources) if (one.sessions or 0) >= LEAST}
    if not weights:  # no theme is told: the words that half of them have
        words = {word: count for stems, (count, word) in phrases.items() if len(stems) == 1}
        weights = {word: count for word, count in words.items() if count >= max(LEAST, len(read) / 2)}
    for theme in sorted(weights, key=lambda theme: (-weights[theme] * rarity(theme) ** 2, theme)):
        topic = _widened(theme, phrases)
        stems = frozenset(stem(word) for word in runs(topic))
        if stems.isdisjoint(chain(*topics)):
            topics[stems] = topic
    return tuple(topics.values())[:_TOPICS]


def _phrases(members: Sequence[Memory]) -> Phrases:
    """Up to three telling words that stand side by side: in how many members, and as the last writes it."""
    speakers = {word for m in members for turn in m.turns for word in runs(turn.speaker)}
    counts: Phrases = {}
    for member in members:
        own: dict[tuple[str, ...], str] = {}
        texts = [turn.text for turn in member.turns] or [member.text]
        for words in (part.split() for text in texts for part in _PARTS.split(text)):
            stems = [None if _is_dull(word, speakers) else stem(fold(word)) for word in words]
            for size, at in product((1, 2, 3), range(len(words))):
                some = tuple(one for one in stems[at : at + size] if one)
                if len(some) == size:
                    own[some] = " ".join(words[at : at + size])
        counts |= {some: (counts.get(some, (0, ""))[0] + 1, phrase) for some, phrase in own.items()}
    return counts


def _widened(theme: str, phrases: Phrases) -> str:
    """A theme with the words that it mostly stands beside: group, support group, LGBTQ support group."""
    stems = tuple(stem(word) for word in runs(theme))
    able = [
        (count, len(longer), phrase)
        for longer, (count, phrase) in phrases.items()
        if count >= LEAST and len(longer) > len(stems)
        if any(longer[at : at + len(stems)] == stems for at in range(len(longer)))
    ]
    return max(able, default=(0, 0, theme))[2]


def _is_dull(word: str, speakers: set[str]) -> bool:
    """Whether a word tells no topic: small talk, a verb, a number, or somebody who speaks."""
    plain = fold(word)
    is_word = 3 <= len(plain) <= _LONGEST_WORD and plain.isalpha() and not gram_size(plain)
    is_verb = plain.endswith(("ed", "ing", "ly"))
    return not is_word or is_verb or plain in _DULL or any(name.startswith(plain) for name in speakers)


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


def emotion_profile(members: Iterable[Memory]) -> dict[str, float]:
    """How members felt on average, of those that say so."""
    felt = [member.emotion for member in members if member.emotion is not None]
    said = {
        "valence": [one.valence for one in felt if one.valence is not None],
        "intensity": [one.intensity for one in felt if one.intensity is not None],
    }
    return {name: round(sum(values) / len(values), 4) for name, values in said.items() if values}


def basis_of(revisions: Iterable[tuple[str, int]]) -> str:
    """A hash of the revisions that a composite is made of, in no order."""
    told = "\n".join(f"{id_} {rev}" for id_, rev in sorted(revisions))
    return hashlib.sha256(told.encode()).hexdigest()[:16]


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
