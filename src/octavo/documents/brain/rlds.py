"""RLDS episodes: read in three layouts, kept as memories, written as a curated set with a manifest, or for
Minari (which needs the extra `minari`)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from octavo.documents import trees
from octavo.documents.transfer import Imported, Tally
from octavo.domain import mirror, runs
from octavo.domain.memory import Memory
from octavo.domain.mirror_places import Place
from octavo.domain.records import shape_of
from octavo.engine.account import Account
from octavo.errors import BadFile, BadInput, OctavoError, Unavailable

_EPISODE = re.compile(r"(^|/)(metadata|robotgrid_[^/]*)\.json$")
_FILES = ("metadata.json", "steps.jsonl")
_RUN = Place(path=_FILES[0], form="run", kind="episode")
_STATE = ("x", "y", "direction", "keys")
_DIRECTIONS = ("north", "east", "south", "west")


class Choice(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Which episodes a curated set takes; None leaves a condition out."""

    success: bool | None = None
    max_denials: int | None = None
    min_reward: float | None = None
    tags: tuple[str, ...] = ()
    public: bool | None = None

    def takes(self, memory: Memory) -> bool:
        """Whether an episode belongs to the set."""
        metadata = memory.data["metadata"]
        denials = runs.number_of(metadata.get("sandbox_denials"))
        return (
            (self.success is None or bool(metadata.get("success")) == self.success)
            and (self.max_denials is None or denials <= self.max_denials)
            and (self.min_reward is None or runs.reward_of(memory.data["steps"]) >= self.min_reward)
            and (self.public is None or bool(metadata.get("public", True)) == self.public)
            and set(self.tags) <= set(memory.tags)
        )


def export(account: Account, path: str | Path, **choice: Any) -> dict[str, Any]:
    """Write the chosen episodes below a folder, one directory each, and `dataset.json` that proves them."""
    chosen, rule = _chosen(account, choice)
    files = {f"{m.id}/{name}": mirror.render(_RUN, name, [m], {}) for m in chosen for name in _FILES}
    manifest = {
        "schema_version": runs.SCHEMA,
        "episodes": len(chosen),
        "steps": sum(len(memory.data["steps"]) for memory in chosen),
        "sha256": hashlib.sha256(b"".join(files.values())).hexdigest(),
        "filter": rule,
    }
    trees.write_all(Path(path), {**files, "dataset.json": trees.json_bytes(manifest)})
    return manifest


def export_minari(account: Account, dataset_id: str | Path, **choice: Any) -> dict[str, Any]:
    """Write the chosen episodes as a data set where Minari keeps its own."""
    try:
        import minari  # type: ignore[import-untyped]  # it brings no types
        import numpy as np
        from gymnasium import spaces
        from minari.data_collector import EpisodeBuffer  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise Unavailable(f"{error.name} is not installed", hint="pip install 'octavo[minari]'") from error
    kept = [memory.data["steps"] for memory in _chosen(account, choice)[0]]
    kept = [steps for steps in kept if any(map(runs.command_of, steps))]
    if not kept:
        raise BadInput("no episode passes the filter", hint="loosen it, or play first")
    # A number in the set is a place in these lists; what a step does not show is behind the last tile.
    tiles = sorted({tile for steps in kept for step in steps for tile in _view(step)})
    commands = sorted({runs.command_of(step) for steps in kept for step in steps} - {""})
    buffers = []
    for number, steps in enumerate(kept):
        acts = [step for step in steps if runs.command_of(step)]
        views = [[tiles.index(tile) for tile in _view(step)] + [len(tiles)] * 9 for step in steps]
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations={
                    "state": np.array([_state(step) for step in steps], np.int64),
                    "view": np.array([view[:9] for view in views], np.int64),
                },
                actions=np.array([commands.index(runs.command_of(step)) for step in acts], np.int64),
                rewards=[float(step.get("reward") or 0.0) for step in acts],
                terminations=[bool(step.get("done")) for step in acts],
                truncations=[*[False] * (len(acts) - 1), not acts[-1].get("done")],
            )
        )
    state, view = spaces.Box(-1, 2**31, (len(_STATE),), np.int64), spaces.Box(0, len(tiles), (9,), np.int64)
    made = minari.create_dataset_from_buffers(
        dataset_id=str(dataset_id),
        buffer=buffers,
        action_space=spaces.Discrete(len(commands)),
        observation_space=spaces.Dict({"state": state, "view": view}),
        algorithm_name="octavo",
        description=f"tiles: {', '.join(tiles)}; actions: {', '.join(commands)}",
        author=account.name,
        author_email="not given",  # Minari warns of what nobody names
        code_permalink="not given",
    )
    return {"dataset": str(dataset_id), "episodes": int(made.total_episodes), "steps": int(made.total_steps)}


def import_(account: Account, path: str | Path) -> Imported:
    """Take in every episode below a path, of any layout; what is there already stays as it is."""
    root = Path(path)
    files, links = trees.files_below(root)
    files, tally = [name for name in files if _EPISODE.search(name)], Tally(left_out=links)
    if root.is_file():
        root, files = root.parent, [root.name]
    for name in files:
        try:
            verdict = account.remember(**runs.fields_of(*_read(root, name, tally)))
        except OctavoError as error:
            tally.leave_out(name, error.message.removeprefix(f"{root / name}, "))
        else:
            tally.note(name, verdict.memory, verdict)
    return tally.imported(account, "rlds")


def _chosen(account: Account, choice: Mapping[str, Any]) -> tuple[list[Memory], Any]:
    """The episodes that are chosen, oldest first, and by what; BadInput with what there is to choose."""
    try:
        rule = msgspec.convert(choice, shape_of(Choice), strict=True)
    except msgspec.ValidationError as error:
        hint = f"choose by {', '.join(Choice.__struct_fields__)}"
        raise BadInput(f"episodes cannot be chosen so: {error}", hint=hint) from error
    episodes = account.memories(kind="episode", category=runs.CATEGORY)
    return [memory for memory in episodes if rule.takes(memory)], msgspec.to_builtins(rule)


def _read(root: Path, name: str, tally: Tally) -> tuple[Any, Any]:
    """Metadata and steps of an episode: one file of both, or one beside steps.jsonl or steps/*.jsonl.

    One bad line costs one line and is named.
    """
    file = root / name
    told = trees.read_json(file)
    if file.name != "metadata.json":
        told = dict(told) if isinstance(told, Mapping) else {}
        steps = told.pop("steps", None) or []
        return {"episode_id": file.stem, **(runs.part_of(told, "metadata") or told)}, steps
    whole, steps = file.with_name("steps.jsonl"), []
    for part in [whole] if whole.is_file() else sorted((file.parent / "steps").glob("[0-9]*.jsonl")):
        for number, step in trees.json_lines(trees.read_bytes(part)):
            if isinstance(step, dict):
                steps.append(step)
            else:
                why = step.message if isinstance(step, BadFile) else "it is no JSON object"
                tally.leave_out(f"{part.relative_to(root).as_posix()}, line {number}", why)
    return told, steps


def _view(step: Mapping[str, Any]) -> list[str]:
    """The tiles around the robot, row by row."""
    rows = runs.part_of(step, "observation").get("visible_tiles") or ()
    return [tile for row in rows for tile in row]


def _state(step: Mapping[str, Any]) -> list[int]:
    state = runs.part_of(runs.part_of(step, "observation"), "robot_state")
    return [_DIRECTIONS.index(v) if (v := state.get(k)) in _DIRECTIONS else int(v or 0) for k in _STATE]
