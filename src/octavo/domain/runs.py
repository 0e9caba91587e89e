"""A robot's runs as memories, pure: RLDS steps made whole, in words, and what can be learned of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from octavo.domain import episodes, privacy
from octavo.domain.policy import PrivacyPolicy
from octavo.errors import BadInput

CATEGORY = "rlds"
SCHEMA, FIRST_SCHEMA = "1.1", "1.0"
_STRICT = PrivacyPolicy(phone="mask", email="mask")
_MOST_STEPS = 100_000


class Outcome(Struct, frozen=True, kw_only=True):
    """What a command led to: the tile ahead, whether a key was in hand, and the result."""

    command: str
    tile: str
    holding: bool
    result: str

    @property
    def condition(self) -> str:
        """What it depends on, in words."""
        return f"{self.command} onto {self.tile} {'with' if self.holding else 'without'} a key"

    @property
    def text(self) -> str:
        """The outcome in words; a question about the condition shares all but the last."""
        return f"{self.condition}: {self.result}"


def fields_of(metadata: Any, steps: Any) -> dict[str, Any]:
    """What an episode {metadata, steps} is as a memory, or BadInput; personal data makes it not public."""
    if not isinstance(metadata, Mapping) or not isinstance(steps, Sequence) or not metadata.get("episode_id"):
        raise BadInput("an RLDS episode needs metadata with an episode_id, and steps")
    if len(steps) > _MOST_STEPS or not all(isinstance(step, Mapping) for step in steps):
        raise BadInput(f"an RLDS episode has at most {_MOST_STEPS} steps, each an object")
    data: dict[str, Any] = {"metadata": dict(metadata), "steps": complete(steps)}
    data["metadata"].setdefault("schema_version", FIRST_SCHEMA)
    if privacy.clean_data(data, _STRICT)[1]:
        data["metadata"]["public"] = False
    return {
        "text": summary(metadata, steps),
        "kind": "episode",
        "category": CATEGORY,
        "id": str(metadata["episode_id"]),
        "at": episodes.moment(metadata.get("start_time")),
        "data": data,
    }


def complete(
    steps: Sequence[Mapping[str, Any]], observed: Mapping[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The steps with RLDS' own marks and a closing step that only observes, where missing."""
    marks: dict[str, Any] = {"is_first": False, "is_last": False, "is_terminal": False}
    marked = [
        {**marks, "is_first": not place, "discount": 1.0 - bool(step.get("done")), **step}
        for place, step in enumerate(steps)
    ]
    if not marked or marked[-1]["is_last"]:
        return marked
    last, done = marked[-1], bool(marked[-1].get("done"))
    # What an older record observes at its end is the state that its last action led to.
    actual = part_of(last, "world_model").get("actual_state")
    seen = observed or ({"robot_state": actual} if actual else part_of(last, "observation"))
    marks |= {"is_last": True, "is_terminal": done, "discount": 1.0 - done}
    when = {"frame_id": len(marked), "timestamp_us": last.get("timestamp_us")}
    what = {"action": None, "observation": dict(seen), "world_model": None}
    return [*marked, {**marks, **when, **what, "reward": 0.0, "done": done, "info": {}}]


def steps_of(data: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The steps that a memory's data holds; whatever else stands there is none."""
    steps = data.get("steps")
    return [step for step in steps if isinstance(step, Mapping)] if isinstance(steps, list | tuple) else []


def command_of(step: Mapping[str, Any]) -> str:
    """The command of a step; a closing step has none."""
    return str(part_of(step, "action").get("command") or "")


def tile_ahead(step: Mapping[str, Any]) -> str:
    """The name of the tile directly ahead when the action was chosen; floor up to where the look ends."""
    ahead = part_of(part_of(step, "observation"), "look_ahead")
    if "tile" not in ahead:
        return "unknown"
    return str(ahead["tile"]) if ahead.get("distance") == 1 else "floor"


def is_denied(step: Mapping[str, Any]) -> bool:
    """Whether the sandbox refused the step's action."""
    return bool(part_of(step, "info").get("sandbox_denied"))


def outcome_of(step: Mapping[str, Any]) -> Outcome | None:
    """What moving forward led to, if the step says enough to learn from."""
    tile = tile_ahead(step)
    result = "denied" if is_denied(step) else part_of(step, "info").get("result")
    if command_of(step) != "forward" or tile == "unknown" or not isinstance(result, str):
        return None
    holding = bool(part_of(part_of(step, "observation"), "robot_state").get("keys"))
    return Outcome(command="forward", tile=tile, holding=holding, result=result)


def summary(metadata: Mapping[str, Any], steps: Sequence[Mapping[str, Any]]) -> str:
    """An episode in words, so that it can be recalled: the level, how it ended, and each outcome once."""
    outcomes = dict.fromkeys(o.text for step in steps if (o := outcome_of(step)) is not None)
    ended = "succeeded" if metadata.get("success") else "failed"
    head = f"{metadata.get('level_name') or metadata.get('level_id') or 'episode'}: {ended}"
    moves = f"{metadata.get('total_moves', len(steps))} moves, {metadata.get('sandbox_denials', 0)} denials"
    return "; ".join([f"{head} after {moves}", *outcomes])


def number_of(step: Mapping[str, Any], name: str) -> float:
    """A part of a step that should be a number; whatever else stands there is none."""
    part = step.get(name)
    return float(part) if isinstance(part, int | float) else 0.0


def part_of(step: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """A part of a step that should be an object; whatever else stands there is empty."""
    part = step.get(name)
    return part if isinstance(part, Mapping) else {}
