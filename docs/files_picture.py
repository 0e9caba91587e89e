"""The picture of files.md: a tree, a page edited by hand, the plan of a sync, and what Git sees of it.

`python -m docs.files_picture docs/pictures/files.svg` draws it anew.
"""

from __future__ import annotations

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console, RenderableType
from rich.panel import Panel
from rich.syntax import Syntax
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

import octavo
from octavo.documents.brain import FilesystemMemory
from octavo.documents.brain.teaching import Teaching

_PAGE = "semantic/knowledge/objects.md"
_FONT = re.compile(r"@font-face \{.*?\}\n?", re.DOTALL)  # a picture asks no other machine for letters


def draw(file: Path) -> None:
    """Draw the picture from an account that is made for it."""
    with (
        tempfile.TemporaryDirectory() as folder,
        octavo.open(folder, "nok", actor="human:nok", embedder=False) as nok,
    ):
        _live(nok)
        tree = Path(nok.mirror().folder)
        _git(tree, "init", "-q", "-b", "main")
        _git(tree, "add", ".")
        _git(tree, "commit", "-q", "-m", "before")
        page = tree / _PAGE
        page.write_text(page.read_text().replace("red key", "blue key") + "- ลาวาร้อนมาก\n")
        left = Panel(_branches(tree, Tree("nok/mirror")), title="the tree", title_align="left")
        told = [Text(f"  {edit.action}  {edit.path}:{edit.line}  {edit.text}") for edit in nok.sync().edits]
        nok.sync(commit=True)
        difference = _git(tree, "diff", "-U0", "--no-color", _PAGE).partition("@@")
        right = Table.grid()
        parts: dict[str, RenderableType] = {
            f"{_PAGE}, edited by hand": Syntax(page.read_text().strip(), "markdown", theme="ansi_light"),
            "octavo sync --yes": Text("\n").join(told),
            "git diff": Syntax("".join(difference[1:]).strip(), "diff", theme="ansi_light"),
        }
        for title, part in parts.items():
            right.add_row(Panel(part, title=title, title_align="left", width=86))
    console = Console(record=True, width=132, file=io.StringIO())
    whole = Table.grid(padding=(0, 1))
    whole.add_row(left, right)
    console.print(whole)
    file.write_text(_FONT.sub("", console.export_svg(title="memory as files")))


def _live(nok: octavo.Account) -> None:
    nok.remember("the red key opens the north door", category="objects", data={"section": "Keys"})
    nok.remember("กุญแจสำรองอยู่ในครัว", category="objects", data={"section": "Keys"})
    nok.remember("lives in Chiang Mai", kind="register", topic="home")
    nok.remember("Nok paints", kind="canon", category="identity")
    nok.remember(
        "Greets, then names the day's plans.",
        kind="skill",
        topic="skills/morning-brief",
        category="procedural",
    )
    nok.remember("no", kind="skill", topic="guardrails", category="guardrail", data={"deny": ["fly"]})
    with nok.sandbox() as sandbox:
        sandbox.turn("Nok", "สวัสดี")
        sandbox.turn("Orion", "hello")
    robot = FilesystemMemory(nok)
    robot.save_episode({"metadata": {"episode_id": "robotgrid_1"}, "steps": [{"reward": 1.0}]})
    teacher = Teaching(robot)
    for line in ("teach dance", "left", "right", "done"):
        teacher.say(line)


def _git(tree: Path, *words: str) -> str:
    who = ("-c", "user.name=nok", "-c", "user.email=nok@example.org")
    command = ["git", *who, *words]
    return subprocess.run(command, cwd=tree, capture_output=True, text=True, check=True).stdout  # noqa: S603  # ours


def _branches(folder: Path, branch: Tree) -> Tree:
    for path in sorted(folder.iterdir()):
        if not path.name.startswith("."):
            below = branch.add(f"[bold]{path.name}[/bold]" if path.is_dir() else path.name)
            if path.is_dir():
                _branches(path, below)
    return branch


if __name__ == "__main__":
    draw(Path(sys.argv[1]))
