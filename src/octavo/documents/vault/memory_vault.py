"""The Memory Vault of seed 002, as written there, on top of an account that lies beside its file."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

import msgspec
from msgspec.structs import replace

import octavo
from octavo.documents import trees
from octavo.documents.vault.lines import TIERS, Problem, VaultMemory
from octavo.documents.vault.reading import DIRECTIVE, JOURNAL, VaultReader
from octavo.documents.vault.view import VaultView
from octavo.domain import gate, likeness
from octavo.domain.memory import SHARED, Memory, check_scope, is_human
from octavo.domain.policy import Policy
from octavo.domain.state import Pending
from octavo.domain.verdicts import Verdict, refused
from octavo.engine.account import Account
from octavo.engine.fields import Count, Unit, one_of
from octavo.engine.surface import fitted, public
from octavo.errors import BadFile, BadInput, NotFound, Refused
from octavo.storage import codec
from octavo.storage.stores.names import folder_of

PERSON = "human:operator"
_ACCOUNT = "vault"
_JOURNAL = "write it by vault.journal(text)"
_WHOLE = ("bulk_delete", "compact", "rebuild_index")  # a person's, unless somebody says otherwise
ACTIONS = (
    *("add", "bulk_add", "remember", "search", "recall", "get", "list", "update", "delete", "stats"),
    *("journal", "directives", *_WHOLE),
)
Actions = Annotated[Sequence[str], one_of(ACTIONS)]
MAX_ACTIVE = 100
# What a profile may say of memory; `actions` is ours: what the agent's tool may do.
_PROFILE = ("enabled", "scopes", "max_items", "similarity_threshold", "actions")
_MOST_BYTES = 1_000_000
T = TypeVar("T")


class UnknownMemory(NotFound, KeyError):
    """The vault holds no live memory of that id."""


@public
class MemoryVault(VaultReader):
    """A scoped vault of canon and registers; `vault.jsonl` is its live view, the ledger its history.

    The account lies in `<path>.octavo`. `scopes` are the names this handle may use: the seed's three and
    those already in the vault, unless they are given. A file that is found there is taken in.
    The account's own policy.toml holds for what is not given here. `actions` are what `vault_tool` may do
    with this handle. Without an `actor` a person uses the handle, and `vault_tool` acts as an agent by it.
    """

    @fitted
    def __init__(
        self,
        path: str | Path = "data/memory/vault.jsonl",
        *,
        max_active: Count = MAX_ACTIVE,
        similarity_threshold: Unit | None = None,
        token_overlap_threshold: Unit | None = None,
        scopes: Sequence[str] | None = None,
        max_items: Count = 20,
        enabled: bool = True,
        actions: Actions | None = None,
        actor: str | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._scopes = None if scopes is None else tuple(check_scope(name.strip().lower()) for name in scopes)
        self.path = Path(path)
        self.enabled = enabled
        self.max_items = max_items
        self.max_active = max_active
        small = tuple(action for action in ACTIONS if action not in _WHOLE)
        usual = ACTIONS if is_human(actor or PERSON) else small
        self.actions = usual if actions is None else tuple(actions)
        self._is_actor_said = actor is not None
        if not enabled:
            return
        folder = self.path.with_name(f"{self.path.name}.octavo")
        policy = _policy(folder / folder_of(_ACCOUNT), token_overlap_threshold, similarity_threshold)
        # Vectors stay off: the vault's search is the seed's own, by words.
        self._account = octavo.open(
            folder,
            _ACCOUNT,
            actor=actor or PERSON,
            policy=policy,
            embedder=False,
            clock=clock,
            guard=partial(_kept_out, max_active),
        )
        try:
            self._view = VaultView(self._account, self.path, folder)
            self._view.follow()
            self._account.attached.join(self._view)
        except BaseException:
            self.close()
            raise

    @property
    def account(self) -> Account:
        """The account behind the vault, for what the seed has no word for: approval, history, redaction."""
        return _on(self._account)

    def for_tool(self) -> MemoryVault:
        """The vault as an agent's tool uses it: for the actor it was opened for, or an agent."""
        if self._is_actor_said or self._account is None:
            return self
        agents = copy(self)
        agents._account, agents._is_actor_said = self._account.intake.as_agent(), True
        return agents

    @property
    def problems(self) -> list[Problem]:
        """What was unusual in a file that was found and taken in."""
        return [] if self._view is None else self._view.problems

    @classmethod
    def from_profile(
        cls, profile: str | Path, path: str | Path = "data/memory/vault.jsonl", **more: Any
    ) -> MemoryVault:
        """Open a vault as an agent's profile says: its scopes, its limits, and whether memory is on."""
        given = _section(Path(profile))
        try:
            return cls(path, **given, **more)
        except BadInput as error:
            raise BadFile(f"profile {profile}, section memory: {error.message}") from error

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
    ) -> VaultMemory | Verdict:
        """Store a memory through the write gate; a register whose topic exists is updated instead."""
        item = self._item(
            text=text, scope=scope, category=category, tags=tags, source=source, tier=tier, topic_id=topic_id
        )
        return self._result(self.account.remember_many([item])[0])

    def bulk_add(self, items: Iterable[Mapping[str, Any]]) -> dict[str, list[dict[str, Any]]]:
        """Store several memories in one commit; each is checked by itself."""
        account = self.account
        wanted: dict[int, dict[str, Any]] = {}
        outcomes: dict[int, VaultMemory | Verdict | str] = {}
        for index, given in enumerate(items):
            try:
                wanted[index] = self._item(**given)
            except (BadInput, TypeError) as error:
                outcomes[index] = str(error)
        verdicts = account.remember_many(wanted.values()) if wanted else []
        _on(self._view).follow()
        for index, verdict in zip(wanted, verdicts, strict=True):
            try:
                outcomes[index] = self._told(verdict)
            except BadInput as error:
                outcomes[index] = str(error)
        rows = sorted(outcomes.items())
        stored = [{"index": i, "id": told.id} for i, told in rows if isinstance(told, VaultMemory)]
        errors = [{"index": i, "message": told} for i, told in rows if isinstance(told, str)]
        waiting = [{"index": i, "proposal": told.proposal} for i, told in rows if isinstance(told, Verdict)]
        return {"stored": stored, "errors": errors, **({"proposed": waiting} if waiting else {})}

    def update_memory(
        self,
        memory_id: str,
        text: str | None = None,
        *,
        category: str | None = None,
        tags: Sequence[str] | None = None,
    ) -> VaultMemory | Verdict:
        """Give a memory its next version; the same gates as for an addition apply."""
        self._must_live(memory_id)
        asked = {"text": text, "category": category and category.strip().lower(), "tags": tags}
        changes: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
        return self._result(self.account.revise(memory_id, **changes))

    def update_by_topic(
        self,
        topic_id: str,
        scope: str,
        text: str,
        category: str | None = None,
        tags: Sequence[str] | None = None,
        source: str = "manual",
    ) -> VaultMemory | Verdict:
        """Update the register of a topic, or create it."""
        held = self._holder(topic_id, scope.strip().lower() if isinstance(scope, str) else scope)
        named = category or (held.category if held else "other")
        return self.add_memory(text, scope, named, tags, source, tier="register", topic_id=topic_id)

    def delete_memory(self, memory_id: str) -> bool | Verdict:
        """End a memory by a tombstone; False if there is none."""
        return self._delete([memory_id])[memory_id]

    def bulk_delete(self, memory_ids: Iterable[str]) -> dict[str, list[Any]]:
        """End several memories in one commit."""
        found = self._delete(memory_ids).items()
        deleted, not_found = ([id_ for id_, told in found if told is done] for done in (True, False))
        waiting = [{"id": id_, "proposal": told.proposal} for id_, told in found if isinstance(told, Verdict)]
        return {"deleted": deleted, "not_found": not_found, **({"proposed": waiting} if waiting else {})}

    def promote_to_canon(
        self, memory_id: str, canonical_text: str | None = None, tags: Sequence[str] | None = None
    ) -> VaultMemory | Verdict:
        """Make a register canon: the same id, the next version, source `promotion`."""
        self._must_live(memory_id)
        try:
            verdict = self.account.promote(memory_id, canonical_text, tags=tags)
        except Refused as error:
            raise BadInput(error.message, hint=error.advice) from error
        return self._result(verdict)

    def journal(self, text: str, scope: str = SHARED, tags: Sequence[str] = ()) -> str:
        """Write what is no memory (a tick, a check-in, a snapshot) to the journal; returns its id."""
        return self._write_beside(text, scope, kind="episode", category=JOURNAL, tags=tuple(tags))

    def add_directive(self, text: str, scope: str = SHARED, tags: Sequence[str] = ()) -> str:
        """Store a rule of behaviour, found again by what it is about; it is no line of the vault."""
        return self._write_beside(text, scope, kind="skill", category=DIRECTIVE, tags=tuple(tags))

    def _write_beside(self, text: str, scope: str, **fields: Any) -> str:
        account = self.account
        self._must_know(scope)
        return _stored(account.remember(text, scope=scope, **fields)).id

    def compact(self) -> dict[str, int]:
        """Leave one line for each live memory in the file; the ledger keeps all history."""
        before, after = _on(self._view).compact()
        return {"lines_before": before, "lines_after": after, "lines_removed": before - after}

    def rebuild_index(self) -> dict[str, Any]:
        """Make the account's indexes anew from its ledger."""
        self.account.reindex()
        return {}

    def close(self) -> None:
        """Let go of the account."""
        if self._account is not None:
            self._account.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
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
        """What a caller hands in as an item for the account, or BadInput for the first step that fails."""
        for name, value in (("tier", tier), ("scope", scope), ("category", category)):
            if not isinstance(value, str) or not value.strip():
                raise BadInput(f"{name} {value!r} cannot be used", hint="hand in a word")
        scope, category, tier = scope.strip().lower(), category.strip().lower(), tier.strip().lower()
        self._must_pass(text, tier)
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
        self.account.intake.must_fit(item)
        return item

    def _must_pass(self, text: object, tier: str) -> None:
        """Raise for what the seed's gate looks at before scope and source: noise, tier log, length."""
        probe = Memory(id="probe", kind="register", text=str(text), at=datetime.min)
        judged = gate.check_text(probe, self.account.policy)
        check = judged.check if isinstance(judged, Verdict) else ""
        if tier == "log" and check != "noise":
            raise BadInput("tier log is journal-only", hint=_JOURNAL)
        if isinstance(judged, Verdict) and check in ("noise", "length"):
            raise BadInput(judged.detail, hint=_JOURNAL if check == "noise" else judged.advice)

    def _delete(self, ids: Iterable[str]) -> dict[str, bool | Verdict]:
        """What became of each memory that was to end, False where there is none."""
        account = self.account
        told: dict[str, bool | Verdict] = dict.fromkeys(ids, False)
        there = [id_ for id_ in told if self.get(id_) is not None]
        for id_, verdict in zip(there, account.forget(*there) if there else (), strict=True):
            told[id_] = bool(verdict) if verdict.proposal is None else verdict
        _on(self._view).follow()
        return told

    def _result(self, verdict: Verdict) -> VaultMemory | Verdict:
        if verdict:
            _on(self._view).follow()
        return self._told(verdict)

    def _told(self, verdict: Verdict) -> VaultMemory | Verdict:
        """A verdict as the seed answers: the record, or the verdict if it waits for a person."""
        if verdict.proposal is not None:
            return verdict
        memory = _stored(verdict)
        return _on(self._view).record(memory.id, memory.rev)

    def _must_live(self, memory_id: str) -> None:
        if _on(self._account) and self.get(memory_id) is None:
            raise UnknownMemory(f"there is no memory {memory_id!r} in the vault")


