"""What rooms above may do beyond a user: finished candidates, summaries made elsewhere, an agent's hand."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from typing import Any, Generic, TypeVar

from msgspec.structs import replace

from octavo.domain import compression, cores, pages, rules, screening
from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.compression import Due
from octavo.domain.cores import Core, Sphere
from octavo.domain.episodes import moment
from octavo.domain.filters import Filter
from octavo.domain.memory import SHARED, Memory, check_id, is_id
from octavo.domain.verdicts import Verdict, refused
from octavo.engine import assemble, compress
from octavo.engine.fields import plain_json
from octavo.engine.follower import Follower
from octavo.engine.handle import Handle
from octavo.engine.spine import Spine, without_gc
from octavo.engine.surface import public
from octavo.engine.writing import MADE, Writer, candidate_of, commit_writes
from octavo.errors import BadInput, HumanOnly
from octavo.storage.state_view import DbView

A = TypeVar("A", bound=Handle)
Finished = Wrote | SetState | Revised | Forgot

_SIGNED = frozenset({"id", "rev", "scope", "actor", "approved", "gone", "sandbox", "turns"})
_MADE_BY_ENGINE = refused(
    "kind", "cores, spheres and assemblies are made by the engine", "write what they rest on"
)


@public
class Intake(Generic[A]):
    """What an account's handle lets the rooms above do, under the same gate, scope and actor."""

    def __init__(
        self,
        handle: A,
        writer: Callable[[str | None], Writer],
        wake: Callable[[], object],
    ) -> None:
        self._handle, self._writer, self._wake = handle, writer, wake
        self._spine = writer(None).spine
        self._follower: Follower | None = None

    def write_many(
        self,
        wanted: Iterable[Finished],
        *,
        cause: str,
        base: int | None = None,
        skip: frozenset[str] = frozenset(),
        whole: bool = False,
        closes: str | None = None,
        scope: str | None = None,
    ) -> list[Verdict]:
        """Write finished candidates in one commit; a verdict for each, in order.

        A memory without an id gets one. `base` is the version the caller has seen; `whole` raises if one
        candidate is refused, and nothing is written; `skip` names checks that do not apply; `closes` names
        the session, held elsewhere, that the candidates are; all of them are written to `scope`.
        """
        self._spine.must_write()
        writer = replace(self._writer(scope), guard=None)
        if closes is not None and closes not in {info.id for info in self._handle.sandboxes()}:
            writer.must_be_allowed(check_id(closes, "session"), what="session")
        with without_gc():
            candidates = list(wanted)
            ids = self._spine.new_ids(len(candidates))
            ready = [_ready(writer, one, id_) for one, id_ in zip(candidates, ids, strict=True)]
            verdicts = commit_writes(
                writer,
                ready,
                cause=cause,
                scope=scope or self._handle.scope if closes is None else writer.scope,
                base=base,
                whole=whole,
                closes=closes,
                skip=skip,
            )
        if self._follower is None:
            self._wake()
        else:
            self._follower.wrote(len(verdicts))
        return verdicts

    @contextmanager
    def importing(self) -> Iterator[None]:
        """Index in a process of its own what a long import commits; leaving waits for it."""
        with Follower(self._spine) as follower:
            self._follower = follower
            try:
                yield
            finally:
                self._follower = None

    def must_fit(self, item: Mapping[str, Any]) -> None:
        """Raise BadInput if an item of `remember_many` could not even be a candidate."""
        candidate_of(self._writer, item)

    def adopt(self, id_: str, given: Mapping[str, Any]) -> Memory | None:
        """Take in a core or sphere made elsewhere of the sessions that have its place here."""
        writer = self._writer(id_.partition("@")[2] or SHARED)
        if not writer.is_human:
            raise HumanOnly(f"{writer.actor} tried to bring in a summary that was made elsewhere")
        return _adopted(self._spine, writer.actor, check_id(id_), plain_json(given))

    def finish_merge(self, id_: str) -> list[str]:
        """End what an assembly was merged from, where a merge elsewhere did not come so far."""
        return assemble.finish(self._spine, self._handle.actor, self._handle.explained.found(id_))

    def as_agent(self) -> A:
        """The same account in an agent's hands; its check, worker, index and models stay one."""
        twin = copy(self._handle)
        vars(twin).pop("intake", None)  # it writes for its own handle
        twin.actor = "agent"
        return twin


