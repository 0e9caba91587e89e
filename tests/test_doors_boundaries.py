"""The doors: a secret or a nasty value by any route, tool, hook or command stays nowhere, breaks nothing."""

from __future__ import annotations

import io
import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import anyio
import pytest
from mcp.client import Client
from mcp.shared.exceptions import MCPError
from mcp.types import Implementation
from starlette.testclient import TestClient

import octavo
from canaries import holding
from octavo.doors import cli, hooks, mcp, rest, serving
from octavo.doors.operations import OPERATIONS
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.tools import TOOLS
from octavo.doors.visitors import SAME_ORIGIN, Visitors

KEY = "AKIAIOSFODNN7Q2XMPLE"
SAID = "password: Hunter2-zebra-9"
CANARIES = {KEY: KEY, SAID: "Hunter2-zebra-9"}  # what is handed in, and what must be nowhere
NASTY: list[Any] = [
    None, True, -5, 2**70, 0.5, "", " ", "\u200b", "\x00", "a" * 3000, "../x", "*",
    [], [None], [[]], {}, {"a": {"b": [1]}},
]  # fmt: skip
FITTING: dict[str, Any] = {
    "account": "User01", "id": "tea-1", "memory_id": "tea-1", "ids": ["tea-1"], "first": "tea-1",
    "second": "tea-2", "sandbox": "box-1", "version": 1, "event": "prompt", "level": "semantic",
    "name": "BadInput", "session_id": "s-1", "query": "tea", "text": "keeps two cats", "role": "user",
}  # fmt: skip
HEADERS = ("Idempotency-Key", "If-Match", "Last-Event-ID", "User-Agent")
BOT = Implementation(name="Some Client", version="1")
# They end what is asked, or wait for ever.
ENDLESS = {("delete", "/accounts/{account}"), ("get", "/accounts/{account}/events")}
ENDING = ("delete_account", "move")


@pytest.fixture
def settings(root: Path) -> Settings:
    return Settings(root=root, account="User01", actor="human:you", models={"OCTAVO_EMBEDDER": "none"})


@pytest.fixture
def client(settings: Settings) -> Iterator[TestClient]:
    """A client of the whole server, as a page of its own is."""
    with octavo.open(settings.root, "User01", actor="human:you", embedder=False) as account:
        account.remember("likes green tea", id="tea-1")
        account.remember("likes black coffee", id="tea-2")
        account.sandbox("talk", id="box-1").close()
    visitors = Visitors(settings)
    app = rest.app(Pool(), settings, visitors=visitors, requests=10**6, mounts=serving.MOUNTS)
    how: dict[str, Any] = {"headers": {SAME_ORIGIN: visitors.same_origin}, "client": ("127.0.0.1", 5000)}
    with TestClient(app, base_url="http://127.0.0.1:8787", raise_server_exceptions=False, **how) as made:
        yield made


def shaped(schema: dict[str, Any], value: Any) -> Any:
    """A value in the shape that a schema wants, wherever that takes it."""
    for one in schema.get("anyOf", []):
        if one.get("type") != "null":
            return shaped(one, value)
    match schema.get("type"):
        case "array":
            return [shaped(schema.get("items", {}), value)]
        case "object":
            return {"a": value, "text": value, value if isinstance(value, str) else "b": "c"}
        case "integer" | "number":
            return max(1, schema.get("minimum", 1))
        case "boolean":
            return True
        case _:
            return value


