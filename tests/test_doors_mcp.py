"""The MCP door, asked by the SDK's own client: ten slim tools, pages, one prompt, errors that lead on."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
import uvicorn
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation
from msgspec.structs import replace
from starlette.testclient import TestClient

import octavo
from octavo.doors import conversations, mcp, rest, serving, tools
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import Tokens, Visitors

NAMES = (
    *("memory_recall", "memory_brief", "memory_remember", "memory_get", "memory_list", "memory_history"),
    *("memory_forget", "memory_turn", "memory_propose", "memory_status"),
)
BOT = Implementation(name="Some Client", version="1")


@pytest.fixture
def settings(root: Path) -> Settings:
    return Settings(root=root, account="User01", actor="human:somchai", models={"OCTAVO_EMBEDDER": "none"})


def talk(settings: Settings, act: Callable[[Client], Any], mode: str = "auto") -> Any:
    """Let a client talk to a server of these settings, in this process."""
    held = mcp.Held(settings)

    async def run() -> Any:
        async with Client(mcp.server(held), client_info=BOT, mode=mode) as client:
            return await act(client)

    try:
        return anyio.run(run)
    finally:
        held.close()


async def ask(client: Client, tool: str, **arguments: Any) -> Any:
    answer = await client.call_tool(tool, arguments)
    assert not answer.is_error, answer.content[0].text
    return json.loads(answer.content[0].text)


async def fail(client: Client, tool: str, **arguments: Any) -> str:
    answer = await client.call_tool(tool, arguments)
    assert answer.is_error
    return answer.content[0].text


@pytest.mark.parametrize("mode", ["legacy", "auto"])
def test_there_are_ten_tools_each_with_four_annotations_and_a_schema(settings: Settings, mode: str) -> None:
    listed = talk(settings, lambda client: client.list_tools(), mode).tools
    assert tuple(tool.name for tool in listed) == NAMES
    for tool in listed:
        hints = tool.annotations
        told = (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint, hints.open_world_hint)
        assert all(isinstance(hint, bool) for hint in told)
        assert "memor" in tool.description
        assert tool.input_schema["additionalProperties"] is False
    assert [tool.name for tool in listed if tool.annotations.destructive_hint] == ["memory_forget"]
    # They must leave room: all ten take less than three thousand tokens or so of a context.
    assert len(json.dumps([tool.model_dump(exclude_none=True) for tool in listed])) < 12_000


def test_listing_the_tools_opens_no_account(settings: Settings) -> None:
    talk(settings, lambda client: client.list_tools())
    assert not settings.root.exists()


def test_an_id_goes_round_from_remember_through_every_tool_to_forget(settings: Settings) -> None:
    async def act(client: Client) -> None:
        said = await ask(client, "memory_remember", text="Somchai ย้ายไปเชียงใหม่เมื่อเดือนพฤษภาคม")
        assert said["outcome"] == "admitted"
        (hit,) = (await ask(client, "memory_recall", query="เชียงใหม่"))["hits"]
        assert set(hit) == {"id", "text", "at", "kind", "score"}
        assert hit["id"] == said["id"]
        whole = await ask(client, "memory_get", id=hit["id"])
        assert (whole["text"], whole["actor"], whole["scope"]) == (hit["text"], "agent:Some-Client", "shared")
        (listed,) = (await ask(client, "memory_list", kind="fact", limit="5"))["memories"]
        assert listed["id"] == hit["id"]
        better = await ask(client, "memory_remember", text="Somchai lives in Lampang", supersedes=hit["id"])
        ended = await ask(client, "memory_forget", ids=[better["id"]])
        assert [one["id"] for one in ended["forgotten"]] == [better["id"]]
        revisions = (await ask(client, "memory_history", id=better["id"]))["revisions"]
        assert revisions[-1]["gone"] is True
        assert (await ask(client, "memory_recall", query="Lampang"))["hits"] == []

    talk(settings, act)


def test_a_hit_that_no_longer_holds_says_what_replaced_it_and_standing_wishes_come_along(
    settings: Settings, opened
) -> None:
    account = opened()
    account.remember("Somchai lives in Bangkok", at=datetime(2026, 1, 1, tzinfo=UTC))
    newer = account.remember("Somchai moved and now lives in Lampang", at=datetime(2026, 6, 1, tzinfo=UTC))
    with account.sandbox() as sandbox:
        sandbox.turn("user", "From now on always answer me in Thai.")

    async def act(client: Client) -> Any:
        return await ask(client, "memory_recall", query="Where does Somchai live?")

    answer = talk(settings, act)
    older = next(hit for hit in answer["hits"] if "Bangkok" in hit["text"])
    assert older["replaced_by"] == newer.memory.id
    assert answer["user_asked_for"] == ["From now on always answer me in Thai."]


def test_a_list_goes_on_where_the_page_ended(settings: Settings) -> None:
    async def act(client: Client) -> None:
        for town in ("Lampang", "Nan", "Phrae"):
            await ask(client, "memory_remember", text=f"There is a warehouse for rice in {town}")
        first = await ask(client, "memory_list", limit=2)
        second = await ask(client, "memory_list", limit=2, after=first["next"])
        assert len(first["memories"]) == 2
        assert [m["text"] for m in second["memories"]] == ["There is a warehouse for rice in Lampang"]
        assert "next" not in second

    talk(settings, act)


def test_an_error_says_what_to_do_next_in_the_words_of_the_tools(settings: Settings) -> None:
    async def act(client: Client) -> None:
        missing = await fail(client, "memory_get", id="01nothing")
        assert "memory_list" in missing
        assert "`octavo memories`" not in missing
        assert "query" in await fail(client, "memory_recall")
        assert "it takes query" in await fail(client, "memory_recall", query="x", scope="orion")
        assert "k" in await fail(client, "memory_recall", query="x", k=10_000)
        assert "k" in await fail(client, "memory_recall", query="x", k="many")
        assert "query" in await fail(client, "memory_recall", query={"not": "text"})
        assert "write it like" in await fail(client, "memory_list", since="yesterday")
        assert "memory_recall" in await fail(client, "memory_dream")
        assert "evidence" in await fail(client, "memory_propose", text="is a vegetarian")
        assert "01nothing" in await fail(client, "memory_forget", ids=["01nothing"])

    talk(settings, act)


def test_what_the_gate_keeps_out_is_an_answer_with_a_reason(settings: Settings) -> None:
    async def act(client: Client) -> None:
        secret = await ask(client, "memory_remember", text="The key is AKIAIOSFODNN7EXAMPLE for the bucket")
        assert secret["outcome"] == "refused"
        assert secret["why"]
        assert "id" not in secret

    talk(settings, act)


def test_a_proposal_waits_for_a_person_and_needs_evidence(settings: Settings) -> None:
    async def act(client: Client) -> None:
        seen = await ask(client, "memory_remember", text="Somchai ordered the vegetable curry again")
        asked = await ask(client, "memory_propose", text="Somchai is a vegetarian", evidence=[seen["id"]])
        assert asked["outcome"] == "proposed"
        raised = await ask(client, "memory_propose", ids=[seen["id"]])
        assert raised["outcome"] == "proposed"
        assert (await ask(client, "memory_status"))["proposals"] == 2
        bare = await ask(client, "memory_remember", text="Somchai values quiet", kind="canon", topic="quiet")
        assert "data.reason" not in bare["next"]
        for more in ({"evidence": [seen["id"]]}, {"topic": "food"}):
            assert "text alone" in await fail(client, "memory_propose", ids=[seen["id"]], **more)

    talk(settings, act)
    with octavo.open(settings.root, "User01", actor="human:somchai") as account:
        assert {p.by for p in account.proposals()} == {"agent:Some-Client"}


def test_turns_are_a_conversation_and_count_when_it_is_over(settings: Settings) -> None:
    async def act(client: Client) -> None:
        for role, text in (("user", "I sold the boat."), ("assistant", "Which one?")):
            await ask(client, "memory_turn", role=role, text=text, conversation="monday")
        assert (await ask(client, "memory_status"))["open_conversations"] == 1
        done = await ask(
            client, "memory_turn", role="user", text="เรือลำสีฟ้า", conversation="monday", over=True
        )
        assert done["version"] == 1
        (hit, *_) = (await ask(client, "memory_recall", query="boat"))["hits"]
        assert "I sold the boat." in hit["text"]
        await ask(
            client, "memory_turn", role="user", text="One more thing: the pier.", conversation="tuesday"
        )

    talk(settings, act)
    with octavo.open(settings.root, "User01") as account:  # the client's end was the conversation's
        assert account.sandboxes() == []
        assert account.version == 2


def test_a_conversation_is_found_again_by_whatever_name_it_has(settings: Settings) -> None:
    names = ["4111111111111111", "sk-" + "a1" * 20, "ห้องคุย", "emi@example.com", "n" * 100]

    async def act(client: Client) -> None:
        for text in ("I sold the boat.", "It was the blue one."):
            for name in names:
                await ask(client, "memory_turn", role="user", text=text, conversation=name)
        assert (await ask(client, "memory_status"))["open_conversations"] == len(names)
        for version, name in enumerate(names, 1):
            told = {"role": "assistant", "text": "Noted.", "conversation": name, "over": True}
            assert (await ask(client, "memory_turn", **told))["version"] == version
        for name in ("", "  ", "n" * 101):
            said = await fail(client, "memory_turn", role="user", text="hello", conversation=name)
            assert "conversation is not empty and at most 100 characters" in said.replace("str, ", "")

    talk(settings, act)


def test_an_agents_handle_is_bound_and_never_a_persons(settings: Settings, opened) -> None:
    opened().remember("The vault is behind the mirror", scope="orion")

    async def act(client: Client) -> Any:
        assert (await ask(client, "memory_recall", query="vault mirror"))["hits"] == []
        return await ask(client, "memory_status")

    assert {k: v for k, v in talk(settings, act).items() if k in ("actor", "scope", "memories")} == {
        "actor": "agent:Some-Client",
        "scope": "shared",
        "memories": 0,
    }
    named = conversations.agent_settings(
        Settings(root=settings.root, actor="agent:orion", scope="orion"), "x"
    )
    assert (named.actor, named.scope) == ("agent:orion", "orion")
    assert conversations.agent_settings(settings, " \x00:/ ").actor == "agent:client"


def test_cores_are_resources_and_the_brief_is_a_prompt(settings: Settings, opened) -> None:
    account = opened()
    for n in range(8):
        with account.sandbox(f"day {n}") as sandbox:
            sandbox.turn("user", f"On day {n} I repaired the roof of house number {n}.")
            sandbox.turn("assistant", "Well done.")
    account.remember("Speaks Thai at home", kind="canon")
    account.compress()

    async def act(client: Client) -> None:
        page, file = (await client.list_resources()).resources
        assert (page.name, file.name) == ("core_000_000", "semantic/canon.md")
        text = (await client.read_resource(page.uri)).contents[0].text
        assert "roof" in text
        with pytest.raises(MCPError, match="core_999"):
            await client.read_resource("octavo://pages/core_999_001")
        (prompt,) = (await client.list_prompts()).prompts
        told = await client.get_prompt(prompt.name, {"query": "roof"})
        assert "Speaks Thai at home" in told.messages[0].content.text
        assert "Speaks Thai at home" in (await ask(client, "memory_brief"))["text"]
        assert (await ask(client, "memory_brief", budget=5))["text"] == "nothing fits so small a budget"

    talk(settings, act)


def test_files_of_the_mirror_are_resources_as_the_mirror_shows_them_within_the_scope(
    settings: Settings, opened, tmp_path: Path
) -> None:
    account = opened()
    account.remember("The blue key opens the north door", category="ของในบ้าน")
    account.remember("lives in Nan", kind="register", topic="home")
    account.remember("keeps bees", kind="register", topic="hobby", scope="orion")
    account.remember("the diary is in the attic", scope="elysia")
    account.mirror(tmp_path / "tree")

    async def act(client: Client) -> dict[str, tuple[str, str]]:
        listed = (await client.list_resources()).resources
        return {r.name: (await client.read_resource(r.uri)).contents[0].text for r in listed}

    read = talk(replace(settings, scope="orion"), act)
    assert len(read) == 3
    assert "keeps bees" in read["scopes/orion/semantic/registers.md"]
    assert not any("attic" in text for text in read.values())
    for name, text in read.items():
        assert (tmp_path / "tree" / name).read_text() == text

    async def gone(client: Client) -> None:
        with pytest.raises(MCPError, match="list the resources"):
            await client.read_resource("octavo://files/scopes/elysia/semantic/knowledge/general.md")

    talk(replace(settings, scope="orion"), gone)


def test_a_missing_account_is_said_at_the_call_and_not_begun_beside_others(
    settings: Settings, opened
) -> None:
    opened(account="Other")

    async def act(client: Client) -> str:
        return await fail(client, "memory_status")

    assert "octavo init" in talk(settings, act)


def test_every_tool_reads_its_parameters_from_the_table() -> None:
    for tool in tools.TOOLS:
        of_table = {p.name: p.summary for p in tool.operation.parameters}
        own = {
            "memory_turn": {"conversation", "over"},
            "memory_propose": {"ids", "text", "evidence", "topic"},
        }
        for parameter in tool.parameters:
            if parameter.name not in own.get(tool.name, ()):
                assert of_table[parameter.name] == parameter.summary


@contextmanager
def listening(app: Any) -> Iterator[str]:
    """Serve an app on the loopback interface."""
    with socket.create_server(("127.0.0.1", 0)) as socket_:
        server = uvicorn.Server(uvicorn.Config(app, log_level="error"))
        thread = threading.Thread(target=server.run, kwargs={"sockets": [socket_]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{socket_.getsockname()[1]}/mcp"
        finally:
            server.should_exit = True
            thread.join()


def test_the_server_answers_mcp_for_whom_the_token_is_and_nobody_without_one(settings: Settings) -> None:
    made, text = Tokens(settings.root).add("User01", "human:somchai", "orion", by="human:somchai")
    pool = Pool()
    app = rest.app(pool, settings, visitors=Visitors(settings), mounts=serving.MOUNTS)

    async def talk_with(url: str, headers: dict[str, str]) -> Any:
        http = httpx2.AsyncClient(headers=headers)
        async with http, Client(streamable_http_client(url, http_client=http), client_info=BOT) as client:
            return await client.call_tool("memory_status", {})

    with listening(app) as url:
        answer = anyio.run(talk_with, url, {"authorization": f"Bearer {text}"})
        status = json.loads(answer.content[0].text)
        assert (status["account"], status["scope"], status["actor"]) == (
            made.account,
            "orion",
            "agent:Some-Client",
        )
        for headers in ({"authorization": "Bearer nonsense"}, {}):
            refused = anyio.run(talk_with, url, headers)
            assert refused.is_error
            assert "token" in refused.content[0].text


def test_the_servers_mcp_has_nothing_to_listen_to(settings: Settings) -> None:
    app = rest.app(Pool(), settings, visitors=Visitors(settings), mounts=serving.MOUNTS)
    with TestClient(app, base_url="http://127.0.0.1") as client:  # else a stranger might hold it open
        answered = client.get("/mcp", headers={"Accept": "text/event-stream"})
        assert (answered.status_code, answered.json()["status"]) == (405, 405)


def test_a_body_without_end_is_too_large_at_every_path(settings: Settings) -> None:
    visitors = Visitors(settings)
    _, text = visitors.tokens.add("User01", "agent:bot", "orion", by="human:somchai")
    app = rest.app(Pool(), settings, visitors=visitors, mounts=serving.MOUNTS, max_bytes=1_000)
    headers = {"Authorization": f"Bearer {text}", "Accept": "application/json, text/event-stream"}
    with TestClient(app, base_url="http://127.0.0.1", headers=headers, client=("127.0.0.1", 1)) as client:
        for path in ("/mcp", "/@User01/remember", "/accounts/User01/memories"):
            answered = client.post(path, content=(b"x" * 400 for _ in range(4)))
            assert (answered.status_code, answered.json()["type"]) == (413, "/problems/TooLarge")


def lines(process: subprocess.Popen[str], request: dict[str, Any]) -> dict[str, Any]:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", **request}) + "\n")
    process.stdin.flush()
    return json.loads(process.stdout.readline()) if "id" in request else {}


def test_two_signals_a_tenth_of_a_second_apart_lose_nothing_and_nothing_is_on_standard_error(
    root: Path,
) -> None:
    command = [sys.executable, "-m", "octavo", "--root", str(root), "mcp"]
    environment = {**os.environ, "OCTAVO_EMBEDDER": "none"}
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(command, text=True, env=environment, **pipes) as process:
        hello = {
            "protocolVersion": "2025-06-18",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        }
        lines(process, {"id": 1, "method": "initialize", "params": hello})
        lines(process, {"method": "notifications/initialized"})
        for n in range(3):
            spoken = {"role": "user", "text": f"Pier number {n} is closed.", "conversation": "c"}
            call = {"name": "memory_turn", "arguments": spoken}
            assert lines(process, {"id": 2 + n, "method": "tools/call", "params": call})["result"]
        process.send_signal(signal.SIGINT)
        time.sleep(0.1)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        _, complaints = process.communicate(timeout=30)
        assert complaints == ""
    with octavo.open(root, "default", embedder=False) as account:
        for info in account.sandboxes():  # if the second signal came before the first had been heard
            account.resume(info.id).consolidate()
        said = " ".join(memory.text for memory in account.memories(kind="episode"))
        assert all(f"Pier number {n} is closed." in said for n in range(3))
