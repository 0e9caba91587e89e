"""The open sandboxes of seed 000's tree: `sandboxes/<id>/session_buffer.json` and `metadata.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from octavo.domain.buffer import SessionBuffer
from octavo.domain.memory import SHARED, is_id
from octavo.engine.account import Account
from octavo.engine.sandbox import Sandbox
from octavo.errors import BadFile, BadInput, Refused, SandboxClosed
from octavo.interfaces.documents.msp import session_buffer
from octavo.interfaces.documents.msp.forms import BUFFER_LISTS, BUFFER_OBJECTS, buffer_named
from octavo.interfaces.documents.msp.items import canonical, when
from octavo.interfaces.documents.msp.stores import FILE, topic_of
from octavo.interfaces.formats import trees
from octavo.interfaces.formats.msp_tree import SANDBOXES, Tree, bytes_of, kept_bytes

_BUFFER, _METADATA = "session_buffer.json", "metadata.json"
_ALWAYS = ("sandbox_id", "created_at", "parent_version", "metadata", "new_episodes", "semantic_candidates")
_UNKEPT = ("secret", "noise", "length", "empty")  # checks that stop a candidate before it is buffered


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A sandbox's folder as read, under the schema's names; `metadata` is None if there is no such file."""

    folder: str
    document: dict[str, Any]
    metadata: Any
    files: dict[str, dict[str, str]]

    @property
    def note(self) -> dict[str, Any]:
        """What the engine has no word for, kept in the sandbox's own buffer."""
        content = (*BUFFER_LISTS, *BUFFER_OBJECTS)
        usual = (*_ALWAYS, "state_deltas")
        return {
            "name": f"sandbox/{self.folder}",
            "folder": self.folder,
            "fields": {key: value for key, value in self.document.items() if key not in content},
            "absent": [key for key in usual if key not in self.document],
            "metadata": self.metadata,
            "files": self.files,
        }


def read(tree: Tree) -> list[Found]:
    """The sandboxes of a tree that belong to its user; those of others are noted."""
    folder = tree.top / SANDBOXES if tree.top else None
    if folder is None or not folder.is_dir():
        return []
    found = []
    for child in sorted(folder.iterdir()):
        if child.is_symlink() or not child.is_dir():
            tree.notes.append(f"{SANDBOXES}/{child.name} is no folder and was left alone")
            continue
        names, links = trees.files_below(child)
        tree.notes.extend(f"{SANDBOXES}/{child.name}/{link} is a link and was not followed" for link in links)
        metadata = trees.read_json(child / _METADATA) if _METADATA in names else None
        owner = metadata.get("user_id") if isinstance(metadata, Mapping) else None
        if owner != tree.user and (owner is not None or tree.users > 1):
            tree.notes.append(f"{SANDBOXES}/{child.name} belongs to {owner or 'nobody by name'}, left alone")
            continue
        given = trees.read_json(child / _BUFFER) if _BUFFER in names else {}
        try:
            document = buffer_named(given)
        except BadInput as error:
            raise BadFile(f"{child / _BUFFER}: {error.message}") from error
        others = [name for name in names if name not in (_BUFFER, _METADATA)]
        files = {name: kept_bytes(trees.read_bytes(child / name)) for name in others}
        found.append(Found(folder=child.name, document=document, metadata=metadata, files=files))
    return found


def open_all(
    account: Account, found: list[Found], now: datetime
) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """Open the sandboxes that are not there yet: their ids, what was refused, and what was left alone."""
    opened: list[str] = []
    refused: list[tuple[str, str]] = []
    notes: list[str] = []
    buffers = {info.id: account.buffer(info.id) for info in account.sandboxes()}
    for one in found:
        there = next((b for id_, b in buffers.items() if one.folder in (id_, _folder(b))), None)
        if there is not None:
            same = canonical(_shown(there)) == canonical(one.document)
            notes += [] if same else [f"sandbox {one.folder} is open here and differs; it was left alone"]
        elif account.memories(kind="register", topic=_topic(one), limit=1):
            notes.append(f"sandbox {one.folder} was consolidated here; it was left alone")
        else:
            try:
                opened.append(_open(account, one, now, refused))
            except SandboxClosed:
                notes.append(f"sandbox {one.folder} was consolidated here; it was left alone")
    return opened, refused, notes


def files_of(account: Account) -> dict[str, bytes]:
    """The files of every open sandbox that all agents share."""
    found: dict[str, bytes] = {}
    for info in account.sandboxes():
        if info.scope != SHARED:
            continue
        buffer = account.buffer(info.id)
        note = session_buffer.marker(buffer)
        home = f"{SANDBOXES}/{_folder(buffer)}"
        found[f"{home}/{_BUFFER}"] = _json(_shown(buffer))
        metadata = session_buffer.metadata(buffer, account.name) if note is None else note.get("metadata")
        if metadata is not None:
            found[f"{home}/{_METADATA}"] = _json(metadata)
        for name, value in (note or {}).get("files", {}).items():
            found[f"{home}/{name}"] = bytes_of(value)
    return found


def _open(account: Account, one: Found, now: datetime, refused: list[tuple[str, str]]) -> str:
    name = one.metadata.get("name") if isinstance(one.metadata, Mapping) else None
    sandbox = account.sandbox(
        name if isinstance(name, str) and name.strip() else one.folder,
        started_at=when(one.document) or now,
        id=one.folder if is_id(one.folder) else None,
    )
    try:
        _fill(sandbox, one, now, refused)
    finally:
        sandbox.close()
    return sandbox.id


def _fill(sandbox: Sandbox, one: Found, now: datetime, refused: list[tuple[str, str]]) -> None:
    where = f"{SANDBOXES}/{one.folder}"
    for number, episode in enumerate(one.document.get("new_episodes", ()), start=1):
        try:
            sandbox.write_episode(episode)
        except (BadInput, Refused) as error:
            refused.append((f"{where}/new_episodes/{number}", error.message))
    rest = {key: value for key, value in one.document.items() if key != "new_episodes"}
    verdicts = session_buffer.write(sandbox, rest, now=now)
    refused += [(where, f"{v.check}: {v.detail}") for v in verdicts if not v and v.check in _UNKEPT]
    noted = sandbox.remember("", kind="register", category=FILE, topic=_topic(one), data=one.note)
    if not noted:
        refused.append((where, f"{noted.check}: {noted.detail}"))


def _shown(buffer: SessionBuffer) -> dict[str, Any]:
    return session_buffer.document(buffer, session_buffer.marker(buffer))


def _folder(buffer: SessionBuffer) -> str:
    note = session_buffer.marker(buffer)
    return str(note["folder"]) if note else buffer.opened.sandbox


def _topic(one: Found) -> str:
    return topic_of(FILE, f"sandbox/{one.folder}")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, indent=2).encode() + b"\n"
