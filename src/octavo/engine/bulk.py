"""Many finished candidates in one commit: how imports and the documents' whole states come in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from octavo.domain import compression, rules
from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.compression import Due
from octavo.domain.episodes import moment
from octavo.domain.filters import Filter
from octavo.domain.memory import Memory, Refusal, is_id, signed
from octavo.domain.verdicts import Verdict
from octavo.engine import collector
from octavo.engine.spine import Plan, Spine
from octavo.engine.writing import Writer
from octavo.errors import BadInput, SandboxClosed, VersionConflict
from octavo.later import Later
from octavo.storage import refusals
from octavo.storage.state_view import DbView

Finished = Wrote | SetState | Revised | Forgot

if TYPE_CHECKING:
    from octavo.domain import cores, pages
    from octavo.domain.cores import Core, Sphere
    from octavo.engine import beliefs, compress
else:
    cores = Later("octavo.domain.cores")
    pages = Later("octavo.domain.pages")
    beliefs = Later("octavo.engine.beliefs")
    compress = Later("octavo.engine.compress")


@collector.held()
def write(
    spine: Spine,
    writer: Writer,
    wanted: Iterable[Finished],
    *,
    cause: str,
    scope: str | None,
    base: int | None,
    skip: frozenset[str],
    whole: bool,
    closes: str | None = None,
) -> list[Verdict]:
    """Commit candidates through gate and rules; a verdict for each, in order.

    `closes` names a session held elsewhere that these are: the commit gets its ordinal, once.
    """
    given = list(wanted)
    ids = writer.spine.new_ids(len(given))
    ready = [_ready(writer, candidate, id_) for candidate, id_ in zip(given, ids, strict=True)]
    verdicts: list[Verdict] = []
    refused: list[Refusal] = []

    def decide(view: DbView) -> Plan | None:
        if base is not None and view.version != base:
            hint = "load the newest state and make the change on that"
            raise VersionConflict(f"version {base} was expected, the account is at {view.version}", hint=hint)
        if closes is not None and spine.state.commits_of(closes):
            raise SandboxClosed(f"session {closes!r} was closed already")
        candidates = [item for item in ready if not isinstance(item, Verdict)]
        view.expect([item.memory.id for item in candidates if isinstance(item, Wrote)])
        state, found = rules.consolidate(view, candidates, writer.setting(skip=skip))
        settled = iter(found)
        verdicts[:] = [item if isinstance(item, Verdict) else next(settled) for item in ready]
        for verdict in verdicts if whole else ():
            if verdict.outcome == "refused":
                verdict.or_raise()
        refused[:] = [c for c in state.changes if isinstance(c, Refusal)]
        changes = [c for c in state.changes if not isinstance(c, Refusal)]
        plan = Plan(changes=changes, cause=cause, actor=writer.actor, scope=scope) if changes else None
        if plan is None or closes is None:
            return plan
        ordinal = view.sessions(writer.scope) + 1
        return replace(plan, scope=writer.scope, session=ordinal, sandbox=closes)

    spine.commit(decide)
    for refusal in refused:
        refusals.add(spine.store, refusal, keep=spine.policy.gate.refusals_kept)
    return verdicts


def adopt(spine: Spine, actor: str, id_: str, given: Mapping[str, Any]) -> Memory | None:
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

    def decide(now: DbView) -> Plan | None:
        old = now.get(id_)
        if not compress.is_wanted(old):
            return None
        changes = [replace(memory, rev=old.rev + 1 if old else 1)]
        asked = beliefs.hypotheses(spine, now, memory) if due.kind == "sphere" else []
        return Plan(changes=[*changes, *asked], cause=f"import {id_}", actor=actor, scope=due.scope)

    return memory if spine.commit(decide) else None


def _content(due: Due, given: Mapping[str, Any]) -> Core | Sphere:
    """What a core or sphere made elsewhere says, if it has the shape and folds as many as here."""
    if engine_only := sorted(compress.OWN & set(given)):
        raise BadInput(f"{due.id} has the field {engine_only[0]!r}, which is the engine's own")
    content: Core | Sphere
    content = cores.core_from_json(given) if due.kind == "core" else cores.sphere_from_json(given)
    folded = content.session_count if isinstance(content, cores.Core) else content.core_count
    if folded != due.level.radix:
        raise BadInput(f"{due.id} folds {folded}, the policy says {due.level.radix}")
    try:
        pages.core_page(content) if isinstance(content, cores.Core) else pages.sphere_page(content)
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
    found = [view.memories(Filter(kinds=("episode",), session=row.sandbox or "")) for row in rows]
    return [m.id for memories in found for m in memories if rules.counts_as_episode(m)]


def _ready(writer: Writer, candidate: Finished, new_id: str) -> Finished | Verdict:
    """A candidate signed by the writer, with an id, and past the text checks, or its refusal."""
    match candidate:
        case Wrote():
            given = candidate.memory
            if given.id and (given.actor, given.scope) == (writer.actor, writer.scope):
                return writer.checked(candidate)  # signed already: most of an import is
            memory = signed(given, id_=given.id or new_id, actor=writer.actor, scope=writer.scope)
            alias, supersedes, override = candidate.alias, candidate.supersedes, candidate.override
            return writer.checked(Wrote(memory=memory, alias=alias, supersedes=supersedes, override=override))
        case SetState():
            return writer.state(candidate.name, candidate.data, patch=candidate.patch)
        case Revised():
            outcome = writer.checked(Wrote(memory=candidate.wanted, override=candidate.override))
            return outcome if isinstance(outcome, Verdict) else replace(candidate, wanted=outcome.memory)
        case Forgot():
            return candidate
