"""The files of seed 001's tree: which file is what, how an episode stands in one, and everything else."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from octavo.domain import cores, episodes
from octavo.domain.compression import CompressionPolicy, recognise
from octavo.domain.memory import SHARED, SOURCES, Emotion, Memory, check_scope, is_id
from octavo.errors import BadFile, BadInput, NotFound
from octavo.interfaces.documents.msp import stores
from octavo.interfaces.formats import trees
from octavo.interfaces.formats.msp_tree import kept_bytes

ROOT = "consciousness"
EPISODES, SESSIONS = "01_Episodic_memory/episodes", "04_Session_Memory"
FOLDERS = {"core": "06_Core_memory", "sphere": "07_Sphere_memory"}
COUNTERS = "09_state/compression_counters"
OURS = "octavo"  # the field of an episode that holds what the seed has no word for
SEQUENCES = ("sphere_seq", "core_seq", "session_seq")

_NAMED = re.compile(r"ep_(\d{6})_[A-Za-z0-9]+")
_MOST_SESSIONS = 4096  # a summary further ahead of the episodes than this is no place to count from


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree as read; what is no file of the seed, or has not its shape, is among `files`."""

    episodes: dict[str, Memory] = field(default_factory=dict)
    pages: dict[str, dict[str, Any]] = field(default_factory=dict)
    made: dict[str, dict[str, Any]] = field(default_factory=dict)
    counters: dict[str, dict[str, Any]] = field(default_factory=dict)
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def home(path: Path) -> Path:
    """The folder `consciousness` that a path means."""
    return path if path.name == ROOT else path / ROOT


def read(path: Path, policy: CompressionPolicy, at: datetime) -> Tree:
    """Read the tree below a path; nothing is written if one file of the seed is no JSON."""
    folder = home(path)
    if not folder.is_dir():
        raise NotFound(f"there is no folder {folder}", hint=f"name the folder that holds {ROOT}/")
    tree = Tree()
    found, links = trees.files_below(folder)
    tree.notes.extend(f"{link} is a link and was not followed" for link in links)
    for relative in found:
        why = _take(tree, folder, relative, policy, at)
        if why is not None:
            tree.files[relative] = kept_bytes(trees.read_bytes(folder / relative))
        if why:
            tree.notes.append(f"{relative} {why} and is kept as a file")
    return tree


def episode_of(name: str, value: Mapping[str, Any], at: datetime) -> Memory:
    """An episode as its file tells it; it goes out again under the same name, exactly as it came."""
    memory = stores.episode(value, at=_day(name) or at, keep_id=True).memory
    said = value.get(OURS)
    ours: Mapping[str, Any] = said if isinstance(said, Mapping) else {}
    scope = _scope_of(value.get("scope"))
    memory = replace(
        memory,
        id=memory.id or f"ep_{_hash(f'{scope}/{name}')[:24]}",
        scope=scope,
        category="sensory" if value.get("category") == "sensory" else memory.category,
        session=session_of(value, memory.at, scope),
        source=ours["source"] if ours.get("source") in SOURCES else memory.source,
        confidence=_unit(ours.get("confidence"), memory.confidence),
        emotion=_emotion(ours.get("emotion")) or memory.emotion,
        turns=tuple(
            replace(turn, emotion=_emotion(felt))
            for turn, felt in zip(memory.turns, _felt(ours, len(memory.turns)), strict=True)
        ),
    )
    if file_name(memory) == name:
        return memory
    spelling = {**memory.data.get(episodes.SPELLING, {}), "file": name}
    return replace(memory, data={**memory.data, episodes.SPELLING: spelling})


def document_of(memory: Memory, place: Mapping[str, int] | None) -> dict[str, Any]:
    """An episode as its file: the seed's form, its place among the sessions, and what only we know."""
    found = episodes.to_document(memory)
    if memory.session is None:
        found["session_id"] = None
    if memory.scope != SHARED:
        found["scope"] = memory.scope
    if place is not None:
        own = found.get("compression_meta")
        found["compression_meta"] = {**(own if isinstance(own, Mapping) else {}), **place}
    unsaid = _unsaid(memory, episode_of(file_name(memory), found, memory.at))
    return {**found, OURS: {**found.get(OURS, {}), **unsaid}} if unsaid else found


def file_name(memory: Memory) -> str:
    """The name of an episode's file: the one it came with, else by its day and a hash of its id."""
    _, spelling = episodes.unspelt(memory.data)
    if isinstance(spelling.get("file"), str):
        return str(spelling["file"])
    if _NAMED.fullmatch(memory.id):
        return f"{memory.id}.json"
    return f"ep_{memory.at:%y%m%d}_{_hash(memory.id)[:12]}.json"


