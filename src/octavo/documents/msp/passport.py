"""Seed 000's own interface: master states, sandboxes, session buffers, consolidation.

A thin layer over `octavo.open(...)`: every write goes through the gate and the rules, every version is one
of the ledger's, and nothing that a caller hands in is changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Concatenate, Generic, ParamSpec, Self, TypeVar

from octavo.documents.msp import forms, saving, session_buffer
from octavo.documents.msp.forms import ConsolidatedData, Episode, LoadedSandbox, MasterState, SessionBuffer
from octavo.domain.episodes import iso
from octavo.domain.policy import Policy
from octavo.domain.verdicts import Verdict
from octavo.engine.account import Account
from octavo.engine.fields import plain_json
from octavo.engine.opening import accounts
from octavo.engine.opening import open as open_account
from octavo.engine.sandbox import Sandbox
from octavo.engine.surface import fitted, public
from octavo.errors import BadInput, NotFound

P = ParamSpec("P")
R = TypeVar("R")
_BUFFER_FIELDS = ("sandbox_id", "created_at", "parent_version", "metadata")


class _OnClass(Generic[P, R]):
    """A method that the class answers to as well, as the seed calls it: `MSP.load_master_state(…)`."""

    def __init__(self, method: Callable[Concatenate[MSP, P], R]) -> None:
        self._method = fitted(method)
        self.__doc__ = method.__doc__

    def __get__(self, msp: MSP | None, owner: type[MSP]) -> Callable[P, R]:
        return partial(self._method, owner.standing() if msp is None else msp)


@public
class MSP:
    """The Memory & Soul Passport over a folder of accounts; one instance serves any number of users.

    What the seed calls on the class itself acts on one instance, over `data` in the working folder unless
    `MSP.stand(root)` names another.
    """

    _standing: ClassVar[MSP | None] = None

    @fitted
    def __init__(
        self,
        root: str | Path = "data",
        user_id: str | None = None,
        *,
        actor: str = "human:operator",
        policy: Policy | str | Path | None = None,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._root = Path(root)
        self._user = user_id
        self._actor = actor
        self._policy = policy
        self._clock = clock
        self._last = user_id
        self._accounts: dict[str, Account] = {}
        self._sandboxes: dict[str, tuple[str, Sandbox]] = {}

    @classmethod
    def stand(cls, root: str | Path, user_id: str | None = None, **options: Any) -> MSP:
        """Make the instance that calls on the class act on, as `MSP(…)` does; the one before it is closed."""
        if cls._standing is not None:
            cls._standing.close()
        cls._standing = cls(root, user_id, **options)
        return cls._standing

    @classmethod
    def standing(cls) -> MSP:
        """The instance that calls on the class act on."""
        return cls._standing or cls.stand("data")

    @_OnClass
    def load_master_state(self, user_id: str | None = None, *, version: int | None = None) -> MasterState:
        """The newest master state (or an older version) of a user, by id or by path."""
        user = self._named(user_id)
        return saving.master_state(self.account(user), version)

    @_OnClass
    def save_master_state(self, user_id: str, state: Mapping[str, Any]) -> int:
        """Commit what differs from the version a state was made on, whole or not at all; the new version."""
        return saving.save(self.account(self._named(user_id)), state, at=self._now())

    @_OnClass
    def get_master_version(self, user_id: str | None = None) -> int:
        """The number of a user's newest version."""
        return self.account(self._named(user_id)).version

    @_OnClass
    def create_sandbox(self, user_id: str, name: str | None = None, *, strict: bool = False) -> str:
        """Open a sandbox for a user: `create_sandbox(user_id, name)`, or its name alone."""
        user = self._named(None if name is None else user_id)
        sandbox = self.account(user).sandbox(user_id if name is None else name, strict=strict)
        self._sandboxes[sandbox.id] = (user, sandbox)
        return sandbox.id

    @_OnClass
    def load_sandbox(self, sandbox_id: str) -> LoadedSandbox:
        """A sandbox with the master state it began on and its session buffer."""
        user, sandbox = self._held(sandbox_id)
        return LoadedSandbox(
            id=sandbox.id,
            user_id=user,
            name=sandbox.name,
            parent_version=sandbox.parent_version,
            master_ref=self.load_master_state(user, version=sandbox.parent_version),
            session_buffer=self.get_session_buffer(sandbox_id),
        )

    @_OnClass
    def delete_sandbox(self, sandbox_id: str) -> None:
        """Throw a sandbox and its session buffer away."""
        self._held(sandbox_id)[1].discard()
        del self._sandboxes[sandbox_id]

    @_OnClass
    def write_episode(
        self,
        sandbox_id: str,
        episode: Mapping[str, Any],
        *,
        ri_level: str | None = None,
        pulse_snapshot: Mapping[str, Any] | None = None,
    ) -> str:
        """Add an episode to the session buffer; returns the id it will keep."""
        _, sandbox = self._held(sandbox_id)
        told = Episode.of(episode)
        pulse = told.get("pulse_snapshot") if pulse_snapshot is None else pulse_snapshot
        if pulse is not None:
            told["msp_metadata"] = {
                **(told.get("msp_metadata") or {}),
                "written_by": "MSP",
                "session_id": sandbox_id,
                "written_at": iso(self._now()),
                "pulse_snapshot": plain_json(pulse),
            }
        return sandbox.write_episode(told, ri_level=ri_level)

    @_OnClass
    def update_state(self, sandbox_id: str, state_name: str, state_data: Mapping[str, Any]) -> Verdict:
        """Set a state in the session buffer; the latest wins."""
        return self._held(sandbox_id)[1].update_state(state_name, state_data)

    @_OnClass
    def write_to_session_buffer(self, sandbox_id: str, buffer: Mapping[str, Any]) -> list[Verdict]:
        """Add an `episode`, `state_updates` and any other part of a buffer document, in either spelling."""
        _, sandbox = self._held(sandbox_id)
        document = forms.buffer_named(buffer)
        unknown = [key for key in document if key not in (*forms.BUFFER, *_BUFFER_FIELDS)]
        if unknown:
            hint = f"use episode, {', '.join(forms.BUFFER)}"
            raise BadInput(f"a session buffer has no place for {unknown}", hint=hint)
        document["new_episodes"] = [Episode.of(value) for value in document.get("new_episodes", [])]
        say = partial(self.write_episode, sandbox_id)
        return [verdict for _, verdict in session_buffer.write(sandbox, document, now=self._now(), say=say)]

    @_OnClass
    def get_session_buffer(self, sandbox_id: str) -> SessionBuffer:
        """The session buffer as the schema writes it."""
        return SessionBuffer(session_buffer.document(self._held(sandbox_id)[1].buffer))

    load_session_buffer = get_session_buffer  # as step 4 of the seed calls it

    @_OnClass
    def delete_session_buffer(self, sandbox_id: str) -> None:
        """Throw a session buffer away; one that a consolidation has taken is gone already."""
        if self._held(sandbox_id)[1].result is None:
            self.delete_sandbox(sandbox_id)

    @_OnClass
    def consolidate_session(self, sandbox_id: str) -> MasterState:
        """Apply the rules, commit, and return the new master state; again returns the same one.

        What was merged, refused or in conflict is its `consolidation`.
        """
        user, sandbox = self._held(sandbox_id)
        result = sandbox.consolidate()
        state = self.load_master_state(user, version=result.version)
        state.consolidation = result
        return state

    @_OnClass
    def apply_consolidation_rules(
        self, buffer: Mapping[str, Any], master: Mapping[str, Any]
    ) -> ConsolidatedData:
        """What the rules let through of a buffer on top of a master state; nothing is written."""
        policy = self.account().policy if self._last else Policy()
        return session_buffer.rehearse(buffer, master, policy=policy, actor=self._actor, clock=self._now)

    @staticmethod
    def merge(parts: Mapping[str, Any]) -> MasterState:
        """A master state from its parts, under the seed's short names or the schema's."""
        named = forms.master_named(parts)
        version = named.get("version")
        base = version - 1 if isinstance(version, int) and not isinstance(version, bool) else None
        return MasterState.on(base, named)

    @_OnClass
    def merge_into_master(self, master: Mapping[str, Any], consolidated: Mapping[str, Any]) -> MasterState:
        """The master state that consolidated data lead to, one version on; not saved yet."""
        return session_buffer.merge(master, consolidated, now=self._now())

    update_core = staticmethod(session_buffer.update_core)

    @staticmethod
    def update_states(states: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
        """The states with the latest of each."""
        return dict(plain_json({**states, **changes}))

    def account(self, user_id: str | None = None) -> Account:
        """The account below, for everything that the seed has no word for."""
        user = self._named(user_id)
        if user not in self._accounts:
            self._accounts[user] = open_account(
                self._root, user, actor=self._actor, policy=self._policy, clock=self._clock
            )
        return self._accounts[user]

    def close(self) -> None:
        """Let go of every sandbox and account; sandboxes stay and can be loaded again."""
        for _, sandbox in self._sandboxes.values():
            sandbox.close()
        for account in self._accounts.values():
            account.close()
        self._sandboxes.clear()
        self._accounts.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def _held(self, sandbox_id: str) -> tuple[str, Sandbox]:
        """A sandbox of any user, taken up again if this instance does not hold it."""
        there = accounts(self._root) if self._root.is_dir() else []
        for user in there if sandbox_id not in self._sandboxes else ():
            with suppress(NotFound):
                self._sandboxes[sandbox_id] = (user, self.account(user).resume(sandbox_id))
                break
        if sandbox_id not in self._sandboxes:
            raise NotFound(f"there is no sandbox {sandbox_id!r}", hint="create one with create_sandbox")
        return self._sandboxes[sandbox_id]

    def _named(self, user: str | None) -> str:
        """The user that an id, a path such as `account/User01/core/`, or nothing stands for."""
        if user is None:
            if self._last is None:
                raise BadInput("which user?", hint="name one, or make the MSP with user_id=…")
            return self._last
        self._last = self._user or _user_of(user)
        return _user_of(user)

    def _now(self) -> datetime:
        return (self._clock or (lambda: datetime.now(UTC)))().astimezone(UTC)


def create_sandbox(user_id: str, name: str | None = None) -> str:
    """Open a sandbox, as the seed's flow calls it: by its name alone, for the user last named."""
    return MSP.create_sandbox(user_id, name)


def _user_of(path: str) -> str:
    """The user in `account/User01/core/`, or the id itself."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    at = next((n for n, part in enumerate(parts[:-1]) if part in forms.FOLDERS), None)
    if at is not None:
        return parts[at + 1]
    return parts[-2] if len(parts) > 1 and parts[-1] == "core" else path
