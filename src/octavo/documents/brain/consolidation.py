"""Up the levels without a model: what repeats in episodes becomes knowledge, what stays so is proposed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
from msgspec import Struct

from octavo.domain import patterns_found, runs
from octavo.domain.memory import Memory
from octavo.domain.patterns_found import Outcome, Pattern, PatternKind, PatternPolicy, Sighting, triples
from octavo.domain.rules import PROCEDURAL
from octavo.engine.account import Account


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
    proposals = _propose_stable(clerk, now, policy) if promote else []
    return Consolidated(
        patterns_found=len(patterns),
        patterns_promoted=outcomes.count("admitted"),
        knowledge_updated=sum(outcome in ("admitted", "superseding", "merged") for outcome in outcomes),
        proposals=tuple(proposals),
        duration_s=round(time.perf_counter() - began, 4),
    )


def find(account: Account, now: datetime, policy: PatternPolicy) -> list[Pattern]:
    """The patterns of the look-back, firm and not yet firm."""
    episodes = account.memories(kind="episode", since=now - timedelta(days=policy.days))
    return patterns_found.find(_sightings(episodes), now, policy)


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
                seen += [("outcomes", one.key, one) for one in map(runs.outcome_of, steps) if one]
            case "event" | "game_event":
                event = memory.data
                kind = event.get("event_type") or event.get("type")
                told = runs.part_of(event, "payload") or event
                if kind == "sandbox_denied" or event.get("sandbox_denied") or told.get("sandbox_denied"):
                    seen = [("denials", str(told.get("action") or told.get("command") or kind), None)]
            case _:
                talks.setdefault(memory.sandbox or memory.id, []).append(memory)
        yield from ((kind, key, memory.at, memory.id, outcome) for kind, key, outcome in seen)
    for talk in (sorted(talk, key=lambda memory: memory.at) for talk in talks.values()):
        turns = [turn for memory in talk for turn in memory.turns if turn.speaker == "user"]
        for pair in pairwise(str(turn.data["intent"]) for turn in turns if turn.data.get("intent")):
            yield "intents", "-".join(pair), talk[-1].at, talk[0].id, None


def _propose_stable(clerk: Account, now: datetime, policy: PatternPolicy) -> Iterator[str]:
    """Ask a person about knowledge that stood for long: one proposal a topic, however often this runs."""
    asked = {proposal.memory.topic for proposal in clerk.proposals()}
    asked |= {memory.topic for memory in clerk.memories(kind="skill")}
    pages = dict.fromkeys(patterns_found.PAGES.values())
    for fact in [fact for page in pages for fact in clerk.memories(kind="fact", category=page)]:
        if not fact.topic or not fact.topic.startswith("pattern/") or fact.topic in asked:
            continue
        since = datetime.fromisoformat(fact.data.get("since", now.isoformat()))
        uses = clerk.uses(fact.id).get(fact.id, 0)
        if patterns_found.is_stable(since, now, fact.data.get("consistency", 0.0), uses, policy):
            verdict = clerk.remember(
                fact.text,
                kind="skill",
                category=PROCEDURAL,
                topic=fact.topic,
                id=f"promote_{hashlib.sha256(fact.topic.encode()).hexdigest()[:24]}",
                data={**fact.data, "promoted_from": fact.id},
                source="promotion",
            )
            yield from [verdict.proposal] if verdict.proposal else []


def _fact(clerk: Account, pattern: Pattern) -> dict[str, Any]:
    """A firm pattern as the fact it becomes; what was known earlier keeps its beginning."""
    older = [m.data for m in clerk.memories(kind="fact", topic=pattern.topic) if m.text == pattern.text]
    known = older[-1] if older else {}
    first = min(pattern.first.isoformat(), known.get("first_seen", pattern.first.isoformat()))
    data: dict[str, Any] = {
        "frequency": pattern.count,
        "consistency": pattern.consistency,
        "first_seen": first,
        "last_seen": pattern.last.isoformat(),
        "since": known.get("since", first),
    }
    if pattern.outcome is not None:
        data["outcome"] = msgspec.to_builtins(pattern.outcome)
    return {
        "text": pattern.text,
        "kind": "fact",
        "topic": pattern.topic,
        "category": patterns_found.PAGES[pattern.kind],
        "confidence": pattern.confidence,
        "at": pattern.last,
        "links": {"evidence": list(pattern.sources)},
        "data": data,
    }
