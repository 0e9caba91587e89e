"""What a hostile client tries: times, headers, names, tokens that nobody foresaw, a table for each kind."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

import octavo
from octavo.doors import rest, serving
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import SAME_ORIGIN, Visitors
from octavo.errors import BadInput

HERE = "http://127.0.0.1:8787"
BASE = "/accounts/User01"
TIMES = {"at", "since", "until", "started_at"}
TAG = {"tags": [f"ป้าย {n}" for n in range(257)]}


@pytest.fixture
def door(root: Path) -> tuple[Any, Visitors]:
    """A whole server of two accounts, and who may come in."""
    for name in ("User01", "Emi"):
        octavo.open(root, name, actor="human:you", embedder=False).close()
    settings = Settings(root=root, account="User01", actor="human:you", models={"OCTAVO_EMBEDDER": "none"})
    visitors = Visitors(settings)
    return rest.app(Pool(), settings, visitors=visitors, mounts=serving.MOUNTS), visitors


@pytest.fixture
def client(door: tuple[Any, Visitors]) -> Iterator[TestClient]:
    """The person at this machine."""
    app, visitors = door
    own = {SAME_ORIGIN: visitors.same_origin}
    with TestClient(app, HERE, headers=own, client=("127.0.0.1", 1), raise_server_exceptions=False) as made:
        yield made


@pytest.fixture
def address(door: tuple[Any, Visitors]) -> Iterator[str]:
    """The same on a real port, for what streams."""
    app, _ = door
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="error", timeout_graceful_shutdown=2))
    app.state.is_ending = lambda: server.should_exit
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join()


def held(visitors: Visitors, account: str = "User01") -> dict[str, str]:
    """The headers of an agent's token."""
    _, text = visitors.tokens.add(account, "agent:bot", "shared", by="human:you")
    return {"Authorization": f"Bearer {text}"}


@pytest.mark.parametrize("at", ["9999-12-31T23:59:59-23:59", "0001-01-01T00:00+23:59"])
def test_a_time_that_a_zone_carries_out_of_the_calendar_fits_nowhere(
    door: tuple[Any, Visitors], client: TestClient, at: str
) -> None:
    asked = 0
    told = {"items": [{"text": "ชอบชาเขียว"}], "data": {}, "ids": ["none"], "name": "x"}
    for path, methods in door[0].openapi()["paths"].items():
        address = path.replace("{account}", "User01").replace("{version}", "1")
        for method, operation in methods.items():
            body = operation.get("requestBody", {}).get("content", {}).get("application/json", {})
            parts = body.get("schema", {"properties": {}, "required": ()})
            query = {one["name"]: one for one in operation.get("parameters", ()) if one["in"] == "query"}
            for name in TIMES & (parts["properties"].keys() | query.keys()):
                needed = parts["required"] if body else [n for n, one in query.items() if one["required"]]
                said = {**{n: told.get(n, "x") for n in needed}, name: at}
                found = client.request(method, address, **({"json": said} if body else {"params": said}))
                assert (found.status_code, "lies outside" in found.text) == (400, True), (path, found.text)
                asked += 1
    assert asked > 30
    with octavo.open(door[1].settings.root, "User01", embedder=False) as account:
        assert account.memories() == []


@pytest.mark.parametrize(
    ("method", "path", "headers", "status", "says"),
    [
        ("POST", "memories", {"If-Match": '"1"'}, 400, "remember takes no If-Match"),
        ("POST", "memories/{id}/redact", {"If-Match": "*"}, 400, "redact takes no If-Match"),
        ("POST", "memories/{id}/promote", {"Idempotency-Key": "k"}, 400, "promote takes no Idempotency-Key"),
        ("PATCH", "memories/{id}", {"If-Match": 'W/"1"'}, 400, "if-match does not fit"),
        ("PATCH", "memories/{id}", {"If-Match": '"2"'}, 412, "revision"),
        ("PATCH", "memories/{id}", {"If-Match": '"99999999999999999999"'}, 400, "if-match does not fit"),
        ("PATCH", "memories/{id}", {"If-Match": "*"}, 200, '"rev":2'),
        ("GET", "memories/{id}", {"If-None-Match": "*"}, 304, ""),
        ("GET", "memories/{id}", {"If-None-Match": '"7", W/"1"'}, 304, ""),
        ("GET", "memories/{id}", {"If-None-Match": '"11"'}, 200, '"rev":1'),
        ("GET", "events", {"Last-Event-ID": "9"}, 400, "the newest version is 1"),
        ("GET", "events", {"Last-Event-ID": "x"}, 400, "last-event-id does not fit"),
        ("GET", "memories", {"Authorization": "Bearer x"}, 401, "nobody is known"),
        ("GET", "memories", {"Authorization": ""}, 401, "nobody is known"),
        ("GET", "memories", {"Origin": "null"}, 403, "may not ask here"),
        ("GET", "memories", {"Via": "1.1 proxy"}, 401, "only this machine is served"),
        ("GET", "memories", {"X-Forwarded-Host": "127.0.0.1"}, 401, "only this machine is served"),
        ("GET", "memories", {"Host": "127.0.0.1@evil.example"}, 403, "this server is not"),
    ],
)
def test_a_header_that_asks_for_something_is_heard_or_refused(
    client: TestClient, method: str, path: str, headers: dict[str, str], status: int, says: str
) -> None:
    id_ = client.post(f"{BASE}/memories", json={"text": "ชอบชาเขียว"}).json()["memory"]["id"]
    body = {"json": {"text": "ชอบชาดำ", "reason": "asked to"}} if method != "GET" else {}
    if method != "GET":
        body["json"].pop("reason" if "redact" not in path else "text")
    answered = client.request(method, f"{BASE}/{path.format(id=id_)}", headers=headers, **body)
    assert (answered.status_code, says in answered.text) == (status, True), answered.text


