"""What becomes of a candidate that does not simply go in: refused, proposed, in clash, or about nothing."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from octavo.domain.gate import SILENT, Stop
from octavo.domain.memory import Clash, Kind, Memory, Proposal, Refusal
from octavo.domain.policy import Policy
from octavo.domain.state import State, View
from octavo.domain.text import key_of
from octavo.domain.verdicts import Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Everything a rule may know besides the state: who, when, which policy, where ids come from.

    `parent` is what the sandbox saw; a memory changed since is a clash. `keyed` makes the keyed hash
    by which rejections and redactions recognise a text. `visible` are the scopes the writer sees (None:
    all); what is outside them does not exist for it. `skip` names checks that do not apply (import).
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


def note_clash(state: State, found: Memory, setting: Setting) -> None:
    """Record that somebody else changed it since the sandbox began; what is ours still goes in."""
    if setting.parent is None or found.id in state.own:
        return
    seen = setting.parent.get(found.id)
    seen_rev = seen.rev if seen else 0
    if seen_rev != found.rev:
        detail = f"{found.topic or found.id} was at revision {seen_rev} when the sandbox began"
        state.apply(
            Clash(
                id=setting.new_id(),
                memory=found.id,
                parent_rev=seen_rev,
                found_rev=found.rev,
                detail=detail,
            )
        )


def propose(state: State, memory: Memory, base_rev: int, reason: str, setting: Setting) -> Verdict:
    """A change that waits; the same question is asked once."""
    for waiting in state.proposals():
        if (waiting.action, waiting.memory.scope, key_of(waiting.memory.text)) == (
            "write",
            memory.scope,
            key_of(memory.text),
        ) and waiting.memory.data == memory.data:
            return Verdict(outcome="proposed", check="approval", detail=reason, proposal=waiting.id)
    proposal = Proposal(
        id=setting.new_id(),
        action="write",
        memory=memory,
        base_rev=base_rev,
        reason=reason,
        by=setting.actor,
        at=setting.at,
    )
    state.apply(proposal)
    advice = f"a person decides: octavo approve {proposal.id}"
    return Verdict(outcome="proposed", check="approval", detail=reason, advice=advice, proposal=proposal.id)


def propose_end(state: State, old: Memory, reason: str, setting: Setting) -> Verdict:
    """The end of a memory that waits; asked once, too."""
    for waiting in state.proposals():
        if waiting.action == "forget" and waiting.memory.id == old.id:
            return Verdict(outcome="proposed", check="approval", detail=reason, proposal=waiting.id)
    proposal = Proposal(
        id=setting.new_id(),
        action="forget",
        memory=old,
        base_rev=old.rev,
        reason=reason,
        by=setting.actor,
        at=setting.at,
    )
    state.apply(proposal)
    return Verdict(outcome="proposed", check="approval", detail=reason, proposal=proposal.id)


def refuse(state: State, memory: Memory, stop: Stop, setting: Setting) -> Verdict:
    """Keep out a memory that a check stopped."""
    return keep_out(state, memory, stop.check, stop.detail, stop.advice, setting)


def keep_out(state: State, memory: Memory, check: str, detail: str, advice: str, setting: Setting) -> Verdict:
    """Keep a memory out and note why; its text, too, unless that is the secret."""
    state.apply(
        Refusal(
            id=memory.id,
            check=check,
            detail=detail,
            kind=memory.kind,
            scope=memory.scope,
            text=None if check in SILENT else memory.text,
            confidence=memory.confidence,
            at=setting.at,
        )
    )
    return Verdict(outcome="refused", check=check, detail=detail, advice=advice)


def missing(state: State, id_: str, what: str, setting: Setting) -> Verdict:
    """Note that somebody named a memory that is not there."""
    detail = f"there is no live memory {id_} to {what}"
    kind: Kind = "fact"
    gone = state.get(id_)
    if gone is not None:
        kind = gone.kind
    state.apply(
        Refusal(id=id_, check="missing", detail=detail, kind=kind, scope=setting.scope, at=setting.at)
    )
    return Verdict(outcome="refused", check="missing", detail=detail, advice="look the id up and try again")
