"""Up the levels without a model: what repeats in episodes becomes knowledge, what stays so is proposed.

Four things can repeat: action triples, intent pairs of a person, denials of the sandbox, outcomes of actions.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby, pairwise
from typing import Any, Literal

import msgspec
from msgspec import Struct

from octavo.domain import rules, runs
from octavo.domain.memory import Memory
from octavo.domain.mirror_places import safe
from octavo.domain.policy import PatternPolicy
from octavo.domain.runs import Outcome
from octavo.engine.account import Account

PatternKind = Literal["actions", "intents", "denials", "outcomes"]
# The page that a kind is learned on, its threshold, and its words with what stands between their parts.
_KINDS: Mapping[PatternKind, tuple[str, str, str, str]] = {
    "actions": ("strategies", "min_count", "the action sequence {} is used again and again", ", "),
    "intents": ("interaction_patterns", "min_count", "a person asks {}", " and then "),
    "denials": ("safety_constraints", "min_denials", "the sandbox denies {}", "-"),
    "outcomes": ("strategies", "min_outcomes", "{}", "-"),
}
_EVIDENCE = 5  # how many sources a pattern names
# What may be seen again: its kind and key, when and in which episode it was seen, and what came of it.
Sighting = tuple[PatternKind, str, datetime, str, Outcome | None]


class Pattern(Struct, frozen=True, kw_only=True):
    """Something seen again: how often, when, where, how sure; `is_firm` says that it became knowledge.

    That is a fact of its `topic` on a `page`; two different keys never have one topic.
    """

    kind: PatternKind
    key: str
    topic: str
    page: str
    text: str
    count: int
    consistency: float
    confidence: float
    first: datetime
    last: datetime
    sources: tuple[str, ...]
    is_firm: bool
    outcome: Outcome | None = None


class Consolidated(Struct, frozen=True, kw_only=True):
    """What a consolidation up the levels found and did."""

    patterns_found: int
    patterns_promoted: int
    knowledge_updated: int
    proposals: tuple[str, ...]
    duration_s: float


def consolidate(
    account: Account, now: datetime, policy: PatternPolicy, *, promote: bool = False
) -> Consolidated:
    """Find patterns in recent episodes and write the firm ones as facts; running again only revises.

    With `promote` knowledge that stood long enough becomes one proposal each, never a change. Patterns are
    nobody's own word: not even a person's handle approves them by finding them.
    """
    began, clerk = time.perf_counter(), account.intake.as_agent()
    patterns = find(account, now, policy)
    facts = [_fact(clerk, pattern) for pattern in patterns if pattern.is_firm]
    outcomes = [verdict.outcome for verdict in clerk.remember_many(facts)] if facts else []
    return Consolidated(
        patterns_found=len(patterns),
        patterns_promoted=outcomes.count("admitted"),
        knowledge_updated=sum(outcome in ("admitted", "superseding", "merged") for outcome in outcomes),
        proposals=tuple(_propose_stable(clerk, now, policy)) if promote else (),
        duration_s=round(time.perf_counter() - began, 4),
    )


def find(account: Account, now: datetime, policy: PatternPolicy) -> list[Pattern]:
    """The patterns of the look-back, firm and not yet firm."""
    since = now - timedelta(days=policy.days)
    return patterns_of(_sightings(account.memories(kind="episode", since=since, until=now)), policy)


def patterns_of(sightings: Iterable[Sighting], policy: PatternPolicy) -> list[Pattern]:
    """Every pattern of some sightings, firm ones first, then by count."""
    seen: dict[tuple[PatternKind, str], list[Sighting]] = {}
    for one in sightings:
        seen.setdefault(one[:2], []).append(one)
    patterns = [_pattern(some, policy) for some in seen.values()]
    return sorted(patterns, key=lambda p: (not p.is_firm, -p.count, p.kind, p.key))


def triples(actions: Sequence[str]) -> list[str]:
    """The keys of contiguous action triples; one that comes over and over in a run is told once."""
    windows = zip(actions, actions[1:], actions[2:], strict=False)
    return ["-".join(triple) for triple, _ in groupby(windows)]


def _sightings(episodes: Iterable[Memory]) -> Iterator[Sighting]:
    """What can be counted in episodes: runs, events of both shapes, and the intents of conversations."""
    talks: dict[str, list[Memory]] = {}
    for memory in episodes:
        seen: list[tuple[PatternKind, str, Outcome | None]] = []
        match memory.category:
            case runs.CATEGORY:
                steps = [step for step in runs.steps_of(memory.data) if runs.command_of(step)]
                denied = (f"{runs.command_of(s)}-{runs.tile_ahead(s)}" for s in steps if runs.is_denied(s))
                seen += [("actions", key, None) for key in triples([runs.command_of(step) for step in steps])]
                seen += [("denials", key, None) for key in denied]
                seen += [("outcomes", one.condition, one) for one in map(runs.outcome_of, steps) if one]
            case "event" | "game_event":
                event = memory.data
                kind = event.get("event_type") or event.get("type")
                told = runs.part_of(event, "payload") or event
                if kind == "sandbox_denied" or event.get("sandbox_denied") or told.get("sandbox_denied"):
                    seen = [("denials", str(told.get("action") or told.get("command") or kind), None)]
            case _:
                talks.setdefault(memory.sandbox or memory.id, []).append(memory)
        yield from ((kind, key, memory.at, memory.id, outcome) for kind, key, outcome in seen)
    for talk in talks.values():
        turns = [turn for memory in talk for turn in memory.turns if turn.speaker == "user"]
        for pair in pairwise(str(turn.data["intent"]) for turn in turns if turn.data.get("intent")):
            yield "intents", "-".join(pair), talk[-1].at, talk[0].id, None


def _pattern(seen: list[Sighting], policy: PatternPolicy) -> Pattern:
    """What was seen as a pattern; of a condition that led to several things the one it mostly led to.

    Confidence in an outcome follows the rule of succession: after two sightings the gate's floor is passed.
    """
    kind, key = seen[0][:2]
    results = Counter(outcome.result if outcome else "" for *_, outcome in seen)
    result, most = min(results.items(), key=lambda pair: (-pair[1], pair[0]))
    same = [one for one in seen if one[4] is None or one[4].result == result]
    same.sort(key=lambda one: one[2], reverse=True)
    sources, consistency = dict.fromkeys(one[3] for one in same), most / len(seen)
    outcome, (page, least, words, between) = same[0][4], _KINDS[kind]
    confidence = most / (most + 1) if kind != "denials" else policy.denial_confidence
    if outcome:
        confidence = consistency * (most + 1) / (most + 2)
    is_often = most >= getattr(policy, least) and consistency >= policy.consistency
    is_spread = kind in ("denials", "outcomes") or len(sources) >= policy.min_sources
    return Pattern(
        kind=kind,
        key=key,
        topic=f"pattern/{kind}/{safe(key)}",
        page=page,
        text=outcome.text if outcome else words.format(between.join(key.split("-"))),
        count=most,
        consistency=round(consistency, 4),
        confidence=round(confidence, 4),
        first=same[-1][2],
        last=same[0][2],
        sources=tuple(sources)[:_EVIDENCE],
        is_firm=is_often and is_spread,
        outcome=outcome,
    )


def _fact(clerk: Account, pattern: Pattern) -> dict[str, Any]:
    """A firm pattern as the fact it becomes; what was known earlier keeps its beginning."""
    older = [m.data for m in clerk.memories(kind="fact", topic=pattern.topic) if m.text == pattern.text]
    known, first = older[-1] if older else {}, pattern.first.isoformat()
    data = {
        "frequency": pattern.count,
        "consistency": pattern.consistency,
        "first_seen": min(first, known.get("first_seen", first)),
        "last_seen": pattern.last.isoformat(),
    }
    return {
        "text": pattern.text,
        "kind": "fact",
        "topic": pattern.topic,
        "category": pattern.page,
        "confidence": pattern.confidence,
        "at": pattern.last,
        "links": {"evidence": list(pattern.sources)},
        "data": data | ({"outcome": msgspec.to_builtins(pattern.outcome)} if pattern.outcome else {}),
    }


def _propose_stable(clerk: Account, now: datetime, policy: PatternPolicy) -> Iterator[str]:
    """Ask a person about knowledge that stood for long and served often: one proposal a topic, ever."""
    asked = {proposal.memory.topic for proposal in clerk.proposals()}
    asked |= {memory.topic for memory in clerk.memories(kind="skill")}
    pages = dict.fromkeys(page for page, *_ in _KINDS.values())
    for fact in [fact for page in pages for fact in clerk.memories(kind="fact", category=page)]:
        if not fact.topic or not fact.topic.startswith("pattern/") or fact.topic in asked:
            continue
        stood = now - datetime.fromisoformat(fact.data.get("first_seen", now.isoformat()))
        is_sure = fact.data.get("consistency", 0.0) >= policy.consistency
        is_used = clerk.uses(fact.id).get(fact.id, 0) >= policy.min_uses
        if stood >= timedelta(days=policy.stable_days) and is_sure and is_used:
            verdict = clerk.remember(
                fact.text,
                kind="skill",
                category=rules.PROCEDURAL,
                topic=fact.topic,
                id=f"promote_{hashlib.sha256(fact.topic.encode()).hexdigest()[:24]}",
                data={**fact.data, "promoted_from": fact.id},
                source="promotion",
            )
            yield from [verdict.proposal] if verdict.proposal else []
