"""Levels: maps of our own, and generated ones that a search has solved before anybody gets them."""

from __future__ import annotations

import random
import tomllib
from collections import deque
from functools import cache, lru_cache
from importlib import resources

from msgspec import Struct
from msgspec.structs import replace

from octavo.errors import BadInput, NotFound
from octavo.robotgrid import world as grid
from octavo.robotgrid.world import Action, World

HARDEST = 20
_SIZE = 8  # of a generated map, in tiles each way
_SEARCHED = 40_000
_MOVES: tuple[Action, ...] = ("forward", "left", "right")


class Level(Struct, frozen=True, kw_only=True):
    """A level: its id, how hard it is, and its map."""

    id: str
    name: str
    difficulty: int
    map: str

    @property
    def start(self) -> World:
        """The world it begins with, always the same."""
        return grid.parse(self.map)

    @property
    def shortest(self) -> int:
        """The fewest actions that solve it; none if nothing does."""
        return len(solve(self.map) or ())


@cache
def builtin() -> dict[str, Level]:
    """The levels that come with the game, by id, easiest first."""
    told = tomllib.loads(resources.files("octavo.robotgrid").joinpath("levels.toml").read_text("utf-8"))
    return {id_: Level(id=id_, **row) for id_, row in told.items()}


def level(id_: str) -> Level:
    """A level by its id; `generated-<difficulty>-<seed>` names a generated one."""
    match id_.split("-"):
        case ["generated", difficulty, seed] if difficulty.isdecimal() and seed.isdecimal():
            return generate(int(difficulty), int(seed))
    if id_ not in builtin():
        hint = f"use one of {', '.join(builtin())}, or generated-<difficulty>-<seed>"
        raise NotFound(f"there is no level {id_!r}", hint=hint)
    return builtin()[id_]


def generate(difficulty: int, seed: int, *, tries: int = 300) -> Level:
    """A new level, the same for the same numbers; solved by search, its puzzle needed, or BadInput."""
    if not 1 <= difficulty <= HARDEST or seed < 0:
        hint = f"difficulty 1 to {HARDEST}, a seed of 0 or more"
        raise BadInput(f"no level of difficulty {difficulty}, seed {seed}", hint=hint)
    chance = random.Random(f"{difficulty}/{seed}/{_SIZE}")  # noqa: S311  # a game's dice keep no secret
    id_, name = f"generated-{difficulty}-{seed}", f"Generated {difficulty}/{seed}"
    for _ in range(tries):
        drawn = Level(id=id_, name=name, difficulty=difficulty, map=_drawn(difficulty, chance))
        if drawn.shortest >= _SIZE - 2 + difficulty // 3 and needs_puzzle(drawn):
            return drawn
    raise BadInput(f"{tries} maps were drawn and none needs its puzzle", hint="take another seed")


@lru_cache(maxsize=64)
def solve(map_: str) -> tuple[Action, ...] | None:
    """The fewest actions to the goal of a map, or None if there is no way that a search finds."""
    start = grid.parse(map_)
    reached = {start}
    queue: deque[tuple[World, tuple[Action, ...]]] = deque([(start, ())])
    while queue and len(reached) < _SEARCHED:
        here, way = queue.popleft()
        for action in _MOVES:
            after = replace(grid.act(here, action).world, moves=0)
            if after.done:
                return (*way, action)
            if after not in reached:
                reached.add(after)
                queue.append((after, (*way, action)))
    return None


def needs_puzzle(level: Level) -> bool:
    """Whether each thing on the map that makes a puzzle must be dealt with to reach the goal."""
    if any(tile in level.map and solve(level.map.replace(tile, "#")) for tile in "DB"):
        return False
    return "~" not in level.map or level.shortest > len(solve(level.map.replace("~", ".")) or ())


def _drawn(difficulty: int, chance: random.Random) -> str:
    """A map at random: a wall with its door across it, then everything else on free floor."""
    cells = {(x, y): "." for x in range(1, _SIZE - 1) for y in range(1, _SIZE - 1)}
    has_door, has_box = difficulty in (4, 5, 6, 9, 10), difficulty > 10
    lava = 0.2 if 7 <= difficulty <= 10 else 0.1 if difficulty > 15 else 0.0
    near, far = list(cells), list(cells)
    if has_door or has_box:
        cut = chance.randrange(3, _SIZE - 2)
        cells |= {(x, cut): "#" for x in range(1, _SIZE - 1)}
        cells[chance.randrange(1, _SIZE - 1), cut] = "D"
        near, far = [c for c in cells if c[1] < cut], [c for c in cells if c[1] > cut]
    chance.shuffle(near)
    chance.shuffle(far)
    cells[near.pop()] = "S"
    cells[next(c for c in far if cells[c] == ".")] = "G"
    for tile in "K" * has_door + "BO" * has_box:
        cells[near.pop()] = tile
    for tile, share in (("#", 0.12 if difficulty < 4 else 0.06), ("~", lava)):
        free = [c for c in cells if cells[c] == "."]
        for cell in chance.sample(free, int(len(free) * share)):
            cells[cell] = tile
    rows = ("".join(cells.get((x, y), "#") for x in range(_SIZE)) for y in range(_SIZE))
    return "\n".join(rows)
