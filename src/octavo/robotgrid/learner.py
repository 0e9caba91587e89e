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
from octavo.domain.records import shape_of
from octavo.robotgrid import episodes
from octavo.robotgrid import world as grid
from octavo.robotgrid.levels import Level
from octavo.robotgrid.world import DIRECTIONS, REWARDS, STEPS, TILES, Action, Place, World

_RECALLED = 8
_CURIOUS = 0.3


class Learner:
    """Plays levels; between them nothing stays but what its memory keeps."""

    def __init__(
        self,
        memory: FilesystemMemory | None,
        *,
        levels: Sequence[str] = ("semantic", "procedural"),
        seed: int = 0,
        notes: bool = False,
        clock: Callable[[], datetime] | None = None,
    ) -> None:
        self._memory, self._levels, self._notes = memory, levels, notes
        self._chance = random.Random(seed)  # noqa: S311  # a game's dice keep no secret
        self._clock = clock or (lambda: datetime.now(UTC))
        self._known: dict[tuple[str, bool], tuple[str | None, float]] = {}
        self._used: dict[str, None] = {}

    def play(self, level: Level, *, max_steps: int = 100) -> dict[str, Any]:
        """Play one level to its end or to the limit, hand the RLDS episode to memory, and return it."""
        self._known, self._used = {}, {}
        began = ended = self._clock()
        world, tiles, steps = level.start, dict[Place, str](), list[dict[str, Any]]()
        while not world.done and world.moves < max_steps:
            tiles |= {place: world.tile(place) for place in grid.around((world.x, world.y))}
            action = self._choose(world, tiles)
            predicted, confidence = self.predict(world, action)
            moment = grid.act(world, action)
            ended = self._clock()
            steps.append(episodes.step_of(world, action, predicted, confidence, moment, ended - began))
            if action == "forward" and self._notes:
                self._known[world.tile(world.ahead()), world.keys > 0] = (moment.result, 1.0)
            world = moment.world
        episode = episodes.episode_of(level, steps, world, began, ended)
        if self._memory is not None:
            self._memory.save_episode(episode)
            self._memory.use(list(self._used))
        return episode

    def believe(self, tile: str, holding: bool) -> tuple[str | None, float]:
        """What going forward onto a tile leads to, and how sure that is; None if nobody knows.

        It is recalled when it first matters in an episode.
        """
        if (tile, holding) not in self._known:
            self._known[tile, holding] = self._recalled(TILES[tile], holding)
        return self._known[tile, holding]

    def predict(self, world: World, action: str) -> tuple[dict[str, Any], float]:
        """The robot's state after an action as it is believed before it is done, and how sure that is."""
        state = episodes.state_of(world)
        if action != "forward":
            return {**state, "direction": DIRECTIONS[grid.turned(world.direction, action)]}, 1.0
        tile, (x, y) = world.tile(world.ahead()), world.ahead()
        result, confidence = self.believe(tile, world.keys > 0)
        if result is not None and REWARDS.get(result, 0) <= 0:
            return state, confidence
        keys = world.keys + (tile == "K") - (tile == "D")
        return {**state, "x": x, "y": y, "keys": max(keys, 0)}, confidence

    def _recalled(self, tile: str, holding: bool) -> tuple[str | None, float]:
        if self._memory is None:
            return None, 0.0
        votes, asked = Counter[str](), condition("forward", tile, holding)
        for entry in self._memory.read_memory(asked, self._levels, k=_RECALLED).mixed:
            told = [o.result for o in outcomes_in(entry.data) if (o.tile, o.holding) == (tile, holding)]
            votes.update(told)
            self._used |= {entry.id: None} if told else {}
        best = max(votes, key=lambda result: (votes[result], result), default=None)
        return best, votes[best] / (votes.total() + 1) if best else 0.0

    def _choose(self, world: World, tiles: Mapping[Place, str]) -> Action:
        """The first action towards what is believed best: the goal, a key, the unseen; else at random."""
        ways = self._ways(world, tiles)
        if "goal" in ways or "key" in ways:
            return ways.get("goal") or ways["key"]
        for wish, action in ways.items():  # the nearest first
            # Without notes an untried tile stays untried, so it must not be all the robot ever tries.
            if wish == "unseen" or self._notes or self._chance.random() < _CURIOUS:
                return action
        return self._chance.choice(("forward", "forward", "left", "right"))

    def _ways(self, world: World, tiles: Mapping[Place, str]) -> dict[str, Action]:
        """For each thing worth reaching that is near, the first action of the shortest believed way to it."""
        holding, ways = world.keys > 0, dict[str, Action]()
        begin = (world.x, world.y, world.direction)
        queue: deque[tuple[tuple[int, int, int], Action | None]] = deque([(begin, None)])
        reached = {begin}
        while queue:
            (x, y, facing), first = queue.popleft()
            ahead = (x + STEPS[facing][0], y + STEPS[facing][1])
            after: dict[Action, tuple[int, int, int]] = {
                "left": (x, y, grid.turned(facing, "left")),
                "right": (x, y, grid.turned(facing, "right")),
            }
            if ahead in tiles:
                result = self.believe(tiles[ahead], holding)[0] or "untried"
                if result in ("goal", "untried") or (result == "key" and not holding):
                    ways.setdefault(result, first or "forward")
                if result == "moved" or (result == "key" and holding):
                    after["forward"] = (*ahead, facing)
                    if any(near not in tiles for near in grid.around(ahead)):
                        ways.setdefault("unseen", first or "forward")
            for action, spot in after.items():
                if spot not in reached:
                    reached.add(spot)
                    queue.append((spot, first or action))
        return ways


def outcomes_in(data: Mapping[str, Any]) -> list[Outcome]:
    """The outcomes that a recalled memory tells of: a fact one, a skill or an episode many; others none."""
    outcomes = [o for step in runs.steps_of(data) if (o := runs.outcome_of(step)) is not None]
    many = data.get("outcomes")
    for told in (data.get("outcome"), *(many if isinstance(many, list | tuple) else ())):
        with suppress(msgspec.ValidationError):  # what somebody else's skill says may be anything
            outcomes.append(msgspec.convert(told, shape_of(Outcome)))
    return outcomes


def bring_skill(source: FilesystemMemory, target: FilesystemMemory) -> str:
    """Carry what one robot knows to another as a skill; learned there, approved by nobody."""
    facts = [m for m in source.account.memories(kind="fact") if "outcome" in m.data]
    lines = "\n".join(f"- {fact.text}" for fact in facts)
    text = f"# RobotGrid Skill\n\n## Capability\nMove through a grid to its goal.\n\n## Patterns\n{lines}\n"
    return target.register_skill("robotgrid", text, {"outcomes": [fact.data["outcome"] for fact in facts]})
