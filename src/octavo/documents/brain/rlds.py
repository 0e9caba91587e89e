"""RLDS episodes: read in three layouts, kept as memories, written as a curated set with a manifest."""

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
from octavo.domain import runs
from octavo.domain.memory import Memory
from octavo.engine.account import Account
from octavo.errors import BadInput, OctavoError

_EPISODE = re.compile(r"(^|/)(metadata|robotgrid_[^/]*)\.json$")


class Filter(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
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
    """Write the episodes that a Filter takes below a folder, one directory each, and `dataset.json` that
    proves them."""
    folder, rule = Path(path), filter_of(choice)
    digest, episodes, steps = hashlib.sha256(), 0, 0
    for memory in chosen(account, rule):
        lines = b"".join(msgspec.json.encode(step) + b"\n" for step in memory.data["steps"])
        head = msgspec.json.format(msgspec.json.encode(memory.data["metadata"]), indent=2) + b"\n"
        trees.write_bytes(trees.inside(folder, f"{memory.id}/metadata.json"), head)
        trees.write_bytes(trees.inside(folder, f"{memory.id}/steps.jsonl"), lines)
        digest.update(head + lines)
        episodes, steps = episodes + 1, steps + len(memory.data["steps"])
    manifest = {
        "schema_version": runs.SCHEMA,
        "episodes": episodes,
        "steps": steps,
        "sha256": digest.hexdigest(),
        "filter": msgspec.to_builtins(rule),
    }
    trees.write_json(folder / "dataset.json", manifest)
    return manifest


def chosen(account: Account, rule: Filter) -> list[Memory]:
    """The episodes that a filter takes, oldest first."""
    return [m for m in account.memories(kind="episode", category=runs.CATEGORY) if rule.takes(m)]


def filter_of(choice: Mapping[str, Any]) -> Filter:
    """The filter that some choices make, or BadInput with what there is to choose."""
    try:
        return msgspec.convert(choice, Filter, strict=True)
    except msgspec.ValidationError as error:
        hint = f"choose by {', '.join(Filter.__struct_fields__)}"
        raise BadInput(f"episodes cannot be chosen so: {error}", hint=hint) from error


def import_(account: Account, path: str | Path) -> Imported:
    """Take in every episode below a path, of any layout; what is there already stays as it is."""
    tally, root = Tally(), Path(path)
    files, links = trees.files_below(root)
    if root.is_file():
        root, files = root.parent, [root.name]
    else:
        files = [name for name in files if _EPISODE.search(name)]
    tally.left_out += links
    for name in files:
        try:
            verdict = account.remember(**runs.fields_of(*_read(root / name, name, tally)))
        except OctavoError as error:
            tally.leave_out(name, error.message.removeprefix(f"{root / name}, "))
        else:
            tally.note(name, verdict.memory, verdict)
    return tally.imported(account, "rlds")


def _read(file: Path, name: str, tally: Tally) -> tuple[Any, Any]:
    """Metadata and steps of an episode: one file of both, or one beside steps.jsonl or steps/*.jsonl.

    One bad line costs one line and is named.
    """
    told = trees.read_json(file)
    if file.name != "metadata.json":
        told = dict(told) if isinstance(told, Mapping) else {}
        steps = told.pop("steps", None) or []
        return {"episode_id": file.stem, **(runs.part_of(told, "metadata") or told)}, steps
    whole, steps = file.with_name("steps.jsonl"), []
    for part in [whole] if whole.is_file() else sorted((file.parent / "steps").glob("[0-9]*.jsonl")):
        for number, line in enumerate(trees.read_bytes(part).splitlines(), start=1):
            try:
                steps += [msgspec.json.decode(line, type=dict[str, Any])] if line.strip() else []
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                where = Path(name).parent / part.relative_to(file.parent)
                tally.leave_out(f"{where.as_posix()}, line {number}", str(error))
    return told, steps
