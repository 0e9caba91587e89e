"""What a robot hands to others: skills and behaviours as files, runs as RLDS or for Minari, and the way in.

Approval does not travel. Minari needs the extra `minari`.
"""

from __future__ import annotations

import hashlib
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from octavo.documents import trees
from octavo.documents.transfer import Exported, Imported, Tally
from octavo.domain import mirror, mirror_places, runs, strict_json
from octavo.domain.memory import Memory
from octavo.domain.mirror_places import BEHAVIOR, Place
from octavo.engine.account import Account
from octavo.engine.surface import fitted
from octavo.errors import BadInput, OctavoError, Unavailable

_FILE, _TAUGHT = "SKILL.md", mirror.TAUGHT.path
_SKILL = Place(path=f"semantic/skills/x/{_FILE}", form="skill", kind="skill")
_EPISODE = re.compile(r"(^|/)(metadata|robotgrid_[^/]*)\.json$")
_FILES = ("metadata.json", "steps.jsonl")
_RUN = Place(path=_FILES[0], form="run", kind="episode")
_STATE = ("x", "y", "direction", "keys")
_DIRECTIONS = ("north", "east", "south", "west")


def export_skills(account: Account, path: Path) -> Exported:
    """Write every skill as a folder with its SKILL.md, and the behaviours as one file; rules stay here."""
    everything, named = account.memories(kind="skill"), defaultdict[str, list[Memory]](list)
    taught = [memory for memory in everything if memory.category == BEHAVIOR]
    for place, some in mirror_places.grouped(everything).values():
        if place.form == "skill":
            named["/".join(place.path.split("/")[-2:])] += some
    files: dict[str, bytes] = {}
    for name, some in named.items():
        for file, shown in mirror_places.apart(replace(_SKILL, path=name), some).items():
            files[file] = mirror.render(_SKILL, file, shown, {})
    counts = {"skill": len(files), BEHAVIOR: len(taught)}
    rules = ["rule"] * (len(everything) - sum(counts.values()))
    if taught:
        uses = account.uses(*(memory.id for memory in taught))
        files[_TAUGHT] = mirror.render(mirror.TAUGHT, _TAUGHT, taught, uses)
    return trees.export(account, "skills", path, files, counts=counts, left_out=rules)


def import_skills(account: Account, path: Path) -> Imported:
    """Take skills in as learned ones; for each that was approved elsewhere a proposal asks for it here."""
    files, links = trees.files_below(path)
    tally, items, approved = Tally(left_out=links), list[dict[str, Any]](), list[str]()
    for name in files:
        try:
            data = trees.read_bytes(path / name)
            if Path(name).name == _FILE:
                topic = f"{mirror_places.SKILLS}{Path(name).parent.name or path.name}"
                (one,) = mirror.read(_SKILL, name, data)
                items.append({**mirror.fields_of(_SKILL, one.said, None), "topic": topic})
                approved += [topic] * (b"octavo-approved:" in data.partition(b"\n---")[0])
            elif Path(name).name == _TAUGHT:
                found = mirror.read(mirror.TAUGHT, name, data)
                items += [mirror.fields_of(mirror.TAUGHT, one.said, None, one.first) for one in found]
        except OctavoError as error:
            tally.leave_out(name, error.message)
    learner = account.intake.as_agent()
    verdicts = learner.remember_many([{**item, "source": "operator"} for item in items]) if items else []
    for item, verdict in zip(items, verdicts, strict=True):
        is_new = tally.note(item["topic"], None, verdict)
        if is_new and item["topic"] in approved and verdict.memory:
            learner.promote(verdict.memory.id)
    return tally.imported(account, "skills")


