"""A robot that learns: it remembers only through Octavo, and plans by search over what it recalls."""

from __future__ import annotations

import random
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import msgspec

from octavo.documents.brain import FilesystemMemory
from octavo.domain import runs
from octavo.domain.patterns_found import Outcome, condition
from octavo.robotgrid import episodes
from octavo.robotgrid import world as grid
from octavo.robotgrid.levels import Level
from octavo.robotgrid.world import DIRECTIONS, STEPS, SUCCEEDED, TILES, Action, Place, World

_RECALLED = 8
_CURIOUS = 0.3
Spot = tuple[int, int, int]  # x, y, direction


class Beliefs:
    """What a robot believes of the world for one episode: recalled when it first matters, then gone."""

    def __init__(self, memory: FilesystemMemory | None, levels: Sequence[str]) -> None:
        self._memory, self._levels = memory, levels
        self.known: dict[tuple[str, bool], tuple[str | None, float]] = {}
        self.used: dict[str, None] = {}

    def result(self, tile: str, holding: bool) -> tuple[str | None, float]:
        """What going forward onto a tile leads to, and how sure that is; None if nobody knows."""
        if (tile, holding) not in self.known:
            self.known[tile, holding] = self._recalled(tile, holding)
        return self.known[tile, holding]

    def _recalled(self, tile: str, holding: bool) -> tuple[str | None, float]:
        if self._memory is None:
            return None, 0.0
        asked = condition("forward", TILES[tile], holding)
        votes = Counter[str]()
        for entry in self._memory.read_memory(asked, self._levels, k=_RECALLED).mixed:
            told = [o for o in outcomes_in(entry.data) if (o.tile, o.holding) == (TILES[tile], holding)]
            votes.update(outcome.result for outcome in told)
            self.used |= {entry.id: None} if told else {}
        best = max(votes, key=lambda result: (votes[result], result), default=None)
        return best, votes[best] / (votes.total() + 1) if best else 0.0


class Learner:
    """Plays levels; between them nothing stays but what its memory keeps."""

    def __init__(
        self,
        memory: FilesystemMemory | None,
        *,
        levels: Sequence[str] = ("semantic", "procedural"),
        robot_id: str = "robot",
        seed: int = 0,
        notes: bool = False,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._memory, self._levels, self._robot_id = memory, levels, robot_id
        self._chance = random.Random(seed)  # noqa: S311  # a game's dice keep no secret
        self._notes, self._clock = notes, clock or (lambda: datetime.now(UTC))

    def play(self, level: Level, *, max_steps: int = 100) -> dict[str, Any]:
        """Play one level to its end or to the limit, hand the RLDS episode to memory, and return it."""
        beliefs, began = Beliefs(self._memory, self._levels), self._clock()
        world, tiles, acted = level.start, dict[Place, str](), list[episodes.Acted]()
        while not world.done and world.moves < max_steps:
            tiles |= {(x, y): world.tile((x, y)) for x, y in grid.around((world.x, world.y))}
            action = self._choose(world, tiles, beliefs)
            predicted, confidence = predict(world, action, beliefs)
            moment = grid.act(world, action)
            acted.append((world, action, predicted, confidence, moment, self._clock()))
            if action == "forward" and self._notes:
                beliefs.known[world.tile(world.ahead()), world.keys > 0] = (moment.result, 1.0)
            world = moment.world
        episode = episodes.episode_of(level, self._robot_id, began, acted)
        if self._memory is not None:
            self._memory.save_episode(episode)
            self._memory.use(list(beliefs.used))
        return episode

    def _choose(self, world: World, tiles: Mapping[Place, str], beliefs: Beliefs) -> Action:
        """The first action towards what is believed best: the goal, a key, the unseen; else at random."""
        ways = _ways(world, tiles, beliefs)
        if "goal" in ways or "key" in ways:
            return ways.get("goal") or ways["key"]
        for wish, action in ways.items():  # the nearest first
            # Without notes an untried tile stays untried, so it must not be all the robot ever tries.
            if wish == "unseen" or self._notes or self._chance.random() < _CURIOUS:
                return action
        return self._chance.choice(("forward", "forward", "left", "right"))


def predict(world: World, action: str, beliefs: Beliefs) -> tuple[dict[str, Any], float]:
    """The robot's state after an action as it is believed before it is done, and how sure that is."""
    state = episodes.state_of(world)
    if action != "forward":
        turned = (world.direction + {"left": -1, "right": 1}.get(action, 0)) % 4
        return {**state, "direction": DIRECTIONS[turned]}, 1.0
    tile, (x, y) = world.tile(world.ahead()), world.ahead()
    result, confidence = beliefs.result(tile, world.keys > 0)
    if result is not None and result not in SUCCEEDED:
        return state, confidence
    keys = world.keys + (tile == "K") - (tile == "D")
    return {**state, "x": x, "y": y, "keys": max(keys, 0)}, confidence


def outcomes_in(data: Mapping[str, Any]) -> list[Outcome]:
    """The outcomes that a recalled memory tells of: a fact one, a skill or an episode many; others none."""
    outcomes = [o for step in runs.steps_of(data) if (o := runs.outcome_of(step)) is not None]
    many = data.get("outcomes")
    for told in (data.get("outcome"), *(many if isinstance(many, list | tuple) else ())):
        with suppress(msgspec.ValidationError):  # what somebody else's skill says may be anything
            outcomes.append(msgspec.convert(told, Outcome))
    return outcomes


def bring_skill(source: FilesystemMemory, target: FilesystemMemory) -> str:
    """Carry what one robot knows to another as a skill; learned there, approved by nobody."""
    facts = [m for m in source.account.memories(kind="fact") if "outcome" in m.data]
    lines = "\n".join(f"- {fact.text}" for fact in facts)
    text = f"# RobotGrid Skill\n\n## Capability\nMove through a grid to its goal.\n\n## Patterns\n{lines}\n"
    return target.register_skill("robotgrid", text, {"outcomes": [fact.data["outcome"] for fact in facts]})


def _ways(world: World, tiles: Mapping[Place, str], beliefs: Beliefs) -> dict[str, Action]:
    """For each thing worth reaching that is near, the first action of the shortest believed way to it."""
    holding = world.keys > 0
    ways: dict[str, Action] = {}
    begin: Spot = (world.x, world.y, world.direction)
    queue: deque[tuple[Spot, Action | None]] = deque([(begin, None)])
    reached = {begin}
    while queue:
        (x, y, facing), first = queue.popleft()
        place = (x + STEPS[facing][0], y + STEPS[facing][1])
        steps: list[tuple[Spot, Action]] = [((x, y, (facing - 1) % 4), "left")]
        steps.append(((x, y, (facing + 1) % 4), "right"))
        if place in tiles:
            result, _ = beliefs.result(tiles[place], holding)
            wish = "untried" if result is None else result
            if wish in ("goal", "untried") or (wish == "key" and not holding):
                ways.setdefault(wish, first or "forward")
            if result == "moved" or (result == "key" and holding):
                steps.append(((*place, facing), "forward"))
                if any(near not in tiles for near in grid.around(place)):
                    ways.setdefault("unseen", first or "forward")
        for spot, action in steps:
            if spot not in reached:
                reached.add(spot)
                queue.append((spot, first or action))
    return ways
