"""What can be asked of a Memory Vault: its records, searched, reviewed, counted and told to a prompt."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import Any

from msgspec.structs import replace

from octavo.documents.vault.lines import TIERS, Entry, VaultMemory, newest, parse, time_of
from octavo.documents.vault.view import VaultView
from octavo.domain import brief, privacy
from octavo.domain.memory import SHARED, Kind, Memory
from octavo.domain.policy import PrivacyPolicy
from octavo.domain.text import UNSPACED, words
from octavo.engine.account import Account
from octavo.engine.surface import fitted, public
from octavo.errors import BadInput

JOURNAL, DIRECTIVE = "event", "directive"  # the categories of what stands beside the vault
VALID_SCOPES = (SHARED, "orion", "elysia")

_TOKEN = re.compile(r"\w+")
_UNSPACED = re.compile(f"[{UNSPACED}]")

Scopes = str | Sequence[str] | None


@public
class VaultReader:
    """The reading half of a vault: without an account and a view it is switched off and holds nothing."""

    max_active: int
    max_items: int
    _account: Account | None = None
    _view: VaultView | None = None
    _scopes: tuple[str, ...] | None

    def get(self, memory_id: str) -> VaultMemory | None:
        """A live memory, or None."""
        entry = self._latest().get(memory_id)
        return entry.record if entry and self._is_shown(entry) else None

    def resolve_latest(self) -> dict[str, VaultMemory]:
        """Every memory at its highest version, tombstones included."""
        return {id_: entry.record for id_, entry in self._latest().items() if self._sees(entry.record.scope)}

    def recall(
        self,
        scope: Scopes = None,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        limit: int | None = None,
    ) -> list[VaultMemory]:
        """Live memories of these scopes, newest first; one matching tag is enough."""
        records = [entry.record for entry in self._shown(scope)]
        if category is not None:
            records = [record for record in records if record.category == category.strip().lower()]
        if tags:
            records = [record for record in records if any(tag in record.tags for tag in tags)]
        return records if limit is None else records[: max(limit, 0)]

    def search_memories(self, query: str, scope: Scopes = None, limit: int = 10) -> list[VaultMemory]:
        """Live memories that share a word with the query, best first, each with the seed's score."""
        scored = [
            replace(entry.record, score=score)
            for entry in self._shown(scope)
            if (score := search_score(query, entry.record.text)) > 0
        ]
        scored.sort(key=lambda record: -(record.score or 0))
        return scored[: max(limit, 0)]

    def find_consolidation_candidates(
        self, scope: str | None = None, floor: float = 0.50, *, similarity_floor: float | None = None
    ) -> list[tuple[VaultMemory, VaultMemory, float]]:
        """Pairs of live memories that look alike, best first, for a person to review.

        Up to 100 memories of a scope all are compared; up to 2,000 every pair that shares words enough is
        found; beyond, near-duplicates are, and looser pairs as far as the index meets them.
        `similarity_floor` is the floor's older name.
        """
        shown = {entry.memory.id: entry.record for entry in self._shown(scope)}
        lowest = floor if similarity_floor is None else similarity_floor
        account = self._account
        pairs = account.merge_candidates(scope=scope, floor=lowest, kinds=TIERS) if account else []
        named = ((pair.first.id, pair.second.id, pair.score) for pair in pairs)
        return [(shown[one], shown[other], like) for one, other, like in named if {one, other} <= {*shown}]

    def read_journal(self, scope: Scopes = None, limit: int = 20) -> list[Memory]:
        """What the journal holds, newest first: ticks, check-ins, what the gate keeps out."""
        return self._beside("episode", JOURNAL, scope)[: max(limit, 0)]

    def directives(self, query: str | None = None, scope: Scopes = None, limit: int = 10) -> list[Memory]:
        """The rules of behaviour that fit a query, best first; without one the newest."""
        rules = self._beside("skill", DIRECTIVE, scope)
        if query is not None:
            scored = [(search_score(query, rule.text), rule) for rule in rules]
            rules = [rule for score, rule in sorted(scored, key=lambda pair: -pair[0]) if score > 0]
        return rules[: max(limit, 0)]

    def _beside(self, kind: Kind, category: str, scope: Scopes) -> list[Memory]:
        """What the account holds beside the vault's own lines, newest first."""
        names = self._known(scope)
        kept = [] if self._account is None else self._account.memories(kind=kind, category=category)
        seen = [m for m in kept if self._sees(m.scope) and (names is None or m.scope in names)]
        return sorted(seen, key=lambda memory: memory.at, reverse=True)

    def propose_deletions(self, scope: str | None = None) -> list[dict[str, Any]]:
        """Memories that might go, each with a reason; nothing is deleted."""
        shown = {entry.memory.id: entry.record.to_dict() for entry in self._shown(scope)}
        doubts = self._account.deletion_candidates(scope=scope) if self._account else []
        return [shown[one.memory.id] | {"reason": one.reason} for one in doubts if one.memory.id in shown]

    def build_snapshot(self, scope: Scopes = None, budget: int | None = None) -> str:
        """Canon and the registers with a topic, as a block for every prompt."""
        memories = [entry.memory for entry in self._shown(_seen_by(scope))]
        return str(brief.render(memories, budget=budget))

    def vault_stats(self) -> dict[str, Any]:
        """How full the vault is, and how much of its file is history."""
        active = [entry.record for entry in self._latest().values() if entry.record.deleted_at is None]
        data = b"" if self._view is None else self._view.data()
        raw = sum(1 for line in data.split(b"\n") if line.strip())
        return {
            "active_count": len(active),
            "max_active": self.max_active,
            "utilization_pct": round(100 * len(active) / self.max_active, 1) if self.max_active else 0.0,
            "deleted_count": sum(1 for r in newest(parse(data)[0]).values() if r.deleted_at is not None),
            "raw_lines": raw,
            "compactable_lines": raw - len(active),
            "bloat_ratio": round(raw / len(active), 2) if active else float(raw),
            "by_scope": dict(Counter(record.scope for record in active)),
            "by_tier": dict(Counter(record.tier for record in active)),
            "by_category": dict(Counter(record.category for record in active)),
            "register_topics": sum(1 for r in active if r.tier == "register" and r.topic_id),
        }

    def _holder(self, topic_id: str | None, scope: str) -> VaultMemory | None:
        """The live register that holds a topic."""
        wanted = ("register", scope, topic_id, None)
        records = (entry.record for entry in self._latest().values())
        return next((r for r in records if (r.tier, r.scope, r.topic_id, r.deleted_at) == wanted), None)

    def _shown(self, scope: Scopes = None) -> list[Entry]:
        """Live memories in these scopes, newest first."""
        names = self._known(scope)
        entries = [e for e in self._latest().values() if names is None or e.record.scope in names]
        entries.sort(key=lambda entry: time_of(entry.record.created_at))
        return [entry for entry in reversed(entries) if self._is_shown(entry)]

    def _is_shown(self, entry: Entry) -> bool:
        return entry.record.deleted_at is None and self._sees(entry.record.scope)

    def _sees(self, scope: str) -> bool:
        return self._scopes is None or scope in self._scopes

    def _known(self, scope: Scopes) -> set[str] | None:
        """The scopes that are asked for, each known here; None for all."""
        names = None if scope is None else {scope} if isinstance(scope, str) else set(scope)
        for name in names or ():
            self._must_know(name)
        return names

    def _must_know(self, scope: str) -> None:
        known = self._scopes
        if known is None:
            known = tuple({*VALID_SCOPES, *(e.record.scope for e in self._latest().values())})
        if scope not in known:
            raise BadInput(f"scope {scope!r} is unknown", hint=f"use one of {', '.join(sorted(known))}")

    def _latest(self) -> dict[str, Entry]:
        return {} if self._view is None else self._view.latest()


