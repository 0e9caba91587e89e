"""Compression: eight sessions fold into a core, eight cores into a sphere; originals stay.

What a core says depends on the version that closed its last session and on nothing later, so it can be
made by whoever comes first, removed, and made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec.structs import replace

from octavo.domain import compression, cores, gate
from octavo.domain.compression import Due
from octavo.domain.cores import Core, Sphere, to_json
from octavo.domain.episodes import iso, moment
from octavo.domain.filters import Filter
from octavo.domain.memory import STATE, Change, Link, Memory, Turn, transcript
from octavo.domain.pages import page_of
from octavo.domain.review import RETIRED
from octavo.domain.rules import counts_as_episode, tombstone
from octavo.domain.screening import strings
from octavo.domain.sentences import SessionSource, split
from octavo.domain.text import key_of
from octavo.engine.beliefs import hypotheses
from octavo.engine.retirement import LOST, revived
from octavo.engine.spine import Spine
from octavo.errors import BadInput, BadPolicy, NotFound
from octavo.models.summarisers import Summariser
from octavo.storage.state_log import Commit
from octavo.storage.state_view import DbView

MADE_FROM, REMOVED = "made_from", "removed"
OWN = frozenset({MADE_FROM, REMOVED, RETIRED})  # what only the engine may say of a core


def compress(spine: Spine, summariser: Summariser, since: int = 0) -> Iterator[Memory]:
    """Make every core and sphere that is due and not there, oldest first; at a version all were there."""
    for due in _due(spine, since):
        memory = make(spine, summariser, due)
        if memory is not None:
            yield memory


def remake(spine: Spine, summariser: Summariser, id_: str) -> Memory:
    """Make one core or sphere that a person removed, from the version it was made from."""
    due = compression.recognise(id_, spine.policy.compression)
    if due is None:
        raise BadInput(f"{id_!r} is no core or sphere", hint="core_000_001 and sphere_000 are")
    closed = spine.head().sessions(due.scope)
    if closed < due.sessions[-1]:
        raise NotFound(f"{id_} is due after session {due.sessions[-1]}; {closed} are closed")
    memory = make(spine, summariser, due, asked=True)
    if memory is None:
        raise BadInput(f"{id_} is there already, or a core below it is missing")
    return memory


def make(spine: Spine, summariser: Summariser, due: Due, *, asked: bool = False) -> Memory | None:
    """Make one; None if it is there, was removed, or lacks its members. All or nothing, never twice."""
    view = spine.head()
    if not _is_wanted(view.get(due.id), asked):
        return None
    made = _content(spine, view, summariser, due)
    if made is None:
        return None
    content, sources, made_from = made
    memory = memory_of(spine, due, content, sources, {**to_json(content), MADE_FROM: made_from})

    return put(spine, due, memory, f"compress {due.id}", asked=asked)


def put(spine: Spine, due: Due, memory: Memory, cause: str, *, asked: bool = False) -> Memory | None:
    """Commit a core or sphere, and what a sphere holds for true as proposals; None if none is wanted."""

    def changes(now: DbView) -> list[Change]:
        old = now.get(due.id)
        if not _is_wanted(old, asked):
            return []
        is_new = due.kind == "sphere" and (old is None or asked)
        above = _outdated(now, due.id) if old and not old.gone else []
        return [
            replace(memory, rev=old.rev + 1 if old else 1),
            *(hypotheses(spine, now, memory) if is_new else ()),
            *above,
        ]

    return memory if spine.change(changes, cause=cause, actor=memory.actor, scope=due.scope) else None


def uncompress(spine: Spine, actor: str, id_: str) -> list[str]:
    """Remove a core or sphere and what is made of it; originals retired for it come back."""

    def changes(view: DbView) -> Iterator[Memory]:
        for memory in _with_dependents(view, id_):
            yield replace(tombstone(memory, actor), data={REMOVED: True})
            yield from revived(spine, view, memory, actor)

    done = spine.change(changes, cause=f"uncompress {id_}", actor=actor)
    return [memory.id for memory in done if memory.kind in ("core", "sphere")]


def counters(spine: Spine, scope: str) -> dict[str, Any]:
    """The seed's counters, from arithmetic; `last_update` is when the last session closed."""
    view = spine.head()
    closed = view.sessions(scope)
    last = spine.state.sessions(scope, closed, closed) if closed else []
    return {
        **compression.counters(closed, spine.policy.compression),
        "last_update": iso(last[-1].at) if last else None,
    }


def _due(spine: Spine, since: int) -> Iterator[Due]:
    view, policy = spine.head(), spine.policy.compression
    kinds = {level.kind for level in policy.levels}
    # One that changed may be wanted again, or let what is made of it be made.
    is_changed = any(spine.state.ids_changed(since, view.version, kind=kind) for kind in kinds)
    before = spine.state.at(0 if is_changed else since)
    for scope in spine.state.session_scopes():
        _must_fit(spine, view, scope)
        yield from compression.backlog(view.sessions(scope), scope, policy, after=before.sessions(scope))


def _must_fit(spine: Spine, view: DbView, scope: str) -> None:
    """Raise if the policy's table of levels is not the one that the scope's cores were made by.

    Another radix gives the same sessions other cores, and an id that is there another meaning.
    """
    for core in view.memories(Filter(kinds=("core",), scopes=(scope,), newest=True, limit=1)):
        due = compression.recognise(core.id, spine.policy.compression)
        closed = spine.state.sessions(scope, due.sessions[-1], due.sessions[-1]) if due else []
        if [row.version for row in closed] != [core.data.get(MADE_FROM)]:
            raise BadPolicy(
                f"{core.id} was made by another table of compression levels than the policy has now",
                hint="set the levels back; they stay as they are once the first core is made",
            )


