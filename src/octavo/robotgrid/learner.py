"""A robot that learns: it remembers only through Octavo, as RLDS episodes, and plans over what it recalls."""

from __future__ import annotations

import random
import secrets
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from msgspec.structs import replace

from octavo.documents.brain import FilesystemMemory
from octavo.domain import runs
from octavo.domain.memory import Layer
from octavo.domain.records import shape_of
from octavo.domain.runs import Outcome
from octavo.robotgrid import world as grid
from octavo.robotgrid.levels import Level
from octavo.robotgrid.world import ACTIONS, DIRECTIONS, REWARDS, TILES, Action, Place, World

_RECALLED = 8
_CURIOUS = 0.3
_TURNS: tuple[Action, ...] = ("left", "right")


class Learner:
    """Plays levels; between them nothing stays but what its memory keeps."""

    def __init__(
        self,
        memory: FilesystemMemory | None,
        *,
        levels: Sequence[Layer] = ("semantic", "procedural"),
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
        began, world = self._clock(), level.start
        tiles, steps = dict[Place, str](), list[dict[str, Any]]()
        while not world.done and world.moves < max_steps:
            tiles |= {place: world.tile(place) for place in grid.around((world.x, world.y))}
            action = self._choose(world, tiles)
            step, after = self._done(world, action)
            passed = self._clock() - began
            steps.append({"timestamp_us": int(passed.total_seconds() * 1_000_000), **step})
            if action == "forward" and self._notes:
                self._known[world.tile(world.ahead()), world.keys > 0] = (step["info"]["result"], 1.0)
            world = after
        episode = _episode(level, steps, world, began)
        if self._memory is not None:
            self._memory.save_episode(episode)
            self._memory.use(list(self._used))
        return episode

    def _done(self, world: World, action: str) -> tuple[dict[str, Any], World]:
        """An action as a step, with what was predicted before it and what came of it, and the world then."""
        predicted, confidence = self.predict(world, action)
        moment = grid.act(world, action)
        actual = grid.state_of(moment.world)
        step = {
            "frame_id": world.moves,
            "observation": grid.observation_of(world),
            "action": {"command": action, "intent": "navigate", "params": {}, "raw_input": action},
            "world_model": {
                "predicted_state": predicted,
                "actual_state": actual,
                "latent_tokens": [],
                "surprise": surprise(predicted, actual),
                "belief_confidence": round(confidence, 4),
            },
            "reward": REWARDS[moment.result],
            "done": moment.world.done,
            "info": grid.told(moment),
        }
        return step, moment.world

    def believe(self, tile: str, holding: bool) -> tuple[str | None, float]:
        """What going forward onto a tile leads to, and how sure that is; None if nobody knows.

        It is recalled when it first matters in an episode.
        """
        if (tile, holding) not in self._known:
            self._known[tile, holding] = self._recalled(TILES[tile], holding)
        return self._known[tile, holding]

    def predict(self, world: World, action: str) -> tuple[dict[str, Any], float]:
        """The robot's state after an action as it is believed before it is done, and how sure that is."""
        state = grid.state_of(world)
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
        votes, asked = Counter[str](), Outcome(command="forward", tile=tile, holding=holding, result="")
        for entry in self._memory.read_memory(asked.condition, self._levels, k=_RECALLED).mixed:
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
        queue: deque[tuple[World, Action | None]] = deque([(world, None)])
        reached = {world}
        while queue:
            here, first = queue.popleft()
            ahead = here.ahead()
            after = {turn: replace(here, direction=grid.turned(here.direction, turn)) for turn in _TURNS}
            if ahead in tiles:
                result = self.believe(tiles[ahead], holding)[0] or "untried"
                if result in ("goal", "untried") or (result == "key" and not holding):
                    ways.setdefault(result, first or "forward")
                if result == "moved" or (result == "key" and holding):
                    after["forward"] = replace(here, x=ahead[0], y=ahead[1])
                    if any(near not in tiles for near in grid.around(ahead)):
                        ways.setdefault("unseen", first or "forward")
            for action, spot in after.items():
                if spot not in reached:
                    reached.add(spot)
                    queue.append((spot, first or action))
        return ways


def surprise(predicted: Mapping[str, Any], actual: Mapping[str, Any]) -> float:
    """How wrong a prediction was: half for the place, the rest for direction and keys."""
    wrong = {name for name in actual if predicted[name] != actual[name]}
    return round(0.5 * bool(wrong & {"x", "y"}) + 0.3 * ("direction" in wrong) + 0.2 * ("keys" in wrong), 2)


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


def _episode(level: Level, steps: Sequence[Mapping[str, Any]], end: World, began: datetime) -> dict[str, Any]:
    """A play as its episode: metadata, and the steps with one closing step that only observes."""
    results = [step["info"]["result"] for step in steps]
    passed = timedelta(microseconds=steps[-1]["timestamp_us"] if steps else 0)
    metadata = {
        "schema_version": runs.SCHEMA,
        "episode_id": f"robotgrid_{int(began.timestamp())}_{secrets.token_hex(4)}",
        "robot_id": "robot",
        "robot_model": "robotgrid",
        "capabilities": list(ACTIONS),
        "level_id": level.id,
        "level_name": level.name,
        "level_difficulty": level.difficulty,
        "initial_state": grid.state_of(level.start),
        "final_state": grid.state_of(end),
        "success": end.done,
        "total_moves": len(steps),
        "sandbox_denials": results.count("denied"),
        "behaviors_used": [],
        "keys_collected": results.count("key"),
        "doors_opened": "".join(level.start.rows).count("D") - "".join(end.rows).count("D"),
        "start_time": began.isoformat(),
        "end_time": (began + passed).isoformat(),
        "duration_s": passed.total_seconds(),
        "source": "robotgrid",
        "session_id": None,
    }
    return {"metadata": metadata, "steps": runs.complete(steps, grid.observation_of(end))}
