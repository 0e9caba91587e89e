"""The commands that give an agent this memory: `octavo mcp`, `octavo hook`, and `octavo install`.

Installing writes our part into a client's configuration, after showing it; undoing takes it out again, and
restores a file that nobody changed since as it was.
"""

from __future__ import annotations

import difflib
import json
import re
import shlex
import sys
from collections.abc import Callable
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from octavo.doors import plain
from octavo.doors.hooks import answer
from octavo.doors.mcp import serve_stdio
from octavo.doors.operations.table import Operation, operation
from octavo.doors.settings import Settings, client_home
from octavo.errors import BadFile, BadInput
from octavo.storage.stores.disk import Disk, replace_file
from octavo.storage.stores.names import shown

Client = Literal["claude-code", "codex", "cursor"]
NAME = "octavo"
# Claude Code says Stop after every answer, and SessionEnd when the conversation is over.
_HOOKS = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PreCompact": "pre-compact",
    "Stop": "pre-compact",
    "SessionEnd": "stop",
}
_HOOK_SECONDS = 30
_BLOCK = rf"\n*\[mcp_servers\.{NAME}\]\n(?:[^\[\n].*\n?|\n)*"
_PARTS = rf"\n*\[mcp_servers\.{NAME}\.[^\]]+\]\n(?:[^\[\n].*\n?|\n)*"  # of a person's own, without use alone
_KEPT = ".before-octavo"

Edit = Callable[[str, bool], str]  # a file's text with our part in it, or without; "" if nothing is left


@operation("octavo mcp --scope orion", writes=True)
def mcp(settings: Settings) -> None:
    """Answer an MCP client on standard input and output (the extra `mcp`)."""
    serve_stdio(settings)


@operation("octavo hook session-start", writes=True)
def hook(
    settings: Settings,
    event: Annotated[str, "session-start, prompt, pre-compact or stop; its JSON on standard input."],
) -> None:
    """Answer a coding agent's hook: brief it, and keep what was said."""
    answer(settings, event)


@operation("octavo install claude-code", writes=True)
def install(
    settings: Settings,
    client: Annotated[Client, "Which one."],
    *,
    undo: Annotated[bool, "Take it out again."] = False,
    yes: Annotated[bool, "Do not ask."] = False,
) -> dict[str, Any]:
    """Give a coding agent this memory: its tools, its hooks and a skill; the difference is shown first."""
    changes = []
    for path, edit in _targets(settings, client):
        try:
            before = path.read_text("utf-8") if path.exists() else ""
            after = _restored(path, edit, before) if undo else edit(before, True)
        except ValueError as error:
            raise BadFile(f"{path} cannot be read: {error}", hint="correct it first") from error
        if before != after:
            changes.append((path, before, after))
            _show(path, before, after)
    if changes and not yes:
        if not sys.stdin.isatty():
            raise BadInput("nobody is there to say yes to this difference", hint="say --yes")
        typer.confirm("Write this?", abort=True, err=True)
    for path, before, after in changes:
        _write(path, before, after, client_home(client), undo=undo)
    return {"client": client, "undone" if undo else "written": [str(path) for path, _, _ in changes]}


COMMANDS: tuple[Operation, ...] = (mcp, hook, install)


def _targets(settings: Settings, client: Client) -> list[tuple[Path, Edit]]:
    """The files of a client that our part goes into, and how it comes into each."""
    home, tools = client_home(client), partial(_json_tools, settings)
    skill = (home / "skills" / NAME / "SKILL.md", _skill)
    match client:
        case "claude-code":
            # The tools stand in a file beside the folder, unless the folder was moved.
            folder = home if home.name != ".claude" else home.parent
            hooks = (home / "settings.json", partial(_json_hooks, settings))
            return [(folder / ".claude.json", tools), hooks, skill]
        case "codex":
            return [(home / "config.toml", partial(_toml_tools, settings)), skill]
        case "cursor":
            return [(home / "mcp.json", tools), skill]


