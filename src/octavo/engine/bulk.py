"""Many finished candidates in one commit: how imports and the documents' whole states come in."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from octavo.domain import rules
from octavo.domain.buffer import Forgot, Revised, SetState, Wrote
from octavo.domain.memory import Refusal
from octavo.domain.verdicts import Verdict
from octavo.engine.spine import Plan, Spine
from octavo.engine.writing import Writer
from octavo.errors import VersionConflict
from octavo.storage import refusals
from octavo.storage.state_view import DbView

Finished = Wrote | SetState | Revised | Forgot


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
) -> list[Verdict]:
    """Commit candidates through gate and rules; a verdict for each, in order."""
    ready = [_ready(writer, candidate) for candidate in wanted]
    verdicts: list[Verdict] = []
    refused: list[Refusal] = []

    def decide(view: DbView) -> Plan | None:
        if base is not None and view.version != base:
            hint = "load the newest state and make the change on that"
            raise VersionConflict(f"version {base} was expected, the account is at {view.version}", hint=hint)
        candidates = [item for item in ready if not isinstance(item, Verdict)]
        state, found = rules.consolidate(view, candidates, writer.setting(skip=skip))
        settled = iter(found)
        verdicts[:] = [item if isinstance(item, Verdict) else next(settled) for item in ready]
        for verdict in verdicts if whole else ():
            if verdict.outcome == "refused":
                verdict.or_raise()
        refused[:] = [c for c in state.changes if isinstance(c, Refusal)]
        changes = [c for c in state.changes if not isinstance(c, Refusal)]
        return Plan(changes=changes, cause=cause, actor=writer.actor, scope=scope) if changes else None

    spine.commit(decide)
    for refusal in refused:
        refusals.add(spine.store, refusal, keep=spine.policy.gate.refusals_kept)
    return verdicts


def _ready(writer: Writer, candidate: Finished) -> Finished | Verdict:
    """A candidate signed by the writer and past the text checks, or its refusal."""
    match candidate:
        case Wrote():
            id_ = candidate.memory.id or writer.spine.new_id()
            signed = replace(candidate.memory, id=id_, actor=writer.actor, scope=writer.scope)
            return writer.checked(replace(candidate, memory=signed))
        case SetState():
            return writer.state(candidate.name, candidate.data, patch=candidate.patch)
        case Revised():
            outcome = writer.checked(Wrote(memory=candidate.wanted, override=candidate.override))
            return outcome if isinstance(outcome, Verdict) else replace(candidate, wanted=outcome.memory)
        case Forgot():
            return candidate
