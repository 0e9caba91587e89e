"""The REST door: routes from the table, problems, revisions, retries, pages, events, the documents' paths."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2 as httpx
import pytest
import uvicorn
from starlette.testclient import TestClient

import octavo
from octavo.doors import hooks, problems, rest, rest_seeds
from octavo.doors.operations import OPERATIONS
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import SAME_ORIGIN, Visitors

HERE = "http://127.0.0.1:8787"
BASE = "/accounts/User01"


def made(root: Path, **more: Any) -> tuple[Any, Visitors]:
    settings = Settings(root=root, account="User01", actor="human:you", models={"OCTAVO_EMBEDDER": "none"})
    visitors = Visitors(settings)
    return rest.app(Pool(), settings, visitors=visitors, mounts=(rest_seeds.add, hooks.add), **more), visitors


def client_of(app: Any, visitors: Visitors) -> TestClient:
    headers = {SAME_ORIGIN: visitors.same_origin}
    return TestClient(app, base_url=HERE, headers=headers, client=("127.0.0.1", 50000))


@pytest.fixture
def client(root: Path) -> Iterator[TestClient]:
    """A client on this machine, as a page of the server's own is."""
    app, visitors = made(root)
    with client_of(app, visitors) as client:
        yield client


@pytest.fixture
def served(root: Path) -> Iterator[tuple[str, Visitors]]:
    """A real server on a free port, for what streams."""
    app, visitors = made(root)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="critical", timeout_graceful_shutdown=2))
    app.state.is_ending = lambda: server.should_exit
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    yield f"http://127.0.0.1:{port}", visitors
    server.should_exit = True
    thread.join()


def remember(client: TestClient, text: str, **more: Any) -> Any:
    return client.post(f"{BASE}/memories", json={"text": text, **more})


def test_a_memory_is_written_found_revised_and_forgotten(client: TestClient) -> None:
    written = remember(client, "lives in Chiang Mai", tags=["home"])
    id_ = written.json()["memory"]["id"]
    assert (written.status_code, written.headers["etag"]) == (201, '"1"')
    assert remember(client, "lives in Chiang Mai").status_code == 200  # it is there already
    hits = client.get(f"{BASE}/memories/search", params={"query": "who lives in Chiang Mai?"}).json()["hits"]
    assert [hit["memory"]["id"] for hit in hits] == [id_]
    same = client.post(f"{BASE}/memories/search", json={"query": "Chiang Mai", "k": 1, "why": True}).json()
    assert same["hits"][0]["text"] == "lives in Chiang Mai"
    assert client.patch(f"{BASE}/memories/{id_}", json={"text": "อยู่ที่ลำปาง"}).headers["etag"] == '"2"'
    history = client.get(f"{BASE}/memories/{id_}/history").json()["revisions"]
    assert [revision["memory"]["text"] for revision in history] == ["lives in Chiang Mai", "อยู่ที่ลำปาง"]
    assert client.get(f"{BASE}/memories/{id_}", params={"at": 1}).json()["text"] == "lives in Chiang Mai"
    assert client.delete(f"{BASE}/memories/{id_}").status_code == 200
    assert client.get(f"{BASE}/memories/{id_}").status_code == 404
    assert client.delete(f"{BASE}/memories/{id_}").status_code == 404


def test_a_conversation_becomes_a_version_and_can_be_undone(client: TestClient) -> None:
    sandbox = client.post(f"{BASE}/sandboxes", json={"name": "Sandbox 09:30"}).json()["id"]
    for role, text in (("user", "I moved to Chiang Mai."), ("assistant", "How do you like it?")):
        client.post(f"{BASE}/sandboxes/{sandbox}/turns", json={"role": role, "text": text}).raise_for_status()
    assert len(client.get(f"{BASE}/sandboxes/{sandbox}").json()["entries"]) == 2
    done = client.post(f"{BASE}/sandboxes/{sandbox}/consolidate").json()
    assert client.post(f"{BASE}/sandboxes/{sandbox}/consolidate").json() == done  # as often as asked
    assert client.get(f"{BASE}/diff", params={"before": 0, "after": 1}).json()["added"]
    assert client.get(f"{BASE}/stats").json()["episodes"] == 1
    assert client.post(f"{BASE}/versions/0/restore").json() == {"version": 2}
    assert client.get(f"{BASE}/stats").json()["episodes"] == 0
    other = client.post(f"{BASE}/sandboxes").json()["id"]
    assert client.delete(f"{BASE}/sandboxes/{other}").json() == {"discarded": other}
    assert "moved" not in client.get(f"{BASE}/brief").json()["text"]