def _on(part: T | None) -> T:
    if part is None:
        raise BadInput("memory is disabled in this profile", hint="set memory.enabled to true")
    return part


def _stored(verdict: Verdict) -> Memory:
    """The memory that a write made, or an error that says why not."""
    if verdict.check == "missing":
        raise UnknownMemory(verdict.detail)
    if not verdict or verdict.memory is None:
        raise BadInput(verdict.detail, hint=_JOURNAL if verdict.check == "noise" else verdict.advice or None)
    return verdict.memory


def _section(path: Path) -> dict[str, Any]:
    """What a profile says of memory; a key that is not understood is an error, never a guess."""
    if not path.exists():
        raise NotFound(f"there is no profile {path}")
    try:
        written = msgspec.yaml.decode(trees.read_bytes(path, _MOST_BYTES))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise BadFile(f"profile {path}: {error}") from error
    section = written.get("memory") if isinstance(written, dict) else None
    if not isinstance({} if section is None else section, dict) or {*(section or ())} - {*_PROFILE}:
        raise BadFile(f"profile {path}, section memory: {section!r:.80}", hint=f"use {', '.join(_PROFILE)}")
    return section or {}


def _policy(folder: Path, token_overlap: float | None, sequence_ratio: float | None) -> Policy:
    """The policy of the vault's own account, with what the caller asks for in its place."""
    own = folder / "policy.toml"
    policy = codec.decode_policy(own.read_bytes(), str(own)) if own.exists() else Policy()
    asked = {"token_overlap": token_overlap, "sequence_ratio": sequence_ratio}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    return replace(policy, gate=replace(policy.gate, **given))


def _kept_out(max_active: int, pending: Pending, memory: Memory, policy: Policy) -> Verdict | None:
    """Why a memory stays out: a restatement is refused, not merged, and both tiers share one capacity.

    It is asked about the state the commit builds on, again at every attempt, so it holds however many
    writers there are.
    """
    if memory.kind not in TIERS:
        return None  # the journal and the directives are no lines of the vault
    if memory.topic and pending.by_topic(memory.kind, memory.scope, memory.topic) is not None:
        return None
    for kind in TIERS:
        for other in pending.alike(kind, memory.scope, memory.text):
            if likeness.restates(other.text, memory.text, policy.gate):
                percent = f"{policy.gate.sequence_ratio:.0%}"
                detail = f"Duplicate detected (similarity >= {percent}): existing id={other.id}"
                return refused("duplicate", detail, "update that one instead")
    if sum(map(pending.count, TIERS)) >= max_active:
        detail = f"the vault is full: {max_active} active memories"
        return refused("capacity", detail, "delete or consolidate some first")
    return None
