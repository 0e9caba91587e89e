"""RLDS episodes: read in three layouts, kept as memories, written as a curated set with a manifest."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from octavo.documents import trees
from octavo.documents.transfer import Imported, Tally
from octavo.domain import runs
from octavo.domain.memory import Memory
from octavo.engine.account import Account
from octavo.errors import BadFile, BadInput, OctavoError


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


def keep(account: Account, episode: Mapping[str, Any], *, tags: Sequence[str] = ()) -> str:
    """Keep an episode {metadata, steps} through the gate; personal data makes it not public."""
    fields = runs.fields_of(episode.get("metadata"), episode.get("steps"))
    return account.remember(**fields, tags=tags).or_raise().id


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
    tally = Tally()
    for place, episode in read(Path(path), tally):
        try:
            verdict = account.remember(**runs.fields_of(episode["metadata"], episode["steps"]))
        except OctavoError as error:
            tally.leave_out(place, error.message)
        else:
            tally.note(place, verdict.memory, verdict)
    return tally.imported(account, "rlds")


def read(path: Path, tally: Tally) -> Iterator[tuple[str, dict[str, Any]]]:
    """Episodes below a path: directories with steps.jsonl or steps/*.jsonl, and single files."""
    if path.is_file():
        yield from _one_file(path, path.name, tally)
        return
    files, links = trees.files_below(path)
    tally.left_out += links
    for name in files:
        file = path / name
        if file.name == "metadata.json":
            place = str(Path(name).parent)
            if (metadata := _json(file, name, tally)) is not None:
                yield place, {"metadata": metadata, "steps": _steps(file.parent, place, tally)}
        elif file.name.startswith("robotgrid_") and file.suffix == ".json":
            yield from _one_file(file, name, tally)


def _one_file(path: Path, name: str, tally: Tally) -> Iterator[tuple[str, dict[str, Any]]]:
    if (found := _json(path, name, tally)) is not None:
        rest = {key: value for key, value in found.items() if key != "steps"}
        metadata = {"episode_id": path.stem, **(runs.part_of(found, "metadata") or rest)}
        yield name, {"metadata": metadata, "steps": found.get("steps") or []}


def _json(path: Path, name: str, tally: Tally) -> dict[str, Any] | None:
    try:
        found = trees.read_json(path)
    except BadFile as error:
        tally.leave_out(name, error.message.removeprefix(f"{path}, "))
        return None
    if isinstance(found, dict):
        return found
    tally.leave_out(name, "no object")
    return None


def _steps(folder: Path, place: str, tally: Tally) -> list[dict[str, Any]]:
    """The steps of a directory; one bad line costs one line and is named."""
    whole = folder / "steps.jsonl"
    files = [whole] if whole.is_file() else sorted((folder / "steps").glob("[0-9]*.jsonl"))
    steps: list[dict[str, Any]] = []
    for file in files:
        for number, line in enumerate(trees.read_bytes(file).splitlines(), start=1):
            try:
                step = msgspec.json.decode(line, type=dict[str, Any]) if line.strip() else None
            except (msgspec.DecodeError, UnicodeDecodeError) as error:
                where = file.relative_to(folder).as_posix()
                tally.leave_out(f"{place}/{where}, line {number}", str(error))
                continue
            steps += [step] if step else []
    return steps
