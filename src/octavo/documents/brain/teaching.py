"""Teaching by showing: the dialogue of the seed, behaviours as learned skills, invoked under the rules."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from octavo.documents.brain import intents, permissions
from octavo.documents.brain.memory import GUARDRAILS, FilesystemMemory
from octavo.documents.brain.permissions import Denial
from octavo.domain import mirror
from octavo.domain.memory import Memory
from octavo.domain.mirror_places import BEHAVIOR
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, SandboxBusy

Executor = Callable[[str], object]
_SHOWN = 5
_SANDBOX = "teach "
_NOT_RECORDING = "Not currently recording."


class Reply(Struct, frozen=True, kw_only=True):
    """What the robot answers, the intent it understood, what it did, and the denial that stopped it."""

    text: str
    intent: intents.IntentKind
    actions: tuple[str, ...] = ()
    denial: Denial | None = None


class Behavior(Struct, frozen=True, kw_only=True):
    """A taught sequence of actions, as behaviors.json holds it."""

    name: str
    actions: tuple[str, ...]
    created_at: str
    description: str = ""
    times_invoked: int = 0


class Teaching:
    """One robot's teacher: what is being shown is durable action by action, and survives any end."""

    def __init__(self, memory: FilesystemMemory, executor: Executor | None = None) -> None:
        self._memory, self._account = memory, memory.account
        self._executor = executor
        self._recording: Sandbox | None = self._resumed()

    @property
    def recording(self) -> str | None:
        """The behaviour that is being taught, or None."""
        return self._recording.name.removeprefix(_SANDBOX) if self._recording else None

    def say(self, line: str) -> Reply:
        """One line of the dialogue, answered as the seed writes it."""
        known = behaviors_of(self._account)
        intent, what = intents.understand(line, known)
        match intent:
            case "START_TEACHING":
                text = self._start(what)
            case "DONE":
                text = self._done()
            case "CANCEL":
                text = f"Cancelled recording '{self.recording}'." if self._recording else _NOT_RECORDING
                self._drop()
            case "LIST":
                text = f"I know: {', '.join(known)}." if known else "I know no behaviors yet."
            case "FORGET":
                text = self._forget(what)
            case "DESCRIBE" if what in known:
                told = known[what]
                text = f"'{what}': {' -> '.join(told.actions)} (invoked {told.times_invoked} times)"
            case "MOVE" | "SPEED":
                return self._act(intent, what)
            case "INVOKE" if what in known:
                return self.invoke(what)
            case _:
                text = self._unknown(what)
        return Reply(text=text, intent=intent)

    def invoke(self, name: str, executor: Executor | None = None) -> Reply:
        """Do a behaviour action by action, each first checked against the approved rules."""
        skill, act = self._skills().get(name), executor or self._executor
        if skill is None:
            return Reply(text=self._unknown(name), intent="INVOKE")
        if act is None:
            raise BadInput(f"nobody can perform {name!r}", hint="hand in an executor")
        actions = tuple(mirror.behavior_of(skill, 0)["actions"])
        for place, action in enumerate(actions):
            if (denial := self._denied(action, place)) is not None:
                text = f"Stopped '{name}' after {place} actions: {denial.detail}."
                return Reply(text=text, intent="INVOKE", actions=actions[:place], denial=denial)
            act(action)
        self._memory.use([skill.id])
        return Reply(text=f"Completed '{name}' ({len(actions)} actions)", intent="INVOKE", actions=actions)

    def close(self) -> None:
        """Let go; a recording under way stays and is taken up again by the next teacher."""
        if self._recording is not None:
            self._recording.close()
            self._recording = None

    def _start(self, name: str) -> str:
        if self._recording is not None:
            return f"Already recording '{self.recording}'. Say 'done' first."
        if not name or any(ord(c) < 32 for c in name):
            raise BadInput(f"{name!r} names no behavior", hint="teach <name>")
        self._recording = self._account.sandbox(f"{_SANDBOX}{name}")
        return f"Ready to learn '{name}'. Show me what to do."

    def _done(self) -> str:
        """End the recording; what was shown becomes a learned skill in the same commit."""
        if self._recording is None:
            return _NOT_RECORDING
        name, actions = self.recording or "", self._shown(self._recording)
        if not actions:
            self._drop()
            return "Nothing recorded. Cancelled."
        sandbox, self._recording = self._recording, None
        self._memory.save_behavior(name, actions, within=sandbox)
        sandbox.consolidate()
        shown = " -> ".join(actions[:_SHOWN])
        more = f" ... ({len(actions)} total)" if len(actions) > _SHOWN else ""
        return f"Learned '{name}': {shown}{more}"

    def _forget(self, name: str) -> str:
        """End a behaviour, or all of them; their history stays."""
        skills = self._skills()
        if name != "all" and name not in skills:
            return self._unknown(name)
        doomed = list(skills.values()) if name == "all" else [skills[name]]
        if doomed:
            self._account.forget(*(skill.id for skill in doomed))
        return f"Forgot {len(doomed)} behaviors." if name == "all" else f"Forgot '{name}'."

    def _act(self, intent: intents.IntentKind, action: str) -> Reply:
        """Do one action; while a behaviour is taught it is kept, durable on return."""
        if (denial := self._denied(action, 0)) is not None:
            return Reply(text=f"SANDBOX DENIED: {denial.detail}.", intent=intent, denial=denial)
        if self._executor is not None:
            self._executor(action)
        if self._recording is not None:
            place = len(self._shown(self._recording))
            data = {"event_type": "action", "recorded": action, "place": place}
            self._recording.remember(f"shown: {action}", kind="episode", category="event", data=data)
        return Reply(text=f"Did {action}.", intent=intent, actions=(action,))

    def _denied(self, action: str, place: int) -> Denial | None:
        """The denial of an action, written to the audit log; only approved rules count."""
        rules = [self._memory.procedure(name) for name in (GUARDRAILS, "sandbox_rules")]
        denial = permissions.check(action, place, *rules)
        if denial is not None:
            payload = {"action": action, "rule": denial.rule, "detail": denial.detail, "sandbox_denied": True}
            self._memory.log_event({"event_type": "sandbox_denied", "payload": payload})
        return denial

    def _resumed(self) -> Sandbox | None:
        """A recording that an earlier process left behind."""
        for info in self._account.sandboxes():
            if info.name.startswith(_SANDBOX):
                try:
                    return self._account.resume(info.id)
                except SandboxBusy:
                    continue  # another teacher is at it
        return None

    def _shown(self, recording: Sandbox) -> list[str]:
        events = recording.memories(kind="episode", from_sandbox=recording.id)
        shown = [event.data for event in events if "recorded" in event.data]
        return [str(data["recorded"]) for data in sorted(shown, key=lambda data: data["place"])]

    def _drop(self) -> None:
        if self._recording is not None:
            self._recording.discard()
            self._recording = None

    def _skills(self) -> dict[str, Memory]:
        skills = self._account.memories(kind="skill", category=BEHAVIOR)
        return {mirror.name_of(skill): skill for skill in skills}

    def _unknown(self, name: str) -> str:
        near = [known for known in self._skills() if name and known.startswith(name)]
        return f"I don't know '{name}'. " + (f"Did you mean '{near[0]}'?" if near else "Teach me first.")


def behaviors_of(account: Account) -> dict[str, Behavior]:
    """The behaviours of an account by name; how often one was invoked is counted in uses, not written."""
    skills = account.memories(kind="skill", category=BEHAVIOR)
    uses = account.uses(*(skill.id for skill in skills))
    told = (mirror.behavior_of(skill, uses.get(skill.id, 0)) for skill in skills)
    return {one["name"]: msgspec.convert(one, Behavior) for one in told}
