"""Claude's memory tool (`memory_20250818`) over an account: `OctavoMemoryTool(account)` among the tools.

Every file below /memories is a memory with a history, and so is every folder; what the model sees and is
told are the words it was trained on, those of Anthropic's own tool on files.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Any

from msgspec.structs import replace

from octavo.domain import privacy
from octavo.domain.buffer import Forgot, Revised, Wrote
from octavo.domain.memory import SHARED, Memory
from octavo.engine.account import Account
from octavo.engine.fields import plain_json
from octavo.engine.intake import Finished
from octavo.errors import OctavoError, Unavailable

try:
    from anthropic.lib.tools import ToolError
    from anthropic.tools.memory import BetaAbstractMemoryTool
    from anthropic.types import beta
except ImportError as error:
    raise Unavailable("the memory tool needs anthropic", hint="pip install 'octavo[anthropic]'") from error

CATEGORY = "memory-tool"
_ROOT, _TOPICS, _FOLDER_SIZE = "/memories", "memories/", "4K"
_MOST_PATH, _MOST_LINES, _DEPTH, _WIDTH = 180, 999_999, 2, 6
Tree = Mapping[str, Memory]  # files and folders by their paths, sorted; the root's is empty


class OctavoMemoryTool(BetaAbstractMemoryTool):
    """An account as Claude's memory folder; all of it lies in one scope, each file a memory with a topic."""

    def __init__(self, account: Account, **more: Any) -> None:
        super().__init__(**more)
        self.account = account
        self._scope = account.scope or SHARED

    def view(self, command: beta.BetaMemoryTool20250818ViewCommand) -> str:
        """A folder's files two levels deep, or a file's lines with their numbers."""
        place, tree = self._at(command.path)
        if tree[place].data.get("folder"):
            return _listed(command.path, place, tree)
        lines = tree[place].text.split("\n")
        _must(len(lines) <= _MOST_LINES, f"File {command.path} exceeds maximum line limit of 999,999 lines.")
        first, last = (command.view_range if len(command.view_range or ()) == 2 else None) or (1, -1)
        shown = lines[max(first, 1) - 1 : len(lines) if last == -1 else last]
        return _numbered(f"Here's the content of {command.path} with line numbers:", shown, max(first, 1))

    def create(self, command: beta.BetaMemoryTool20250818CreateCommand) -> str:
        """A new file, and the folders it lies in."""
        place, tree = _place(command.path), self._tree()
        after = _with_folders(place, tree)
        _must(place not in tree, f"File {command.path} already exists")
        self._write(tree, {**after, place: _node(command.file_text)})
        return f"File created successfully at: {command.path}"

    def str_replace(self, command: beta.BetaMemoryTool20250818StrReplaceCommand) -> str:
        """A file with a text in it replaced, which must stand there once."""
        place, tree = self._at(command.path, is_file=True)
        text, old = tree[place].text, command.old_str
        rows = [text.count("\n", 0, at) for at in range(len(text) + 1) if text.startswith(old, at)]
        failed = "No replacement was performed"
        _must(bool(rows), f"{failed}, old_str `{old}` did not appear verbatim in {command.path}.")
        what = f"Multiple occurrences of old_str `{old}` in lines: {', '.join(str(r + 1) for r in rows)}"
        _must(text.count(old) <= 1, f"{failed}. {what}. Please ensure it is unique")
        text = text.replace(old, command.new_str)
        self._write(tree, {**tree, place: replace(tree[place], text=text, at=datetime.now(UTC))})
        first = max(0, rows[0] - 2)
        head = "The memory file has been edited. Here is the snippet showing the change (with line numbers):"
        return _numbered(head, text.split("\n")[first : rows[0] + 3], first + 1)

    def insert(self, command: beta.BetaMemoryTool20250818InsertCommand) -> str:
        """A file with a text put in after a line."""
        place, tree = self._at(command.path, is_file=True)
        lines = tree[place].text.removesuffix("\n").split("\n") if tree[place].text else []
        at, most = command.insert_line, len(lines)
        wrong = f"Invalid `insert_line` parameter: {at}. It should be within the range [0, {most}]."
        _must(0 <= at <= most, wrong)
        lines.insert(at, command.insert_text.rstrip("\n"))
        text = "\n".join(lines).removesuffix("\n") + "\n"
        self._write(tree, {**tree, place: replace(tree[place], text=text, at=datetime.now(UTC))})
        return f"The file {command.path} has been edited."

    def delete(self, command: beta.BetaMemoryTool20250818DeleteCommand) -> str:
        """A file's end, or a folder's with everything in it; the history stays in the account."""
        place, tree = _place(command.path), self._tree()
        _must(bool(place), "Cannot delete the /memories directory itself")
        _must(place in tree, f"The path {command.path} does not exist")
        self._write(tree, {name: memory for name, memory in tree.items() if not _is_in(place, name)})
        return f"Successfully deleted {command.path}"

    def rename(self, command: beta.BetaMemoryTool20250818RenameCommand) -> str:
        """A file or folder under another name; its memories keep their history."""
        old, new, tree = _place(command.old_path), _place(command.new_path), self._tree()
        _must(bool(old), "Cannot rename the /memories directory itself")
        _must(new not in tree, f"The destination {command.new_path} already exists")
        after = _with_folders(new, tree)
        if old in tree and not _is_in(old, new):
            after = {new + n[len(old) :] if _is_in(old, n) else n: memory for n, memory in after.items()}
        self._write(tree, after)
        why = "cannot be moved into itself" if old in tree else "does not exist"
        _must(new in after, f"The path {command.old_path} {why}")
        return f"Successfully renamed {command.old_path} to {command.new_path}"

    def clear_all_memory(self) -> str:
        """Everything in the folder ends; the history stays in the account."""
        self._write(self._tree(), {"": _node()})
        return "All memory cleared"

    def _tree(self) -> Tree:
        held = self.account.memories(kind="skill", category=CATEGORY, scope=[self._scope])
        nodes = {memory.topic.removeprefix(_TOPICS): memory for memory in held if memory.topic}
        return {"": _node()} | dict(sorted(nodes.items(), key=lambda node: node[0].split("/")))

    def _at(self, path: str, *, is_file: bool = False) -> tuple[str, Tree]:
        place, tree = _place(path), self._tree()
        _must(place in tree, f"The path {path} does not exist. Please provide a valid path.")
        _must(not (is_file and tree[place].data.get("folder")), f"The path {path} is not a file.")
        return place, tree

    def _write(self, before: Tree, after: Tree) -> None:
        """Write what became of the tree in one version; what the gate refuses is the tool's error."""
        now, kept = datetime.now(UTC), {memory.id for memory in after.values()}
        writes: list[Finished] = [Forgot(memory=m.id, at=now) for m in before.values() if m.id not in kept]
        write = partial(self.account.intake.write_many, cause="memory tool", whole=True, scope=self._scope)
        try:
            for place, memory in after.items():
                wanted = replace(memory, topic=_TOPICS + place, text=plain_json(memory.text))
                if place and not memory.id:
                    writes.append(Wrote(memory=wanted))
                elif place and before.get(place) != wanted:
                    writes.append(Revised(wanted=wanted, fields=("text", "topic", "at"), at=now))
            for verdict in write(writes) if writes else ():
                verdict.or_raise()
        except OctavoError as error:
            raise ToolError(privacy.tellable(str(error))) from error


