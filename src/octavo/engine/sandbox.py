"""A sandbox: a private workspace on a parent version, durable from its first word."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from types import TracebackType
from typing import Any, Self

from octavo.domain import buffer as entries
from octavo.domain import gate, rules
from octavo.domain.buffer import Forgot, Opened, Revised, SessionBuffer, SetState, Spoke, Used, Wrote
from octavo.domain.memory import SHARED, Turn, check_id, check_time, check_unit, check_words
from octavo.domain.outcomes import Setting
from octavo.domain.state import State, View
from octavo.domain.verdicts import Consolidation, Verdict, summarise
from octavo.engine.reading import Reader
from octavo.engine.recall import Recaller
from octavo.engine.spine import Plan, Spine
from octavo.engine.writing import Feeling, Writer, feeling, plain_json
from octavo.errors import BadInput, Immutable, NotFound, OctavoError, Refused, SandboxClosed, VersionConflict
from octavo.storage.buffers import Buffer
from octavo.storage.state_view import DbView


@dataclass(frozen=True, slots=True, kw_only=True)
class Afterwards:
    """What a sandbox shares with its account: how to recall, and what to do when it is consolidated."""

    closed: Callable[[Consolidation], None]
    recaller: Callable[[], Recaller] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SandboxInfo:
    """An open sandbox as listed; nothing removes it but its owner."""

    id: str
    name: str
    scope: str
    parent_version: int
    actor: str
    started_at: datetime
    age: timedelta
    lines: int
    is_sealed: bool


class Sandbox(Reader):
    """One conversation's workspace: it reads its parent version and its own writes, nobody else's.

    One owner, one thread. As a context manager it consolidates on leaving, and stays on an exception.
    """

    def __init__(
        self,
        spine: Spine,
        buffer: Buffer | None,
        opened: Opened,
        result: Consolidation | None,
        shared: Afterwards | None = None,
    ) -> None:
        super().__init__(spine, opened.scope, shared.recaller if shared else None)
        self.id = opened.sandbox
        self.name = opened.name
        self.parent_version = opened.parent
        self.result = result
        self._opened = opened
        self._buffer = buffer
        self._shared = shared
        self._writer = Writer(
            spine=spine,
            actor=opened.actor,
            scope=opened.scope,
            sandbox=opened.sandbox,
            visible=frozenset({SHARED, opened.scope}),
        )
        self._overlay: State | None = None
        self._open = entries.open_episode(buffer.entries()) if buffer else None

    @property
    def buffer(self) -> SessionBuffer:
        """What has been written so far."""
        return self._held().read()

    def turn(
        self,
        role: str,
        text: str,
        *,
        at: datetime | None = None,
        salience: float | None = None,
        emotion: Feeling = None,
        data: Mapping[str, Any] | None = None,
    ) -> str:
        """Add what one speaker said and return the id of its episode; on return it is durable."""
        if not isinstance(role, str) or not role.strip() or len(role) > 100:
            raise BadInput(f"role {role!r} cannot be used", hint="name the speaker: user, assistant, Alice …")
        if not isinstance(text, str) or not text.strip():
            raise BadInput("a turn needs a text", hint="leave out turns in which nothing was said")
        turn = Turn(
            speaker=check_words(role.strip(), "role"),
            text=check_words(text),
            at=self._spine.now() if at is None else check_time(at),
            salience=None if salience is None else check_unit(salience, "salience"),
            emotion=feeling(emotion),
            data=plain_json(dict(data)) if data else {},
        )
        held = self._held()
        id_ = self._open[0] if self._open else self._spine.new_id()
        self._make_room(0 if self._open else 1)
        spoke = Spoke(episode=id_, turn=self._checked(id_, turn))
        held.append(spoke)
        self._open = entries.after_turn(self._open, spoke)
        self._overlay = None
        return id_

    def _checked(self, episode: str, turn: Turn) -> Turn:
        """The turn after the text checks, masked where it must be, or Refused."""
        if gate.is_plain(turn, self._spine.policy):
            return turn
        shaped = entries.episode(episode, [turn], self._opened)
        outcome = gate.check_text(shaped, self._spine.policy)
        if isinstance(outcome, gate.Stop):
            self._writer.refused(shaped, outcome)
            raise Refused(f"the turn was refused by {outcome.check}: {outcome.detail}", hint=outcome.advice)
        return outcome.turns[0]

    def write_episode(
        self, episode: Mapping[str, Any] | None = None, /, *, ri_level: str | None = None, **fields: Any
    ) -> str:
        """Add a whole episode in the documents' form (turn_1, turn_2, RI_global …); returns its id."""
        given = {**(episode or {}), **fields}
        level = ri_level or given.get("ri_level")
        wrote = self._writer.episode(given, level=level)
        self._make_room(1)
        if self._fresh_state().get(wrote.memory.id) is not None:
            raise Immutable(f"episode {wrote.memory.id} is already there and never changes")
        outcome = self._writer.checked(wrote)
        if isinstance(outcome, Verdict):
            raise Refused(
                f"the episode was refused by {outcome.check}: {outcome.detail}", hint=outcome.advice
            )
        self._append(outcome)
        return outcome.memory.id

    def remember(self, text: str, **fields: Any) -> Verdict:
        """Add a candidate; the verdict is advisory, the final one is in the consolidation."""
        wrote = self._writer.candidate(text, **fields)
        outcome = self._writer.checked(wrote)
        return outcome if isinstance(outcome, Verdict) else self._append(outcome)

    def update_state(self, name: str, data: Mapping[str, Any], *, patch: bool = False) -> Verdict:
        """Replace a named state, or merge into it by RFC 7396."""
        return self._append(self._writer.state(name, data, patch=patch))

    def revise(self, id_: str, **changes: Any) -> Verdict:
        """Ask for new values of some fields of a memory."""
        outcome = self._writer.revision(self.get(id_), id_, changes)
        return outcome if isinstance(outcome, Verdict) else self._append(outcome)

    def forget(self, id_: str) -> Verdict:
        """Ask for a memory to end."""
        return self._append(Forgot(memory=check_id(id_), at=self._spine.now()))

    def use(self, id_: str, feedback: float = 0.0) -> None:
        """Note that a memory was used, and how well it served (-1..1)."""
        if not -1 <= feedback <= 1:
            raise BadInput(f"feedback {feedback!r} is not between -1 and 1")
        self._held().append(Used(memories=(check_id(id_),), feedback=float(feedback)))

    def consolidate(self) -> Consolidation:
        """Apply the rules and commit, all or nothing; a second call returns the same result."""
        if self.result is not None:
            return self.result
        held = self._held()
        if not held.read().is_sealed:
            held.append(entries.Sealed(at=self._spine.now()))
        try:
            self._commit(held.read())
        except OctavoError:
            held.append(entries.Reopened(at=self._spine.now()))
            raise
        self.result = self._committed() or Consolidation(version=self._spine.head().version)
        held.delete()
        self._buffer = None
        if self._shared is not None:
            self._shared.closed(self.result)
        return self.result

    def discard(self) -> None:
        """Throw the sandbox away; the account is as if it had never been."""
        held = self._held()
        held.append(entries.Discarded(at=self._spine.now()))
        held.delete()
        self._buffer = None

    def close(self) -> None:
        """Let go of the sandbox without consolidating; it can be resumed."""
        if self._buffer is not None:
            self._buffer.close()
            self._buffer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._buffer is not None:
            self.consolidate()
        self.close()

    def _commit(self, buffer: SessionBuffer) -> None:
        def decide(view: DbView) -> Plan | None:
            done = max((last for _, last, _ in self._spine.state.commits_of(self.id)), default=0)
            wanted = entries.candidates(entries.beyond(buffer, done))
            if not wanted:
                return None
            if self._opened.strict and view.version != self.parent_version:
                raise VersionConflict(
                    f"sandbox {self.id!r} began on version {self.parent_version}, "
                    f"the account is at {view.version}",
                    hint="look at the difference, then resume it without strict, or discard it",
                )
            parent = self._spine.state.at(self.parent_version)
            state, _ = rules.consolidate(view, wanted, self._setting(parent=parent))
            counted = rules.episodes_in(state.changes)
            return Plan(
                changes=state.changes,
                cause="consolidate",
                actor=self._opened.actor,
                scope=self._opened.scope,
                session=view.sessions(self._opened.scope) + 1 if counted else None,
                sandbox=self.id,
                last_line=buffer.last_line,
            )

        self._spine.commit(decide)

    def _committed(self) -> Consolidation | None:
        return committed(self._spine, self.id)

    def _append(self, entry: Wrote | SetState | Revised | Forgot) -> Verdict:
        """Make an entry durable, then say what it would become on what the sandbox sees."""
        state = self._fresh_state()
        self._held().append(entry)
        after, verdicts = rules.consolidate(state, [entry], self._setting())
        for change in after.changes:
            state.apply(change)
        return verdicts[-1]

    def _make_room(self, more: int) -> None:
        limit = self._spine.policy.sandbox.max_episodes
        if limit is None or not more:
            return
        held = sum(
            1 for w in entries.candidates(self.buffer) if isinstance(w, Wrote) and w.memory.kind == "episode"
        )
        if held + more > limit:
            raise Refused(
                f"sandbox {self.name!r} holds {held} episodes, the limit is {limit}",
                hint="consolidate this sandbox and open the next one",
            )

    def _setting(self, parent: View | None = None) -> Setting:
        return self._writer.setting(parent=parent)

    def _fresh_state(self) -> State:
        """The parent version with the sandbox's own writes on top."""
        if self._overlay is None:
            wanted = entries.candidates(self._held().read())
            self._overlay, _ = rules.consolidate(self._base(), wanted, self._setting())
        return self._overlay

    def _base(self) -> DbView:
        return self._spine.state.at(self.parent_version)

    def _view(self, base: DbView | None = None) -> View:
        return (base or self._base()) if self._buffer is None else self._fresh_state()

    def _held(self) -> Buffer:
        if self._buffer is None:
            raise SandboxClosed(f"sandbox {self.name!r} ({self.id}) is closed")
        return self._buffer


