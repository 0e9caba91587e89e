"""Seed 000's tree of files: `account/<user>/core/…` and `sandboxes/<id>/…`, in and out without loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import closing
from datetime import UTC, datetime
from itertools import count
from pathlib import Path
from typing import Any

from octavo.documents import trees
from octavo.documents.msp import forms, saving, session_buffer, stores
from octavo.documents.msp.forms import BUFFER, EPISODIC, FOLDERS, LISTS, STATES, buffer_named
from octavo.documents.msp.stores import Entry
from octavo.documents.transfer import FILE, MASKED, Exported, Imported, Note, Tally, is_kept
from octavo.domain import screening
from octavo.domain.buffer import SessionBuffer
from octavo.domain.episodes import iso
from octavo.domain.memory import SHARED, is_id
from octavo.engine.account import Account
from octavo.engine.reading import Reader
from octavo.errors import BadFile, BadInput, NotFound, Refused, SandboxClosed
from octavo.storage.stores.names import folder_of

_SANDBOXES, _KEPT = "sandboxes", "files/"
_SECTIONS = {name: section for section, name in forms.FILES.items()}
_STATE_FOLDER = "core/10_state"
_BUFFER, _METADATA = "session_buffer.json", "metadata.json"
_USUAL = {name: {LISTS[name]: []} if name in LISTS else forms.EMPTY.get(name, {}) for name in forms.FILES}
_UNKEPT = ("secret", "noise", "length", "empty")  # checks that stop a candidate before it is buffered


def import_(account: Account, path: Path) -> Imported:
    """Read a tree in one commit, then open its sandboxes; what is there already stays as it is."""
    work = _Import(account, _user_folder(path, account.name))
    sandboxes = work.read_sandboxes()  # what cannot be read stops the import before it begins
    work.write_stores()
    buffers = [account.buffer(info.id) for info in account.sandboxes()]
    for document, note in sandboxes:
        work.open_sandbox(document, note, buffers)
    return work.tally.imported(account, "msp", user=work.folder.name)


def export(account: Account, path: Path) -> Exported:
    """Write the account as a tree; every file is replaced whole, others are left alone."""
    version = account.version
    view = account.at(version)
    entries = saving.shown(view)
    files = _store_files(account.name, view, entries)
    open_ = [info for info in account.sandboxes() if info.scope == SHARED]
    for info in open_:
        files |= _sandbox_files(account.buffer(info.id), account.name)
    counts = [*(entry.memory.kind for entry in entries), *("sandbox" for _ in open_)]
    unseen = [m for m in view.memories() if m.scope != SHARED or stores.entry_of(m) is None]
    others = (m for m in unseen if m.scope != SHARED or not is_kept(m))
    whose = (f"kind {m.kind}" if m.scope == SHARED else f"scope {m.scope}" for m in others)
    return trees.export(account, "msp", path, files, counts=counts, left_out=whose, version=version)


class _Import:
    """One import: the folder of a user, read whole, and what was done of it so far."""

    def __init__(self, account: Account, folder: Path) -> None:
        self.account, self.folder, self.at, self.tally = account, folder, datetime.now(UTC), Tally()
        self.document: dict[str, Any] = {}
        names, self.tally.notes = trees.files_below(folder)
        self.tally.files = [name for name in names if not self._take(name, folder / name)]
        self.kept = {name: trees.read_bytes(folder / name) for name in self.tally.files}

    def _take(self, relative: str, path: Path) -> bool:
        """Whether a file is one of the master state's and has the shape of one."""
        is_state = relative == f"{_STATE_FOLDER}/{path.stem}.json" and trees.is_label(path.stem)
        section = STATES if is_state else _SECTIONS.get(relative)
        if section is None:
            return False
        value: Any = trees.read_json(path)
        content: Any = value
        if section in LISTS and isinstance(value, Mapping):
            content = value.get(stores.list_key(section, value))
        shapes: Any = forms.SECTIONS[section]
        if not isinstance(content, shapes):
            what = "holds no object" if section == STATES else "has another shape"
            self.tally.say(relative, f"{what} and is kept as a file")
            return False
        if section == EPISODIC and (odd := [e for e in content if not isinstance(e, Mapping)]):
            raise BadFile(
                f"{path}: episode {content.index(odd[0]) + 1} is {type(odd[0]).__name__}, not an object"
            )
        if section == STATES:
            self.document.setdefault(STATES, {})[path.stem] = value
        else:
            self.document[section] = value
        return True

    def write_stores(self) -> None:
        """Bring the account up to the tree's stores, in one commit."""
        above, frame = self.folder.parent.name, stores.lift(self.document)[0]
        master = saving.master_file(frame, above if above in FOLDERS else FOLDERS[0], at=self.at)
        clean = screening.masked(master, self.account.policy.privacy)
        if clean != master:  # one secret does not cost the frame of every section
            self.tally.changed.append(Note(place=saving.MASTER, reason=MASKED))
        # What an export of ours writes around the values by itself is nothing to keep.
        is_usual = (frame, above) == (_USUAL, FOLDERS[0]) and saving.frame_of(self.account) == ({}, None)
        masters = [] if is_usual else [clean]
        memories = [*masters, *(trees.keep_file(_KEPT, *kept, at=self.at) for kept in self.kept.items())]
        saving.bring_up(self.account, self.document, self.tally, at=self.at, files=memories)

    def read_sandboxes(self) -> list[tuple[dict[str, Any], dict[str, Any]]]:
        """The sandboxes of the tree's user; those of others are noted.

        Each is its buffer's document, and what the engine has no word for, which its buffer is to hold.
        """
        read: list[tuple[dict[str, Any], dict[str, Any]]] = []
        above, is_alone = self.folder.parent, True
        if above.name in FOLDERS:
            is_alone = sum(1 for other in above.iterdir() if other.is_dir()) == 1
        folder = above.parent / _SANDBOXES
        for child in sorted(folder.iterdir()) if above.name in FOLDERS and folder.is_dir() else ():
            place = f"{_SANDBOXES}/{child.name}"
            if child.is_symlink() or not child.is_dir():
                self.tally.say(place, "is no folder; it was left alone")
                continue
            names, links = trees.files_below(child, f"{place}/")
            self.tally.notes += links
            metadata = trees.read_json(child / _METADATA) if _METADATA in names else None
            owner = metadata.get("user_id") if isinstance(metadata, Mapping) else None
            if owner != self.folder.name and (owner is not None or not is_alone):
                self.tally.say(place, f"belongs to {owner or 'nobody by name'}; it was left alone")
                continue
            try:
                document = buffer_named(trees.read_json(child / _BUFFER) if _BUFFER in names else {})
            except BadInput as error:
                raise BadFile(f"{child / _BUFFER}: {error.message}") from error
            others = [name for name in names if name not in (_BUFFER, _METADATA)]
            note = {
                "name": place,
                "folder": child.name,
                "keys": list(document),
                "fields": {key: value for key, value in document.items() if key not in BUFFER},
                "metadata": metadata,
                "files": {name: trees.kept_bytes(trees.read_bytes(child / name)) for name in others},
            }
            read.append((document, note))
        return read

    def open_sandbox(
        self, document: dict[str, Any], note: dict[str, Any], buffers: Sequence[SessionBuffer]
    ) -> None:
        """Open a sandbox that is not there yet; say what was refused or left alone."""
        place, folder = note["name"], note["folder"]
        there = next((buffer for buffer in buffers if _folder_of(buffer) == folder), None)
        if there is not None:
            if forms.canonical(session_buffer.document(there)) != forms.canonical(document):
                self.tally.say(place, "is open here and differs; it was left alone")
            return
        topic = trees.topic_of(FILE, place)
        try:
            if self.account.memories(kind="register", topic=topic, limit=1):
                raise SandboxClosed(place)
            sandbox = self.account.sandbox(
                forms.text_under(note["metadata"], "name") or folder,
                started_at=forms.when(document) or self.at,
                id=folder if is_id(folder) else None,
            )
        except SandboxClosed:
            self.tally.say(place, "was consolidated here; it was left alone")
            return
        numbers = count(1)

        def say(episode: Mapping[str, Any]) -> None:
            where = f"{place}/new_episodes/{next(numbers)}"
            try:
                sandbox.write_episode(episode)
            except (BadInput, Refused) as error:
                self.tally.leave_out(where, error.message)

        with closing(sandbox):
            verdicts = [v for _, v in session_buffer.write(sandbox, document, now=self.at, say=say)]
            verdicts.append(sandbox.remember("", kind="register", category=FILE, topic=topic, data=note))
        for verdict in verdicts:
            if not verdict and (verdict.check in _UNKEPT or verdict is verdicts[-1]):
                self.tally.leave_out(place, f"{verdict.check}: {verdict.detail}")
        self.tally.counts["sandbox"] += 1


