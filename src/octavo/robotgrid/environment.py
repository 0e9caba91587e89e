"""RobotGrid as a Gymnasium environment, `octavo/RobotGrid-v0`, and in pictures; needs the extra `robot`."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any, SupportsFloat

from octavo.errors import BadInput, Unavailable
from octavo.robotgrid import levels
from octavo.robotgrid import world as grid
from octavo.robotgrid.world import ACTIONS, LARGEST, REWARDS, TILES, World

try:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
    from PIL import Image
except ModuleNotFoundError as error:
    raise Unavailable(f"{error.name} is not installed", hint="pip install 'octavo[robot]'") from error

ID = "octavo/RobotGrid-v0"
_CODES = {tile: code for code, tile in enumerate(TILES)}
_PAINTS = "f4f1ea 4a4a55 e4572e f2c14e 8d6b4b 76b041 c9a66b 7fb7be e6e3dc 2e86ab"
_COLOURS = {tile: tuple(bytes.fromhex(p)) for tile, p in zip(".#~KDGBO?^", _PAINTS.split(), strict=True)}
_SCALE = 8  # pixels for each of the 3 × 3 dots of a tile
_MILLISECONDS = 220  # that a frame of an animation stands


class RobotGrid(gymnasium.Env[dict[str, Any], int]):
    """One level, or with `difficulty` a new one at each reset; it is always the level that is reset to."""

    metadata: dict[str, Any] = {"render_modes": ["ansi", "rgb_array"], "render_fps": 4}  # noqa: RUF012

    def __init__(
        self,
        level: str = "tutorial",
        *,
        difficulty: int | None = None,
        observation: str = "view",
        render_mode: str | None = None,
    ) -> None:
        if observation not in ("view", "grid"):
            raise BadInput(f"observation {observation!r} is unknown", hint="use 'view' or 'grid'")
        self.render_mode = render_mode
        self._level = levels.level(level) if difficulty is None else levels.generate(difficulty, 0)
        self._difficulty = difficulty
        self._seen = grid.whole if observation == "grid" else grid.view
        self._world = self._level.start
        rows = self._seen(self._world)
        self.action_space = spaces.Discrete(len(ACTIONS))  # type: ignore[assignment]  # an int is one of them
        self.observation_space = spaces.Dict(
            {
                "view": spaces.Box(0, len(TILES) - 1, (len(rows), len(rows[0])), np.int8),
                "ahead": spaces.MultiDiscrete([len(TILES), LARGEST + 1]),
                "position": spaces.MultiDiscrete([LARGEST, LARGEST]),
                "direction": spaces.Discrete(4),
                "keys": spaces.Discrete(LARGEST),
            }
        )

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, Any], dict[str, Any]]:
        """Begin the level again; with `difficulty` the seed decides which one comes."""
        super().reset(seed=seed)
        if self._difficulty is not None:
            self._level = levels.generate(self._difficulty, int(self.np_random.integers(2**31)))
        self._world = self._level.start
        return self._observed(), {"level": self._level.id, "shortest": self._level.shortest}

    def step(self, action: int) -> tuple[dict[str, Any], SupportsFloat, bool, bool, dict[str, Any]]:
        """Act once."""
        moment = grid.act(self._world, ACTIONS[int(action)])
        self._world = moment.world
        info = {**grid.told(moment), "tile": TILES[moment.tile]}
        return self._observed(), REWARDS[moment.result], self._world.done, False, info

    def render(self) -> Any:
        """The world as text, or as an array of colours."""
        shown = {"ansi": grid.draw, "rgb_array": picture}.get(self.render_mode or "")
        return shown(self._world) if shown else None

    def _observed(self) -> dict[str, Any]:
        world = self._world
        tile, distance = grid.look(world)
        return {
            "view": np.array([[_CODES[c] for c in row] for row in self._seen(world)], np.int8),
            "ahead": np.array([_CODES[tile], distance], np.int64),
            "position": np.array([world.x, world.y], np.int64),
            "direction": world.direction,
            "keys": min(world.keys, LARGEST - 1),
        }


def picture(world: World, seen: Collection[grid.Place] | None = None) -> Any:
    """The world in colours, each tile 3 × 3 dots, the robot two of them; what was not `seen` is pale."""
    rows = grid.whole(world)
    for x, y in ((x, y) for y, row in enumerate(rows) for x in range(len(row))):
        rows[y][x] = rows[y][x] if seen is None or (x, y) in seen else "?"
    dots = np.array([[_COLOURS[tile] for tile in row] for row in rows], np.uint8).repeat(3, 0).repeat(3, 1)
    (x, y), (dx, dy) = (3 * world.x + 1, 3 * world.y + 1), grid.STEPS[world.direction]
    dots[y, x] = dots[y + dy, x + dx] = _COLOURS["^"]
    return dots.repeat(_SCALE, 0).repeat(_SCALE, 1)


def animate(start: World, actions: Iterable[str], path: Path) -> None:
    """Write a play as a GIF, tiles that a 3×3 view has not met yet left pale."""
    seen: set[grid.Place] = set()
    frames = []
    for world in accumulate(actions, lambda world, action: grid.act(world, action).world, initial=start):
        seen |= set(grid.around((world.x, world.y)))
        frames.append(Image.fromarray(picture(world, seen)).quantize(16))
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=_MILLISECONDS, loop=0)


gymnasium.register(id=ID, entry_point="octavo.robotgrid.environment:RobotGrid", max_episode_steps=200)
