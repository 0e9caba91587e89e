"""Seed 000's tree of files: `account/<user>/core/…` and `sandboxes/<id>/…`, in and out without loss."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Any

from msgspec import Struct, field

from octavo.documents import trees
from octavo.documents.msp import saving, session_buffer, stores
from octavo.documents.msp.forms import BUFFER_LISTS, BUFFER_OBJECTS, buffer_named, create_empty_buffer
from octavo.documents.msp.items import ORIGINAL, canonical, when
from octavo.documents.transfer import Exported, Imported, Note, Tally
from octavo.domain.buffer import SessionBuffer
from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, is_id
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadFile, BadInput, NotFound, Refused, SandboxClosed
from octavo.storage.stores.names import folder_of

_ROOT = "root"
_FOLDERS = ("account", "accout")  # the second is how seed 000 spells it; a tree keeps its spelling
_SANDBOXES = "sandboxes"
_FILES = {
    stores.EPISODIC: "core/01_Episodic_memory/Episodic_memory.json",
    stores.SEMANTIC: "core/02_Semantic_memory/Semantic_memory.json",
    stores.SENSORY: "core/03_Sensory_memory/Sensory_memory.json",
    stores.CORE: "core/05_Core_Memory/Core_memory.json",
    stores.PROFILE: "core/07_User_block/User_profile.json",
    stores.GKS: "core/09_Genesis_Knowledge_System/GKS_data.json",
}
_STATE_FOLDER = "core/10_state"
_BUFFER, _METADATA = "session_buffer.json", "metadata.json"
_USUAL = tuple(create_empty_buffer())
_UNKEPT = ("secret", "noise", "length", "empty")  # checks that stop a candidate before it is buffered


class _Tree(Struct, frozen=True, kw_only=True):
    """A tree as read: the master state's sections, how their files stood, and the files nobody knows."""

    top: Path | None
    user: str
    users: int
    folder: str
    document: dict[str, Any] = field(default_factory=dict)
    frames: dict[str, Any] = field(default_factory=dict)
    files: dict[str, dict[str, str]] = field(default_factory=dict)
    notes: list[Note] = field(default_factory=list)


def import_(account: Account, path: Path) -> Imported:
    """Read a tree in one commit, then open its sandboxes; what is there already stays as it is."""
    tree = _read(path, account.name)
    folders = _read_sandboxes(tree)
    at = datetime.now(UTC)
    extra = saving.leftovers(tree.document, tree.frames, at=at)
    extra.append(stores.file(_ROOT, {"folder": tree.folder}, at=at))
    extra += [stores.file(f"files/{name}", value, at=at) for name, value in sorted(tree.files.items())]
    steps, verdicts, total = saving.bring_up(account, tree.document, extra, at=at, cause="import msp")
    tally = Tally(unchanged=total - len(steps), notes=tree.notes, files=sorted(tree.files))
    asked = [(label, candidate) for label, candidate in steps if candidate is not None]
    for label, candidate in steps:
        if candidate is None:
            tally.leave_out(label, "it is there already and never changes")
    for (label, candidate), verdict in zip(asked, verdicts, strict=True):
        tally.note(label, candidate, verdict)
    _open_sandboxes(account, folders, at, tally)
    return tally.imported(account, "msp", user=tree.user)


def export(account: Account, path: Path) -> Exported:
    """Write the account as a tree; every file is replaced whole, others are left alone."""
    version = account.version
    view = account.at(version)
    entries = saving.shown(view)
    files = _files_of(account.name, saving.assemble(entries, exact=True), saving.files_of(entries))
    open_ = _sandbox_files(account)
    trees.write_all(path, {**files, **open_})
    counts: Counter[str] = Counter(entry.memory.kind for entry in entries if entry.section != stores.FILE)
    sandboxes = len({name.split("/")[1] for name in open_})
    unseen = [m for m in view.memories() if m.scope != SHARED or stores.entry_of(m) is None]
    whose = (f"kind {m.kind}" if m.scope == SHARED else f"scope {m.scope}" for m in unseen)
    return Exported(
        format="msp",
        version=version,
        account=account.name,
        counts={**counts, "sandbox": sandboxes} if sandboxes else dict(counts),
        left_out=dict(Counter(whose)),
        files=tuple(sorted({**files, **open_})),
    )


def _read(path: Path, user: str) -> _Tree:
    """Read the tree that a path leads to: its top, the folder of one user, or that user's core."""
    folder, name = _user_folder(path, user)
    above = folder.parent
    known = above.name in _FOLDERS
    users = sum(1 for other in above.iterdir() if other.is_dir()) if known else 1
    top, spelt = (above.parent, above.name) if known else (None, _FOLDERS[0])
    tree = _Tree(top=top, user=name, users=users, folder=spelt)
    files, links = trees.files_below(folder)
    tree.notes.extend(links)
    for relative in files:
        if not _take(tree, folder, relative):
            tree.files[relative] = trees.kept_bytes(trees.read_bytes(folder / relative))
    return tree


