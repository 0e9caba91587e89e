"""Judging: a model that is configured says which older facts new ones replace; a person decides.

It is asked in the background, of what this handle has seen written. Recall needs none of it: without a model,
or while one fails, the scorer of corrections decides as always.
"""

from __future__ import annotations

import logging

from octavo.domain.memory import SHARED, Memory
from octavo.domain.state import Pending
from octavo.domain.verdicts import propose_end
from octavo.engine.spine import Spine
from octavo.engine.writing import Writer
from octavo.errors import ModelFailed
from octavo.models.summarisers import Summariser
from octavo.storage.state_view import DbView

_log = logging.getLogger(__name__)
_JUDGED = ("fact", "register")
_EACH, _MOST = 3, 24  # look-alikes of one fact, and pairs that a model is asked about at once


def judge(spine: Spine, model: Summariser, since: int) -> int:
    """Ask about the facts written after a version; returns the version up to which that is done.

    What the model did not answer is not asked again: nothing waits for it, and nothing is lost.
    """
    view = spine.head()
    pairs = _pairs(spine, view, since)
    try:
        found = model.replaced([(older.text, newer.text) for older, newer in pairs]) if pairs else []
    except ModelFailed as error:
        _log.warning("judging failed pairs=%d reason=%s", len(pairs), error.message)
        return view.version
    replaced = [pairs[n] for n in found]

    def act(pending: Pending, now: DbView) -> None:
        context = Writer(spine=spine, actor="system", scope=SHARED).context()
        asked = {proposal.memory.id for proposal in pending.proposals() if proposal.action == "forget"}
        for older, newer in replaced:
            current = now.get(older.id)
            is_settled = older.id in asked or now.was_declined("forget", older.id)
            if current == older and not is_settled:
                asked.add(older.id)
                propose_end(pending, older, f"the model takes it as replaced by {newer.id}", context)

    if replaced:
        spine.commit(act, cause="judge", actor="system")
    return view.version


def _pairs(spine: Spine, view: DbView, since: int) -> list[tuple[Memory, Memory]]:
    """New facts, each with the older ones of its scope that it contrasts with or looks like."""
    pairs: list[tuple[Memory, Memory]] = []
    new = view.many(spine.state.ids_changed(since, view.version))
    for _, newer in new.values():
        if newer.gone or newer.kind not in _JUDGED or len(pairs) >= _MOST:
            continue
        contrasted = (view.get(id_) for id_ in newer.linked("contrasts"))
        alike = view.alike(newer.kind, newer.scope, newer.text)
        near = [memory for memory in (*contrasted, *alike) if memory and not memory.gone]
        like_it = (m for m in near if (m.scope, m.topic) == (newer.scope, newer.topic) and m.id not in new)
        older = {memory.id: memory for memory in like_it}
        pairs += [(memory, newer) for memory in list(older.values())[:_EACH]]
    return pairs[:_MOST]
