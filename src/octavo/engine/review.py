"""Review: what people decide about memories, by the one queue of proposals or at once."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import review
from octavo.domain.memory import Kind, Memory, Proposal, Refusal, Rejection, check_id, is_id
from octavo.domain.review import Doubt, Pair
from octavo.domain.state import Pending
from octavo.domain.text import key_of
from octavo.domain.verdicts import RuleContext, Verdict, ask, propose_end
from octavo.engine import assemble, attachments, redaction
from octavo.engine.explain import AssemblyId
from octavo.engine.fields import MemoryId, Unit, as_tags
from octavo.engine.handle import Handle
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.engine.versions import Diff
from octavo.engine.writing import Writer
from octavo.errors import BadInput, NotFound, Stale
from octavo.storage import codec
from octavo.storage.logs import REFUSALS
from octavo.storage.state_view import DbView

T = TypeVar("T")
ProposalId = Annotated[str, "The proposal's id."]
Reason = Annotated[str, "Why."]


class Waiting(Struct, frozen=True, kw_only=True):
    """A proposal with the difference it would make and the hash of what it says."""

    proposal: Proposal
    diff: Diff
    digest: str


@public
class Curator(Handle):
    """The acts that decide what an account keeps, refuses and groups."""

    def proposals(self) -> list[Proposal]:
        """List what waits for a person's yes, oldest first."""
        return [p for p in self._spine.head().proposals() if self.sees(p.memory.scope)]

    def proposal(self, id_: ProposalId) -> Waiting:
        """Show one proposal and the difference it would make, as a person should see it before deciding."""
        view = self._spine.head()
        proposal = self._waiting(view, check_id(id_))
        live, version = view.live(proposal.memory.id), view.version
        diff = Diff(before=version, after=version + 1)
        if proposal.action == "forget":
            diff = replace(diff, removed=(live,) if live else ())
        elif live is not None:
            diff = replace(diff, changed=((live, proposal.memory),))
        else:
            sources = proposal.memory.linked("merged_from") if proposal.action == "merge" else ()
            gone = tuple(m for old in sources if (m := view.live(old)))
            diff = replace(diff, added=(proposal.memory,), removed=gone)
        return Waiting(proposal=proposal, diff=diff, digest=_digest(proposal))

    def approve(
        self,
        id_: ProposalId,
        *,
        seen: Annotated[
            str | None, "Insist that it still says this: the digest that `proposal` showed."
        ] = None,
        text: Annotated[str | None, "In these words instead."] = None,
    ) -> Memory | None:
        """Put a proposal into effect."""
        self._must_be_human("approve a proposal")
        writer = self._writer(None)

        def act(pending: Pending, context: RuleContext, view: DbView) -> Memory | None:
            proposal = self._waiting(view, check_id(id_))
            if seen is not None and seen != _digest(proposal):
                raise Stale(f"proposal {id_} does not say what was seen", hint="look at it again")
            if text is not None:
                said = writer.proposable(replace(proposal.memory, text=text), view)
                proposal = replace(proposal, memory=said)
            return review.approve(pending, proposal, context)

        return _commit(writer, f"approve {id_}", act)

    def decline(self, id_: ProposalId, *, reason: Reason = "") -> None:
        """Refuse a proposal; what it wanted to write stays refused."""
        self._must_be_human("decline a proposal")

        def act(pending: Pending, context: RuleContext, view: DbView) -> None:
            review.decline(pending, self._waiting(view, check_id(id_)), reason, context)

        _commit(self._writer(None), f"decline {id_}", act)

    def reject(
        self, value: Annotated[str, "The text to keep out."], *, scope: str | None = None, reason: Reason = ""
    ) -> list[str]:
        """Keep a value out for ever, and end what says exactly this; returns the ids that ended."""
        self._must_be_human("reject a value")
        if not key_of(value):
            raise BadInput("there is no value to reject", hint="hand in the text that shall stay out")
        if any(p.id == value for p in self.proposals()) or (is_id(value) and self.get(value)):
            hint = f"decline or forget {value}, or hand in the text that shall stay out"
            raise BadInput(f"{value!r} is an id, and a text is rejected", hint=hint)
        writer = self._writer(scope)

        def act(pending: Pending, context: RuleContext, view: DbView) -> list[str]:
            pending.apply(review.rejection(value, writer.scope, reason, context))
            return review.retract(pending, value, writer.scope, context)

        return _commit(writer, "reject", act)

    def unreject(
        self, value: Annotated[str, "The text to let in."], *, scope: str | None = None, reason: Reason = ""
    ) -> None:
        """Let a refused value in again."""
        self._must_be_human("lift a rejection")
        writer = self._writer(scope)

        def act(pending: Pending, context: RuleContext, view: DbView) -> None:
            lifted = review.rejection(value, writer.scope, reason, context, lifted=True)
            if not view.is_rejected(lifted.key, writer.scope):
                raise NotFound(f"that value is not refused in scope {writer.scope!r}")
            pending.apply(lifted)

        _commit(writer, "unreject", act)

    def rejections(self) -> list[Rejection]:
        """List the rejections in force; they keep no clear text."""
        self._spine.head()
        latest: dict[tuple[str, str], Rejection] = {}
        for _, change in reversed(self._spine.state.others("rejection")):
            if isinstance(change, Rejection) and self.sees(change.scope):
                latest[change.key, change.scope] = change
        return [rejection for rejection in latest.values() if not rejection.lifted]

    def refusals(self) -> list[Refusal]:
        """List what the gate kept out and why, oldest first: before buffering, and at consolidations."""
        self._spine.head()
        logged = REFUSALS.read(self._spine.store)
        committed = [c for _, c in self._spine.state.others("refusal") if isinstance(c, Refusal)]
        return sorted((r for r in (*logged, *committed) if self.sees(r.scope)), key=lambda r: r.at)

    def redact(
        self,
        id_: MemoryId,
        *,
        reason: Annotated[str, "Why; it stays in the ledger."],
        everywhere: Annotated[bool, "Erase what only contains it, too."] = False,
    ) -> redaction.Redacted:
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

    def promote(
        self,
        id_: MemoryId,
        text: Annotated[str | None, "Its wording there, if another."] = None,
        *,
        tags: Annotated[Sequence[str] | None, "A tag; may be repeated."] = None,
    ) -> Verdict:
        """Raise a memory to the next kind, or ask a person to.

        A register or fact becomes canon, a learned skill an approved one.
        """
        old = self.get(id_)
        if old is None:
            raise NotFound(f"there is no live memory {id_} to promote")
        if old.kind not in ("register", "fact", "skill"):
            hint = "registers and facts become canon, skills procedural"
            raise BadInput(f"{id_} is a {old.kind}", hint=hint)
        if old.kind == "skill" and old.approved is not None:
            raise BadInput(f"{id_} is approved already, by {old.approved}")
        writer = self._writer(old.scope)
        raised = writer.proposable(review.promoted(old, text, tags), self._spine.head())
        above = "procedural" if old.kind == "skill" else "canon"
        new, why = replace(raised, actor=self.actor), f"promotion of {old.kind} {old.topic or id_} to {above}"

        def act(pending: Pending, context: RuleContext, view: DbView) -> tuple[Memory | None, str]:
            proposal = ask(pending, "promote", new, why, context, base_rev=old.rev)
            return review.approve(pending, proposal, context) if writer.is_human else None, proposal.id

        done, asked = _commit(writer, f"{'promote' if writer.is_human else 'propose'} {id_}", act)
        if done is not None:
            return Verdict(outcome="superseding", memory=done, detail=f"{id_} is {above} now")
        detail = f"{above} waits for a person"
        return Verdict(outcome="proposed", check="approval", detail=detail, proposal=asked)

    def merge_candidates(
        self,
        *,
        scope: str | None = None,
        floor: Annotated[Unit, "Only pairs at least so alike, 0 to 1."] = 0.7,
        kinds: Sequence[Kind] | None = None,
    ) -> list[Pair]:
        """List pairs of live memories that look alike, best first.

        They are of one kind, or of any of `kinds`.
        """
        view = self._spine.head()
        alike: list[Pair] = []
        for together in [[kind] for kind in review.REVIEWED] if kinds is None else [kinds]:
            groups: dict[str, list[Memory]] = {}
            for memory in self.memories(kind=together, scope=scope):
                if memory.text:
                    groups.setdefault(memory.scope, []).append(memory)

            def near(one: Memory, kinds: Sequence[Kind] = together) -> list[Memory]:
                return [other for kind in kinds for other in view.alike(kind, one.scope, one.text)]

            for memories in groups.values():
                alike += review.pairs(memories, floor, near)
        return sorted(alike, key=lambda pair: (-pair.score, pair.first.id, pair.second.id))

    def propose_merge(
        self,
        first: Annotated[str, "A memory's id."],
        second: Annotated[str, "The other's id."],
        text: Annotated[str | None, "What the one shall say (the surer one's text)."] = None,
    ) -> str:
        """Ask a person to make one memory of two; returns the proposal's id."""
        a, b = self.get(first), self.get(second)
        if a is None or b is None:
            raise NotFound(f"there is no live memory {first if a is None else second}")
        if (a.kind, a.scope) != (b.kind, b.scope) or a.kind not in review.REVIEWED:
            raise BadInput(f"{first} and {second} cannot be merged: they differ in kind or scope")
        better, writer = max((a, b), key=lambda m: (m.confidence, m.at)), self._writer(None)
        said = replace(better, text=better.text if text is None else text)
        said, why = writer.proposable(said, self._spine.head()), f"{first} and {second} say nearly the same"

        def act(pending: Pending, context: RuleContext, view: DbView) -> str:
            return ask(pending, "merge", review.merged(a, b, said.text, context.new_id()), why, context).id

        return _commit(writer, "propose merge", act)

    def deletion_candidates(self, *, scope: str | None = None) -> list[Doubt]:
        """List memories worth asking about, and why; nothing is deleted."""
        memories = self.memories(kind=review.REVIEWED, scope=scope)
        pairs = self.merge_candidates(scope=scope, floor=0.85)
        return review.doubts(memories, self.policy, self._spine.now(), pairs)

    def propose_deletions(self, *, scope: str | None = None) -> list[str]:
        """Put the deletion candidates before a person, each once; returns the new proposals' ids."""
        doubts = self.deletion_candidates(scope=scope)

        def act(pending: Pending, context: RuleContext, view: DbView) -> list[str]:
            ids = []
            asked = {p.memory.id for p in pending.proposals() if p.action == "forget"}
            for doubt in doubts:
                current = view.live(doubt.memory.id)
                is_asked = doubt.memory.id in asked or view.was_declined("forget", doubt.memory.id)
                if current is not None and not is_asked:
                    ids.append(propose_end(pending, current, doubt.reason, context).proposal or "")
            return ids

        return _commit(self._writer(scope), "propose deletions", act)

    def assemble(
        self,
        *ids: Annotated[str, "The memories to group; without any, all that are alike."],
        name: Annotated[str | None, "What to call it; otherwise what its members share."] = None,
        tags: Annotated[Sequence[str] | None, "Tags for it."] = None,
    ) -> list[Memory]:
        """Group memories that are alike, or exactly those named; returns the assemblies made or changed."""
        self._spine.must_write()
        if not ids:
            self._indexing.catch_up()
            done = assemble.assemble(self._spine, self._indexing)
            return [memory for id_ in done if (memory := self.get(id_))]
        named, fields = {id_: self.get(id_) for id_ in ids}, {"text": name or "", "tags": as_tags(tags or ())}
        made = assemble.by_hand(self._spine, self._indexing, self.actor, named, **fields)
        self._worker.wake()
        return [made]

    def merge_assemblies(
        self, first: AssemblyId, second: Annotated[str, "The other assembly's id."]
    ) -> Memory:
        """Make one assembly of two, in one commit; `unmerge` takes it back."""
        one, two = self.explained.found(first), self.explained.found(second)
        made = assemble.merge(self._spine, self._indexing, self.actor, one, two)
        self._worker.wake()
        return made

    def unmerge(self, id_: AssemblyId) -> list[str]:
        """End an assembly that a merge made; those it was made of live again. Returns their ids."""
        done = assemble.unmerge(self._spine, self.actor, self.explained.found(id_))
        self._worker.wake()
        return done

    def _waiting(self, view: DbView, id_: str) -> Proposal:
        proposal = view.proposal(id_)
        if proposal is None or not self.sees(proposal.memory.scope):
            raise NotFound(f"there is no waiting proposal {id_!r}", hint="`octavo proposals` lists them")
        return proposal


def expire(spine: Spine, writer: Writer) -> int:
    """Close proposals that nobody answered in time; returns how many."""

    def act(pending: Pending, context: RuleContext, view: DbView) -> int:
        days = spine.policy.review.expire_days
        return 0 if days is None else len(pending.extend(review.expired(view.proposals(), context.at, days)))

    return _commit(writer, "expire", act)


def _digest(proposal: Proposal) -> str:
    """A hash of everything a proposal says; who approves may insist on it."""
    return hashlib.sha256(codec.encode_json(proposal)).hexdigest()


def _commit(writer: Writer, cause: str, act: Callable[[Pending, RuleContext, DbView], T]) -> T:
    """Commit what an act puts on top of the newest version; returns what the last attempt gave."""

    def attempt(pending: Pending, view: DbView) -> T:
        return act(pending, writer.context(), view)

    return writer.spine.commit(attempt, cause=cause, actor=writer.actor)[0]
