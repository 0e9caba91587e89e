"""Claude's memory tool (`memory_20250818`) over an account: `OctavoMemoryTool(account)` among the tools.

Every file below /memories is a memory with a history, and so is every folder; what the model sees and is
told are the words it was trained on, those of Anthropic's own tool on files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from octavo.domain import privacy
from octavo.domain.buffer import Forgot, Revised, Wrote
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.errors import OctavoError, Unavailable

try:
    from anthropic.lib.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool
    from anthropic.types.beta import (
        BetaMemoryTool20250818CreateCommand,
        BetaMemoryTool20250818DeleteCommand,
        BetaMemoryTool20250818InsertCommand,
        BetaMemoryTool20250818RenameCommand,
        BetaMemoryTool20250818StrReplaceCommand,
        BetaMemoryTool20250818ViewCommand,
    )
except ImportError as error:
    raise Unavailable("the memory tool needs anthropic", hint="pip install 'octavo[anthropic]'") from error

CATEGORY = "memory-tool"
_ROOT = "/memories"
_MOST_PATH, _MOST_LINES, _DEPTH, _WIDTH = 180, 999_999, 2, 6
_FOLDER = {"folder": True}
_FOLDER_SIZE = "4K"


class OctavoMemoryTool(BetaAbstractMemoryTool):
    """An account as Claude's memory folder; all of it lies in one scope, each file a memory with a topic."""

    def __init__(self, account: Account, **more: Any) -> None:
        super().__init__(**more)
        self.account = account
        self._scope = account.scope or SHARED

    def view(self, command: BetaMemoryTool20250818ViewCommand) -> str:
        """A folder's files two levels deep, or a file's lines with their numbers."""
        place, tree = self._place(command.path), self._tree()
        if place and place not in tree:
            raise _error(f"The path {command.path} does not exist. Please provide a valid path.")
        if not place or _is_folder(tree[place]):
            return _listed(command.path, place, tree)
        lines = tree[place].text.split("\n")
        if len(lines) > _MOST_LINES:
            raise _error(f"File {command.path} exceeds maximum line limit of 999,999 lines.")
        first, last = 0, len(lines)
        if command.view_range and len(command.view_range) == 2:
            first = max(1, command.view_range[0]) - 1
            last = last if command.view_range[1] == -1 else command.view_range[1]
        shown = _numbered(lines[first:last], first + 1)
        return f"Here's the content of {command.path} with line numbers:\n{shown}"

    def create(self, command: BetaMemoryTool20250818CreateCommand) -> str:
        """A new file, and the folders it lies in."""
        place, tree = self._place(command.path), self._tree()
        folders = self._folders_to(place, tree)
        if not place or place in tree:
            raise _error(f"File {command.path} already exists")
        self._write([*folders, Wrote(memory=self._node(place, command.file_text))])
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: BetaMemoryTool20250818StrReplaceCommand) -> str:
        """A file with a text in it replaced, which must stand there once."""
        memory = self._file(command.path)
        old, text = command.old_str, memory.text
        places = [n for n in range(len(text) + 1) if text.startswith(old, n)]
        if not places:
            raise _error(
                f"No replacement was performed, old_str `{old}` did not appear verbatim in {command.path}."
            )
        if text.count(old) > 1:
            numbers = ", ".join(str(text.count("\n", 0, n) + 1) for n in places)
            raise _error(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {numbers}. "
                "Please ensure it is unique"
            )
        line = text.count("\n", 0, places[0])
        self._revise(memory, text.replace(old, command.new_str))
        around = text.replace(old, command.new_str).split("\n")[max(0, line - 2) : line + 3]
        snippet = _numbered(around, max(0, line - 2) + 1)
        return (
            "The memory file has been edited. Here is the snippet showing the change (with line numbers):\n"
            f"{snippet}"
        )

    def insert(self, command: BetaMemoryTool20250818InsertCommand) -> str:
        """A file with a text put in after a line."""
        memory = self._file(command.path)
        lines = memory.text.removesuffix("\n").split("\n") if memory.text else []
        if not 0 <= command.insert_line <= len(lines):
            raise _error(
                f"Invalid `insert_line` parameter: {command.insert_line}. "
                f"It should be within the range [0, {len(lines)}]."
            )
        lines.insert(command.insert_line, command.insert_text.rstrip("\n"))
        text = "\n".join(lines)
        self._revise(memory, text if text.endswith("\n") else f"{text}\n")
        return f"The file {command.path} has been edited."

    def delete(self, command: BetaMemoryTool20250818DeleteCommand) -> str:
        """A file's end, or a folder's with everything in it; the history stays in the account."""
        place, tree = self._place(command.path), self._tree()
        if not place:
            raise _error("Cannot delete the /memories directory itself")
        if place not in tree:
            raise _error(f"The path {command.path} does not exist")
        self._write([Forgot(memory=tree[name].id, at=_now()) for name in _within(place, tree)])
        return f"Successfully deleted {command.path}"

    def rename(self, command: BetaMemoryTool20250818RenameCommand) -> str:
        """A file or folder under another name; its memories keep their history."""
        old, new, tree = self._place(command.old_path), self._place(command.new_path), self._tree()
        if not old:
            raise _error("Cannot rename the /memories directory itself")
        if not new or new in tree:
            raise _error(f"The destination {command.new_path} already exists")
        moves: list[Wrote | Revised | Forgot] = list(self._folders_to(new, tree))
        inside = new.startswith(f"{old}/")
        for name in _within(old, tree) if not inside else ():
            moved = replace(tree[name], topic=_topic(new + name[len(old) :]))
            moves.append(Revised(wanted=moved, fields=("topic",), at=_now()))
        self._write(moves)
        if old not in tree:
            raise _error(f"The path {command.old_path} does not exist")
        if inside:
            raise _error(f"The path {command.old_path} cannot be moved into itself")
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Everything in the folder ends; the history stays in the account."""
        self._write([Forgot(memory=memory.id, at=_now()) for memory in self._tree().values()])
        return "All memory cleared"

    def _place(self, path: str) -> str:
        """A path below the folder, by its names alone; empty for the folder itself."""
        if not path.startswith(_ROOT):
            raise _error(f"Path must start with /memories, got: {path}")
        place = posixpath.normpath(path[len(_ROOT) :].lstrip("/") or ".")
        if place == ".." or place.startswith("../"):
            raise _error(f"Path {path} would escape /memories directory")
        if len(place) > _MOST_PATH or not place.isprintable() or place != place.strip():
            raise _error(f"Path {path} cannot be used: at most {_MOST_PATH} plain characters")
        return "" if place == "." else place

    def _tree(self) -> dict[str, Memory]:
        """Files and folders by their paths, sorted."""
        held = self.account.memories(kind="skill", category=CATEGORY, scope=[self._scope])
        return {m.topic.removeprefix(_topic("")): m for m in sorted(held, key=_by_path) if m.topic}

    def _file(self, path: str) -> Memory:
        place, tree = self._place(path), self._tree()
        if place and place not in tree:
            raise _error(f"The path {path} does not exist. Please provide a valid path.")
        if not place or _is_folder(tree[place]):
            raise _error(f"The path {path} is not a file.")
        return tree[place]

    def _folders_to(self, place: str, tree: Mapping[str, Memory]) -> list[Wrote]:
        """The folders a path needs and that are not there."""
        parts = place.split("/")[:-1]
        above = ["/".join(parts[:depth]) for depth in range(1, len(parts) + 1)]
        for folder in above:
            if folder in tree and not _is_folder(tree[folder]):
                raise _error(f"The path {_ROOT}/{folder} is not a directory.")
        return [Wrote(memory=self._node(folder, "", _FOLDER)) for folder in above if folder not in tree]

    def _node(self, place: str, text: str, data: Mapping[str, Any] | None = None) -> Memory:
        own = {"path": f"{_ROOT}/{place}", **(data or {})}
        topic = _topic(place)
        return Memory(
            id="",
            kind="skill",
            text=text,
            scope=self._scope,
            topic=topic,
            category=CATEGORY,
            at=_now(),
            data=own,
        )

    def _revise(self, memory: Memory, text: str) -> None:
        at = _now()
        self._write([Revised(wanted=replace(memory, text=text, at=at), fields=("text", "at"), at=at)])

    def _write(self, writes: Sequence[Wrote | Revised | Forgot]) -> None:
        """Write all of it in one version; what the gate refuses is the tool's error, in the gate's words."""
        if not writes:
            return
        try:
            verdicts = self.account.intake.write_many(
                writes, cause="memory tool", whole=True, scope=self._scope
            )
            for verdict in verdicts:
                verdict.or_raise()
        except OctavoError as error:
            raise _error(str(error)) from error


def _error(said: str) -> ToolError:
    """What the tool says of a failure; a path that was handed in may hold a secret."""
    return ToolError(privacy.tellable(said))


def _now() -> datetime:
    return datetime.now(UTC)


def _topic(place: str) -> str:
    return f"memories/{place}"


def _by_path(memory: Memory) -> list[str]:
    return (memory.topic or "").split("/")


def _is_folder(memory: Memory) -> bool:
    return bool(memory.data.get("folder"))


def _within(place: str, tree: Mapping[str, Memory]) -> list[str]:
    return [name for name in tree if name == place or name.startswith(f"{place}/")]


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{_WIDTH}}\t{line}" for number, line in enumerate(lines, start=first))


def _listed(path: str, place: str, tree: Mapping[str, Memory]) -> str:
    lines = [f"{_FOLDER_SIZE}\t{path}"]
    for name, memory in tree.items():
        relative = name[len(place) :].lstrip("/") if not place or name.startswith(f"{place}/") else ""
        parts = relative.split("/")
        if relative and len(parts) <= _DEPTH and not any(part.startswith(".") for part in parts):
            size = _FOLDER_SIZE if _is_folder(memory) else _size(len(memory.text.encode()))
            lines.append(f"{size}\t{path}/{relative}{'/' if _is_folder(memory) else ''}")
    head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    return "\n".join([head, *lines])


def _size(count: int) -> str:
    """A number of bytes as people read it: 0B, 512B, 1.5K, 2M."""
    power = min((count.bit_length() - 1) // 10, 3) if count else 0
    amount = count / 1024**power
    return f"{int(amount) if amount == int(amount) else format(amount, '.1f')}{'BKMG'[power]}"
