"""Teaching by showing: the seed's dialogue, behaviours as learned skills, invoked under approved rules."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from typing import Any, Literal

from msgspec import Struct

from octavo.documents.brain.memory import GUARDRAILS, FilesystemMemory
from octavo.domain import mirror
from octavo.domain.memory import Memory
from octavo.domain.mirror_places import BEHAVIOR
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadInput, SandboxBusy

Executor = Callable[[str], object]
Intent = Literal[
    "START_TEACHING", "DONE", "CANCEL", "LIST", "FORGET", "DESCRIBE", "MOVE", "SPEED", "INVOKE", "UNKNOWN"
]
# How a line reads and the intent it is; what its group holds is named, or else what stands behind.
_LINES: tuple[tuple[str, Intent, str], ...] = (
    ("done|save|end", "DONE", ""),
    ("cancel", "CANCEL", ""),
    ("list|list behaviors|behaviors", "LIST", ""),
    ("forward|go forward|move forward", "MOVE", "forward"),
    ("backward|back|go back", "MOVE", "backward"),
    ("(?:turn )?(left|right)", "MOVE", ""),
    ("(stop|wait|look)", "MOVE", ""),
    (r"(?:set )?speed (?:to )?(\d+(?:\.\d+)?)", "SPEED", ""),
    ("(?:teach|learn|record|remember) (.+)", "START_TEACHING", ""),
    ("forget (.+)", "FORGET", ""),
    ("(?:describe|explain|what is) (.+)", "DESCRIBE", ""),
    ("(?:do|run|perform|invoke) (.+)", "INVOKE", ""),
)
_ALWAYS = ("DONE", "CANCEL", "LIST")  # whatever a behaviour is called
_SHOWN = 5
_SANDBOX = "teach "
_SPEED = re.compile(r"\d+(\.\d+)?")
_MOST_ACTIONS = 100  # of one behaviour, unless the rules say otherwise


class Reply(Struct, frozen=True, kw_only=True):
    """What the robot answers, the intent it understood, what it did, and the rule that stopped it."""

    text: str
    intent: Intent
    actions: tuple[str, ...] = ()
    denial: str | None = None


class Teaching:
    """One robot's teacher: what is being shown is durable action by action, and survives any end.

    Without an executor the robot is elsewhere: what it does is told in the reply.
    """

    def __init__(self, memory: FilesystemMemory, executor: Executor = lambda action: None) -> None:
        self._memory, self._account, self._executor = memory, memory.account, executor
        self._recording: Sandbox | None = None
        left = [info.id for info in self._account.sandboxes() if info.name.startswith(_SANDBOX)]
        while left and self._recording is None:
            with suppress(SandboxBusy):  # another teacher is at it
                self._recording = self._account.resume(left.pop(0))

    @property
    def recording(self) -> str | None:
        """The behaviour that is being taught, or None."""
        return self._recording.name.removeprefix(_SANDBOX) if self._recording else None

    def say(self, line: str) -> Reply:
        """One line of the dialogue, answered as the seed writes it."""
        known = _taught(self._account)
        intent, what = understand(line, known)
        match intent:
            case "START_TEACHING":
                text = self._start(what)
            case "DONE" | "CANCEL":
                text = self._end(intent)
            case "LIST":
                text = f"I know: {', '.join(known)}." if known else "I know no behaviors yet."
            case "FORGET" if what in known or what == "all":
                doomed = [skill.id for name, skill in known.items() if what in (name, "all")]
                if doomed:
                    self._account.forget(*doomed)
                text = f"Forgot {len(doomed)} behaviors." if what == "all" else f"Forgot '{what}'."
            case "DESCRIBE" if what in known:
                told = behaviors_of(self._account)[what]
                text = f"'{what}': {' -> '.join(told['actions'])} (invoked {told['times_invoked']} times)"
            case "MOVE" | "SPEED":
                return self._act(intent, what)
            case _:
                return self.invoke(what) if intent == "INVOKE" else _unknown(intent, what, known)
        return Reply(text=text, intent=intent)

    def invoke(self, name: str, executor: Executor | None = None) -> Reply:
        """Do a behaviour action by action, each first checked against the approved rules."""
        known = _taught(self._account)
        if name not in known:
            return _unknown("INVOKE", name, known)
        actions = tuple(mirror.behavior_of(known[name], 0)["actions"])
        for place, action in enumerate(actions):
            if denied := self._denied(action, place):
                text = f"Stopped '{name}' after {place} actions: {denied[1]}."
                return Reply(text=text, intent="INVOKE", actions=actions[:place], denial=denied[0])
            (executor or self._executor)(action)
        self._memory.use([known[name].id])
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

    def _end(self, intent: Intent) -> str:
        """End the recording; what was shown becomes a learned skill in the same commit, or nothing."""
        if self._recording is None:
            return "Not currently recording."
        name, actions = self.recording or "", _shown(self._recording)
        sandbox, self._recording = self._recording, None
        if intent == "CANCEL" or not actions:
            sandbox.discard()
            return f"Cancelled recording '{name}'." if intent == "CANCEL" else "Nothing recorded. Cancelled."
        self._memory.save_behavior(name, actions, within=sandbox)
        sandbox.consolidate()
        more = f" ... ({len(actions)} total)" if len(actions) > _SHOWN else ""
        return f"Learned '{name}': {' -> '.join(actions[:_SHOWN])}{more}"

    def _act(self, intent: Intent, action: str) -> Reply:
        """Do one action; while a behaviour is taught it is kept, durable on return."""
        if denied := self._denied(action, 0):
            return Reply(text=f"SANDBOX DENIED: {denied[1]}.", intent=intent, denial=denied[0])
        self._executor(action)
        if self._recording is not None:
            data = {"event_type": "action", "recorded": action, "place": len(_shown(self._recording))}
            self._recording.remember(f"shown: {action}", kind="episode", category="event", data=data)
        return Reply(text=f"Did {action}.", intent=intent, actions=(action,))

    def _denied(self, action: str, place: int) -> tuple[str, str] | None:
        """The denial of an action, written to the audit log; only approved rules count."""
        rules = [self._memory.procedure(name) for name in (GUARDRAILS, "sandbox_rules")]
        if denied := denial_of(action, place, *rules):
            payload = {"action": action, "rule": denied[0], "detail": denied[1], "sandbox_denied": True}
            self._memory.log_event({"event_type": "sandbox_denied", "payload": payload})
        return denied


def understand(line: str, known: Collection[str] = ()) -> tuple[Intent, str]:
    """What a line asks for, and the behaviour it names or the action it is.

    The name of a known behaviour alone invokes it.
    """
    said = " ".join(line.split()).rstrip(".!").lower()
    for reads, intent, action in _LINES:
        if fits := re.fullmatch(reads, said):
            if intent not in _ALWAYS and _plain(said) in known:
                break
            named = _plain(fits[1]) if fits.re.groups else action
            return intent, f"speed {float(named):g}" if intent == "SPEED" else named
    return "INVOKE" if _plain(said) in known else "UNKNOWN", _plain(said)


def denial_of(action: str, place: int, *files: Mapping[str, Any]) -> tuple[str, str] | None:
    """The rule that forbids an action at its place in a behaviour, and why; explicit denial wins."""
    command, _, rest = action.partition(" ")
    for rules in files:
        if {command, action} & _names(rules, "deny"):
            return "deny", f"{action} is denied by a guardrail"
        if (allowed := _names(rules, "actuators")) and command not in allowed:
            return "actuators", f"{command} is not among the allowed actuators"
        if command in _names(rules, "sensors_denied"):
            return "sensors_denied", f"{command} reads a denied sensor"
        limit = rules.get("max_speed")
        speed = float(rest) if _SPEED.fullmatch(rest) else math.inf  # one that nobody can read is not safe
        if command == "speed" and isinstance(limit, int | float) and speed > limit:
            return "max_speed", f"{action} is above the limit of {limit:g}"
    most = min([int(rules["max_actions"]) for rules in files if "max_actions" in rules] or [_MOST_ACTIONS])
    return ("max_actions", f"more than {most} actions") if place >= most else None


def behaviors_of(account: Account) -> dict[str, dict[str, Any]]:
    """The behaviours of an account by name, as behaviors.json has them; uses are counted, not written."""
    known = _taught(account)
    uses = account.uses(*(skill.id for skill in known.values()))
    return {name: mirror.behavior_of(skill, uses.get(skill.id, 0)) for name, skill in known.items()}


def _taught(account: Account) -> dict[str, Memory]:
    return {mirror.name_of(m): m for m in account.memories(kind="skill", category=BEHAVIOR)}


def _unknown(intent: Intent, name: str, known: Collection[str]) -> Reply:
    near = [one for one in known if name and one.startswith(name)]
    more = f"Did you mean '{near[0]}'?" if near else "Teach me first."
    return Reply(text=f"I don't know '{name}'. {more}", intent=intent)


def _shown(recording: Sandbox) -> list[str]:
    """The actions that a recording holds, in the order they were shown."""
    events = [event.data for event in recording.memories(kind="episode", from_sandbox=recording.id)]
    shown = {data["place"]: str(data["recorded"]) for data in events if "recorded" in data}
    return [shown[place] for place in sorted(shown)]


def _plain(said: str) -> str:
    """A behaviour's name as it is kept: lower-case, without quotes, one space between words."""
    return " ".join(said.strip("'\"“” ").lower().split())[:64]


def _names(rules: Mapping[str, Any], name: str) -> set[str]:
    """The names that a rule lists; one alone need not be a list."""
    listed = rules.get(name, ())
    return set(map(str, listed)) if isinstance(listed, list | tuple) else {str(listed)}
