"""What becomes of a candidate that does not simply go in: refused, proposed, in clash, or about nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Literal

from msgspec import Struct

from octavo.domain.gate import SILENT
from octavo.domain.memory import Clash, Memory, Proposal, Refusal
from octavo.domain.policy import Policy
from octavo.domain.state import Pending, View
from octavo.domain.text import key_of
from octavo.domain.verdicts import Verdict, refused

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
                id=context.new_id(),
                memory=found.id,
                parent_rev=seen_rev,
                found_rev=found.rev,
                detail=detail,
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
    proposal = Proposal(
        id=context.new_id(),
        action=action,
        memory=memory,
        base_rev=base_rev,
        reason=f"{reason}: {said}" if isinstance(said, str) else reason,
        by=context.actor,
        at=context.at,
    )
    pending.apply(proposal)
    advice = f"a person decides: octavo approve {proposal.id}"
    if action == "write" and not memory.linked("evidence") and "reason" not in memory.data:
        advice += "; link what it rests on as evidence, or say why in data.reason, so that they can judge"
    return Verdict(outcome="proposed", check="approval", detail=reason, advice=advice, proposal=proposal.id)


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
    return refused("missing", detail, "look the id up and try again")
