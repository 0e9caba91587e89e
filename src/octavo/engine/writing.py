"""From what a caller hands in to a candidate that has passed the text checks, and on into a version."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Unpack

from msgspec import Struct
from msgspec.structs import replace

from octavo.domain import episodes, gate, rules, screening
from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.memory import (
    SHARED,
    STATE,
    Kind,
    Memory,
    Turn,
    check_id,
    is_human,
    is_temporary,
    transcript,
)
from octavo.domain.rules import KEYED, Candidate
from octavo.domain.state import Pending, View
from octavo.domain.verdicts import Guard, RuleContext, Verdict, refusal_of
from octavo.engine.fields import Changes, Fields, Key, checked
from octavo.engine.spine import Spine
from octavo.engine.surface import fitted
from octavo.errors import BadInput, BadVector, HumanOnly, SandboxClosed, Stale, VersionConflict
from octavo.storage.state_view import DbView

MADE = ("core", "sphere", "assembly")
_ITEM = frozenset(Fields.__annotations__) | {"text", "scope", "key"}


class Writer(Struct, frozen=True, kw_only=True):
    """Who writes where: the part of every candidate that the payload cannot set.

    `may_name` lets it choose any id; within one scope only such as end in `@` and the scope, for a taken id
    would tell of another scope.
    """

    spine: Spine
    actor: str
    scope: str
    sandbox: str | None = None
    visible: frozenset[str] | None = None
    guard: Guard | None = None
    may_name: bool = True

    @fitted
    def candidate(self, text: str, *, key: Key = None, **fields: Unpack[Fields]) -> Wrote:
        """A memory to write, every field checked; one that is None is as if it were not said."""
        said: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
        kind: Kind = said.pop("kind", "fact")
        if kind in MADE:
            raise BadInput(f"a {kind} is made by the engine, not written", hint="write what it is made of")
        id_, override = said.pop("id", None), said.pop("override", None)
        self.must_be_allowed(id_, override)
        supersedes, vector = said.pop("supersedes", None), said.pop("vector", None)
        own = checked({"text": text, **said})
        if vector is not None:
            own["data"] = {**own.get("data", {}), **self._vector(*vector)}
        if kind == "episode":
            own["turns"] = (Turn(speaker="user" if self.is_human else "assistant", text=text),)
            own["text"] = transcript(own["turns"])
        own.setdefault("source", "manual" if self.is_human else "chat")
        own.setdefault("confidence", 1.0 if self.is_human else 0.8)
        id_ = id_ if key is None else self._key_id(key)
        return self._wrote(id_, kind, own, supersedes=supersedes, override=override)

    def episode(self, given: Mapping[str, Any], *, level: str | None = None) -> Wrote:
        """A document's episode as a candidate; nothing of the caller's mapping is changed."""
        own = episodes.from_document(given)
        id_, at = own.pop("id"), own.pop("at")
        self.must_be_allowed(id_)
        own |= checked({"category": given.get("category"), "tags": own["tags"], "data": own["data"]})
        own["text"] = transcript(own["turns"])
        wrote = self._wrote(id_, "episode", own if at is None else {**own, "at": at})
        if level is not None and self.spine.policy.sandbox.write_levels:
            return replace(wrote, memory=episodes.at_level(wrote.memory, level))
        return wrote

    def _wrote(self, id_: str | None, kind: Kind, own: Mapping[str, Any], **more: str | None) -> Wrote:
        """A candidate of this writer, of now unless it says when; a temporary id is its alias."""
        is_alias = id_ is not None and is_temporary(id_)
        memory = Memory(
            id=self.spine.new_id() if id_ is None or is_alias else check_id(id_),
            kind=kind,
            scope=self.scope,
            actor=self.actor,
            sandbox=self.sandbox,
            **{"at": self.spine.now(), **own},
        )
        return Wrote(memory=memory, alias=id_ if is_alias else None, **more)

    def state(self, name: str, data: Mapping[str, Any], *, patch: bool = False) -> SetState:
        """A named state to set; secrets in it are masked, nothing of it is refused."""
        wrote = self.candidate("", kind="register", topic=name, category=STATE, data=data)
        memory = screening.masked(wrote.memory, self.spine.policy.privacy)
        return SetState(
            id=memory.id,
            name=memory.topic or name,
            data=memory.data,
            at=memory.at,
            patch=patch,
            actor=self.actor,
        )

    def revision(
        self, old: Memory | None, id_: str, override: str | None = None, **changes: Unpack[Changes]
    ) -> Revised | Verdict:
        """New values for a memory, checked as if it were written anew; a missing one is left to the rules."""
        self.must_be_allowed(override=override)
        if not changes:
            raise BadInput(
                "a revision must change something", hint=f"set {', '.join(Changes.__annotations__)}"
            )
        fields_ = checked(changes)
        base = old or Memory(id=check_id(id_), kind="fact", at=self.spine.now(), scope=self.scope)
        new = replace(base, **fields_)
        if old is not None and old.kind != "episode":
            outcome = self.checked(Wrote(memory=new, override=override))
            if isinstance(outcome, Verdict):
                return outcome
            new = outcome.memory
        else:  # it will be refused at the commit, but what it says is buffered until then
            screening.must_be_clean(new)
            new = screening.masked(new, self.spine.policy.privacy)
        return Revised(
            wanted=new, fields=tuple(fields_), at=self.spine.now(), override=override, actor=self.actor
        )

    def end(self, id_: str) -> Forgot:
        """A memory to end."""
        return Forgot(memory=check_id(id_), at=self.spine.now(), actor=self.actor)

    def checked(self, wrote: Wrote) -> Wrote | Verdict:
        """The candidate after the text checks, masked where its kind allows, or the refusal."""
        outcome = gate.check_text(wrote.memory, self.spine.policy, overridden=wrote.override is not None)
        if isinstance(outcome, Memory):
            return wrote if outcome is wrote.memory else replace(wrote, memory=outcome)
        return self.refused(wrote.memory, outcome)

    @property
    def is_human(self) -> bool:
        """Whether a person writes."""
        return is_human(self.actor)

    def proposable(self, memory: Memory, view: View) -> Memory:
        """A memory to be proposed, past every check of the gate, or Refused."""
        outcome = self.checked(Wrote(memory=memory))
        if isinstance(outcome, Verdict):
            return outcome.or_raise()
        checked = gate.check_state(view, outcome.memory, self.spine.keyed)
        return self.refused(memory, checked).or_raise() if isinstance(checked, Verdict) else checked

    def refused(self, memory: Memory, verdict: Verdict) -> Verdict:
        """Note a refusal in the account's own log of them; an id may be the secret."""
        refusal = refusal_of(memory, verdict, self.spine.now())
        is_secret = verdict.check == "secret"
        self.spine.note(replace(refusal, id=self.spine.new_id()) if is_secret else refusal)
        return verdict

    def context(self, **more: Any) -> RuleContext:
        """What the rules may know about this writer."""
        return RuleContext(
            policy=self.spine.policy,
            actor=self.actor,
            at=self.spine.now(),
            new_id=self.spine.new_id,
            keyed=self.spine.keyed,
            scope=self.scope,
            sandbox=self.sandbox,
            visible=self.visible,
            guard=self.guard,
            **more,
        )

    def _vector(self, embedder: str, values: Sequence[float]) -> dict[str, Any]:
        """A vector of the caller's own: part of the truth, so it is checked and lives in the ledger."""
        if not values:
            raise BadVector("a vector handed in has no numbers")
        wanted = self.spine.dimensions.get(embedder, len(values))
        if len(values) != wanted:
            raise BadVector(f"the vector has {len(values)} dimensions, {embedder} makes {wanted}")
        return {"vector": {"embedder": check_id(embedder, "embedder"), "values": [float(v) for v in values]}}

    def must_be_allowed(self, id_: str | None = None, override: str | None = None, what: str = "id") -> None:
        """Raise if this writer may not choose an id, or may not override the gate."""
        is_own = id_ is None or is_temporary(id_) or id_.endswith(f"@{self.scope}")
        if not is_own and not self.may_name:
            hint = f"end it in '@{self.scope}', or hand in a `key` instead"
            raise BadInput(f"a handle bound to one scope chose the {what} {id_!r}", hint=hint)
        if override is not None and not is_human(self.actor):
            raise HumanOnly(f"{self.actor} tried to override the gate")
        if override is not None and not override.strip():
            raise BadInput("an override needs a reason", hint="say why the check does not apply here")

    def _key_id(self, key: str) -> str:
        """The id that a key stands for, in its scope alone."""
        return f"{KEYED}{self.spine.keyed(f'key {self.scope} {key}')[:24]}"


