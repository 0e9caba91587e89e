"""`octavo mcp` as a process of its own, walked through by the SDK's client at every kind of revision."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    LATEST_PROTOCOL_VERSION,
    METHOD_NOT_FOUND,
    Implementation,
    PromptReference,
)
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

import octavo
from octavo.doors.tools import TOOLS

PINNED = {"legacy": HANDSHAKE_PROTOCOL_VERSIONS[-1], "auto": LATEST_PROTOCOL_VERSION}


@pytest.fixture
def complaints(tmp_path: Path) -> Path:
    return tmp_path / "stderr.txt"


@pytest.fixture
def process(root: Path) -> StdioServerParameters:
    environment = {**os.environ, "OCTAVO_EMBEDDER": "none"}
    arguments = ["-m", "octavo", "--root", str(root), "--account", "User01", "mcp"]
    return StdioServerParameters(command=sys.executable, args=arguments, env=environment)


async def call(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    return json.loads(answer.content[0].text)


async def every_tool(client: Client) -> set[str]:
    """Call all ten, each with what another gave back; returns which were called."""
    said = await call(client, "memory_remember", text="สมชายย้ายไปเชียงใหม่", kind="register", topic="home/city")
    fact = await call(client, "memory_remember", text="Somchai repairs old radios.", tags=["hobby"])
    (hit,) = (await call(client, "memory_recall", query="radios", kinds=["fact"]))["hits"]
    assert hit["id"] == fact["id"]
    assert (await call(client, "memory_get", id=hit["id"]))["tags"] == ["hobby"]
    assert {m["id"] for m in (await call(client, "memory_list"))["memories"]} == {said["id"], fact["id"]}
    (revision,) = (await call(client, "memory_history", id=said["id"]))["revisions"]
    assert revision["rev"] == 1
    assert "เชียงใหม่" in (await call(client, "memory_brief", query="radios"))["text"]
    turn = await call(client, "memory_turn", role="user", text="Goodbye.", conversation="c", over=True)
    assert turn["version"]
    asked = await call(client, "memory_propose", ids=[fact["id"]])
    assert asked["outcome"] == "proposed"
    status = await call(client, "memory_status")
    assert (status["account"], status["actor"], status["proposals"]) == ("User01", "agent:walker", 1)
    (gone,) = (await call(client, "memory_forget", ids=[fact["id"]]))["forgotten"]
    assert gone["id"] == fact["id"]
    return {
        *("memory_remember", "memory_recall", "memory_get", "memory_list", "memory_history"),
        *("memory_brief", "memory_turn", "memory_propose", "memory_status", "memory_forget"),
    }


async def every_error(client: Client) -> None:
    """What is wrong with a call is its answer; what is wrong with a request is the protocol's error."""
    for tool, arguments, told in (
        ("memory_get", {"id": "nobody"}, "memory_list"),
        ("memory_get", {}, "id"),
        ("memory_recall", {"query": "x", "colour": "red"}, "colour"),
        ("memory_recall", {"query": "x", "k": 1_000}, "60"),
        ("memory_nothing", {}, "memory_recall"),
    ):
        answer = await client.call_tool(tool, arguments)
        assert answer.is_error, tool
        assert told in answer.content[0].text
    for wrong in (
        client.read_resource("octavo://pages/core_999_999"),
        client.read_resource("octavo://files/none.md"),
        client.get_prompt("nothing"),
    ):
        with pytest.raises(MCPError) as refused:
            await wrong
        assert refused.value.error.code == INVALID_PARAMS
    with pytest.raises(MCPError) as unknown:
        await client.complete(
            PromptReference(type="ref/prompt", name="brief"), {"name": "query", "value": "x"}
        )
    assert unknown.value.error.code == METHOD_NOT_FOUND


async def cancelled(client: Client) -> None:
    """A call that nobody waits for any more disturbs no other, and what it wrote is whole."""
    for n in range(5):
        with anyio.move_on_after(0.001 * n):
            await client.call_tool("memory_remember", {"text": f"The ferry number {n} sails at noon."})
    async with anyio.create_task_group() as tasks:
        for _ in range(4):
            tasks.start_soon(call, client, "memory_status")
    listed = await call(client, "memory_list", kind=["fact"])
    assert all(memory["text"].endswith("sails at noon.") for memory in listed["memories"])


@pytest.mark.parametrize("mode", PINNED)
def test_a_client_walks_through_everything_that_the_protocol_offers(
    process: StdioServerParameters, complaints: Path, root: Path, mode: str
) -> None:
    async def walk() -> None:
        with complaints.open("w") as errors:
            transport = stdio_client(process, errlog=errors)
            info = Implementation(name="walker", version="1")
            async with Client(transport, client_info=info, mode=mode) as client:
                assert client.protocol_version == PINNED[mode]
                assert client.server_info.name == "octavo"
                assert "memory_recall" in client.instructions
                has = client.server_capabilities
                assert None not in (has.tools, has.resources, has.prompts)
                listed = {tool.name for tool in (await client.list_tools()).tools}
                assert await every_tool(client) == listed == {tool.name for tool in TOOLS}
                await every_error(client)
                (page,) = (await client.list_resources()).resources
                (text,) = (await client.read_resource(page.uri)).contents
                assert "เชียงใหม่" in text.text
                assert text.mime_type == page.mime_type
                (prompt,) = (await client.list_prompts()).prompts
                (message,) = (await client.get_prompt(prompt.name, {"query": "home"})).messages
                assert (message.role, "เชียงใหม่" in message.content.text) == ("user", True)
                await cancelled(client)

    anyio.run(walk)
    assert complaints.read_text() == ""
    with octavo.open(root, "User01", embedder=False) as account:
        assert account.check()
        assert account.sandboxes() == []
        assert {memory.actor for memory in account.memories()} == {"agent:walker"}
