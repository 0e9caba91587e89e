"""What became of a write: a verdict for each candidate, a consolidation for a sandbox, and what is noted of a
candidate that does not simply go in: refused, proposed, in clash, or about nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Literal

from msgspec import Struct

from octavo.domain.memory import Action, Change, Clash, Memory, Merge, Proposal, Refusal
from octavo.domain.policy import Policy
from octavo.domain.state import Pending, View
from octavo.domain.text import key_of
from octavo.errors import Immutable, Refused

Outcome = Literal["admitted", "superseding", "merged", "proposed", "refused", "unchanged"]
# Checks whose refusal must not keep the refused text.
SILENT = frozenset({"secret", "rejection", "redaction"})


class Verdict(Struct, frozen=True, kw_only=True):
    """Truthy when the memory is in; otherwise `check` names what kept it out and `advice` what to do.

    `contrasts` are memories that say otherwise, or that the new one seems to change; both stay until
    somebody says so.
    """

    outcome: Outcome
    memory: Memory | None = None
    check: str | None = None
    detail: str = ""
    advice: str = ""
    proposal: str | None = None
    contrasts: tuple[Memory, ...] = ()

    def __bool__(self) -> bool:
        return self.outcome in ("admitted", "superseding", "merged", "unchanged")

    def or_raise(self) -> Memory:
        """The memory, or the refusal as an error."""
        if self and self.memory is not None:
            return self.memory
        kind = Immutable if self.check == "immutable" else Refused
        what = f"it waits for approval as {self.proposal}" if self.proposal else f"refused by {self.check}"
        raise kind(f"the memory is not in: {what}: {self.detail}", hint=self.advice or None)


def refused(check: str, detail: str, advice: str = "") -> Verdict:
    """What a check says of a memory that stays out."""
    return Verdict(outcome="refused", check=check, detail=detail, advice=advice)


class Consolidation(Struct, frozen=True, kw_only=True):
    """What a consolidation did; it can be read again from the version's own lines."""

    version: int
    added: tuple[str, ...] = ()
    merged: tuple[Merge, ...] = ()
    superseded: tuple[str, ...] = ()
    forgotten: tuple[str, ...] = ()
    refused: tuple[Refusal, ...] = ()
    clashes: tuple[Clash, ...] = ()
    proposals: tuple[Proposal, ...] = ()
    session: int | None = None


def summarise(version: int, changes: Iterable[Change], session: int | None = None) -> Consolidation:
    """The consolidation that a version's changes amount to."""
    found = list(changes)
    merged = tuple(c for c in found if isinstance(c, Merge))
    joined = {(m.into, m.rev) for m in merged}
    memories = [c for c in found if isinstance(c, Memory)]
    later = [m for m in memories if m.rev > 1 and not m.gone and (m.id, m.rev) not in joined]
    return Consolidation(
        version=version,
        added=tuple(m.id for m in memories if m.rev == 1 and not m.gone),
        merged=merged,
        superseded=tuple(m.id for m in later),
        forgotten=tuple(m.id for m in memories if m.gone),
        refused=tuple(c for c in found if isinstance(c, Refusal)),
        clashes=tuple(c for c in found if isinstance(c, Clash)),
        proposals=tuple(c for c in found if isinstance(c, Proposal)),
        session=session,
    )


# A check of the caller's own, on the state the commit builds on.
Guard = Callable[[Pending, Memory, Policy], Verdict | None]


class RuleContext(Struct, frozen=True, kw_only=True):
    """Everything a rule may know besides the state: who, when, which policy, where ids come from.

    `parent` is what the sandbox saw; a memory changed since is a clash. `keyed` makes the keyed hash
    by which rejections and redactions recognise a text. `visible` are the scopes the writer sees (None:
    all); what is outside them does not exist for it. `skip` names checks that do not apply (import);
    `guard` is a check of the caller's own, asked again at every attempt.
    """

    policy: Policy
    actor: str
    at: datetime
    new_id: Callable[[], str]
    keyed: Callable[[str], str]
    scope: str
    sandbox: str | None = None
    parent: View | None = None
    visible: frozenset[str] | None = None
    skip: frozenset[str] = frozenset()
    guard: Guard | None = None


