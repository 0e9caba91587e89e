"""What people decide about memories: proposals, rejections, redactions, merges and groups."""

from __future__ import annotations

from collections.abc import Sequence

from octavo.domain.memory import Kind, Memory, Proposal, Refusal, Rejection, check_id
from octavo.domain.review import Doubt, Pair
from octavo.domain.verdicts import Verdict
from octavo.engine import assemble, attachments, merging, redaction, restoring, review
from octavo.engine.fields import as_tags
from octavo.engine.handle import Handle
from octavo.engine.surface import public
from octavo.errors import BadInput, NotFound
from octavo.storage.logs import REFUSALS


@public
class Curator(Handle):
    """The acts that decide what an account keeps, refuses and groups."""

    def proposals(self) -> list[Proposal]:
        """What waits for a person's yes, oldest first."""
        return [p for p in self._spine.head().proposals() if self.sees(p.memory.scope)]

    def proposal(self, id_: str) -> review.Waiting:
        """One proposal with the difference it would make."""
        return review.waiting(self, self._spine.head(), check_id(id_))

    def approve(self, id_: str, *, seen: str | None = None, text: str | None = None) -> Memory | None:
        """Put a proposal into effect, in other words if any are given; `seen` insists on what was read."""
        self._must_be_human("approve a proposal")
        return review.approve(self._spine, self, self._writer(None), check_id(id_), seen, text)

    def decline(self, id_: str, *, reason: str = "") -> None:
        """Refuse a proposal; what it wanted to write stays refused."""
        self._must_be_human("decline a proposal")
        review.decline(self._spine, self, self._writer(None), check_id(id_), reason)

    def reopen(self, id_: str) -> str:
        """Take a yes or no back with what came of it; returns the id under which the proposal waits again."""
        self._must_be_human("reopen a proposal")
        return restoring.reopen(self._spine, self, self._writer(None), check_id(id_))

    def reject(self, value: str, *, scope: str | None = None, reason: str = "") -> list[str]:
        """Keep a value out for ever and end what says exactly this; returns the ids that ended."""
        self._must_be_human("reject a value")
        return review.reject(self._spine, self._writer(scope), value, reason)

    def unreject(self, value: str, *, scope: str | None = None, reason: str = "") -> None:
        """Let a refused value in again."""
        self._must_be_human("lift a rejection")
        review.unreject(self._spine, self._writer(scope), value, reason)

    def rejections(self) -> list[Rejection]:
        """The rejections in force; they keep no clear text."""
        return review.rejections(self._spine, self)

    def refusals(self) -> list[Refusal]:
        """What the gate kept out, oldest first: before buffering, and at consolidations."""
        self._spine.head()
        logged = REFUSALS.read(self._spine.store)
        committed = [c for _, c in self._spine.state.others("refusal") if isinstance(c, Refusal)]
        return sorted((r for r in (*logged, *committed) if self.sees(r.scope)), key=lambda r: r.at)

    def redact(self, id_: str, *, reason: str, everywhere: bool = False) -> redaction.Redacted:
        """Erase a memory's text from every version and every derived file, leaving its hash.

        Turns that say just the same go with it; `everywhere` also erases what only contains it.
        """
        self._must_be_human("redact a memory")
        if not reason.strip():
            raise BadInput("a redaction needs a reason", hint="it stays in the ledger in place of the text")
        writer = self._writer(None)
        return redaction.redact(self._spine, self, writer, check_id(id_), reason, everywhere=everywhere)

    @property
    def attached(self) -> attachments.Attachments:
        """The files that documents keep beside this account; a redaction reaches them too."""
        self._must_be_owner("look beside")
        return attachments.Attachments(self._spine)

    def promote(self, id_: str, text: str | None = None, *, tags: Sequence[str] | None = None) -> Verdict:
        """Make a register or fact canon, or a learned skill an approved one: at once for a person, by a
        proposal for anyone else."""
        memory = self.get(id_)
        writer = self._writer(memory.scope if memory else None)
        return review.promote(self._spine, self, writer, id_, text, tags)

    def merge_candidates(
        self, *, scope: str | None = None, floor: float = 0.7, kinds: Sequence[Kind] | None = None
    ) -> list[Pair]:
        """Pairs of live memories that look alike, best first; of one kind, or of any of `kinds`."""
        more = {} if kinds is None else {"kinds": [kinds]}
        return review.candidates(self, self._spine, scope, floor, **more)

    def propose_merge(self, first: str, second: str, text: str | None = None) -> str:
        """Ask a person to make one memory of two; returns the proposal's id."""
        return review.propose_merge(self._spine, self, self._writer(None), first, second, text)

    def deletion_candidates(self, *, scope: str | None = None) -> list[Doubt]:
        """Memories worth asking about, with reasons; nothing is deleted."""
        return review.doubtful(self, self._spine, scope)

    def propose_deletions(self, *, scope: str | None = None) -> list[str]:
        """Put the deletion candidates into the queue; returns the new proposals' ids."""
        found = self.deletion_candidates(scope=scope)
        return review.propose_doubts(self._spine, self, self._writer(scope), found)

    def assemble(self, *ids: str, name: str | None = None, tags: Sequence[str] = ()) -> list[Memory]:
        """Group memories that are alike, or exactly those named; returns the assemblies made or changed."""
        self._spine.must_write()
        if ids:
            members = [self._member(id_) for id_ in dict.fromkeys(ids)]
            made = assemble.by_hand(self._spine, self._indexing, self.actor, members, name, as_tags(tags))
            self._worker.wake()
            return [made]
        self._indexing.catch_up()
        done = assemble.assemble(self._spine, self._indexing)
        return [memory for id_ in done if (memory := self.get(id_))]

    def _member(self, id_: str) -> Memory:
        memory = self.get(id_)
        if memory is None:
            raise NotFound(f"there is no memory {id_!r} to group")
        return memory

    def merge_assemblies(self, first: str, second: str) -> Memory:
        """Make one assembly of two, in one commit; `unmerge` takes it back."""
        self._spine.must_write()
        one, two = self.explained.found(first), self.explained.found(second)
        made = merging.merge(self._spine, self._indexing, self.actor, one, two)
        self._worker.wake()
        return made

    def unmerge(self, id_: str) -> list[str]:
        """End an assembly that a merge made; those it was made of live again. Returns their ids."""
        self._spine.must_write()
        done = merging.unmerge(self._spine, self.actor, self.explained.found(id_).id)
        self._worker.wake()
        return done