def test_every_operation_that_names_no_file_answers_by_its_name(client: TestClient) -> None:
    remember(client, "likes green tea").raise_for_status()
    paths = client.get("/openapi.json").json()["paths"]
    by_name = {path.rpartition("/")[2] for path in paths if "/operations/" in path}
    remote = {o.name for o in OPERATIONS if not o.local and o.subjects != (Settings,)}
    assert by_name == remote
    assert client.post(f"{BASE}/operations/memories").json()["memories"][0]["text"] == "likes green tea"
    assert client.post(f"{BASE}/operations/counters").json()["counters"]["Session_seq"] == 0


def test_a_refusal_and_a_proposal_have_their_own_status(client: TestClient, root: Path) -> None:
    refused = remember(client, "api_key: sk-abc123def456ghi789jkl012mno345pq")
    assert (refused.status_code, refused.json()["type"]) == (422, "/problems/Refused")
    assert "sk-abc" not in refused.text
    with octavo.open(root, "User01", actor="agent:bot", embedder=False) as agent:
        agent.remember("prefers dark mode", kind="canon", topic="mode")
    (proposal,) = client.get(f"{BASE}/proposals").json()["proposals"]
    assert client.get(f"{BASE}/proposals/{proposal['id']}").status_code == 200
    assert client.post(f"{BASE}/proposals/{proposal['id']}/approve").status_code == 200
    assert client.get(f"{BASE}/proposals").json()["proposals"] == []


def test_if_match_insists_on_a_revision(client: TestClient) -> None:
    id_ = remember(client, "lives in Chiang Mai").json()["memory"]["id"]
    path = f"{BASE}/memories/{id_}"
    first = client.patch(path, json={"text": "lives in Lampang"}, headers={"If-Match": '"1"'})
    second = client.patch(path, json={"text": "lives in Nan"}, headers={"If-Match": '"1"'})
    assert (first.status_code, second.status_code) == (200, 412)
    assert second.json()["status"] == 412
    assert client.delete(path, headers={"If-Match": '"1"'}).status_code == 412
    unfit = client.patch(path, json={"text": "lives in Nan"}, headers={"If-Match": "x"})
    assert (unfit.status_code, "if-match" in unfit.json()["detail"]) == (400, True)
    seen = client.get(path)
    again = client.get(path, headers={"If-None-Match": seen.headers["etag"]})
    assert (again.status_code, again.content) == (304, b"")
    for held in (f"W/{seen.headers['etag']}", f'"9", {seen.headers["etag"]}'):
        assert client.get(path, headers={"If-None-Match": held}).status_code == 304
    assert client.get(path, headers={"If-None-Match": '"12"'}).status_code == 200
    assert client.delete(path, headers={"If-Match": '"2"'}).status_code == 200


def test_an_idempotency_key_never_writes_twice(client: TestClient) -> None:
    key = {"Idempotency-Key": "order-4711"}
    first = client.post(f"{BASE}/memories", json={"text": "ordered two lamps"}, headers=key).json()
    again = client.post(f"{BASE}/memories", json={"text": "ordered two lamps"}, headers=key).json()
    assert first["memory"]["id"] == again["memory"]["id"]
    assert client.get(f"{BASE}/stats").json()["version"] == 1
    refused = client.post(f"{BASE}/sandboxes", json={}, headers=key)
    assert (refused.status_code, refused.json()["type"]) == (400, "/problems/BadInput")


