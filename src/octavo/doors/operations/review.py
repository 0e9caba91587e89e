"""Operations of review: what a person decides."""

from __future__ import annotations

from octavo.doors.operations.table import operation
from octavo.engine.account import Account

proposals = operation("octavo proposals", result="proposals")(Account.proposals)
proposal = operation("octavo proposal 01kajx2f6w9m4d8c7t5s")(Account.proposal)
approve = operation("octavo approve 01kajx2f6w9m4d8c7t5s", writes=True, human=True, result="approved")(
    Account.approve
)
decline = operation(
    'octavo decline 01kajx2f6w9m4d8c7t5s --reason "a guess"', writes=True, human=True, result="declined"
)(Account.decline)
reopen = operation("octavo reopen 01kajx2f6w9m4d8c7t5s", writes=True, human=True, result="proposal")(
    Account.reopen
)
reject = operation(
    'octavo reject "allergic to peanuts" --reason "never true"', writes=True, human=True, result="ended"
)(Account.reject)
unreject = operation('octavo unreject "allergic to peanuts"', writes=True, human=True, result="lifted")(
    Account.unreject
)
rejections = operation("octavo rejections", result="rejections")(Account.rejections)
redact = operation(
    'octavo redact 01kajx2f6w9m4d8c7t5s --reason "asked to" --yes',
    writes=True,
    human=True,
    asks="Erase the text of {id} from every version? Nothing can bring it back.",
)(Account.redact)
promote = operation("octavo promote 01kajx2f6w9m4d8c7t5s", writes=True)(Account.promote)
merge_candidates = operation("octavo merge-candidates --floor 0.8", result="pairs")(Account.merge_candidates)
propose_merge = operation(
    "octavo propose-merge 01kajx2f6w9m4d8c7t5s 01kajx3k9q2n5e7v8w4d", writes=True, result="proposal"
)(Account.propose_merge)
deletion_candidates = operation("octavo deletion-candidates", result="doubts")(Account.deletion_candidates)
propose_deletions = operation("octavo propose-deletions", writes=True, result="asked")(
    Account.propose_deletions
)