def candidates_of(
    writer: Callable[[str | None], Writer], items: Iterable[Mapping[str, Any]]
) -> Iterator[tuple[Writer, Wrote]]:
    """The items of `remember_many` as candidates, and whose they are; BadInput names the one that is none."""
    for number, item in enumerate(items, start=1):
        try:
            yield candidate_of(writer, item)
        except BadInput as error:
            said = error.message.removeprefix("candidate: ")
            raise type(error)(f"item {number}: {said}", hint=error.advice) from error


def candidate_of(writer: Callable[[str | None], Writer], item: Mapping[str, Any]) -> tuple[Writer, Wrote]:
    """An item of `remember_many` as a candidate, and whose it is; BadInput if it cannot be one."""
    if not isinstance(item, Mapping) or not set(item) <= _ITEM:
        unknown = sorted(map(str, set(item) - _ITEM)) if isinstance(item, Mapping) else [repr(item)[:80]]
        hint = f"it may have {', '.join(sorted(_ITEM))}"
        raise BadInput(f"a memory has no {', '.join(unknown)}", hint=hint)
    fields = dict(item)
    own = writer(fields.pop("scope", None))
    return own, own.candidate(fields.pop("text", ""), **fields)


def commit_writes(
    writer: Writer,
    writes: Sequence[Candidate | Verdict],
    *,
    cause: str,
    scope: str | None,
    base: int | None = None,
    whole: bool = False,
    closes: str | None = None,
    skip: frozenset[str] = frozenset(),
    revs: Mapping[str, int | None] = MappingProxyType({}),
    progress: Callable[[int, int], None] | None = None,
) -> list[Verdict]:
    """Make candidates of a writer a version, by gate and rules at every attempt; a verdict for each.

    A write that is a verdict did not pass the text checks. `base` is the version the caller has seen; `whole`
    raises if one candidate is refused, and nothing is written; `closes` names a session held elsewhere that
    these are: the commit gets its ordinal, once; `skip` names checks that do not apply; `revs` are the
    revisions that some memories must still have.
    """
    spine = writer.spine
    rules_of = spine.policy.privacy
    candidates = [
        w if type(w) is Wrote and w == Wrote(memory=w.memory) else screening.screened(w, rules_of)
        for w in writes
        if not isinstance(w, Verdict)
    ]

    def act(pending: Pending, view: DbView) -> list[Verdict]:
        if base is not None and view.version != base:
            hint = "load the newest state and make the change on that"
            raise VersionConflict(f"version {base} was expected, the account is at {view.version}", hint=hint)
        if closes is not None and spine.state.commits_of(closes):
            raise SandboxClosed(f"session {closes!r} was closed already")
        for id_, rev in revs.items():
            now = view.get(id_)
            if rev is not None and now is not None and now.rev != rev:
                raise Stale(f"revision {rev} of {id_} was expected, it is at {now.rev}")
        view.expect([c.memory for c in candidates if isinstance(c, Wrote)])
        judged = iter(rules.consolidate(pending, candidates, writer.context(skip=skip), progress))
        verdicts = [w if isinstance(w, Verdict) else next(judged) for w in writes]
        for verdict in verdicts if whole else ():
            if verdict.outcome == "refused":
                verdict.or_raise()
        pending.session = None if closes is None else view.sessions(scope or SHARED) + 1
        return verdicts

    return spine.commit(act, cause=cause, actor=writer.actor, scope=scope, sandbox=closes)[0]