def test_a_key_is_a_key_whatever_it_says_and_each_scope_has_its_own(
    door: tuple[Any, Visitors], client: TestClient
) -> None:
    texts = iter(["plays chess badly", "works at the harbour", "owns a red bicycle", "ชอบชาเขียว"])
    for key in ("*", '"*"', "a b"):
        first = client.post(f"{BASE}/memories", json={"text": next(texts)}, headers={"Idempotency-Key": key})
        again = client.post(f"{BASE}/memories", json={"text": "is 44"}, headers={"Idempotency-Key": key})
        assert again.json()["memory"]["id"] == first.json()["memory"]["id"], key
        if key == "*":
            next_ = first.json()["memory"]["id"]
        elif key == '"*"':
            assert first.json()["memory"]["id"] == next_  # with quotes or without
    _, text = door[1].tokens.add("User01", "agent:bot", "orion", by="human:you")
    bot = {"Authorization": f"Bearer {text}", "Idempotency-Key": "*"}
    own = client.post(f"{BASE}/memories", json={"text": "the heron flies"}, headers=bot)
    assert (own.status_code, own.json()["memory"]["scope"]) == (201, "orion")


def test_more_tags_than_a_memory_can_have_are_no_question(client: TestClient) -> None:
    for path in ("memories", "recall", "assemblies"):
        asked = {**TAG, "query": "tea"} if path == "recall" else TAG
        answered = client.post(f"{BASE}/operations/{path}", json=asked)
        assert (answered.status_code, answered.json()["type"]) == (400, "/problems/BadInput"), answered.text
    assert client.get(f"{BASE}/memories", params={"tags": ["tea"] * 256}).status_code == 200


@pytest.mark.parametrize("name", [".tokens", ".", ".hooks", ".ชา"])
def test_no_account_takes_the_place_of_what_is_kept_beside_the_accounts(
    door: tuple[Any, Visitors], client: TestClient, root: Path, name: str
) -> None:
    bot = held(door[1])
    dotted = name.replace(".", "%2e")
    assert client.put(f"/accounts/{dotted}").status_code == 400
    assert client.delete(f"/accounts/{dotted}").status_code == 404
    assert client.get("/session", headers=bot).json()["actor"] == "agent:bot"
    with pytest.raises(BadInput, match="cannot be used"):
        octavo.open(root, name)


def test_a_token_whose_account_is_gone_learns_of_no_other(
    door: tuple[Any, Visitors], client: TestClient, root: Path
) -> None:
    bot = held(door[1], "Gone")
    call = {"name": "memory_status", "arguments": {}}
    rpc = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call}
    answers = [
        client.get("/accounts/Gone/memories", headers=bot),
        client.post("/accounts/Gone/memories", headers=bot, json={"text": "likes tea"}),
        client.get("/accounts/Gone/events", headers=bot),
        client.get("/stats", headers=bot),
        client.post("/hooks/prompt", headers=bot, json={"session_id": "s", "prompt": "hello you"}),
        client.get("/@Gone/ask", headers=bot),
        client.post("/mcp", headers=bot | {"Accept": "application/json, text/event-stream"}, json=rpc),
    ]
    assert [one.status_code for one in answers] == [404] * 6 + [200]
    for one in answers:
        assert "is not there any more" in one.text
        assert not any(hidden in one.text for hidden in ("User01", "Emi", str(root)))
    assert "User01" in client.get("/accounts/Gone/memories").text  # to whom they belong they are named


def test_a_server_is_known_by_its_names_in_any_letters(root: Path) -> None:
    settings = Settings(root=root, account="User01", actor="human:you")
    visitors = Visitors(settings, hosts=["Memory.Example"])
    for host in ("memory.example", "MEMORY.example:8787", "LocalHost", "[::1]:1"):
        visitors.must_know_host(host)


def listen(address: str, account: str, headers: dict[str, str], heard: list[str]) -> threading.Thread:
    def hear() -> None:
        with httpx.stream("GET", f"{address}/accounts/{account}/events", headers=headers, timeout=30) as told:
            heard.append(str(told.status_code))
            heard.extend(line for line in told.iter_lines() if line)
        heard.append("ended")

    thread = threading.Thread(target=hear)
    thread.start()
    while len(heard) < 2:
        time.sleep(0.01)
    return thread


