"""The grid world, pure: a position is a value, an action gives the next one and says what happened."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from octavo.errors import BadInput

Action = Literal["forward", "backward", "left", "right", "look", "wait"]
Result = Literal[
    "moved", "turned", "looked", "waited", "blocked", "locked", "denied", "key", "pushed", "goal"
]
Place = tuple[int, int]

ACTIONS: tuple[Action, ...] = get_args(Action)
DIRECTIONS = ("north", "east", "south", "west")
_NAMES = ("floor", "wall", "lava", "key", "door", "goal", "box", "button", "start")
TILES = dict(zip(".#~KDGBOS", _NAMES, strict=True))
STEPS: tuple[Place, ...] = ((0, -1), (1, 0), (0, 1), (-1, 0))  # by direction, x to the east, y to the south
SUCCEEDED: frozenset[Result] = frozenset({"moved", "turned", "looked", "waited", "key", "pushed", "goal"})
LARGEST = 64


class World(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One moment: `rows` hold what lies on the ground, boxes stand on top and so never destroy anything."""

    rows: tuple[str, ...]
    boxes: tuple[Place, ...] = ()
    x: int
    y: int
    direction: int = 0
    keys: int = 0
    doors_opened: int = 0
    moves: int = 0
    done: bool = False

    def ground(self, place: Place) -> str:
        """What lies at a place; beyond the border is wall."""
        x, y = place
        inside = 0 <= y < len(self.rows) and 0 <= x < len(self.rows[y])
        return self.rows[y][x] if inside else "#"

    def tile(self, place: Place) -> str:
        """What is seen at a place: a box hides what it stands on."""
        return "B" if place in self.boxes else self.ground(place)

    def ahead(self, distance: int = 1) -> Place:
        """The place so many tiles ahead; behind, if the distance is negative."""
        dx, dy = STEPS[self.direction]
        return self.x + dx * distance, self.y + dy * distance

    @property
    def is_open(self) -> bool:
        """Whether doors stand open: there are buttons, and on each is a box or the robot."""
        buttons = [(x, y) for y, row in enumerate(self.rows) for x, c in enumerate(row) if c == "O"]
        return bool(buttons) and all(b in self.boxes or b == (self.x, self.y) for b in buttons)


class Moment(Struct, frozen=True, kw_only=True):
    """What an action led to: the next world, the result, the tile that was met, and words for a person."""

    world: World
    result: Result
    tile: str
    message: str

    @property
    def success(self) -> bool:
        """Whether the action did what it says."""
        return self.result in SUCCEEDED

    @property
    def denied(self) -> bool:
        """Whether the sandbox refused the action as unsafe."""
        return self.result == "denied"


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
        return _told(world, "waited", ".", "The level is complete.")
    now = replace(world, moves=world.moves + 1)
    match action:
        case "forward" | "backward":
            return _move(now, 1 if action == "forward" else -1)
        case "left" | "right":
            turned = (now.direction + (1 if action == "right" else -1)) % 4
            return _told(replace(now, direction=turned), "turned", ".", f"Facing {DIRECTIONS[turned]}.")
        case "look":
            tile, distance = look(now)
            return _told(now, "looked", tile, f"{TILES[tile].capitalize()} at {distance}.")
        case _:
            return _told(now, "waited", ".", "Waited.")


def look(world: World) -> tuple[str, int]:
    """The first tile ahead that is not floor, and how far away it is."""
    distance = 1
    while (tile := world.tile(world.ahead(distance))) == ".":
        distance += 1
    return tile, distance


def around(place: Place) -> list[Place]:
    """A place and its eight neighbours, row by row from the north."""
    return [(place[0] + dx, place[1] + dy) for dy in (-1, 0, 1) for dx in (-1, 0, 1)]


def view(world: World) -> tuple[str, ...]:
    """The 3×3 tiles around the robot, north above."""
    tiles = "".join(world.tile(place) for place in around((world.x, world.y)))
    return tiles[:3], tiles[3:6], tiles[6:]


def draw(world: World) -> str:
    """The world as text, the robot as an arrow."""
    lines = []
    for y in range(len(world.rows)):
        tiles = [world.tile((x, y)) for x in range(len(world.rows[y]))]
        if y == world.y:
            tiles[world.x] = "^>v<"[world.direction]
        lines.append("".join(tiles))
    return "\n".join(lines)


def to_dict(world: World) -> dict[str, Any]:
    """The world as plain JSON values."""
    plain: dict[str, Any] = msgspec.to_builtins(world)
    return plain


def from_dict(given: Mapping[str, Any]) -> World:
    """The world that `to_dict` wrote, or BadInput with the place of what is wrong."""
    try:
        return msgspec.convert(dict(given), World)
    except msgspec.ValidationError as error:
        raise BadInput(f"this is no RobotGrid world: {error}") from error


def _move(world: World, distance: int) -> Moment:
    place = world.ahead(distance)
    tile, here = world.tile(place), replace(world, x=place[0], y=place[1])
    match tile:
        case "#":
            return _told(world, "blocked", tile, "Blocked by a wall.")
        case "~":
            return _told(world, "denied", tile, "SANDBOX DENIED: lava.")
        case "B":
            return _push(world, here, world.ahead(2 * distance))
        case "K":
            taken = replace(here, keys=here.keys + 1, rows=_cleared(here.rows, place))
            return _told(taken, "key", tile, "Collected a key.")
        case "D":
            return _pass_door(world, here)
        case "G":
            return _told(replace(here, done=True), "goal", tile, "Level complete!")
        case _:
            return _told(here, "moved", tile, f"Moved to {place[0]}, {place[1]}.")


def _push(world: World, here: World, beyond: Place) -> Moment:
    """A box goes only onto bare floor or a button, so a key, a door or the goal is never lost below it."""
    if world.tile(beyond) not in (".", "O"):
        return _told(world, "blocked", "B", "The box does not move.")
    boxes = tuple(sorted({*world.boxes, beyond} - {(here.x, here.y)}))
    return _told(replace(here, boxes=boxes), "pushed", "B", "Pushed the box.")


def _pass_door(world: World, here: World) -> Moment:
    if world.is_open:
        return _told(here, "moved", "D", "The door is held open.")
    if not world.keys:
        return _told(world, "locked", "D", "The door is locked; find a key.")
    rows, opened = _cleared(here.rows, (here.x, here.y)), here.doors_opened + 1
    after = replace(here, rows=rows, keys=here.keys - 1, doors_opened=opened)
    return _told(after, "moved", "D", "Opened the door with a key.")


def _told(world: World, result: Result, tile: str, message: str) -> Moment:
    return Moment(world=world, result=result, tile=tile, message=message)


def _cleared(rows: tuple[str, ...], place: Place) -> tuple[str, ...]:
    x, y = place
    return (*rows[:y], f"{rows[y][:x]}.{rows[y][x + 1 :]}", *rows[y + 1 :])


def _places(rows: tuple[str, ...], tile: str) -> tuple[Place, ...]:
    return tuple((x, y) for y, row in enumerate(rows) for x, c in enumerate(row) if c == tile)


def reward(moment: Moment) -> float:
    """What an action is worth: the goal 10, a key 1, any success 0.1, a failure -0.1, a denial -1."""
    special = {"goal": 10.0, "key": 1.0, "denied": -1.0}
    return special.get(moment.result, 0.1 if moment.success else -0.1)