def _must(is_so: bool, otherwise: str) -> None:
    """Raise what the tool says of a failure; a path that was handed in may hold a secret."""
    if not is_so:
        raise ToolError(privacy.tellable(otherwise))


def _place(path: str) -> str:
    """A path below the folder, by its names alone; empty for the folder itself."""
    _must(path.startswith(_ROOT), f"Path must start with /memories, got: {path}")
    place = posixpath.normpath(path[len(_ROOT) :].lstrip("/") or ".")
    _must(place != ".." and not place.startswith("../"), f"Path {path} would escape /memories directory")
    is_plain = len(place) <= _MOST_PATH and place.isprintable() and place == place.strip()
    _must(is_plain, f"Path {path} cannot be used: at most {_MOST_PATH} plain characters")
    return "" if place == "." else place


def _node(text: str | None = None) -> Memory:
    at, data = datetime.now(UTC), {"folder": text is None}
    return Memory(id="", kind="skill", text=text or "", category=CATEGORY, at=at, data=data)


def _is_in(folder: str, place: str) -> bool:
    return not folder or f"{place}/".startswith(f"{folder}/")


def _with_folders(place: str, tree: Tree) -> dict[str, Memory]:
    """The tree with the folders that a path needs."""
    after, parts = dict(tree), place.split("/")
    for folder in ("/".join(parts[:depth]) for depth in range(1, len(parts))):
        node = after.setdefault(folder, _node())
        _must(bool(node.data.get("folder")), f"The path {_ROOT}/{folder} is not a directory.")
    return after


def _numbered(head: str, lines: Sequence[str], first: int) -> str:
    return f"{head}\n" + "\n".join(f"{n:>{_WIDTH}}\t{line}" for n, line in enumerate(lines, start=first))


def _listed(path: str, place: str, tree: Tree) -> str:
    head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
    lines = [head, f"{_FOLDER_SIZE}\t{path}"]
    for name in tree:
        relative = name[len(place) :].lstrip("/") if _is_in(place, name) else ""
        parts = relative.split("/")
        if relative and len(parts) <= _DEPTH and not any(part.startswith(".") for part in parts):
            is_folder = tree[name].data.get("folder")
            size = _FOLDER_SIZE if is_folder else _size(len(tree[name].text.encode()))
            lines.append(f"{size}\t{path}/{relative}{'/' if is_folder else ''}")
    return "\n".join(lines)


def _size(count: int) -> str:
    """A number of bytes as people read it: 0B, 512B, 1.5K, 2M."""
    power = min((count.bit_length() - 1) // 10, 3) if count else 0
    amount = count / 1024**power
    return f"{int(amount) if amount == int(amount) else format(amount, '.1f')}{'BKMG'[power]}"
