"""The Memory Vault of seed 002, as written there, on top of an account that lies beside its file."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import octavo
from octavo.domain.memory import SHARED, check_scope
from octavo.domain.policy import Policy
from octavo.domain.verdicts import Verdict
from octavo.engine.account import Account
from octavo.errors import BadInput, NotFound, Refused
from octavo.interfaces.documents.vault.actions import allowed
from octavo.interfaces.documents.vault.desk import Desk
from octavo.interfaces.documents.vault.live_file import VaultFile
from octavo.interfaces.documents.vault.profile import read_profile
from octavo.interfaces.documents.vault.reading import Scopes, VaultReader
from octavo.interfaces.formats.vault_records import TIERS, Problem, VaultMemory
from octavo.storage import codec
from octavo.storage.stores.names import folder_of

MAX_ACTIVE = 100
_ACCOUNT = "vault"


class UnknownMemory(NotFound, KeyError):
    """The vault holds no live memory of that id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposed:
    """A change that waits for a person's yes, because an agent asked for it; false like a refusal."""

    proposal: str
    reason: str
    status: str = "proposed"

    def __bool__(self) -> bool:
        return False


class MemoryVault(VaultReader):
    """A scoped vault of canon and registers; `vault.jsonl` is its live view, the ledger its history.

    The account lies in `<path>.octavo`. `scopes` are the names this handle may use: the seed's three and
    those already in the vault, unless they are given. A file that is found there is taken in.
    The account's own policy.toml holds for what is not given here; where neither says how many memories
    may be active, it is the seed's 100. `actions` are what `vault_tool` may do with this handle.
    """

    def __init__(
        self,
        path: str | Path = "data/memory/vault.jsonl",
        *,
        max_active: int | None = None,
        similarity_threshold: float | None = None,
        token_overlap_threshold: float | None = None,
        scopes: Sequence[str] | None = None,
        max_items: int = 20,
        enabled: bool = True,
        actions: Sequence[str] | None = None,
        actor: str = "human:operator",
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        for name in scopes or ():
            check_scope(name)
        self.path = Path(path)
        self.enabled = enabled
        self.actions = allowed(actions, actor)
        folder = self.path.with_name(f"{self.path.name}.octavo")
        account = None
        if enabled:
            policy = _policy(folder, token_overlap_threshold, similarity_threshold)
            max_active = _limit(policy) if max_active is None else max_active
            # Vectors stay off: the vault's search is the seed's own, by words.
            account = octavo.open(
                folder,
                _ACCOUNT,
                actor=actor,
                policy=policy,
                embedder=False,
                clock=clock,
                guard=Desk(max_active=max_active),
            )
        file = VaultFile(self.path, folder)
        super().__init__(file, account, scopes=scopes, max_active=max_active, max_items=max_items)
        try:
            self._publish()
        except BaseException:
            self.close()
            raise

    @property
    def account(self) -> Account:
        """The account behind the vault, for what the seed has no word for: approval, history, redaction."""
        return self._must_write()

    @property
    def problems(self) -> list[Problem]:
        """What was unusual in a file that was found and taken in."""
        return [] if self._view is None else self._view.problems

    @classmethod
    def from_profile(
        cls, profile: str | Path, path: str | Path = "data/memory/vault.jsonl", **more: Any
    ) -> MemoryVault:
        """Open a vault as an agent's profile says: its scopes, its limits, and whether memory is on."""
        found = read_profile(Path(profile))
        return cls(
            path,
            enabled=found.enabled,
            scopes=found.scopes,
            max_items=found.max_items,
            similarity_threshold=found.similarity_threshold,
            actions=found.actions,
            **more,
        )

    def add_memory(
        self,
        text: str,
        scope: str,
        category: str,
        tags: Sequence[str] | None = None,
        source: str = "manual",
        *,
        tier: str = "canon",
        topic_id: str | None = None,
    ) -> VaultMemory | Proposed:
        """Store a memory through the write gate; a register whose topic exists is updated instead."""
        account = self._must_write()
        item = self._item(
            text=text, scope=scope, category=category, tags=tags, source=source, tier=tier, topic_id=topic_id
        )
        return self._result(account.remember_many([item])[0])

    def bulk_add(self, items: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        """Store several memories in one commit; each is checked by itself."""
        account = self._must_write()
        wanted: dict[int, dict[str, Any]] = {}
        outcomes: dict[int, VaultMemory | Proposed | str] = {}
        for index, given in enumerate(items):
            try:
                wanted[index] = self._item(**given)
            except (BadInput, TypeError) as error:
                outcomes[index] = str(error)
        verdicts = account.remember_many(wanted.values()) if wanted else []
        self._publish()
        for index, verdict in zip(wanted, verdicts, strict=True):
            try:
                outcomes[index] = self._told(verdict)
            except BadInput as error:
                outcomes[index] = str(error)
        return _listed(outcomes)

    def update_memory(
        self,
        memory_id: str,
        text: str | None = None,
        *,
        category: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> VaultMemory | Proposed:
        """Give a memory its next version; the same gates as for an addition apply."""
        account = self._must_write()
        self._live(memory_id)
        changes: dict[str, Any] = {} if text is None else {"text": text}
        if category is not None:
            changes["category"] = category.strip().lower()
        if tags is not None:
            changes["tags"] = tags
        return self._result(account.revise(memory_id, **changes))

    def update_by_topic(
        self,
        topic_id: str,
        scope: str,
        text: str,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        source: str = "manual",
    ) -> VaultMemory | Proposed:
        """Update the register of a topic, or create it."""
        held = self._holder(topic_id, scope.strip().lower() if isinstance(scope, str) else scope)
        named = category or (held.category if held else "other")
        return self.add_memory(text, scope, named, tags, source, tier="register", topic_id=topic_id)

    def delete_memory(self, memory_id: str) -> bool | Proposed:
        """End a memory by a tombstone; False if there is none."""
        found = self._delete([memory_id])
        return next(iter(found.values()), False)

    def bulk_delete(self, memory_ids: Iterable[str]) -> dict[str, list[Any]]:
        """End several memories in one commit."""
        ids = list(dict.fromkeys(memory_ids))
        found = self._delete(ids)
        proposed = [
            {"id": id_, "proposal": outcome.proposal}
            for id_, outcome in found.items()
            if isinstance(outcome, Proposed)
        ]
        return {
            "deleted": [id_ for id_ in ids if found.get(id_) is True],
            "not_found": [id_ for id_ in ids if found.get(id_, False) is False],
            **({"proposed": proposed} if proposed else {}),
        }

    def promote_to_canon(
        self, memory_id: str, canonical_text: str | None = None, tags: Sequence[str] | None = None
    ) -> VaultMemory | Proposed:
        """Make a register canon: the same id, the next version, source `promotion`."""
        account = self._must_write()
        self._live(memory_id)
        try:
            verdict = account.promote(memory_id, canonical_text, tags=tags)
        except Refused as error:
            raise BadInput(error.message, hint=error.advice) from error
        return self._result(verdict)

    def compact(self) -> dict[str, int]:
        """Leave one line for each live memory in the file; the ledger keeps all history."""
        self._must_write()
        before, after = (0, 0) if self._view is None else self._view.compact()
        return {"lines_before": before, "lines_after": after, "lines_removed": before - after}

    def close(self) -> None:
        """Let go of the account."""
        if self._account is not None:
            self._account.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _item(
        self,
        *,
        text: str = "",
        scope: str = SHARED,
        category: str = "other",
        tags: Sequence[str] | None = None,
        source: str | None = "manual",
        tier: str = "canon",
        topic_id: str | None = None,
    ) -> dict[str, Any]:
        """What a caller hands in as an item for the account, or BadInput."""
        for name, value in (("scope", scope), ("category", category), ("tier", tier)):
            if not isinstance(value, str) or not value.strip():
                raise BadInput(f"{name} {value!r} cannot be used", hint="hand in a word")
        scope, category, tier = scope.strip().lower(), category.strip().lower(), tier.strip().lower()
        if tier == "log":
            raise BadInput("tier log is journal-only", hint="write it to the journal, not to the vault")
        if tier not in TIERS:
            raise BadInput(f"tier {tier!r} is unknown", hint=f"use one of {', '.join(TIERS)}")
        self._must_know(scope)
        held = self._holder(topic_id, scope) if tier == "register" and topic_id else None
        item = {
            "text": text,
            "scope": scope,
            "category": category,
            "tags": tuple(tags) if tags is not None else held.tags if held else (),
            "source": source or "manual",
            "kind": tier,
            "topic": topic_id,
            "id": secrets.token_hex(6),
        }
        if self._account is not None:
            self._account.must_fit(item)
        return item

    def _delete(self, ids: Sequence[str]) -> dict[str, bool | Proposed]:
        account = self._must_write()
        there = [id_ for id_ in ids if isinstance(id_, str) and self.get(id_) is not None]
        if not there:
            return {}
        verdicts = account.forget(*there)
        self._publish()
        return {id_: _ended(verdict) for id_, verdict in zip(there, verdicts, strict=True)}

    def _result(self, verdict: Verdict) -> VaultMemory | Proposed:
        if verdict:
            self._publish()
        return self._told(verdict)

    def _told(self, verdict: Verdict) -> VaultMemory | Proposed:
        """A verdict as the seed answers: the record, or an error that says why not."""
        if verdict.proposal is not None:
            return Proposed(proposal=verdict.proposal, reason=verdict.detail)
        if verdict.check == "missing":
            raise UnknownMemory(verdict.detail)
        if not verdict or verdict.memory is None:
            raise BadInput(verdict.detail, hint=verdict.advice or None)
        assert self._view is not None
        return self._view.record(verdict.memory.id, verdict.memory.rev)

    def _live(self, memory_id: str) -> VaultMemory:
        found = self.get(memory_id)
        if found is None:
            raise UnknownMemory(f"there is no memory {memory_id!r} in the vault")
        return found

    def _must_write(self) -> Account:
        if self._account is None:
            raise BadInput("memory is disabled in this profile", hint="set memory.enabled to true")
        return self._account

    def _publish(self) -> None:
        if self._view is not None:
            self._view.publish()


def build_memory_block(
    vault: MemoryVault,
    scopes: Scopes = None,
    query: str | None = None,
    max_items: int | None = None,
    budget: int | None = None,
) -> str:
    """The relevance-filtered block of seed 002: canon first, empty when nothing fits."""
    return vault.build_block(scopes, query, max_items, budget) if vault.enabled else ""


def build_snapshot_block(vault: MemoryVault, scopes: Scopes = None, budget: int | None = None) -> str:
    """The always-injected block of seed 002: canon and active registers."""
    return vault.build_snapshot(scopes, budget) if vault.enabled else ""


def _policy(folder: Path, token_overlap: float | None, sequence_ratio: float | None) -> Policy:
    """The policy of the vault's own account, with what the caller asks for in its place."""
    own = folder / folder_of(_ACCOUNT) / "policy.toml"
    policy = codec.decode_policy(own.read_bytes(), str(own)) if own.exists() else Policy()
    asked = {"token_overlap": token_overlap, "sequence_ratio": sequence_ratio}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    return replace(policy, gate=replace(policy.gate, **given)) if given else policy


def _limit(policy: Policy) -> int | None:
    """How many memories may be active: what the policy says of both tiers, the seed's number if nothing."""
    tiers = policy.kinds.canon.capacity, policy.kinds.register.capacity
    if tiers == (None, None):
        return MAX_ACTIVE
    return None if None in tiers else sum(filter(None, tiers))


def _listed(outcomes: Mapping[int, VaultMemory | Proposed | str]) -> dict[str, list[dict[str, Any]]]:
    stored: list[dict[str, Any]] = []
    errors: list[dict[str, Any]] = []
    proposed: list[dict[str, Any]] = []
    for index, outcome in sorted(outcomes.items()):
        match outcome:
            case VaultMemory():
                stored.append({"index": index, "id": outcome.id})
            case Proposed():
                proposed.append({"index": index, "proposal": outcome.proposal})
            case _:
                errors.append({"index": index, "message": outcome})
    return {"stored": stored, "errors": errors, **({"proposed": proposed} if proposed else {})}


def _ended(verdict: Verdict) -> bool | Proposed:
    if verdict.proposal is not None:
        return Proposed(proposal=verdict.proposal, reason=verdict.detail)
    return bool(verdict)
