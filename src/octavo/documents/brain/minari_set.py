"""RLDS episodes as a Minari data set, for training; needs the extra `minari`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from octavo.documents.brain import rlds
from octavo.domain import runs
from octavo.engine.account import Account
from octavo.errors import BadInput, Unavailable

_KEYS = ("x", "y", "direction", "keys")
_DIRECTIONS = ("north", "east", "south", "west")


def export(
    account: Account, dataset_id: str | Path, about: Mapping[str, str] | None = None, **chosen: Any
) -> dict[str, Any]:
    """Write the episodes that a Filter takes as a data set where Minari keeps its own.

    `about` goes to Minari as it is: author, author_email, code_permalink.
    """
    try:
        import minari  # type: ignore[import-untyped]  # it brings no types
        import numpy as np
        from gymnasium import spaces
        from minari.data_collector import EpisodeBuffer  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed", hint="pip install 'octavo[minari]'") from error
    rule = rlds.filter_of(chosen)
    kept = [m.data for m in account.memories(kind="episode", category=runs.CATEGORY) if rule.takes(m)]
    kept = [data for data in kept if any(runs.command_of(step) for step in data["steps"])]
    if not kept:
        raise BadInput("no episode passes the filter", hint="loosen it, or play first")
    tiles, commands = _names(kept)
    buffers = []
    for number, data in enumerate(kept):
        steps = [step for step in data["steps"] if runs.command_of(step)]
        ends = [bool(step.get("done")) for step in steps]
        cut = [*[False] * (len(steps) - 1), not ends[-1]]
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations={
                    "state": np.array([_state(step) for step in data["steps"]], np.int64),
                    "view": np.array([_view(step, tiles) for step in data["steps"]], np.int64),
                },
                actions=np.array([commands.index(runs.command_of(step)) for step in steps], np.int64),
                rewards=[float(step.get("reward") or 0.0) for step in steps],
                terminations=ends,
                truncations=cut,
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
        # Minari warns of each that nobody names.
        **{
            "author": account.name,
            "author_email": "not given",
            "code_permalink": "not given",
            **(about or {}),
        },
        description=f"tiles: {', '.join(tiles)}; actions: {', '.join(commands)}",
    )
    return {"dataset": str(dataset_id), "episodes": int(made.total_episodes), "steps": int(made.total_steps)}


def _names(kept: Sequence[Any]) -> tuple[list[str], list[str]]:
    """The tiles and commands that occur, in order; a number in the set is a place in these lists."""
    steps = [step for data in kept for step in data["steps"]]
    tiles = {tile for step in steps for row in _rows(step) for tile in row}
    return sorted(tiles), sorted({runs.command_of(step) for step in steps} - {""})


def _rows(step: Any) -> Any:
    return (step.get("observation") or {}).get("visible_tiles") or ()


def _view(step: Any, tiles: Sequence[str]) -> list[int]:
    """The nine tiles around the robot; what a step does not say is the number behind the last tile."""
    seen = [tiles.index(tile) for row in _rows(step) for tile in row]
    return (seen + [len(tiles)] * 9)[:9]


def _state(step: Any) -> list[int]:
    state = (step.get("observation") or {}).get("robot_state") or {}
    return [_DIRECTIONS.index(v) if (v := state.get(k)) in _DIRECTIONS else int(v or 0) for k in _KEYS]
