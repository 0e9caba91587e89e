"""The command of the robot world: `octavo robotgrid`, played by a person in the terminal."""

from __future__ import annotations

from contextlib import suppress
from typing import Annotated, Any, Literal

from octavo.doors.operations.table import Operation, operation
from octavo.doors.settings import Settings
from octavo.robotgrid import levels
from octavo.robotgrid import world as grid

_KEYS = dict(zip("wsadl.", grid.ACTIONS, strict=True))
_HELP = "w forward, s backward, a left, d right, l look, . wait, q quit; then Enter"


@operation("octavo robotgrid play lava_key")
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
    chosen, denials = levels.level(level), 0
    world = chosen.start
    print(f"{chosen.name} ({chosen.id}), {chosen.shortest} actions at best.\n{_HELP}\n{grid.draw(world)}")
    with suppress(EOFError):
        while not world.done and (typed := input("> ").strip().lower()) != "q":
            for letter in typed:
                if letter not in _KEYS:
                    print(f"{letter!r} is no action. {_HELP}")
                elif not world.done:
                    moment = grid.act(world, _KEYS[letter])
                    world, denials = moment.world, denials + (moment.result == "denied")
                    print(f"{grid.draw(world)}\n{moment.message}")
    return {"level": level, "solved": world.done, "actions": world.moves, "denials": denials}


COMMANDS: tuple[Operation, ...] = (robotgrid,)
