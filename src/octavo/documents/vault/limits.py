"""What a vault may do and hold: its profile as seed 002 writes it, its policy, its actions, its guard."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.vault.lines import TIERS
from octavo.domain import likeness
from octavo.domain.memory import Memory, check_scope, is_human
from octavo.domain.policy import Policy
from octavo.domain.records import shape_of
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
_MOST_BYTES = 1_000_000


class Profile(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a profile says about memory; what it leaves out is the policy's, or the seed's default.

    `actions` is ours: what the agent's tool may do.
    """

    enabled: bool = True
    scopes: Annotated[tuple[str, ...], Meta(min_length=1)] | None = None
    max_items: Annotated[int, Meta(ge=0)] = 20
    similarity_threshold: Annotated[float, Meta(gt=0, le=1)] | None = None
    actions: tuple[str, ...] | None = None


def read_profile(path: Path) -> Profile:
    """Read the section of a profile; a key or a value that is not understood is an error, never a guess."""
    if not path.exists():
        raise NotFound(f"there is no profile {path}")
    try:
        written = msgspec.yaml.decode(trees.read_bytes(path, _MOST_BYTES))
        section = written.get("memory") if isinstance(written, dict) else None
        profile = msgspec.convert({} if section is None else section, shape_of(Profile))
        allowed(profile.actions, "agent")
        scopes = profile.scopes and tuple(dict.fromkeys(check_scope(n.lower()) for n in profile.scopes))
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        hint = f"use {', '.join(Profile.__struct_fields__)}"
        raise BadFile(
            f"profile {path}, section memory: {error}; actions and scopes are lists", hint=hint
        ) from error
    return replace(profile, scopes=scopes)


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


def limit_of(policy: Policy) -> int | None:
    """How many memories may be active: what the policy says of both tiers, the seed's number if nothing."""
    tiers = policy.kinds.canon.capacity, policy.kinds.register.capacity
    if tiers == (None, None):
        return MAX_ACTIVE
    return None if None in tiers else sum(filter(None, tiers))


def kept_out(max_active: int | None, pending: Pending, memory: Memory, policy: Policy) -> Verdict | None:
    """Why a memory stays out: a restatement is refused, not merged, and both tiers share one capacity.

    It is asked about the state the commit builds on, again at every attempt, so it holds however many
    writers there are. Without `max_active` the policy's own capacities are the only ones.
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
    if max_active is not None and sum(map(pending.count, TIERS)) >= max_active:
        detail = f"the vault is full: {max_active} active memories"
        return refused("capacity", detail, "delete or consolidate some first")
    return None
