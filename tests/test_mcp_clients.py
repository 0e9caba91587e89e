"""The MCP door before foreign clients: npm's SDK and inspector recall and forget by one id; conformance."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn

import npm
import octavo
from octavo.doors import mcp, rest
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Visitors

SCRIPT = """
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
const [command, ...args] = JSON.parse(process.argv[2]);
const transport = new StdioClientTransport({ command, args, env: process.env, stderr: "pipe" });
let complaints = "";
transport.stderr.on("data", (chunk) => { complaints += chunk; });
const client = new Client({ name: "node-client", version: "1" });
await client.connect(transport);
const ask = async (name, args) =>
  JSON.parse((await client.callTool({ name, arguments: args })).content[0].text);
const tools = (await client.listTools()).tools.map((tool) => tool.name);
const { hits } = await ask("memory_recall", { query: "Where is the rice kept?" });
const before = await ask("memory_history", { id: hits[0].id });
const forgotten = await ask("memory_forget", { ids: [hits[0].id] });
const after = await ask("memory_history", { id: hits[0].id });
const missing = await client.callTool({ name: "memory_get", arguments: { id: hits[0].id } });
await client.close();
console.log(JSON.stringify({ tools, hits, before, forgotten, after, missing, complaints }));
"""


@pytest.mark.slow
def test_the_client_of_npm_recalls_asks_the_history_and_forgets_by_the_same_id(root: Path) -> None:
    modules = npm.installed("@modelcontextprotocol/sdk", "1.32")
    with octavo.open(root, "default", actor="human:somchai", embedder=False) as account:
        memory = account.remember("The rice is kept in Lampang").or_raise()
    script = modules.parent / "recall.mjs"
    script.write_text(SCRIPT)
    server = [sys.executable, "-m", "octavo", "--root", str(root), "mcp"]
    done = subprocess.run(
        ["node", script, json.dumps(server)],
        env={**os.environ, "OCTAVO_EMBEDDER": "none"},
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    told = json.loads(done.stdout)
    assert len(told["tools"]) == 10
    assert [hit["id"] for hit in told["hits"]] == [memory.id]
    assert [r["rev"] for r in told["before"]["revisions"]] == [1]
    assert told["forgotten"]["forgotten"][0]["id"] == memory.id
    assert told["after"]["revisions"][-1]["gone"] is True
    assert told["missing"]["isError"] is True
    assert "memory_history" in told["missing"]["content"][0]["text"]
    assert told["complaints"] == ""


@pytest.mark.slow
def test_the_inspector_lists_recalls_asks_the_history_and_forgets_by_the_same_id(root: Path) -> None:
    program = npm.installed("@modelcontextprotocol/inspector", "2.12") / ".bin" / "mcp-inspector"
    with octavo.open(root, "default", actor="human:somchai", embedder=False) as account:
        memory = account.remember("The rice is kept in Lampang").or_raise()
    server = [sys.executable, "-m", "octavo", "--root", str(root), "mcp"]

    def inspect(*what: str) -> Any:
        # It hands nothing of its own environment on.
        own = ["-e", "OCTAVO_EMBEDDER=none", "-e", f"PYTHONPATH={Path(octavo.__file__).parent.parent}"]
        line = [npm.node22(), program, "--cli", "--connect-timeout", "0", *own, *server, "--method", *what]
        done = subprocess.run(line, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    def ask(tool: str, argument: str) -> Any:
        answered = inspect("tools/call", "--tool-name", tool, "--tool-arg", argument)
        return json.loads(answered["content"][0]["text"])

    with ThreadPoolExecutor(2) as clients:  # what only reads need not wait for one another
        eras = [
            clients.submit(inspect, "tools/list", "--protocol-era", era)
            for era in ("legacy", "modern")  # with a handshake, and without
        ]
        recalled = clients.submit(ask, "memory_recall", "query=where is the rice kept?")
        history = clients.submit(ask, "memory_history", f"id={memory.id}")
        assert [len(era.result()["tools"]) for era in eras] == [10, 10]
        assert [hit["id"] for hit in recalled.result()["hits"]] == [memory.id]
        assert [r["rev"] for r in history.result()["revisions"]] == [1]
    assert ask("memory_forget", f'ids=["{memory.id}"]')["forgotten"][0]["id"] == memory.id
    with octavo.open(root, "default", embedder=False) as account:
        assert account.history(memory.id)[-1].memory.gone


SCENARIOS = (
    *("server-initialize", "ping", "tools-list", "tools-call-error", "resources-list", "prompts-list"),
    "dns-rebinding-protection",
)


@pytest.fixture
def address(root: Path) -> Iterator[str]:
    """The whole server, asked with a token, which the conformance client has no way to send."""
    octavo.open(root, "User01", actor="human:you", embedder=False).close()
    settings = Settings(root=root, account="User01", actor="human:you", models={"OCTAVO_EMBEDDER": "none"})
    visitors = Visitors(settings)
    _, token = visitors.tokens.add("User01", "agent:conformance", "shared", by="human:you")
    app = rest.app(Pool(), settings, visitors=visitors, mounts=(mcp.add,))
    carried = (b"authorization", f"Bearer {token}".encode())

    async def with_token(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            scope = {**scope, "headers": [*scope["headers"], carried]}
        await app(scope, receive, send)

    server = uvicorn.Server(uvicorn.Config(with_token, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/mcp"
    server.should_exit = True
    thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("revision", ["2025-06-18", "2025-11-25"])
def test_the_scenarios_of_conformance_that_apply_pass(address: str, revision: str, tmp_path: Path) -> None:
    """The others drive a server of fixtures: images, sampling, elicitation, subscriptions."""
    package = npm.installed("@modelcontextprotocol/conformance", "0.1.16") / "@modelcontextprotocol"
    program = package / "conformance" / "dist" / "index.js"
    running = []
    for scenario in SCENARIOS:
        line = [npm.node22(), program, "server", "--url", address, "--scenario", scenario]
        line += ["--spec-version", revision]
        running.append(subprocess.Popen(line, stdout=subprocess.PIPE, text=True, cwd=tmp_path))
        if len(running) % 2 == 0:  # two at a time, as the machine has cores
            running[-2].wait(60)
    for scenario, process in zip(SCENARIOS, running, strict=True):
        told, _ = process.communicate(timeout=60)
        assert process.returncode == 0, f"{scenario}: {told}"
        assert re.search(r"Passed: ([1-9])/\1, 0 failed, 0 warnings", told), f"{scenario}: {told}"


@pytest.mark.parametrize("revision", ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"])
def test_every_revision_with_a_handshake_is_answered_in_its_own_words(address: str, revision: str) -> None:
    hello = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    said = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}
    both = {"Accept": "application/json, text/event-stream"}
    assert httpx.post(address, json=said, headers=both).json()["result"]["protocolVersion"] == revision
