"""A sandbox: a private workspace on a parent version, durable from its first word."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from types import TracebackType
from typing import Annotated, Any, Self, Unpack

from msgspec import Meta
from msgspec.structs import replace

from octavo.domain import buffer as entries
from octavo.domain import gate, rules, screening
from octavo.domain.buffer import Forgot, Opened, Revised, SessionBuffer, SetState, Spoke, Used, Wrote
from octavo.domain.hits import Hits
from octavo.domain.memory import SHARED, Memory, Turn, check_id, check_time
from octavo.domain.state import Pending, View
from octavo.domain.verdicts import Consolidation, Verdict, summarise
from octavo.engine.fields import (
    OPTION,
    Changes,
    Data,
    Felt,
    Fields,
    MemoryId,
    Name,
    Salience,
    feeling,
    plain_json,
)
from octavo.engine.reading import Reader
from octavo.engine.recall import Recaller
from octavo.engine.spine import Spine
from octavo.engine.surface import public
from octavo.engine.writing import Writer
from octavo.errors import BadInput, Immutable, OctavoError, Refused, SandboxClosed, VersionConflict
from octavo.storage.buffers import Buffer
from octavo.storage.ledger import Version
from octavo.storage.state_view import DbView


@public
class Sandbox(Reader):
    """One conversation's workspace: it reads its parent version and its own writes, nobody else's.

    One owner, one thread. As a context manager it consolidates on leaving, and stays on an exception.
    """

    def __init__(
        self,
        writer: Writer,
        buffer: Buffer | None,
        opened: Opened,
        result: Consolidation | None,
        closed: Callable[[Consolidation], None],
        recaller: Callable[[], Recaller],
    ) -> None:
        """Hold a buffer for who writes; `closed` is called when it was consolidated."""
        super().__init__(writer.spine, opened.scope, recaller, opened.parent)
        self.id = opened.sandbox
        self.name = opened.name
        self.parent_version = opened.parent
        self.result = result
        self._opened = opened
        self._buffer = buffer
        self._actor = writer.actor
        self._closed = closed
        own = {"scope": opened.scope, "sandbox": opened.sandbox, "visible": frozenset({SHARED, opened.scope})}
        self._writer = replace(writer, **own, guard=None)
        self._overlay: Pending | None = None
        self._recalled: list[str] = []  # what was recalled, until the buffer takes it with what was written
        self._open = entries.open_episode(buffer.entries()) if buffer else None

    def __repr__(self) -> str:
        return f"Sandbox({self.name[:40]!r}, {self.id!r}, {'open' if self.is_open else 'closed'})"

    @property
    def is_open(self) -> bool:
        """Whether this owner can still write to it."""
        return self._buffer is not None

    @property
    def buffer(self) -> SessionBuffer:
        """What has been written so far."""
        return self._held().read()

    def turn(
        self,
        role: Annotated[Name, "Who spoke: user, assistant, or any name."],
        text: Annotated[str, "What was said; - reads standard input."],
        *,
        at: Annotated[datetime | None, "When it happened (now if not said)."] = None,
        salience: Salience | None = None,
        emotion: Felt = None,
        data: Data | None = None,
    ) -> str:
        """Add what one speaker said, durable on return; returns the id of its episode."""
        turn = Turn(
            speaker=role.strip(),
            text=text,
            at=self._spine.now() if at is None else check_time(at),
            salience=None if salience is None else float(salience),
            emotion=feeling(emotion),
            data=plain_json(data) if data else {},
        )
        held = self._held()
        id_ = self._open[0] if self._open else self._spine.new_id()
        if not self._open:
            self._make_room()
        spoke = Spoke(episode=id_, turn=self._checked(id_, turn), actor=self._signature)
        held.append(spoke)  # besides the turn, which is checked, it holds names that were when it opened
        self._open = entries.after_turn(self._open, spoke)
        self._overlay = None
        return id_

    def _checked(self, episode: str, turn: Turn) -> Turn:
        """The turn after the text checks, masked where it must be, or Refused."""
        if gate.is_plain(turn, self._spine.policy):
            return turn
        if not gate.is_visible(turn.text):
            raise BadInput("a turn needs a text", hint="leave out turns in which nothing was said")
        shaped = entries.episode(episode, [turn], self._opened)
        outcome = gate.check_text(shaped, self._spine.policy)
        if isinstance(outcome, Verdict):
            self._writer.refused(shaped, outcome)
            raise Refused(f"the turn was refused by {outcome.check}: {outcome.detail}", hint=outcome.advice)
        return outcome.turns[0]

    def write_episode(
        self,
        episode: Annotated[Mapping[str, Any], "A JSON object (turn_1, turn_2 …), its file, or -."],
        *,
        ri_level: Annotated[str | None, "Its write level, if the policy has them."] = None,
    ) -> str:
        """Add a whole episode in the documents' form (turn_1, turn_2, RI_global …); returns its id."""
        wrote = self._writer.episode(episode, level=ri_level or episode.get("ri_level"))
        self._make_room()
        if self._fresh_state().get(wrote.memory.id) is not None:
            raise Immutable(f"episode {wrote.memory.id} is already there and never changes")
        outcome = self._writer.checked(wrote)
        if isinstance(outcome, Verdict):
            raise Refused(
                f"the episode was refused by {outcome.check}: {outcome.detail}", hint=outcome.advice
            )
        self._append(outcome)
        return outcome.memory.id

    def remember(self, text: str, **fields: Unpack[Fields]) -> Verdict:
        """Add a candidate (`fields.Fields`); the verdict is advisory, the consolidation has the final one."""
        outcome = self._writer.checked(self._writer.candidate(text, **fields))
        return outcome if isinstance(outcome, Verdict) else self._append(outcome)

    def update_state(
        self,
        name: Annotated[str, "The state's name."],
        data: Annotated[Mapping[str, Any], "A JSON object, its file, or -."],
        *,
        patch: Annotated[bool, "Merge into what is there instead of replacing it."] = False,
    ) -> Verdict:
        """Replace a named state, or patch it by RFC 7396."""
        return self._append(self._writer.state(name, data, patch=patch))

    def revise(self, id_: str, *, override: str | None = None, **changes: Unpack[Changes]) -> Verdict:
        """Ask for new values of some fields of a memory (`fields.Changes`)."""
        outcome = self._writer.revision(self.get(id_), id_, override, **changes)
        return outcome if isinstance(outcome, Verdict) else self._append(outcome)

    def forget(self, id_: str) -> Verdict:
        """Ask for a memory to end."""
        return self._append(self._writer.end(id_))

    def use(
        self, id_: MemoryId, feedback: Annotated[float, Meta(ge=-1, le=1), OPTION, "From -1 to 1."] = 0.0
    ) -> None:
        """Note that a memory was used, and how well it served."""
        used = Used(memories=(check_id(id_),), feedback=float(feedback), actor=self._signature)
        self._held().append(screening.screened(used, self._spine.policy.privacy))

    def consolidate(self) -> Consolidation:
        """Turn a sandbox into the next version, all or nothing; a second call returns the same result."""
        if self.result is not None:
            return self.result
        held = self._held()
        if not held.read().is_sealed:
            self._keep_uses(held)
            held.append(entries.Sealed(at=self._spine.now()))
        try:
            version = self._commit(held.read())
        except OctavoError:
            held.append(entries.Reopened(at=self._spine.now()))
            raise
        if version is None:
            done = committed(self._spine, self.id) or Consolidation(version=self._spine.head().version)
        else:
            done = summarise(version.header.version, version.changes(), version.header.session)
        self.result = done
        held.delete()
        self._buffer = None
        self._closed(done)
        return done

    def discard(self) -> None:
        """Throw the sandbox away; the account is as if it had never been."""
        held = self._held()
        held.append(entries.Discarded(at=self._spine.now()))
        held.delete()
        self._buffer = None

    def close(self) -> None:
        """Let go of the sandbox without consolidating; it can be resumed."""
        if self._buffer is not None:
            if not self._buffer.read().is_sealed:
                self._keep_uses(self._buffer)
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

    def _note_uses(self, hits: Hits) -> None:
        """Remember what was recalled; a recall makes nothing durable, or it would be as slow as a write."""
        if self._buffer is not None:
            lifting = dict.fromkeys(hit.assembly for hit in hits if hit.assembly)
            self._recalled += [*dict.fromkeys(hit.memory.id for hit in hits), *lifting]

    def _keep_uses(self, held: Buffer) -> None:
        """Let the buffer take what was recalled, in one line; where nothing was written it stays empty."""
        if self._recalled and held.read().entries:
            held.append(Used(memories=tuple(self._recalled), actor=self._signature))
        self._recalled = []

    def _commit(self, buffer: SessionBuffer) -> Version | None:
        def act(pending: Pending, view: DbView) -> None:
            done = max((last for _, last, _ in self._spine.state.commits_of(self.id)), default=0)
            candidates = entries.candidates(buffer, after=done)
            if candidates and self._opened.strict and view.version != self.parent_version:
                raise VersionConflict(
                    f"sandbox {self.id!r} began on version {self.parent_version}, "
                    f"the account is at {view.version}",
                    hint="look at the difference, then resume it without strict, or discard it",
                )
            view.expect([wrote.memory for wrote in candidates if isinstance(wrote, Wrote)])
            rules.consolidate(pending, candidates, self._writer.context(parent=self._base()))
            new = (c for c in pending.changes if isinstance(c, Memory) and c.rev == 1 and not c.gone)
            if any(map(rules.counts_as_episode, new)):
                pending.session = view.sessions(self._opened.scope) + 1

        _, version = self._spine.commit(
            act,
            cause="consolidate",
            actor=self._actor,
            scope=self._opened.scope,
            sandbox=self.id,
            last_line=buffer.last_line,
        )
        return version

    def _append(self, entry: Wrote | SetState | Revised | Forgot) -> Verdict:
        """Make an entry durable, then say what it would become on what the sandbox sees."""
        state = self._fresh_state()
        entry = screening.screened(entry, self._spine.policy.privacy)
        self._held().append(entry)
        return rules.consolidate(state, [entry], self._writer.context())[-1]

    @property
    def _signature(self) -> str | None:
        """Whose entry it is, if not the opener's."""
        return None if self._actor == self._opened.actor else self._actor

    def _make_room(self) -> None:
        limit = self._spine.policy.sandbox.max_episodes
        if limit is None:
            return
        held = sum(
            1 for w in entries.candidates(self.buffer) if isinstance(w, Wrote) and w.memory.kind == "episode"
        )
        if held >= limit:
            raise Refused(
                f"sandbox {self.name!r} holds {held} episodes, the limit is {limit}",
                hint="consolidate this sandbox and open the next one",
            )

    def _fresh_state(self) -> Pending:
        """The parent version with the sandbox's own writes on top."""
        if self._overlay is None:
            wanted = entries.candidates(self._held().read())
            self._overlay = Pending(self._base())
            rules.consolidate(self._overlay, wanted, self._writer.context())
        return self._overlay

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
