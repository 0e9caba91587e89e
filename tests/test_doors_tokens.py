"""Tokens: kept hashed, bound to account, actor and scope; nothing that a request says widens them."""

from __future__ import annotations

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import octavo
from octavo.doors import cli, hooks, rest, rest_seeds
from octavo.doors.pool import Pool
from octavo.doors.settings import Settings
from octavo.doors.visitors import SAME_ORIGIN, Tokens, Visitors
from octavo.errors import BadInput, HumanOnly, NotFound

HERE = "http://127.0.0.1:8787"
HIDDEN = "the password hint is a blue elephant"


def test_a_token_is_kept_as_a_hash_in_a_private_file(root: Path) -> None:
    made, text = Tokens(root).add("User01", "agent:bot", "orion", by="human:you")
    (path,) = root.glob("*/tokens.json")
    assert text not in path.read_text()
    assert text.rpartition("_")[2] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert Tokens(root).of(text) == made
    assert Tokens(root).of(text[:-1]) is None
    assert octavo.accounts(root) == []


def test_a_token_revoked_elsewhere_is_refused_at_once(root: Path) -> None:
    here, elsewhere = Tokens(root), Tokens(root)
    made, text = here.add("User01", "agent:bot", "orion", by="human:you")
    assert elsewhere.of(text) is not None
    here.revoke(made.id, by="human:you")
    assert elsewhere.of(text) is None
    with pytest.raises(NotFound):
        here.revoke(made.id, by="human:you")


def test_only_people_give_tokens_and_only_theirs_see_every_scope(root: Path) -> None:
    with pytest.raises(HumanOnly):
        Tokens(root).add("User01", "agent:bot", "orion", by="agent:bot")
    with pytest.raises(BadInput, match="every scope"):
        Tokens(root).add("User01", "agent:bot", None, by="human:you")
    assert Tokens(root).add("User01", "human:you", None, by="human:you")[0].scope is None
    with pytest.raises(BadInput, match="bad actor"):
        Tokens(root).add("User01", "bad actor", "shared", by="human:you")
    assert [token.actor for token in Tokens(root).all()] == ["human:you"]


def test_the_command_line_adds_lists_and_revokes(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    common = ["--root", str(root), "--account", "User01", "--actor", "human:you", "--json"]

    def run(*line: str) -> Any:
        assert cli.run([*line, *common]) == 0
        return json.loads(capfd.readouterr().out)

    added = run("token", "add", "agent:bot", "--scope", "orion")
    assert Tokens(root).of(added["token"]) is not None
    (listed,) = run("token", "list")["tokens"]
    assert listed == {name: value for name, value in added.items() if name != "token"}
    assert (listed["account"], listed["actor"], listed["scope"]) == ("User01", "agent:bot", "orion")
    assert run("token", "add", "agent:other")["scope"] == "shared"
    assert run("token", "revoke", listed["id"])["revoked"]["id"] == listed["id"]
    assert cli.run(["token", "add", "agent:x", *common[:4], "--actor", "agent:bot"]) == 6


@pytest.fixture
def server(root: Path) -> tuple[Any, Visitors, dict[str, str]]:
    """A server with a hidden memory in a private scope and in another account, and an agent's headers."""
    with octavo.open(root, "User01", actor="human:you", embedder=False) as account:
        account.remember("likes green tea")
        account.remember(HIDDEN, scope="elysia", id="hidden-one")
        with account.sandbox("private talk", scope="elysia", id="hidden-box") as sandbox:
            sandbox.turn("user", f"You know that {HIDDEN}.")
            sandbox.close()
    with octavo.open(root, "User02", actor="human:you", embedder=False) as other:
        other.remember(HIDDEN, id="hidden-one")
    settings = Settings(root=root, account="User02", actor="human:you", models={"OCTAVO_EMBEDDER": "none"})
    visitors = Visitors(settings)
    _, text = visitors.tokens.add("User01", "agent:bot", "orion", by="human:you")
    app = rest.app(Pool(), settings, visitors=visitors, mounts=(rest_seeds.add, hooks.add))
    return app, visitors, {"Authorization": f"Bearer {text}"}


# What a request might say to be somebody else, somewhere else.
WIDER: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nothing", {}),
    ("scope in the query", {"params": {"scope": "elysia"}}),
    (
        "query and headers",
        {
            "params": {"scope": "", "actor": "human:you", "owner": "true", "account": "User02"},
            "headers": {
                "X-Octavo-Scope": "elysia",
                "X-Octavo-Actor": "human:you",
                "X-Octavo-Account": "User02",
                "Cookie": "scope=elysia",
            },
        },
    ),
)
VALUES = {"account": "User01", "id": "hidden-one", "memory_id": "hidden-one", "sandbox": "hidden-box"}
VALUES |= {
    "version": "1",
    "level": "semantic",
    "path": "general",
    "service": "memory-core",
    "name": "BadInput",
    "event": "prompt",
}
BODY = {"id": "hidden-one", "ids": ["hidden-one"], "query": "blue elephant", "text": "blue elephant note"}
BODY |= {"sandbox": "hidden-box", "memory_id": "hidden-one", "first": "hidden-one", "second": "hidden-one"}
BODY |= {"session_id": "s-1", "prompt": "blue elephant"}
BODY |= {"items": [{"text": "an elephant walked by", "scope": "elysia"}], "role": "user", "reason": "curious"}
BODY |= {
    "episode": {"turn_1": {"speaker": "user", "text": "blue elephant"}},
    "data": {},
    "value": "blue",
    "name": "x",
}
BODY |= {
    "content": "blue elephant note",
    "was_relevant": True,
    "delta": 0.1,
    "version": 1,
    "q": "blue elephant",
}


