"""Seed 002's agent tool and its burst: actions by name, plain replies, and what is not allowed is denied."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from octavo.documents import MemoryVault, flush_proposed, vault_tool
from octavo.documents.vault import ACTIONS
from octavo.errors import BadFile, BadInput

DARK = "User prefers dark mode in all apps"
PROJECT = "Building a Python agent with a memory vault"
THAI = "ผู้ใช้ชอบชาเขียวมาก"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "vault.jsonl"


@pytest.fixture
def vault(path: Path) -> Iterator[MemoryVault]:
    with MemoryVault(path, actor="human:operator") as opened:
        yield opened


@pytest.fixture
def agent(path: Path) -> Iterator[MemoryVault]:
    with MemoryVault(path, actor="agent:orion") as opened:
        yield opened


def test_add_then_stats_is_ok_with_two_active_and_compact_is_ok_with_two_lines_after(vault):
    assert vault_tool(vault, "add", text=DARK, scope="shared", category="preference")["status"] == "stored"
    first = vault_tool(vault, "add", text=PROJECT, scope="orion", category="project", tier="canon")
    assert vault_tool(vault, "update", memory_id=first["id"], text=f"{PROJECT}, in Thai")["version"] == 2
    stats = vault_tool(vault, "stats")
    assert (stats["status"], stats["active_count"], stats["utilization_pct"]) == ("ok", 2, 2.0)
    assert stats["by_scope"] == {"shared": 1, "orion": 1}
    assert stats["by_tier"] == {"register": 1, "canon": 1}
    compacted = vault_tool(vault, "compact")
    assert (compacted["status"], compacted["lines_before"], compacted["lines_after"]) == ("ok", 3, 2)


def test_a_memory_proposed_in_a_burst_is_in_the_vault_after_the_tick(vault):
    done = flush_proposed(vault, [{"text": PROJECT, "scope": "orion", "category": "project"}, {"text": THAI}])
    assert done == {"status": "ok", "memories_proposed": 2, "memories_written": 2, "errors": []}
    assert {(m.text, m.tier, m.source) for m in vault.recall()} == {
        (PROJECT, "register", "tool"),
        (THAI, "register", "tool"),
    }


def test_a_proposed_ssn_is_not_written_and_the_error_mentions_pii(vault, path):
    done = flush_proposed(vault, [{"text": "SSN 123-45-6789", "scope": "orion"}, {"text": DARK}])
    assert (done["memories_proposed"], done["memories_written"]) == (2, 1)
    (error,) = done["errors"]
    assert error.startswith("memory_write_error: ")
    assert "PII" in error
    assert "123-45-6789" not in path.read_text()


@pytest.mark.parametrize("action", ["bulk_delete", "compact", "rebuild_index"])
def test_an_action_that_an_agent_may_not_do_is_denied_by_name_with_what_is_allowed(agent, vault, action):
    kept = vault.add_memory(DARK, "shared", "preference")
    arguments = {"memory_ids": [kept.id]} if action == "bulk_delete" else {}
    reply = vault_tool(agent, action, **arguments)
    assert reply["status"] == "denied"
    assert f"'{action}' is denied" in reply["message"]
    assert "allowed here: add, bulk_add, remember" in reply["message"]
    assert vault.get(kept.id) == kept
    assert vault_tool(vault, action, **arguments)["status"] == "ok"


def test_an_unknown_action_is_denied_too(vault):
    reply = vault_tool(vault, "obey", text=DARK)
    assert reply["status"] == "denied"
    assert "'obey' is unknown" in reply["message"]
    assert vault_tool(vault, ["add"])["status"] == "denied"


def test_a_profile_says_what_its_agent_may_do(tmp_path, path):
    profile = tmp_path / "orion.yaml"
    profile.write_text("memory:\n  scopes: [shared, orion]\n  actions: [search, get]\n")
    with MemoryVault.from_profile(profile, path, actor="agent:orion") as vault:
        assert vault_tool(vault, "search", query="tea") == {"status": "ok", "memories": []}
        assert vault_tool(vault, "add", text=DARK)["status"] == "denied"
        done = flush_proposed(vault, [{"text": DARK}])
        assert (done["status"], done["memories_written"]) == ("denied", 0)
        assert "'bulk_add' is denied; allowed here: search, get" in done["errors"][0]
    profile.write_text("memory:\n  actions: [search, obey]\n")
    with pytest.raises(BadFile, match="'obey'"):
        MemoryVault.from_profile(profile, path)
    with pytest.raises(BadInput, match="obey"):
        MemoryVault(path, actions=["obey"])
    with MemoryVault(path, actions=[]) as vault:
        assert "allowed here: nothing" in vault_tool(vault, "stats")["message"]


def test_every_action_of_the_document_replies_with_plain_json(vault):
    made = vault_tool(vault, "add", text=DARK, topic_id="look", tags=["ui"])
    assert vault_tool(vault, "add", text=f"{DARK} now", topic_id="look")["status"] == "updated"
    replies = {
        "remember": {"text": THAI},
        "bulk_add": {"items": [{"text": PROJECT, "scope": "shared"}, {"text": ""}]},
        "search": {"query": "ชาเขียว", "scope": ["shared"]},
        "recall": {"scope": "shared", "tags": ["remembered"]},
        "list": {"limit": 1},
        "get": {"memory_id": made["id"]},
        "update": {"memory_id": made["id"], "category": "preference"},
        "delete": {"memory_id": made["id"]},
        "bulk_delete": {"memory_ids": [made["id"]]},
        "journal": {"text": "tick marker for burst 5"},
        "directives": {"query": "tea"},
        "stats": {},
        "compact": {},
        "rebuild_index": {},
    }
    found = {action: vault_tool(vault, action, **arguments) for action, arguments in replies.items()}
    assert {"add", *found} == set(ACTIONS)
    assert json.loads(json.dumps(found)) == found
    assert [m["text"] for m in found["search"]["memories"]] == [THAI]
    assert [m["text"] for m in found["recall"]["memories"]] == [THAI]
    assert found["recall"]["memories"][0]["tags"] == ["remembered"]
    assert len(found["list"]["memories"]) == 1
    assert found["get"]["memory"]["text"] == f"{DARK} now"
    assert (found["update"]["status"], found["delete"]["status"]) == ("updated", "deleted")
    assert found["bulk_delete"]["not_found"] == [made["id"]]


def test_what_is_not_there_is_not_found_and_what_cannot_be_is_an_error(vault):
    for action in ("get", "update", "delete"):
        assert vault_tool(vault, action, memory_id="000000000000")["status"] == "not_found"
    for action, arguments in (
        ("add", {"text": "password: hunter2"}),
        ("add", {"text": 5}),
        ("add", {}),
        ("add", {"text": DARK, "colour": "blue"}),
        ("add", {"text": DARK, "tags": "ui"}),
        ("bulk_add", {"items": ["a text"]}),
        ("search", {"query": DARK, "scope": "*"}),
        ("list", {"limit": "many"}),
        ("list", {"limit": True}),
    ):
        reply = vault_tool(vault, action, **arguments)
        assert reply["status"] == "error", (action, arguments)
        assert reply["message"]
    assert vault.recall() == []


def test_an_agents_canon_is_proposed(agent, vault):
    reply = vault_tool(agent, "add", text=DARK, tier="canon")
    assert reply["status"] == "proposed"
    assert [p.id for p in vault.account.proposals()] == [reply["proposal"]]
    register = vault_tool(agent, "add", text=PROJECT)
    assert register["status"] == "stored"
    vault.account.approve(reply["proposal"])
    (canon,) = (m for m in vault.recall() if m.tier == "canon")
    assert vault_tool(agent, "delete", memory_id=canon.id)["status"] == "proposed"


def test_a_vault_that_is_switched_off_says_so(path):
    with MemoryVault(path, enabled=False) as off:
        assert "disabled" in vault_tool(off, "add", text=DARK)["message"]
        assert vault_tool(off, "list") == {"status": "ok", "memories": []}


def test_the_tool_acts_as_an_agent_unless_the_vault_was_opened_for_somebody(path):
    with MemoryVault(path) as vault:
        assert vault_tool(vault, "add", text=DARK, tier="canon")["status"] == "proposed"
        stored = vault_tool(vault, "add", text=THAI)
        assert vault.account.get(stored["id"]).actor == "agent"
        by_hand = vault.add_memory(PROJECT, "shared", "project")
        assert vault.account.get(by_hand.id).actor == "human:operator"
        assert vault_tool(vault, "delete", memory_id=by_hand.id)["status"] == "proposed"
    with MemoryVault(path, actor="human:nok") as vault:
        assert vault_tool(vault, "delete", memory_id=by_hand.id)["status"] == "deleted"


def test_the_advice_of_a_refusal_can_be_followed(vault):
    reply = vault_tool(vault, "add", text="tick marker for burst 5")
    assert "vault.journal(text)" in reply["message"]
    written = vault_tool(vault, "journal", text="tick marker for burst 5", scope="orion")
    assert [m.id for m in vault.read_journal("orion")] == [written["id"]]
    assert vault.recall() == []
    vault.add_directive("ตอบเป็นภาษาไทยเสมอ")
    kept = vault.add_directive("Answer questions about tea with a recipe")
    assert [d["id"] for d in vault_tool(vault, "directives", query="tea recipe")["directives"]] == [kept]
    assert len(vault.directives()) == 2
