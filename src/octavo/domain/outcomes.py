"""What becomes of a candidate that does not simply go in: refused, proposed, in clash, or about nothing."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from msgspec import Struct

from octavo.domain.gate import SILENT, Stop
from octavo.domain.memory import Clash, Kind, Memory, Proposal, Refusal
from octavo.domain.policy import Policy
from octavo.domain.state import Pending, View
from octavo.domain.text import key_of
from octavo.domain.verdicts import Verdict

# A check of the caller's own, on the state the commit builds on.
Guard = Callable[[Pending, Memory, Policy], Stop | None]


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


def propose(pending: Pending, memory: Memory, base_rev: int, reason: str, context: RuleContext) -> Verdict:
    """A change that waits; the same question is asked once."""
    for waiting in pending.proposals():
        if (waiting.action, waiting.memory.scope, key_of(waiting.memory.text)) == (
            "write",
            memory.scope,
            key_of(memory.text),
        ) and waiting.memory.data == memory.data:
            return Verdict(outcome="proposed", check="approval", detail=reason, proposal=waiting.id)
    proposal = Proposal(
        id=context.new_id(),
        action="write",
        memory=memory,
        base_rev=base_rev,
        reason=f"{reason}: {said}" if isinstance(said := memory.data.get("reason"), str) else reason,
        by=context.actor,
        at=context.at,
    )
    pending.apply(proposal)
    advice = f"a person decides: octavo approve {proposal.id}"
    if not memory.linked("evidence") and "reason" not in memory.data:
        advice += "; link what it rests on as evidence, or say why in data.reason, so that they can judge"
    return Verdict(outcome="proposed", check="approval", detail=reason, advice=advice, proposal=proposal.id)


def propose_end(pending: Pending, old: Memory, reason: str, context: RuleContext) -> Verdict:
    """The end of a memory that waits; asked once, too."""
    for waiting in pending.proposals():
        if waiting.action == "forget" and waiting.memory.id == old.id:
            return Verdict(outcome="proposed", check="approval", detail=reason, proposal=waiting.id)
    proposal = Proposal(
        id=context.new_id(),
        action="forget",
        memory=old,
        base_rev=old.rev,
        reason=reason,
        by=context.actor,
        at=context.at,
    )
    pending.apply(proposal)
    return Verdict(outcome="proposed", check="approval", detail=reason, proposal=proposal.id)


def refuse(pending: Pending, memory: Memory, stop: Stop, context: RuleContext) -> Verdict:
    """Keep out a memory that a check stopped."""
    return keep_out(pending, memory, stop.check, stop.detail, stop.advice, context)


def keep_out(
    pending: Pending, memory: Memory, check: str, detail: str, advice: str, context: RuleContext
) -> Verdict:
    """Keep a memory out and note why; its text, too, unless that is the secret."""
    pending.apply(
        Refusal(
            id=memory.id,
            check=check,
            detail=detail,
            kind=memory.kind,
            scope=memory.scope,
            text=None if check in SILENT else memory.text,
            confidence=memory.confidence,
            at=context.at,
        )
    )
    return Verdict(outcome="refused", check=check, detail=detail, advice=advice)


def missing(pending: Pending, id_: str, what: str, context: RuleContext) -> Verdict:
    """Note that somebody named a memory that is not there."""
    detail = f"there is no live memory {id_} to {what}"
    kind: Kind = "fact"
    gone = pending.get(id_)
    if gone is not None and (context.visible is None or gone.scope in context.visible):
        kind = gone.kind
    pending.apply(
        Refusal(id=id_, check="missing", detail=detail, kind=kind, scope=context.scope, at=context.at)
    )
    return Verdict(outcome="refused", check="missing", detail=detail, advice="look the id up and try again")