def _command(settings: Settings, *words: str, actor: str | None = None) -> list[str]:
    """The command line that runs Octavo on this account, wherever the client starts it."""
    # A URL goes without its password: a client's configuration is no place for one.
    root = shown(settings.root) if isinstance(settings.root, str) else str(settings.root.absolute())
    where = ["--root", root, "--account", settings.account]
    where += ["--scope", settings.scope] if settings.scope else []
    where += ["--actor", actor] if actor else []
    return [sys.executable, "-m", "octavo", *where, *words]


def _json_tools(settings: Settings, text: str, into: bool) -> str:
    program, *arguments = _command(settings, "mcp")
    document = _document(text)
    servers = _object(document.get("mcpServers", {}), "mcpServers")
    servers.pop(NAME, None)
    if into:
        # The transport is said because one client insists on it and the others do not mind.
        servers[NAME] = {"type": "stdio", "command": program, "args": arguments}
    return _written(text, {**document, "mcpServers": servers})


def _json_hooks(settings: Settings, text: str, into: bool) -> str:
    document = _document(text)
    hooks = _object(document.get("hooks", {}), "hooks")
    for event, name in _HOOKS.items():
        others = [group for group in hooks.pop(event, []) if not _is_ours(group)]
        line = shlex.join(_command(settings, "hook", name, actor="agent:claude-code"))
        ours = {"hooks": [{"type": "command", "command": line, "timeout": _HOOK_SECONDS}]}
        if groups := [*others, *([ours] if into else [])]:
            hooks[event] = groups
    return _written(text, {**document, "hooks": hooks})


def _toml_tools(settings: Settings, text: str, into: bool) -> str:
    ours = _BLOCK if into else f"{_BLOCK}|{_PARTS}"
    if not into and not re.search(ours, text):
        return text
    program, *arguments = _command(settings, "mcp")
    rest = re.sub(ours, "\n", text).strip("\n")
    # A JSON string is a TOML string, and so is an array of them.
    block = f"[mcp_servers.{NAME}]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n"
    return "\n".join([*([rest + "\n"] if rest else []), *([block] if into else [])])


def _is_ours(group: Any) -> bool:
    lines = [hook.get("command", "") for hook in group.get("hooks", [])]
    return any(re.search(r"-m octavo .*\bhook ", line) for line in lines)


def _document(text: str) -> dict[str, Any]:
    return _object(json.loads(text or "{}"), "it")


def _object(part: Any, name: str) -> dict[str, Any]:
    if not isinstance(part, dict):
        raise ValueError(f"{name} is no JSON object")
    return dict(part)


def _written(text: str, document: dict[str, Any]) -> str:
    """The document as text: as it stands if nothing changed, nothing at all if nothing is left."""
    left = {name: value for name, value in document.items() if value != {}}
    if left == _document(text):
        return text
    return json.dumps(left, ensure_ascii=False, indent=2) + "\n" if left else ""


def _restored(path: Path, edit: Edit, now: str) -> str:
    """The text as it was before, if ours is the only change since; else without our part alone."""
    kept = path.with_name(path.name + _KEPT)
    if kept.exists() and edit(kept.read_text(), True) == now:
        return kept.read_text()
    return edit(now, False)


def _write(path: Path, before: str, after: str, home: Path, *, undo: bool) -> None:
    """Write a file, keeping what a person had there; undone, nothing of ours stays, nor an empty folder."""
    kept = path.with_name(path.name + _KEPT)
    path.parent.mkdir(parents=True, exist_ok=True)
    if undo:
        kept.unlink(missing_ok=True)
    elif before and not kept.exists():
        replace_file(Disk(), kept, before.encode())
    if after:
        replace_file(Disk(), path, after.encode())
        return
    path.unlink(missing_ok=True)
    folder = path.parent
    while folder.is_relative_to(home) and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent


def _show(path: Path, before: str, after: str) -> None:
    lines = difflib.unified_diff(
        before.splitlines(), after.splitlines(), f"{path} (now)", f"{path} (then)", lineterm="", n=2
    )
    print("\n".join(plain.clean(line) for line in lines))


def _skill(text: str, into: bool) -> str:
    return resources.files("octavo.doors").joinpath("skill", "SKILL.md").read_text() if into else ""
