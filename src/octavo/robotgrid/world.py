"""The grid world, pure: a position is a value, an action gives the next one and says what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from octavo.domain.records import shape_of
from octavo.errors import BadInput

Action = Literal["forward", "backward", "left", "right", "look", "wait"]
Place = tuple[int, int]

ACTIONS: tuple[Action, ...] = get_args(Action)
DIRECTIONS = ("north", "east", "south", "west")
_NAMES = ("floor", "wall", "lava", "key", "door", "goal", "box", "button", "start")
TILES = dict(zip(".#~KDGBOS", _NAMES, strict=True))
STEPS: tuple[Place, ...] = ((0, -1), (1, 0), (0, 1), (-1, 0))  # by direction, x to the east, y to the south
# What may come of an action, and what that is worth.
REWARDS = dict.fromkeys(("moved", "turned", "looked", "waited", "pushed"), 0.1)
REWARDS |= {"blocked": -0.1, "locked": -0.1, "denied": -1.0, "key": 1.0, "goal": 10.0}
LARGEST = 64


class World(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One moment: `rows` hold what lies on the ground, boxes stand on top and so never destroy anything."""

    rows: tuple[str, ...]
    boxes: tuple[Place, ...] = ()
    x: int
    y: int
    direction: int = 0
    keys: int = 0
    moves: int = 0
    done: bool = False

    def tile(self, place: Place) -> str:
        """What is seen at a place: a box hides what it stands on, beyond the border is wall."""
        x, y = place
        inside = 0 <= y < len(self.rows) and 0 <= x < len(self.rows[y])
        return "B" if place in self.boxes else self.rows[y][x] if inside else "#"

    def ahead(self, distance: int = 1) -> Place:
        """The place so many tiles ahead; behind, if the distance is negative."""
        dx, dy = STEPS[self.direction]
        return self.x + dx * distance, self.y + dy * distance

    @property
    def is_open(self) -> bool:
        """Whether doors stand open: there are buttons, and on each is a box or the robot."""
        buttons = _places(self.rows, "O")
        return bool(buttons) and all(b in self.boxes or b == (self.x, self.y) for b in buttons)


class Moment(Struct, frozen=True):
    """What an action led to: the next world, the result, the tile that was met, and words for a person."""

    world: World
    result: str
    tile: str
    message: str


def parse(text: str) -> World:
    """A world from its map; the robot begins on `S` and looks north."""
    rows = tuple(line.strip() for line in text.strip().splitlines())
    unknown = sorted({c for row in rows for c in row} - TILES.keys())
    if unknown or not rows or len({len(row) for row in rows}) != 1 or max(len(rows), len(rows[0])) > LARGEST:
        hint = f"use a rectangle of at most {LARGEST} × {LARGEST} tiles out of {' '.join(TILES)}"
        raise BadInput(f"the map cannot be read: unknown {unknown}, {len(rows)} rows", hint=hint)
    starts = _places(rows, "S")
    if len(starts) != 1 or not _places(rows, "G"):
        raise BadInput("a map needs one start S and a goal G")
    bare = tuple(row.replace("S", ".").replace("B", ".") for row in rows)
    return World(rows=bare, boxes=_places(rows, "B"), x=starts[0][0], y=starts[0][1])


def act(world: World, action: str) -> Moment:
    """What one action leads to; a finished world stays as it is."""
    if action not in ACTIONS:
        raise BadInput(f"action {action!r} is unknown", hint=f"use one of {', '.join(ACTIONS)}")
    if world.done:
        return Moment(world, "waited", ".", "The level is complete.")
    now = replace(world, moves=world.moves + 1)
    match action:
        case "forward" | "backward":
            return _move(now, 1 if action == "forward" else -1)
        case "look":
            tile, distance = look(now)
            return Moment(now, "looked", tile, f"{TILES[tile].capitalize()} at {distance}.")
        case "wait":
            return Moment(now, "waited", ".", "Waited.")
    facing = turned(now.direction, action)
    return Moment(replace(now, direction=facing), "turned", ".", f"Facing {DIRECTIONS[facing]}.")


def turned(direction: int, action: str) -> int:
    """The direction after a turn; any other action leaves it."""
    return (direction + {"left": -1, "right": 1}.get(action, 0)) % 4


