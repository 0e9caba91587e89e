"""What a vault may do and hold: its profile as seed 002 writes it, its policy, its actions, its guard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.vault.lines import TIERS
from octavo.domain import likeness
from octavo.domain.memory import Memory, is_human
from octavo.domain.policy import Policy
from octavo.domain.state import Pending
from octavo.domain.verdicts import Verdict, refused
from octavo.errors import BadFile, BadInput, NotFound
from octavo.storage import codec

# What acts on the vault as a whole is a person's, unless a profile or a caller says otherwise.
_WHOLE = ("bulk_delete", "compact", "rebuild_index")
ACTIONS = (
    *("add", "bulk_add", "remember", "search", "recall", "get", "list", "update", "delete", "stats"),
    *("journal", "directives", *_WHOLE),
)
MAX_ACTIVE = 100
# What a profile may say of memory; `actions` is ours: what the agent's tool may do.
_PROFILE = ("enabled", "scopes", "max_items", "similarity_threshold", "actions")
_MOST_BYTES = 1_000_000


def read_profile(path: Path) -> dict[str, Any]:
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


def allowed(given: Sequence[str] | None, actor: str) -> tuple[str, ...]:
    """The actions a vault's tool allows: those given, else all for a person, the small ones for others."""
    if given is None:
        return tuple(action for action in ACTIONS if is_human(actor) or action not in _WHOLE)
    for action in given:
        if action not in ACTIONS:
            raise BadInput(f"action {action!r} is unknown", hint=f"use some of {', '.join(ACTIONS)}")
    return tuple(dict.fromkeys(given))


def policy_of(folder: Path, token_overlap: float | None, sequence_ratio: float | None) -> Policy:
    """The policy of the vault's own account, with what the caller asks for in its place."""
    own = folder / "policy.toml"
    policy = codec.decode_policy(own.read_bytes(), str(own)) if own.exists() else Policy()
    asked = {"token_overlap": token_overlap, "sequence_ratio": sequence_ratio}
    given: dict[str, Any] = {name: value for name, value in asked.items() if value is not None}
    return replace(policy, gate=replace(policy.gate, **given)) if given else policy


def kept_out(max_active: int, pending: Pending, memory: Memory, policy: Policy) -> Verdict | None:
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
