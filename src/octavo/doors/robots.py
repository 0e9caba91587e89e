"""The command of the robot world: `octavo robotgrid`, played by a person in the terminal."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from octavo.doors.operations.table import Operation, operation
from octavo.doors.settings import Settings
from octavo.robotgrid import levels
from octavo.robotgrid import world as grid
from octavo.robotgrid.world import Moment

_KEYS = dict(zip("wsadl.", grid.ACTIONS, strict=True))
_HELP = "w forward, s backward, a left, d right, l look, . wait, q quit; then Enter"


@operation("octavo robotgrid play lava_key", local=True)
def robotgrid(
    settings: Settings,
    action: Annotated[Literal["play", "levels"], "Play one level, or list those that there are."] = "play",
    level: Annotated[
        str, "Which one; generated-9-7 is the seventh generated one of difficulty 9."
    ] = "tutorial",
) -> dict[str, Any]:
    """Play the small world in which a robot learns what Octavo remembers for it."""
    if action == "levels":
        known = levels.builtin().values()
        return {"levels": [f"{one.id}: {one.name}, {one.shortest} actions" for one in known]}
    moments = play(levels.level(level))
    denials = sum(moment.result == "denied" for moment in moments)
    is_solved = bool(moments) and moments[-1].world.done
    return {"level": level, "solved": is_solved, "actions": len(moments), "denials": denials}


def play(level: levels.Level) -> list[Moment]:
    """Play a level line by line in the terminal; returns what happened."""
    world, moments = level.start, list[Moment]()
    print(f"{level.name} ({level.id}), {level.shortest} actions at best.\n{_HELP}\n{grid.draw(world)}")
    while not world.done:
        try:
            typed = input("> ").strip().lower()
        except EOFError:
            typed = "q"
        if typed == "q":
            break
        for letter in typed:
            if letter not in _KEYS:
                print(f"{letter!r} is no action. {_HELP}")
                continue
            moments.append(grid.act(world, _KEYS[letter]))
            world = moments[-1].world
            print(f"{grid.draw(world)}\n{moments[-1].message}")
    return moments


COMMANDS: tuple[Operation, ...] = (robotgrid,)