def look(world: World) -> tuple[str, int]:
    """The first tile ahead that is not floor, and how far away it is."""
    distance = 1
    while (tile := world.tile(world.ahead(distance))) == ".":
        distance += 1
    return tile, distance


def around(place: Place) -> list[Place]:
    """A place and its eight neighbours, row by row from the north."""
    return [(place[0] + dx, place[1] + dy) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]


def view(world: World) -> list[list[str]]:
    """The 3×3 tiles around the robot, north above."""
    return [[world.tile((world.x + dx, world.y + dy)) for dx in (-1, 0, 1)] for dy in (-1, 0, 1)]


def whole(world: World) -> list[list[str]]:
    """Every tile, north above."""
    return [[world.tile((x, y)) for x in range(len(row))] for y, row in enumerate(world.rows)]


def draw(world: World) -> str:
    """The world as text, the robot as an arrow."""
    rows = whole(world)
    rows[world.y][world.x] = "^>v<"[world.direction]
    return "\n".join(map("".join, rows))


def told(moment: Moment) -> dict[str, Any]:
    """What an action led to, as environments and records tell it."""
    return {"result": moment.result, "message": moment.message, "sandbox_denied": moment.result == "denied"}


def state_of(world: World) -> dict[str, Any]:
    """The robot's own state, as records have it."""
    return {"x": world.x, "y": world.y, "direction": DIRECTIONS[world.direction], "keys": world.keys}


def observation_of(world: World) -> dict[str, Any]:
    """What the robot sees, as records have it: itself, the tiles around it, and the first thing ahead."""
    tile, distance = look(world)
    return {
        "robot_state": state_of(world),
        "visible_tiles": [[TILES[c] for c in row] for row in view(world)],
        "look_ahead": {"tile": TILES[tile], "distance": distance},
    }


def to_dict(world: World) -> dict[str, Any]:
    """The world as plain JSON values."""
    return dict(msgspec.to_builtins(world))


def from_dict(given: Mapping[str, Any]) -> World:
    """The world that `to_dict` wrote, or BadInput with the place of what is wrong."""
    try:
        return msgspec.convert(dict(given), shape_of(World))
    except msgspec.ValidationError as error:
        raise BadInput(f"this is no RobotGrid world: {error}") from error


def _move(world: World, distance: int) -> Moment:
    place = world.ahead(distance)
    tile, here = world.tile(place), replace(world, x=place[0], y=place[1])
    match tile:
        case "#":
            return Moment(world, "blocked", tile, "Blocked by a wall.")
        case "~":
            return Moment(world, "denied", tile, "SANDBOX DENIED: lava.")
        case "B" if world.tile(beyond := world.ahead(2 * distance)) in (".", "O"):
            # A box goes nowhere else, so a key, a door or the goal is never lost below it.
            boxes = tuple(sorted({*world.boxes, beyond} - {place}))
            return Moment(replace(here, boxes=boxes), "pushed", tile, "Pushed the box.")
        case "B":
            return Moment(world, "blocked", tile, "The box does not move.")
        case "K":
            return Moment(_cleared(replace(here, keys=here.keys + 1)), "key", tile, "Collected a key.")
        case "D" if world.is_open:
            return Moment(here, "moved", tile, "The door is held open.")
        case "D" if not world.keys:
            return Moment(world, "locked", tile, "The door is locked; find a key.")
        case "D":
            opened = _cleared(replace(here, keys=here.keys - 1))
            return Moment(opened, "moved", tile, "Opened the door with a key.")
        case "G":
            return Moment(replace(here, done=True), "goal", tile, "Level complete!")
        case _:
            return Moment(here, "moved", tile, f"Moved to {place[0]}, {place[1]}.")


def _cleared(here: World) -> World:
    """The world without what lies where the robot stands."""
    rows = [list(row) for row in here.rows]
    rows[here.y][here.x] = "."
    return replace(here, rows=tuple(map("".join, rows)))


def _places(rows: tuple[str, ...], tile: str) -> tuple[Place, ...]:
    return tuple((x, y) for y, row in enumerate(rows) for x, c in enumerate(row) if c == tile)
