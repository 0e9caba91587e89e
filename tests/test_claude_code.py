"""Claude Code, the real one, on a loopback model: what one run stores by hook and tool the next one knows."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

import npm
import octavo
from claude_api import Api, Block, calls, messages_api, says
from octavo.doors.visitors import Tokens
from test_doors_servers import served

REMEMBER, RECALL = "mcp__octavo__memory_remember", "mcp__octavo__memory_recall"
Run = Callable[[Api, str], str]


def model(tool: str, **arguments: Any) -> Callable[[Mapping[str, Any]], list[Block]]:
    """A model that looks for a tool if it is hidden, calls it once, and then is done."""

    def script(request: Mapping[str, Any]) -> list[Block]:
        used = [block["name"] for block in blocks(request, "tool_use")]
        offered = [one["name"] for one in request.get("tools", [])]
        if tool in used or not offered or len(used) > 8:
            return [says("Good.")]
        if tool in offered:
            return [calls(tool, **arguments)]
        time.sleep(0.5 * len(used))  # servers connect while the model is asked already
        return [calls("ToolSearch", query="memory " + tool.rpartition("_")[2], max_results=3)]

    return script


def done(request: Mapping[str, Any]) -> list[Block]:
    """A model that only answers."""
    return [says("Noted.")]


def blocks(request: Mapping[str, Any], type_: str) -> list[Block]:
    contents = [message["content"] for message in request["messages"]]
    return [b for content in contents if isinstance(content, list) for b in content if b["type"] == type_]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own, and nothing of this machine's settings."""
    (tmp_path / "work").mkdir()
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(Path(octavo.__file__).parent.parent),
        "OCTAVO_EMBEDDER": "none",
        "ANTHROPIC_API_KEY": "sk-loopback",
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


@pytest.fixture
def claude(tmp_path: Path, environment: dict[str, str]) -> Run:
    """Ask Claude Code one thing, in a process of its own."""
    program = npm.installed("@anthropic-ai/claude-code", "2.1.325") / ".bin" / "claude"

    def run(api: Api, prompt: str) -> str:
        # A test machine may be slow; a person's is given 1.5 seconds, and what is cut off is made up for.
        more = {"ANTHROPIC_BASE_URL": api.url, "CLAUDE_CODE_SESSIONEND_HOOKS_TIMEOUT_MS": "30000"}
        done = subprocess.run(
            [program, "-p", prompt, "--allowedTools", "mcp__octavo", "--output-format", "json"],
            check=False,
            cwd=tmp_path / "work",
            env={**environment, **more},
            capture_output=True,
            text=True,
            timeout=120,
            stdin=subprocess.DEVNULL,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    return run


@pytest.mark.slow
@pytest.mark.parametrize("tool_search", ["default", "off"])
def test_what_one_run_stores_the_next_one_knows(
    claude: Run, environment: dict[str, str], tmp_path: Path, root: Path, tool_search: str
) -> None:
    if tool_search == "off":
        environment |= {"ENABLE_TOOL_SEARCH": "false", "MCP_CONNECTION_NONBLOCKING": "false"}
    install = [sys.executable, "-m", "octavo", "--root", str(root), "install", "claude-code", "--yes"]
    subprocess.run(install, env=environment, check=True, capture_output=True)

    fact = "The rice is kept in the warehouse of Lampang since May"
    with messages_api(model(REMEMBER, text=fact)) as api:
        claude(api, "My blue boat is called Mali, and she lies in Trat. เรือสีฟ้าชื่อมะลิ")
        offered = [tool for tool in api.requests[-1]["tools"] if tool["name"].startswith("mcp__octavo__")]
        assert (len(offered) == 10) == (tool_search == "off")
    with octavo.open(root, "default", embedder=False) as account:
        (stored,) = account.memories(kind="fact")
        assert (stored.text, stored.actor) == (fact, "agent:claude-code")
        (said,) = account.memories(kind="episode")
        assert [turn.speaker for turn in said.turns] == ["user", "assistant"]
        assert "เรือสีฟ้าชื่อมะลิ" in said.text
        assert account.sandboxes() == []
        assert len(account.sessions()) == 1

    with messages_api(model(RECALL, query="where is the rice kept?")) as api:
        claude(api, "What is my boat called?")
        first = json.dumps(api.requests[0]["messages"], ensure_ascii=False)
        assert "My blue boat is called Mali" in first
        assert "Remembered data, not instructions" in first
        (answer,) = [b for b in blocks(api.requests[-1], "tool_result") if RECALL[-6:] in b["tool_use_id"]]
        assert fact in json.dumps(answer)


@pytest.mark.slow
def test_what_the_running_server_hears_by_hooks_the_next_run_knows(
    claude: Run, environment: dict[str, str], tmp_path: Path, root: Path
) -> None:
    process, base = served(root)
    try:
        _, token = Tokens(root).add("default", "agent:claude-code", "shared", by="human:you")
        environment["OCTAVO_TOKEN"] = token
        (tmp_path / ".claude").mkdir()
        (tmp_path / ".claude" / "settings.json").write_text(json.dumps({"hooks": by_http(base)}))
        with messages_api(done) as api:
            claude(api, "My blue boat is called Mali. เรือสีฟ้าชื่อมะลิ")
        with messages_api(done) as api:
            claude(api, "What is my boat called?")
            assert "My blue boat is called Mali" in json.dumps(api.requests[0]["messages"])
    finally:
        process.terminate()
        process.wait(20)
    with octavo.open(root, "default", embedder=False) as account:
        first = account.memories(kind="episode")[0]
        assert [(turn.speaker, turn.text) for turn in first.turns] == [
            ("user", "My blue boat is called Mali. เรือสีฟ้าชื่อมะลิ"),
            ("assistant", "Noted."),
        ]


def by_http(base: str) -> dict[str, Any]:
    """Claude Code's settings for the hooks of docs/agents.md, at another port."""
    page = (Path(__file__).parent.parent / "docs" / "agents.md").read_text()
    (shown,) = re.findall(r"```json\n({\n  \"hooks\".*?)```", page, re.DOTALL)
    hooks: dict[str, Any] = json.loads(shown.replace("http://127.0.0.1:8787", base))["hooks"]
    return hooks
