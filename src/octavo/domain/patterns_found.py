"""Patterns in what happened, pure and without a model: action triples, intent pairs, denials, outcomes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Literal

from msgspec import Struct

PatternKind = Literal["actions", "intents", "denials", "outcomes"]
PAGES: Mapping[PatternKind, str] = {
    "actions": "strategies",
    "intents": "interaction_patterns",
    "denials": "safety_constraints",
    "outcomes": "strategies",
}
EVIDENCE = 5  # how many sources a pattern names
_PLAIN = re.compile(r"[a-z0-9_-]{1,64}")


class PatternPolicy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """When something seen again counts: the seed's look-back and thresholds."""

    days: float = 7.0
    min_count: int = 3
    min_sources: int = 2
    min_denials: int = 2
    min_outcomes: int = 2
    consistency: float = 0.9
    denial_confidence: float = 0.9
    stable_days: float = 30.0
    min_uses: int = 3


class Outcome(Struct, frozen=True, kw_only=True):
    """What a command led to: the tile ahead, whether a key was in hand, and the result."""

    command: str
    tile: str
    holding: bool
    result: str

    @property
    def key(self) -> str:
        """The condition, without the result."""
        return f"{self.command}-{self.tile}-{'holding' if self.holding else 'empty'}"

    @property
    def text(self) -> str:
        """The outcome in words; a question about the condition shares all but the last."""
        return f"{condition(self.command, self.tile, self.holding)}: {self.result}"


class Trace(Struct, frozen=True, kw_only=True):
    """What one episode or session holds that patterns are looked for in; `source` is its memory's id."""

    source: str
    at: datetime
    actions: tuple[str, ...] = ()
    intents: tuple[str, ...] = ()
    denials: tuple[str, ...] = ()
    outcomes: tuple[Outcome, ...] = ()


class Pattern(Struct, frozen=True, kw_only=True):
    """Something seen again: how often, when, where, how sure; `is_firm` says that it became knowledge."""

    kind: PatternKind
    key: str
    text: str
    count: int
    consistency: float
    confidence: float
    first: datetime
    last: datetime
    sources: tuple[str, ...]
    is_firm: bool
    outcome: Outcome | None = None

    @property
    def topic(self) -> str:
        """The topic of the fact it becomes, safe as a path."""
        return f"pattern/{self.kind}/{plain_key(self.key)}"

    @property
    def page(self) -> str:
        """The knowledge page it stands on."""
        return PAGES[self.kind]


Sighting = tuple[datetime, str, Outcome | None]  # when, in which episode, and what came of it


def find(traces: Iterable[Trace], now: datetime, policy: PatternPolicy | None = None) -> list[Pattern]:
    """Every pattern of the look-back, firm ones first, then by count; older events do not count."""
    rules = policy or PatternPolicy()
    since = now - timedelta(days=rules.days)
    seen: dict[tuple[PatternKind, str], list[Sighting]] = {}
    for trace in (trace for trace in traces if since <= trace.at <= now):
        for kind, key, outcome in _things_in(trace):
            seen.setdefault((kind, key), []).append((trace.at, trace.source, outcome))
    patterns = [_pattern(kind, key, sightings, rules) for (kind, key), sightings in seen.items()]
    return sorted(patterns, key=lambda p: (not p.is_firm, -p.count, p.kind, p.key))


def _things_in(trace: Trace) -> Iterator[tuple[PatternKind, str, Outcome | None]]:
    """Everything in an episode that may be seen again."""
    yield from (("actions", "-".join(triple), None) for triple in triples(trace.actions))
    yield from (("intents", "-".join(pair), None) for pair in pairs(trace.intents))
    yield from (("denials", key, None) for key in trace.denials)
    yield from (("outcomes", outcome.key, outcome) for outcome in trace.outcomes)


def triples(actions: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Contiguous action triples; the same one over and over in a run of repeats is told once."""
    windows = (tuple(actions[n : n + 3]) for n in range(len(actions) - 2))
    return (triple for triple, _ in groupby(windows))


def pairs(intents: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Two intents of a person, one after the other."""
    return (tuple(intents[n : n + 2]) for n in range(len(intents) - 1))


def condition(command: str, tile: str, holding: bool) -> str:
    """What an outcome depends on, in words."""
    return f"{command} onto {tile} {'with' if holding else 'without'} a key"


def plain_key(key: str) -> str:
    """A key as a file name or topic can hold it; two different keys never become one."""
    if _PLAIN.fullmatch(key):
        return key
    slug = re.sub(r"[^a-z0-9_-]+", "-", key.lower()).strip("-")[:48]
    return f"{slug or 'x'}-{hashlib.sha256(key.encode()).hexdigest()[:12]}"


def is_stable(first: datetime, now: datetime, consistency: float, uses: int, policy: PatternPolicy) -> bool:
    """Whether knowledge has stood long enough, and served often enough, to be proposed as a skill."""
    aged = now - first >= timedelta(days=policy.stable_days)
    return aged and consistency >= policy.consistency and uses >= policy.min_uses


def _pattern(kind: PatternKind, key: str, seen: list[Sighting], rules: PatternPolicy) -> Pattern:
    """What was seen as a pattern; of a condition that led to several things the one it mostly led to.

    Confidence in an outcome follows the rule of succession: after two sightings the gate's floor is passed.
    """
    results = Counter(outcome.result for _, _, outcome in seen if outcome is not None)
    result, most = min(results.items(), key=lambda pair: (-pair[1], pair[0]), default=("", len(seen)))
    same = [one for one in seen if one[2] is None or one[2].result == result]
    newest = sorted(same, key=lambda one: one[0], reverse=True)
    sources, consistency = dict.fromkeys(source for _, source, _ in newest), most / len(seen)
    match kind:
        case "denials":
            firm, confidence = most >= rules.min_denials, rules.denial_confidence
        case "outcomes":
            firm = most >= rules.min_outcomes and consistency >= rules.consistency
            confidence = consistency * (most + 1) / (most + 2)
        case _:
            firm = most >= rules.min_count and len(sources) >= rules.min_sources
            confidence = most / (most + 1)
    outcome = same[0][2]
    return Pattern(
        kind=kind,
        key=key,
        text=outcome.text if outcome else _said(kind, key),
        count=most,
        consistency=round(consistency, 4),
        confidence=round(confidence, 4),
        first=newest[-1][0],
        last=newest[0][0],
        sources=tuple(sources)[:EVIDENCE],
        is_firm=firm,
        outcome=outcome,
    )


def _said(kind: PatternKind, key: str) -> str:
    match kind:
        case "actions":
            return f"the action sequence {', '.join(key.split('-'))} is used again and again"
        case "intents":
            return f"a person asks {' and then '.join(key.split('-'))}"
        case _:
            return f"the sandbox denies {key}"