def test_no_parameter_header_or_path_widens_a_token(
    server: tuple[Any, Visitors, dict[str, str]], root: Path
) -> None:
    app, _, bearer = server
    spec = app.openapi()
    routes = [
        (method, path, operation)
        for path, methods in spec["paths"].items()
        for method, operation in methods.items()
        if not path.endswith("/events")
    ]
    assert len(routes) > 90
    client = TestClient(app, base_url=HERE, headers=bearer, client=("127.0.0.1", 50000))
    with client:
        for method, path, operation in routes:
            filled = re.sub(r"{(\w+)}", lambda name: VALUES.get(name[1], "hidden-one"), path)
            body = _fitting(operation)
            for what, more in WIDER:
                named = {p["name"] for p in operation.get("parameters", ()) if p["in"] == "query"}
                params = {**{name: BODY[name] for name in named & set(BODY)}, **more.get("params", {})}
                said = {**more, "params": params} | ({"json": body} if body is not None else {})
                answered = client.request(method, filled, **said)
                assert answered.status_code != 500, (method, path, what, answered.text)
                assert "password hint" not in answered.text, (method, path, what)
                if what == "scope in the query" and "scope" in named:
                    assert answered.status_code == 403, (method, path, answered.text)
                other = filled.replace("/accounts/User01", "/accounts/User02")
                if other != filled and what == "nothing":
                    refused = client.request(method, other, **said)
                    assert refused.status_code in (400, 403), (method, path, what, refused.text)
                    if refused.status_code == 400:  # it did not even fit; what does fit is refused
                        assert answered.status_code == 400, (method, path, what, refused.text)
    for name, scope in (("User01", "elysia"), ("User02", None)):
        with octavo.open(root, name, actor="human:you", scope=scope, embedder=False) as account:
            assert account.get("hidden-one") is not None
            assert account.get("hidden-one").rev == 1
            assert all(m.actor == "human:you" for m in account.memories(scope=scope or "shared"))


def _fitting(operation: dict[str, Any]) -> dict[str, Any] | None:
    """A body with what an operation must be told, of what is hidden."""
    content = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if content is None:
        return None
    model = content["schema"]
    plain = {"integer": 1, "number": 0.5, "boolean": True, "array": [], "object": {}}
    return {
        name: BODY.get(name, plain.get(model["properties"][name].get("type", "string"), "hidden-one"))
        for name in model.get("required", ())
    }


def test_without_a_token_only_this_machine_is_served(server: tuple[Any, Visitors, dict[str, str]]) -> None:
    app, visitors, bearer = server
    far = TestClient(app, base_url=HERE, client=("192.0.2.7", 50000))
    assert far.get("/accounts").status_code == 401
    assert far.get("/accounts").headers["www-authenticate"] == "Bearer"
    assert far.get("/accounts", headers=bearer).json() == {"accounts": ["User01"]}
    assert far.get("/accounts", headers={"Authorization": "Bearer octavo_x_y"}).status_code == 401
    assert far.get("/accounts", headers={"Authorization": "Basic eDp5"}).status_code == 401
    near = TestClient(app, base_url=HERE, client=("127.0.0.1", 50000))
    assert near.get("/accounts").json() == {"accounts": ["User01", "User02"]}
    assert near.get("/accounts", headers={"X-Forwarded-For": "192.0.2.7"}).status_code == 401
    open_ = rest.app(Pool(), visitors.settings, visitors=Visitors(visitors.settings, host="0.0.0.0"))
    assert TestClient(open_, base_url=HERE, client=("127.0.0.1", 1)).get("/accounts").status_code == 401


def test_a_page_of_another_site_can_neither_write_nor_be_taken_for_ours(
    server: tuple[Any, Visitors, dict[str, str]],
) -> None:
    app, visitors, _ = server
    near = TestClient(app, base_url=HERE, client=("127.0.0.1", 50000))
    path, body = "/accounts/User01/memories", {"text": "was written by a stranger"}
    assert near.post(path, json=body).status_code == 403
    assert near.post(path, json=body, headers={SAME_ORIGIN: "guess"}).status_code == 403
    own = {SAME_ORIGIN: near.get("/session").json()["same_origin"]}
    assert near.post(path, json=body, headers={**own, "Origin": "http://evil.example"}).status_code == 403
    assert near.get("/session", headers={"Host": "evil.example:8787"}).status_code == 403
    assert near.get("/session", headers={"Host": "["}).status_code == 403
    assert near.post(path, json=body, headers={**own, "Origin": "http://["}).status_code == 403
    assert near.post(path, json=body, headers={**own, "Origin": HERE}).status_code == 201
    assert visitors.same_origin == own[SAME_ORIGIN]
