"""Claude's memory tool over an account: what the model is told is what Anthropic's own tool on files says."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools.memory import BetaLocalFilesystemMemoryTool

import octavo
from octavo.doors.adapters.anthropic import CATEGORY, OctavoMemoryTool

SEQUENCES, COMMANDS = 520, 5
NAMES = ["a.md", "b.txt", "notes", "notes/a.md", "notes/deep/c.md", ".hidden", "ความจำ.md", "notes/../b.txt"]
PATHS = [
    "/memories",
    *(f"/memories/{name}" for name in NAMES),
    "/memories/notes/",
    "/memories/../secret",
    "/etc/passwd",
    "/memories/a.md/inside",
]
LINES = ["", "tea", "coffee", "the cat sat", "ชาไทย ไม่หวาน", "tea tea", "x\r"]


@pytest.fixture
def tool(root: Path) -> Iterator[OctavoMemoryTool]:
    with octavo.open(root, actor="agent:claude", embedder=False) as account:
        yield OctavoMemoryTool(account)


def text(chance: random.Random) -> str:
    return "\n".join(chance.choice(LINES) for _ in range(chance.randrange(6)))


def random_command(chance: random.Random) -> dict[str, Any]:
    path = chance.choice(PATHS[:8] if chance.random() < 0.8 else PATHS)
    name = chance.choice(["view", "create", "create", "str_replace", "insert", "delete", "rename"])
    more: dict[str, dict[str, Any]] = {
        "view": {"view_range": chance.choice([None, [1, 2], [2, -1], [0, 9], [3, 1], [2, -2]])},
        "create": {"file_text": text(chance)},
        "str_replace": {"old_str": chance.choice([*LINES, "e"]), "new_str": text(chance)},
        "insert": {"insert_line": chance.randrange(-1, 5), "insert_text": f"{text(chance)}\n"},
        "delete": {},
        "rename": {"old_path": path, "new_path": chance.choice(PATHS)},
    }
    command = {"command": name, **more[name]}
    return command if name == "rename" else {**command, "path": path}


def answer(tool: Any, command: dict[str, Any]) -> tuple[str, str]:
    try:
        said = str(tool.call(command))
    except ToolError as error:
        return "error", str(error)
    except OSError:
        return "error", "the disk says no"  # their tool lets these out as they are; ours has a sentence
    # A folder has a size only on a disk.
    told = re.sub(rf"^\S+\t(\S*/|{re.escape(str(command.get('path')))})$", r"\1", said, flags=re.MULTILINE)
    return "told", told


def same(theirs: tuple[str, str], ours: tuple[str, str]) -> bool:
    return theirs == ours or (theirs == ("error", "the disk says no") and ours[0] == "error")


@pytest.mark.slow
def test_random_commands_are_answered_as_by_the_tool_on_files(
    tool: OctavoMemoryTool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("fsync", "fdatasync"):  # this is about words; other tests prove what is durable
        monkeypatch.setattr(os, name, lambda _: None)
    told = {"told": 0, "error": 0}
    for seed in range(SEQUENCES):
        chance = random.Random(seed)
        theirs = BetaLocalFilesystemMemoryTool(str(tmp_path / "files" / str(seed)))
        done = []
        for _ in range(COMMANDS):
            command = random_command(chance)
            done.append(command)
            expected, said = answer(theirs, command), answer(tool, command)
            assert same(expected, said), (seed, done, expected, said)
            told[said[0]] += 1
        look = {"command": "view", "path": "/memories"}
        assert answer(theirs, look) == answer(tool, look), (seed, done)
        assert tool.clear_all_memory() == theirs.clear_all_memory()
    assert min(told.values()) > SEQUENCES  # both kinds of answers were really compared


def test_a_file_is_a_memory_with_a_history_that_recall_finds(tool: OctavoMemoryTool) -> None:
    tool.call({"command": "create", "path": "/memories/drinks/tea.md", "file_text": "Emi drinks jasmine tea"})
    tool.call(
        {
            "command": "str_replace",
            "path": "/memories/drinks/tea.md",
            "old_str": "jasmine",
            "new_str": "oolong",
        }
    )
    [file] = [m for m in tool.account.memories(category=CATEGORY) if m.text]
    assert [r.memory.text for r in tool.account.history(file.id)] == [
        "Emi drinks jasmine tea",
        "Emi drinks oolong tea",
    ]
    assert tool.account.recall("what tea does Emi drink")[0].memory.id == file.id
    tool.call({"command": "rename", "old_path": "/memories/drinks", "new_path": "/memories/likes"})
    assert tool.account.get(file.id).topic == "memories/likes/tea.md"


def test_what_the_gate_refuses_is_an_error_in_its_words_and_nothing_is_left(tool: OctavoMemoryTool) -> None:
    command = {"command": "create", "path": "/memories/keys/aws.md", "file_text": "AKIAIOSFODNN7EXAMPLE"}
    with pytest.raises(ToolError, match="secret"):
        tool.call(command)
    assert tool.account.memories(category=CATEGORY) == []


def test_the_folder_of_one_scope_is_not_that_of_another(opened: Any) -> None:
    for scope in ("orion", "elysia"):
        tool = OctavoMemoryTool(opened("agent:claude", scope=scope, embedder=False))
        tool.call({"command": "create", "path": "/memories/me.md", "file_text": f"I am {scope}"})
        assert f"I am {scope}" in tool.call({"command": "view", "path": "/memories/me.md"})


def test_a_path_that_no_topic_can_hold_is_an_error(tool: OctavoMemoryTool) -> None:
    for name in ("x" * 300, "a\nb", " "):
        with pytest.raises(ToolError, match="cannot be used"):
            tool.call({"command": "create", "path": f"/memories/{name}", "file_text": "tea"})


def test_half_a_character_is_an_error_that_the_model_is_told(tool: OctavoMemoryTool) -> None:
    with pytest.raises(ToolError, match="half a character"):
        tool.call({"command": "create", "path": "/memories/a.md", "file_text": "cut \ud83d"})
    assert "a.md" not in str(tool.call({"command": "view", "path": "/memories"}))