def requests(client: TestClient, values: list[Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """A request for every value in every place of every route that the server describes."""
    described = client.get("/openapi.json").json()
    for path, methods in described["paths"].items():
        for method, route in methods.items():
            if (method, path) in ENDLESS:
                continue
            in_path = re.findall(r"{(\w+)", path)
            in_query = [p["name"] for p in route.get("parameters", []) if p["in"] == "query"]
            fields, base = _body(route)
            body = {"json": base} if fields else {}
            for value in values:
                put = value if isinstance(value, str) else json.dumps(value)
                url = _url(path, {})
                for name in in_path:
                    yield method, _url(path, {name: put}), body
                for name in in_query:
                    yield method, url, {"params": {"query": "tea", name: put}, **body}
                for name, schema in fields.items():
                    yield method, url, {"json": {**base, name: value}}
                    yield method, url, {"json": {**base, name: shaped(schema, value)}}
                if isinstance(value, str) and value.isprintable() and value.isascii():
                    yield method, url, {"headers": dict.fromkeys(HEADERS, value), **body}


def _body(route: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The fields of a route's body, and one that fits."""
    model = route.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    fields = model.get("properties", {})
    return fields, {n: FITTING.get(n, shaped(fields[n], "hello")) for n in model.get("required", ())}


def _url(path: str, said: dict[str, str]) -> str:
    values = {**FITTING, **said}
    return re.sub(r"{(\w+)(?::\w+)?}", lambda m: quote(str(values.get(m[1], "x")), safe="") or "%20", path)


def silent(root: Path, said: str) -> None:
    for secret in CANARIES.values():
        assert secret not in said
        assert holding(root, secret) == []
        assert not [path for path in root.rglob("*") if secret.lower() in path.name.replace("+", "")]


def test_a_secret_by_any_route_of_the_server_stays_nowhere(client, root, caplog, capfd):
    told, statuses = [], []
    for method, url, how in requests(client, list(CANARIES)):
        answer = client.request(method.upper(), url, **how)
        statuses.append(answer.status_code)
        if answer.status_code >= 400:
            told.append(answer.text)
    assert len(statuses) > 1000
    assert {200, 201, 400, 404} <= set(statuses)
    assert 500 not in statuses
    said = capfd.readouterr()
    silent(root, "\n".join(told) + caplog.text + said.out + said.err)
    assert client.post("/accounts/User01/memories", json={"text": "likes rivers"}).status_code == 201


def test_a_nasty_value_by_any_route_of_the_server_is_a_problem_and_no_defect(client):
    for method, url, how in requests(client, NASTY):
        answer = client.request(method.upper(), url, **how)
        assert answer.status_code < 500, (method, url, how, answer.text)
    assert client.get("/accounts/User01/health").json()["problems"] == []


def asked_by_mcp(settings: Settings, values: list[Any]) -> list[str]:
    """What the tools, resources and prompts of MCP answer to every value in every place of them."""
    held = mcp.Held(settings)
    told: list[str] = []

    async def run() -> None:
        async with Client(mcp.server(held), client_info=BOT) as client:
            for value in values:
                for tool in TOOLS:
                    base = {p.name: FITTING.get(p.name, "hello") for p in tool.parameters if p.is_required}
                    for name in (*(p.name for p in tool.parameters), "actor", str(value)[:40]):
                        answer = await client.call_tool(tool.name, {**base, name: value})
                        told.append(("error " if answer.is_error else "") + answer.content[0].text)
                for act, more in (
                    (client.read_resource, (f"octavo://files/{value}",)),
                    (client.get_prompt, (str(value),)),
                    (client.get_prompt, ("brief", {"query": str(value)})),
                    (client.call_tool, (str(value),)),
                ):
                    try:
                        told.append(str(await act(*more)))
                    except MCPError as error:
                        told.append(f"error {error}")

    try:
        anyio.run(run)
    finally:
        held.close()
    return told


def test_a_secret_by_any_tool_stays_nowhere(client, settings, root, caplog):
    told = asked_by_mcp(settings, list(CANARIES))
    errors = [one for one in told if one.startswith("error")]
    assert 20 < len(errors) < len(told)
    silent(root, caplog.text + "\n".join(errors))


def test_a_nasty_value_by_any_tool_is_answered_and_no_defect(client, settings):
    told = asked_by_mcp(settings, NASTY)
    assert [one for one in told if re.search(r"failed: \w+\. Next|Internal|Traceback", one)] == []


def test_a_secret_by_any_hook_stays_nowhere(client, settings, root, tmp_path, caplog, capfd, monkeypatch):
    transcript = tmp_path / "said.jsonl"
    for canary in CANARIES:
        message = {"role": canary, "content": [{"type": "text", "text": canary}]}
        lines = [
            {"type": "user", "message": {"role": "user", "content": canary}, "uuid": canary, "cwd": canary},
            {"type": "user", "message": message, "timestamp": canary},
            {canary: canary},
        ]
        transcript.write_text("\n".join(map(json.dumps, lines)) + f"\n{canary}\n")
        base = {"session_id": "s-1", "transcript_path": str(transcript), "prompt": "hello"}
        for event in (*hooks.EVENTS, canary):
            for name in ("session_id", "prompt", "transcript_path", "hook_event_name", "cwd", canary):
                data = json.dumps({**base, name: canary}).encode()
                monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
                hooks.answer(settings, event)
    silent(root, caplog.text + capfd.readouterr().err)
    with octavo.open(root, "User01", embedder=False) as account:
        assert any("[aws_key]" in m.text for m in account.memories(kind="episode"))


def command_lines(values: list[str], folder: Path) -> Iterator[list[str]]:
    """A command line for every value in every place of every command that the table knows."""
    for operation in (one for one in OPERATIONS if one.name not in ENDING):
        name = operation.name.replace("_", "-")
        needed = [p.name for p in operation.parameters if p.is_positional and p.is_required]
        fitting = {**FITTING, "path": folder / "out"}
        base = [str(fitting.get(parameter, "hello")) for parameter in needed]
        options = [p.name for p in operation.parameters if not p.is_positional and p.type is not bool]
        for value in values:
            for place in range(len(base)):
                yield [name, *base[:place], value, *base[place + 1 :]]
            for option in (*options, "scope", "account"):
                yield [name, *base, f"--{option.replace('_', '-')}", value]
            yield [name, *base, "--actor", f"human:{value}"]
            yield [name, *base, f"--{value}"]
            yield [name, *base, value, value]


def test_a_secret_in_any_place_of_a_command_line_stays_nowhere(
    client, root, tmp_path, caplog, capfd, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    for name, value in (("ROOT", str(root)), ("ACCOUNT", "User01"), ("EMBEDDER", "none")):
        monkeypatch.setenv(f"OCTAVO_{name}", value)
    codes, told = set(), ""
    for arguments in command_lines(list(CANARIES), tmp_path):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"")))
        codes.add(cli.run(arguments))
        told += capfd.readouterr().err
    assert {0, 2} <= codes
    assert "defect of Octavo" not in told
    silent(root, told + caplog.text)