def _adopted(spine: Spine, actor: str, id_: str, given: Mapping[str, Any]) -> Memory | None:
    """Take in a core or sphere that was made elsewhere of the same sessions; None if one was here before."""
    due = compression.recognise(id_, spine.policy.compression)
    if due is None:
        raise BadInput(f"{id_!r} is no core or sphere", hint="core_000_001 and sphere_000 are")
    content, view = _content(due, given), spine.head()
    closing = spine.state.sessions(due.scope, due.sessions[-1], due.sessions[-1])
    if not closing:
        raise BadInput(f"{id_} is due after session {due.sessions[-1]}, which is not closed here")
    if compress.quotes_refused(spine, view, due.scope, given):
        raise BadInput(f"{id_} quotes what a person refused or erased", hint="it is made anew without that")
    sources = due.members or _episodes(spine, view, due, content)
    data = {**given, compress.MADE_FROM: closing[0].version}
    memory = replace(compress.memory_of(spine, due, content, sources, data), actor=actor, source="operator")
    return compress.put(spine, due, screening.masked(memory, spine.policy.privacy), f"import {id_}")


def _content(due: Due, given: Mapping[str, Any]) -> Core | Sphere:
    """What a core or sphere made elsewhere says, if it has the shape and folds as many as here."""
    if engine_only := sorted(compress.OWN & set(given)):
        raise BadInput(f"{due.id} has the field {engine_only[0]!r}, which is the engine's own")
    content = cores.read(cores.TYPES[due.kind], given)
    folded = content.session_count if isinstance(content, cores.Core) else content.core_count
    if folded != due.level.radix:
        raise BadInput(f"{due.id} folds {folded}, the policy says {due.level.radix}")
    try:
        cores.must_be_quotable(content)
        pages.page_of(content)
        moment(content.timestamp_end)
    except (ValueError, IndexError) as error:
        raise BadInput(f"{due.id} cannot be read as a page: {error}") from error
    return content


def _episodes(spine: Spine, view: DbView, due: Due, content: Core | Sphere) -> list[str]:
    """The episodes here that a core is made of: those it names, else all of its sessions."""
    named = content.source_episodes if isinstance(content, cores.Core) else ()
    if named:
        return [id_ for id_ in named if is_id(id_)]
    rows = spine.state.sessions(due.scope, due.sessions[0], due.sessions[-1])
    found = [view.memories(Filter(kinds=("episode",), sandbox=row.sandbox or "")) for row in rows]
    return [m.id for memories in found for m in memories if rules.counts_as_episode(m)]


def _ready(writer: Writer, candidate: Finished, new_id: str) -> Finished | Verdict:
    """A candidate signed by the writer, with an id, and past the text checks, or its refusal."""
    match candidate:
        case Wrote():
            given = candidate.memory
            writer.must_be_allowed(given.id or None, candidate.override)
            if given.kind in MADE and not writer.is_human:
                return writer.refused(given, _MADE_BY_ENGINE)
            signed = (given.actor, given.scope, given.rev, given.gone, given.approved)
            if given.id and signed == (writer.actor, writer.scope, 1, False, None):
                return writer.checked(candidate)  # most of an import is signed already
            approved = given.approved if writer.is_human else None
            memory = replace(
                given,
                id=given.id or new_id,
                rev=1,
                gone=False,
                actor=writer.actor,
                scope=writer.scope,
                approved=approved,
            )
            return writer.checked(replace(candidate, memory=memory))
        case SetState():
            return writer.state(candidate.name, candidate.data, patch=candidate.patch)
        case Revised():
            writer.must_be_allowed(override=candidate.override)
            if kept := sorted(set(candidate.fields) & _SIGNED):
                raise BadInput(f"{kept[0]!r} cannot be revised", hint="it says whose a memory is, and which")
            if candidate.wanted.kind in MADE and not writer.is_human:
                return writer.refused(candidate.wanted, _MADE_BY_ENGINE)
            outcome = writer.checked(Wrote(memory=candidate.wanted, override=candidate.override))
            if isinstance(outcome, Verdict):
                return outcome
            return replace(candidate, wanted=outcome.memory, actor=writer.actor)
        case Forgot():
            return replace(candidate, actor=writer.actor)
        case _:
            raise BadInput(f"a {type(candidate).__name__} is no candidate", hint="hand in Wrote, SetState …")