def test_pages_lead_from_one_to_the_next(client: TestClient) -> None:
    items = [{"text": f"visited city number {n} of the long list", "kind": "episode"} for n in range(7)]
    client.post(f"{BASE}/memories/batch", json={"items": items}).raise_for_status()
    texts, path = [], f"{BASE}/memories?limit=3"
    while path:
        answered = client.get(path)
        texts += [memory["text"] for memory in answered.json()["memories"]]
        path = answered.links.get("next", {}).get("url", "")
    assert texts == [f"user: {item['text']}" for item in items]


def test_a_head_is_a_get_without_its_body(client: TestClient) -> None:
    id_ = remember(client, "ชอบชาเขียว").json()["memory"]["id"]
    paths = [f"{BASE}/{rest}" for rest in ("memories", f"memories/{id_}", "stats", "memories/none", "x")]
    for path in (
        *paths,
        f"{BASE}/memories?limit=x",
        "/health",
        "/problems/Busy",
        "/metrics",
        "/openapi.json",
    ):
        got, told = client.get(path), client.head(path)
        assert (told.status_code, told.content) == (got.status_code, b"")
        if path != "/metrics":  # it has counted one more
            assert told.headers == got.headers
    assert client.head(f"{BASE}/events").headers["content-type"].startswith("text/event-stream")
    assert client.head(f"{BASE}/memories/{id_}", headers={"If-None-Match": '"1"'}).status_code == 304
    refused = client.head(f"{BASE}/memories/batch/x/y")
    assert refused.status_code == 404
    wrong = client.put("/health")
    assert (wrong.status_code, wrong.headers["allow"]) == (405, "GET, HEAD")
    assert 'method="HEAD",path="/health",status="200"} 1' in client.get("/metrics").text


def test_a_place_that_is_not_there_is_said_instead_of_an_empty_page(client: TestClient) -> None:
    ids = [remember(client, text).json()["memory"]["id"] for text in ("plays chess", "ชอบชาเขียว", "is 44")]
    for path in ("memories?after=nobody", "versions?after=99", "events?after=99"):
        told = client.get(f"{BASE}/{path}")
        assert (told.status_code, told.json()["type"]) == (400, "/problems/BadInput"), path
        assert "begin again without `after`" in told.json()["hint"], path
    gone = client.get(f"{BASE}/events", headers={"Last-Event-ID": "99"})
    assert gone.status_code == 400
    client.delete(f"{BASE}/memories/{ids[1]}")  # what ended since still says where a page ended
    page = client.get(f"{BASE}/memories?after={ids[1]}").json()["memories"]
    assert [memory["id"] for memory in page] == ids[2:]
    assert client.get(f"{BASE}/versions?after=4").json() == {"versions": [], "next": None}


def test_every_error_class_is_a_problem_with_a_page(root: Path) -> None:
    app, visitors = made(root)

    def fail(name: str) -> None:
        raise problems.KINDS[name]("writing x failed")

    app.add_api_route("/fail/{name}", fail)
    assert len(problems.KINDS) > 25
    with client_of(app, visitors) as client:
        for name, kind in problems.KINDS.items():
            answered = client.get(f"/fail/{name}")
            told = answered.json()
            assert answered.status_code == told["status"] == kind.http_status
            assert answered.headers["content-type"] == "application/problem+json"
            assert set(told) == {"type", "title", "status", "detail", "hint", "instance"}
            assert (told["detail"], told["instance"]) == ("writing x failed", f"/fail/{name}")
            assert told["hint"]
            assert client.get(told["type"]).json()["status"] == kind.http_status


def test_a_hint_that_names_a_command_names_the_path_instead(client: TestClient) -> None:
    first = client.get(f"{BASE}/memories").json()["hint"]
    assert first == "there is none yet; `PUT /accounts/{account}` begins it"
    remember(client, "likes green tea")
    hint = client.get(f"{BASE}/memories/none").json()["hint"]
    assert "`GET …/memories`" in hint
    assert "`GET …/memories/{id}/history`" in hint
    assert "octavo " not in hint


