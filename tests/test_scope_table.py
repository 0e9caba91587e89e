"""Scopes: every public operation with what a handle of one scope gets of another one's memory."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

import octavo
from octavo.doors.operations import OPERATIONS, Operation
from octavo.doors.operations import call as perform
from octavo.doors.plain import plain
from octavo.doors.settings import Settings
from octavo.engine.explain import Explainer
from octavo.engine.reading import Snapshot
from octavo.engine.sandbox import Sandbox
from octavo.errors import OctavoError
from surface import OF_HANDLE, OF_INTAKE, World, call, holder, methods

SECRET = "the heron flies at nine"
HIDDEN = (SECRET, "secret plan", "human:olga", "heron")

# What a bound handle gets: its own and shared memory, a refusal because it concerns the whole account,
# nothing because what it names does not exist for it, or only what concerns no memory.
TABLE = {
    "own": {
        "at", "brief", "grouped", "compress", "counters", "deletion_candidates", "diff", "memories",
        "merge_candidates",
        "proposals", "propose_deletions", "recall", "refusals", "rejections", "revisions", "sandboxes",
        "sessions",
        "stats", "uses", "versions", "upkeep", "check", "forget", "remember", "remember_many", "write_many",
        "revise",
        "reject", "sandbox", "history", "get", "drifted", "retire_aged", "explain", "orders", "alias",
        "aged", "referring", "quotes",
    },
    "owner": {"backup", "export", "repair", "restore", "salvage", "mirror", "sync", "revert"},
    "absent": {
        "adopt", "approve", "buffer", "decline", "freshness", "promote", "proposal", "propose_merge",
        "redact", "resume", "uncompress", "unreject", "import_", "assemble",
        "finish_merge", "merge_assemblies", "reopen", "end_order",
        "unmerge",
    },
    "nothing": {"as_agent", "catch_up", "close", "importing", "lag", "must_fit", "reindex", "sees", "wait"},
}  # fmt: skip


@pytest.fixture
def other(opened, tmp_path) -> World:
    """The same account with memory of orion, as a handle bound to elysia would name it."""
    owner = opened("human:olga", embedder=False)
    fact = owner.remember(SECRET, scope="orion").or_raise()
    second = owner.remember("the heron sleeps at noon", scope="orion").or_raise()
    canon = owner.remember("guards the heron", kind="canon", scope="orion").or_raise()
    sandbox = owner.sandbox("secret plan", scope="orion")
    sandbox.turn("user", SECRET)
    sandbox.close()
    owner.remember("feeds the heron", confidence=0.1, scope="orion")
    bot = opened("agent:bot", scope="orion", embedder=False)
    proposal = bot.remember("values the heron", kind="canon").proposal
    return World(
        account=opened("human:eve", scope="elysia", embedder=False),
        sandbox=sandbox,
        folder=tmp_path,
        fact=fact.id,
        other=second.id,
        canon=canon.id,
        proposal=proposal,
    )


def test_every_public_operation_stands_in_the_table():
    listed = [name for names in TABLE.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) == methods(octavo.Account) | set(OF_INTAKE)
    assert not methods(octavo.Account) & set(OF_INTAKE)


def told(handle: Any, name: str, arguments: dict[str, Any]) -> tuple[str, str]:
    try:
        result = call(handle, name, arguments)
    except OctavoError as error:
        return type(error).__name__, f"{error} {error.advice}"
    if hasattr(result, "memories") and name in ("at", "as_agent"):
        return "", repr(result.memories())
    return "", repr(list(result) if isinstance(result, map | filter) else result)


@pytest.mark.parametrize("name", sorted(set(OF_HANDLE) - {"close"}))
def test_a_bound_handle_learns_nothing_of_another_scope(other, tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    other.account.remember("mine alone")
    arguments = OF_HANDLE[name](other) if name != "write_many" else {"wanted": [], "cause": "test"}
    error, said = told(holder(other.account, name), name, arguments)
    for hidden in HIDDEN:
        assert hidden not in said
    if name in TABLE["owner"]:
        assert error == "OutOfScope"
    if name in TABLE["absent"] - {"import_", "adopt"}:
        assert error in ("NotFound", "OutOfScope")
    assert [m.text for m in other.account.memories(scope="elysia") if "mine" in m.text] == ["mine alone"]


# The same for the doors' table, whose operations take an account, a sandbox or an older version.
OPERATION_TABLE = {
    "own": {
        "alias", "assemble", "assemblies", "behaviors", "brief",
        "catch_up", "check", "compress", "cores", "counters",
        "deletion_candidates", "diff", "learn", "memories",
        "merge_candidates", "merge_log", "orders", "patterns",
        "proposals", "propose_deletions", "recall", "refusals", "reindex", "reject", "rejections", "remember",
        "remember_many", "retention", "sandbox", "sandboxes",
        "sessions", "spheres", "stats", "teach", "upkeep",
        "versions",
    },
    "owner": {"backup", "export", "mirror", "repair", "restore", "revert", "sync"},
    "absent": {
        "approve", "assembly", "buffer", "consolidate", "decline", "discard", "end_order", "explain",
        "explain_activation",
        "explain_merge", "forget", "freshness", "get",
        "history", "import", "invoke", "lineage", "merge_assemblies",
        "promote", "proposal", "propose_merge", "redact", "reopen",
        "revise", "show", "turn", "uncompress", "unmerge",
        "unreject", "update_state", "use", "write_episode",
    },
    # They name accounts, not memories; a server gives them to nobody whose token is bound to a scope.
    "settings": {"accounts", "delete_account", "init", "salvage"},
}  # fmt: skip
VALUES: dict[str, Any] = {
    "text": "keeps two cats", "query": "heron", "role": "user",
    "name": "tea", "means": "Emi", "reason": "asked to",
    "episode": {"turn_1": "hello"}, "data": {"now": "calm"}, "items": [{"text": "keeps three dogs"}],
    "value": "hates rivers", "before": 1, "version": 1,
    "path": "nothing", "line": "teach dance", "to": "nowhere",
}  # fmt: skip
IDS = ("id", "ids", "memory_id", "first", "second", "sandbox")
AN_ID = "01kajx2f6w9m4d8c7t5s"


def values_of(operation: Operation, id_: str) -> dict[str, Any]:
    """What an operation must be told, with one id wherever it takes one."""
    needed = [p for p in operation.parameters if p.is_required or p.name in ("id", "ids")]
    told = {p.name: id_ if p.name in IDS else VALUES[p.name] for p in needed}
    return {name: [value] if name == "ids" else value for name, value in told.items()}


def answered(operation: Operation, account: octavo.Account, id_: str) -> str:
    try:
        value = perform(operation, account, values_of(operation, id_))
    except OctavoError as error:
        return f"{type(error).__name__}: {error}"
    return json.dumps(plain(value), ensure_ascii=False, default=str)


def hidden_ids(w: World, owner: octavo.Account) -> Iterator[str]:
    yield from (w.fact, w.canon, w.proposal, w.sandbox.id)
    yield owner.assemble(w.fact, w.other, name="heron group")[0].id
    yield from (m.id for m in owner.memories(kind="episode", scope="orion"))
    yield "core_000_000@orion"


def test_every_operation_of_the_doors_stands_in_the_table():
    listed = [name for names in OPERATION_TABLE.values() for name in names]
    assert len(listed) == len(set(listed))
    assert set(listed) == {operation.name for operation in OPERATIONS}
    assert OPERATION_TABLE["settings"] == {o.name for o in OPERATIONS if o.subjects == (Settings,)}


def test_every_other_handle_has_only_what_an_account_has_or_is_listed_here():
    assert methods(Snapshot) <= methods(octavo.Account)
    assert methods(Sandbox) - methods(octavo.Account) == {
        "consolidate", "discard", "turn", "update_state", "use", "write_episode",
    }  # fmt: skip
    assert methods(Explainer) == {
        "assemblies", "assembly", "found", "freshness", "lineage", "must_explain", "stats",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(set().union(*OPERATION_TABLE.values()) - OPERATION_TABLE["settings"]))
def test_an_operation_tells_a_hidden_id_and_an_unknown_one_in_the_same_words(
    other, opened, tmp_path, monkeypatch, name
):
    monkeypatch.chdir(tmp_path)
    operation = next(o for o in OPERATIONS if o.name == name)
    owner = opened("human:olga", embedder=False)
    own = other.account.remember("mine alone").memory
    takes_ids = name in OPERATION_TABLE["absent"] - {"import", "invoke", "unreject"}
    for id_ in hidden_ids(other, owner) if takes_ids else [other.fact]:
        there = answered(operation, other.account, id_)
        for hidden in HIDDEN:
            assert hidden not in there
        if name in OPERATION_TABLE["owner"]:
            assert there.startswith("OutOfScope")
        if takes_ids and "@" not in id_:
            nowhere = answered(operation, other.account, AN_ID)
            assert there.replace(id_, "").replace(AN_ID, "") == nowhere.replace(AN_ID, ""), id_
    assert other.account.get(own.id) == own
    assert owner.get(other.fact).text == SECRET


def test_what_is_not_there_and_what_is_hidden_are_told_in_the_same_words(other):
    for name in ("freshness", "promote", "redact", "uncompress", "buffer", "resume", "proposal", "approve"):
        hidden = {"buffer": other.sandbox.id, "resume": other.sandbox.id, "proposal": other.proposal}
        id_ = hidden.get(name, other.proposal if name == "approve" else other.fact)
        key = "sandbox" if name in ("buffer", "resume") else "id_"
        more = {"reason": "x"} if name == "redact" else {}
        there = told(other.account, name, {key: id_, **more})
        nowhere = told(other.account, name, {key: "nowhere", **more})
        assert (there[0], there[1].replace(id_, "")) == (nowhere[0], nowhere[1].replace("nowhere", "")), name