def export_rlds(account: Account, path: str | Path, **choice: Any) -> dict[str, Any]:
    """Write the chosen episodes below a folder, one directory each, and `dataset.json` that proves them."""
    chosen = choose(account, **choice)
    files = {f"{m.id}/{name}": mirror.render(_RUN, name, [m], {}) for m in chosen for name in _FILES}
    manifest = {
        "schema_version": runs.SCHEMA,
        "episodes": len(chosen),
        "steps": sum(len(memory.data["steps"]) for memory in chosen),
        "sha256": hashlib.sha256(b"".join(files.values())).hexdigest(),
        "filter": {name: value for name, value in choice.items() if value is not None},
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
    kept = [memory.data["steps"] for memory in choose(account, **choice)]
    kept = [steps for steps in kept if any(map(runs.command_of, steps))]
    if not kept:
        raise BadInput("no episode passes the filter", hint="loosen it, or play first")
    # A number in the set is a place in these lists.
    tiles = sorted({tile for steps in kept for step in steps for tile in _view(step)})
    commands = sorted({runs.command_of(step) for steps in kept for step in steps} - {""})
    buffers = []
    for number, steps in enumerate(kept):
        acts = [step for step in steps if runs.command_of(step)]
        states = np.array([_state(step) for step in steps], np.int64)
        views = np.array([[tiles.index(tile) for tile in _view(step)] for step in steps], np.int64)
        buffers.append(
            EpisodeBuffer(
                id=number,
                observations={"state": states, "view": views},
                actions=np.array([commands.index(runs.command_of(step)) for step in acts], np.int64),
                rewards=[runs.number_of(step, "reward") for step in acts],
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


def import_rlds(account: Account, path: str | Path) -> Imported:
    """Take in every episode below a path, of any layout; what is there already stays as it is."""
    root = Path(path)
    files, links = trees.files_below(root)
    files, tally = [name for name in files if _EPISODE.search(name)], Tally(left_out=links)
    if root.is_file():
        root, files = root.parent, [root.name]
    for name in files:
        try:
            verdict = account.remember(**runs.fields_of(*_read(root, name, tally)))
            tally.note(name, verdict.memory, verdict)
        except OctavoError as error:
            tally.leave_out(name, error.message.removeprefix(f"{root / name}, "))
    return tally.imported(account, "rlds")


@fitted
def choose(
    account: Account,
    *,
    success: bool | None = None,
    max_denials: int | None = None,
    min_reward: float | None = None,
    tags: Sequence[str] = (),
    public: bool | None = None,
) -> list[Memory]:
    """The episodes that are as they should be, oldest first; what is not said does not count."""
    return [
        m
        for m in account.memories(kind="episode", category=runs.CATEGORY)
        if (told := m.data["metadata"]) is not None
        and success in (None, bool(told.get("success")))
        and (max_denials is None or runs.number_of(told, "sandbox_denials") <= max_denials)
        and (min_reward is None or sum(runs.number_of(s, "reward") for s in m.data["steps"]) >= min_reward)
        and public in (None, bool(told.get("public", True)))
        and set(tags) <= set(m.tags)
    ]


def _read(root: Path, name: str, tally: Tally) -> tuple[Any, Any]:
    """Metadata and steps of an episode, in one file or beside each other; a bad line costs itself alone."""
    file = root / name
    told = trees.read_json(file)
    if file.name != "metadata.json":
        told = dict(told) if isinstance(told, Mapping) else {}
        steps = told.pop("steps", None) or []
        return {"episode_id": file.stem, **(runs.part_of(told, "metadata") or told)}, steps
    whole, steps = file.with_name("steps.jsonl"), []
    for part in [whole] if whole.is_file() else sorted((file.parent / "steps").glob("[0-9]*.jsonl")):
        for number, step in strict_json.lines_of(trees.read_bytes(part)):
            if isinstance(step, dict):
                steps.append(step)
            else:
                tally.leave_out(f"{part.relative_to(root).as_posix()}, line {number}", "it is no JSON object")
    return told, steps


def _view(step: Mapping[str, Any]) -> list[str]:
    """The nine tiles around the robot, row by row."""
    rows = runs.part_of(step, "observation").get("visible_tiles") or ()
    return [*(tile for row in rows for tile in row), *["unseen"] * 9][:9]


def _state(step: Mapping[str, Any]) -> list[int]:
    state = runs.part_of(runs.part_of(step, "observation"), "robot_state")
    return [_DIRECTIONS.index(v) if (v := state.get(k)) in _DIRECTIONS else int(v or 0) for k in _STATE]