def test_what_does_not_fit_is_a_problem_that_names_the_place(client: TestClient) -> None:
    for answered, place in (
        (client.post(f"{BASE}/memories", json={"text": 7}), "body.text"),
        (client.post(f"{BASE}/memories", json={"text": "x", "actor": "human:root"}), "body.actor"),
        (client.post(f"{BASE}/memories", content=b"{"), "body"),
        (client.get(f"{BASE}/memories?limit=-1"), "query.limit"),
    ):
        assert answered.status_code == 400
        assert answered.headers["content-type"] == "application/problem+json"
        assert answered.json()["errors"][0]["where"].startswith(place)
    assert "One of episode, fact" in client.get(f"{BASE}/memories?kind=dream").json()["hint"]
    misspelt = client.get(f"{BASE}/memories?kinds=fact").json()
    assert "'kinds'" in misspelt["detail"]
    assert "kind, " in misspelt["hint"]
    form = client.post(f"{BASE}/memories", data={"text": "as a form"})
    assert (form.status_code, form.json()["hint"]) == (400, "send the body as application/json")
    assert client.get("/nowhere").json()["type"] == "/problems/NotFound"
    wrong = client.put(f"{BASE}/memories")
    assert (wrong.status_code, wrong.json()["status"]) == (405, 405)
    assert wrong.headers["allow"] == "GET, HEAD, POST"
    assert client.put(f"{BASE}/memories/x").headers["allow"] == "DELETE, GET, HEAD, PATCH"
    assert client.get("/accounts/nobody/memories").status_code == 404


def test_an_error_nobody_foresaw_tells_nothing_of_the_memory(root: Path) -> None:
    app, visitors = made(root)

    def fail() -> None:
        raise RuntimeError("the diary says: secret")

    app.add_api_route("/fail", fail)
    client = client_of(app, visitors)
    with TestClient(
        client.app, base_url=HERE, raise_server_exceptions=False, client=("127.0.0.1", 1)
    ) as quiet:
        answered = quiet.get("/fail")
    assert answered.status_code == 500
    assert answered.json()["type"] == "/problems/OctavoError"
    assert "secret" not in answered.text


def test_new_versions_come_as_events_and_missed_ones_are_sent_again(served: tuple[str, Visitors]) -> None:
    base, visitors = served
    headers = {SAME_ORIGIN: visitors.same_origin}

    def write(text: str) -> None:
        httpx.post(f"{base}{BASE}/memories", json={"text": text}, headers=headers).raise_for_status()

    def listen(count: int, **more: str) -> list[tuple[int, Any]]:
        events: list[tuple[int, Any]] = []
        with httpx.stream("GET", f"{base}{BASE}/events", headers=more, timeout=20) as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            lines = stream.iter_lines()
            if not more:
                next(lines)
                write("likes green tea")
            id_ = 0
            for line in lines:
                name, _, value = line.partition(": ")
                if name == "id":
                    id_ = int(value)
                if name == "data":
                    events.append((id_, json.loads(value)))
                if len(events) == count:
                    return events
        raise AssertionError("the stream ended")

    write("lives in Chiang Mai")
    ((version, told),) = listen(1)
    assert (version, told["cause"], told["actor"]) == (2, "remember", "human:you")
    write("เลี้ยงแมวสองตัว")
    assert [version for version, _ in listen(2, **{"Last-Event-ID": "1"})] == [2, 3]
    bad = httpx.get(f"{base}{BASE}/events", headers={"Last-Event-ID": "x"})
    assert bad.status_code == 400


def test_size_and_rate_are_limited(root: Path) -> None:
    app, visitors = made(root, max_bytes=1_000, requests=4, seconds=600)
    with client_of(app, visitors) as client:
        large = remember(client, "word " * 500)
        assert (large.status_code, large.json()["type"]) == (413, "/problems/TooLarge")
        chunks = client.post(f"{BASE}/memories", content=(b'"' + b"x" * 400 for _ in range(4)))
        assert (chunks.status_code, chunks.json()["type"]) == (413, "/problems/TooLarge")
        for _ in range(2):
            assert client.get("/health").status_code == 200
        often = client.get("/health")
        assert (often.status_code, often.headers["retry-after"]) == (429, "1")


