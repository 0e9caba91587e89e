"""The files of seed 000's master state: which file is which section, how it stood, and everything else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any

from octavo.errors import BadFile, NotFound
from octavo.interfaces.documents.msp.master_state import absent_parts
from octavo.interfaces.documents.msp.stores import (
    CORE,
    EMPTY,
    EPISODIC,
    GKS,
    PROFILE,
    SEMANTIC,
    SENSORY,
    STATES,
    is_label,
)
from octavo.interfaces.formats import trees
from octavo.storage.stores.names import folder_of

ROOT = "root"
FOLDERS = ("account", "accout")  # the second is how seed 000 spells it; a tree keeps its spelling
SANDBOXES = "sandboxes"
FILES = {
    EPISODIC: "core/01_Episodic_memory/Episodic_memory.json",
    SEMANTIC: "core/02_Semantic_memory/Semantic_memory.json",
    SENSORY: "core/03_Sensory_memory/Sensory_memory.json",
    CORE: "core/05_Core_Memory/Core_memory.json",
    PROFILE: "core/07_User_block/User_profile.json",
    GKS: "core/09_Genesis_Knowledge_System/GKS_data.json",
}
_STATE_FOLDER = "core/10_state"
_KEYS = {EPISODIC: "episodes", SENSORY: "sensory"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tree:
    """A tree as read: the master state's sections, how their files stood, and the files nobody knows."""

    top: Path | None
    user: str
    users: int
    document: dict[str, Any] = field(default_factory=dict)
    noted: dict[str, dict[str, Any]] = field(default_factory=dict)
    root: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)


def read(path: Path, user: str) -> Tree:
    """Read the tree that a path leads to: its top, the folder of one user, or that user's core."""
    folder, name = _user_folder(path, user)
    above = folder.parent
    known = above.name in FOLDERS
    users = sum(1 for other in above.iterdir() if other.is_dir()) if known else 1
    tree = Tree(top=above.parent if known else None, user=name, users=users)
    files, links = trees.files_below(folder)
    tree.notes.extend(f"{link} is a link and was not followed" for link in links)
    for relative in files:
        if not _take(tree, folder, relative):
            tree.files[relative] = kept_bytes(trees.read_bytes(folder / relative))
    sections = [section for section in (*FILES, STATES) if section in tree.document]
    tree.root.update(folder=above.name if known else FOLDERS[0], sections=sections)
    return tree


def files_of(user: str, document: Mapping[str, Any], layout: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a master state by their path below the top."""
    root = layout.get(ROOT)
    folder = root["folder"] if root else FOLDERS[0]
    home = f"{folder}/{user if _is_plain(user) else folder_of(user)}"
    found: dict[str, bytes] = {}
    for section, name in FILES.items():
        if (
            root is None
            or section in root["sections"]
            or document[section] not in ([], {}, EMPTY.get(section))
        ):
            value = _framed(section, document[section], layout.get(section, {}).get("frame"))
            found[f"{home}/{name}"] = _json(value)
    for name, value in document[STATES].items():
        found[f"{home}/{_STATE_FOLDER}/{name}.json"] = _json(value)
    for name, value in layout.items():
        if name.startswith("files/"):
            found[f"{home}/{name.removeprefix('files/')}"] = bytes_of(value)
    return found


def kept_bytes(data: bytes) -> dict[str, str]:
    """A file nobody knows, as data: its text, or its bytes in hexadecimal.

    Base64 would look like a token to the gate.
    """
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"hex": data.hex()}


def bytes_of(value: Mapping[str, Any]) -> bytes:
    """The bytes of a file nobody knows."""
    return bytes.fromhex(value["hex"]) if "hex" in value else str(value.get("text", "")).encode()


def _user_folder(path: Path, user: str) -> tuple[Path, str]:
    """The folder of a user and the name it gives the user."""
    if not path.is_dir():
        raise NotFound(f"there is no folder {path}", hint="name the folder that holds account/<user>/core")
    path = path.absolute()
    if path.name == "core" or any((path / Path(name).parent.name).is_dir() for name in FILES.values()):
        return path.parent, path.parent.name
    if (path / "core").is_dir():
        return path, path.name
    tops = [path] if path.name in FOLDERS else [path / name for name in FOLDERS if (path / name).is_dir()]
    found = {child for top in tops for child in top.iterdir() if child.is_dir()}
    named = [child for child in found if child.name == user] or list(found)
    if len(named) == 1:
        return named[0], named[0].name
    if not named:
        raise BadFile(f"{path} holds no account/<user>/core")
    names = ", ".join(sorted(child.name for child in named))
    raise BadFile(f"{path} holds several users: {names}", hint="name one user's folder, or open that account")


def _take(tree: Tree, folder: Path, relative: str) -> bool:
    """Whether a file is one of the master state's and has the shape of one."""
    section = next((section for section, name in FILES.items() if name == relative), None)
    if section is not None:
        return _take_section(tree, section, trees.read_json(folder / relative), folder / relative)
    pure = PurePosixPath(relative)
    if pure.parent.as_posix() == _STATE_FOLDER and pure.suffix == ".json" and is_label(pure.stem):
        value = trees.read_json(folder / relative)
        if isinstance(value, Mapping):
            tree.document.setdefault(STATES, {})[pure.stem] = value
            return True
        tree.notes.append(f"{relative} holds no object and is kept as a file")
    return False


def _take_section(tree: Tree, section: str, value: Any, path: Path) -> bool:
    note: dict[str, Any] = {}
    if section in _KEYS:
        value, note = _unframed(section, value)
    shape = list if section in _KEYS else (list, Mapping) if section == GKS else Mapping
    if not isinstance(value, shape):
        tree.notes.append(f"{FILES[section]} has another shape and is kept as a file")
        return False
    if section == EPISODIC:
        for number, episode in enumerate(value, start=1):
            if not isinstance(episode, Mapping):
                raise BadFile(f"{path}: episode {number} is {type(episode).__name__}, not an object")
    if section in (SEMANTIC, CORE) and (absent := absent_parts(section, value)):
        note["absent"] = absent
    tree.document[section] = value
    if note:
        tree.noted[section] = note
    return True


def _unframed(section: str, value: Any) -> tuple[Any, dict[str, Any]]:
    """The list that a file holds, and how it stood there if not as we would write it."""
    if isinstance(value, list):
        return value, {"frame": {"key": None}}
    if not isinstance(value, Mapping):
        return value, {}
    lists = [key for key, items in value.items() if isinstance(items, list)]
    usual = (_KEYS[section], section, "memories", "entries", "records")
    key = next((name for name in usual if name in lists), lists[0] if len(lists) == 1 else None)
    if key is None:
        return None, {}
    rest = {name: kept for name, kept in value.items() if name != key}
    plain = key == _KEYS[section] and not rest
    return value[key], {} if plain else {"frame": {"key": key, "fields": rest}}


def _framed(section: str, value: Any, frame: Mapping[str, Any] | None) -> Any:
    if section not in _KEYS:
        return value
    if frame is None:
        return {_KEYS[section]: value}
    return value if frame["key"] is None else {**frame.get("fields", {}), frame["key"]: value}


def _is_plain(user: str) -> bool:
    return not user.startswith(".") and not any(c in user for c in "/\\\0")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