def build_memory_block(
    vault: VaultReader,
    scopes: Scopes = None,
    query: str | None = None,
    max_items: int | None = None,
    budget: int | None = None,
) -> str:
    """The relevance-filtered block of seed 002: canon first, empty when nothing fits."""
    limit = vault.max_items if max_items is None else max_items
    seen = _seen_by(scopes)
    records = vault.recall(seen, limit=limit) if query is None else vault.search_memories(query, seen, limit)
    latest = vault._latest()
    return str(brief.render([], [latest[record.id].memory for record in records], budget=budget))


def build_snapshot_block(vault: VaultReader, scopes: Scopes = None, budget: int | None = None) -> str:
    """The always-injected block of seed 002: canon and active registers."""
    return vault.build_snapshot(scopes, budget)


def _seen_by(scope: Scopes) -> Scopes:
    """One agent's name stands for what that agent sees: `shared` and its own."""
    return (SHARED, scope) if isinstance(scope, str) else scope


@fitted
def check_pii(text: str) -> list[str]:
    """What in a text must not be kept: the names of secrets and personal data, none if it is clean."""
    return list(dict.fromkeys(what for what, *_ in privacy.find(text, PrivacyPolicy())))


@fitted
def search_score(query: str, text: str) -> float:
    """The seed's score: shared tokens, a bonus for the whole query, and the ratio of matching stretches."""
    asked, said = query.lower().strip(), text.lower()
    wanted = _tokens(asked)
    shared = wanted & _tokens(said)
    if not shared:
        return 0.0
    bonus = 0.3 if asked in said else 0.0
    return len(shared) / len(wanted) + bonus + 0.4 * SequenceMatcher(None, asked, said).ratio()


def _tokens(text: str) -> set[str]:
    """The seed's tokens; a script without spaces has none, so there its grams stand in for words."""
    return set(words(text) if _UNSPACED.search(text) else _TOKEN.findall(text))
