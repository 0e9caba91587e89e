"""A play as an RLDS episode: each step with what was seen, done, predicted before it, and what came of it."""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from octavo.domain import runs
from octavo.robotgrid import world as grid
from octavo.robotgrid.levels import Level
from octavo.robotgrid.world import ACTIONS, DIRECTIONS, REWARDS, TILES, Moment, World


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


def step_of(
    world: World,
    command: str,
    predicted: Mapping[str, Any],
    confidence: float,
    moment: Moment,
    after: timedelta,
) -> dict[str, Any]:
    """One action as a step: done in a world, with what was predicted before it and how surely."""
    actual = state_of(moment.world)
    return {
        "frame_id": world.moves,
        "timestamp_us": int(after.total_seconds() * 1_000_000),
        "observation": observation_of(world),
        "action": {"command": command, "intent": "navigate", "params": {}, "raw_input": command},
        "world_model": {
            "predicted_state": predicted,
            "actual_state": actual,
            "latent_tokens": [],
            "surprise": surprise(predicted, actual),
            "belief_confidence": round(confidence, 4),
        },
        "reward": REWARDS[moment.result],
        "done": moment.world.done,
        "info": grid.told(moment),
    }


def episode_of(
    level: Level, steps: Sequence[Mapping[str, Any]], end: World, began: datetime, ended: datetime
) -> dict[str, Any]:
    """A play as its episode: metadata, and the steps with one closing step that only observes."""
    results = [step["info"]["result"] for step in steps]
    metadata = {
        "schema_version": runs.SCHEMA,
        "episode_id": f"robotgrid_{int(began.timestamp())}_{secrets.token_hex(4)}",
        "robot_id": "robot",
        "robot_model": "robotgrid",
        "capabilities": list(ACTIONS),
        "level_id": level.id,
        "level_name": level.name,
        "level_difficulty": level.difficulty,
        "initial_state": state_of(level.start),
        "final_state": state_of(end),
        "success": end.done,
        "total_moves": len(steps),
        "sandbox_denials": results.count("denied"),
        "behaviors_used": [],
        "keys_collected": results.count("key"),
        "doors_opened": end.doors_opened,
        "start_time": began.isoformat(),
        "end_time": ended.isoformat(),
        "duration_s": round((ended - began).total_seconds(), 6),
        "source": "robotgrid",
        "session_id": None,
    }
    return {"metadata": metadata, "steps": runs.complete(steps, observation_of(end))}
