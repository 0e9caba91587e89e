"""RLDS episodes as a Minari data set, for training; needs the extra `minari`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from octavo.documents.brain import rlds
from octavo.domain import runs
from octavo.engine.account import Account
from octavo.errors import BadInput, Unavailable

_KEYS = ("x", "y", "direction", "keys")
_DIRECTIONS = ("north", "east", "south", "west")


def export(account: Account, dataset_id: str | Path, **chosen: Any) -> dict[str, Any]:
    """Write the episodes that a Filter takes as a data set where Minari keeps its own."""
    try:
        import minari  # type: ignore[import-untyped]  # it brings no types
        import numpy as np
        from gymnasium import spaces
        from minari.data_collector import EpisodeBuffer  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed", hint="pip install 'octavo[minari]'") from error
    kept = [memory.data["steps"] for memory in rlds.chosen(account, rlds.filter_of(chosen))]
    kept = [steps for steps in kept if any(map(runs.command_of, steps))]
    if not kept:
        raise BadInput("no episode passes the filter", hint="loosen it, or play first")
    every = [step for steps in kept for step in steps]
    # A number in the set is a place in these lists.
    tiles = sorted({tile for step in every for tile in _view(step)})
    commands = sorted({runs.command_of(step) for step in every} - {""})
    buffers = []
    for number, steps in enumerate(kept):
        acts = [step for step in steps if runs.command_of(step)]
        views = [[tiles.index(tile) for tile in _view(step)] for step in steps]
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations={
                    "state": np.array([_state(step) for step in steps], np.int64),
                    # What a step does not say is the number behind the last tile.
                    "view": np.array([(seen + [len(tiles)] * 9)[:9] for seen in views], np.int64),
                },
                actions=np.array([commands.index(runs.command_of(step)) for step in acts], np.int64),
                rewards=[float(step.get("reward") or 0.0) for step in acts],
                terminations=[bool(step.get("done")) for step in acts],
                truncations=[*[False] * (len(acts) - 1), not acts[-1].get("done")],
            )
        )
    room: dict[str, Any] = {
        "state": spaces.Box(-1, 2**31, (len(_KEYS),), np.int64),
        "view": spaces.Box(0, len(tiles), (9,), np.int64),
    }
    made = minari.create_dataset_from_buffers(
        dataset_id=str(dataset_id),
        buffer=buffers,
        action_space=spaces.Discrete(len(commands)),
        observation_space=spaces.Dict(room),
        algorithm_name="octavo",
        description=f"tiles: {', '.join(tiles)}; actions: {', '.join(commands)}",
        author=account.name,
        author_email="not given",  # Minari warns of what nobody names
        code_permalink="not given",
    )
    return {"dataset": str(dataset_id), "episodes": int(made.total_episodes), "steps": int(made.total_steps)}


def _view(step: Mapping[str, Any]) -> list[str]:
    """The tiles around the robot, row by row."""
    rows = runs.part_of(step, "observation").get("visible_tiles") or ()
    return [tile for row in rows for tile in row]


def _state(step: Mapping[str, Any]) -> list[int]:
    state = runs.part_of(runs.part_of(step, "observation"), "robot_state")
    return [_DIRECTIONS.index(v) if (v := state.get(k)) in _DIRECTIONS else int(v or 0) for k in _KEYS]
