"""Patterns in what happened, pure and without a model: action triples, intent pairs, denials, outcomes."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Literal

from msgspec import Struct

PatternKind = Literal["actions", "intents", "denials", "outcomes"]
# The page that a kind is learned on, its threshold, and its words with what stands between their parts.
_KINDS: Mapping[PatternKind, tuple[str, str, str, str]] = {
    "actions": ("strategies", "min_count", "the action sequence {} is used again and again", ", "),
    "intents": ("interaction_patterns", "min_count", "a person asks {}", " and then "),
    "denials": ("safety_constraints", "min_denials", "the sandbox denies {}", "-"),
    "outcomes": ("strategies", "min_outcomes", "{}", "-"),
}
PAGES = {kind: page for kind, (page, *_) in _KINDS.items()}
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
        """What it depends on, as a key."""
        return f"{self.command}-{self.tile}-{'holding' if self.holding else 'empty'}"

    @property
    def text(self) -> str:
        """The outcome in words; a question about the condition shares all but the last."""
        return f"{condition(self.command, self.tile, self.holding)}: {self.result}"


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


# What may be seen again: its kind and key, when and in which episode it was seen, and what came of it.
Sighting = tuple[PatternKind, str, datetime, str, Outcome | None]


def triples(actions: Sequence[str]) -> list[str]:
    """The keys of contiguous action triples; one that comes over and over in a run is told once."""
    windows = zip(actions, actions[1:], actions[2:], strict=False)
    return ["-".join(triple) for triple, _ in groupby(windows)]


def find(sightings: Iterable[Sighting], now: datetime, rules: PatternPolicy) -> list[Pattern]:
    """Every pattern of the look-back, firm ones first, then by count; older events do not count."""
    since = now - timedelta(days=rules.days)
    seen: dict[tuple[PatternKind, str], list[Sighting]] = {}
    for one in (one for one in sightings if since <= one[2] <= now):
        seen.setdefault(one[:2], []).append(one)
    patterns = [_pattern(kind, key, some, rules) for (kind, key), some in seen.items()]
    return sorted(patterns, key=lambda p: (not p.is_firm, -p.count, p.kind, p.key))


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
    results = Counter(outcome.result if outcome else "" for *_, outcome in seen)
    result, most = min(results.items(), key=lambda pair: (-pair[1], pair[0]))
    same = [one for one in seen if one[4] is None or one[4].result == result]
    newest = sorted(same, key=lambda one: one[2], reverse=True)
    sources, consistency = dict.fromkeys(one[3] for one in newest), most / len(seen)
    outcome, (_, least, words, between) = same[0][4], _KINDS[kind]
    confidence = most / (most + 1) if kind != "denials" else rules.denial_confidence
    if outcome:
        confidence = consistency * (most + 1) / (most + 2)
    is_often = most >= getattr(rules, least) and consistency >= rules.consistency
    is_spread = kind in ("denials", "outcomes") or len(sources) >= rules.min_sources
    return Pattern(
        kind=kind,
        key=key,
        text=outcome.text if outcome else words.format(between.join(key.split("-"))),
        count=most,
        consistency=round(consistency, 4),
        confidence=round(confidence, 4),
        first=newest[-1][2],
        last=newest[0][2],
        sources=tuple(sources)[:EVIDENCE],
        is_firm=is_often and is_spread,
        outcome=outcome,
    )
