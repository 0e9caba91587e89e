"""RobotGrid for people: played in a terminal, and drawn as pictures or a GIF."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import accumulate
from pathlib import Path
from typing import Any

from octavo.errors import Unavailable
from octavo.robotgrid import world as grid
from octavo.robotgrid.levels import Level
from octavo.robotgrid.world import Action, Moment, World

KEYS: dict[str, Action] = dict(zip("wsadl.", grid.ACTIONS, strict=True))
_HELP = "w forward, s backward, a left, d right, l look, . wait, q quit; then Enter"
_PAINTS = "f4f1ea 4a4a55 e4572e f2c14e 8d6b4b 76b041 c9a66b 7fb7be"
_COLOURS = dict(zip(".#~KDGBO", _PAINTS.split(), strict=True))
_UNSEEN, _ROBOT = "e6e3dc", "2e86ab"
_SCALE = 8  # pixels for each of the 3 × 3 dots of a tile


def play(level: Level, read: Callable[[str], str], show: Callable[[str], object]) -> list[Moment]:
    """Play a level line by line: `read` asks, `show` tells; returns what happened."""
    world, moments = level.start, list[Moment]()
    show(f"{level.name} ({level.id}), {level.shortest} actions at best.\n{_HELP}\n{grid.draw(world)}")
    while not world.done:
        try:
            typed = read("> ").strip().lower()
        except EOFError:
            break
        if typed == "q":
            break
        for letter in typed:
            if letter not in KEYS:
                show(f"{letter!r} is no action. {_HELP}")
                continue
            moments.append(grid.act(world, KEYS[letter]))
            world = moments[-1].world
            show(f"{grid.draw(world)}\n{moments[-1].message}")
    return moments


def picture(world: World, seen: Collection[grid.Place] | None = None) -> Any:
    """The world as an image, each tile 3 × 3 dots, the robot two of them; what was not `seen` is pale."""
    try:
        from PIL import Image
    except ModuleNotFoundError as error:
        raise Unavailable("pictures need pillow", hint="pip install 'octavo[robot]'") from error
    image = Image.new("RGB", (len(world.rows[0]) * 3, len(world.rows) * 3))
    for y, row in enumerate(world.rows):
        for x in range(len(row)):
            is_known = seen is None or (x, y) in seen
            colour = _COLOURS[world.tile((x, y))] if is_known else _UNSEEN
            image.paste(f"#{colour}", (3 * x, 3 * y, 3 * x + 3, 3 * y + 3))
    (x, y), (dx, dy) = (3 * world.x + 1, 3 * world.y + 1), grid.STEPS[world.direction]
    for dot in ((x, y), (x + dx, y + dy)):
        image.paste(f"#{_ROBOT}", (*dot, dot[0] + 1, dot[1] + 1))
    return image.resize((image.width * _SCALE, image.height * _SCALE), Image.Resampling.NEAREST)


def animate(start: World, actions: Iterable[str], path: Path, *, milliseconds: int = 220) -> Path:
    """Write a play as a GIF, tiles that a 3×3 view has not met yet left pale; returns the path."""
    seen: set[grid.Place] = set()
    frames = []
    for world in accumulate(actions, lambda world, action: grid.act(world, action).world, initial=start):
        seen |= set(grid.around((world.x, world.y)))
        frames.append(picture(world, seen).quantize(16))
    frames[0].save(path, save_all=True, append_images=frames[1:], duration=milliseconds, loop=0)
    return path