def test_metrics_count_requests_and_what_is_held(client: TestClient) -> None:
    remember(client, "likes green tea")
    text = client.get("/metrics").text
    path = "/accounts/{account}/memories"
    assert f'octavo_requests_total{{method="POST",path="{path}",status="201"}} 1' in text
    assert "octavo_pool_accounts 1" in text
    assert "green tea" not in text


def test_accounts_begin_are_listed_and_end(client: TestClient) -> None:
    assert client.put("/accounts/Other").status_code == 201
    assert client.put("/accounts/Other").status_code == 200
    assert remember(client, "likes green tea").status_code == 404  # it is not the first of its folder
    client.put(BASE).raise_for_status()
    remember(client, "likes green tea").raise_for_status()
    assert client.get("/accounts").json() == {"accounts": ["Other", "User01"]}
    assert client.delete("/accounts/Other").json() == {"deleted": "Other"}
    assert client.get("/accounts").json() == {"accounts": ["User01"]}


def test_the_paths_of_the_vault_answer_as_they_are_written(client: TestClient) -> None:
    added = client.post(
        "/api/vault/add", json={"text": "Favorite editor is VS Code", "topic_id": "editor"}
    ).json()
    assert added["status"] == "stored"
    later = client.post(
        "/api/vault/add", json={"text": "Favorite editor is Helix", "topic_id": "editor"}
    ).json()
    assert later == {"status": "updated", "id": added["id"], "version": 2}
    stats = client.get("/api/vault/stats").json()
    assert (stats["active_count"], stats["by_tier"], stats["register_topics"]) == (1, {"register": 1}, 1)
    assert client.post("/api/vault/compact").json()["lines_after"] == 1
    gone = client.post("/api/vault/delete", json={"memory_id": added["id"]}).json()
    assert gone == {"status": "deleted", "id": added["id"]}
    assert client.post("/api/vault/delete", json={"memory_id": added["id"]}).status_code == 404


def test_the_paths_of_memory_structures_answer_in_their_envelope(client: TestClient) -> None:
    kept = client.post(
        "/process_memory", json={"content": "the sky was clear today", "metadata": {"n": 1}}
    ).json()
    assert (kept["success"], kept["error"]) == (True, None)
    id_ = kept["memory_id"]
    found = client.post("/retrieve_memories", json={"query": "clear sky", "top_k": 3}).json()
    assert found["memories"][0]["id"] == id_
    assert found["memories"][0]["boost_info"]["assembly_boost"] == 0
    assert client.post("/retrieve_memories", json={"query": "sky", "threshold": 9.0}).json()["memories"] == []
    failed = client.post("/retrieve_memories", json={"query": "sky", "user_emotion": "x" * 5000}).json()
    assert (failed["success"], failed["memories"], bool(failed["error"])) == (False, [], True)
    assert client.post("/provide_feedback", json={"memory_id": id_, "was_relevant": True}).json()["success"]
    raised = client.post(
        "/api/memories/update_quickrecal_score", json={"memory_id": id_, "delta": 0.9}
    ).json()
    assert raised["new_quickrecal_score"] == 1.0
    assert client.get(f"/api/memories/{id_}").json()["memory"]["quick_recal_score"] == 1.0
    assert client.get("/api/memories/unknown").status_code == 404
    counted = client.post("/calculate_quickrecal", json={"memory_id": id_, "mode": "standard"}).json()
    assert (counted["success"], 0 <= counted["quickrecal_score"] <= 1) == (True, True)
    assert client.post("/calculate_quickrecal", json={"memory_id": "unknown"}).status_code == 404
    assert client.post("/detect_contradictions", json={}).json()["count"] == 0
    assert client.get("/check_index_integrity").json()["is_consistent"]
    assert client.post("/repair_index", json={"repair_type": "auto"}).json()["success"]
    assert client.post("/diagnostics/trigger_retry_loop").json()["success"]
    assert client.get("/stats").json()["memories"] == 1
    for path in ("/config/runtime/memory-core", "/diagnostics/runtime/config/memory-core"):
        assert "index" in client.get(path).json()["config"]
    assert client.get("/config/runtime/SECRET_KEY").status_code == 404


