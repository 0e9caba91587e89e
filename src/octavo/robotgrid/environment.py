"""RobotGrid as a Gymnasium environment, `octavo/RobotGrid-v0`; the only module that needs Gymnasium."""

from __future__ import annotations

from typing import Any, SupportsFloat

from octavo.errors import BadInput, Unavailable
from octavo.robotgrid import levels, play
from octavo.robotgrid import world as grid
from octavo.robotgrid.levels import Level
from octavo.robotgrid.world import ACTIONS, LARGEST, TILES, World

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
except ModuleNotFoundError as error:
    raise Unavailable(f"{error.name} is not installed", hint="pip install 'octavo[robot]'") from error

ID = "octavo/RobotGrid-v0"
_CODES = {tile: code for code, tile in enumerate(TILES)}
_MOST_KEYS = 16


class RobotGrid(gymnasium.Env[dict[str, Any], int]):
    """One level, or with `difficulty` a new one at each reset; it is always the level that is reset to."""

    metadata: dict[str, Any] = {  # noqa: RUF012  # Gymnasium declares it so
        "render_modes": ["ansi", "rgb_array"],
        "render_fps": 4,
    }

    def __init__(
        self,
        level: str = "tutorial",
        *,
        difficulty: int | None = None,
        observation: str = "view",
        max_steps: int = 200,
        render_mode: str | None = None,
    ) -> None:
        if observation not in ("view", "grid"):
            raise BadInput(f"observation {observation!r} is unknown", hint="use 'view' or 'grid'")
        self.render_mode = render_mode
        self.level: Level = levels.level(level) if difficulty is None else levels.generate(difficulty, 0)
        self._difficulty, self._whole, self._max_steps = difficulty, observation == "grid", max_steps
        self._world: World = self.level.start
        shape = (len(self._world.rows), len(self._world.rows[0])) if self._whole else (3, 3)
        self.action_space = spaces.Discrete(len(ACTIONS))  # type: ignore[assignment]  # an int is one of them
        self.observation_space = spaces.Dict(
            {
                "view": spaces.Box(0, len(TILES) - 1, shape, np.int8),
                "ahead": spaces.MultiDiscrete([len(TILES), LARGEST + 1]),
                "position": spaces.MultiDiscrete([LARGEST, LARGEST]),
                "direction": spaces.Discrete(4),
                "keys": spaces.Discrete(_MOST_KEYS),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the level again; with `difficulty` the seed decides which one comes."""
        super().reset(seed=seed)
        if self._difficulty is not None:
            self.level = levels.generate(self._difficulty, int(self.np_random.integers(2**31)))
        self._world = self.level.start
        return self._observed(), {"level": self.level.id, "shortest": self.level.shortest}

    def step(self, action: int) -> tuple[dict[str, Any], SupportsFloat, bool, bool, dict[str, Any]]:
        """Act once."""
        moment = grid.act(self._world, ACTIONS[int(action)])
        self._world = moment.world
        info = {**grid.told(moment), "tile": TILES[moment.tile]}
        ended = self._world.moves >= self._max_steps and not self._world.done
        return self._observed(), grid.reward(moment), self._world.done, ended, info

    def render(self) -> Any:
        """The world as text, or as an array of colours."""
        if self.render_mode == "ansi":
            return grid.draw(self._world)
        return np.asarray(play.picture(self._world)) if self.render_mode == "rgb_array" else None

    def _observed(self) -> dict[str, Any]:
        world = self._world
        tile, distance = grid.look(world)
        whole = [[world.tile((x, y)) for x in range(len(row))] for y, row in enumerate(world.rows)]
        rows = whole if self._whole else grid.view(world)
        return {
            "view": np.array([[_CODES[c] for c in row] for row in rows], np.int8),
            "ahead": np.array([_CODES[tile], distance], np.int64),
            "position": np.array([world.x, world.y], np.int64),
            "direction": world.direction,
            "keys": min(world.keys, _MOST_KEYS - 1),
        }


if ID not in gymnasium.registry:
    gymnasium.register(id=ID, entry_point="octavo.robotgrid.environment:RobotGrid")