def note_clash(pending: Pending, found: Memory, context: RuleContext) -> None:
    """Record that somebody else changed it since the sandbox began; what is ours still goes in."""
    if context.parent is None or found.id in pending.own:
        return
    seen = context.parent.get(found.id)
    seen_rev = seen.rev if seen else 0
    if seen_rev != found.rev:
        detail = f"{found.topic or found.id} was at revision {seen_rev} when the sandbox began"
        pending.apply(
            Clash(
                id=context.new_id(), memory=found.id, parent_rev=seen_rev, found_rev=found.rev, detail=detail
            )
        )


def propose(
    pending: Pending,
    memory: Memory,
    base_rev: int,
    reason: str,
    context: RuleContext,
    *,
    action: Literal["write", "forget"] = "write",
) -> Verdict:
    """A change that waits; the same question is asked once."""
    asked = _question(action, memory)
    for waiting in pending.proposals():
        if waiting.action == action and _question(action, waiting.memory) == asked:
            return Verdict(outcome="proposed", check="approval", detail=reason, proposal=waiting.id)
    said = memory.data.get("reason") if action == "write" else None
    why = f"{reason}: {said}" if isinstance(said, str) else reason
    proposal = ask(pending, action, memory, why, context, base_rev=base_rev)
    advice = f"a person decides: octavo approve {proposal.id}"
    if action == "write" and not memory.linked("evidence") and "reason" not in memory.data:
        advice += "; link what it rests on as evidence, so that they can judge"
    return Verdict(outcome="proposed", check="approval", detail=reason, advice=advice, proposal=proposal.id)


def ask(
    pending: Pending, action: Action, memory: Memory, reason: str, context: RuleContext, *, base_rev: int = 0
) -> Proposal:
    """A change put before a person."""
    at, by = context.at, context.actor
    proposal = Proposal(
        id=context.new_id(), action=action, memory=memory, base_rev=base_rev, reason=reason, by=by, at=at
    )
    pending.apply(proposal)
    return proposal


def _question(action: str, memory: Memory) -> tuple[object, ...]:
    return (memory.id,) if action == "forget" else (memory.scope, key_of(memory.text), memory.data)


def propose_end(pending: Pending, old: Memory, reason: str, context: RuleContext) -> Verdict:
    """The end of a memory that waits; asked once, too."""
    return propose(pending, old, old.rev, reason, context, action="forget")


def refusal_of(memory: Memory, verdict: Verdict, at: datetime) -> Refusal:
    """The note of a memory that a check kept out; with its text, unless that is the secret."""
    return Refusal(
        id=memory.id,
        check=verdict.check or "",
        detail=verdict.detail,
        kind=memory.kind,
        scope=memory.scope,
        text=None if verdict.check in SILENT else memory.text,
        confidence=memory.confidence,
        at=at,
    )


def refuse(pending: Pending, memory: Memory, verdict: Verdict, context: RuleContext) -> Verdict:
    """Keep out a memory that a check stopped, and note why."""
    pending.apply(refusal_of(memory, verdict, context.at))
    return verdict


def keep_out(
    pending: Pending, memory: Memory, check: str, detail: str, advice: str, context: RuleContext
) -> Verdict:
    """Keep out a memory that a rule does not take."""
    return refuse(pending, memory, refused(check, detail, advice), context)


def missing(pending: Pending, id_: str, what: str, context: RuleContext) -> Verdict:
    """Note that somebody named a memory that is not there."""
    detail = f"there is no live memory {id_} to {what}"
    gone = pending.get(id_)
    is_seen = gone is not None and (context.visible is None or gone.scope in context.visible)
    kind = gone.kind if gone and is_seen else "fact"
    pending.apply(
        Refusal(id=id_, check="missing", detail=detail, kind=kind, scope=context.scope, at=context.at)
    )
    return refused("missing", detail, "`octavo recall` tells the id of what it finds")
