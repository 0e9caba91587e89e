"""Up the levels without a model: what repeats in episodes becomes knowledge, what stays so is proposed."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
from msgspec import Struct

from octavo.domain import patterns_found, runs
from octavo.domain.memory import Memory
from octavo.domain.patterns_found import Pattern, PatternPolicy, Trace
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

    With `promote` knowledge that stood long enough becomes one proposal each, never a change.
    """
    began = time.perf_counter()
    patterns = find(account, now, policy)
    firm = [pattern for pattern in patterns if pattern.is_firm]
    older = {m.topic: m for p in firm for m in account.memories(kind="fact", topic=p.topic)}
    facts = [_fact(pattern, older.get(pattern.topic)) for pattern in firm]
    verdicts = account.remember_many(facts) if facts else []
    proposals = propose_stable(account, now, policy) if promote else ()
    return Consolidated(
        patterns_found=len(patterns),
        patterns_promoted=sum(1 for v in verdicts if v.outcome == "admitted"),
        knowledge_updated=sum(1 for v in verdicts if v.outcome in ("admitted", "superseding", "merged")),
        proposals=proposals,
        duration_s=round(time.perf_counter() - began, 4),
    )


def find(account: Account, now: datetime, policy: PatternPolicy) -> list[Pattern]:
    """The patterns of the look-back, firm and not yet firm."""
    episodes = account.memories(kind="episode", since=now - timedelta(days=policy.days))
    return patterns_found.find(traces(episodes), now, policy)


def traces(episodes: Iterable[Memory]) -> list[Trace]:
    """What can be counted in episodes: runs, events of both shapes, and the intents of conversations."""
    found, talks = [], dict[str, list[Memory]]()
    for memory in episodes:
        match memory.category:
            case runs.CATEGORY:
                found.append(_run(memory))
            case "event" | "game_event":
                found.append(Trace(source=memory.id, at=memory.at, denials=_denials(memory.data)))
            case _:
                talks.setdefault(memory.sandbox or memory.id, []).append(memory)
    return found + [_talk(memories) for memories in talks.values()]


def propose_stable(account: Account, now: datetime, policy: PatternPolicy) -> tuple[str, ...]:
    """Ask a person about knowledge that stood for long: one proposal a topic, however often this runs."""
    asked = {proposal.memory.topic for proposal in account.proposals()}
    skills = {memory.topic for memory in account.memories(kind="skill")}
    ids = []
    pages = sorted(set(patterns_found.PAGES.values()))
    for fact in (fact for page in pages for fact in account.memories(kind="fact", category=page)):
        if not fact.topic or not fact.topic.startswith("pattern/") or fact.topic in asked | skills:
            continue
        since = datetime.fromisoformat(fact.data.get("since", now.isoformat()))
        uses = account.uses(fact.id).get(fact.id, 0)
        if patterns_found.is_stable(since, now, fact.data.get("consistency", 0.0), uses, policy):
            verdict = account.remember(
                fact.text,
                kind="skill",
                category=PROCEDURAL,
                topic=fact.topic,
                id=f"promote_{hashlib.sha256(fact.topic.encode()).hexdigest()[:24]}",
                data={**fact.data, "promoted_from": fact.id},
                source="promotion",
            )
            ids += [verdict.proposal] if verdict.proposal else []
    return tuple(ids)


def _fact(pattern: Pattern, older: Memory | None) -> dict[str, Any]:
    """A firm pattern as the fact it becomes; what was known earlier keeps its beginning."""
    known = dict(older.data) if older is not None and older.text == pattern.text else {}
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
        "category": pattern.page,
        "confidence": pattern.confidence,
        "at": pattern.last,
        "links": {"evidence": list(pattern.sources)},
        "data": data,
    }


def _run(memory: Memory) -> Trace:
    steps = [step for step in runs.steps_of(memory.data) if runs.command_of(step)]
    return Trace(
        source=memory.id,
        at=memory.at,
        actions=tuple(runs.command_of(step) for step in steps),
        denials=tuple(
            f"{runs.command_of(step)}-{runs.tile_ahead(step)}" for step in steps if runs.is_denied(step)
        ),
        outcomes=tuple(outcome for step in steps if (outcome := runs.outcome_of(step)) is not None),
    )


def _denials(event: Mapping[str, Any]) -> tuple[str, ...]:
    kind, payload = event.get("event_type") or event.get("type"), runs.part_of(event, "payload") or event
    denied = kind == "sandbox_denied" or event.get("sandbox_denied") or payload.get("sandbox_denied")
    return (str(payload.get("action") or payload.get("command") or kind),) if denied else ()


def _talk(memories: Sequence[Memory]) -> Trace:
    ordered = sorted(memories, key=lambda memory: memory.at)
    turns = [turn for memory in ordered for turn in memory.turns if turn.speaker == "user"]
    intents = tuple(str(turn.data["intent"]) for turn in turns if turn.data.get("intent"))
    return Trace(source=ordered[0].id, at=ordered[-1].at, intents=intents)