def test_the_paths_of_assemblies_answer_in_their_envelope(client: TestClient) -> None:
    texts = ("the kiln fires clay pots", "the wheel turns clay bowls", "the glaze is blue")
    ids = [remember(client, text).json()["memory"]["id"] for text in texts]
    (made,) = client.post(f"{BASE}/operations/assemble", json={"ids": ids[:2], "name": "pottery"}).json()[
        "assemblies"
    ]
    listed = client.get("/assemblies").json()
    assert (listed["success"], listed["error"], len(listed["assemblies"])) == (True, None, 1)
    path = f"/assemblies/{made['id']}"
    assert client.get(path).json()["success"]
    assert client.get(f"{path}/lineage", params={"max_depth": 3}).json()["target_assembly_id"] == made["id"]
    explained = client.get(f"{path}/explain_activation", params={"memory_id": ids[0]})
    assert explained.json()["memory_id"] == ids[0]
    assert "not formed by a merge" in client.get(f"{path}/explain_merge").json()["notes"]
    assert client.get("/diagnostics/merge_log", params={"limit": 5}).json()["count"] == 0
    assert client.get("/diagnostics/merge_log", params={"limit": 0}).status_code == 400
    assert client.get(f"{path}/lineage", params={"max_depth": 0}).status_code == 400
    assert client.get("/assemblies/unknown").status_code == 404


def test_a_procedure_that_an_agent_writes_is_accepted_and_waits(root: Path) -> None:
    app, visitors = made(root)
    _, token = visitors.tokens.add("User01", "agent:bot", "shared", by="human:you")
    with TestClient(app, base_url=HERE, headers={"authorization": f"Bearer {token}"}) as bot:
        rules = {"content": {"deny": ["backward"]}}
        answer = bot.post("/api/memory/write/procedural/guardrails", json=rules)
        assert (answer.status_code, answer.json()["ids"]) == (202, [])
        assert answer.json()["proposal"]
        assert bot.get("/api/memory/read/procedural/guardrails.json").status_code == 404


def test_the_paths_of_filesystem_memory_answer_as_they_are_written(client: TestClient) -> None:
    page = {"content": "- the red door needs a key\n- lava burns"}
    written = client.post("/api/memory/write/semantic/objects", json=page).json()
    assert len(written["ids"]) == 2
    client.post(
        "/api/memory/write/episodic/moved", json={"content": {"payload": "went north"}}
    ).raise_for_status()
    found = client.get("/api/memory/search", params={"q": "red door", "levels": "semantic"}).json()
    assert found["mixed"][0]["content"] == "the red door needs a key"
    place = found["mixed"][0]["path"]
    level, _, below = place.partition("/")
    read = client.get(f"/api/memory/read/{level}/{below}").json()
    assert read["entries"]
    assert client.get("/api/memory/read/semantic/nothing").status_code == 404
    assert client.get("/api/memory/read/nowhere/x").status_code == 400
    for path in ("..%2Fx", "%2Fetc%2Fpasswd", "C:%5Cx", "a%00b", "a%2F..%2F..%2Fx", "a%5C..%5Cx"):
        for level in ("episodic", "semantic", "procedural"):
            assert client.get(f"/api/memory/read/{level}/{path}").status_code == 400, path
            assert client.post(f"/api/memory/write/{level}/{path}", json=page).status_code == 400, path
    rules = {"content": {"deny": ["backward"]}}
    assert client.post("/api/memory/write/procedural/guardrails", json=rules).status_code == 200
    assert client.post("/api/memory/consolidate", json={}).json()["patterns_found"] == 0
    assert client.get("/api/memory/stats").json()["levels"]["semantic"]["file_count"] == 2
    assert client.get("/api/memory/retention").json()["episodic"]["conversations"]["max_age_days"] == 30