def _files_of(user: str, document: Mapping[str, Any], layout: Mapping[str, Any]) -> dict[str, bytes]:
    """The files of a master state by their path below the top; `layout` is what an import noted of them."""
    is_native = _ROOT not in layout
    folder = _FOLDERS[0] if is_native else layout[_ROOT]["folder"]
    is_plain = not user.startswith(".") and not any(c in user for c in "/\\\0")
    home = f"{folder}/{user if is_plain else folder_of(user)}"
    files: dict[str, bytes] = {}
    for section, name in _FILES.items():
        if is_native or section in layout or document[section] not in ([], {}, stores.EMPTY.get(section)):
            value, frame = document[section], layout.get(section, {}).get(ORIGINAL)
            if section in stores.LISTS and not isinstance(frame, list):  # a list stands where it stood
                frame = frame or {stores.LISTS[section]: []}
                value = {**frame, saving.list_key(section, frame): value}
            files[f"{home}/{name}"] = trees.json_bytes(value)
    for name, value in document[stores.STATES].items():
        files[f"{home}/{_STATE_FOLDER}/{name}.json"] = trees.json_bytes(value)
    for name, value in layout.items():
        if name.startswith("files/"):
            files[f"{home}/{name.removeprefix('files/')}"] = trees.bytes_of(value)
    return files


def _user_folder(path: Path, user: str) -> tuple[Path, str]:
    """The folder of a user and the name it gives the user."""
    if not path.is_dir():
        raise NotFound(f"there is no folder {path}", hint="name the folder that holds account/<user>/core")
    path = path.absolute()
    if path.name == "core" or any((path / Path(name).parent.name).is_dir() for name in _FILES.values()):
        return path.parent, path.parent.name
    if (path / "core").is_dir():
        return path, path.name
    tops = [path] if path.name in _FOLDERS else [path / name for name in _FOLDERS if (path / name).is_dir()]
    users = {child for top in tops for child in top.iterdir() if child.is_dir()}
    named = [child for child in users if child.name == user] or list(users)
    if len(named) == 1:
        return named[0], named[0].name
    if not named:
        raise BadFile(f"{path} holds no account/<user>/core")
    names = ", ".join(sorted(child.name for child in named))
    raise BadFile(f"{path} holds several users: {names}", hint="name one user's folder, or open that account")


def _take(tree: _Tree, folder: Path, relative: str) -> bool:
    """Whether a file is one of the master state's and has the shape of one."""
    pure = PurePosixPath(relative)
    section = next((section for section, name in _FILES.items() if name == relative), None)
    if section is not None:
        return _take_section(tree, section, folder / relative)
    if pure.parent.as_posix() != _STATE_FOLDER or pure.suffix != ".json" or not stores.is_label(pure.stem):
        return False
    value = trees.read_json(folder / relative)
    if not isinstance(value, Mapping):
        tree.notes.append(Note(place=relative, reason="holds no object and is kept as a file"))
        return False
    tree.document.setdefault(stores.STATES, {})[pure.stem] = value
    return True


def _take_section(tree: _Tree, section: str, path: Path) -> bool:
    value = trees.read_json(path)
    content = value
    if section in stores.LISTS and isinstance(value, Mapping):
        content = value.get(saving.list_key(section, value))
    if not isinstance(content, stores.SECTIONS[section]):
        tree.notes.append(Note(place=_FILES[section], reason="has another shape and is kept as a file"))
        return False
    tree.document[section] = content
    for number, episode in enumerate(tree.document[section] if section == stores.EPISODIC else (), start=1):
        if not isinstance(episode, Mapping):
            raise BadFile(f"{path}: episode {number} is {type(episode).__name__}, not an object")
    tree.frames[section] = saving.frame(section, value)
    return True


