"""Events and checkpoints: every event is committed at once; a checkpoint names a version to replay from."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from octavo.documents.brain.memory import FilesystemMemory
from octavo.errors import BadInput, NotFound

TYPES = (
    *("spawn", "kill", "message", "action", "checkpoint", "teach_start", "teach_done"),
    *("invoke_start", "invoke_done", "suspend", "resume", "shutdown"),
)
EVERY = 50
LATEST, BACKUP = "ckpt_latest", "ckpt_backup"


class EventLog:
    """The events of one robot; `agents` says, when a checkpoint is taken, what the agents' state is."""

    def __init__(
        self, memory: FilesystemMemory, agents: Callable[[], Mapping[str, Any]] = dict, *, every: int = EVERY
    ) -> None:
        self._memory, self._account = memory, memory.account
        self._agents, self._every = agents, every
        self._actions = sum(e["event_type"] == "action" for e in self.replay()) if self._latest() else 0

    def log(self, event_type: str, agent_id: str = "", payload: Mapping[str, Any] | None = None) -> str:
        """Append one event, durable on return; after every fiftieth action a checkpoint is taken."""
        if event_type not in TYPES:
            raise BadInput(f"event type {event_type!r} is unknown", hint=f"use one of {', '.join(TYPES)}")
        event = {"event_type": event_type, "agent_id": agent_id, "payload": dict(payload or {})}
        id_ = self._memory.log_event({**event, "checkpoint_id": self._latest().get("checkpoint_id")})
        self._actions += event_type == "action"
        if self._actions >= self._every:
            self.checkpoint()
        return id_

    def checkpoint(self, metadata: Mapping[str, Any] | None = None) -> str:
        """Name the version as it is now; the checkpoint before it becomes the backup. Returns its id."""
        now, latest = self._memory.now(), self._latest()
        taken = {
            "checkpoint_id": f"ckpt_{int(now.timestamp() * 1000)}_{self._account.version}",
            "timestamp": now.isoformat(),
            "agents": dict(self._agents()),
            "metadata": dict(metadata or {}),
        }
        with self._account.sandbox("checkpoint") as sandbox:
            if latest:
                sandbox.update_state(BACKUP, latest)
            sandbox.update_state(LATEST, taken)
        self._actions = 0
        return str(taken["checkpoint_id"])

    def replay(self, checkpoint_id: str | None = None) -> list[dict[str, Any]]:
        """The events that came after a checkpoint (the latest if not said), in order."""
        return self.restore(checkpoint_id)[1]

    def restore(self, checkpoint_id: str | None = None) -> tuple[dict[str, Any], list[dict[str, Any]]]:
        """A checkpoint with its agents, and the events since, to be replayed; nothing stored is changed."""
        registers = self._account.memories(kind="register", topic=LATEST)
        for taken in reversed(self._account.history(registers[-1].id) if registers else []):
            if checkpoint_id in (None, taken.memory.data.get("checkpoint_id")):
                later = [revision.memory for revision in self._account.revisions(after=taken.version)]
                events = [dict(m.data) for m in later if m.category == "event" and not m.gone]
                return dict(taken.memory.data), events
        raise NotFound(f"there is no checkpoint {checkpoint_id or ''}".rstrip(), hint="take one first")

    def _latest(self) -> Mapping[str, Any]:
        registers = self._account.memories(kind="register", topic=LATEST)
        return registers[-1].data if registers else {}
