"""A play as an RLDS episode: each step with what was seen, done, predicted before it, and what came of it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from octavo.domain import runs
from octavo.robotgrid import world as grid
from octavo.robotgrid.levels import Level
from octavo.robotgrid.world import ACTIONS, DIRECTIONS, TILES, Moment, World


def state_of(world: World) -> dict[str, Any]:
    """The robot's own state."""
    return {"x": world.x, "y": world.y, "direction": DIRECTIONS[world.direction], "keys": world.keys}


def observation_of(world: World) -> dict[str, Any]:
    """What the robot sees: itself, the 3×3 tiles around it, and the first thing ahead."""
    tile, distance = grid.look(world)
    return {
        "robot_state": state_of(world),
        "visible_tiles": [[TILES[c] for c in row] for row in grid.view(world)],
        "look_ahead": {"tile": TILES[tile], "distance": distance},
    }


def surprise(predicted: Mapping[str, Any], actual: Mapping[str, Any]) -> float:
    """How wrong a prediction was: half for the place, the rest for direction and keys."""
    moved = (predicted["x"], predicted["y"]) != (actual["x"], actual["y"])
    turned = predicted["direction"] != actual["direction"]
    carried = predicted["keys"] != actual["keys"]
    return float(round(0.5 * moved + 0.3 * turned + 0.2 * carried, 2))


class Recorder:
    """Writes down a play as it happens; `finish` gives the episode with its closing step."""

    def __init__(self, level: Level, robot_id: str, clock: Callable[[], datetime] | None = None) -> None:
        self._clock = clock or (lambda: datetime.now(UTC))
        self._level, self._robot_id, self._began = level, robot_id, self._clock()
        self._steps: list[dict[str, Any]] = []
        self._world = level.start

    def step(self, predicted: Mapping[str, Any], confidence: float, moment: Moment, command: str) -> None:
        """Write down one action; `predicted` was made before it."""
        actual, now = state_of(moment.world), self._clock()
        model: dict[str, Any] = {
            "predicted_state": dict(predicted),
            "actual_state": actual,
            "latent_tokens": [],
        }
        model |= {"surprise": surprise(predicted, actual), "belief_confidence": round(confidence, 4)}
        self._steps.append(
            {
                "frame_id": len(self._steps),
                "timestamp_us": int((now - self._began).total_seconds() * 1_000_000),
                "observation": observation_of(self._world),
                "action": {"command": command, "intent": "navigate", "params": {}, "raw_input": command},
                "world_model": model,
                "reward": grid.reward(moment),
                "done": moment.world.done,
                "info": grid.told(moment),
            }
        )
        self._world = moment.world

    def finish(self) -> dict[str, Any]:
        """The episode: metadata, and the steps with one closing step that only observes."""
        level, world, ended = self._level, self._world, self._clock()
        results = [step["info"]["result"] for step in self._steps]
        metadata = {
            "schema_version": runs.SCHEMA,
            "episode_id": f"robotgrid_{int(self._began.timestamp())}_{secrets.token_hex(4)}",
            "robot_id": self._robot_id,
            "robot_model": "robotgrid",
            "capabilities": list(ACTIONS),
            "level_id": level.id,
            "level_name": level.name,
            "level_difficulty": level.difficulty,
            "initial_state": state_of(level.start),
            "final_state": state_of(world),
            "success": world.done,
            "total_moves": len(self._steps),
            "sandbox_denials": results.count("denied"),
            "behaviors_used": [],
            "keys_collected": results.count("key"),
            "doors_opened": world.doors_opened,
            "start_time": self._began.isoformat(),
            "end_time": ended.isoformat(),
            "duration_s": round((ended - self._began).total_seconds(), 6),
            "source": "robotgrid",
            "session_id": None,
        }
        return {"metadata": metadata, "steps": runs.complete(self._steps, observation_of(world))}