def session_of(value: Mapping[str, Any], at: datetime, scope: str) -> str | None:
    """The session of an episode: the one it names, else its place, else its day; null means none."""
    if "session_id" in value and value["session_id"] is None:
        return None
    given, place = value.get("session_id"), place_of(value)
    if isinstance(given, str) and given.strip():
        return session_name(given)
    suffix = "" if scope == SHARED else f"@{scope}"
    numbers = "_".join(f"{number:03d}" for number in place) if place else f"{at:%y%m%d}"
    return f"session_{numbers}{suffix}"


def session_name(given: str) -> str:
    """A session's name as an id; one that cannot be an id is hashed."""
    return given if is_id(given) else f"session_{_hash(given)[:24]}"


def place_of(value: Mapping[str, Any]) -> tuple[int, ...] | None:
    """Sphere, core and session of a `compression_meta`, if it tells all three."""
    meta = value.get("compression_meta")
    found: list[Any] = [meta.get(name) for name in SEQUENCES] if isinstance(meta, Mapping) else []
    if len(found) == len(SEQUENCES) and all(type(n) is int and n >= 0 for n in found):
        return tuple(found)
    return None


def counters_file(scope: str) -> str:
    """Where the counters of a scope stand."""
    return f"{COUNTERS}.json" if scope == SHARED else f"{COUNTERS}@{scope}.json"


def _take(tree: Tree, folder: Path, relative: str, policy: CompressionPolicy, at: datetime) -> str | None:
    """None if a file is the seed's; else why it is not, in words if it should be."""
    pure = PurePosixPath(relative)
    parent = pure.parent.as_posix()
    kind = next((kind for kind, place in FOLDERS.items() if place == parent), None)
    counted = relative.startswith(COUNTERS)
    if pure.suffix != ".json" or not (kind or counted or parent in (EPISODES, SESSIONS)):
        return ""
    value = trees.read_json(folder / relative)
    if not isinstance(value, dict):
        return "holds no object"
    if kind:
        return _take_made(tree, kind, pure.stem, value, policy)
    if counted:
        return _take_counters(tree, pure.stem, value)
    if parent == SESSIONS:
        tree.pages[relative] = value
        return None
    try:
        tree.episodes[relative] = episode_of(pure.name, value, at)
    except BadInput as error:
        raise BadFile(f"{folder / relative}: {error.message}") from error
    return None


def _take_made(
    tree: Tree, kind: str, stem: str, value: dict[str, Any], policy: CompressionPolicy
) -> str | None:
    due = recognise(stem, policy)
    if due is None or due.kind != kind or value.get(f"{kind}_id") != stem:
        return f"does not name the {kind} it holds"
    if due.sessions[-1] > _MOST_SESSIONS:
        return "stands too far ahead"
    try:
        cores.core_from_json(value) if kind == "core" else cores.sphere_from_json(value)
    except BadInput as error:
        return f"has another shape ({error.message})"
    tree.made[stem] = value
    return None


def _take_counters(tree: Tree, stem: str, value: dict[str, Any]) -> str | None:
    scope = stem.partition("@")[2] or SHARED
    if counters_file(scope) != f"09_state/{stem}.json" or _scope_of(scope) != scope:
        return ""
    tree.counters[scope] = value
    return None


def _unsaid(memory: Memory, told: Memory) -> dict[str, Any]:
    """What the seed's form of an episode does not tell of it."""
    found: dict[str, Any] = {}
    if memory.emotion != told.emotion:
        found["emotion"] = _plain(memory.emotion)
    for name in ("source", "confidence"):
        if getattr(memory, name) != getattr(told, name):
            found[name] = getattr(memory, name)
    if [turn.emotion for turn in memory.turns] != [turn.emotion for turn in told.turns]:
        found["turn_emotions"] = [_plain(turn.emotion) for turn in memory.turns]
    return found


def _felt(ours: Mapping[str, Any], count: int) -> list[Any]:
    said = ours.get("turn_emotions")
    return said if isinstance(said, list) and len(said) == count else [None] * count


def _plain(emotion: Emotion | None) -> dict[str, Any] | None:
    return None if emotion is None else {row.name: getattr(emotion, row.name) for row in fields(Emotion)}


def _emotion(value: Any) -> Emotion | None:
    if not isinstance(value, Mapping) or set(value) != {row.name for row in fields(Emotion)}:
        return None
    label, *numbers = (value[row.name] for row in fields(Emotion))
    able = all(n is None or (isinstance(n, int | float) and not isinstance(n, bool)) for n in numbers)
    return Emotion(**value) if able and (label is None or isinstance(label, str)) else None


def _unit(value: Any, default: float) -> float:
    able = isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value <= 1
    return float(value) if able else default


def _scope_of(value: Any) -> str:
    """A file's scope; one that cannot be a scope is no reason to refuse the file."""
    try:
        return check_scope(value) if isinstance(value, str) else SHARED
    except BadInput:
        return SHARED


def _day(name: str) -> datetime | None:
    found = _NAMED.match(name)
    try:
        return datetime.strptime(found[1], "%y%m%d").replace(tzinfo=UTC) if found else None
    except ValueError:
        return None


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