def _read_sandboxes(tree: _Tree) -> dict[str, tuple[dict[str, Any], dict[str, Any]]]:
    """The sandboxes of a tree's user by folder; those of others are noted.

    Each is its buffer's document, and what the engine has no word for, which its buffer is to hold.
    """
    folder = tree.top / _SANDBOXES if tree.top else None
    found: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {}
    for child in sorted(folder.iterdir()) if folder and folder.is_dir() else ():
        place = f"{_SANDBOXES}/{child.name}"
        if child.is_symlink() or not child.is_dir():
            tree.notes.append(Note(place=place, reason="is no folder; it was left alone"))
            continue
        names, links = trees.files_below(child, f"{place}/")
        tree.notes.extend(links)
        metadata = trees.read_json(child / _METADATA) if _METADATA in names else None
        owner = metadata.get("user_id") if isinstance(metadata, Mapping) else None
        if owner != tree.user and (owner is not None or tree.users > 1):
            reason = f"belongs to {owner or 'nobody by name'}; it was left alone"
            tree.notes.append(Note(place=place, reason=reason))
            continue
        try:
            document = buffer_named(trees.read_json(child / _BUFFER) if _BUFFER in names else {})
        except BadInput as error:
            raise BadFile(f"{child / _BUFFER}: {error.message}") from error
        content = (*BUFFER_LISTS, *BUFFER_OBJECTS)
        others = [name for name in names if name not in (_BUFFER, _METADATA)]
        note = {
            "name": f"sandbox/{child.name}",
            "folder": child.name,
            "fields": {key: value for key, value in document.items() if key not in content},
            "absent": [key for key in _USUAL if key not in document],
            "metadata": metadata,
            "files": {name: trees.kept_bytes(trees.read_bytes(child / name)) for name in others},
        }
        found[child.name] = (document, note)
    return found


def _open_sandboxes(
    account: Account,
    folders: Mapping[str, tuple[dict[str, Any], dict[str, Any]]],
    now: datetime,
    tally: Tally,
) -> None:
    """Open the sandboxes that are not there yet and count them; say what was refused or left alone."""
    buffers = [account.buffer(info.id) for info in account.sandboxes()]
    for folder, (document, note) in folders.items():
        place = f"{_SANDBOXES}/{folder}"
        there = next((b for b in buffers if folder in (b.opened.sandbox, _folder_of(b))), None)
        if there is not None:
            if canonical(session_buffer.document(there)) != canonical(document):
                tally.say(place, "is open here and differs; it was left alone")
            continue
        topic = stores.topic_of(stores.FILE, note["name"])
        try:
            if account.memories(kind="register", topic=topic, limit=1):
                raise SandboxClosed(place)
            name = note["metadata"].get("name") if isinstance(note["metadata"], Mapping) else None
            sandbox = account.sandbox(
                name if isinstance(name, str) and name.strip() else folder,
                started_at=when(document) or now,
                id=folder if is_id(folder) else None,
            )
        except SandboxClosed:
            tally.say(place, "was consolidated here; it was left alone")
            continue
        with closing(sandbox):
            _fill(sandbox, place, document, now, tally)
            noted = sandbox.remember("", kind="register", category=stores.FILE, topic=topic, data=note)
            if not noted:
                tally.leave_out(place, f"{noted.check}: {noted.detail}")
        tally.counts["sandbox"] += 1


def _fill(sandbox: Sandbox, place: str, document: Mapping[str, Any], now: datetime, tally: Tally) -> None:
    for number, episode in enumerate(document.get("new_episodes", ()), start=1):
        try:
            sandbox.write_episode(episode)
        except (BadInput, Refused) as error:
            tally.leave_out(f"{place}/new_episodes/{number}", error.message)
    rest = {key: value for key, value in document.items() if key != "new_episodes"}
    for verdict in session_buffer.write(sandbox, rest, now=now):
        if not verdict and verdict.check in _UNKEPT:
            tally.leave_out(place, f"{verdict.check}: {verdict.detail}")


def _sandbox_files(account: Account) -> dict[str, bytes]:
    """The files of every open sandbox that all agents share."""
    files: dict[str, bytes] = {}
    for info in account.sandboxes():
        if info.scope != SHARED:
            continue
        buffer = account.buffer(info.id)
        home = f"{_SANDBOXES}/{_folder_of(buffer)}"
        files[f"{home}/{_BUFFER}"] = trees.json_bytes(session_buffer.document(buffer))
        note = session_buffer.marker(buffer) or {"metadata": _metadata(buffer, account.name)}
        if note.get("metadata") is not None:
            files[f"{home}/{_METADATA}"] = trees.json_bytes(note["metadata"])
        for name, value in note.get("files", {}).items():
            files[f"{home}/{name}"] = trees.bytes_of(value)
    return files


def _metadata(buffer: SessionBuffer, user_id: str) -> dict[str, Any]:
    """What the file of a sandbox that was opened here says."""
    return {
        "sandbox_id": buffer.opened.sandbox,
        "name": buffer.opened.name,
        "user_id": user_id,
        "created_at": iso(buffer.opened.at),
        "parent_version": buffer.opened.parent,
        "status": "active",
    }


def _folder_of(buffer: SessionBuffer) -> str:
    note = session_buffer.marker(buffer)
    return str(note["folder"]) if note else buffer.opened.sandbox
