"""Teaching by showing: the dialogue of the seed, behaviours as learned skills, invoked under the rules."""

from __future__ import annotations

from collections.abc import Callable

import msgspec
from msgspec import Struct

from octavo.documents.brain import intents, permissions
from octavo.documents.brain.memory import BEHAVIOR, FilesystemMemory
from octavo.documents.brain.permissions import Denial
from octavo.domain import mirror
from octavo.domain.memory import Memory
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, SandboxBusy

Executor = Callable[[str], object]
_SHOWN = 5
_SANDBOX = "teach "


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
        known = self.behaviors()
        intent, what = intents.understand(line, known)
        match intent:
            case "START_TEACHING":
                text = self.start(what)
            case "DONE":
                text = self.done()
            case "CANCEL":
                text = self.cancel()
            case "LIST":
                text = f"I know: {', '.join(known)}." if known else "I know no behaviors yet."
            case "FORGET":
                text = self.forget_all() if what == "all" else self.forget(what)
            case "DESCRIBE":
                text = self.describe(what)
            case "MOVE" | "SPEED":
                return self._act(intent, what)
            case _:
                return self.invoke(what, intent=intent)
        return Reply(text=text, intent=intent)

    def start(self, name: str) -> str:
        """Begin to record a behaviour."""
        if self._recording is not None:
            return f"Already recording '{self.recording}'. Say 'done' first."
        if not name or any(ord(c) < 32 for c in name):
            raise BadInput(f"{name!r} names no behavior", hint="teach <name>")
        self._recording = self._account.sandbox(f"{_SANDBOX}{name}")
        return f"Ready to learn '{name}'. Show me what to do."

    def record(self, action: str) -> None:
        """Keep one shown action; on return it is durable."""
        if self._recording is None:
            raise BadInput("nothing is being taught", hint="say 'teach <name>' first")
        data = {"event_type": "action", "recorded": action, "place": len(self._actions())}
        self._recording.remember(f"shown: {action}", kind="episode", category="event", data=data)

    def done(self) -> str:
        """End the recording; what was shown becomes a learned skill in the same commit."""
        if self._recording is None:
            return "Not currently recording."
        name, actions = self.recording or "", self._actions()
        if not actions:
            self._drop()
            return "Nothing recorded. Cancelled."
        sandbox, self._recording = self._recording, None
        self._memory.save_behavior(name, actions, within=sandbox)
        sandbox.consolidate()
        shown = " -> ".join(actions[:_SHOWN])
        more = f" ... ({len(actions)} total)" if len(actions) > _SHOWN else ""
        return f"Learned '{name}': {shown}{more}"

    def cancel(self) -> str:
        """Throw away what was shown."""
        name = self.recording
        self._drop()
        return f"Cancelled recording '{name}'." if name else "Not currently recording."

    def behaviors(self) -> dict[str, Behavior]:
        """Every behaviour by name; how often it was invoked is counted in uses, not written into it."""
        return behaviors_of(self._account)

    def describe(self, name: str) -> str:
        """What a behaviour does."""
        behavior = self.behaviors().get(name)
        if behavior is None:
            return self._unknown(name)
        return f"'{name}': {' -> '.join(behavior.actions)} (invoked {behavior.times_invoked} times)"

    def forget(self, name: str) -> str:
        """End a behaviour; its history stays."""
        skill = self._skill(name)
        if skill is None:
            return self._unknown(name)
        self._account.forget(skill.id)
        return f"Forgot '{name}'."

    def forget_all(self) -> str:
        """End every behaviour."""
        skills = self._account.memories(kind="skill", category=BEHAVIOR)
        if skills:
            self._account.forget(*(skill.id for skill in skills))
        return f"Forgot {len(skills)} behaviors."

    def invoke(
        self, name: str, executor: Executor | None = None, *, intent: intents.IntentKind = "INVOKE"
    ) -> Reply:
        """Do a behaviour action by action, each first checked against the approved rules."""
        skill, act = self._skill(name), executor or self._executor
        if skill is None:
            return Reply(text=self._unknown(name), intent=intent)
        if act is None:
            raise BadInput(f"nobody can perform {name!r}", hint="hand in an executor")
        actions = mirror.behavior_of(skill, 0)["actions"]
        for place, action in enumerate(actions):
            if (denial := self._denied(action, place)) is not None:
                text = f"Stopped '{name}' after {place} actions: {denial.detail}."
                return Reply(text=text, intent=intent, actions=tuple(actions[:place]), denial=denial)
            act(action)
        self._memory.use([skill.id])
        text = f"Completed '{name}' ({len(actions)} actions)"
        return Reply(text=text, intent=intent, actions=tuple(actions))

    def close(self) -> None:
        """Let go; a recording under way stays and is taken up again by the next teacher."""
        if self._recording is not None:
            self._recording.close()
            self._recording = None

    def _act(self, intent: intents.IntentKind, action: str) -> Reply:
        if (denial := self._denied(action, 0)) is not None:
            return Reply(text=f"SANDBOX DENIED: {denial.detail}.", intent=intent, denial=denial)
        if self._executor is not None:
            self._executor(action)
        if self._recording is not None:
            self.record(action)
        return Reply(text=f"Did {action}.", intent=intent, actions=(action,))

    def _denied(self, action: str, place: int) -> Denial | None:
        """The denial of an action, written to the audit log; only approved rules count."""
        rules = [self._memory.procedure(name) for name in ("guardrails", "sandbox_rules")]
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

    def _actions(self) -> list[str]:
        if self._recording is None:
            return []
        events = self._recording.memories(kind="episode", from_sandbox=self._recording.id)
        shown = [event.data for event in events if "recorded" in event.data]
        return [str(data["recorded"]) for data in sorted(shown, key=lambda data: data["place"])]

    def _drop(self) -> None:
        if self._recording is not None:
            self._recording.discard()
            self._recording = None

    def _skill(self, name: str) -> Memory | None:
        skills = self._account.memories(kind="skill", category=BEHAVIOR, topic=f"{BEHAVIOR}/{name}")
        return skills[-1] if skills else None

    def _unknown(self, name: str) -> str:
        near = [known for known in self.behaviors() if name and known.startswith(name)]
        return f"I don't know '{name}'. " + (f"Did you mean '{near[0]}'?" if near else "Teach me first.")


def behaviors_of(account: Account) -> dict[str, Behavior]:
    """The behaviours of an account by name."""
    skills = account.memories(kind="skill", category=BEHAVIOR)
    uses = account.uses(*(skill.id for skill in skills))
    told = (mirror.behavior_of(skill, uses.get(skill.id, 0)) for skill in skills)
    return {one["name"]: msgspec.convert(one, Behavior) for one in told}
