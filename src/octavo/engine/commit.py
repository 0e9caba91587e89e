"""Candidates of writers become a version: rules and state checks at every attempt, all or nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from types import MappingProxyType

from octavo.domain import rules, screening
from octavo.domain.buffer import Wrote
from octavo.domain.rules import Candidate
from octavo.domain.state import Pending
from octavo.domain.verdicts import Verdict
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.errors import SandboxClosed, Stale, VersionConflict
from octavo.storage.state_view import DbView

Write = tuple[Writer, Candidate] | Verdict  # what passed the text checks, and by whom, or what did not


def commit_writes(
    spine: Spine,
    writes: Sequence[Write],
    *,
    cause: str,
    actor: str,
    scope: str | None,
    base: int | None = None,
    whole: bool = False,
    closes: str | None = None,
    skip: frozenset[str] = frozenset(),
    revs: Mapping[str, int | None] = MappingProxyType({}),
    progress: Callable[[int, int], None] | None = None,
) -> list[Verdict]:
    """Commit candidates through gate and rules; a verdict for each, in order.

    `base` is the version the caller has seen; `whole` raises if one candidate is refused, and nothing is
    written; `closes` names a session held elsewhere that these are: the commit gets its ordinal, once;
    `skip` names checks that do not apply; `revs` are the revisions that some memories must still have.
    """
    verdicts: list[Verdict] = []

    def act(pending: Pending, view: DbView) -> int | None:
        _must_stand(spine, view, base, closes)
        _must_be_current(view, revs)
        view.expect([w[1].memory for w in writes if isinstance(w, tuple) and isinstance(w[1], Wrote)])
        verdicts[:] = _judged(pending, writes, skip, progress)
        for verdict in verdicts if whole else ():
            if verdict.outcome == "refused":
                verdict.or_raise()
        return None if closes is None else view.sessions(scope or "shared") + 1

    spine.commit(act, cause=cause, actor=actor, scope=scope, sandbox=closes)
    return verdicts


def _must_stand(spine: Spine, view: DbView, base: int | None, closes: str | None) -> None:
    if base is not None and view.version != base:
        hint = "load the newest state and make the change on that"
        raise VersionConflict(f"version {base} was expected, the account is at {view.version}", hint=hint)
    if closes is not None and spine.state.commits_of(closes):
        raise SandboxClosed(f"session {closes!r} was closed already")


def _must_be_current(view: DbView, revs: Mapping[str, int | None]) -> None:
    for id_, rev in revs.items():
        now = view.get(id_)
        if rev is not None and now is not None and now.rev != rev:
            raise Stale(f"revision {rev} of {id_} was expected, it is at {now.rev}")


def _judged(
    pending: Pending,
    writes: Sequence[Write],
    skip: frozenset[str],
    progress: Callable[[int, int], None] | None,
) -> list[Verdict]:
    """The verdicts on all writes, one writer's after the other's, each on top of those before it."""
    verdicts: list[Verdict] = []
    for writer, group in groupby(writes, key=lambda w: w[0] if isinstance(w, tuple) else None):
        some = list(group)
        if writer is None:
            verdicts += [w for w in some if isinstance(w, Verdict)]
        else:
            screened = writer.spine.policy.privacy
            candidates = [screening.screened(w[1], screened) for w in some if isinstance(w, tuple)]
            verdicts += rules.consolidate(pending, candidates, writer.context(skip=skip), progress)
    return verdicts
