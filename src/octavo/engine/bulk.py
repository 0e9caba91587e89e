"""Many finished candidates in one commit: how imports and the documents' whole states come in."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec.structs import replace

from octavo.domain import compression, cores, pages, rules, screening
from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.compression import Due
from octavo.domain.cores import Core, Sphere
from octavo.domain.episodes import moment
from octavo.domain.filters import Filter
from octavo.domain.gate import Stop
from octavo.domain.memory import Memory, is_id
from octavo.domain.verdicts import Verdict
from octavo.engine import beliefs, compress
from octavo.engine.commit import Write, commit_writes
from octavo.engine.spine import Plan, Spine, without_gc
from octavo.engine.writing import MADE, Writer
from octavo.errors import BadInput
from octavo.storage.state_view import DbView

Finished = Wrote | SetState | Revised | Forgot

_SIGNED = frozenset({"id", "rev", "scope", "actor", "approved", "gone", "sandbox", "turns"})
_MADE_BY_ENGINE = Stop(
    check="kind",
    detail="cores, spheres and assemblies are made by the engine",
    advice="write what they rest on",
)


@without_gc()
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
    writes: list[Write] = [item if isinstance(item, Verdict) else (writer, item) for item in ready]
    return commit_writes(
        spine,
        writes,
        cause=cause,
        actor=writer.actor,
        scope=scope if closes is None else writer.scope,
        base=base,
        whole=whole,
        closes=closes,
        skip=skip,
    )


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
    memory = screening.masked(memory, spine.policy.privacy)

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
