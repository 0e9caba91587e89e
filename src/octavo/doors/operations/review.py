"""Operations of review: what a person decides."""

# ruff: noqa: A002  # a memory's and a proposal's id is `id`, in every door
from __future__ import annotations

from typing import Annotated

from octavo.domain.memory import Memory, Proposal, Rejection
from octavo.domain.review import Doubt, Pair
from octavo.domain.verdicts import Verdict
from octavo.doors.operations.table import Unit, operation
from octavo.engine.account import Account
from octavo.engine.redaction import Redacted
from octavo.engine.review import Waiting

ProposalId = Annotated[str, "The proposal's id."]
Id = Annotated[str, "The memory's id."]
Reason = Annotated[str, "Why."]


@operation("octavo proposals", result="proposals")
def proposals(account: Account) -> list[Proposal]:
    """List what waits for a person's yes."""
    return account.proposals()


@operation("octavo proposal 01kajx2f6w9m4d8c7t5s")
def proposal(account: Account, id: ProposalId) -> Waiting:
    """Show one proposal and the difference it would make."""
    return account.proposal(id)


@operation("octavo approve 01kajx2f6w9m4d8c7t5s", writes=True, human=True, result="approved")
def approve(
    account: Account,
    id: ProposalId,
    *,
    seen: Annotated[str | None, "Insist that it still says this: the digest that `proposal` showed."] = None,
    text: Annotated[str | None, "In these words instead."] = None,
) -> Memory | str:
    """Put a proposal into effect."""
    return account.approve(id, seen=seen, text=text) or id


@operation(
    'octavo decline 01kajx2f6w9m4d8c7t5s --reason "a guess"', writes=True, human=True, result="declined"
)
def decline(account: Account, id: ProposalId, *, reason: Reason = "") -> str:
    """Refuse a proposal; what it wanted to write stays refused."""
    account.decline(id, reason=reason)
    return id


@operation("octavo reopen 01kajx2f6w9m4d8c7t5s", writes=True, human=True, result="proposal")
def reopen(account: Account, id: ProposalId) -> str:
    """Take a yes or no back, with what came of it; the proposal waits again, under a new id."""
    return account.reopen(id)


@operation(
    'octavo reject "allergic to peanuts" --reason "never true"', writes=True, human=True, result="ended"
)
def reject(
    account: Account, value: Annotated[str, "The text to keep out."], *, reason: Reason = ""
) -> list[str]:
    """Keep a value out for ever, and end what says exactly this."""
    return account.reject(value, reason=reason)


@operation('octavo unreject "allergic to peanuts"', writes=True, human=True, result="lifted")
def unreject(account: Account, value: Annotated[str, "The text to let in."], *, reason: Reason = "") -> str:
    """Let a refused value in again."""
    account.unreject(value, reason=reason)
    return value


@operation("octavo rejections", result="rejections")
def rejections(account: Account) -> list[Rejection]:
    """List the rejections in force; they keep no clear text."""
    return account.rejections()


@operation(
    'octavo redact 01kajx2f6w9m4d8c7t5s --reason "asked to" --yes',
    writes=True,
    human=True,
    asks="Erase the text of {id} from every version? Nothing can bring it back.",
)
def redact(
    account: Account,
    id: Id,
    *,
    reason: Annotated[str, "Why; it stays in the ledger."],
    everywhere: Annotated[bool, "Erase what only contains it, too."] = False,
) -> Redacted:
    """Erase a memory's text from every version, leaving its hash."""
    return account.redact(id, reason=reason, everywhere=everywhere)


@operation("octavo promote 01kajx2f6w9m4d8c7t5s", writes=True)
def promote(
    account: Account,
    id: Id,
    text: Annotated[str | None, "Its wording there, if another."] = None,
    *,
    tags: Annotated[list[str] | None, "A tag; may be repeated."] = None,
) -> Verdict:
    """Raise a memory to the next kind, or ask a person to."""
    return account.promote(id, text, tags=tags)


@operation("octavo merge-candidates --floor 0.8", result="pairs")
def merge_candidates(
    account: Account, *, floor: Annotated[Unit, "Only pairs at least so alike, 0 to 1."] = 0.7
) -> list[Pair]:
    """List pairs of memories that look alike."""
    return account.merge_candidates(floor=floor)


@operation("octavo propose-merge 01kajx2f6w9m4d8c7t5s 01kajx3k9q2n5e7v8w4d", writes=True, result="proposal")
def propose_merge(
    account: Account,
    first: Annotated[str, "A memory's id."],
    second: Annotated[str, "The other's id."],
    text: Annotated[str | None, "What the one shall say (the surer one's text)."] = None,
) -> str:
    """Ask a person to make one memory of two."""
    return account.propose_merge(first, second, text)


@operation("octavo deletion-candidates", result="doubts")
def deletion_candidates(account: Account) -> list[Doubt]:
    """List memories worth asking about, and why; nothing is deleted."""
    return account.deletion_candidates()


@operation("octavo propose-deletions", writes=True, result="asked")
def propose_deletions(account: Account) -> list[str]:
    """Put the deletion candidates before a person."""
    return account.propose_deletions()