def committed(spine: Spine, sandbox: str) -> Consolidation | None:
    """What a sandbox's consolidation did, read from its version; None if it never committed."""
    spine.head()
    found = spine.state.commits_of(sandbox)
    if not found:
        return None
    version, _, session = found[-1]
    return summarise(version, spine.state.changes_in(version), session)


def resume(spine: Spine, sandbox: str, shared: Afterwards | None = None) -> Sandbox:
    """Take up a sandbox again after a crash or a restart; a finished one comes back with its result."""
    check_id(sandbox, "sandbox")
    try:
        held = Buffer.resume(spine.store, sandbox)
    except NotFound:
        result = committed(spine, sandbox)
        if result is None:
            raise
        return Sandbox(spine, None, _ghost(spine, sandbox), result)
    try:
        return _resumed(spine, held, shared)
    except BaseException:
        held.close()
        raise


def _resumed(spine: Spine, held: Buffer, shared: Afterwards | None) -> Sandbox:
    found = held.read()
    if found.is_discarded:
        held.delete()
        raise SandboxClosed(f"sandbox {held.sandbox!r} was discarded")
    spine.head()
    done = max((last for _, last, _ in spine.state.commits_of(held.sandbox)), default=-1)
    if done >= found.last_line:
        spine.settle(spine.state.watermark()[0])
        held.delete()
        return Sandbox(spine, None, found.opened, committed(spine, held.sandbox))
    if found.is_sealed:
        held.append(entries.Reopened(at=spine.now()))
    return Sandbox(spine, held, found.opened, None, shared)


def _ghost(spine: Spine, sandbox: str) -> Opened:
    """What the ledger still says of a sandbox whose buffer is gone."""
    version, _, _ = spine.state.commits_of(sandbox)[-1]
    commit = spine.state.commit(version)
    return Opened(
        sandbox=sandbox,
        name=sandbox,
        scope=commit.scope or "shared",
        parent=version - 1,
        actor=commit.actor,
        at=commit.at,
    )


def listed(buffers: Sequence[SessionBuffer], now: datetime) -> list[SandboxInfo]:
    """Open sandboxes, oldest first."""
    return [
        SandboxInfo(
            id=b.opened.sandbox,
            name=b.opened.name,
            scope=b.opened.scope,
            parent_version=b.opened.parent,
            actor=b.opened.actor,
            started_at=b.opened.at,
            age=now - b.opened.at,
            lines=len(b.entries),
            is_sealed=b.is_sealed,
        )
        for b in sorted(buffers, key=lambda b: b.opened.at)
        if not b.is_discarded
    ]
