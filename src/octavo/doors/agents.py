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
from collections.abc import Callable, Mapping
from functools import partial
from importlib import resources
from pathlib import Path
from types import MappingProxyType
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
# What a client calls the moment of an event; some say Stop after every answer, and SessionEnd at the end.
_CLAUDE = {
    "SessionStart": "session-start",
    "UserPromptSubmit": "prompt",
    "PreCompact": "pre-compact",
    "Stop": "pre-compact",
    "SessionEnd": "stop",
}
_CURSOR = {
    "sessionStart": "session-start",
    "beforeSubmitPrompt": "prompt",
    "afterAgentResponse": "pre-compact",
    "sessionEnd": "stop",
}
_MOMENTS: dict[Client, dict[str, str]] = {"claude-code": _CLAUDE, "codex": _CLAUDE, "cursor": _CURSOR}
_HOOK_SECONDS = 30
_BLOCK = rf"\n*\[mcp_servers\.{NAME}\]\n(?:[^\[\n].*\n?|\n)*"
_PARTS = rf"\n*\[mcp_servers\.{NAME}\.[^\]]+\]\n(?:[^\[\n].*\n?|\n)*"  # of a person's own, without use alone

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
            names = f"{path} (now)", f"{path} (then)"
            for line in difflib.unified_diff(
                before.splitlines(), after.splitlines(), *names, lineterm="", n=2
            ):
                print(plain.clean(line))
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
    home, tools = client_home(client), partial(_json, "mcpServers", partial(_tools, settings))
    hooks = partial(_json, "hooks", partial(_hooks, settings, client))
    # Claude Code's tools stand in a file beside the folder, unless the folder was moved.
    beside = home if home.name != ".claude" else home.parent
    own: dict[Client, list[tuple[Path, Edit]]] = {
        "claude-code": [(beside / ".claude.json", tools), (home / "settings.json", hooks)],
        "codex": [(home / "config.toml", partial(_toml_tools, settings)), (home / "hooks.json", hooks)],
        "cursor": [(home / "mcp.json", tools), (home / "hooks.json", partial(hooks, first={"version": 1}))],
    }
    return [*own[client], (home / "skills" / NAME / "SKILL.md", _skill)]


def _command(settings: Settings, *words: str, actor: str | None = None) -> list[str]:
    """The command line that runs Octavo on this account, wherever the client starts it."""
    # A URL goes without its password: a client's configuration is no place for one.
    root = shown(settings.root) if isinstance(settings.root, str) else str(settings.root.absolute())
    said = {"root": root, "account": settings.account, "scope": settings.scope, "actor": actor}
    where = [word for name, value in said.items() if value for word in (f"--{name}", value)]
    return [sys.executable, "-m", "octavo", *where, *words]


def _json(
    name: str,
    changed: Callable[[dict[str, Any], bool], Any],
    text: str,
    into: bool,
    *,
    first: Mapping[str, Any] = MappingProxyType({}),
) -> str:
    """A JSON document with one of its objects changed: as it stands if nothing is, "" if nothing is left.

    What every such document says `first` is nothing of its own.
    """
    document = json.loads(text or "{}")
    part = document.get(name, {}) if isinstance(document, dict) else None
    if not isinstance(part, dict):
        raise ValueError(f"it, or {name} in it, is no JSON object")
    left = {**(first if into else {}), **document, name: changed(part, into)}
    left = {key: value for key, value in left.items() if value or key != name}
    if left == document:
        return text
    return json.dumps(left, ensure_ascii=False, indent=2) + "\n" if left != first else ""


def _tools(settings: Settings, servers: dict[str, Any], into: bool) -> dict[str, Any]:
    program, *arguments = _command(settings, "mcp")
    # The transport is said because one client insists on it and the others do not mind.
    ours = {NAME: {"type": "stdio", "command": program, "args": arguments}} if into else {}
    return {name: server for name, server in servers.items() if name != NAME} | ours


def _hooks(settings: Settings, client: Client, hooks: dict[str, Any], into: bool) -> dict[str, Any]:
    moments = _MOMENTS[client]
    kept = {**hooks, **{name: [g for g in hooks.get(name, []) if not _is_ours(g)] for name in moments}}
    for name, event in moments.items() if into else ():
        line = shlex.join(_command(settings, "hook", event, actor=f"agent:{client}"))
        hook = {"type": "command", "command": line, "timeout": _HOOK_SECONDS}
        kept[name] += [hook if client == "cursor" else {"hooks": [hook]}]
    return {name: groups for name, groups in kept.items() if groups or name not in moments}


def _is_ours(group: Any) -> bool:
    """Whether a hook is ours, or a group of some is, as all clients but Cursor have them."""
    lines = [hook.get("command", "") for hook in group.get("hooks", [group])]
    return any(re.search(r"-m octavo .*\bhook ", line) for line in lines)


def _toml_tools(settings: Settings, text: str, into: bool) -> str:
    ours = _BLOCK if into else f"{_BLOCK}|{_PARTS}"
    if not into and not re.search(ours, text):
        return text
    program, *arguments = _command(settings, "mcp")
    rest = re.sub(ours, "\n", text).strip("\n")
    # A JSON string is a TOML string, and so is an array of them.
    block = f"[mcp_servers.{NAME}]\ncommand = {json.dumps(program)}\nargs = {json.dumps(arguments)}\n"
    return "\n".join([*([rest + "\n"] if rest else []), *([block] if into else [])])


def _skill(text: str, into: bool) -> str:
    return resources.files("octavo.doors").joinpath("skill", "SKILL.md").read_text() if into else ""


def _kept(path: Path) -> Path:
    """Where what a person had in a file is kept."""
    return path.with_name(path.name + ".before-octavo")


def _restored(path: Path, edit: Edit, now: str) -> str:
    """The text as it was before, if ours is the only change since; else without our part alone."""
    before = _kept(path).read_text() if _kept(path).exists() else None
    return edit(now, False) if before is None or edit(before, True) != now else before


def _write(path: Path, before: str, after: str, home: Path, *, undo: bool) -> None:
    """Write a file, keeping what a person had there; undone, nothing of ours stays, nor an empty folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if undo:
        _kept(path).unlink(missing_ok=True)
    elif before and not _kept(path).exists():
        replace_file(Disk(), _kept(path), before.encode())
    if after:
        replace_file(Disk(), path, after.encode())
        return
    path.unlink(missing_ok=True)
    folder = path.parent
    while folder.is_relative_to(home) and not any(folder.iterdir()):
        folder.rmdir()
        folder = folder.parent