def test_who_listens_hears_the_end_when_the_token_is_revoked_or_the_account_is_deleted(
    door: tuple[Any, Visitors], address: str
) -> None:
    visitors, heard, own = door[1], ([], []), {SAME_ORIGIN: door[1].same_origin}
    revoked = listen(address, "User01", held(visitors), heard[0])
    deleted = listen(address, "Emi", own, heard[1])
    visitors.tokens.revoke(visitors.tokens.all()[0].id, by="human:you")
    httpx.post(f"{address}{BASE}/memories", headers=own, json={"text": "ความลับ"}).raise_for_status()
    httpx.delete(f"{address}/accounts/Emi", headers=own).raise_for_status()
    for thread, told in zip((revoked, deleted), heard, strict=True):
        thread.join(20)
        assert told == ["200", "retry: 1000", "ended"]


def test_who_hangs_up_while_sending_leaves_no_error_in_the_log(
    door: tuple[Any, Visitors],
    address: str,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(logging.getLogger("uvicorn"), "propagate", True)
    port, own = int(address.rpartition(":")[2]), {SAME_ORIGIN: door[1].same_origin}
    for path in (f"{BASE}/memories", "/hooks/prompt", "/@User01/remember"):
        head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        with socket.create_connection(("127.0.0.1", port)) as half:
            half.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
    while (counted := httpx.get(f"{address}/metrics", headers=own).text).count('"POST"') < 3:
        time.sleep(0.01)
    assert counted.count('status="500"') == 0
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_no_more_listen_at_once_than_are_let_in(
    door: tuple[Any, Visitors], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rest, "_LISTENERS", 5)
    asked = f"GET {BASE}/events HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode()
    port = int(address.rpartition(":")[2])
    open_ = [socket.create_connection(("127.0.0.1", port)) for _ in range(40)]
    for one in open_:
        one.sendall(asked)
    time.sleep(1.0)  # who was let in hears that it stays open
    heard = [one.recv(4096) for one in open_]
    assert 1 <= sum(b"retry: 1000" in told for told in heard) <= 5
    for one in open_:
        one.close()


def test_a_page_of_nothing_leads_nowhere(client: TestClient) -> None:
    client.post(f"{BASE}/memories", json={"text": "ชอบชาเขียว"})
    for path in ("memories?limit=0", "versions?limit=0", "versions?after=0&limit=0"):
        told = client.get(f"{BASE}/{path}")
        assert (told.json()["next"], "link" in told.headers) == (None, False), path


def test_an_account_is_deleted_and_begun_again_among_many_who_use_it(
    door: tuple[Any, Visitors], address: str
) -> None:
    own, fresh = {SAME_ORIGIN: door[1].same_origin}, f"{address}/accounts/Fresh"

    def ask(turn: int) -> tuple[str, int]:
        name, said = (
            ("delete", lambda: httpx.delete(fresh, headers=own)),
            ("put", lambda: httpx.put(fresh, headers=own)),
            ("post", lambda: httpx.post(f"{fresh}/memories", headers=own, json={"text": f"ชาแก้วที่ {turn}"})),
            ("get", lambda: httpx.get(f"{fresh}/memories", headers=own)),
        )[turn % 8 if turn % 8 < 2 else 2 + turn % 2]
        return name, said().status_code

    with ThreadPoolExecutor(12) as clients:
        told = set(clients.map(ask, range(96)))
    assert told <= {(name, status) for name in ("delete", "put", "post", "get") for status in (200, 201, 404)}
    assert httpx.put(fresh, headers=own).status_code in (200, 201)
    assert httpx.get(f"{fresh}/health", headers=own).json()["problems"] == []
    begun = f"{address}/accounts/Begun"
    with ThreadPoolExecutor(8) as clients:
        done = list(clients.map(lambda _: httpx.put(begun, headers=own).json()["is_new"], range(8)))
    assert sorted(done) == [False] * 7 + [True]


def test_hooks_of_one_conversation_that_come_at_once_are_all_heard(
    door: tuple[Any, Visitors], address: str
) -> None:
    own = {SAME_ORIGIN: door[1].same_origin}

    def say(turn: int, event: str = "prompt") -> int:
        said = {"session_id": f"4111-{turn % 5}", "prompt": f"ชาแก้วที่ {turn}"}
        return httpx.post(f"{address}/hooks/{event}", headers=own, json=said, timeout=60).status_code

    with ThreadPoolExecutor(16) as clients:
        assert set(clients.map(say, range(100))) == {200}
    assert {say(turn, "stop") for turn in range(5)} == {200}
    with octavo.open(door[1].settings.root, "User01", embedder=False) as account:
        assert account.sandboxes() == []
        heard = sorted(turn.text for m in account.memories(kind="episode") for turn in m.turns)
        assert heard == sorted(f"ชาแก้วที่ {turn}" for turn in range(100))