def _is_wanted(old: Memory | None, asked: bool = False) -> bool:
    """Whether a core or sphere shall be made: it is not there, or it quotes what was forgotten since."""
    if old is None:
        return True
    if old.gone:
        return asked or not old.data.get(REMOVED)
    return bool(old.data.get(LOST))


def _content(
    spine: Spine, view: DbView, summariser: Summariser, due: Due
) -> tuple[Core | Sphere, tuple[str, ...], int] | None:
    """What the core or sphere says, what it is made of, and from which version."""
    if due.members:
        members = [m for name in due.members if (m := view.get(name)) and not m.gone]
        if len(members) < len(due.members):
            return None
        made_from = _version_made_from(spine, due.id) or view.version
        content = [cores.read(Core, m.data) for m in members]
        at = spine.state.commit(made_from).at
        return summariser.sphere(due, content, made_at=at), tuple(due.members), made_from
    closed = spine.state.sessions(due.scope, due.sessions[0], due.sessions[-1])
    made_from = closed[-1].version
    sessions = [_source(spine, view, row, made_from) for row in closed]
    core = summariser.core(due, sessions, made_at=closed[-1].at)
    return core, core.source_episodes, made_from


def _version_made_from(spine: Spine, id_: str) -> int | None:
    history = [m.data[MADE_FROM] for _, m in spine.state.history(id_) if MADE_FROM in m.data]
    return int(history[-1]) if history else None


def _source(spine: Spine, view: DbView, closed: Commit, version: int) -> SessionSource:
    """A session as it was, without what was forgotten, refused or erased since."""
    then, sandbox = spine.state.at(version), closed.sandbox or ""
    said = [m for m in then.memories(Filter(kinds=("episode",), sandbox=sandbox)) if counts_as_episode(m)]
    kept = [_admissible(spine, view, m) for m in said if _is_kept(view.get(m.id))]
    states = then.memories(Filter(kinds=("register",), sandbox=sandbox, category=STATE))
    times = [t.at or m.at for m in kept or said for t in m.turns] or [m.at for m in said]
    return SessionSource(
        id=sandbox,
        ordinal=closed.session or 0,
        started_at=min(times, default=closed.at),
        ended_at=max(times, default=closed.at),
        episodes=tuple(kept),
        states={m.topic or m.id: m.data for m in states},
    )


def _is_kept(now: Memory | None) -> bool:
    return now is not None and (not now.gone or bool(now.data.get(RETIRED)))


def quotes_refused(spine: Spine, view: DbView, scope: str, value: Any) -> bool:
    """Whether JSON values hold a sentence that a person refused or erased."""
    said = strings(value) if view.has_refused() else ()
    return any(_is_out(spine, view, scope, text) for whole in said for text in {whole, *split(whole)})


def _is_out(spine: Spine, view: DbView, scope: str, text: str) -> bool:
    key = spine.keyed(key_of(text))
    return view.is_redacted(key, scope) or gate.is_rejected(view, text, scope, spine.keyed)


def _admissible(spine: Spine, view: DbView, episode: Memory) -> Memory:
    """An episode without the sentences that a person refused or erased."""

    def is_out(text: str) -> bool:
        return _is_out(spine, view, episode.scope, text)

    def cleaned(turn: Turn) -> Turn:
        parts = split(turn.text)
        kept = [part for part in parts if not is_out(part)]
        return turn if len(kept) == len(parts) else replace(turn, text=" ".join(kept))

    if not view.has_refused():
        return episode
    turns = tuple(cleaned(turn) for turn in episode.turns if not is_out(turn.text))
    return replace(episode, turns=turns, text=transcript(turns))


def memory_of(
    spine: Spine, due: Due, content: Core | Sphere, sources: Iterable[str], data: Mapping[str, Any]
) -> Memory:
    """A core or sphere as a memory that has passed the gate's text checks."""
    memory = Memory(
        id=due.id,
        kind=due.kind,
        text=page_of(content),
        scope=due.scope,
        source="promotion",
        actor="system",
        at=moment(content.timestamp_end) or spine.now(),
        confidence=1.0,
        links=tuple(Link(name="part", to=source) for source in sources),
        data=data,
    )
    checked = gate.check_text(memory, spine.policy)
    return checked if isinstance(checked, Memory) else memory


def _outdated(view: DbView, id_: str) -> list[Change]:
    """What is made of a core that is made anew, marked to be made anew too."""
    return [
        replace(m, rev=m.rev + 1, actor="system", data={**m.data, LOST: [*m.data.get(LOST, ()), id_]})
        for m in _above(view, id_)
    ]


def _above(view: DbView, id_: str) -> list[Memory]:
    return [m for m in view.referring(id_) if m.kind == "sphere" and id_ in m.linked("part")]


def _with_dependents(view: DbView, id_: str) -> list[Memory]:
    memory = view.get(id_)
    if memory is None or memory.gone or memory.kind not in ("core", "sphere"):
        raise NotFound(f"there is no core or sphere {id_!r}", hint="`octavo cores` lists them")
    return [memory, *_above(view, id_)]
