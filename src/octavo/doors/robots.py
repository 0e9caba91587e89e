"""The command of the robot world: `octavo robotgrid`, played by a person in the terminal."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from octavo.doors.operations.table import Operation, operation
from octavo.doors.settings import Settings
from octavo.robotgrid import levels, play


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
        return {
            "levels": [f"{one.id}: {one.name}, {one.shortest} actions" for one in levels.builtin().values()]
        }
    moments = play.play(levels.level(level), input, print)
    denials = sum(moment.result == "denied" for moment in moments)
    is_solved = bool(moments) and moments[-1].world.done
    return {"level": level, "solved": is_solved, "actions": len(moments), "denials": denials}


COMMANDS: tuple[Operation, ...] = (robotgrid,)