def _user_folder(path: Path, user: str) -> Path:
    """The folder of a user that a path means: the tree's top, the users' folder, a user's, or a core."""
    if not path.is_dir():
        raise NotFound(f"there is no folder {path}", hint="name the folder that holds account/<user>/core")
    path = path.absolute()
    if path.name == "core" or any((path / Path(name).parent.name).is_dir() for name in _SECTIONS):
        return path.parent
    if (path / "core").is_dir():
        return path
    patterns = ["*"] if path.name in FOLDERS else [f"{name}/*" for name in FOLDERS]
    users = [child for pattern in patterns for child in path.glob(pattern) if child.is_dir()]
    named = [child for child in users if child.name == user] or users
    if len(named) == 1:
        return named[0]
    if not named:
        raise BadFile(f"{path} holds no account/<user>/core")
    names = ", ".join(sorted(child.name for child in named))
    raise BadFile(f"{path} holds several users: {names}", hint="name one user's folder, or open that account")


def _store_files(user: str, reader: Reader, entries: Sequence[Entry]) -> dict[str, bytes]:
    """The files of a master state by their path below the top, laid out as an import noted."""
    frame, folder = saving.frame_of(reader)
    is_native = folder is None
    document = stores.lay({**forms.EMPTY, **frame} if is_native else frame, entries)
    is_plain = not user.startswith(".") and not any(c in user for c in "/\\\0")
    home = f"{folder or FOLDERS[0]}/{user if is_plain else folder_of(user)}"
    files: dict[str, bytes] = {}
    for section, name in forms.FILES.items():
        if is_native or section in frame or document[section]:
            value, around = document[section], frame.get(section)
            if section in LISTS and not (around == [] and not is_native):  # a list stands where it stood
                around = around or {LISTS[section]: []}
                value = {**around, stores.list_key(section, around): value}
            files[f"{home}/{name}"] = trees.json_bytes(value)
    for name, value in document[STATES].items():
        files[f"{home}/{_STATE_FOLDER}/{name}.json"] = trees.json_bytes(value)
    return files | {f"{home}/{name}": data for name, data in trees.kept_files(reader, _KEPT).items()}


def _sandbox_files(buffer: SessionBuffer, user: str) -> dict[str, bytes]:
    """The files of an open sandbox: its buffer, and what an import noted of it or what we say of our own."""
    home, opened = f"{_SANDBOXES}/{_folder_of(buffer)}", buffer.opened
    own = {
        "sandbox_id": opened.sandbox,
        "name": opened.name,
        "user_id": user,
        "created_at": iso(opened.at),
        "parent_version": opened.parent,
        "status": "active",
    }
    note = session_buffer.marker(buffer) or {"metadata": own}
    files = {f"{home}/{name}": trees.bytes_of(value) for name, value in note.get("files", {}).items()}
    if note.get("metadata") is not None:
        files[f"{home}/{_METADATA}"] = trees.json_bytes(note["metadata"])
    return {**files, f"{home}/{_BUFFER}": trees.json_bytes(session_buffer.document(buffer))}


def _folder_of(buffer: SessionBuffer) -> str:
    return str(session_buffer.marker(buffer).get("folder", buffer.opened.sandbox))
